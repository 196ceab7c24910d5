"""Whether a design meets what it asks for: its numbers, constraints, limits, refusal."""
