"""Tables and texts beside the modules, filled with a design's numbers; published facts by id."""

from functools import cache, reduce
from operator import getitem
from pathlib import Path

from scantling.base.records import Lines, Rows
from scantling.base.show import scalar
from scantling.base.words import Filler, table, table_rows

TABLES = Path(__file__).with_name("tables") / "texts"


def rows(name: str) -> Rows:
    """Rows of tables/NAME.csv."""
    return table_rows(TABLES, name)


def texts(name: str, *keys: str):
    """Texts of tables/NAME.yaml, or what stands there under those keys."""
    return reduce(getitem, keys, table(TABLES, name))


@cache
def constants() -> dict:
    """The numbers of tables/constants.csv, each with its source or marked there as judgement."""
    return {"nothing": 0.0} | {row["id"]: float(row["value"]) for row in rows("constants")}


def constant(id: str) -> float:
    """A number of tables/constants.csv."""
    return constants()[id]


class _Cells(Filler):
    """Cells of a table: text, numbers by name, rows that apply."""

    def number(self, path: str):
        """The value of `2.5`, `name`, `name.field` or `2.5 * name.field`."""
        factor, _, path = path.rpartition(" * ")
        if path[0].isdigit():
            return float(path)
        value = scalar(self.get_field(path, (), {})[0])
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
    return _Cells(values, site, constants()).fill(cell)


def lines(table, site=None, /, **values) -> Lines:
    """What the rows of a table `say`, those that apply."""
    return tuple(row["say"] for row in fill(table, site, **values))


def records(cls, table, site=None, /, **values) -> tuple:
    """One record of `cls` for each row of a table, filled."""
    return tuple(cls(**row) for row in fill(table, site, **values))


def columns(**of) -> Rows:
    """Rows of columns of one length: one mapping for each place in them."""
    return tuple(dict(zip(of, row)) for row in zip(*of.values()))
