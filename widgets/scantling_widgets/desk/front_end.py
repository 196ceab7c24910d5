"""The front end of the desk and of its parts, as one module of JavaScript."""

from ..shipped_files import scripts

# in the order in which they need each other
_SCRIPTS = ("sheet", "form", "livechart", "strip", "parts", "table", "desk")


def script() -> str:
    """The front end; its `open(el, transport)` draws what `transport` brings."""
    return scripts(*_SCRIPTS)
