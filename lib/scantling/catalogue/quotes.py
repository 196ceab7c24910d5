"""A user's own table of prices beside the catalogue's."""

import csv
import io
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

from ..base.errors import DesignError, plain
from ..base.files import read_table_text
from ..base.records import fields_of
from ..base.typed import DATES, is_date
from . import accelerator, price, prices
from .load import filled
from .pricing import KINDS, QUOTE, newest
from .rows import Price
from .words import RENTS

NUMBERS = ("value", "low", "high")
SHOWN = ("value", "low", "high", "date", "notes", "source")


def prices_with(path: str | Path) -> dict[str, dict[str, Price | None]]:
    """Prices by chip and kind of rent with the rows of a user's own table: `item` and `value` in
    each; `kind` (quote where left out), `date`, `provider`, `source` and other columns of the
    catalogue's table if they like. Raises DesignError for a row that is no price of a chip."""
    try:
        rows = [
            *csv.DictReader(
                io.StringIO(read_table_text(path, "a table of prices as CSV"), newline="")
            )
        ]
    except csv.Error as e:
        raise DesignError(plain(path, 200), problem=f"cannot be read as CSV: {e}") from None
    quotes = [_price(row, f"{plain(path, 200)} line {i}") for i, row in enumerate(rows, 2)]
    if not quotes:
        raise DesignError(plain(path, 200), problem="holds no prices")
    rents = (*prices(category="rent"), *quotes)
    items = dict.fromkeys(p.item for p in quotes)
    return {item: {kind: newest(item, rents, kind) for kind in RENTS} for item in items}


def price_rows(
    accelerator_id: str | None = None, table: str | Path | None = None
) -> list[dict[str, Any]]:
    """Prices of a device-hour by kind of rent, [{accelerator, kind, value, low, high, date, notes,
    source}] in USD: of one chip, or of those in a user's own table."""
    if table is not None:
        quotes = prices_with(table)
    else:
        chip = accelerator(accelerator_id or "").id
        quotes = {chip: {kind: price(chip, kind) for kind in RENTS}}
    return [
        {"accelerator": item, "kind": kind, **fields_of(quote, SHOWN)}
        for item, kinds in quotes.items()
        for kind, quote in kinds.items()
    ]


QUOTE_DEFAULTS = {
    "category": "rent",
    "kind": QUOTE,
    "verified": "text",
    "unit": "USD/device-hour",
    "provider": "own",
    "source": "own table",
}


def _price(row: Mapping[str, str], place: str) -> Price:
    stated = {k: v for k, v in row.items() if v}
    names = [f.name for f in fields(Price)]
    if None in row or stated.keys() - {*names}:
        raise DesignError(
            place,
            allowed="item, value and if you like kind, date, provider, source, low, high",
            problem="has other columns",
        )
    full = dict.fromkeys(names, "") | QUOTE_DEFAULTS | {"date": date.today().isoformat()} | stated
    kinds = (QUOTE, *chain(*KINDS.values()))
    if full["kind"] not in kinds:
        raise DesignError(f"{place}, kind", full["kind"], kinds)
    full["item"] = accelerator(full["item"], f"{place}, item").id
    if not is_date(full["date"]):
        raise DesignError(f"{place}, date", full["date"], DATES)
    for name in [n for n in NUMBERS if n == "value" or n in stated]:
        text = stated.get(name, "")
        with suppress(ValueError):
            if 0 < float(text) <= 1e6:
                continue
        raise DesignError(f"{place}, {name}", text, "USD per device-hour, above 0")
    (price,) = filled(Price, [full])
    return price
