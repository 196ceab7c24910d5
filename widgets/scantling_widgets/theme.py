"""The look of the desk: one style sheet whose colours are those of the page around it."""

from __future__ import annotations

import html
from functools import cache

import ipywidgets as W

from .resources import STATIC

escape = html.escape


@cache
def _style() -> str:
    return "<style>" + (STATIC / "desk.css").read_text(encoding="utf-8") + "</style>"


def sheet() -> W.HTML:
    """The style sheet as a widget that takes no room."""
    return W.HTML(_style(), layout=W.Layout(height="0", width="0", overflow="hidden"))


def text(value: str = "", cls: str = "sd-text") -> W.HTML:
    """A block of markup with a class of the style sheet."""
    box = W.HTML(value)
    box.add_class(cls)
    return box


def card(title: str, *children, note: W.HTML | None = None) -> W.VBox:
    """A framed panel with a title; `note` stands at the right of it."""
    head = W.HTML(f'<div class="sd-card-title" role="heading" aria-level="3">{escape(title)}</div>')
    top = head
    if note is not None:
        top = W.HBox([head, note])
        top.add_class("sd-card-head")
    box = W.VBox([top, *children])
    box.add_class("sd-card")
    return box


def stack(*children) -> W.VBox:
    """Children one below the other, as one column among others."""
    return W.VBox(children, layout=W.Layout(grid_gap="8px", min_width="0"))


def side_by_side(*children, few: bool = False) -> W.Box:
    """Children next to each other while there is room; `few` gives each more of it."""
    box = W.Box(children)
    box.add_class("sd-columns")
    if few:
        box.add_class("sd-few")
    return box


def row(*children, gap: str = "12px") -> W.HBox:
    """Controls next to each other, in several lines where there is no room."""
    layout = W.Layout(grid_gap=gap, align_items="center", flex_flow="row wrap")
    return W.HBox(children, layout=layout)


def drop(name: str, options, width: str, label: str) -> W.Dropdown:
    """A list to choose from; `label` is the room for its name."""
    style, layout = {"description_width": label}, W.Layout(width=width, flex="0 0 auto")
    return W.Dropdown(options=list(options), description=name, style=style, layout=layout)


def dim(words: str) -> str:
    """Markup of a remark."""
    return f"<span class='sd-dim'>{words}</span>"


def lines(items) -> str:
    """A list of texts as markup, escaped."""
    return "<ul>" + "".join(f"<li>{escape(str(item))}</li>" for item in items) + "</ul>"
