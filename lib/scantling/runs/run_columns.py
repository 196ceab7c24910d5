"""The columns of a table of runs: run_columns.csv, and an empty table with each explained."""

import csv
import difflib
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from ..base.files import csv_rows
from ..base.records import record
from ..catalogue import HERE
from ..catalogue.stacks import software_switches

LEADING = "#"  # a line of explanation above the header
NUMBERS = ("count", "number")  # kinds of columns
# columns of the published tables that say where a row comes from and what was measured
ABOUT = (
    "source",
    "family",
    "locator",
    "verified",
    "trust",
    "setup",
    "params_b",
    "active_params_b",
    "measured_from",
    "claim_convention",
    "measured_peak_memory_gb",
    "mfu_pct",
    "hfu_pct",
    "outcome",
    "fold",
    "notes",
)
ALIKE = 0.75  # of their letters: a name of a column is taken for another's misspelt


@record
class RunColumn:
    """A column of a table of runs."""

    column: str  # its name
    unit: str
    kind: str  # text, word, count (a whole number), number
    low: str  # bounds of a number
    high: str
    example: str
    description: str

    @property
    def explanation(self) -> str:
        """The line that explains it."""
        bounds = f", {self.low} to {self.high}" if self.low else ""
        unit = f" [{self.unit}]" if self.unit else ""
        return f"{LEADING} {self.column}{unit} ({self.kind}{bounds}): {self.description}\n"


class Bounds(NamedTuple):
    """What a number of a table may be."""

    low: float
    high: float
    whole: bool = False

    @property
    def words(self) -> str:
        """What is allowed, in words."""
        what = "a whole number" if self.whole else "a number"
        return f"{what} from {self.low:.15g} to {self.high:.15g}"


@cache
def columns() -> dict[str, RunColumn]:
    """The columns of a table of runs by name."""
    return {row["column"]: RunColumn(**row) for row in csv_rows(HERE / "run_columns.csv")}


def bounds() -> dict[str, Bounds]:
    """The bounds of every column of numbers of the format."""
    return {
        name: Bounds(float(c.low), float(c.high), whole=c.kind == "count")
        for name, c in columns().items()
        if c.kind in NUMBERS
    }


def switch_bounds() -> dict[str, Bounds]:
    """The bounds of switches of the software, which a table may have as columns."""
    return {name: Bounds(switch.low, switch.high) for name, switch in software_switches().items()}


def misspelt(names: Iterable[str], others: Collection[str]) -> dict[str, str]:
    """Which of some names of columns look like a column of the format and are none: that column.
    `others` are further names that mean something."""
    known = {*columns(), *switch_bounds(), *others}
    bare = {name.replace("_", ""): name for name in columns()}
    found = {}
    for name in names:
        if name in known:
            continue
        letters = "".join(c for c in name.lower() if c.isalnum())
        matches = difflib.get_close_matches(letters, bare, 1, ALIKE)
        if matches:
            found[name] = bare[matches[0]]
    return found


def plan_switches() -> list[RunColumn]:
    """Switches of the software that a design's plan or job sets, as columns of a table."""
    return [
        RunColumn(
            column=name,
            unit="",
            kind="number",
            low=f"{switch.low:.15g}",
            high=f"{switch.high:.15g}",
            example="",
            description=f"{switch.meaning} ({switch.field} of a design); blank: the stack's",
        )
        for name, switch in software_switches().items()
        if switch.field and name not in columns()
    ]


def template(rows: Sequence[Mapping[str, Any]] = ()) -> str:
    """A table of runs, every column explained above the header: one worked row, or those given,
    with columns of their own behind."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    every = [*columns().values(), *plan_switches()]
    names = [column.column for column in every]
    others = [name for name in dict.fromkeys(chain(*rows)) if name not in names]
    writer.writerow([*names, *others])
    if not rows:
        writer.writerow(column.example for column in every)
    for row in rows:
        writer.writerow(cell(row.get(name)) for name in [*names, *others])
    return "".join(column.explanation for column in every) + table.getvalue()


def cell(value: Any) -> str:
    """A value of a row as text that gives it back to the last digit; blank where there is none."""
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:.17g}"
