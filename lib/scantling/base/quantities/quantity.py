"""What every number of an assessment means and how it is shown: label, unit, formula, inputs,
source, convention.

The one place for such texts is quantities.csv: tooltips, the glossary, the report's appendix and
the command line read it. Keys are those of
`scantling design --json`, dotted below a mapping (`memory_bytes.weights`); a column of a list
stands under the list (`candidates.mfu`).
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from re import sub
from typing import Any

from ..errors import closest
from ..files import csv_rows
from ..records import Lines, at, record
from ..show import shown


@record
class Quantity:
    """One number of an assessment. `kind` says how it is shown; `unit` is the unit inside and in
    JSON, `formula` plain notation over `inputs`."""

    key: str
    label: str
    kind: str
    unit: str
    formula: str
    inputs: Lines = ()
    source: str = ""
    convention: str = ""

    @property
    def axis_unit(self) -> str:
        """The unit on a chart's axis, where all values of this quantity share one."""
        return _AXIS.get(self.kind, (self.unit, 1.0))[0]

    @property
    def scale(self) -> float:
        """Divide a value by this to have it in `axis_unit`."""
        return _AXIS.get(self.kind, (self.unit, 1.0))[1]


_AXIS = {
    "bytes": ("GB", 1e9),
    "share": ("%", 0.01),
    "bytes_per_s": ("GB/s", 1e9),
    "flops": ("TFLOP/s", 1e12),
    "params": ("B", 1e9),
    "usd": ("USD", 1.0),
    "kwh": ("MWh", 1e3),
    "watts": ("MW", 1e6),
    "mass": ("t", 1e3),
}


@cache
def table() -> dict[str, Quantity]:
    """All quantities by key, in the order of the contract."""
    rows = csv_rows(Path(__file__).with_name("quantities.csv"))
    return {row["key"]: Quantity(**row | {"inputs": tuple(row["inputs"].split())}) for row in rows}


@cache
def quantity(key: str) -> Quantity:
    """The quantity of that key; list positions are ignored (`candidates[3].mfu` is
    `candidates.mfu`). Raises KeyError for an unknown one."""
    key = sub(r"\[\d+\]", "", key)
    try:
        return table()[key]
    except KeyError:
        near = closest(key, table())
        raise KeyError(f"no quantity {key!r}" + (f"; nearest: {near}" if near else "")) from None


def show(key: str, value: Any) -> str:
    """`value` of quantity `key` as people read it, unit included: show("mfu", 0.413) is "41.3 %". A
    dash where there is none."""
    return shown(value, quantity(key).kind, quantity(key).unit)


def band(key: str, low: Any, high: Any) -> str:
    """A band as people read it: band("mfu", 0.38, 0.43) is "38.0 to 43.0 %"; the unit once where
    both ends share it."""
    a = show(key, low)
    b = show(key, high)
    head, _, unit = a.rpartition(" ")
    return f"{head} to {b}" if head and b.endswith(" " + unit) else f"{a} to {b}"


def band_in(values: Mapping[str, Any], key: str) -> str:
    """The band of a quantity whose two ends, KEY_low and KEY_high, stand in nested mappings;
    nothing where they do not, and where both are one."""
    ends = [at(values, key + end) for end in ("_low", "_high")]
    return "" if None in ends or len({*ends}) < 2 else band(key, *ends)
