"""Several designs side by side: what was asked where it differs, the plans, the figures."""

from collections.abc import Iterable, Mapping

from ..base.displayed import Displayed
from ..base.errors import DesignError
from ..base.quantities.table import band_in, quantity, show
from ..base.records import Lines, at, record
from ..base.show import is_number, shown
from ..base.words import table
from ..design.design import Design
from ..verdict.record import Assessment
from ..verdict.verdicts import VERDICTS
from .explanation import plain

SHOWN = table(__file__, "comparison")
MANY = 1e6  # from here a number is said with a suffix


@record
class Row:
    """One line of a comparison. `group`: asked, plan or figure; `values` as JSON has them, `cells`
    as text with units, `bands` the 80 % band of each or an empty text."""

    group: str
    key: str
    label: str
    values: tuple
    cells: Lines
    bands: Lines

    @property
    def differs(self) -> bool:
        """Whether the designs do not all say the same."""
        return any(value != self.values[0] for value in self.values)


@record
class Comparison(Displayed):
    """Designs side by side: their names, and rows of which those that differ stand first."""

    names: Lines
    rows: tuple[Row, ...]

    def as_dict(self) -> dict:
        """Names, and the rows as plain data."""
        return {"names": list(self.names), "rows": [vars(row) for row in self.rows]}

    def cells(self) -> list[list[str]]:
        """Lines of a table: the names, then label and a cell a design; the verdict leads, then what
        differs."""
        rows = sorted(self.rows, key=lambda row: (row.key != "verdict", not row.differs))
        lines = (
            [f"{cell} ({band})" if band else cell for cell, band in zip(row.cells, row.bands)]
            for row in rows
        )
        return [["", *self.names], *([row.label, *line] for row, line in zip(rows, lines))]

    def markdown(self) -> str:
        """The comparison as a Markdown table."""
        names, *lines = self.cells()
        lines = [names, ["---"] + ["---:"] * len(self.names), *lines]
        # a name is data: it cannot end its column
        clean = ([cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
        return "\n".join("| " + " | ".join(line) + " |" for line in clean) + "\n"

    __repr__ = Displayed.__repr__


def compare(assessments: Iterable[Assessment]) -> Comparison:
    """Set assessments side by side: the fields asked that differ, the plans, the figures.

    Raises DesignError for fewer than two.
    """
    from_all = list(assessments)
    if len(from_all) < 2:
        raise DesignError(problem="one design has nothing to be compared with; name two or more")
    asked = [flat(one.design.data()) for one in from_all]
    fields = dict.fromkeys(field for one in asked for field in one if field != "name")
    rows = [_row("asked", field, field, [one.get(field) for one in asked]) for field in fields]
    results = [{"verdict": one.verdict, **one.headline()} for one in from_all]
    return Comparison(
        names=tuple(one.resolved.name for one in from_all),
        rows=(*(row for row in rows if row.differs), *plans(results), *figures(results)),
    )


def figures(results: list[Mapping]) -> list[Row]:
    """A row for each headline figure that any of the results (`design --json`) has."""
    return _rows("figure", SHOWN["figures"], results)


def plans(results: list[Mapping]) -> list[Row]:
    """A row for each field in which the plans of the results differ."""
    rows = _rows("plan", [f"plan.{field}" for field in SHOWN["plan"]], results)
    return [row for row in rows if row.differs]


def _rows(group: str, keys: Iterable[str], results: list[Mapping]) -> list[Row]:
    rows = []
    for key in keys:
        values = [at(result, key) for result in results]
        if any(value is not None for value in values):
            bands = tuple(band_in(result, key) for result in results)
            rows.append(_row(group, key, quantity(key).label, values, bands))
    return rows


def _row(group: str, key: str, label: str, values: list, bands: Lines = ()) -> Row:
    return Row(
        group=group,
        key=key,
        label=label,
        values=tuple(values),
        cells=tuple(_cell(group, key, value) for value in values),
        bands=bands or ("",) * len(values),
    )


def _cell(group: str, key: str, value) -> str:
    """A value as text; of what was asked a long number with its suffix."""
    if key == "verdict":
        return VERDICTS[value].name
    if group != "asked":
        return show(key, value)
    if value is None:
        return "not given"
    return shown(value, "params") if is_number(value) and abs(value) >= MANY else plain(value)


def changed(before: Design, after: Design) -> dict[str, tuple]:
    """{path: (before, after)} of the fields in which two designs differ."""
    a = flat(before.data())
    b = flat(after.data())
    paths = dict.fromkeys([*a, *b])
    return {p: (a.get(p), b.get(p)) for p in paths if a.get(p) != b.get(p)}


def flat(data: Mapping, prefix: str = "") -> dict:
    """Nested fields by dotted path."""
    out = {}
    for key, value in data.items():
        path = f"{prefix}{key}"
        out |= flat(value, f"{path}.") if isinstance(value, Mapping) else {path: value}
    return out
