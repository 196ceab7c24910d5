"""Failures, saves and spares: goodput against the interval, where the rest of the time goes, what
each loss takes out, and the risks."""

from collections.abc import Mapping

from scantling.endure.reliability import waiting
from scantling_site import part

from ...charts.endurance import badput, goodput, ladder, spares
from ...words import label_or, quantity, show, show_or
from .. import theme
from ..table import cell
from .base import Panel

_PARTS = ("domains", "risks", "recovery")


class Reliability(Panel):
    title = "Reliability"
    of_a_run = True

    figures = {"curve": goodput, "lost": badput, "spares": spares, "steps": ladder}

    def draw(self):
        result = self.now.result
        self.picture("curve")
        self.picture("lost")
        self.picture("spares", waiting=waiting(result.endurance))
        self.table.rows = numbers("endurance", self.given["endurance"])
        domains, risks, lived = (part(result, name).as_dict() for name in _PARTS)
        counted = f"No tokens are named: counted over {show('days', domains['run']['days'])}."
        self.domains.note = self.risks.note = "" if domains["run"]["of_the_run"] else counted
        self.domains.show(domains["rows"])
        self.risks.show(risks["rows"])
        self.advice.value = theme.lines(domains["advice"]) if domains["advice"] else ""
        self.picture("steps", rungs=lived["ladder"])
        for name, rows in (("rungs", "ladder"), ("starts", "starts"), ("elastic", "elastic")):
            getattr(self, name).show(lived[rows])
        self.half.value = theme.lines(lived["lines"])
        harmless = theme.escape("; ".join(risks["harmless"]))
        tried = f"<p class='sd-dim'>Tried and found harmless here: {harmless}.</p>"
        self.harmless.value = tried if harmless else ""

    def cell_text(self, key: str, row) -> str:
        most = row.get("at_most_per_run")
        if key.endswith("events_per_run") and row["events_per_run"] is None and most is not None:
            return f"≤ {show(key, most)}"  # nothing is published
        return super().cell_text(key, row)


def numbers(section: str, values: Mapping) -> list[list[dict]]:
    """Rows of the plain numbers and words of a mapping, by the labels of the table of
    quantities."""
    rows = []
    for name, value in values.items():
        if value is None or isinstance(value, (Mapping, list, tuple)):
            continue
        key, number = f"{section}.{name}", isinstance(value, (int, float))
        about = formula(key)
        what = cell(label_or(key, name.replace("_", " ")), hint=about)
        opens = key if about and number else ""
        rows.append([what, cell(show_or(key, value), value if number else None, key=opens)])
    return rows


def formula(key: str) -> str:
    try:
        return quantity(key).formula
    except KeyError:
        return ""
