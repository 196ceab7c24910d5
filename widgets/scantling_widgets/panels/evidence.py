"""What the numbers rest on: the nearest published runs, the band, and everything that was
assumed."""

from __future__ import annotations

from .. import theme
from ..charts_evidence import evidence
from ..table import Table, cell, columns
from ..words import band, named, show
from .base import Panel

_RUNS = ("model", "accelerator", "devices", "stack", "plan", "mfu", "differs", "source")
_LEFT = [name for name in _RUNS if name not in ("devices", "mfu")]
_ASSUMED, _AVOID = ("field", "value", "why"), ("what", "why", "cost")


class Evidence(Panel):
    title = "Evidence"

    def build(self):
        self.text, self.chart = theme.text(), evidence.live()
        self.runs = Table(
            "Nearest published runs",
            file_name="nearest-runs",
            explain=self.explain,
            empty="No published run is near this design.",
            columns=columns(_RUNS, "nearest_runs.", left=_LEFT, wrap=("plan", "source", "differs")),
        )
        self.assumed = Table(
            "Assumed, because the design does not say",
            file_name="assumed",
            empty="Nothing was assumed.",
            columns=columns(_ASSUMED, "assumed.", left=_ASSUMED, wrap=_ASSUMED),
        )
        self.avoid = Table(
            "What to avoid here",
            file_name="avoid",
            empty="Nothing to warn of.",
            columns=columns(_AVOID, "avoid.", left=_AVOID, wrap=_AVOID),
        )
        tables = (self.runs, self.avoid, self.assumed)
        chart = theme.card(evidence.title, self.chart)
        return [self.text, chart, *(theme.card(table.label, table) for table in tables)]

    def draw(self):
        given = self.given
        self.text.value = ""
        if given.get("mfu") is not None:
            ends = band("mfu", given.get("mfu_low"), given.get("mfu_high"))
            self.text.value = (
                f"<p>MFU <b>{theme.escape(show('mfu', given['mfu']))}</b>, band "
                f"{theme.escape(ends)}: four of five published runs lie inside.</p>"
            )
        evidence.show(self.chart, given)
        runs = given.get("nearest_runs") or []
        self.runs.fill([[_cell(run, name) for name in _RUNS] for run in runs], runs)
        self.assumed.rows = [
            [str(row["field"]), _value(row), str(row["why"])] for row in given.get("assumed") or []
        ]
        self.avoid.rows = [
            [cell("—" if row.get(name) is None else str(row[name])) for name in _AVOID]
            for row in given.get("avoid") or []
        ]


def _cell(run, name: str) -> dict:
    key, hints = f"nearest_runs.{name}", {"source": run.get("locator"), "model": run["id"]}
    opens = key if name == "mfu" else ""
    return cell(show(key, run.get(name)), run.get(name), hint=hints.get(name) or "", key=opens)


def _value(row) -> str:
    return "—" if row["value"] is None else named(row["field"].rsplit(".", 1)[-1], row["value"])
