"""Pictures of alternatives: the best plans by memory and time, days against dollars over device
counts, what moves the result."""

from __future__ import annotations

from scantling.advise.frontier import undominated
from scantling.verdict.verdicts import met

from .assessment_charts import Figure, figure, text, worded
from .words import MORE_IS_BETTER, axis, label, show, titled


def plan_words(plan) -> str:
    """A plan on one line, in the words of the field; ways of one are left out."""
    ways = [
        f"{name.upper()} {plan[name]}"
        for name in ("tp", "cp", "pp", "dp", "ep", "vpp")
        if plan.get(name) not in (None, 1)
    ]
    if plan.get("etp") not in (None, 1) and plan.get("ep", 1) != 1:
        ways.append(f"ETP {plan['etp']}")
    schedule = plan.get("schedule") if (plan.get("pp") or 1) > 1 else None
    kept = plan.get("recompute")
    recompute = f"recompute {kept}" if kept not in (None, "none") else None
    words = (f"micro-batch {plan.get('micro_batch')}", plan.get("sharding"), schedule, recompute)
    return " · ".join([*(ways or ["1 way"]), *filter(None, words)])


# ---------------------------------------------------------------- candidates
def _undominated(rows, *keys) -> dict[int, dict]:
    """Those keys of the rows that no other row beats in both, by place."""
    places = [[row[key] for key in keys] for row in rows]
    best = undominated(places).tolist() if rows else []
    return {i: dict(zip(keys, places[i])) for i in best}


def _candidates_rows(given) -> dict:
    plans = given.get("candidates") or []
    if len(plans) < 2:  # one alone is no choice
        return dict.fromkeys(("plans", "edge", "line"), [])
    capacity = (given.get("memory_bytes") or {}).get("capacity")
    rows = [
        {
            "memory": plan["memory_bytes"],
            "step": plan["step_s"],
            "kind": "other" if i else "best",
            "says": plan_words(plan),
            "pick": i,
        }
        for i, plan in enumerate(plans)
    ]
    line = {
        "memory": capacity,
        "says": "usable HBM",
    }
    return {
        "plans": rows,
        "edge": [*_undominated(rows, "memory", "step").values()],
        "line": [line] if capacity else [],
    }


def _candidates_words(given) -> str:
    plans = given.get("candidates") or []
    if len(plans) < 2:
        return "No plans to compare."
    return text(
        "candidates",
        "words",
        count=len(plans),
        plan=plan_words(plans[0]),
        **plans[0],
    )


_UNIT, _TICKS = axis("candidates.memory_bytes")
candidates = figure(
    "candidates",
    _candidates_rows,
    _candidates_words,
    given={
        "title": f"memory of the fullest device, {_UNIT}",
        "ticks": _TICKS,
    },
)


# ---------------------------------------------------------------- days against dollars
def _priced(given) -> bool:
    return given.get("days") is not None and given.get("cost_usd") is not None


def _frontier_rows(given, points=()) -> dict:
    """`points`: [{devices, given}] of the same design on other device counts; the figures are those
    of their assessments."""
    priced = [
        {
            **point["given"],
            "devices": f"{point['devices']:,}",
            "stands": "feasible" if met(point["given"]["verdict"]) else "missed",
            "pick": i,
        }
        for i, point in enumerate(points)
        if _priced(point["given"])
    ]
    rows = worded("frontier", "points", priced)
    edge = _undominated(rows, "days", "usd")
    for i in {*range(len(rows))} - edge.keys():
        rows[i]["devices"] = ""
    now = [given] if rows and _priced(given) else []
    return {
        "edge": [*edge.values()],
        "points": rows,
        "now": worded(
            "frontier",
            "now",
            now,
            what="on the desk",
        ),
    }


_LADDER = [m * 10.0**e for e in range(-2, 5) for m in (1, 2, 3, 5, 7)]
frontier = figure(
    "frontier",
    _frontier_rows,
    given={
        "ladder": _LADDER,
        "usd_ladder": [1e6 * v for v in _LADDER],
    },
)


# ---------------------------------------------------------------- what moves the result
def _tornado_rows(
    given,
    rows=(),
    key="days",
) -> dict:
    """`rows`: those of `scantling.advise.sensitivity.tornado`, largest swing first."""
    now, bars = given.get(key), []
    for rank, row in enumerate(rows):
        sides = [side for side in ("low", "high") if row[side] is not None]
        steps = {side: row[side + "_says"].split(" (")[0] for side in sides}
        if len(sides) == 2 and (row["low"] > now) == (row["high"] > now):
            # both to one side: said together at the end of the longer, that one first
            near, far = sorted(sides, key=lambda side: abs(row[side] - now))
            steps = {
                near: "",
                far: f"{steps[far]}, {steps[near]}",
            }
        for side, step in sorted(steps.items(), key=lambda item: item[0] == "high"):
            value = row[side]
            bars.append(
                {
                    **row,
                    "rank": rank,
                    "value": value,
                    "shown": show(key, value),
                    "side": side_of(value, now, key),
                    "changed": row[side + "_says"],
                    "step": step,
                }
            )
    return {
        "bars": worded(
            "tornado",
            "bars",
            bars,
            now=now,
            shown_now=show(key, now),
        ),
        "now": [{"to": now}] if rows else [],
    }


def side_of(
    value: float,
    now: float,
    key: str,
) -> str:
    """Whether a figure moves for the better."""
    return "better" if (value > now) == (key in MORE_IS_BETTER) else "worse"


def _tornado(key: str) -> Figure:
    what = f"What moves {label(key).lower()}"
    return figure(
        "tornado",
        _tornado_rows,
        lead=f"{what}:",
        name=f"sensitivity-{key}",
        title=what,
        given={
            "title": titled(key),
            "ticks": axis(key)[1],
        },
    )


tornado = {key: _tornado(key) for key in ("days", "step_s", "mfu", "cost_usd", "goodput")}
