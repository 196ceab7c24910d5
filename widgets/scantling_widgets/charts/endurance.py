"""Where wall time goes that is not training: the shares that failures and saves take, goodput over
the checkpoint interval, waiting for spares, and the recovery ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scantling.advise.explanation import label_or
from scantling.base.show import seconds, share
from scantling.verdict.result import figure

from .altair_loader import alt
from .figure import Data, Facts, Figure, Row, saying
from .palette import ACCENT, SECOND
from .theme import NARROW, NARROW_LINES, PERCENT, layered, over, tip

SEEN = 1e-7  # share of the wall time below which waiting is not drawn


# ---------------------------------------------------------------- what is lost
def shares(figures: Facts) -> list[Row]:
    """Name and share of each part of wall time that is not productive, largest first, those that
    are nil left out."""
    badput = figures["endurance"]["badput"] if "endurance" in figures else {}
    rows = [
        {
            "name": label_or(f"endurance.badput.{key}", key.replace("_", " ").capitalize()),
            "share": value,
        }
        for key, value in badput.items()
        if value and value > 0
    ]
    return sorted(rows, key=lambda row: -float(row["share"]))


def _badput_rows(figures: Facts) -> Data:
    lost = shares(figures)
    return {
        "lost": [
            {
                "what": row["name"],
                "room": 1.35 * lost[0]["share"],  # for the figure beside the longest bar
                "share": row["share"],
                "text": share(row["share"]),
                "says": f"{row['name']}: {share(row['share'])} of wall time",
            }
            for row in lost
        ]
    }


def _draw_badput(legend: bool) -> alt.LayerChart:
    y = alt.Y(
        "what:N",
        title=None,
        axis=alt.Axis(domain=False, minExtent=105, ticks=False),
        scale=alt.Scale(type="band", paddingInner=0.12),
        sort="-x",
    )
    x = alt.X(
        "share:Q",
        title="share of wall time",
        axis=alt.Axis(labelExpr=PERCENT, labelOverlap="greedy", labelSeparation=6, tickCount=4),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    lost = over("lost")
    return layered(
        lost.mark_point(opacity=0).encode(alt.X("room:Q"), y, tip()),
        lost.mark_bar(color="#cc79a7", stroke=None).encode(x, y, tip()),
        lost.mark_text(align="left", dx=4, fontSize=11, style="ink-text").encode(
            x, y, alt.Text("text:N"), tip()
        ),
    )


badput = Figure(
    name="badput",
    title="Where the rest of the wall time goes",
    draw=_draw_badput,
    rows=_badput_rows,
    words=saying(_badput_rows, "Share of wall time that is not training:", ["lost"]),
    height=190,
    empty="No failures and no saves: all of the time is training.",
)


# ---------------------------------------------------------------- goodput
def _curve(figures: Facts) -> tuple[list[float], list[float]]:
    """Intervals [s] and the goodput of each; nothing where none is worked out."""
    curve = figures["endurance"]["curve"] if "endurance" in figures else {}
    if not curve or not len(curve["goodput"]):
        return [], []
    return list(curve["interval_s"]), list(curve["goodput"])


def _goodput_rows(figures: Facts) -> Data:
    intervals, goodputs = _curve(figures)
    if not goodputs:
        return {"curve": []}
    most, best = max(zip(goodputs, intervals))
    apart = most - figures["goodput"] > 5e-4  # where they all but coincide, one mark says both
    interval, goodput = figures["checkpoint_interval_s"], figures["goodput"]
    also = "" if apart else ", the optimum"
    optimum = {"interval_s": best, "goodput": most, "says": f"optimum {seconds(best)}"}
    return {
        "curve": {"interval_s": intervals, "goodput": goodputs},
        "chosen": [
            {
                "interval_s": interval,
                "goodput": goodput,
                "says": f"{seconds(interval)}: {share(goodput)}{also}",
            }
        ],
        "optimum": [optimum] if apart else [],
    }


def _goodput_words(figures: Facts) -> str:
    intervals, goodputs = _curve(figures)
    if not goodputs:
        return "No goodput curve."
    first, last = (f"{share(goodputs[i])} at {seconds(intervals[i])}" for i in (0, -1))
    return (
        f"Goodput against the checkpoint interval: {first}, {last}; the design saves every "
        f"{seconds(figures['checkpoint_interval_s'])} and has {share(figures['goodput'])}."
    )


def _draw_goodput(legend: bool) -> alt.LayerChart:
    minute, hour = 60, 3600
    x = alt.X(
        "interval_s:Q",
        title="time between saves",
        axis=alt.Axis(
            grid=False,
            labelExpr="datum.value < 90 ? format(datum.value, '~r') + ' s' : "
            "datum.value < 5400 ? format(datum.value / 60, '.2~r') + ' min' : "
            "format(datum.value / 3600, '.2~r') + ' h'",
            labelOverlap="greedy",
            labelSeparation=10,
            values=[
                *(1, 2, 5, 10, 20, 30),
                *(n * minute for n in (1, 2, 5, 10, 20, 30)),
                *(n * hour for n in (1, 2, 4, 8, 24)),
            ],
        ),
        scale=alt.Scale(type="log", nice=False),
    )
    y = alt.Y(
        "goodput:Q",
        title="goodput",
        axis=alt.Axis(labelExpr=PERCENT, tickCount=5),
        scale=alt.Scale(zero=False),
    )

    def label(name: str, dy: int, **weight: Any) -> alt.Chart:
        chart: alt.Chart = (
            over(name)
            .mark_text(
                align="center", baseline="bottom", dy=dy, fontSize=11, style="ink-text", **weight
            )
            .encode(x, y, alt.Text("says:N"))
        )
        return chart

    return layered(
        over("curve").mark_line(color=ACCENT, strokeWidth=2.2).encode(x, y),
        over("chosen").mark_point(color=ACCENT, filled=True, opacity=1, size=70).encode(x, y),
        over("optimum").mark_point(color=SECOND, opacity=1, size=80, strokeWidth=2).encode(x, y),
        label("optimum", -8),
        label("chosen", -9, fontWeight="bold"),
    )


goodput = Figure(
    name="goodput",
    title="Goodput against the checkpoint interval",
    draw=_draw_goodput,
    rows=_goodput_rows,
    words=_goodput_words,
    height=150,
)


# ---------------------------------------------------------------- spares
def _spares_rows(figures: Facts, waiting: Mapping[str, Any] | None = None) -> Data:
    """`waiting`: that of `scantling.endure.spares.waiting`."""
    if not waiting:
        return {"points": []}
    points = [
        {
            "spares": n,
            "repair": f"repairs of {seconds(repair_s)}",
            "shortage": short,
            "says": f"{n} spare nodes, repairs of {seconds(repair_s)}: waiting {share(short)} of "
            f"the wall time; an eviction finds none with {share(none)}",
        }
        for repair_s, shortages, chances in zip(
            waiting["repair_s"], waiting["shortage"], waiting["wait_chance"]
        )
        for n, short, none in zip(waiting["spares"], shortages, chances)
        if short > SEEN or n == 0
    ]
    shortage = {point["spares"]: point["shortage"] for point in points}  # of the slowest repairs
    last = {point["repair"]: point for point in points}
    marked: dict[int, list[str]] = {}
    for spares, name in (
        (figure(figures, "spares"), "chosen"),
        (figure(figures, "spares_recommended"), "cheapest"),
    ):
        if spares is not None and spares in shortage:
            marked.setdefault(int(spares), []).append(name)
    return {
        "points": points,
        "marks": [
            {
                "spares": n,
                "shortage": shortage[n],
                "side": "right" if 2 * n >= max(shortage) else "left",
                "says": f"{n}: " + ",\n".join(names),
            }
            for n, names in marked.items()
        ],
        "names": [
            {"spares": point["spares"], "shortage": point["shortage"], "says": repair}
            for repair, point in last.items()
            if len(last) > 1
        ],
    }


def _draw_spares(legend: bool) -> alt.LayerChart:
    x = alt.X(
        "spares:Q",
        title="spare nodes",
        axis=alt.Axis(
            grid=False,
            labelExpr="datum.value % 1 ? '' : format(datum.value, 'd')",
            tickCount=8,
            tickMinStep=1,
        ),
    )
    y = alt.Y(
        "shortage:Q",
        title="wall time waiting",
        axis=alt.Axis(labelExpr=PERCENT, values=[1, 0.01, 0.0001, 1.0e-06]),
        scale=alt.Scale(type="log"),
    )

    def label(side: str, align: Any, baseline: Any, dx: int, dy: int) -> alt.Chart:
        chart: alt.Chart = (
            over("marks")
            .transform_filter(f"datum.side == '{side}'")
            .mark_text(
                align=align,
                baseline=baseline,
                dx=dx,
                dy=dy,
                fontSize=11,
                fontWeight="bold",
                lineBreak="\n",
                style="ink-text",
            )
            .encode(x, y, alt.Text("says:N"))
        )
        return chart

    points, marks = over("points"), over("marks")
    names = over("names").mark_text(align="right", dx=-22, dy=-3, fontSize=11, style="ink-text")
    return layered(
        points.mark_line(color=ACCENT, strokeWidth=1.6).encode(x, y, tip(), alt.Detail("repair:N")),
        points.mark_point(color=ACCENT, filled=True, opacity=1, size=26).encode(x, y, tip()),
        names.encode(x, y, alt.Text("says:N")),
        marks.mark_point(color=SECOND, opacity=1, size=150, strokeWidth=2).encode(x, y),
        label("right", "right", "top", -8, 4),
        label("left", "left", "bottom", 9, -4),
    )


spares = Figure(
    name="spares",
    title="Waiting for a node, by spares",
    draw=_draw_spares,
    rows=_spares_rows,
    words=saying(
        _spares_rows,
        "Share of the wall time spent waiting for a repaired node, by spare nodes.",
        ["points"],
    ),
    height=190,
    empty="No failures that take a node out.",
)


# ---------------------------------------------------------------- the ladder
# the sizes at which a ladder is worked out, by the column that holds them
LADDER_SIZES = {"own": "this job", "at_100k": "100,000", "at_300k": "300,000", "at_1m": "1,000,000"}


def _ladder_rows(figures: Facts, rungs: Sequence[Mapping[str, Any]] = ()) -> Data:
    """`rungs`: the ladder of the blueprint's part `recovery`."""
    rows = [
        {
            "measure": rung["measure"],
            "size": size,
            "goodput": rung[key],
            "says": f"{size}, {rung['measure']}: goodput {share(rung[key])}",
        }
        for key, size in LADDER_SIZES.items()
        for rung in rungs
    ]
    return {"rungs": rows, "half": [{"at": 0.5}] if rows else []}


