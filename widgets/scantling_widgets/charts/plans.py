"""Pictures of alternatives: the best plans by memory and time, days against dollars over device
counts, what moves the result."""

from scantling.advise.frontier import undominated
from scantling.verdict.verdicts import met

from ..words import MORE_IS_BETTER, label, plan_text, show
from .chart import Figure, figure, shown_on, worded


def plan_words(plan) -> str:
    """A plan on one line, its schedule named where it has stages."""
    staged = plan.get("schedule") if (plan.get("pp") or 1) > 1 else None
    return ", ".join(filter(None, (plan_text(plan), staged)))


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
        plan | {"kind": "other" if i else "best", "plan": plan_words(plan), "pick": i}
        for i, plan in enumerate(plans)
    ]
    line = {"memory": capacity, "says": "usable HBM"}
    rows = worded("candidates", "plans", rows)
    return {
        "plans": rows,
        "edge": [*_undominated(rows, "memory", "step").values()],
        "line": [line] if capacity else [],
    }


candidates = figure(
    "candidates",
    _candidates_rows,
    given=shown_on("candidates.memory_bytes", "memory of the fullest device, {}"),
)


# ---------------------------------------------------------------- days against dollars
def _priced(given) -> bool:
    return given.get("days") is not None and given.get("cost_usd") is not None


def _frontier_rows(given, points=()) -> dict:
    """`points`: [{devices, given}] of the same design on other device counts; the figures are those
    of their assessments."""
    priced = [
        point["given"]
        | {
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
    return {
        "edge": [*edge.values()],
        "points": rows,
        "now": worded("frontier", "now", [given] if rows and _priced(given) else []),
    }


_LADDER = [m * 10.0**e for e in range(-2, 5) for m in (1, 2, 3, 5, 7)]
frontier = figure(
    "frontier", _frontier_rows, given={"ladder": _LADDER, "usd_ladder": [1e6 * v for v in _LADDER]}
)


# ---------------------------------------------------------------- what moves the result
def _tornado_rows(given, rows=(), key="days") -> dict:
    """`rows`: those of `scantling.advise.sensitivity.tornado`, largest swing first."""
    now, bars = given.get(key), []
    for rank, row in enumerate(rows):
        sides = [side for side in ("low", "high") if row[side] is not None]
        steps = {side: row[side + "_says"].split(" (")[0] for side in sides}
        if len(sides) == 2 and (row["low"] > now) == (row["high"] > now):
            # both to one side: said together at the end of the longer, that one first
            near, far = sorted(sides, key=lambda side: abs(row[side] - now))
            steps = {near: "", far: f"{steps[far]}, {steps[near]}"}
        for side in sides:
            value = row[side]
            better = (value > now) == (key in MORE_IS_BETTER)
            more = {
                "rank": rank,
                "value": value,
                "shown": show(key, value),
                "side": "better" if better else "worse",
                "changed": row[side + "_says"],
                "step": steps[side],
            }
            bars.append(row | more)
    return {
        "bars": worded("tornado", "bars", bars, now=now, shown_now=show(key, now)),
        "now": [{"to": now}] if rows else [],
    }


def tornado_of(key: str, looks: str = "tornado", **more) -> Figure:
    """What moves one headline figure."""
    what = f"What moves {label(key).lower()}"
    called = {"name": f"sensitivity-{key}", "title": what}
    return figure(looks, _tornado_rows, lead=f"{what}:", given=shown_on(key), **called | more)


tornado = {key: tornado_of(key) for key in ("days", "step_s", "mfu", "cost_usd", "goodput")}
