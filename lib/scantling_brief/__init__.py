"""A run described in plain words, read as a design."""
