"""Tables and texts beside the modules, filled with a design's numbers; published facts by id."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from string import Formatter

import numpy as np
import yaml

from .. import catalogue
from ..base.show import several

TABLES = Path(__file__).parent / "tables"


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    """Rows of tables/NAME.csv."""
    with open(
        TABLES / f"{name}.csv",
        newline="",
        encoding="utf-8",
    ) as file:
        return tuple(csv.DictReader(file))


@cache
def texts(name: str) -> dict:
    """Texts of tables/NAME.yaml."""
    return yaml.safe_load((TABLES / f"{name}.yaml").read_text(encoding="utf-8"))


@cache
def constant(id: str) -> float:
    """A number of tables/constants.csv, each with its source or marked there as judgement."""
    return {row["id"]: float(row["value"]) for row in rows("constants")}[id]


class _Names(Formatter):
    """Names in a template or a cell: those given, else the site's own, else constants."""

    def __init__(
        self,
        site,
        values: dict,
    ):
        self.site, self.values = site, values

    def get_value(
        self,
        key,
        args,
        kwargs,
    ):
        if key in self.values:
            return self.values[key]
        return getattr(self.site, key) if hasattr(self.site, key) else constant(key)

    def format_field(
        self,
        value,
        format_spec,
    ):
        if format_spec.startswith("#"):
            return several(value, format_spec[1:])
        scale, _, spec = format_spec.rpartition("|")
        return format(value / float(scale) if scale else value, spec)

    def number(self, path: str):
        """The value of `2.5`, `name`, `name.field` or `2.5 * name.field`."""
        factor, _, path = path.rpartition(" * ")
        if path.replace(".", "", 1).isdigit():
            return float(path)
        first, *rest = path.split(".")
        value = self.get_value(first, (), {})
        for key in rest:
            value = value[key] if isinstance(value, dict) else getattr(value, key)
        if isinstance(value, np.ndarray | np.generic) and value.size == 1:
            value = value.item()
        return float(factor) * value if factor else value

    def fill(self, cell):
        if isinstance(cell, dict):
            return {k: self.fill(v) for k, v in cell.items() if k != "when"}
        if isinstance(cell, list | tuple):
            return tuple(self.fill(v) for v in cell if self.wanted(v))
        if not isinstance(cell, str):
            return cell
        return self.number(cell[1:]) if cell.startswith("=") else self.format(cell)

    def wanted(self, row) -> bool:
        """False for a row whose `when` names something empty or false."""
        when = row.get("when") if isinstance(row, dict) else None
        return not when or bool(self.number(when))


def fill(cell, site=None, /, **values):
    """A text, row or list of rows of a table with names replaced by a design's numbers.

    `{days:.1f}`, `{e.mtbf_s:,.0f}`, `{size:1e9|.2f}` (divided by 1e9) and `{have:#spare}` ('1
    spare', '2 spares') stand in texts; a cell
    that is a number is `=3.0`, `=name`, `=e.mtbf_s` or `=10 * step_s`. A name is one of `values`,
    else of the site, else of tables/constants.csv. A row with `when: name` is left out where that
    is empty.
    """
    return _Names(site, values).fill(cell)


def lines(table, site=None, /, **values) -> tuple[str, ...]:
    """What the rows of a table `say`, those that apply."""
    return tuple(row["say"] for row in fill(table, site, **values))


def records(cls, table, site=None, /, **values) -> tuple:
    """One record of `cls` for each row of a table, filled."""
    return tuple(cls(**row) for row in fill(table, site, **values))


def number(id: str) -> float:
    """The figure of a published fact (catalogue/reliability.csv), in the unit printed there. Raises
    ValueError where it is not one number."""
    value = _facts()[id].number
    if value != value:
        raise ValueError(f"{id} is not one number: {_facts()[id].value!r}")
    return value


def source(*ids: str) -> str:
    """Title and place of published facts, for a reader."""
    return "; ".join(dict.fromkeys(f"{_facts()[i].title}, {_facts()[i].locator}" for i in ids))


@cache
def _facts() -> dict:
    return {f.id: f for f in catalogue.reliability_facts()}
