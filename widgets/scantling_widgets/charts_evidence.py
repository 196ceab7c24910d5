"""The prediction beside what was published: MFU of this design with its band, and of the runs most
like it."""

from __future__ import annotations

from .figures import Figure, named
from .grammar import alt
from .palette import ACCENT, SECOND
from .words import PERCENT, band, share, show

_HERE = "this design"


def _evidence_data(given) -> dict:
    runs = given.get("nearest_runs") or []
    if given.get("mfu") is None:
        return {"runs": {}}
    names = [f"{r['model']}, {r['devices']:,} × {r['accelerator']}" for r in runs]
    names = [
        f"{r['devices']:,} × {r['accelerator']}: {r['id']}" if names.count(n) > 1 else n
        for n, r in zip(names, runs)
    ]
    low, high = given.get("mfu_low"), given.get("mfu_high")
    return {
        "here": {
            "run": [_HERE],
            "mfu": [given["mfu"]],
            "low": [low],
            "high": [high],
            "text": [show("mfu", given["mfu"])],
            "says": [f"predicted {show('mfu', given['mfu'])}, band {band('mfu', low, high)}"],
        },
        "runs": {
            "run": names,
            "mfu": [r["mfu"] for r in runs],
            "text": [share(r["mfu"]) for r in runs],
            "says": [
                (
                    f"{r['id']}: {share(r['mfu'])}; {r['plan']}; differs in "
                    f"{r.get('differs') or 'nothing that is known'}; {r['source']}"
                )
                for r in runs
            ],
        },
        "order": {"run": [_HERE, *names]},
    }


def _evidence_words(given) -> str:
    data = _evidence_data(given)
    return (
        "MFU of this design and of the nearest published runs. "
        + "; ".join([*data.get("here", {}).get("says", []), *data["runs"].get("says", [])])
        + "."
    )


def _evidence_chart(legend: bool = False) -> alt.Chart:
    y = alt.Y(
        "run:N",
        title=None,
        sort=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=330),
        scale=alt.Scale(padding=0.4),
    )
    x = alt.X(
        "mfu:Q",
        title="MFU",
        scale=alt.Scale(zero=False, nice=False, padding=44),
        axis=alt.Axis(labelExpr=PERCENT, tickCount=7),
    )
    tip = alt.Tooltip("says:N", title=" ")
    order = alt.Chart(named("order")).mark_point(opacity=0).encode(y=y)
    here, runs = alt.Chart(named("here")), alt.Chart(named("runs"))
    ground = here.mark_rect(fillOpacity=0.12, color=ACCENT).encode(x=alt.X("low:Q"), x2="high:Q")
    line = here.mark_rule(strokeWidth=3, color=ACCENT).encode(
        y=y, x=alt.X("low:Q"), x2="high:Q", tooltip=tip
    )
    points = [
        base.mark_point(filled=True, size=95, shape=shape, color=colour, opacity=1).encode(
            y=y, x=x, tooltip=tip
        )
        for base, shape, colour in ((here, "diamond", ACCENT), (runs, "circle", SECOND))
    ]
    texts = [
        base.mark_text(align="left", dx=9, dy=-8, fontSize=11, style="ink-text").encode(
            y=y, x=x, text="text:N"
        )
        for base in (here, runs)
    ]
    return alt.layer(order, ground, line, *points, *texts)


evidence = Figure(
    "evidence",
    "MFU predicted, and published by the nearest runs",
    _evidence_chart,
    _evidence_data,
    _evidence_words,
    height=190,
    empty="Nothing is predicted for this design.",
)
