"""What a prompt and a notebook show of a result: a short table."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from .errors import DesignError, plain
from .records import at, record

if TYPE_CHECKING:
    from pandas import DataFrame

MOST = 1500  # characters at a prompt
CELL = 60
Cells = list[list[Any]]  # of a table: lines of as many cells each


def clipped(text: str) -> str:
    """A text that a prompt has room for."""
    return text if len(text) < MOST else text[: MOST - 3] + "…"


def is_many(value: Any) -> bool:
    """Whether a value is a collection, which no cell holds."""
    return isinstance(value, (Mapping, list, tuple))


def cell(value: Any) -> str:
    """A value in one cell: numbers with six digits, how many entries a collection has."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if is_many(value):
        return f"{len(value)} entries"
    return "—" if value is None else str(value)


class Displayed:
    """A result that shows `cells`, one list a line, below its `heading`."""

    @property
    def heading(self) -> str:
        """What stands above the table."""
        return ""

    def cells(self) -> Cells:
        """Lines of the table; all have as many cells."""
        raise NotImplementedError

    def __repr__(self) -> str:
        cut = [[plain(text, CELL) for text in line] for line in self.cells()]
        widths = [max(map(len, column)) for column in zip(*cut)]
        lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in cut)
        return clipped("\n".join(filter(None, (self.heading, *lines))))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        lines = ("".join(f"<td>{escape(text)}</td>" for text in line) for line in self.cells())
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<p><b>{escape(self.heading)}</b></p><table>{body}</table>"


class Table(Displayed, list[Any]):
    """Rows, mappings or records of one kind, shown by their columns of single values."""

    def cells(self) -> Cells:
        rows = self._rows()
        names = [n for n, value in rows[0].items() if not is_many(value)] if rows else []
        return [names, *([cell(row.get(name)) for name in names] for row in rows)]

    def _rows(self) -> list[Mapping[str, Any]]:
        return [row if isinstance(row, Mapping) else vars(row) for row in self]

    def sorted_by(self, column: str, descending: bool = False) -> "Table":
        """The same rows in the order of a column, dotted below a mapping ("likely.days",
        "figures.mfu"); rows that have no value there come last.

        Raises DesignError for a column that no row has, with the nearest.
        """
        keyed = [(at(row, column), own) for row, own in zip(self._rows(), self)]
        known = [pair for pair in keyed if pair[0] is not None]
        if self and not known:
            columns = dict.fromkeys(name for row in self._rows() for name in _flat(row))
            if column not in columns:
                raise DesignError("column", column, columns)
        known.sort(key=lambda pair: pair[0], reverse=descending)
        return Table([own for _, own in known] + [own for value, own in keyed if value is None])

    def to_frame(self) -> "DataFrame":
        """The rows as a pandas data frame, a column for each value; mappings inside a row become
        columns with dotted names.

        Raises DesignError with the line that installs pandas, where it is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise DesignError(
                "to_frame",
                problem="needs pandas, which is not installed",
                allowed="pip install 'scantling[learn]'",
            ) from None
        return pd.DataFrame([_flat(row) for row in self._rows()])


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its mappings laid out, by dotted names."""
    out: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            out |= {f"{name}.{inner}": one for inner, one in _flat(value).items()}
        else:
            out[name] = value
    return out


class Figures(Displayed, dict[str, Any]):
    """Figures by name, one a line."""

    def cells(self) -> Cells:
        return [[str(name), cell(value)] for name, value in self.items()]


@record
class Html:
    """HTML that a notebook shows, with plain words for programs that cannot."""

    html: str
    words: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.words


def markdown(text: str) -> str:
    """Markdown as HTML, foreign markup escaped."""
    import mistune

    return str(mistune.create_markdown(plugins=["table"])(text)).strip()
