"""What a prompt and a notebook show of a result: a short table."""

from collections.abc import Mapping
from html import escape
from typing import Any

from .errors import plain
from .records import record

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
        rows = [row if isinstance(row, Mapping) else vars(row) for row in self]
        names = [n for n, value in rows[0].items() if not is_many(value)] if rows else []
        return [names, *([cell(row.get(name)) for name in names] for row in rows)]


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
