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
    return W.HTML(
        _style(),
        layout=W.Layout(
            height="0",
            width="0",
            overflow="hidden",
        ),
    )


def text(value: str = "", cls: str = "sd-text") -> W.HTML:
    """A block of markup with a class of the style sheet."""
    box = W.HTML(value)
    box.add_class(cls)
    return box


def button(name: str, act, tip: str | None = None, style: str = "", **layout) -> W.Button:
    """A button that calls `act` without an argument."""
    place = W.Layout(**layout)
    made = W.Button(
        description=name,
        tooltip=tip,
        button_style=style,
        layout=place,
    )
    made.on_click(lambda _: act())
    return made


def box(kind: type, cls: str, *children, **layout) -> W.Box:
    """A box of one of the kinds of ipywidgets, with a class of the style sheet."""
    made = kind(children, layout=W.Layout(**layout))
    if cls:
        made.add_class(cls)
    return made


def card(
    title: str,
    *children,
    note: W.HTML | None = None,
) -> W.VBox:
    """A framed panel with a title; `note` stands at the right of it."""
    head = W.HTML(f'<div class="sd-card-title" role="heading" aria-level="3">{escape(title)}</div>')
    top = (
        head
        if note is None
        else box(
            W.HBox,
            "sd-card-head",
            head,
            note,
        )
    )
    return box(
        W.VBox,
        "sd-card",
        top,
        *children,
    )


def stack(*children) -> W.VBox:
    """Children one below the other, as one column among others."""
    return box(
        W.VBox,
        "",
        *children,
        grid_gap="8px",
        min_width="0",
    )


def side_by_side(*children, few: bool = False) -> W.Box:
    """Children next to each other while there is room; `few` gives each more of it."""
    made = box(W.Box, "sd-columns", *children)
    if few:
        made.add_class("sd-few")
    return made


def row(*children, gap: str = "12px") -> W.HBox:
    """Controls next to each other, in several lines where there is no room."""
    return box(
        W.HBox,
        "",
        *children,
        grid_gap=gap,
        align_items="center",
        flex_flow="row wrap",
    )


def drop(
    name: str,
    options,
    width: str,
    label: str,
) -> W.Dropdown:
    """A list to choose from; `label` is the room for its name."""
    style, layout = (
        {"description_width": label},
        W.Layout(
            width=width,
            flex="0 0 auto",
        ),
    )
    return W.Dropdown(
        options=list(options),
        description=name,
        style=style,
        layout=layout,
    )


def note(words: str) -> str:
    """Markup of a remark at the right of a card's title, escaped."""
    return f'<div class="sd-card-title"><span>{escape(words)}</span></div>'


def dim(words: str) -> str:
    """Markup of a remark."""
    return f"<span class='sd-dim'>{words}</span>"


def lines(items) -> str:
    """A list of texts as markup, escaped."""
    return "<ul>" + "".join(f"<li>{escape(str(item))}</li>" for item in items) + "</ul>"
