"""Where wall time goes that is not training: the shares that failures and saves take."""

from ..desk.table import TABLES
from ..words import label_or
from .chart import figure, records, worded


def shares(given) -> list[dict]:
    """Name and share of each part of wall time that is not productive, largest first, those that
    are nil left out."""
    badput = (given.get("endurance") or {}).get("badput") or {}
    rows = [
        {
            "name": label_or(f"endurance.badput.{key}", key.replace("_", " ").capitalize()),
            "share": value,
        }
        for key, value in badput.items()
        if value and value > 0
    ]
    return sorted(rows, key=lambda row: -row["share"])


def _badput_rows(given) -> dict:
    lost = shares(given)
    room = 1.35 * lost[0]["share"] if lost else 0.0  # for the figure beside the longest bar
    return {"lost": worded("badput", "lost", lost, room=room)}


badput = figure("badput", _badput_rows)


# ---------------------------------------------------------------- spares
def _spares_rows(given, waiting=None) -> dict:
    """`waiting`: that of `scantling.endure.spares.waiting`."""
    if not waiting:
        return {"points": []}
    keys = ("spares", "shortage", "wait_chance")
    points = worded("spares", "points", records({key: waiting[key] for key in keys}))
    points = [point for point in points if point["shortage"] > 1e-7] or points[:1]
    shortage = {point["spares"]: point["shortage"] for point in points}
    names = {}
    for key, name in (("spares", "chosen"), ("spares_recommended", "cheapest")):
        names.setdefault(given.get(key), []).append(name)
    return {
        "points": points,
        "marks": [
            {
                "spares": n,
                "shortage": shortage[n],
                "side": "right" if 2 * n >= max(shortage) else "left",
                "says": f"{n}: " + ",\n".join(said),
            }
            for n, said in names.items()
            if n in shortage
        ],
    }


spares = figure("spares", _spares_rows)


# ---------------------------------------------------------------- the ladder
def _ladder_rows(given, rungs=()) -> dict:
    """`rungs`: the ladder of the blueprint's part `recovery`; the sizes as tables.yaml heads
    them."""
    sizes = TABLES["ladder"]["labels"]
    rows = [
        {"measure": rung["measure"], "size": sizes[key], "goodput": rung[key]}
        for key in sizes
        for rung in rungs
    ]
    return {"rungs": worded("ladder", "rungs", rows), "half": [{"at": 0.5}] if rows else []}


ladder = figure("ladder", _ladder_rows)
