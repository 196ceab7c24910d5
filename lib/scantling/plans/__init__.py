"""The search: the space of plans, its laws, their enumeration and evaluation."""
