"""The prediction beside what was measured here and what was published: MFU of this design with its
band, of the steps of its calibration, and of the runs most like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scantling.base.records import at
from scantling.base.show import seconds, share
from scantling.verdict.result import band_of, figure

from .altair_loader import alt
from .figure import Data, Facts, Figure, Row, saying
from .palette import ACCENT, MEASURED, SECOND
from .theme import NARROW_LINES, PERCENT, layered, over, tip

_HERE = "this design"


def _evidence_rows(figures: Facts) -> Data:
    if figure(figures, "mfu_shown") is None:
        return {"runs": []}
    runs = figures.get("nearest_runs") or []
    names = _names(runs)
    measured = [_measured(p) for p in at(figures, "measured_here.steps.points") or ()]
    return {
        "seen": measured,
        "here": [
            {
                "run": _HERE,
                "mfu": figures["mfu_shown"],
                "low": figures["mfu_shown_low"],
                "high": figures["mfu_shown_high"],
                "text": share(figures["mfu_shown"]),
                "says": f"predicted {share(figures['mfu_shown'])}, band "
                f"{band_of(figures, 'mfu_shown') or 'none'}",
            }
        ],
        "runs": [_published(run, name) for run, name in zip(runs, names)],
        "order": [
            {"run": name} for name in (_HERE, *dict.fromkeys(r["run"] for r in measured), *names)
        ],
    }


def _names(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What each published run is called; with its plan, or else its id, in a second line where two
    would be called the same."""
    plain = [f"{r['model']}, {r['devices']:,} × {r['accelerator']}" for r in runs]
    with_plan = [f"{name}\n{r['plan']}" for name, r in zip(plain, runs)]
    with_id = [f"{name}\n{r['id']}" for name, r in zip(plain, runs)]
    columns = (plain, with_plan, with_id)
    return [
        next((name for name, every in zip(names, columns) if every.count(name) == 1), names[-1])
        for names in zip(*columns)
    ]


def _published(run: Mapping[str, Any], name: str) -> Row:
    differs = run.get("differs") or "nothing that is known"
    return {
        "run": name,
        "mfu": run["mfu_shown"],
        "text": share(run["mfu_shown"]),
        "says": f"{run['id']}: {share(run['mfu_shown'])}; {run['plan']}; differences: {differs}; "
        f"{run['source']}",
    }


def _measured(point: Mapping[str, Any]) -> Row:
    devices, mfu = f"{point['devices']:,} devices", share(point["mfu_shown"])
    return {
        "run": f"measured here, {devices}",
        "mfu": point["mfu_shown"],
        "text": mfu,
        "says": f"measured here on {devices}: MFU {mfu}, {seconds(point['step_s'])} a step",
    }


def _draw_evidence(legend: bool) -> alt.LayerChart:
    y = alt.Y(
        "run:N",
        title=None,
        axis=alt.Axis(domain=False, labelExpr=NARROW_LINES, labelLimit=330, ticks=False),
        scale=alt.Scale(padding=0.4),
        sort=None,
    )
    low, high = alt.X("low:Q"), alt.X2("high")
    x = alt.X(
        "mfu:Q",
        title="MFU",
        axis=alt.Axis(labelExpr=PERCENT, tickCount=7),
        scale=alt.Scale(nice=False, padding=alt.ExprRef("min(50, width / 4.4)"), zero=False),
    )

    def points(name: str, colour: str, shape: str, size: int) -> alt.Chart:
        mark: alt.Chart = over(name).mark_point(
            color=colour, filled=True, opacity=1, shape=shape, size=size
        )
        return mark.encode(x, y, tip())

    def label(name: str) -> alt.Chart:
        mark: alt.Chart = over(name).mark_text(
            align="left", dx=9, dy=-8, fontSize=11, style="ink-text"
        )
        return mark.encode(x, y, alt.Text("text:N"))

    here = over("here")
    return layered(
        over("order").mark_point(opacity=0).encode(y),
        here.mark_rect(color=ACCENT, fillOpacity=0.12).encode(low, high),
        here.mark_rule(color=ACCENT, strokeWidth=3).encode(low, high, y, tip()),
        points("here", ACCENT, "diamond", 95),
        points("runs", SECOND, "circle", 95),
        points("seen", MEASURED, "triangle-up", 110),
        label("here"),
        label("seen"),
        label("runs"),
    )


evidence = Figure(
    name="evidence",
    title="MFU predicted, and published by the nearest runs",
    draw=_draw_evidence,
    rows=_evidence_rows,
    words=saying(
        _evidence_rows,
        "MFU of this design and of the nearest published runs.",
        ["here", "seen", "runs"],
    ),
    height=190,
    empty="Nothing is predicted for this design.",
)
