"""A table on the page: sorts in the browser, downloads as CSV, may offer an action per row."""

from collections.abc import Callable, Mapping, Sequence

from scantling.base import words

from ..words import label, show
from .legend import Opens


def cell(text: str, sort=None, mark: str = "", hint: str = "", key: str = "") -> dict:
    """One cell: what it says, what it sorts and downloads by, a mark (good, warn, bad), a hint, and
    the quantity it opens to."""
    out = {"text": text, "sort": text if sort is None else sort}
    for name, value in (("mark", mark), ("hint", hint), ("key", key)):
        if value:
            out[name] = value
    return out


# what tables.yaml says of each table, by name
TABLES = words.table(__file__, "tables")


def said(key: str, record: Mapping) -> str:
    """The text of a number of a record, by its key in the table of quantities."""
    return show(key, record.get(key.rpartition(".")[2]))


class Table(Opens):
    """The table that tables.yaml describes under `name`: columns [{key, label, align, hint}] and
    rows of cells; `action` says what the first cell of a row does. What a cell with a key opens to
    is explained by the facts of its row, set by `fill`.
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

    def __init__(
        self,
        name: str,
        on_pick: Callable[[int], None] | None = None,
        *,
        explain: Callable | None = None,
        text: Callable | None = None,
    ):
        about = TABLES[name]
        super().__init__(
            explain,
            file_name=name,
            cls=about.get("class", ""),
            **{key: about[key] for key in self.STATE if key in about},
        )
        self.about, self.text = about, text or said
        self.names, self.prefix = list(about["names"]), about.get("prefix", "")
        self.columns = self.headed(self.names)
        if on_pick is not None:
            self.on("picked", lambda picked: on_pick(int(picked["index"])))

    def headed(self, names, labels: Mapping = {}, left=()) -> list[dict]:
        """The columns of `names` with their heads, by `labels` or the table of quantities; those of
        `left` hold words, beside those of the table."""
        about, own = self.about, self.about["names"]
        said = about.get("labels", {}) | (own if isinstance(own, Mapping) else {}) | labels
        return [
            {
                "key": name,
                "label": said.get(name) or label(self.quantity(name)),
                "align": "left" if name in (*about["left"], *left) else "",
                "wrap": name in about.get("wrap", ()),
            }
            for name in names
        ]

    def cells(self, record: Mapping, names=None) -> list[dict]:
        """The cells of one record, of all columns where no names are given."""
        about, out = self.about, []
        for name in names or self.names:
            key, value = self.quantity(name), record.get(name)
            closed = name not in about["opens"] if "opens" in about else name in about["left"]
            if "own" in about and not isinstance(value, (int, float)):
                value, closed = None, True
            out.append(cell(self.text(key, record), value, key="" if closed else key))
        return out

    def show(self, records: Sequence[Mapping]) -> None:
        """Put records into the table, a row each."""
        self.fill([self.cells(record) for record in records], records)

    def quantity(self, name: str) -> str:
        """The key of a column in the table of quantities."""
        return self.about.get("quantities", {}).get(name, self.prefix + name)

    def pick(self, index: int) -> None:
        """What the browser does when the user chooses a row; for scripts and tests."""
        self.nudge("picked", index=index)

    def fill(self, rows: list, facts: Sequence[Mapping] = ()) -> None:
        """Put rows into the table, with the facts that the numbers of each are explained by."""
        self._facts = facts
        self.rows = rows
