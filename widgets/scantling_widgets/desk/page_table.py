"""A table on the page: sorts in the browser, downloads as CSV, may offer an action per row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Required, TypedDict

from scantling.base.quantities.quantity import show
from scantling.base.records import at, of_quantity

from ..quantity_texts import label
from .legend import Explain, Facts, Opens
from .panel_tables import TableSpec


class Cell(TypedDict, total=False):
    """One cell as it travels to the page."""

    text: Required[str]
    sort: Required[Any]  # what it sorts and downloads by
    mark: str  # good, warn or bad
    hint: str
    key: str  # of the quantity that it opens to


class Heading(TypedDict):
    """One column as it travels to the page."""

    key: str
    label: str
    align: str
    wrap: bool


Row = Sequence[Cell | str]


def cell(text: str, sort: Any = None, mark: str = "", hint: str = "", key: str = "") -> Cell:
    """One cell: what it says, what it sorts and downloads by, a mark (good, warn, bad), a hint, and
    the quantity it opens to."""
    out = Cell(text=text, sort=text if sort is None else sort)
    if mark:
        out["mark"] = mark
    if hint:
        out["hint"] = hint
    if key:
        out["key"] = key
    return out


def record_text(key: str, record: Facts) -> str:
    """The text of a number of a record, by its key in the table of quantities: a key of the whole
    result, or one whose last part is a field of the record."""
    return show(key, of_quantity(record, key))


class Table(Opens):
    """A table: columns [{key, label, align, hint}] and rows of cells; `action` says what the first
    cell of a row does. What a cell with a key opens to is explained by the facts of its row, set by
    `fill`.
    """

    KIND, HEARS = "table", ("asked", "picked")
    STATE = {
        "label": "table",
        "columns": (),
        "rows": (),
        "note": "",
        "action": "",
        "chosen": -1,
        "empty": "Nothing to list for this design.",
        "sortable": True,
        "file_name": "table",
        "picked": {},
    }

    label: str
    columns: Sequence[Heading]
    rows: Sequence[Row]
    note: str
    action: str
    chosen: int
    empty: str
    sortable: bool
    file_name: str
    picked: Mapping[str, Any]

    def __init__(
        self,
        spec: TableSpec,
        on_pick: Callable[[int], None] | None = None,
        *,
        explain: Explain | None = None,
        text: Callable[[str, Facts], str] = record_text,
    ) -> None:
        super().__init__(
            explain,
            file_name=spec.file_name,
            cls=spec.cls,
            label=spec.label,
            action=spec.action,
            empty=spec.empty,
            sortable=spec.sortable,
        )
        self.spec, self.text = spec, text
        self.names = list(spec.names)
        self.columns = self.headed(self.names)
        if on_pick is not None:
            self.on("picked", lambda picked: on_pick(int(picked["index"])))

    def headed(
        self,
        names: Iterable[str],
        labels: Mapping[str, str] | None = None,
        left: Iterable[str] = (),
    ) -> list[Heading]:
        """The columns of `names` with their heads, by `labels` or the table of quantities; those of
        `left` hold words, beside those of the table."""
        spec, heads = self.spec, {**self.spec.labels, **(labels or {})}
        of_words = {*spec.left, *left}
        return [
            Heading(
                key=name,
                label=heads.get(name) or label(spec.quantity(name)),
                align="left" if name in of_words else "",
                wrap=name in spec.wrap,
            )
            for name in names
        ]

    def cells(self, record: Facts, names: Iterable[str] | None = None) -> list[Cell]:
        """The cells of one record, of all columns where no names are given."""
        return [self._cell(record, name) for name in names or self.names]

    def _cell(self, record: Facts, name: str) -> Cell:
        key, value = self.spec.quantity(name), at(record, name)
        opens = self.spec.open_to_formula(name)
        if self.spec.extra_lines and not isinstance(value, (int, float)):
            value, opens = None, False
        return cell(self.text(key, record), value, key=key if opens else "")

    def show(self, records: Sequence[Facts]) -> None:
        """Put records into the table, a row each."""
        self.fill([self.cells(record) for record in records], records)

    def pick(self, index: int) -> None:
        """What the browser does when the user chooses a row; for scripts and tests."""
        self.nudge("picked", index=index)

    def fill(self, rows: Sequence[Row], facts: Sequence[Facts] = ()) -> None:
        """Put rows into the table, with the facts that the numbers of each are explained by."""
        self._facts = facts
        self.rows = rows
