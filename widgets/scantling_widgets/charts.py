"""The two pictures at the centre of a design review: memory per stage against the HBM line, and the
step in time.

Each figure here and in the `charts_…` modules is a function from an assessment to an Altair chart:
`charts.memory(result)` for a report, `charts.memory.live()` for the desk.
"""

from __future__ import annotations

from scantling.physics.memory.peak import SAFE_SHARE

from .assessment_charts import figure, stacked, text, worded
from .palette import MEMORY, STEP, ink_on
from .words import axis

_LINE = 0.06  # a line of text, as a share of the height of the memory picture


# ---------------------------------------------------------------- memory
def stages(given) -> list[dict]:
    """Memory per pipeline stage; where only the fullest stage is known, that one."""
    alone = {
        "stage": 0,
        "layers": None,
    }
    return list(given.get("memory_by_stage") or [alone | given["memory_bytes"]])


def fullest(given) -> dict:
    return max(stages(given), key=lambda row: row["total"])


def _level(level: float, **more) -> dict:
    return {
        "level": level,
        **more,
    }


def _memory_rows(given, reference=None) -> dict:
    table, worst = stages(given), fullest(given)
    capacity = given["memory_bytes"]["capacity"]
    at, safe = worst["total"], SAFE_SHARE * capacity
    top = max(capacity, at) * 1.1
    line = _LINE * top
    for level in (safe, capacity):  # the label stands on its bar, or on the line
        at = level if 0 <= level - at < line else at  # that it would cross
    over = [row for row in table if row["total"] > capacity]
    over = over or [table[0] | {"total": capacity}]  # a bar of no height where nothing is over
    hbm, usable, words = (text("memory", t, capacity=capacity) for t in ("hbm", "usable", "safe"))
    return {
        "parts": [part for row in table for part in _parts(row)],
        "lines": [
            _level(
                safe,
                kind="safe",
                says="80 %",
                long=words,
            ),
            _level(
                capacity,
                kind="full",
                says=hbm,
                long=usable,
            ),
        ],
        "marks": worded(
            "memory",
            "marks",
            [worst],
            at=at,
        ),
        "ghost": _ghost(table, reference),
        "zones": [
            _level(safe - 1.7 * line, says="safe"),
            _level(0.9 * capacity, says="tight"),
            _level(capacity + 1.25 * line, says="over"),
        ],
        "over": worded(
            "memory",
            "over",
            [row | {"over": row["total"] - capacity} for row in over],
            capacity=capacity,
        ),
        "frame": [_level(top, stage=str(table[0]["stage"]))],
    }


def _parts(row) -> list[dict]:
    """The stacked parts of one stage."""
    of = f" ({row['layers']} layers)" if row.get("layers") else ""
    amounts = [row[part] for part in MEMORY]
    keys = ("name", "bytes", "start", "end")
    parts = zip((name for name, _ in MEMORY.values()), amounts, *stacked(amounts))
    return worded(
        "memory",
        "parts",
        [dict(zip(keys, part)) for part in parts],
        stage=row["stage"],
        of=of,
    )


def _ghost(table, reference) -> list[dict]:
    """A tick at the memory of the reference design, stage by stage."""
    if reference is None:
        return [
            _level(
                table[0]["total"],
                stage=str(table[0]["stage"]),
                seen=0,
                says="",
            )
        ]
    here = {row["stage"] for row in table}
    both = [row for row in stages(reference) if row["stage"] in here]
    return worded(
        "memory",
        "ghost",
        both,
        seen=1,
    )


def _memory_words(given, reference=None) -> str:
    worst, capacity = fullest(given), given["memory_bytes"]["capacity"]
    return text(
        "memory",
        "words",
        **worst
        | {
            "parts": ", ".join(
                text(
                    "memory",
                    "part",
                    name=name.lower(),
                    bytes=worst[part],
                )
                for part, (name, _) in MEMORY.items()
            ),
            "capacity": capacity,
        },
    )


_UNIT, _TICKS = axis("memory_bytes.total")
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
_ON, _UNDER, _REFERENCE = "exposed", "hidden", "reference"
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
    for (name, hue), time, start, end in zip(STEP.values(), amounts, *stacked(amounts)):
        room = _PIXELS * time / longest if longest else 0
        labels = (
            text(
                "step",
                "label",
                name=name,
                time=time,
            ),
            name,
            "",
        )
        of_step = text("step", "share", share=time / total) if total else ""
        out.append(
            {
                "row": row,
                "part": name,
                "start": start,
                "end": end,
                "mid": (start + end) / 2,
                "label": next(t for t in labels if len(t) * _LETTER < room or not t),
                "ink": ink_on(hue),
                "says": text(
                    "step",
                    "part",
                    name=name,
                    row=row,
                    time=time,
                    of_step=of_step,
                ),
            }
        )
    return out


def _step_rows(given, reference=None) -> dict:
    total, shown = given["step_s"], [_ON, _UNDER]
    low, high = given.get("step_s_low", total), given.get("step_s_high", total)
    longest = high if reference is None else max(high, reference["step_s"])
    solid = _segments(
        given["step_breakdown_s"],
        _ON,
        total,
        longest,
    )
    pale = _segments(given.get("hidden_s") or {}, _UNDER, total)
    if reference is not None:
        solid += _segments(reference["step_breakdown_s"], _REFERENCE, reference["step_s"])
        shown.append(_REFERENCE)
    band = {
        "low": low,
        "high": high,
    }
    return {
        "solid": [row for row in solid if row["end"] > row["start"]],
        # one stays in any case: an empty table upsets the scales
        "pale": [r for r in pale if r["end"] > r["start"] or r["part"] == STEP["tp"][0]],
        "band": [{"row": _ON} | band | {"says": text("step", "band", **band)}],
        "rows": [
            {
                "row": row,
                "zero": 0.0,
            }
            for row in shown
        ],
    }


def _step_words(given, reference=None) -> str:
    parts = ((v or 0.0, STEP[k][0]) for k, v in given["step_breakdown_s"].items() if k in STEP)
    longest = sorted(parts, reverse=True)[:5]
    named = (
        text(
            "step",
            "named",
            name=name.lower(),
            time=v,
        )
        for v, name in longest
        if v > 0
    )
    return text(
        "step",
        "words",
        step=given["step_s"],
        parts=", ".join(named),
    )


step = figure("step", _step_rows, _step_words)
