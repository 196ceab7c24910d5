"""Tables that the command line prints: short, in the units of the field, dense peaks and one
direction. Their columns stand in listing.yaml."""

from math import isnan
from operator import attrgetter
from types import SimpleNamespace

from ..base.errors import DesignError
from ..base.words import table
from . import accelerators, fabrics, nodes, price, storages
from .models.entries import entries
from .models.shape import parameters
from .stacks import stacks

KINDS = ("accelerators", "fabrics", "models", "stacks", "nodes", "storage", "prices")


def _clean(value):
    """nan becomes None, so that the JSON is valid; whole numbers print whole."""
    if isinstance(value, float):
        if isnan(value):
            return None
        value = float(f"{value:.6g}")
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    return list(value) if isinstance(value, tuple) else value


def _records(kind: str):
    """The records whose fields listing.yaml names."""
    if kind == "models":
        for entry in entries().values():
            count = parameters(entry.model)
            yield SimpleNamespace(entry=entry, params=int(count.total), active=int(count.active))
    elif kind == "prices":
        yield from (
            SimpleNamespace(id=name, price=found)
            for name in accelerators()
            if (found := price(name))
        )
    else:
        tables = {"nodes": nodes, "fabrics": fabrics, "storage": storages}
        yield from tables.get(kind, accelerators)().values()


def listing(kind: str) -> list[dict]:
    """Rows of `scantling catalogue KIND` as plain dictionaries; KIND is one of KINDS."""
    if kind not in KINDS:
        raise DesignError("catalogue", kind, KINDS)
    if kind == "stacks":
        rows = ({"id": name} | vars(stack) for name, stack in stacks().items())
        return [{k: _clean(v) for k, v in row.items() if k != "name"} for row in rows]
    return [
        {name: _clean(_value(record, at)) for name, at in table(__file__, "listing")[kind].items()}
        for record in _records(kind)
    ]


def _value(record, at):
    path, factor = at if isinstance(at, list) else (at, None)
    value = attrgetter(path)(record)
    return value * factor if factor else None if value == "" else value
