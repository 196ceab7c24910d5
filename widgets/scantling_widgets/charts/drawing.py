"""One function that draws what the library returns of many plans or designs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scantling.advise.comparison import Comparison
from scantling.advise.sweeps import Cell
from scantling.base.errors import DesignError
from scantling.base.show import is_number

from ..words import plain
from . import sweeps as charts_sweeps
from .chart import figure, worded
from .plans import candidates

FASTEST = 60  # plans of a search that a picture holds


def _compared_rows(given) -> dict:
    """A bar a design for each figure in which the designs differ; designs are numbered, since two
    may share a name."""
    bars = [
        vars(row) | dict(zip(("rank", "design", "value", "cell"), one))
        for row in given["rows"]
        if row.group == "figure" and row.differs
        for one in zip(range(1, 99), given["names"], row.values, row.cells)
        if is_number(one[2])
    ]
    return {"bars": worded("compared", "bars", bars)}


compared = figure("compared", _compared_rows)


def chart(
    result: Comparison | Sequence[Cell] | Mapping,
    key: str = "days",
    names: Sequence[str] = ("", ""),
) -> Any:
    """The Altair chart of what `search`, `sweep` or `compare` returned.

    A search : its fastest plans by memory and step time, those that no other beats on both joined.
    A sweep : over one input a line, over two a map with the edge of what is feasible; `key`: days,
    step_s, mfu, cost_usd or goodput; `names`: of the inputs.
    A comparison : a bar a design for each figure that differs.
    Raises DesignError for another result and another key.
    """
    if isinstance(result, Comparison):
        return compared(vars(result))
    if hasattr(result, "attrs"):
        columns = [list(column)[:FASTEST] for column in dict(result).values()]
        return candidates({"candidates": [dict(zip(result, row)) for row in zip(*columns)]})
    if key not in charts_sweeps.KEYS:
        raise DesignError("key", key, charts_sweeps.KEYS)
    if not result or not isinstance(result, list):
        raise DesignError("chart", type(result).__name__, "what search, sweep or compare returned")
    ways = [[*dict.fromkeys(map(plain, values))] for values in zip(*(cell.at for cell in result))]
    several = ways[1:]
    titles = dict(zip(("across", "along"), names)) if several else {"along": names[0]}
    drawn = (charts_sweeps.heat if several else charts_sweeps.line)[key]
    return replace(drawn, given=drawn.given | titles)(
        {},
        cells=result,
        key=key,
        **dict(zip(("rows", "columns") if several else ("texts",), ways)),
        **{"names": names} if several else {"name": names[0]},
    )
