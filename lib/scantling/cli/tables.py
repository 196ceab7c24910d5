"""Tables without rules, as the commands print them."""

from rich.measure import Measurement
from rich.table import Table

from ..base.words import Filler, Words, table

TABLES = table(__file__, "tables")
say = Words(TABLES["lines"])
_FILL = Filler()


def bare(rows, *columns: dict) -> Table:
    """A table without rules, with a line of heads where a column has one."""
    grid = Table(
        box=None,
        pad_edge=False,
        header_style="dim",
        show_header=any(column.get("header") for column in columns),
    )
    for column in columns:
        grid.add_column(**column)
    for row in rows:
        grid.add_row(*row)
    return grid


def figures(rows, last: str = "") -> Table:
    """A table of a label, a number and what `last` names."""
    return bare(
        rows,
        {"style": "dim", "no_wrap": True},
        {"justify": "right", "no_wrap": True},
        {"header": last},
    )


def print_table(out, heads, rows, words=TABLES["words"]) -> None:
    """A bare table; the columns named in `words` are set left and wrap, the others right and
    whole. It takes the console's width, or the least width that holds its numbers where that is
    more."""
    columns = (
        {
            "header": head,
            "justify": "left" if head in words else "right",
            "no_wrap": head not in words,
            "overflow": "fold",
        }
        for head in heads
    )
    grid = bare(rows, *columns)
    wide = out.options.update(max_width=1000)
    out.print(grid, width=max(out.width, Measurement.get(out, wide, grid).minimum), crop=False)


def print_rows(out, columns: dict, rows) -> None:
    """`print_table` of columns as tables.yaml has them."""
    cells = ([_FILL.vformat(text, (), row) for text in columns.values()] for row in rows)
    print_table(out, columns, cells)
