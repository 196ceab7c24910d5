"""Pictures of alternatives: the best plans by memory and time, days against dollars over device
counts, what moves the result, designs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from scantling.advise.comparison import Comparison
from scantling.advise.frontier import undominated
from scantling.base.quantities.quantity import show
from scantling.base.records import at
from scantling.base.show import days, is_number, seconds, share, size, usd
from scantling.verdict.result import FigureKey, figure
from scantling.verdict.verdicts import met

from ..quantity_texts import MORE_IS_BETTER, label, plan_text
from .altair_loader import alt
from .figure import Data, Facts, Figure, Row, laid, quantity_axis, saying
from .palette import ACCENT, MEMORY, MISSED, OVER, SECOND, STEP, Swatch, colours, names as names_of
from .theme import layered, over, tip


def plan_words(plan: Mapping[str, Any]) -> str:
    """A plan on one line, its schedule named where it has stages."""
    staged = plan.get("schedule") if (plan.get("pp") or 1) > 1 else None
    return ", ".join(filter(None, (plan_text(plan), staged)))


def _undominated(rows: Sequence[Row], *keys: str) -> dict[int, Row]:
    """Those keys of the rows that no other row beats in both, by place."""
    places = [[row[key] for key in keys] for row in rows]
    best = undominated(places).tolist() if rows else []
    return {i: dict(zip(keys, places[i])) for i in best}


# ---------------------------------------------------------------- candidates
def _candidates_rows(figures: Facts) -> Data:
    plans = figures.get("candidates") or []
    if len(plans) < 2:  # one alone is no choice
        return {"plans": [], "edge": [], "line": []}
    capacity = (figures.get("memory_bytes") or {}).get("capacity")
    rows = [
        {
            "memory": plan["memory_bytes"],
            "step": plan["step_s"],
            "kind": "other" if i else "best",
            "says": f"{plan_words(plan)}: {seconds(plan['step_s'])}, {size(plan['memory_bytes'])}",
            "pick": i,
        }
        for i, plan in enumerate(plans)
    ]
    line = {"memory": capacity, "says": "usable HBM"}
    return {
        "plans": rows,
        "edge": list(_undominated(rows, "memory", "step").values()),
        "line": [line] if capacity else [],
    }


def _draw_candidates(legend: bool) -> alt.LayerChart:
    _, ticks = quantity_axis("candidates.memory_bytes")
    memory, kinds = alt.X("memory:Q"), ["best", "other"]
    plans = (
        over("plans")
        .mark_point(cursor="pointer", filled=True, opacity=0.8, size=64)
        .encode(
            alt.X(
                "memory:Q",
                title="memory of the fullest device, GB",
                axis=alt.Axis(labelExpr=ticks, tickCount=6),
                scale=alt.Scale(nice=True, zero=False),
            ),
            alt.Y(
                "step:Q",
                title="step time, s",
                axis=alt.Axis(tickCount=5),
                scale=alt.Scale(nice=True, zero=False),
            ),
            alt.Color("kind:N", legend=None, scale=alt.Scale(domain=kinds, range=[SECOND, ACCENT])),
            alt.Shape(
                "kind:N", legend=None, scale=alt.Scale(domain=kinds, range=["diamond", "circle"])
            ),
            tip(),
        )
    )
    edge = (
        over("edge")
        .mark_line(interpolate="step-after", strokeDash=[4, 3], strokeWidth=1.2, style="soft")
        .encode(memory, alt.Y("step:Q"))
    )
    return layered(
        over("line").mark_rule(color=OVER, strokeWidth=2).encode(memory, tip()), edge, plans
    )


candidates = Figure(
    name="plans",
    title="Best plans: memory and time",
    draw=_draw_candidates,
    rows=_candidates_rows,
    words=saying(
        _candidates_rows, "Best plans by memory and step time, the fastest first:", ["plans"], 5
    ),
    height=190,
    empty="No other plans: the plan is pinned, or none is legal.",
)


# ---------------------------------------------------------------- days against dollars
def _priced(figures: Facts) -> bool:
    return figure(figures, "days") is not None and figure(figures, "cost_usd") is not None


def _frontier_rows(figures: Facts, points: Sequence[Mapping[str, Any]] = ()) -> Data:
    """`points`: [{devices, figures}] of the same design on other device counts, each with the
    figures of its assessment."""
    rows = [
        _point(i, p["devices"], p["figures"]) for i, p in enumerate(points) if _priced(p["figures"])
    ]
    edge = _undominated(rows, "days", "usd")
    for i, row in enumerate(rows):
        if i not in edge:
            row["devices"] = ""
    shown = bool(rows) and _priced(figures)
    return {
        "edge": list(edge.values()),
        "points": rows,
        "now": [_on_the_desk(figures)] if shown else [],
        "undisturbed": [_undisturbed(figures)] if shown else [],
    }


def _on_the_desk(figures: Facts) -> Row:
    """The headline's own pair: likely days and dollars."""
    likely = figures["likely"]
    return {
        "days": likely["days"],
        "usd": likely["cost_usd"],
        "says": f"on the desk, likely: {days(likely['days'])}, {usd(likely['cost_usd'])}",
    }


