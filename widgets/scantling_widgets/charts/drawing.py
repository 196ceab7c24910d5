"""One function that draws what the library returns of many plans or designs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scantling.advise.comparison import Comparison
from scantling.advise.explanation import plain
from scantling.advise.sweeps import Cell, comparable
from scantling.base.errors import DesignError

from .altair_loader import alt
from .figure import WIDTH
from .plans import candidates, compared
from .sweeps import KEYS, heat, line, titled_axes

FASTEST = 60  # plans of a search that a picture holds


def chart(
    result: Comparison | Sequence[Cell] | Mapping[str, Sequence[Any]],
    key: str = "likely.days",
    names: Sequence[str] = ("", ""),
) -> alt.TopLevelMixin:
    """The Altair chart of what `search`, `sweep` or `compare` returned.

    A search : its fastest plans by memory and step time, those that no other beats on both joined.
    A sweep : over one input a line, over two a map with the edge of what is feasible; `key`:
    likely.days, step_s, mfu_shown, mfu, likely.cost_usd or goodput; `names`: of the inputs.
    A comparison : a bar a design for each figure that differs.
    Raises DesignError for another result and another key.
    """
    if isinstance(result, Comparison):
        return compared({}, result)
    if hasattr(result, "attrs") and not isinstance(result, Sequence):
        return _search(result)
    if key not in KEYS:
        raise DesignError("key", key, KEYS)
    if not result or not isinstance(result, list):
        raise DesignError("chart", type(result).__name__, "what search, sweep or compare returned")
    return _sweep(comparable(result), key, names)


def _search(table: Mapping[str, Sequence[Any]]) -> alt.TopLevelMixin:
    """The fastest plans of a table of plans by column."""
    columns = {str(name): list(table[name])[:FASTEST] for name in table}
    plans = [dict(zip(columns, row)) for row in zip(*columns.values())]
    return candidates({"candidates": plans})


def _sweep(cells: Sequence[Cell], key: str, names: Sequence[str]) -> alt.TopLevelMixin:
    """A sweep over one input, or over two."""
    texts = [
        list(dict.fromkeys(map(plain, values))) for values in zip(*(cell.at for cell in cells))
    ]
    if len(texts) == 1:
        spec = line[key].static(WIDTH, True, {}, cells, texts[0], key, names[0])
        return alt.Chart.from_dict(titled_axes(spec, {"x": names[0]}))
    down, across = texts
    named = (names[0], names[1])
    spec = heat[key].static(WIDTH, True, {}, cells, down, across, key, named)
    return alt.Chart.from_dict(titled_axes(spec, {"x": names[1], "y": names[0]}))
