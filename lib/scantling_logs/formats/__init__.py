"""Formats of logs, one file each: YAML where a step is a line of a pattern, Python where a file has
a structure of its own. A module has `read(path, found)`, and `knows(head)` where the YAML file
beside it has no marks."""
