"""Texts that are filled with numbers as people read them."""

import string
from collections.abc import Mapping
from functools import cache
from typing import Any

from .errors import plain
from .files import table as table, table_rows as table_rows, yaml_of as yaml_of
from .quantities import table as quantities
from .show import number, percent, scalar, several, shown


@cache
def _pieces(text: str) -> tuple[tuple[str, str | None, str | None, str | None], ...]:
    """(text, name, format, conversion) of each piece of a text with {names}."""
    return tuple(string.Formatter().parse(text))


class Filler(string.Formatter):
    """Fills the {names} of a text from the first of `sources`, mappings or records, that has them.

    Beside Python's own formats, `{x:share}` and `{x:share 0 +}` are `percent` (digits, sign),
    `{x:step_s}` and `{x:of step_s}` are `show` of a quantity, `{x:as seconds}` is `shown` in a
    manner, `{x:#spare}` is '1 spare', '2 spares', `{x:number 4}` has four digits, `{x:plain 60}` is
    foreign text on one line, and `{x:1e9|.2f}` is divided by 1e9.
    """

    def __init__(self, *sources: Any) -> None:
        self.sources = sources

    def vformat(self, format_string: str, args: Any, kwargs: Any) -> str:
        """As Python's own, the pieces of each text kept; a text of a part may hold no other."""
        out = []
        for said, name, spec, conversion in _pieces(format_string):
            out.append(said)
            if name is not None:
                value, _ = self.get_field(name, args, kwargs)
                out.append(self.format_field(self.convert_field(value, conversion), spec or ""))
        return "".join(out)

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        if key in kwargs:
            return kwargs[key]
        for source in self.sources:
            if isinstance(source, Mapping) and key in source:
                return source[key]
            if isinstance(key, str) and hasattr(source, key):
                return getattr(source, key)
        raise KeyError(key)

    def format_field(self, value: Any, format_spec: str) -> str:
        value = scalar(value)
        if format_spec in quantities.table():
            return quantities.show(format_spec, value)
        manner, _, rest = format_spec.partition(" ")
        if manner == "of":
            return quantities.show(rest, value)
        if manner == "as":
            return shown(value, rest)
        if manner == "number":
            return number(value, int(rest))
        if manner == "plain":
            return plain(value, int(rest))
        if manner == "share":
            digits, _, sign = rest.partition(" ")
            return percent(value, int(digits or 1), sign)
        if manner.startswith("#"):
            return several(value, format_spec[1:])
        scale, _, spec = format_spec.rpartition("|")
        return format(value / float(scale) if scale else value, spec)


class Words(Filler):
    """Texts by id: `say("late", ratio=1.2)`."""

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__()
        self.texts = texts

    def __call__(self, id: str, /, **facts: Any) -> str:
        return self.vformat(self.texts[id], (), facts)
