"""Sweeps over one or two inputs: a line with what is out of reach below it, or a map with the edge
of what is feasible."""

from collections.abc import Sequence

from scantling.verdict.verdicts import VERDICTS

from ..words import MORE_IS_BETTER, label, show, split
from .chart import figure, hatch, shown_on

KEYS = ("days", "step_s", "mfu", "cost_usd", "goodput")
_SHORT = {"over": "memory", "impossible": "impossible", "refused": "not legal"}
_HUES = ["#2b83ba", "#fff3c4"]


def kind(cell) -> str:
    """feasible, missed (a stated limit), over (memory), impossible or refused."""
    if cell.verdict == "constraint-missed":
        return "over" if (cell.memory_share or 0) > 1 else "missed"
    known = VERDICTS.get(cell.verdict)
    if known is None or cell.verdict == "impossible":
        return cell.verdict
    return "feasible" if known.met else "missed"


def shows(cell, key) -> bool:
    """Whether a cell has a figure that a plan which fits would reach."""
    return cell.figures.get(key) is not None and kind(cell) != "over"


def says(head: str, cell, key) -> str:
    """One cell in words."""
    if not shows(cell, key):
        return f"{head}: {_SHORT.get(kind(cell), kind(cell))}. {cell.why}".rstrip(". ")
    return f"{head}: {show(key, cell.figures[key])}" + (f"; {cell.why}" if cell.why else "")


# ---------------------------------------------------------------- one input
def _line_rows(
    given, cells: Sequence = (), texts: Sequence = (), key="days", name="", now: int = -1
) -> dict:
    """`cells`: those of `scantling.advise.sweeps`, in order; `texts`: the swept value of each in
    words; `now`: the one on the desk."""
    points, none = [], []
    for i, (cell, text) in enumerate(zip(cells, texts)):
        row = {
            "at": text,
            "says": says(f"{name} {text}", cell, key),
            "pick": -1 if cell.verdict == "refused" else i,
        }
        if shows(cell, key):
            value = cell.figures[key]
            points.append(row | {"value": value, "kind": kind(cell)})
        else:
            none.append(row | {"short": _SHORT.get(kind(cell), "no figure")})
    return {
        "points": points,
        "none": none,
        "now": [row for row in points if row["pick"] == now],
        "order": [{"at": text} for text in texts[: len(cells)]],
    }


line = {
    key: figure(
        "sweep",
        _line_rows,
        lead=f"{label(key)} over one input:",
        name=f"sweep-{key}",
        title=f"{label(key)} over one input",
        given=shown_on(key) | {"along": None},
    )
    for key in KEYS
}


# ---------------------------------------------------------------- two inputs
def _heat_rows(
    given,
    cells: Sequence = (),
    rows: Sequence = (),
    columns: Sequence = (),
    key="days",
    names=("", ""),
    now: int = -1,
) -> dict:
    """`cells` row by row: those of `rows` x `columns` that are worked out so far; rows and columns
    are the values in words."""
    good, bad, free, wide = [], [], {}, len(columns)
    places = [{"x": column, "y": row} for row in rows for column in columns]
    for i, (cell, place) in enumerate(zip(cells, places)):
        how = kind(cell)
        free[divmod(i, wide)] = how == "feasible"
        row = place | {"says": says(f"{names[0]} {place['y']}, {names[1]} {place['x']}", cell, key)}
        if shows(cell, key):
            value = cell.figures[key]
            mark, faint = (" !", 0.45) if how == "missed" else ("", 1.0)
            more = {
                "value": value,
                "text": split(show(key, value))[0] + mark,
                "pick": i,
                "faint": faint,
            }
            good.append(row | more)
        else:
            more = {
                "text": _SHORT.get(how, "–"),
                "pick": -1 if how in ("refused", "impossible") else i,
            }
            bad.append(row | more)

    def edge(down, right):
        """The cells whose neighbour is feasible where they are not, or the other way round."""
        return [
            places[r * wide + c]
            for (r, c), ok in free.items()
            if free.get((r + down, c + right), ok) != ok
        ]

    return {
        "good": good,
        "bad": bad,
        "right": edge(0, 1),
        "below": edge(1, 0),
        "now": [places[now]] if 0 <= now < len(cells) else [],
    }


def _heat_words(given, names=("", ""), key="days", **more) -> str:
    data = _heat_rows(given, names=names, key=key, **more)
    return (
        f"{label(key)} over {names[0]} and {names[1]}: {len(data['good'])} combinations have a "
        f"figure, {len(data['bad'])} do not fit or are not legal. "
        f"{'; '.join(row['says'] for row in data['good'][:12])}."
    )


heat = {
    key: figure(
        "map",
        _heat_rows,
        _heat_words,
        name=f"map-{key}",
        title=f"{label(key)} over two inputs",
        given={
            "hues": _HUES[::-1] if key in MORE_IS_BETTER else _HUES,
            "hatch": hatch("#8a8f9866", 5, "#8a8f981f"),
            "along": None,
            "across": None,
        },
    )
    for key in KEYS
}
