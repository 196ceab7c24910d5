"""Rows of the catalogue with others in their place for a while: what a design comes to under the
rows of another day."""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from ..base.errors import DesignError
from . import (
    _accelerators,
    _fabrics,
    _nodes,
    _optimizers,
    _storages,
    failure_presets,
    instead_of_prices,
    price,
)
from .families import families
from .load import forget
from .stacks import every_stack

PRICES = "prices/"


def _tables() -> dict[str, MutableMapping[str, Any]]:
    """The records of each table by id and alias."""
    return {
        "accelerators": _accelerators(),
        "fabrics": _fabrics(),
        "failure_presets": failure_presets(),
        "families": families(),
        "nodes": _nodes(),
        "optimizers": _optimizers(),
        "stacks": every_stack(),
        "storage": _storages(),
    }


def row(name: str) -> Any:
    """The record of a row: `accelerators/h100-sxm`, `prices/h100-sxm/on-demand`; None where there
    is none."""
    if name.startswith(PRICES):
        chip, _, kind = name.removeprefix(PRICES).rpartition("/")
        return price(chip, kind) if chip in _accelerators() else None
    table, _, id = name.partition("/")
    return _tables().get(table, {}).get(id)


@contextmanager
def replaced(rows: Mapping[str, Any]) -> Iterator[None]:
    """Inside, the catalogue has these records in place of its own: {name as of `row`: record}.

    For one thread: the tables are those of the process. Raises DesignError for a row that the
    catalogue has not.
    """
    for name in rows:
        if row(name) is None:
            raise DesignError("rows", name, list(_tables()), problem="is no row of the catalogue")
    tables = _tables()
    before = {name: dict(records) for name, records in tables.items()}
    try:
        for name, record in rows.items():
            if name.startswith(PRICES):
                chip, _, kind = name.removeprefix(PRICES).rpartition("/")
                instead_of_prices[chip, kind] = record
                continue
            table, _, id = name.partition("/")
            now = tables[table][id]
            for word, one in before[table].items():
                if one is now:
                    tables[table][word] = record
        forget()
        yield
    finally:
        for name, records in before.items():
            tables[name].update(records)
        instead_of_prices.clear()
        forget()
