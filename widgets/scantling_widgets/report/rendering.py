"""The templates of the report and of the pages: jinja2, everything put into one is escaped."""

import functools
from typing import Any

import jinja2
from scantling.base.quantities.table import show

from ..words import plan_text
from .phrases import lead, upfirst, verdict_name


@functools.cache
def environment() -> jinja2.Environment:
    """Templates of this package. In them `n` shows a quantity with its unit."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__ or "", "templates"),
        autoescape=True,
        undefined=jinja2.ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(n=show)
    env.filters.update(lead=lead, plan_text=plan_text, upfirst=upfirst, verdict_name=verdict_name)
    return env


def macros() -> Any:
    """The macros of tables, as functions."""
    return environment().get_template("tables.j2").module


def render(name: str, **view: Any) -> str:
    """A template filled."""
    return environment().get_template(f"{name}.j2").render(view).strip()
