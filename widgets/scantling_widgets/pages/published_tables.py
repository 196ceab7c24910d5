"""Published figures as tables and texts for notebooks: what was printed beside what the kit
computes, the error of each; their pictures beside them."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from markupsafe import Markup
from scantling.base.displayed import Html, markdown
from scantling.base.show import is_number, percent, shown
from scantling.verdict.limits import limits
from scantling.verdict.record import Assessment
from scantling_walkthroughs.published_figures import recreate as published_figures
from scantling_walkthroughs.published_figures.record import Figure, Point
from scantling_walkthroughs.texts import fill_text

from ..charts.published import bars, error, is_share, lines, picture, said, size
from ..report.rendering import macros

__all__ = ["bars", "error", "lines", "picture", "said", "size"]

LONG = 32  # letters from which on a cell is wrapped


def value(x: float | str, unit: str = "", digits: int | None = None) -> str:
    """A published or computed value as text: shares in per cent, large counts in K, M, B, T, else
    four digits; `digits` after the point where they are given."""
    if isinstance(x, str):
        return x
    if unit == "1":
        return f"{100 * x:.4g} %" if digits is None else f"{100 * x:.{digits}f} %"
    if abs(x) >= 1e17:
        return f"{x:.3g}".replace("e+", "e")
    for scale, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if abs(x) >= scale:
            return f"{x / scale:.4g}{letter}"
    if digits is not None and abs(x) < 1e4:
        return f"{x:,.{digits}f}"
    return f"{x:,.0f}" if float(x).is_integer() or abs(x) >= 1e3 else f"{x:.4g}"


def table(id: str, only: str = "", most: int = 14) -> Html:
    """Printed values, ours and the error of each; more than `most` fold away. Above the verdict,
    below what misses and the sources."""
    r = published_figures.recreate(id)
    f = r.figure
    unit = f.unit if is_share(f) else ""
    several = len({p.series for p in r.points}) > 1
    places = len({p.locator for p in r.points}) > 1
    points = [(p, e) for p, e in zip(r.points, r.errors) if p.series.startswith(only)]
    digits = _digits([p.published for p, _ in points], unit)
    ours = digits if digits is None or unit != "1" else max(1, digits)
    printed = f"printed, {f.unit}" if f.unit not in ("1", f.quantity) else "printed"
    texts = [
        {
            "series": p.series,
            f.x: value(p.x),
            printed: value(p.published, unit, digits),
            "ours": value(p.ours, unit, ours),
            "error": _error(p, e, f),
            "where": p.locator,
        }
        for p, e in points
    ]
    words = {"series", "where"} | {f.x for p, _ in points if isinstance(p.x, str)}
    names = [f.x, printed, "ours", "error"]
    if several:
        names.insert(0, "series")
    if places:
        names.append("where")
    table_ = macros().published(
        said=said(r),
        fitted=f.fitted,
        validated=f.basis == "runs",
        head=[(name, name in words, False) for name in names],
        rows=[
            [
                (row[name], name in words, name != "where" and len(row[name]) < LONG)
                for name in names
            ]
            for row in texts
        ],
        most=most,
        misses=f.misses,
        sources=r.sources[:5],
    )
    return Html(html=str(table_), words=said(r))


def _error(p: Point, e: float, f: Figure) -> str:
    text = error(e, f.absolute, f.unit)
    return (
        text if p.counted else Markup("{} <span title='{}'>shown only</span>").format(text, p.why)
    )


def _digits(values: Iterable[float], unit: str) -> int | None:
    """Digits after the point that the printed values have, at most two; None where they span too
    far for one number of digits."""
    sizes = [abs(v) * (100 if unit == "1" else 1) for v in values if v]
    if not sizes or max(sizes) > 1e3 * min(sizes) or max(sizes) >= 1e3:
        return None
    return min(2, max(len(f"{s:.6g}".partition(".")[2]) for s in sizes))


def grid(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Html:
    """A table of texts, every column left, cells wrapped."""
    texts = [[str(cell) for cell in row] for row in rows]
    words = "; ".join(" ".join(row) for row in texts)
    return Html(html=str(macros().grid(head, texts)), words=words)


def text(words: str) -> Html:
    """A text as it stands, such as a design file."""
    return Html(html=f"<pre>{escape(words)}</pre>", words=words)


def short(x: Any) -> str:
    """Any value of a design as a short text."""
    return value(float(x)) if is_number(x) else str(x)[:60]


def verdict(result: Assessment) -> Html:
    """An assessment in three lines, whichever way it went: the verdict and its numbers, the plan,
    and what binds."""
    status = result.verdict.replace("-", " ")
    headline = f"**{status}**{_in_figures(result)}" if result.phases else f"**{status}**"
    binding = "\n".join(f"- {line}" for line in limits(result)[:3])
    words = f"{headline}\n\n{binding}"
    return Html(html=markdown(words), words=words)


def _in_figures(result: Assessment) -> str:
    """Days, dollars, devices, MFU and the plan."""
    days = ", without tokens no days"
    if result.days is not None:
        price = shown(result.cost_usd, "usd") if result.cost_usd else "no price"
        days = f": {shown(result.days, 'days')} and {price}"
    plan = result.plan or {}
    degrees = " · ".join(f"{name} {plan[name]}" for name in ("tp", "pp", "dp", "micro_batch"))
    return (
        f"{days} on {result.devices_used:,} devices, MFU {percent(result.mfu)} (80 % band "
        f"{percent(result.mfu_low)} to {percent(result.mfu_high)}). The plan: {degrees}."
    )


def say(text: str, **facts: Any) -> Html:
    """A sentence with computed numbers in it: `{name:share}` in the manners of the table of
    quantities, or any format of Python's."""
    words = fill_text(text, None, **facts)
    return Html(html=markdown(words), words=words)