def _undisturbed(figures: Facts) -> Row:
    """The same run without risks, the price's range and the skew of the band."""
    undisturbed = f"{days(figures['days'])}, {usd(figures['cost_usd'])}"
    return {
        "days": figures["days"],
        "usd": figures["cost_usd"],
        "says": f"on the desk, undisturbed by risks: {undisturbed}",
        "text": "undisturbed",
    }


def _point(pick: int, devices: int, figures: Facts) -> Row:
    likely = figures["likely"]
    return {
        "days": likely["days"],
        "usd": likely["cost_usd"],
        "says": f"{devices:,} devices, likely: {days(likely['days'])}, {usd(likely['cost_usd'])}, "
        f"MFU {share(figures['mfu_shown'])}, {figures['verdict'].replace('-', ' ')}",
        "devices": f"{devices:,}",
        "stands": "feasible" if met(figures["verdict"]) else "missed",
        "pick": pick,
    }


def constraint_legend() -> alt.Legend:
    """Says what a design in another colour misses."""
    return alt.Legend(
        title=None,
        labelExpr="datum.label == 'missed' ? 'violates a constraint' : 'feasible'",
        orient="top",
    )


def _ticks(scale: str) -> alt.ExprRef:
    """The ticks of a logarithmic axis as a Vega expression: one, two and five of each decade; of a
    range of less than a factor of eight, which may hold one of these, four or so evenly spaced."""
    low, high = (f"domain('{scale}')[{end}]" for end in (0, 1))
    quarter = f"(({high} - {low}) / 4)"
    decade = f"pow(10, floor(log({quarter}) / LN10))"
    size = f"({quarter} / {decade})"
    step = f"({decade} * ({size} < 1.5 ? 1 : {size} < 3.5 ? 2 : {size} < 7.5 ? 5 : 10))"
    even = f"sequence(ceil({low} / {step}) * {step}, {high}, {step})"
    decades = [float(f"{m}e{e}") for e in range(-2, 12) for m in (1, 2, 5)]
    return alt.ExprRef(f"{high} < 8 * {low} ? {even} : {decades}")


