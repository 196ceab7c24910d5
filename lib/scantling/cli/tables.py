"""Tables without rules, as the commands print them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

NAME = 9  # width of the names in front of lines
TONES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red"}  # of verdicts
# heads of columns of words: they are set left and wrap
WORDS = (
    "law",
    "measurement",
    "input",
    "a step down",
    "a step up",
    "verdict",
    "plan",
    "accelerator",
    "kind",
    "from",
    "file",
    "note",
    "stack",
    "source",
    "constant",
    "unit",
)


class Look(NamedTuple):
    """How a column of a bare table looks."""

    header: str = ""
    style: StyleType | None = None
    justify: Literal["left", "right"] = "left"
    no_wrap: bool = False
    overflow: Literal["fold", "ellipsis"] = "ellipsis"
    min_width: int | None = None  # letters


DIM = Look(style="dim")
NUMBER = Look(justify="right")
LABEL = Look(style="dim", no_wrap=True)


def named_line(name: str, text: str, style: str = "dim") -> Text:
    """A line behind its name."""
    return Text(f"{name:<{NAME}}", style=style).append(text, style="default")


def bare(rows: Iterable[Sequence[RenderableType]], *looks: Look) -> Table:
    """A table without rules, with a line of heads where a column has one."""
    grid = Table(
        box=None, pad_edge=False, header_style="dim", show_header=any(look.header for look in looks)
    )
    for look in looks:
        grid.add_column(
            look.header,
            style=look.style,
            justify=look.justify,
            no_wrap=look.no_wrap,
            overflow=look.overflow,
            min_width=look.min_width,
        )
    for row in rows:
        grid.add_row(*row)
    return grid


def figures(rows: Iterable[Sequence[RenderableType]], last: str = "") -> Table:
    """A table of a label, a number and what `last` names."""
    return bare(rows, LABEL, Look(justify="right", no_wrap=True), Look(header=last))


def _whole(head: str, cells: Iterable[str]) -> Look:
    """A column set right, as wide as its widest cell."""
    width = max(map(cell_len, (head, *cells)))
    return Look(header=head, justify="right", no_wrap=True, overflow="fold", min_width=width)


def print_table(
    out: Console,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    words: Collection[str] = WORDS,
) -> None:
    """A bare table; the columns named in `words` are set left and wrap, the others right and
    whole. It takes the console's width, or the least width that holds its numbers where that is
    more."""
    lines = [list(row) for row in rows]
    looks = [
        Look(header=head, overflow="fold")
        if head in words
        else _whole(head, [line[at] for line in lines])
        for at, head in enumerate(heads)
    ]
    grid = bare(lines, *looks)
    wide = out.options.update(max_width=1000)
    out.print(grid, width=max(out.width, Measurement.get(out, wide, grid).minimum), crop=False)


def print_rows(out: Console, rows: Iterable[Mapping[str, str]], heads: Sequence[str] = ()) -> None:
    """`print_table` of rows of cells by head; `heads` where there may be no row."""
    rows = list(rows)
    heads = heads or list(rows[0] if rows else ())
    print_table(out, heads, [list(row.values()) for row in rows])
