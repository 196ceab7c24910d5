"""Tables and texts in YAML beside the modules that read them; texts are filled with numbers as
people read them."""

from __future__ import annotations

import string
from functools import cache
from pathlib import Path

import yaml

from .quantities.table import show
from .show import percent, shown


@cache
def table(beside: str, name: str) -> dict:
    """What NAME.yaml in the folder of the module `beside` (its __file__) holds; not to be changed
    in place."""
    text = Path(beside).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


class Words(string.Formatter):
    """Texts by id: `say("late", ratio=1.2)`.

    Beside Python's own formats, `{x:share}` and `{x:share 0 +}` are `percent` (digits, sign),
    `{x:of step_s}` is `show` of a quantity and `{x:as seconds}` is `shown` in a manner.
    """

    def __init__(self, texts: dict[str, str]):
        self.texts = texts

    def __call__(self, id: str, /, **facts) -> str:
        return self.vformat(self.texts[id], (), facts)

    def format_field(
        self,
        value,
        format_spec: str,
    ) -> str:
        manner, _, rest = format_spec.partition(" ")
        if manner == "of":
            return show(rest, value)
        if manner == "as":
            return shown(value, rest)
        if manner == "share":
            digits, _, sign = rest.partition(" ")
            return percent(value, int(digits or 1), sign)
        return format(value, format_spec)