def _draw_frontier(legend: bool) -> alt.LayerChart:
    stands = ["feasible", "missed"]
    x = alt.X(
        "days:Q",
        title="likely days",
        axis=alt.Axis(
            labelExpr="format(datum.value, ',~r')",
            grid=False,
            labelOverlap="greedy",
            labelSeparation=6,
            values=_ticks("x"),
        ),
        scale=alt.Scale(type="log", nice=False, padding=24),
    )
    y = alt.Y(
        "usd:Q",
        title="likely cost, million USD",
        axis=alt.Axis(
            labelExpr="format(datum.value / 1e6, ',~r')", labelOverlap="greedy", values=_ticks("y")
        ),
        scale=alt.Scale(type="log", nice=False, padding=16),
    )
    edge = (
        over("edge")
        .mark_line(strokeDash=[4, 3], strokeWidth=1.2, style="soft")
        .encode(x, y, alt.Order("days:Q"))
    )
    points = (
        over("points")
        .mark_point(cursor="pointer", filled=True, opacity=1, size=70)
        .encode(
            x,
            y,
            alt.Color(
                "stands:N",
                legend=constraint_legend(),
                scale=alt.Scale(domain=stands, range=[ACCENT, MISSED]),
            ),
            alt.Shape(
                "stands:N",
                legend=constraint_legend(),
                scale=alt.Scale(domain=stands, range=["circle", "triangle-up"]),
            ),
            tip(),
        )
    )
    counts = (
        over("points")
        .mark_text(align="left", dx=7, dy=-6, fontSize=10.5, style="ink-text")
        .encode(x, y, alt.Text("devices:N"), tip())
    )
    now = over("now").mark_point(color=SECOND, size=160, strokeWidth=2).encode(x, y, tip())
    undisturbed = over("undisturbed")
    return layered(
        edge,
        points,
        counts,
        now,
        undisturbed.mark_point(color=SECOND, shape="diamond", size=70).encode(x, y, tip()),
        undisturbed.mark_text(align="left", dx=9, fontSize=10.5, style="soft-text").encode(
            x, y, alt.Text("text:N"), tip()
        ),
    )


frontier = Figure(
    name="days-against-dollars",
    title="Days against dollars, over device counts",
    draw=_draw_frontier,
    rows=_frontier_rows,
    words=saying(_frontier_rows, "Days against dollars over device counts.", ["points"]),
    height=330,
    empty="No device count is worked out yet. Days and dollars need tokens and a price.",
)


# ---------------------------------------------------------------- what moves the result
MOVED = ("likely.days", "step_s", "mfu_shown", "likely.cost_usd", "goodput")


def _tornado_rows(
    figures: Facts, rows: Sequence[Mapping[str, Any]] = (), key: str = "likely.days"
) -> Data:
    """`rows`: those of `scantling.advise.sensitivity.tornado`, largest swing first."""
    now = at(figures, key)
    bars = [bar for rank, row in enumerate(rows) for bar in _bars_of_input(rank, row, key, now)]
    return {"bars": bars, "now": [{"to": now}] if rows else []}


def _bars_of_input(rank: int, row: Mapping[str, Any], key: str, now: Any) -> list[Row]:
    """A bar for each side of one input, its text at its outer end; where both go to one side, that
    of the shorter on the other side of today's figure."""
    sides = [side for side in ("low", "high") if row[side] is not None]
    ends = {side: (row[side], row[side] >= now) for side in sides}  # where, and to the right of it
    if len(sides) == 2 and ends["low"][1] == ends["high"][1]:
        shorter = min(sides, key=lambda side: float(abs(row[side] - now)))
        ends[shorter] = now, not ends[shorter][1]
    bars = []
    for side in sides:
        step = str(row[f"{side}_says"]).split(" (")[0]
        at_end, rightwards = ends[side]
        value, changed = row[side], row[f"{side}_says"]
        better = (value > now) == (key in MORE_IS_BETTER)
        bars.append(
            {
                "what": row["what"],
                "from": now,
                "to": value,
                "side": "better" if better else "worse",
                "says": f"{row['what']}, {changed}: {show(key, value)} (now {show(key, now)}); "
                f"{row['why']}",
                "rank": rank,
                "step": step,
                "text": f"{step}: {show(key, value)}",
                "end": at_end,
                "rightwards": rightwards,
            }
        )
    return bars


def _tornado_colour(orient: Literal["top"] | None) -> alt.Color:
    return alt.Color(
        "side:N",
        legend=alt.Legend(title=None, orient=orient) if orient else None,
        scale=alt.Scale(domain=["better", "worse"], range=[ACCENT, SECOND]),
    )


