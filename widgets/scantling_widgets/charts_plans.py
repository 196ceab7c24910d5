"""Pictures of alternatives: the best plans by memory and time, days against dollars over device
counts, what moves the result."""

from __future__ import annotations

from scantling.endure.cost import frontier as undominated

from .figures import Figure, figure
from .words import MORE_IS_BETTER, axis, label, show, titled

_BYTES, _STEP, _DAYS, _USD = "candidates.memory_bytes", "candidates.step_s", "days", "cost_usd"


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
def _candidates_rows(given) -> dict:
    plans = given.get("candidates") or []
    if len(plans) < 2:  # one alone is no choice
        return {
            "plans": [],
            "edge": [],
            "line": [],
        }
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
    best = undominated([r["memory"] for r in rows], [r["step"] for r in rows]).tolist()
    return {
        "plans": rows,
        "edge": [
            {
                "memory": rows[i]["memory"],
                "step": rows[i]["step"],
            }
            for i in best
        ],
        "line": [
            {
                "memory": capacity,
                "says": "usable HBM",
            }
        ]
        if capacity
        else [],
    }


def _candidates_words(given) -> str:
    plans = given.get("candidates") or []
    if len(plans) < 2:
        return "No plans to compare."
    return (
        f"{len(plans)} plans by memory and step time. The fastest, {plan_words(plans[0])}, takes "
        f"{show(_STEP, plans[0]['step_s'])} and {show(_BYTES, plans[0]['memory_bytes'])}."
    )


_UNIT, _TICKS = axis(_BYTES)
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
def _point(given, says: str) -> dict:
    figures = f"{show(_DAYS, given['days'])}, {show(_USD, given['cost_usd'])}"
    return {
        "days": given["days"],
        "usd": given["cost_usd"],
        "says": f"{says}: {figures}",
    }


def _priced(given) -> bool:
    return given.get("days") is not None and given.get("cost_usd") is not None


def _frontier_rows(given, points=()) -> dict:
    """`points`: [{devices, given}] of the same design on other device counts; the figures are those
    of their assessments."""
    rows = []
    for i, point in enumerate(points):
        of, n = point["given"], f"{point['devices']:,}"
        if _priced(of):
            row = _point(of, f"{n} devices")
            row["says"] += f", MFU {show('mfu', of['mfu'])}, {of['verdict']}"
            rows.append(
                {
                    **row,
                    "devices": n,
                    "verdict": of["verdict"],
                    "pick": i,
                }
            )
    best = undominated([r["days"] for r in rows], [r["usd"] for r in rows]).tolist() if rows else []
    return {
        "edge": [
            {
                "days": rows[i]["days"],
                "usd": rows[i]["usd"],
            }
            for i in best
        ],
        "points": [
            {
                **row,
                "devices": row["devices"] if i in best else "",
            }
            for i, row in enumerate(rows)
        ],
        "now": [_point(given, "on the desk")] if rows and _priced(given) else [],
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
    now = given.get(key)
    bars = []
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
        for side in sides:
            better = (row[side] > now) == (key in MORE_IS_BETTER)
            bars.append(
                {
                    "what": row["what"],
                    "from": now,
                    "to": row[side],
                    "side": "better" if better else "worse",
                    "says": (
                        f"{row['what']}, {row[side + '_says']}: {show(key, row[side])} "
                        f"(now {show(key, now)}); {row['why']}"
                    ),
                    "rank": rank,
                    "step": steps[side],
                }
            )
    return {
        "bars": bars,
        "now": [{"to": now}] if rows else [],
    }


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
