"""The two pictures at the centre of a design review: memory per stage against the HBM line, and the
step in time.

Each figure here and in the `charts_…` modules is a function from an assessment to an Altair chart:
`charts.memory(result)` for a report, `charts.memory.live()` for the desk.
"""

from __future__ import annotations

from scantling.physics.memory.peak import SAFE_SHARE

from .figures import figure, stacked
from .palette import MEMORY, STEP, ink_on
from .words import axis, share, show

_TOTAL = "memory_bytes.total"
_LINE = 0.06  # a line of text, as a share of the height of the memory picture


# ---------------------------------------------------------------- memory
def stages(given) -> list[dict]:
    """Memory per pipeline stage; where only the fullest stage is known, that one."""
    table = given.get("memory_by_stage")
    return (
        list(table)
        if table
        else [
            {
                "stage": 0,
                "layers": None,
                **given["memory_bytes"],
            }
        ]
    )


def fullest(given) -> dict:
    return max(stages(given), key=lambda row: row["total"])


def _memory_rows(given, pinned=None) -> dict:
    table, worst = stages(given), fullest(given)
    capacity = given["memory_bytes"]["capacity"]
    top = max(capacity, worst["total"]) * 1.1
    at = worst["total"]
    for level in (SAFE_SHARE * capacity, capacity):  # the label stands on its bar, or on the line
        at = level if 0 <= level - at < _LINE * top else at  # that it would cross
    over = [row for row in table if row["total"] > capacity] or [
        {
            **table[0],
            "total": capacity,
        }
    ]
    return {
        "parts": [part for row in table for part in _parts(row)],
        "lines": [
            {
                "level": SAFE_SHARE * capacity,
                "kind": "safe",
                "says": "80 %",
                "long": "80 % of usable memory: below it, published estimates did not run out",
            },
            {
                "level": capacity,
                "kind": "full",
                "says": f"{show(_TOTAL, capacity)} HBM",
                "long": f"{show(_TOTAL, capacity)} of memory that a program can use",
            },
        ],
        "marks": [
            {
                "stage": str(worst["stage"]),
                "level": worst["total"],
                "at": at,
                "says": f"▾ {show(_TOTAL, worst['total'])}",
            }
        ],
        "ghost": _ghost(table, pinned),
        "zones": [
            {
                "level": SAFE_SHARE * capacity - 1.7 * _LINE * top,
                "says": "safe",
            },
            {
                "level": 0.9 * capacity,
                "says": "tight",
            },
            {
                "level": capacity + 1.25 * _LINE * top,
                "says": "over",
            },
        ],
        "over": [
            {
                "stage": str(row["stage"]),
                "from": capacity,
                "to": row["total"],
                "says": f"stage {row['stage']}: {show(_TOTAL, row['total'] - capacity)} over",
            }
            for row in over  # a bar of no height where nothing is over
        ],
        "frame": [
            {
                "stage": str(table[0]["stage"]),
                "level": top,
            }
        ],
    }


def _parts(row) -> list[dict]:
    """The stacked parts of one stage."""
    layers = f" ({row['layers']} layers)" if row.get("layers") else ""
    return [
        {
            "stage": str(row["stage"]),
            "part": name,
            "start": start,
            "end": end,
            "says": f"stage {row['stage']}{layers} · {name}: {show(_TOTAL, float(row[part]))}",
        }
        for (part, (name, _)), start, end in zip(
            MEMORY.items(), *stacked([row[part] for part in MEMORY])
        )
    ]


def _ghost(table, pinned) -> list[dict]:
    """A tick at the memory of the pinned design, stage by stage."""
    if pinned is None:
        return [
            {
                "stage": str(table[0]["stage"]),
                "level": table[0]["total"],
                "seen": 0,
                "says": "",
            }
        ]
    before = {str(row["stage"]): row["total"] for row in stages(pinned)}
    both = [str(row["stage"]) for row in table if str(row["stage"]) in before]
    return [
        {
            "stage": stage,
            "level": before[stage],
            "seen": 1,
            "says": f"pinned design, stage {stage}: {show(_TOTAL, before[stage])}",
        }
        for stage in both
    ]


def _memory_words(given, pinned=None) -> str:
    worst, capacity = fullest(given), given["memory_bytes"]["capacity"]
    parts = (f"{name.lower()} {show(_TOTAL, worst[part])}" for part, (name, _) in MEMORY.items())
    return (
        f"Memory per device by pipeline stage. The fullest, stage {worst['stage']}, "
        f"holds {show(_TOTAL, worst['total'])} of {show(_TOTAL, capacity)} usable: "
        f"{', '.join(parts)}."
    )


_UNIT, _TICKS = axis(_TOTAL)
memory = figure(
    "memory",
    _memory_rows,
    _memory_words,
    given={
        "title": f"{_UNIT} per device",
        "ticks": _TICKS,
    },
)


# ---------------------------------------------------------------- step
_ON, _UNDER, _PINNED = "exposed", "hidden", "pinned"
_PIXELS, _LETTER = 380, 6.6  # a label is drawn where it has room


def _segments(
    parts: dict,
    row: str,
    total: float,
    longest: float = 0.0,
) -> list[dict]:
    """The parts of one row of the step, laid end to end; labelled where the row of `longest` has
    room for it."""
    amounts = [float(parts.get(part) or 0.0) for part in STEP]
    out = []
    for (name, hue), value, start, end in zip(STEP.values(), amounts, *stacked(amounts)):
        time = show("step_s", value)
        room = _PIXELS * value / longest if longest else 0
        label = next((t for t in (f"{name} {time}", name) if len(t) * _LETTER < room), "")
        of_step = f", {share(value / total)} of the step" if total else ""
        out.append(
            {
                "row": row,
                "part": name,
                "start": start,
                "end": end,
                "mid": (start + end) / 2,
                "label": label,
                "ink": ink_on(hue),
                "says": f"{name} ({row}): {time}{of_step}",
            }
        )
    return out


def _step_rows(given, pinned=None) -> dict:
    total = given["step_s"]
    low, high = given.get("step_s_low", total), given.get("step_s_high", total)
    longest = max(high, pinned["step_s"] if pinned is not None else 0.0)
    solid = _segments(
        given["step_breakdown_s"],
        _ON,
        total,
        longest,
    )
    pale = _segments(given.get("hidden_s") or {}, _UNDER, total)
    if pinned is not None:
        solid += _segments(pinned["step_breakdown_s"], _PINNED, pinned["step_s"])
    shown = [_ON, _UNDER, *([_PINNED] if pinned is not None else [])]
    return {
        "solid": [row for row in solid if row["end"] > row["start"]],
        # one stays in any case: an empty table upsets the scales
        "pale": [r for r in pale if r["end"] > r["start"] or r["part"] == STEP["tp"][0]],
        "band": [
            {
                "row": _ON,
                "low": low,
                "high": high,
                "says": f"80 % band of the step: {show('step_s', low)} to {show('step_s', high)}",
            }
        ],
        "rows": [
            {
                "row": row,
                "zero": 0.0,
            }
            for row in shown
        ],
    }


def _step_words(given, pinned=None) -> str:
    parts = given["step_breakdown_s"].items()
    longest = sorted(((v or 0.0, STEP[k][0]) for k, v in parts if k in STEP), reverse=True)[:5]
    named = ", ".join(f"{name.lower()} {show('step_s', v)}" for v, name in longest if v > 0)
    return f"One step takes {show('step_s', given['step_s'])}. Largest parts: {named}."


step = figure("step", _step_rows, _step_words)
