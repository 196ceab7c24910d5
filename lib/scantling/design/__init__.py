"""The design file: schema, reading and writing, resolving, the line of text."""
