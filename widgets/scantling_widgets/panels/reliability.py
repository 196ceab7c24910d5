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
from ..words import label, label_or, quantity, show, show_or
from .base import Panel

_DOMAINS = (
    "what",
    "devices",
    "replicas_stalled",
    "events_per_run",
    "days_between",
    "recovers",
    "loss_s",
    "days_lost",
    "usd_lost",
)
_RISKS = (
    "risk",
    "likelihood",
    "impact_days",
    "expected_usd",
    "mitigation",
    "left_after_days",
    "owner",
)
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
        self.table = Table(
            "Failures and checkpoints",
            file_name="reliability",
            explain=self.explain,
            columns=[
                {"key": "what", "label": "Quantity", "align": "left"},
                {"key": "value", "label": "Value", "wrap": True},
            ],
        )
        table = lambda section, name, columns: Table(
            name,
            file_name=section,
            explain=self.explain_row(section, lambda k, row: _said(section, k, row), _OWN[section]),
            columns=[
                {
                    "key": k,
                    "label": label(f"blueprint.{section}.{k}"),
                    "align": "left" if k in _WORDS else "",
                    "wrap": k in _WORDS[:-1],
                }
                for k in columns
            ],
        )
        self.domains, self.risks = (
            table("domains", "Failure domains: what one loss takes out", _DOMAINS),
            table("risks", "Risk register", _RISKS),
        )
        self.table.add_class("sd-keys")
        self.advice, self.harmless = theme.text(), theme.text()
        return [
            theme.side_by_side(
                theme.card(goodput.title, self.curve),
                theme.card(badput.title, self.lost),
                theme.card(spares.title, self.spares),
            ),
            theme.card("Failure domains: what one loss takes out", self.domains, self.advice),
            theme.card("Risk register, dearest first", self.risks, self.harmless),
            theme.card("Failures and checkpoints", self.table),
        ]

    def draw(self):
        given, result = self.session.now.given, self.session.now.result
        goodput.show(self.curve, given)
        badput.show(self.lost, given)
        spares.show(self.spares, given, waiting=waiting(result.endurance))
        self.table.rows = numbers("endurance", given.get("endurance") or {})
        domains, risks = part(result, "domains").as_dict(), part(result, "risks").as_dict()
        self.domains.note = self.risks.note = (
            ""
            if domains["run"]["of_the_run"]
            else f"No tokens are named: counted over {show('days', domains['run']['days'])}."
        )
        self.domains.fill(_rows("domains", domains["rows"], _DOMAINS), domains["rows"])
        self.advice.value = (
            theme.lines(domains.get("advice") or []) if domains.get("advice") else ""
        )
        self.risks.fill(_rows("risks", risks["rows"], _RISKS), risks["rows"])
        self.harmless.value = (
            (
                f"<p class='sd-dim'>Tried and found harmless here: "
                f"{theme.escape('; '.join(risks['harmless']))}.</p>"
            )
            if risks.get("harmless")
            else ""
        )


def _rows(section, rows, columns) -> list[list[dict]]:
    """Cells of records of the blueprint; a number opens to its formula, the values in it and the
    record's own source."""
    return [
        [
            cell(
                _said(section, k, row),
                value if isinstance(value := row.get(k), (int, float)) else None,
                key=k if isinstance(value, (int, float)) else "",
            )
            for k in columns
        ]
        for row in rows
    ]


def _said(section, key, row) -> str:
    if (
        key == "events_per_run" and row[key] is None and row["at_most_per_run"] is not None
    ):  # nothing is published
        return f"≤ {show(f'blueprint.{section}.{key}', row['at_most_per_run'])}"
    return show(f"blueprint.{section}.{key}", row.get(key))


def numbers(section: str, values: Mapping) -> list[list[dict]]:
    """Rows of the plain numbers and words of a mapping, by the labels of the table of
    quantities."""
    rows = []
    for name, value in values.items():
        if value is None or isinstance(value, (Mapping, list, tuple)):
            continue
        key = f"{section}.{name}"
        rows.append(
            [
                cell(label_or(key, name.replace("_", " ")), hint=formula(key)),
                cell(
                    show_or(key, value),
                    value if isinstance(value, (int, float)) else None,
                    key=key if formula(key) and isinstance(value, (int, float)) else "",
                ),
            ]
        )
    return rows


def formula(key: str) -> str:
    try:
        return quantity(key).formula
    except KeyError:
        return ""
