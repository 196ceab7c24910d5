"""Failures, saves and spares: goodput against the interval, and where the rest of the time goes."""
from __future__ import annotations

from collections.abc import Mapping

from .. import theme
from ..charts_endurance import badput
from ..table import Table, cell
from ..words import label_or, quantity, show_or
from .base import Panel


class Reliability(Panel):
    title = "Reliability"

    def build(self):
        from ..report.charts import goodput

        self.goodput = goodput
        self.curve, self.lost = goodput.live(), badput.live()
        self.table = Table("Failures and checkpoints", file_name="reliability", explain=self.explain, columns=[{"key": "what", "label": "Quantity", "align": "left"}, {"key": "value", "label": "Value", "wrap": True}])
        return [theme.side_by_side(theme.card(goodput.title, self.curve), theme.card(badput.title, self.lost), theme.card("Failures and checkpoints", self.table))]

    def draw(self):
        given = self.session.now.given
        self.goodput.show(self.curve, given)
        badput.show(self.lost, given)
        self.table.rows = numbers("endurance", given.get("endurance") or {})


def numbers(section: str, values: Mapping) -> list[list[dict]]:
    """Rows of the plain numbers and words of a mapping, by the labels of the table of quantities."""
    rows = []
    for name, value in values.items():
        if value is None or isinstance(value, (Mapping, list, tuple)):
            continue
        key = f"{section}.{name}"
        rows.append([cell(label_or(key, name.replace("_", " ")), hint=formula(key)), cell(show_or(key, value), value if isinstance(value, (int, float)) else None, key=key if formula(key) else "")])
    return rows


def formula(key: str) -> str:
    try:
        return quantity(key).formula
    except KeyError:
        return ""
