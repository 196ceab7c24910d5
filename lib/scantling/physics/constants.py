"""The calibrated constants: what each means, its prior with its source, and how a case gets its
value. The priors are the rows of catalogue/priors.csv.

A value is prior x exp(global + family + chip + effort offset), and of a stack where two unrelated
families of runs earn one. Offsets live in
catalogue/calibration.json, made by
`python -m tests.bench.validation.throughput_fit`; a family, chip or stack that is not there has
offset 0:
the sourced prior and a wider band.
"""

from dataclasses import field, make_dataclass
from functools import cache

import numpy as np

from ..base.files import csv_rows
from ..base.records import record
from ..catalogue.families import constants_of
from ..catalogue.load import HERE, fitted
from .memory import constants as memory_constants


@record
class Prior:
    """One constant before any fit.

    Attributes
    ----------
    value, unit, source
        What it is worth, in which unit, and who says so.
    sd : float
        How far a fit may move it for all runs alike: standard deviation of the log offset; 0:
        fixed.
    by : dict
        The same by level, {"family" | "chip" | "effort" | "stack": sd}; "site": where the run was
        made, in a fit alone.
    families : dict
        Chip family -> prior that replaces `value`.
    chips : dict
        Chip -> factor on top.
    """

    value: float
    unit: str
    source: str
    sd: float = 0.0
    by: dict[str, float] = field(default_factory=dict)
    families: dict[str, float] = field(default_factory=dict)
    chips: dict[str, float] = field(default_factory=dict)


def _numbers(cell: str) -> dict[str, float]:
    """ "hopper 0.72; tpu 0.86" as a mapping."""
    return {
        name: float(value)
        for name, value in (part.rsplit(" ", 1) for part in cell.split("; ") if part)
    }


def _priors() -> dict[str, Prior]:
    """The rows of catalogue/priors.csv by name."""
    return {
        row["name"]: Prior(
            value=float(row["value"]),
            unit=row["unit"],
            source=row["source"],
            sd=float(row["sd"]),
            by=_numbers(row["by"]),
            families=_numbers(row["families"]),
            chips=_numbers(row["chips"]),
        )
        for row in csv_rows(HERE / "priors.csv")
    }


PRIORS: dict[str, Prior] = _priors()

Constants = make_dataclass(
    "Constants",
    [*((name, object) for name in PRIORS), ("memory", object, memory_constants.GENERIC)],
    frozen=True,
    namespace={
        "__module__": __name__,  # where it is found again: it can be pickled
        "__doc__": (
            "One value or column per constant of PRIORS, in its unit; `memory` holds those of the "
            "memory model."
        ),
    },
)


def calibration() -> dict:
    """The fit that ships with the kit: offsets, their support, and the bands of its errors."""
    return fitted("calibration")


def gather(families, chips, stacks, offsets: dict | None = None, tuned=0.0) -> Constants:
    """Constants for each case, from the names of its chip family, chip and stack (str or arrays of
    str), and whether its recipe is tuned (0 or 1).

    Unknown names have offset 0. Scalars give scalars; arrays of shape (n,) give columns where a
    constant differs.
    """
    names = families, chips, stacks, efforts(tuned)
    if offsets is None and all(isinstance(each, str) for each in names):
        return _shipped(*names)
    return _gather(*names, calibration()["offsets"] if offsets is None else offsets)


def efforts(tuned):
    """ "tuned" or "typical", one name or a column."""
    names = np.where(np.asarray(tuned) > 0, "tuned", "typical")
    return names if names.ndim else str(names)


@cache
def _shipped(*names: str) -> Constants:
    """The constants that ship with the kit for one chip and stack: every chunk of a search asks."""
    return _gather(*names, calibration()["offsets"])


def _gather(families, chips, stacks, effort, offsets: dict) -> Constants:
    families = constants_of(families)
    levels = {"effort": effort, "family": families, "chip": chips, "stack": stacks}
    columns = {}
    for name, prior in PRIORS.items():
        moved = offsets.get(name, {})
        value = _lookup(families, prior.families, prior.value)
        offset = moved.get("global", 0.0) + sum(
            _lookup(names, moved.get(level, {}), 0.0) for level, names in levels.items()
        )
        columns[name] = value * _lookup(chips, prior.chips, 1.0) * np.exp(offset)
    return Constants(**columns, memory=memory_constants.gather(stacks))


def _lookup(names, table: dict, default: float):
    """The table's value of each name; one number where the table is empty or the name is one."""
    if not table:
        return default
    if isinstance(names, str) or names is None:
        return table.get(names, default)
    unique, inverse = np.unique(np.asarray(names, dtype=str), return_inverse=True)
    return np.array([table.get(u, default) for u in unique])[inverse]
