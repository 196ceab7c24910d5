"""Failures, saves and spares: goodput against the interval, where the rest of the time goes, what
each loss takes out, and the risks."""

from __future__ import annotations

from collections.abc import Mapping

from scantling.cluster import part
from scantling.endure.spares import waiting

from .. import theme
from ..charts_endurance import badput, spares
from ..report.charts import goodput
from ..table import Table, cell
from ..words import label_or, quantity, show, show_or
from .base import Panel

_PARTS = ("domains", "risks")


class Reliability(Panel):
    title = "Reliability"

    def build(self):
        self.curve, self.lost, self.spares = goodput.live(), badput.live(), spares.live()
        self.table = pairs("reliability", self.explain)
        self.domains, self.risks = (
            Table(name, explain=self.explain_row(name, _said)) for name in _PARTS
        )
        self.advice, self.harmless = theme.text(), theme.text()
        card = theme.card
        return [
            theme.side_by_side(
                card(goodput.title, self.curve),
                card(badput.title, self.lost),
                card(spares.title, self.spares),
            ),
            self.domains.card(self.advice),
            card("Risk register, dearest first", self.risks, self.harmless),
            self.table.card(),
        ]

    def draw(self):
        given, result = self.given, self.session.now.result
        goodput.show(self.curve, given)
        badput.show(self.lost, given)
        spares.show(self.spares, given, waiting=waiting(result.endurance))
        self.table.rows = numbers("endurance", given.get("endurance") or {})
        domains, risks = (part(result, name).as_dict() for name in _PARTS)
        counted = f"No tokens are named: counted over {show('days', domains['run']['days'])}."
        self.domains.note = self.risks.note = "" if domains["run"]["of_the_run"] else counted
        for table, rows in ((self.domains, domains["rows"]), (self.risks, risks["rows"])):
            table.fill([_row(table, row) for row in rows], rows)
        advice, harmless = domains.get("advice"), risks.get("harmless")
        self.advice.value = theme.lines(advice) if advice else ""
        tried = f"Tried and found harmless here: {theme.escape('; '.join(harmless or ()))}."
        self.harmless.value = f"<p class='sd-dim'>{tried}</p>" if harmless else ""


def _row(table: Table, row: Mapping) -> list[dict]:
    """Cells of a record; a number opens to its formula, the values in it and the record's own
    source."""
    numbers = {k: v for k in table.names if isinstance(v := row.get(k), (int, float))}
    return [
        cell(_said(table.prefix + k, row), numbers.get(k), key=k if k in numbers else "")
        for k in table.names
    ]


def _said(key: str, row) -> str:
    value = row.get(key.rpartition(".")[2])
    if key.endswith("events_per_run") and value is None and row["at_most_per_run"] is not None:
        return f"≤ {show(key, row['at_most_per_run'])}"  # nothing is published
    return show(key, value)


def pairs(name: str, explain) -> Table:
    """A table of quantities and their values."""
    table = Table(name, explain=explain)
    table.add_class("sd-keys")
    return table


def numbers(section: str, values: Mapping) -> list[list[dict]]:
    """Rows of the plain numbers and words of a mapping, by the labels of the table of
    quantities."""
    rows = []
    for name, value in values.items():
        if value is None or isinstance(value, (Mapping, list, tuple)):
            continue
        key, number = f"{section}.{name}", isinstance(value, (int, float))
        about = formula(key)
        opens = key if about and number else ""
        what = cell(label_or(key, name.replace("_", " ")), hint=about)
        rows.append([what, cell(show_or(key, value), value if number else None, key=opens)])
    return rows


def formula(key: str) -> str:
    try:
        return quantity(key).formula
    except KeyError:
        return ""
