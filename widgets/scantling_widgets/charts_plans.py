"""Pictures of alternatives: the best plans by memory and time, days against dollars over device
counts, what moves the result."""

from __future__ import annotations

from scantling.endure.cost import frontier as undominated

from .figures import Figure, named
from .grammar import alt
from .palette import ACCENT, OVER, SECOND
from .words import axis, label, show, titled

_BYTES, _STEP, _DAYS, _USD = "candidates.memory_bytes", "candidates.step_s", "days", "cost_usd"


def plan_words(plan) -> str:
    """A plan on one line, in the words of the field; ways of one are left out."""
    ways = [
        f"{name.upper()} {plan[name]}"
        for name in ("tp", "cp", "pp", "dp", "ep")
        if plan.get(name, 1) not in (None, 1)
    ]
    if plan.get("vpp") not in (None, 1):
        ways.append(f"VPP {plan['vpp']}")
    if plan.get("etp") not in (None, 1) and plan.get("ep", 1) != 1:
        ways.append(f"ETP {plan['etp']}")
    words = [plan.get("sharding"), plan.get("schedule") if (plan.get("pp") or 1) > 1 else None]
    if plan.get("recompute") not in (None, "none"):
        words.append(f"recompute {plan['recompute']}")
    return " · ".join(
        [*(ways or ["1 way"]), f"micro-batch {plan.get('micro_batch')}", *(w for w in words if w)]
    )


# ---------------------------------------------------------------- candidates
def _candidates_data(given) -> dict:
    plans = given.get("candidates") or []
    plans = plans if len(plans) > 1 else []  # one alone is no choice
    capacity = (given.get("memory_bytes") or {}).get("capacity")
    says = [plan_words(p) for p in plans]
    memory, step = [p["memory_bytes"] for p in plans], [p["step_s"] for p in plans]
    kind = ["best" if i == 0 else "other" for i in range(len(plans))]
    edge = undominated(memory, step).tolist() if plans else []
    return {
        "plans": {
            "memory": memory,
            "step": step,
            "kind": kind,
            "says": says,
            "pick": list(range(len(plans))),
        },
        "edge": {"memory": [memory[i] for i in edge], "step": [step[i] for i in edge]},
        "line": {
            "memory": [capacity] if capacity and plans else [],
            "says": ["usable HBM"] if capacity and plans else [],
        },
    }


def _candidates_words(given) -> str:
    plans = given.get("candidates") or []
    if len(plans) < 2:
        return "No plans to compare."
    return (
        f"{len(plans)} plans by memory and step time. The fastest, {plan_words(plans[0])}, "
        f"takes {show(_STEP, plans[0]['step_s'])} and "
        f"{show(_BYTES, plans[0]['memory_bytes'])}."
    )


def _candidates_chart(legend: bool = False) -> alt.Chart:
    unit, ticks = axis(_BYTES)
    x = alt.X(
        "memory:Q",
        title=f"memory of the fullest device, {unit}",
        axis=alt.Axis(labelExpr=ticks, tickCount=6),
        scale=alt.Scale(zero=False, nice=True),
    )
    y = alt.Y(
        "step:Q",
        title="step time, s",
        scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(tickCount=5),
    )
    kind = alt.Color(
        "kind:N", scale=alt.Scale(domain=["best", "other"], range=[SECOND, ACCENT]), legend=None
    )
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=["best", "other"], range=["diamond", "circle"]),
        legend=None,
    )
    points = (
        alt.Chart(named("plans"))
        .mark_point(filled=True, size=64, opacity=0.8, cursor="pointer")
        .encode(
            x=x,
            y=y,
            color=kind,
            shape=shape,
            tooltip=[
                alt.Tooltip("says:N", title="plan"),
                alt.Tooltip("step:Q", title="step time, s", format=".3~r"),
                alt.Tooltip("memory:Q", title="memory, bytes", format=".3~s"),
            ],
        )
    )
    edge = (
        alt.Chart(named("edge"))
        .mark_line(interpolate="step-after", strokeWidth=1.2, strokeDash=[4, 3], style="soft")
        .encode(x="memory:Q", y="step:Q")
    )
    line = (
        alt.Chart(named("line"))
        .mark_rule(strokeWidth=2, color=OVER)
        .encode(x="memory:Q", tooltip=alt.Tooltip("says:N", title=" "))
    )
    return alt.layer(line, edge, points)


