"""Where wall time goes that is not training: the shares that failures and saves take."""

from __future__ import annotations

from .assessment_charts import figure, worded
from .words import label_or, share


def shares(given) -> dict:
    """Shares of wall time that are not productive, largest first, those that are nil left out."""
    badput = (given.get("endurance") or {}).get("badput") or {}
    return dict(sorted(((k, v) for k, v in badput.items() if v and v > 0), key=lambda kv: -kv[1]))


def _badput_rows(given) -> dict:
    lost, rows = shares(given), []
    room = 1.35 * max(lost.values(), default=0.0)  # for the figure beside the longest bar
    for key, value in lost.items():
        name, text = label_or(f"endurance.badput.{key}", key), share(value)
        rows.append(
            {
                "what": name,
                "room": room,
                "share": value,
                "text": text,
                "says": f"{name}: {text} of wall time",
            }
        )
    return {"lost": rows}


badput = figure("badput", _badput_rows)


# ---------------------------------------------------------------- spares
def _spares_rows(given, waiting=None) -> dict:
    """`waiting`: that of `scantling.endure.spares.waiting`."""
    if not waiting:
        return {"points": []}
    columns = (waiting[key] for key in ("spares", "shortage", "wait_chance"))
    rows = [dict(zip(("spares", "shortage", "chance"), row)) for row in zip(*columns, strict=True)]
    points = worded(
        "spares",
        "points",
        rows,
    )
    points = [point for point in points if point["shortage"] > 1e-7] or points[:1]
    shortage = {point["spares"]: point["shortage"] for point in points}
    names = {}
    for key, name in (("spares", "chosen"), ("spares_recommended", "cheapest")):
        if given.get(key) in shortage:
            names.setdefault(given[key], []).append(name)
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
        ],
    }


spares = figure("spares", _spares_rows)
