"""Failures, saves and spares: goodput against the interval, where the rest of the time goes, what each loss takes out, and the risks."""
from __future__ import annotations

from collections.abc import Mapping

from .. import theme, words
from ..charts_endurance import badput, spares
from ..table import Table, cell
from ..words import label_or, named, quantity, show_or
from .base import Panel

_DOMAINS = {"what": "What is lost", "devices": "Devices", "replicas_stalled": "Replicas hit", "events_per_run": "In this run", "days_between": "One every", "recovers": "Comes back by",
            "loss_s": "Each loses", "days_lost": "Time lost", "usd_lost": "Cost"}
_RISKS = {"risk": "Risk", "likelihood": "Likelihood", "impact_days": "Impact", "expected_usd": "Expected cost", "mitigation": "What to do", "left_after_days": "Left then", "owner": "Owner"}
_WORDS = ("what", "recovers", "risk", "mitigation", "owner")


class Reliability(Panel):
    title = "Reliability"

    def build(self):
        from ..report.charts import goodput

        self.goodput = goodput
        self.curve, self.lost, self.spares = goodput.live(), badput.live(), spares.live()
        self.table = Table("Failures and checkpoints", file_name="reliability", explain=self.explain,
                           columns=[{"key": "what", "label": "Quantity", "align": "left"}, {"key": "value", "label": "Value", "wrap": True}])
        columns = lambda names: [{"key": k, "label": text, "align": "left" if k in _WORDS else "", "wrap": k in ("what", "recovers", "risk", "mitigation")} for k, text in names.items()]
        self.domains = Table("Failure domains: what one loss takes out", file_name="failure-domains", columns=columns(_DOMAINS), explain=lambda key, row: words.facts_of(row["what"], named(key, row.get(key)), row, ("what", "id")))
        self.risks = Table("Risk register", file_name="risks", columns=columns(_RISKS), explain=lambda key, row: words.facts_of(row["risk"], named(key, row.get(key)), row, ("risk", "id")))
        self.advice, self.harmless = theme.text(), theme.text()
        return [theme.side_by_side(theme.card(goodput.title, self.curve), theme.card(badput.title, self.lost), theme.card(spares.title, self.spares)),
                theme.card("Failure domains: what one loss takes out", self.domains, self.advice), theme.card("Risk register, dearest first", self.risks, self.harmless),
                theme.card("Failures and checkpoints", self.table)]

    def draw(self):
        from scantling.spares import waiting

        given, result = self.session.now.given, self.session.now.result
        self.goodput.show(self.curve, given)
        badput.show(self.lost, given)
        spares.show(self.spares, given, waiting=waiting(result.endurance))
        self.table.rows = numbers("endurance", given.get("endurance") or {})
        domains, risks = result.blueprint.domains.as_dict(), result.blueprint.risks.as_dict()
        self.domains.fill(_rows(domains["rows"], _DOMAINS), domains["rows"])
        self.advice.value = theme.lines(domains.get("advice") or []) if domains.get("advice") else ""
        self.risks.fill(_rows(risks["rows"], _RISKS), risks["rows"])
        self.harmless.value = f"<p class='sd-dim'>Tried and found harmless here: {theme.escape('; '.join(risks['harmless']))}.</p>" if risks.get("harmless") else ""


def _rows(rows, columns) -> list[list[dict]]:
    """Cells of records of the blueprint; a number opens to its whole record, source and all."""
    return [[cell(named(k, row.get(k)), row.get(k) if isinstance(row.get(k), (int, float)) else None, key="" if k in _WORDS or row.get(k) is None else k) for k in columns] for row in rows]


def numbers(section: str, values: Mapping) -> list[list[dict]]:
    """Rows of the plain numbers and words of a mapping, by the labels of the table of quantities."""
    rows = []
    for name, value in values.items():
        if value is None or isinstance(value, (Mapping, list, tuple)):
            continue
        key = f"{section}.{name}"
        rows.append([cell(label_or(key, name.replace("_", " ")), hint=formula(key)), cell(show_or(key, value), value if isinstance(value, (int, float)) else None, key=key if formula(key) and isinstance(value, (int, float)) else "")])
    return rows


def formula(key: str) -> str:
    try:
        return quantity(key).formula
    except KeyError:
        return ""
