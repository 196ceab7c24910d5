"""The two pictures at the centre of a design review: memory per stage against the HBM line, and the
step in time.

Each figure here and in the `charts_…` modules is a function from an assessment to an Altair chart:
`charts.memory(result)` for a report, `charts.memory.live()` for the desk.
"""

from scantling.physics.memory.peak import SAFE_SHARE

from ..words import at
from .chart import figure, laid, shown_on, text, worded
from .palette import MEMORY, STEP, ink_on

_LINE = 0.06  # a line of text, as a share of the height of the memory picture


# ---------------------------------------------------------------- memory
def stages(given) -> list[dict]:
    """Memory per pipeline stage; where only the fullest stage is known, that one."""
    alone = {"stage": 0, "layers": None}
    return list(given.get("memory_by_stage") or [alone | given["memory_bytes"]])


def fullest(given) -> dict:
    return max(stages(given), key=lambda row: row["total"])


def _memory_rows(given, reference=None) -> dict:
    table, worst = stages(given), fullest(given)
    capacity = given["memory_bytes"]["capacity"]
    at, safe = worst["total"], SAFE_SHARE * capacity
    top = max(capacity, at) * 1.1
    line = _LINE * top
    for level in (safe, capacity):  # the label stands on its bar, or on the line
        at = level if 0 <= level - at < line else at  # that it would cross
    hbm, usable, words = (text("memory", t, capacity=capacity) for t in ("hbm", "usable", "safe"))
    zones = (
        (safe - 1.7 * line, "safe"),
        (0.9 * capacity, "tight"),
        (capacity + 1.25 * line, "over"),
    )
    here = {row["stage"] for row in table}
    both = [row for row in stages(reference or given) if row["stage"] in here]
    return {
        "parts": [
            part
            for row in table
            for part in worded(
                "memory",
                "parts",
                laid(MEMORY, row),
                stage=row["stage"],
                of=f" ({row['layers']} layers)" if row.get("layers") else "",
            )
        ],
        "lines": [
            {"level": safe, "kind": "safe", "says": "80 %", "long": words},
            {"level": capacity, "kind": "full", "says": hbm, "long": usable},
        ],
        "marks": worded("memory", "marks", [worst], at=at),
        # a tick at the memory of the reference design, stage by stage
        "ghost": worded("memory", "ghost", both if reference else []),
        "zones": [{"level": level, "says": says} for level, says in zones],
        "over": worded(
            "memory",
            "over",
            [row | {"over": row["total"] - capacity} for row in table if row["total"] > capacity],
            capacity=capacity,
        ),
        "frame": [{"level": top, "stage": str(table[0]["stage"])}],
    }


def _memory_words(given, reference=None) -> str:
    worst = fullest(given)
    parts = (
        text("memory", "part", name=part["part"].lower(), size=part["size"])
        for part in laid(MEMORY, worst)
    )
    facts = worst | {"parts": ", ".join(parts), "capacity": given["memory_bytes"]["capacity"]}
    return text("memory", "words", **facts)


memory = figure(
    "memory", _memory_rows, _memory_words, given=shown_on("memory_bytes.total", "{} per device")
)


# ---------------------------------------------------------------- step
_ON, _UNDER, _REFERENCE = "exposed", "hidden", "reference"
_PIXELS, _LETTER = 380, 6.6  # a label is drawn where it has room


def _segments(parts: dict, row: str, total: float, longest: float = 0.0) -> list[dict]:
    """The parts of one row of the step, laid end to end; labelled where the row of `longest` has
    room for it."""
    out = []
    for part in laid(STEP, parts):
        name, time = part["part"], part["size"]
        room = _PIXELS * time / longest if longest else 0
        labels = (text("step", "label", **part), name, "")
        more = {
            "mid": (part["start"] + part["end"]) / 2,
            "label": next(t for t in labels if len(t) * _LETTER < room or not t),
            "ink": ink_on(part["hue"]),
            "of_step": text("step", "share", share=time / total) if total else "",
        }
        out.append(part | more)
    return worded("step", "segments", out, row=row)


def _step_rows(given, reference=None) -> dict:
    total, shown = given["step_s"], [_ON, _UNDER]
    low, high = given.get("step_s_low", total), given.get("step_s_high", total)
    band = {"low": low, "high": high, "step": total}
    solid = _segments(
        given["step_breakdown_s"],
        _ON,
        total,
        high if reference is None else max(high, reference["step_s"]),
    )
    pale = _segments(given.get("hidden_s") or {}, _UNDER, total)
    seen = [
        point
        for point in at(given, "measured_here.steps.points") or ()
        if point["devices"] == given["devices_used"]
    ]
    if reference is not None:
        solid += _segments(reference["step_breakdown_s"], _REFERENCE, reference["step_s"])
        shown.append(_REFERENCE)
    return {
        "solid": [row for row in solid if row["end"] > row["start"]],
        # one stays in any case: an empty table upsets the scales
        "pale": [r for r in pale if r["end"] > r["start"] or r["part"] == STEP["tp"][0]],
        "band": worded("step", "band", [band], row=_ON),
        "seen": worded("step", "seen", seen, row=_ON),
        "rows": [{"row": row, "zero": 0.0} for row in shown],
    }


step = figure("step", _step_rows)
