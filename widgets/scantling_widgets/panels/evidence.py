"""What the numbers rest on: the nearest published runs, the band, and everything that was
assumed."""

from __future__ import annotations

from .. import theme
from ..charts_evidence import evidence
from ..table import Table, cell
from ..words import band, label, named, show
from .base import Panel

_RUNS = ("model", "accelerator", "devices", "stack", "plan", "mfu", "differs", "source")
_NUMBERS = ("devices", "mfu")


class Evidence(Panel):
    title = "Evidence"

    def build(self):
        self.text = theme.text()
        self.runs = Table(
            "Nearest published runs",
            file_name="nearest-runs",
            explain=self.explain,
            empty="No published run is near this design.",
            columns=[
                {
                    "key": c,
                    "label": label(f"nearest_runs.{c}"),
                    "align": "" if c in _NUMBERS else "left",
                    "wrap": c in ("plan", "source", "differs"),
                }
                for c in _RUNS
            ],
        )
        self.assumed = Table(
            "Assumed, because the design does not say",
            file_name="assumed",
            empty="Nothing was assumed.",
            columns=[
                {"key": c, "label": label(f"assumed.{c}"), "align": "left", "wrap": True}
                for c in ("field", "value", "why")
            ],
        )
        self.avoid = Table(
            "What to avoid here",
            file_name="avoid",
            empty="Nothing to warn of.",
            columns=[
                {"key": c, "label": label(f"avoid.{c}"), "align": "left", "wrap": True}
                for c in ("what", "why", "cost")
            ],
        )
        self.chart = evidence.live()
        return [
            self.text,
            theme.card(evidence.title, self.chart),
            theme.card("Nearest published runs", self.runs),
            theme.card("What to avoid here", self.avoid),
            theme.card("Assumed, because the design does not say", self.assumed),
        ]

    def draw(self):
        given = self.session.now.given
        said = ""
        if given.get("mfu") is not None:
            said = (
                f"<p>MFU <b>{theme.escape(show('mfu', given['mfu']))}</b>, band "
                f"{theme.escape(band('mfu', given.get('mfu_low'), given.get('mfu_high')))}: "
                f""
                "four of five published runs lie inside.</p>"
            )
        self.text.value = said
        evidence.show(self.chart, given)
        runs = given.get("nearest_runs") or []
        self.runs.fill(
            [
                [
                    cell(
                        show(f"nearest_runs.{c}", r.get(c)),
                        r.get(c),
                        hint={"source": str(r.get("locator") or ""), "model": r["id"]}.get(c, ""),
                        key="nearest_runs.mfu" if c == "mfu" else "",
                    )
                    for c in _RUNS
                ]
                for r in runs
            ],
            runs,
        )
        self.assumed.rows = [
            [
                str(a["field"]),
                "—"
                if a["value"] is None
                else named(str(a["field"]).rsplit(".", 1)[-1], a["value"]),
                str(a["why"]),
            ]
            for a in given.get("assumed") or []
        ]
        self.avoid.rows = [
            [cell(str(a.get(c) if a.get(c) is not None else "—")) for c in ("what", "why", "cost")]
            for a in given.get("avoid") or []
        ]