candidates = Figure(
    "plans",
    "Best plans: memory and time",
    _candidates_chart,
    _candidates_data,
    _candidates_words,
    height=190,
    empty="No other plans: the plan is pinned, or none is legal.",
)


# ---------------------------------------------------------------- days against dollars
def _frontier_data(given, points=()) -> dict:
    """`points`: [{devices, given}] of the same design on other device counts; the figures are those
    of their assessments."""
    rows = [
        (p["devices"], p["given"])
        for p in points
        if p["given"].get("days") is not None and p["given"].get("cost_usd") is not None
    ]
    says = [
        (
            f"{n:,} devices: {show(_DAYS, g['days'])}, {show(_USD, g['cost_usd'])}, MFU "
            f"{show('mfu', g['mfu'])}, {g['verdict']}"
        )
        for n, g in rows
    ]
    best = (
        undominated([g["days"] for _, g in rows], [g["cost_usd"] for _, g in rows]).tolist()
        if rows
        else []
    )
    out = {
        "edge": {
            "days": [rows[i][1]["days"] for i in best],
            "usd": [rows[i][1]["cost_usd"] for i in best],
        },
        "points": {
            "days": [g["days"] for _, g in rows],
            "usd": [g["cost_usd"] for _, g in rows],
            "devices": [f"{n:,}" if i in best else "" for i, (n, _) in enumerate(rows)],
            "verdict": [g["verdict"] for _, g in rows],
            "says": says,
            "pick": [
                points.index(p)
                for p in points
                if p["given"].get("days") is not None and p["given"].get("cost_usd") is not None
            ],
        },
    }
    now = given.get("days") is not None and given.get("cost_usd") is not None and bool(rows)
    out["now"] = {
        "days": [given["days"]] if now else [],
        "usd": [given["cost_usd"]] if now else [],
        "says": [f"on the desk: {show(_DAYS, given['days'])}, {show(_USD, given['cost_usd'])}"]
        if now
        else [],
    }
    return out


def _frontier_words(given, points=()) -> str:
    return (
        "Days against dollars over device counts. "
        + "; ".join(_frontier_data(given, points)["points"]["says"])
        + "."
    )


_LADDER = [m * 10.0**e for e in range(-2, 5) for m in (1, 2, 3, 5, 7)]


def _frontier_chart(legend: bool = False) -> alt.Chart:
    unit, ticks = axis(_USD)
    x = alt.X(
        "days:Q",
        title="days of wall time",
        scale=alt.Scale(type="log", nice=False, padding=24),
        axis=alt.Axis(values=_LADDER, labelOverlap="greedy", format="~r", grid=False),
    )
    y = alt.Y(
        "usd:Q",
        title=f"cost, million {unit}",
        scale=alt.Scale(type="log", nice=False, padding=16),
        axis=alt.Axis(
            labelExpr="format(datum.value / 1e6, ',~r')", values=[1e6 * v for v in _LADDER]
        ),
    )
    tip = alt.Tooltip("says:N", title=" ")
    base = alt.Chart(named("points")).encode(x=x, y=y, tooltip=tip)
    line = (
        alt.Chart(named("edge"))
        .mark_line(strokeWidth=1.2, strokeDash=[4, 3], style="soft")
        .encode(x=x, y=y, order="days:Q")
    )
    legend_ = alt.Legend(
        orient="top",
        title=None,
        labelExpr="datum.label == 'constraint-missed' ? 'misses a stated limit' : 'feasible'",
    )
    dots = base.mark_point(filled=True, size=70, opacity=1, cursor="pointer").encode(
        color=alt.Color(
            "verdict:N",
            scale=alt.Scale(domain=["feasible", "constraint-missed"], range=[ACCENT, "#e69f00"]),
            legend=legend_,
        ),
        shape=alt.Shape(
            "verdict:N",
            scale=alt.Scale(
                domain=["feasible", "constraint-missed"], range=["circle", "triangle-up"]
            ),
            legend=legend_,
        ),
    )
    names = base.mark_text(align="left", dx=7, dy=-6, fontSize=10.5, style="ink-text").encode(
        text="devices:N"
    )
    now = (
        alt.Chart(named("now"))
        .mark_point(size=160, strokeWidth=2, color=SECOND)
        .encode(x=x, y=y, tooltip=tip)
    )
    return alt.layer(line, dots, names, now)


