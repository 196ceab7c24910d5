"""What the numbers rest on: the nearest published runs, the band, and everything that was
assumed."""

from scantling.base.quantities.table import band_in

from ...charts.evidence import evidence
from ...words import named, show
from .base import Panel


class Evidence(Panel):
    title = "Evidence"

    figures = {"chart": evidence}

    def draw(self):
        given = self.given
        self.text.value = (
            f"<p>MFU <b>{show('mfu', given['mfu'])}</b>, band {band_in(given, 'mfu')} "
            f"({given['band_tier']}): four of five such runs lie inside.</p>"
        )
        self.picture("chart")
        runs = given["nearest_runs"]
        self.runs.fill([self._run(run) for run in runs], runs)
        self.assumed.rows = [
            [str(row["field"]), _value(row), str(row["why"])] for row in given["assumed"]
        ]
        self.avoid.show(given["avoid"])

    def _run(self, run) -> list[dict]:
        cells = dict(zip(self.runs.names, self.runs.cells(run)))
        cells["model"]["hint"] = run["id"]
        if run.get("locator"):
            cells["source"]["hint"] = run["locator"]
        return [*cells.values()]


def _value(row) -> str:
    return "—" if row["value"] is None else named(row["field"].rsplit(".", 1)[-1], row["value"])
