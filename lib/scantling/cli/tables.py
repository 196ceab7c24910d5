"""Tables for a terminal: numbers are never cut short, words wrap."""

from __future__ import annotations


def grid(*heads: str, words: tuple = ()):
    """A bare table; the columns named in `words` are set left and wrap, the others right and
    whole."""
    from rich.table import Table

    out = Table(box=None, pad_edge=False, header_style="dim")
    for head in heads:
        out.add_column(
            head,
            justify="left" if head in words else "right",
            no_wrap=head not in words,
            overflow="fold",
        )
    return out


def put(out, table) -> None:
    """Print a table at the console's width, or at the least width that holds its numbers where that
    is more."""
    from rich.measure import Measurement

    least = Measurement.get(out, out.options.update(max_width=1000), table).minimum
    out.print(table, width=max(out.width, least), crop=False)
