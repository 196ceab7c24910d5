"""Pictures that only the report has: goodput over the checkpoint interval, communication hidden and
exposed, share of wall time lost."""

from __future__ import annotations

import altair as alt

from ..charts import memory, step
from ..figures import Figure, colours, named, stacked
from ..palette import ACCENT, MEMORY, SECOND, STEP
from ..words import PERCENT, at, axis, label, show

_SECONDS = (
    "datum.value < 90 ? format(datum.value, '~r') + ' s' : datum.value < 5400 ? "
    "format(datum.value / 60, '.2~r') + ' min' : format(datum.value / 3600, '.2~r') + ' h'"
)
_TICKS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400]
_MORE_IS_BETTER = ("mfu", "goodput", "tokens_per_s_per_device")


def _curve(given) -> dict:
    return (given.get("endurance") or {}).get("curve") or {"interval_s": [], "goodput": []}


def _goodput_data(given) -> dict:
    curve = _curve(given)
    chosen = {
        "interval_s": [given["checkpoint_interval_s"]],
        "goodput": [given["goodput"]],
        "says": [
            (
                f"{show('checkpoint_interval_s', given['checkpoint_interval_s'])}: "
                f"{show('goodput', given['goodput'])}"
            )
        ],
    }
    best = max(zip(curve["goodput"], curve["interval_s"]), default=(0.0, 0.0))
    apart = best[0] - given["goodput"] > 5e-4  # where they all but coincide, one mark says both
    if len(curve["interval_s"]) and not apart:
        chosen["says"][0] += ", the optimum"
    optimum = {
        "interval_s": [best[1]] * apart,
        "goodput": [best[0]] * apart,
        "says": [f"optimum {show('checkpoint_interval_s', best[1])}"] * apart,
    }
    return {
        "curve": {"interval_s": list(curve["interval_s"]), "goodput": list(curve["goodput"])},
        "chosen": chosen if len(curve["interval_s"]) else {},
        "optimum": optimum,
    }


def _goodput_words(given) -> str:
    curve = _curve(given)
    if not len(curve["interval_s"]):
        return "No goodput curve."
    ends = [
        (
            f"{show('goodput', curve['goodput'][i])} at "
            f"{show('checkpoint_interval_s', curve['interval_s'][i])}"
        )
        for i in (0, -1)
    ]
    return (
        f"Goodput against the checkpoint interval: {ends[0]}, {ends[1]}; the design saves every "
        f"{show('checkpoint_interval_s', given['checkpoint_interval_s'])} and has "
        f"{show('goodput', given['goodput'])}."
    )


def _goodput_chart(legend: bool = False) -> alt.Chart:
    x = alt.X(
        "interval_s:Q",
        title="time between saves",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(
            labelExpr=_SECONDS, values=_TICKS, grid=False, labelOverlap="greedy", labelSeparation=10
        ),
    )
    y = alt.Y(
        "goodput:Q",
        title="goodput",
        scale=alt.Scale(zero=False),
        axis=alt.Axis(labelExpr=PERCENT, tickCount=5),
    )
    line = alt.Chart(named("curve")).mark_line(color=ACCENT, strokeWidth=2.2).encode(x=x, y=y)
    point = (
        alt.Chart(named("chosen"))
        .mark_point(filled=True, size=70, color=ACCENT, opacity=1)
        .encode(x=x, y=y)
    )
    label = (
        alt.Chart(named("chosen"))
        .mark_text(
            align="center",
            baseline="bottom",
            dy=-9,
            fontSize=11,
            fontWeight="bold",
            style="ink-text",
        )
        .encode(x=x, y=y, text="says:N")
    )
    other = alt.Chart(named("optimum")).encode(x=x, y=y)
    best = [
        other.mark_point(size=80, color=SECOND, opacity=1, strokeWidth=2),
        other.mark_text(
            align="center", baseline="bottom", dy=-8, fontSize=11, style="ink-text"
        ).encode(text="says:N"),
    ]
    return alt.layer(line, point, *best, label)


goodput = Figure(
    "goodput",
    "Goodput against the checkpoint interval",
    _goodput_chart,
    _goodput_data,
    _goodput_words,
    height=150,
)


def _traffic_data(given) -> dict:
    out = {"axis": [], "kind": [], "start": [], "end": [], "says": []}
    hidden = given.get("hidden_s") or {}
    for way in ("tp", "cp", "ep", "dp", "pp"):
        shown, under = given["step_breakdown_s"].get(way) or 0, hidden.get(way) or 0
        for kind, start, end in (("exposed", 0, shown), ("hidden", shown, shown + under)):
            if end > start:
                for key, value in zip(
                    out, (way.upper(), kind, start, end, show("step_s", end - start))
                ):
                    out[key].append(value)
    return {"traffic": out}


def _traffic_words(given) -> str:
    hidden = given.get("hidden_s") or {}
    parts = [
        (
            f"{way.upper()} {show('step_s', given['step_breakdown_s'].get(way) or 0)} "
            f"exposed, {show('step_s', hidden.get(way) or 0)} hidden"
        )
        for way in ("tp", "cp", "ep", "dp", "pp")
        if given["step_breakdown_s"].get(way) or hidden.get(way)
    ]
    return (
        "Communication of one step by axis: " + "; ".join(parts) + "."
        if parts
        else "No communication."
    )


