"""The templates of the report and of the pages: jinja2, everything put into one is escaped."""

import functools
from typing import Any

import jinja2

from .phrases import lead, upfirst, verdict_name


def _cell(text: str) -> str:
    """Text of a cell of a Markdown table."""
    return text.replace("|", "\\|")


@functools.cache
def environment() -> jinja2.Environment:
    """Templates of this package."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__ or "", "templates"),
        autoescape=True,
        undefined=jinja2.ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(cell=_cell, lead=lead, upfirst=upfirst, verdict_name=verdict_name)
    return env


def macros() -> Any:
    """The macros of tables, as functions."""
    return environment().get_template("tables.j2").module


def render(name: str, **view: Any) -> str:
    """A template filled."""
    return environment().get_template(f"{name}.j2").render(view).strip()