frontier = Figure(
    "days-against-dollars",
    "Days against dollars, over device counts",
    _frontier_chart,
    _frontier_data,
    _frontier_words,
    height=330,
    empty="Days and dollars need tokens and a price: give both, then sweep.",
)


# ---------------------------------------------------------------- what moves the result
_MORE_IS_BETTER = ("mfu", "goodput")


def _tornado_data(given, rows=(), key="days") -> dict:
    """`rows`: those of `scantling.advise.sensitivity.tornado`, largest swing first."""
    now = given.get(key)
    bars = {"what": [], "from": [], "to": [], "side": [], "says": [], "rank": [], "step": []}
    for rank, row in enumerate(rows):
        steps = {
            side: row[side + "_says"].split(" (")[0]
            for side in ("low", "high")
            if row[side] is not None
        }
        if len(steps) == 2 and (row["low"] > now) == (
            row["high"] > now
        ):  # both to one side: said together at the end of the longer, that one first
            near, far = sorted(steps, key=lambda side: abs(row[side] - now))
            steps = {near: "", far: f"{steps[far]}, {steps[near]}"}
        for side in ("low", "high"):
            if row[side] is not None:
                better = (row[side] > now) == (key in _MORE_IS_BETTER)
                for name, value in zip(
                    bars,
                    (
                        row["what"],
                        now,
                        row[side],
                        "better" if better else "worse",
                        (
                            f"{row['what']}, {row[side + '_says']}: {show(key, row[side])} "
                            f"(now {show(key, now)}); {row['why']}"
                        ),
                        rank,
                        steps[side],
                    ),
                ):
                    bars[name].append(value)
    return {"bars": bars, "now": {"to": [now] if rows else []}}


def _tornado_words(given, rows=(), key="days") -> str:
    return (
        f"What moves {label(key).lower()}: "
        + "; ".join(_tornado_data(given, rows, key)["bars"]["says"])
        + "."
    )


def _tornado_chart(key):
    def build(legend: bool = False) -> alt.Chart:
        _, ticks = axis(key)
        y = alt.Y(
            "what:N",
            title=None,
            sort=alt.EncodingSortField(field="rank", op="min"),
            axis=alt.Axis(ticks=False, domain=False, minExtent=140),
        )
        x = alt.X(
            "from:Q",
            title=titled(key),
            scale=alt.Scale(zero=False, nice=False, padding=120),
            axis=alt.Axis(tickCount=7, labelExpr=ticks),
        )
        colour = alt.Color(
            "side:N",
            scale=alt.Scale(domain=["better", "worse"], range=[ACCENT, SECOND]),
            legend=alt.Legend(orient="top", title=None),
        )
        bars = (
            alt.Chart(named("bars"))
            .mark_bar(stroke=None)
            .encode(x=x, x2="to:Q", y=y, color=colour, tooltip=alt.Tooltip("says:N", title=" "))
        )
        steps = [
            alt.Chart(named("bars"))
            .transform_filter(f"datum.to {way} datum.from")
            .mark_text(align=align, dx=dx, fontSize=10.5, style="soft-text")
            .encode(x=alt.X("to:Q"), y=y, text="step:N")
            for way, align, dx in (("<", "right", -5), (">=", "left", 5))
        ]
        return alt.layer(
            bars,
            *steps,
            alt.Chart(named("now")).mark_rule(strokeWidth=1.5, style="ink").encode(x="to:Q"),
        )

    return build


tornado = {
    key: Figure(
        f"sensitivity-{key}",
        f"What moves {label(key).lower()}",
        _tornado_chart(key),
        _tornado_data,
        _tornado_words,
        height=260,
        empty="Press “Vary the inputs” to draw this.",
    )
    for key in ("days", "step_s", "mfu", "cost_usd", "goodput")
}
