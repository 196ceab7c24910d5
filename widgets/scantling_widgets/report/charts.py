"""Pictures that only the report has: goodput over the checkpoint interval, communication hidden and
exposed, share of wall time lost."""

from __future__ import annotations

from ..assessment_charts import Figure, figure, stacked, text
from ..charts import memory, step
from ..charts_plans import side_of
from ..palette import MEMORY, STEP
from ..words import at, axis, label, show

AXES = ("tp", "cp", "ep", "dp", "pp")


# ---------------------------------------------------------------- goodput
def _curve(given) -> dict:
    return (given.get("endurance") or {}).get("curve") or {
        "interval_s": [],
        "goodput": [],
    }


def _interval(
    seconds,
    goodput,
    says: str,
) -> dict:
    return {
        "interval_s": seconds,
        "goodput": goodput,
        "says": says,
    }


def _goodput_rows(given) -> dict:
    curve, seconds, goodput = _curve(given), given["checkpoint_interval_s"], given["goodput"]
    columns = {key: list(curve[key]) for key in ("interval_s", "goodput")}
    chosen, optimum = [], []
    if columns["goodput"]:
        most, best = max(zip(columns["goodput"], columns["interval_s"]))
        says = text(
            "goodput",
            "chosen",
            seconds=seconds,
            goodput=goodput,
        )
        if most - goodput > 5e-4:
            optimum = [_interval(best, most, text("goodput", "optimum", seconds=best))]
        else:  # where they all but coincide, one mark says both
            says += ", the optimum"
        chosen = [_interval(seconds, goodput, says)]
    return {
        "curve": columns,
        "chosen": chosen,
        "optimum": optimum,
    }


def _goodput_words(given) -> str:
    seconds, shares = _curve(given).values()
    if not len(seconds):
        return "No goodput curve."
    first, last = (
        text(
            "goodput",
            "place",
            goodput=shares[i],
            seconds=seconds[i],
        )
        for i in (0, -1)
    )
    now, goodput = given["checkpoint_interval_s"], given["goodput"]
    return text(
        "goodput",
        "words",
        first=first,
        last=last,
        seconds=now,
        goodput=goodput,
    )


goodput = figure("goodput", _goodput_rows, _goodput_words)


# ---------------------------------------------------------------- communication
def by_axis(given) -> list[tuple]:
    """(axis, exposed, hidden) seconds of the axes that communicate."""
    shown, hidden = given["step_breakdown_s"], given.get("hidden_s") or {}
    rows = ((axis, shown.get(axis) or 0, hidden.get(axis) or 0) for axis in AXES)
    return [row for row in rows if row[1] or row[2]]


def _traffic_rows(given) -> dict:
    return {
        "traffic": [
            {
                "axis": axis.upper(),
                "kind": kind,
                "start": start,
                "end": end,
                "says": show("step_s", end - start),
            }
            for axis, shown, under in by_axis(given)
            for kind, start, end in (("exposed", 0, shown), ("hidden", shown, shown + under))
            if end > start
        ]
    }


def _traffic_words(given) -> str:
    parts = "; ".join(
        text(
            "traffic",
            "axis",
            axis=axis.upper(),
            shown=shown,
            under=under,
        )
        for axis, shown, under in by_axis(given)
    )
    return f"Communication of one step by axis: {parts}." if parts else "No communication."


traffic = figure("traffic", _traffic_rows, _traffic_words)


# ---------------------------------------------------------------- what moves the result
def _ends(rows) -> list[tuple]:
    """(row, value, what was changed) of both ends of each row."""
    sides = ((row, side) for row in rows[:12] for side in ("low", "high"))
    return [(r, r[side], r[f"{side}_says"]) for r, side in sides if r[side] is not None]


def _tornado_rows(
    given,
    rows=(),
    key="days",
) -> dict:
    now = given.get(key)
    return {
        "bars": [
            {
                "what": row["what"],
                "from": now,
                "to": value,
                "side": side_of(value, now, key),
            }
            for row, value, _ in _ends(rows)
        ],
        "now": [{"to": now}] if rows else [],
    }


def _tornado_words(
    given,
    rows=(),
    key="days",
) -> str:
    ends = (f"{row['what']}, {says}: {show(key, value)}" for row, value, says in _ends(rows))
    return f"What moves {label(key)}, now {show(key, given.get(key))}: {'; '.join(ends)}."


def tornado(key: str) -> Figure:
    """What moves one headline figure."""
    return figure(
        "report_tornado",
        _tornado_rows,
        _tornado_words,
        title=f"{label(key)} with one input changed at a time, the plan searched again where it is "
        "open",
        given={
            "title": label(key),
            "ticks": axis(key)[1],
        },
    )


# ---------------------------------------------------------------- designs side by side
def _side_by_side(
    *,
    name,
    title,
    what,
    table,
    mapping,
    headline,
    given,
) -> Figure:
    """Stacked parts of one figure, a bar a design."""

    def rows(given, results=()) -> dict:
        return {
            "parts": [
                {
                    "design": f"{i}  {of['name'][:44]}",
                    "part": part,
                    "start": float(start),
                    "end": float(end),
                }
                for i, of in enumerate(results, 1)
                for (part, _), start, end in zip(
                    table.values(), *stacked([of[mapping].get(key) or 0 for key in table])
                )
            ]
        }

    def words(given, results=()) -> str:
        said = "; ".join(f"{of['name']} {show(headline, at(of, headline))}" for of in results)
        return f"{what}: {said}."

    return figure(
        "parts",
        rows,
        words,
        name=name,
        title=title,
        given={
            **given,
            "names": [part for part, _ in table.values()],
            "hues": [hue for _, hue in table.values()],
        },
    )


_UNIT, _TICKS = axis("memory_bytes.total")
memories = _side_by_side(
    name="memories",
    title="Memory of the fullest device",
    what="Memory of the fullest device",
    table=MEMORY,
    mapping="memory_bytes",
    headline="memory_bytes.total",
    given={
        "title": f"{_UNIT} per device",
        "ticks": _TICKS,
    },
)
steps = _side_by_side(
    name="steps",
    title="One training step",
    what="Time of one step",
    table=STEP,
    mapping="step_breakdown_s",
    headline="step_s",
    given={
        "title": "seconds of one step",
        "ticks": "format(datum.value, ',~r')",
    },
)

SIDE_BY_SIDE = (memories, steps)
FIGURES = {
    "memory": memory,
    "step": step,
    "goodput": goodput,
    "communication": traffic,
    "sensitivity": tornado("days"),
}
# sections of the report, and the pictures that follow them; the first page ends before the plan
ORDER = (
    *("verdict", "sensitivity-picture", "brief", "signing"),
    *("plan", "cost", "specialist", "memory", "memory-picture", "step", "step-picture"),
    *("communication", "communication-picture", "recovery", "goodput-picture", "domains", "site"),
    *("sensitivity", "risks", "avoid", "evidence", "candidates"),
    *("assumptions", "quantities", "planes", "fabrics", "stores", "rollout", "evolution"),
)
