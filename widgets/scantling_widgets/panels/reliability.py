"""Failures, saves and spares: goodput against the interval, where the rest of the time goes, what
each loss takes out, and the risks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from scantling.cluster import part
from scantling.endure.spares import waiting

from .. import theme
from ..charts_endurance import badput, spares
from ..report.charts import goodput
from ..table import Table, cell, columns
from ..words import label_or, quantity, show, show_or
from .base import Panel

_COLUMNS = {
    "domains": (
        *("what", "devices", "replicas_stalled", "events_per_run", "days_between"),
        *("recovers", "loss_s", "days_lost", "usd_lost"),
    ),
    "risks": (
        *("risk", "likelihood", "impact_days", "expected_usd", "mitigation"),
        *("left_after_days", "owner"),
    ),
}
_WORDS = ("what", "recovers", "risk", "mitigation", "owner")
_OWN = {
    "domains": {
        "Of": "what",
        "At most in this run": "at_most_per_run",
        "Nearest copy": "copy",
        "Spares cover it": "spares_cover",
        "Waiting for nodes": "wait_s",
        "Of the wall time": "goodput_cost",
        "Rate from": "rate_source",
    },
    "risks": {
        "Of": "risk",
        "Evidence": "evidence",
        "Likelihood from": "likelihood_from",
        "Remedy costs": "mitigation_usd",
        "In the headline days": "in_headline",
    },
}


class Reliability(Panel):
    title = "Reliability"

    def build(self):
        self.curve, self.lost, self.spares = goodput.live(), badput.live(), spares.live()
        self.table = pairs("Failures and checkpoints", "reliability", self.explain, sortable=True)
        self.domains = self._records("domains", "Failure domains: what one loss takes out")
        self.risks = self._records("risks", "Risk register")
        self.advice, self.harmless = theme.text(), theme.text()
        card = theme.card
        return [
            theme.side_by_side(
                card(goodput.title, self.curve),
                card(badput.title, self.lost),
                card(spares.title, self.spares),
            ),
            card(self.domains.label, self.domains, self.advice),
            card("Risk register, dearest first", self.risks, self.harmless),
            card(self.table.label, self.table),
        ]

    def _records(self, section: str, name: str) -> Table:
        """The table of the records of one part of the site."""
        wrap = _WORDS[:-1]
        return Table(
            name,
            file_name=section,
            explain=self.explain_row(section, partial(_said, section), _OWN[section]),
            columns=columns(_COLUMNS[section], f"blueprint.{section}.", left=_WORDS, wrap=wrap),
        )

    def draw(self):
        given, result = self.given, self.session.now.result
        goodput.show(self.curve, given)
        badput.show(self.lost, given)
        spares.show(self.spares, given, waiting=waiting(result.endurance))
        self.table.rows = numbers("endurance", given.get("endurance") or {})
        domains, risks = (part(result, name).as_dict() for name in _COLUMNS)
        counted = f"No tokens are named: counted over {show('days', domains['run']['days'])}."
        self.domains.note = self.risks.note = "" if domains["run"]["of_the_run"] else counted
        for table, section, found in (
            (self.domains, "domains", domains),
            (self.risks, "risks", risks),
        ):
            table.fill([_row(section, row) for row in found["rows"]], found["rows"])
        advice, harmless = domains.get("advice"), risks.get("harmless")
        self.advice.value = theme.lines(advice) if advice else ""
        tried = f"Tried and found harmless here: {theme.escape('; '.join(harmless or ()))}."
        self.harmless.value = f"<p class='sd-dim'>{tried}</p>" if harmless else ""


def _row(section: str, row: Mapping) -> list[dict]:
    """Cells of a record; a number opens to its formula, the values in it and the record's own
    source."""
    numbers = {k: v for k in _COLUMNS[section] if isinstance(v := row.get(k), (int, float))}
    return [
        cell(_said(section, k, row), numbers.get(k), key=k if k in numbers else "")
        for k in _COLUMNS[section]
    ]


def _said(section: str, key: str, row) -> str:
    name, value = f"blueprint.{section}.{key}", row.get(key)
    if key == "events_per_run" and value is None and row["at_most_per_run"] is not None:
        return f"≤ {show(name, row['at_most_per_run'])}"  # nothing is published
    return show(name, value)


def pairs(name: str, file_name: str, explain, sortable: bool = False) -> Table:
    """A table of quantities and their values."""
    labels = {"what": "Quantity", "value": "Value"}
    made = columns(labels, left=("what",), wrap=("value",), labels=labels)
    table = Table(name, file_name=file_name, sortable=sortable, explain=explain, columns=made)
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
