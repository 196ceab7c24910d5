"""Figures by names that are none: `mypy --strict` finds a fault in every line that says so, for an
ignore that none needs is a fault itself (`make lint`). Nothing here is run."""

from __future__ import annotations

from scantling import Assessment
from scantling.advise.computed_by import Source
from scantling.endure.failures import job_mtbf_s
from scantling.verdict.result import FigureKey, HeadlineKey, Result, figure
from scantling_widgets.charts.figure import Facts
from scantling_widgets.desk.headline import Card

# lists of figures: of a comparison, a summary, a report, the gallery
COMPARED: tuple[FigureKey, ...] = ("mtbf",)  # type: ignore[assignment]  # no such figure
SUMMED_UP: tuple[HeadlineKey, ...] = ("promise.days_p90",)  # type: ignore[assignment]  # not a headline's
TILES: dict[FigureKey, str] = {"memory_bytes.totl": "Memory"}  # type: ignore[dict-item]  # no such part
SOURCE = Source(job_mtbf_s, figures=("mtbf",))  # type: ignore[arg-type]  # no such figure
CARD = Card("mtbf", "MTBF", more_is_better=True)  # type: ignore[arg-type]  # no such figure


def read(a: Assessment, result: Result, facts: Facts) -> list[object]:
    """Figures that are read by a wrong name."""
    return [
        a.as_dict()["mtbf"],  # type: ignore[typeddict-item]  # no such figure
        result["mtbf"],  # type: ignore[typeddict-item]  # no such figure
        facts["endurance"]["mtbf"],  # type: ignore[typeddict-item]  # no such part
        result["missed"][0]["chances"],  # type: ignore[typeddict-item]  # no such column
        figure(result, "mtbf"),  # type: ignore[call-overload]  # no such figure
        a.figures("mtbf"),  # type: ignore[arg-type]  # no such figure
        a.plan["tensor"],  # type: ignore[typeddict-item]  # no such axis
        a.chosen.phase.pins["tensor"],  # type: ignore[typeddict-item]  # no such axis
    ]


def write(a: Assessment) -> Result:
    """A figure that is written by a wrong name."""
    return {"mtbf": a.mtbf_s}  # type: ignore[typeddict-unknown-key]  # no such figure
