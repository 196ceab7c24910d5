"""Rows of the site's parts by name."""


def one(rows, name: str):
    """The row of that id, or, where rows have none, the first that says what it is."""
    return next(r for r in rows if getattr(r, "id", getattr(r, "what", None)) == name)