def _draw_ladder(legend: bool) -> alt.LayerChart:
    y = alt.Y(
        "measure:N",
        title=None,
        axis=alt.Axis(domain=False, labelExpr=NARROW_LINES, labelLimit=230, ticks=False),
        scale=alt.Scale(type="point", padding=0.4),
        sort=None,
    )
    x = alt.X(
        "goodput:Q",
        title="goodput up to this rung",
        axis=alt.Axis(labelExpr=PERCENT, values=[0, 0.25, 0.5, 0.75, 1]),
        scale=alt.Scale(domain=[0, 1]),
    )
    colour = alt.Color(
        "size:N",
        title=None,
        legend=alt.Legend(columns=alt.ExprRef(f"{NARROW} ? 2 : 4"), orient="top"),
        scale=alt.Scale(range=[ACCENT, "#009e73", SECOND, "#cc79a7"]),
        sort=None,
    )
    shape = alt.Shape(
        "size:N",
        title=None,
        legend=None,
        scale=alt.Scale(range=["circle", "square", "triangle-up", "diamond"]),
        sort=None,
    )
    rungs = over("rungs")
    return layered(
        rungs.mark_line(strokeWidth=1.4).encode(y, x, alt.Order("goodput:Q"), colour),
        rungs.mark_point(filled=True, opacity=1, size=50).encode(y, x, colour, shape, tip()),
        over("half").mark_rule(strokeDash=[4, 3], style="soft").encode(alt.X("at:Q")),
    )


ladder = Figure(
    name="ladder",
    title="The recovery ladder, on this design's own numbers",
    draw=_draw_ladder,
    rows=_ladder_rows,
    words=saying(_ladder_rows, "Goodput with each measure and all before it:", ["rungs"]),
    height=330,  # two lines a name on a narrow page
    empty="Too few devices for a ladder.",
)
