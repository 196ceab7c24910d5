"""Predicted beside measured: the table that ends a piece of work, with the error of each row."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from scantling.base.show import shown

from . import show

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
    def error(self) -> float:
        """ours / published − 1; 0 inside a published range, else against its nearer end."""
        if isinstance(self.published, tuple):
            low, high = self.published
            return (
                0.0
                if low <= self.ours <= high
                else self.ours / (low if self.ours < low else high) - 1
            )
        return self.ours / self.published - 1


@dataclass(frozen=True)
class Comparison:
    """Rows of predicted beside published; shows itself as text and as an HTML table."""

    rows: tuple[Row, ...]
    title: str = ""

    @property
    def worst(self) -> float:
        """Largest error, as a share."""
        return max(abs(r.error) for r in self.rows)

    def _cells(self):
        for r in self.rows:
            ranged = isinstance(r.published, tuple)
            ends = r.published if ranged else (r.published,)
            published = " to ".join(shown(p, r.kind) for p in ends)
            inside = ranged and r.error == 0
            yield (
                r.what,
                shown(r.ours, r.kind),
                published,
                "inside" if inside else f"{r.error:+.1%}".replace("-", "−").replace("%", " %"),
                r.source,
            )

    def __repr__(self) -> str:
        lines = [_HEAD, *self._cells()]
        widths = [max(len(line[i]) for line in lines) for i in range(5)]
        text = "\n".join(
            "  ".join(
                c.ljust(w) if i in (0, 4) else c.rjust(w)
                for i, (c, w) in enumerate(zip(line, widths))
            ).rstrip()
            for line in lines
        )
        return f"{self.title}\n{text}" if self.title else text

    def _repr_html_(self) -> str:
        parts = show.parts()
        table = parts.table(
            _HEAD,
            self._cells(),
            (0, 4),
        )
        title = f"<p>{escape(self.title)}</p>" if self.title else ""
        return str(parts.block(title + str(table)))


def compare(*rows, title: str = "") -> Comparison:
    """`compare(("MFU", result.mfu, 0.41, "share", "Llama 3, table 4"), …)`: predicted beside
    published."""
    return Comparison(tuple(r if isinstance(r, Row) else Row(*r) for r in rows), title)