def _traffic_chart(legend: bool = False) -> alt.Chart:
    y = alt.Y("axis:N", title=None, sort=None, axis=alt.Axis(ticks=False, domain=False))
    x = alt.X(
        "start:Q",
        title="seconds of one step on the wire",
        scale=alt.Scale(nice=False, domainMin=0),
        axis=alt.Axis(tickCount=6),
    )
    key = alt.Legend(orient="bottom", title=None) if legend else None
    colour = alt.Color(
        "kind:N",
        sort=None,
        legend=key,
        scale=alt.Scale(domain=["exposed", "hidden"], range=[STEP["tp"][1], "#e6c9ad"]),
    )
    return (
        alt.Chart(named("traffic")).mark_bar(stroke=None).encode(x=x, x2="end:Q", y=y, color=colour)
    )


traffic = Figure(
    "communication",
    "Communication by axis: exposed, and hidden under compute",
    _traffic_chart,
    _traffic_data,
    _traffic_words,
    height=110,
)


def _tornado_data(given, rows=(), key="days") -> dict:
    out = {"what": [], "from": [], "to": [], "side": []}
    now = given.get(key)
    for row in rows[:12]:
        for value in (row["low"], row["high"]):
            if value is not None:
                for column, cell in zip(
                    out,
                    (
                        row["what"],
                        now,
                        value,
                        "better" if (value > now) == (key in _MORE_IS_BETTER) else "worse",
                    ),
                ):
                    out[column].append(cell)
    return {"bars": out, "now": {"to": [now] if rows else []}}


def _tornado_words(given, rows=(), key="days") -> str:
    return (
        f"What moves {label(key)}, now {show(key, given.get(key))}: "
        + "; ".join(
            f"{row['what']}, {row[side + '_says']}: {show(key, row[side])}"
            for row in rows[:12]
            for side in ("low", "high")
            if row[side] is not None
        )
        + "."
    )


def _tornado_chart(legend: bool = False, key="days") -> alt.Chart:
    y = alt.Y(
        "what:N", title=None, sort=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=200)
    )
    x = alt.X(
        "from:Q",
        title=label(key),
        scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(tickCount=7, labelExpr=axis(key)[1]),
    )
    colour = alt.Color(
        "side:N",
        scale=alt.Scale(domain=["better", "worse"], range=[ACCENT, SECOND]),
        legend=alt.Legend(orient="bottom", title=None),
    )
    bars = alt.Chart(named("bars")).mark_bar(stroke=None).encode(x=x, x2="to:Q", y=y, color=colour)
    return alt.layer(
        bars, alt.Chart(named("now")).mark_rule(strokeWidth=1.5, style="ink").encode(x="to:Q")
    )


def tornado(key: str) -> Figure:
    """What moves one headline figure."""
    return Figure(
        "sensitivity",
        f"{label(key)} with one input changed at a time, the plan searched again where it is open",
        lambda legend=False: _tornado_chart(legend, key),
        _tornado_data,
        _tornado_words,
        height=alt.Step(19),
    )


def _parts(results, table, key) -> dict:
    """Stacked parts of one figure, a bar a design."""
    out = {"design": [], "part": [], "start": [], "end": []}
    for i, given in enumerate(results, 1):
        values = [given[key].get(part) or 0 for part in table]
        start, end = stacked(values)
        for (name, _), a, b in zip(table.values(), start.tolist(), end.tolist()):
            for column, value in zip(out, (f"{i}  {given['name'][:44]}", name, a, b)):
                out[column].append(value)
    return {"parts": out}


def _parts_chart(table, title, ticks):
    def build(legend: bool = False) -> alt.Chart:
        y = alt.Y(
            "design:N",
            title=None,
            sort=None,
            axis=alt.Axis(ticks=False, domain=False, labelLimit=330),
            scale=alt.Scale(paddingInner=0.3),
        )
        x = alt.X(
            "start:Q",
            title=title,
            scale=alt.Scale(nice=False, domainMin=0),
            axis=alt.Axis(labelExpr=ticks, tickCount=7),
        )
        key = alt.Legend(orient="bottom", columns=5, title=None)
        return (
            alt.Chart(named("parts"))
            .mark_bar(stroke=None)
            .encode(
                x=x,
                x2="end:Q",
                y=y,
                color=alt.Color("part:N", scale=colours(table), sort=None, legend=key),
            )
        )

    return build


def _parts_words(what, key):
    def words(given, results=()) -> str:
        return (
            f"{what}: " + "; ".join(f"{r['name']} {show(key, at(r, key))}" for r in results) + "."
        )

    return words


memories = Figure(
    "memories",
    "Memory of the fullest device",
    _parts_chart(
        MEMORY, f"{axis('memory_bytes.total')[0]} per device", axis("memory_bytes.total")[1]
    ),
    lambda given, results=(): _parts(results, MEMORY, "memory_bytes"),
    _parts_words("Memory of the fullest device", "memory_bytes.total"),
    height=alt.Step(30),
)
steps = Figure(
    "steps",
    "One training step",
    _parts_chart(STEP, "seconds of one step", "format(datum.value, ',~r')"),
    lambda given, results=(): _parts(results, STEP, "step_breakdown_s"),
    _parts_words("Time of one step", "step_s"),
    height=alt.Step(30),
)

SIDE_BY_SIDE = (memories, steps)
FIGURES = {
    "memory": memory,
    "step": step,
    "goodput": goodput,
    "communication": traffic,
    "sensitivity": tornado("days"),
}
ORDER = (
    "verdict",
    "brief",
    "cost",
    "specialist",  # the first page, which ends before the plan
    "plan",
    "memory",
    "memory-picture",
    "step",
    "step-picture",
    "communication",
    "communication-picture",
    "recovery",
    "goodput-picture",
    "domains",
    "site",
    "sensitivity",
    "sensitivity-picture",
    "risks",
    "avoid",
    "evidence",
    "candidates",
    "assumptions",
    "quantities",
    "planes",
    "fabrics",
    "stores",
    "rollout",
    "evolution",
)
