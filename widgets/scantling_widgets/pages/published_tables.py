"""Published figures as tables and texts for notebooks: what was printed beside what the kit
computes, the error of each; their pictures beside them."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from markupsafe import Markup
from scantling.base.displayed import Html, markdown
from scantling.base.show import is_number, percent, shown
from scantling.verdict.assessment import Assessment
from scantling.verdict.limits import limits
from scantling_walkthroughs.published_figures import recreate as published_figures
from scantling_walkthroughs.published_figures.recreation import Figure, Point

from ..charts.recreations import bars, error, error_sentence, is_share, lines, picture, size
from ..report.rendering import macros

__all__ = ["bars", "error", "error_sentence", "lines", "picture", "size"]

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


class Cell(NamedTuple):
    """A cell of a table: its text, whether of words, and whether it stays on one line."""

    text: str
    words: bool
    whole: bool


class Source(NamedTuple):
    """Where a figure was read: behind `url`, which names it only where there is none."""

    title: str
    place: str
    url: str


def table(id: str, only: str = "", most: int = 14) -> Html:
    """Printed values, ours and the error of each; more than `most` fold away. Above the verdict,
    below what misses and the sources."""
    recreation = published_figures.recreate(id)
    figure = recreation.figure
    points = [
        (point, error)
        for point, error in zip(recreation.points, recreation.errors)
        if point.series.startswith(only)
    ]
    columns = _columns(figure, points)
    names = list(columns)
    if len({point.series for point in recreation.points}) < 2:
        names.remove("series")
    if len({point.locator for point in recreation.points}) < 2:
        names.remove("where")
    words = {"series", "where"}
    if any(isinstance(point.x, str) for point, _ in points):
        words.add(figure.x)
    rows = [
        [
            Cell(text, name in words, name != "where" and len(text) < LONG)
            for name, text in zip(names, texts)
        ]
        for texts in zip(*(columns[name] for name in names))
    ]
    html = macros().published(
        error_sentence=error_sentence(recreation),
        fitted=_fitted(figure),
        head=[Cell(name, name in words, False) for name in names],
        rows=rows[:most],
        folded=rows[most:],
        misses=figure.misses,
        sources=[_source(*source) for source in recreation.sources[:5]],
    )
    return Html(html=str(html), words=error_sentence(recreation))


def _columns(figure: Figure, points: Sequence[tuple[Point, float]]) -> dict[str, list[str]]:
    """The columns of the table of a figure, as texts."""
    unit = figure.unit if is_share(figure) else ""
    digits = _digits([point.published for point, _ in points], unit)
    ours = digits if digits is None or unit != "1" else max(1, digits)
    head = "printed"
    if figure.unit not in ("1", figure.quantity):
        head += f", {figure.unit}"
    return {
        "series": [point.series for point, _ in points],
        figure.x: [value(point.x) for point, _ in points],
        head: [value(point.published, unit, digits) for point, _ in points],
        "ours": [value(point.ours, unit, ours) for point, _ in points],
        "error": [_error(point, error, figure) for point, error in points],
        "where": [point.locator for point, _ in points],
    }


def _fitted(figure: Figure) -> str:
    """That the constants of the kit were fitted on these values, where they were."""
    if not figure.fitted:
        return ""
    if figure.basis == "runs":
        data = "runs among others; the validation page shows them with their source left out"
    else:
        data = "series among others"
    return f" The constants were fitted on these {data}."


def _source(title: str, place: str, url: str) -> Source:
    """A source with its link; its place where that is short."""
    if not url.startswith("http"):
        return Source(title, "", "")
    return Source(title, f", {place}" if len(place) < 120 else "", url)


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
    """Likely days and dollars, devices, MFU and the plan."""
    days = ", without tokens no days"
    likely = result.likely
    if likely.days is not None:
        price = shown(likely.cost_usd, "usd") if likely.cost_usd else "no price"
        days = f": likely {shown(likely.days, 'days')} and {price}"
    plan = result.plan or {}
    degrees = " · ".join(f"{name} {plan[name]}" for name in ("tp", "pp", "dp", "micro_batch"))
    return (
        f"{days} on {result.devices_used:,} devices, MFU {percent(result.mfu_shown)} (80 % "
        f"band {percent(result.mfu_shown_low)} to {percent(result.mfu_shown_high)}). The plan: "
        f"{degrees}."
    )


def say(words: str) -> Html:
    """A paragraph of markdown."""
    return Html(html=markdown(words), words=words)