def _now_rule() -> alt.Chart:
    rule: alt.Chart = over("now").mark_rule(strokeWidth=1.5, style="ink")
    return rule.encode(alt.X("to:Q"))


def _draw_tornado(key: str, legend: bool) -> alt.LayerChart:
    title, ticks = quantity_axis(key)
    y = alt.Y(
        "what:N",
        title=None,
        axis=alt.Axis(domain=False, minExtent=140, ticks=False),
        sort=alt.EncodingSortField(field="rank", op="min"),
    )
    x = alt.X(
        "from:Q",
        title=title,
        axis=alt.Axis(labelExpr=ticks, tickCount=alt.ExprRef("width < 300 ? 3 : 7")),
        # room for the labels outside of the bars, but never most of a narrow picture
        scale=alt.Scale(
            nice=False,
            padding=alt.ExprRef("width < 300 ? width / 6 : min(120, width / 4)"),
            zero=False,
        ),
    )

    bars = over("bars").mark_bar(stroke=None)
    return layered(
        bars.encode(x, alt.X2("to"), y, _tornado_colour("top"), tip()),
        *_ends(y, "step"),
        _now_rule(),
    )


def _ends(y: alt.Y, column: str) -> list[alt.Chart]:
    """The text of each bar where it stands."""

    def label(test: str, align: Any, dx: int) -> alt.Chart:
        chart: alt.Chart = (
            over("bars")
            .transform_filter(test)
            .mark_text(
                align=align,
                dx=dx,
                fontSize=10.5,
                opacity=alt.ExprRef("width < 300 ? 0 : 1"),  # they would stand on the names
                style="soft-text",
            )
            .encode(alt.X("end:Q"), y, alt.Text(f"{column}:N"), tip())
        )
        return chart

    return [label("!datum.rightwards", "right", -5), label("datum.rightwards", "left", 5)]


def _draw_printed_tornado(legend: bool) -> alt.LayerChart:
    """The same for paper, where nothing can be pointed at: each bar says the step of its input and
    what the figure then is."""
    y = alt.Y(
        "what:N", title=None, axis=alt.Axis(domain=False, labelLimit=200, ticks=False), sort=None
    )
    # the texts say the values; the room for them reaches below zero, where no quantity does
    x = alt.X("from:Q", axis=None, scale=alt.Scale(nice=False, padding=205, zero=False))
    bars = over("bars").mark_bar(stroke=None)
    return layered(
        bars.encode(x, alt.X2("to"), y, _tornado_colour(None)), *_ends(y, "text"), _now_rule()
    )


tornado = {
    key: Figure(
        name=f"sensitivity-{key}",
        title=f"What moves {label(key).lower()}",
        draw=partial(_draw_tornado, key),
        rows=_tornado_rows,
        words=saying(_tornado_rows, f"What moves {label(key).lower()}:", ["bars"]),
        height=260,
        empty="No input is varied yet: “Vary the inputs” draws this.",
    )
    for key in MOVED
}
# of the report: likely days, and throughput where a design has no tokens
printed_tornado = {
    key: Figure(
        name=f"sensitivity-printed-{key}",
        title=f"{label(key)} when one input changes; rates keep the plan, all else searches again",
        draw=_draw_printed_tornado,
        rows=_tornado_rows,
        words=saying(_tornado_rows, f"What moves {label(key).lower()}:", ["bars"]),
        height={"step": 18},
    )
    for key in ("likely.days", "tokens_per_s_per_device")
}


# ---------------------------------------------------------------- designs side by side
def _compared_rows(figures: Facts, comparison: Comparison | None = None) -> Data:
    """A bar a design for each figure in which the designs differ; designs are numbered, since two
    may share a name."""
    bars = []
    for row in comparison.rows if comparison else ():
        if row.group != "figure" or not row.differs:
            continue
        designs = zip(comparison.names, row.values, row.cells) if comparison else ()
        for rank, (design, value, cell) in enumerate(designs, 1):
            if is_number(value):
                bars.append(
                    {
                        "design": f"{rank} · {design}",
                        "figure": row.label,
                        "value": value,
                        "text": f"{rank} · {cell}",
                        "says": f"{row.label}, {design}: {cell}",
                    }
                )
    return {"bars": bars}


