"""Predicted beside measured: the table that ends a piece of work, with the error of each row."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scantling.base.show import percent, shown

from . import question_pages

_HEAD = ("", "the kit", "published", "error", "source")


@dataclass(frozen=True)
class Row:
    """One comparison: what, our value, the published one (or a pair, its range), the manner in
    which both are shown (see `quantities`), the source."""

    what: str
    ours: float
    published: float | tuple[float, float]
    kind: str = "ratio"
    source: str = ""

    @property
    def ends(self) -> tuple[float, ...]:
        """The published value, or both ends of its range."""
        return self.published if isinstance(self.published, tuple) else (self.published,)

    @property
    def error(self) -> float:
        """ours / published − 1; 0 inside a published range, else against its nearer end."""
        return self.ours / min(max(self.ours, self.ends[0]), self.ends[-1]) - 1


@dataclass(frozen=True)
class Comparison:
    """Rows of predicted beside published; shows itself as text and as an HTML table."""

    rows: tuple[Row, ...]

    @property
    def worst(self) -> float:
        """Largest error, as a share."""
        return max(abs(r.error) for r in self.rows)

    def _cells(self) -> Iterator[tuple[str, str, str, str, str]]:
        for r in self.rows:
            inside = len(r.ends) > 1 and r.error == 0
            yield (
                r.what,
                shown(r.ours, r.kind),
                " to ".join(shown(end, r.kind) for end in r.ends),
                "inside" if inside else percent(r.error, sign="+"),
                r.source,
            )

    def __repr__(self) -> str:
        lines = [_HEAD, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        sides = ("<", ">", ">", ">", "<")
        rows = (
            "  ".join(f"{c:{side}{w}}" for c, side, w in zip(line, sides, widths)).rstrip()
            for line in lines
        )
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        table = question_pages.part("table", _HEAD, self._cells(), (0, 4))
        return question_pages.block(table)


def compare(*rows: Row | tuple[Any, ...]) -> Comparison:
    """`compare(("MFU", result.mfu, 0.41, "share", "Llama 3, table 4"), …)`: predicted beside
    published."""
    return Comparison(tuple(r if isinstance(r, Row) else Row(*r) for r in rows))
