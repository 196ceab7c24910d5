"""Review: a plan for a 70B run with three planted faults, and lines that only look wrong."""