def _draw_compared(legend: bool) -> alt.Chart:
    chart: alt.Chart = (
        over("bars")
        .mark_bar(stroke=None)
        .encode(
            alt.Row(
                "figure:N",
                title=None,
                sort=None,
                spacing=5,
                header=alt.Header(
                    labelAngle=0, labelAlign="left", labelAnchor="middle", labelLimit=210
                ),
            ),
            alt.X("value:Q", title=None, axis=None, scale=alt.Scale(domainMin=0, nice=False)),
            alt.Y(
                "text:N",
                title=None,
                sort=None,
                axis=alt.Axis(domain=False, ticks=False, labelLimit=160, minExtent=110),
            ),
            alt.Color(
                "design:N",
                title=None,
                sort=None,
                legend=alt.Legend(orient="top", columns=1, labelLimit=400),
            ),
            tip(),
        )
        .resolve_scale(x="independent", y="independent")
    )
    return chart


compared = Figure(
    name="comparison",
    title="Where the designs differ",
    draw=_draw_compared,
    rows=_compared_rows,
    words=saying(_compared_rows, "Where the designs differ:", ["bars"]),
    height={"step": 14},
    empty="The designs have no figure that differs.",
)


def _stacked(
    name: str,
    title: str,
    what: str,
    parts: Mapping[str, Swatch],
    mapping: Literal["memory_bytes", "step_breakdown_s"],
    headline: FigureKey,
    axis_title: str,
) -> Figure[[Sequence[Facts]]]:
    """Stacked parts of one figure, a bar a design."""

    def rows(figures: Facts, results: Sequence[Facts] = ()) -> Data:
        return {
            "parts": [
                {
                    "part": part.part,
                    "hue": part.colour,
                    "size": part.size,
                    "start": part.start,
                    "end": part.end,
                    "design": f"{i}  {result['name'][:44]}",
                }
                for i, result in enumerate(results, 1)
                for part in laid(parts, result[mapping])
            ]
        }

    def words(figures: Facts, results: Sequence[Facts] = ()) -> str:
        totals = "; ".join(f"{r['name']} {show(headline, figure(r, headline))}" for r in results)
        return f"{what}: {totals}."

    def draw(legend: bool) -> alt.Chart:
        return _draw_stacked(parts, axis_title, quantity_axis(headline).ticks)

    return Figure(name=name, title=title, draw=draw, rows=rows, words=words, height={"step": 30})


def _draw_stacked(parts: Mapping[str, Swatch], title: str, ticks: str) -> alt.Chart:
    chart: alt.Chart = (
        over("parts")
        .mark_bar(stroke=None)
        .encode(
            alt.X(
                "start:Q",
                title=title,
                axis=alt.Axis(labelExpr=ticks, tickCount=7),
                scale=alt.Scale(domainMin=0, nice=False),
            ),
            alt.X2("end"),
            alt.Y(
                "design:N",
                title=None,
                axis=alt.Axis(domain=False, labelLimit=250, ticks=False),
                scale=alt.Scale(paddingInner=0.3),
                sort=None,
            ),
            alt.Color(
                "part:N",
                # the legend is as wide as the plot: the names of the designs leave it 430 px
                legend=alt.Legend(title=None, columns=3, orient="bottom"),
                scale=alt.Scale(domain=names_of(parts), range=colours(parts)),
                sort=None,
            ),
        )
    )
    return chart


memories = _stacked(
    name="memories",
    title="Memory of the fullest device",
    what="Memory of the fullest device",
    parts=MEMORY,
    mapping="memory_bytes",
    headline="memory_bytes.total",
    axis_title="GB per device",
)
steps = _stacked(
    name="steps",
    title="One training step",
    what="Time of one step",
    parts=STEP,
    mapping="step_breakdown_s",
    headline="step_s",
    axis_title="seconds of one step",
)
