"""Words and boxes of the desk as parts of the page; how they look stands in static/desk.css."""

import html
from collections.abc import Iterable
from typing import Any

from ..charts.page_parts import Box, Part
from ..report.phrases import unbroken

escape = html.escape


def text(value: str = "", cls: str = "sd-text") -> Part:
    """A block of markup with a class of the style sheet."""
    return Part(value=value, cls=cls)


def box(cls: str, *children: Part, title: str = "") -> Box:
    """Parts in a box with a class of the style sheet."""
    return Box(cls=cls, children=children, title=title)


def card(title: str, *children: Part, see: str = "") -> Box:
    """A framed panel with a title, below it one sentence on what to see here; its `note` stands at
    the right of the title."""
    about = (text(escape(see), "sd-see"),) if see else ()
    return box("sd-card", *about, *children, title=title)


def row(*children: Part) -> Box:
    """Parts in one line."""
    return box("sd-line-of", *children)


def stack(*children: Part) -> Box:
    """Parts below each other."""
    return box("sd-stack", *children)


def columns(*children: Part) -> Box:
    """Parts next to each other."""
    return box("sd-columns", *children)


def few_columns(*children: Part) -> Box:
    """Parts next to each other, each with more room."""
    return box("sd-columns sd-few", *children)


def dim(words: str) -> str:
    """Markup of a remark."""
    return f"<span class='sd-dim'>{words}</span>"


def lines(items: Iterable[Any]) -> str:
    """A list of texts as markup, escaped."""
    return "<ul>" + "".join(f"<li>{escape(unbroken(str(item)))}</li>" for item in items) + "</ul>"
