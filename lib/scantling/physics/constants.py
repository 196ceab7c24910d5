"""The calibrated constants: what each means, its prior with its source, and how a case gets its
value. The priors are the rows of catalogue/priors.csv.

A value is prior x exp(global + family + chip + stack offset). Offsets live in
catalogue/calibration.json, made by
`python -m scantling.evidence.calibrate.throughput`; a family, chip or stack that is not there has
offset 0:
the sourced prior and a wider band.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from ..catalogue.families import constants_of
from .memory import constants as memory_constants


@dataclass(
    frozen=True,
    kw_only=True,
)
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
        The same by level, {"family" | "chip" | "stack" | "pair": sd}; a pair is a stack on a chip.
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
    with (files("scantling.catalogue") / "priors.csv").open(
        newline="",
        encoding="utf-8",
    ) as file:
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
            for row in csv.DictReader(file)
        }


PRIORS: dict[str, Prior] = _priors()

Constants = make_dataclass(
    "Constants",
    [*((name, object) for name in PRIORS), ("memory", object, memory_constants.GENERIC)],
    frozen=True,
)
Constants.__doc__ = (
    "One value or column per constant of PRIORS, in its unit; `memory` holds those of the "
    "memory model."
)


@cache
def calibration() -> dict:
    """The fit that ships with the kit: offsets, their support, and the bands of its errors."""
    return json.loads((files("scantling.catalogue") / "calibration.json").read_text())


def gather(
    families,
    chips,
    stacks,
    offsets: dict | None = None,
) -> Constants:
    """Constants for each case, from the names of its chip family, chip and stack (str or arrays of
    str).

    Unknown names have offset 0. Scalars give scalars; arrays of shape (n,) give columns where a
    constant differs.
    """
    if offsets is None and all(isinstance(each, str) for each in (families, chips, stacks)):
        return _shipped(families, chips, stacks)
    return _gather(
        families,
        chips,
        stacks,
        calibration()["offsets"] if offsets is None else offsets,
    )


@cache
def _shipped(
    family: str,
    chip: str,
    stack: str,
) -> Constants:
    """The constants that ship with the kit for one chip and stack: every chunk of a search asks."""
    return _gather(
        family,
        chip,
        stack,
        calibration()["offsets"],
    )


def _gather(
    families,
    chips,
    stacks,
    offsets: dict,
) -> Constants:
    families = constants_of(families)
    levels = {
        "family": families,
        "chip": chips,
        "stack": stacks,
        "pair": pairs(stacks, chips),
    }
    columns = {}
    for name, prior in PRIORS.items():
        fitted = offsets.get(name, {})
        value = _lookup(families, prior.families, prior.value)
        offset = fitted.get("global", 0.0) + sum(
            _lookup(levels[level], fitted.get(level, {}), 0.0) for level in prior.by
        )
        columns[name] = value * _lookup(chips, prior.chips, 1.0) * np.exp(offset)
    return Constants(
        **columns,
        memory=memory_constants.gather(stacks),
    )


def pairs(stacks, chips):
    """ "stack on chip", one name or a column."""
    if isinstance(stacks, (str, type(None))) and isinstance(chips, (str, type(None))):
        return f"{stacks} on {chips}"
    stacks, chips = np.broadcast_arrays(
        np.asarray(stacks, dtype=object), np.asarray(chips, dtype=object)
    )
    return np.array([f"{s} on {c}" for s, c in zip(stacks, chips)])


def _lookup(
    names,
    table: dict,
    default: float,
):
    """The table's value of each name; one number where the table is empty or the name is one."""
    if not table:
        return default
    if isinstance(names, str) or names is None:
        return table.get(names, default)
    unique, inverse = np.unique(np.asarray(names, dtype=str), return_inverse=True)
    return np.array([table.get(u, default) for u in unique])[inverse]
