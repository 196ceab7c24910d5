"""Where wall time goes that is not training: the shares that failures and saves take."""

from __future__ import annotations

from .figures import Figure, named
from .grammar import alt
from .palette import ACCENT, SECOND
from .words import PERCENT, label_or, share


def shares(given) -> dict:
    """Shares of wall time that are not productive, largest first, those that are nil left out."""
    badput = (given.get("endurance") or {}).get("badput") or {}
    return dict(
        sorted(((k, v) for k, v in badput.items() if v and v > 0), key=lambda item: -item[1])
    )


def _badput_data(given) -> dict:
    lost = shares(given)
    names = [label_or(f"endurance.badput.{key}", key) for key in lost]
    room = [1.35 * max(lost.values(), default=0.0)] * len(
        lost
    )  # for the figure beside the longest bar
    return {
        "lost": {
            "what": names,
            "room": room,
            "share": list(lost.values()),
            "text": [share(v) for v in lost.values()],
            "says": [f"{n}: {share(v)} of wall time" for n, v in zip(names, lost.values())],
        }
    }


def _badput_words(given) -> str:
    return (
        "Share of wall time that is not training: "
        + "; ".join(_badput_data(given)["lost"]["says"])
        + "."
    )


def _badput_chart(legend: bool = False) -> alt.Chart:
    y = alt.Y(
        "what:N",
        title=None,
        sort="-x",
        axis=alt.Axis(ticks=False, domain=False, minExtent=105),
        scale=alt.Scale(type="band", paddingInner=0.12),
    )
    x = alt.X(
        "share:Q",
        title="share of wall time",
        axis=alt.Axis(labelExpr=PERCENT, tickCount=4, labelOverlap="greedy", labelSeparation=6),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    base = alt.Chart(named("lost")).encode(y=y, x=x, tooltip=alt.Tooltip("says:N", title=" "))
    return alt.layer(
        base.mark_point(opacity=0).encode(x="room:Q"),
        base.mark_bar(color="#cc79a7", stroke=None),
        base.mark_text(align="left", dx=4, fontSize=11, style="ink-text").encode(text="text:N"),
    )


badput = Figure(
    "badput",
    "Where the rest of the wall time goes",
    _badput_chart,
    _badput_data,
    _badput_words,
    height=190,
    empty="No failures and no saves: all of the time is training.",
)


# ---------------------------------------------------------------- spares
def _spares_data(given, waiting=None) -> dict:
    """`waiting`: that of `scantling.endure.spares.waiting`."""
    if not waiting:
        return {"points": {}}
    chosen, asked = given.get("spares"), given.get("spares_recommended")
    kept = [i for i, v in enumerate(waiting["shortage"]) if v > 1e-7] or [0]
    points = {
        "spares": [waiting["spares"][i] for i in kept],
        "shortage": [waiting["shortage"][i] for i in kept],
        "says": [
            (
                f"{waiting['spares'][i]} spare nodes: waiting "
                f"{share(waiting['shortage'][i])} of the wall time; an eviction finds none "
                f"with {share(waiting['wait_chance'][i])}"
            )
            for i in kept
        ],
    }
    marks = [
        (n, word)
        for n, word in ((chosen, "chosen"), (asked, "cheapest"))
        if n is not None and n in points["spares"]
    ]
    if len(marks) == 2 and chosen == asked:
        marks = [(chosen, "chosen,\ncheapest")]
    return {
        "points": points,
        "marks": {
            "spares": [n for n, _ in marks],
            "shortage": [points["shortage"][points["spares"].index(n)] for n, _ in marks],
            "side": ["right" if 2 * n >= max(points["spares"]) else "left" for n, _ in marks],
            "says": [f"{n}: {word}" for n, word in marks],
        },
    }


def _spares_words(given, waiting=None) -> str:
    return (
        "Share of the wall time spent waiting for a repaired node, by spare nodes. "
        + "; ".join(_spares_data(given, waiting)["points"].get("says", []))
        + "."
    )


def _spares_chart(legend: bool = False) -> alt.Chart:
    x = alt.X(
        "spares:Q",
        title="spare nodes",
        axis=alt.Axis(
            tickMinStep=1,
            tickCount=8,
            grid=False,
            labelExpr="datum.value % 1 ? '' : format(datum.value, 'd')",
        ),
    )
    y = alt.Y(
        "shortage:Q",
        title="wall time waiting",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(labelExpr=PERCENT, values=[1.0, 1e-2, 1e-4, 1e-6]),
    )
    base = alt.Chart(named("points")).encode(x=x, y=y, tooltip=alt.Tooltip("says:N", title=" "))
    marks = alt.Chart(named("marks")).encode(x=x, y=y)
    return alt.layer(
        base.mark_line(strokeWidth=1.6, color=ACCENT),
        base.mark_point(filled=True, size=26, color=ACCENT, opacity=1),
        marks.mark_point(size=150, strokeWidth=2, color=SECOND, opacity=1),
        *(
            marks.transform_filter(f"datum.side == '{align}'")
            .mark_text(
                align=align,
                lineBreak="\n",
                baseline=base_,
                dx=dx,
                dy=dy,
                fontSize=11,
                fontWeight="bold",
                style="ink-text",
            )
            .encode(text="says:N")
            for align, base_, dx, dy in (("right", "top", -8, 4), ("left", "bottom", 9, -4))
        ),
    )


spares = Figure(
    "spares",
    "Waiting for a node, by spares",
    _spares_chart,
    _spares_data,
    _spares_words,
    height=190,
    empty="No failures that take a node out.",
)
