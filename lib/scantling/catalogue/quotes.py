"""A user's own table of prices beside the catalogue's."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import fields
from datetime import date
from itertools import chain

from ..base.errors import DesignError, plain
from ..base.files import read_text
from . import accelerator, prices
from .pricing import KINDS, QUOTE, newest
from .records import Price
from .words import RENTS

NUMBERS = ("value", "low", "high")


def prices_with(path) -> dict[str, dict[str, Price | None]]:
    """Prices by chip and kind of rent with the rows of a user's own table: `item` and `value` in
    each; `kind` (quote where left out), `date`, `provider`, `source` and other columns of the
    catalogue's table if they like. Raises DesignError for a row that is no price of a chip."""
    rows = csv.DictReader(io.StringIO(read_text(path)))
    own = [_price(row, f"{plain(str(path), 200)} line {i}") for i, row in enumerate(rows, 2)]
    if not own:
        raise DesignError(plain(str(path), 200), problem="holds no prices")
    rents = (*prices(category="rent"), *own)
    items = dict.fromkeys(p.item for p in own)
    return {
        item: {
            kind: newest(
                item,
                rents,
                kind,
            )
            for kind in RENTS
        }
        for item in items
    }


def _price(row: dict, where: str) -> Price:
    names = {f.name for f in fields(Price)}
    given = {k: v for k, v in row.items() if v}
    if None in row or given.keys() - names:
        raise DesignError(
            where,
            allowed="item, value and if you like kind, date, provider, source, low, high",
            problem="has other columns",
        )
    blank = dict.fromkeys(names, "") | {
        "category": "rent",
        "kind": QUOTE,
        "verified": "text",
    }
    blank |= {
        "unit": "USD/device-hour",
        "provider": "own",
        "source": "own table",
    }
    full = blank | {"date": date.today().isoformat()} | given
    kinds = (QUOTE, *chain(*KINDS.values()))
    if full["kind"] not in kinds:
        raise DesignError(
            f"{where}, kind",
            full["kind"],
            kinds,
        )
    return Price(
        **full
        | {"item": accelerator(full["item"], f"{where}, item").id}
        | {name: _number(full[name], f"{where}, {name}") for name in NUMBERS}
    )


def _number(text: str, where: str) -> float:
    try:
        value = float(text or "nan")
    except ValueError:
        value = -1.0
    if value <= 0 or value > 1e6 or math.isnan(value) and where.endswith("value"):
        raise DesignError(
            where,
            text,
            "USD per device-hour, above 0",
        )
    return value
