"""A figure: one chart that the desk keeps on the page and the report prints, fed from an
assessment.

How it looks is an Altair chart over named rows; what it shows are rows made from an assessment on
every change. Neither computes: they pick, order and label what the assessment holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import metadata
from itertools import accumulate
from json import dumps, loads
from pathlib import Path
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, TypeAlias

from scantling.base.quantities import quantity as table_of_quantities
from scantling.base.records import record
from scantling.verdict.result import Result

from ..quantity_texts import axis, titled
from ..shipped_files import in_a_page
from .altair_loader import alt
from .livechart import Columns, Frame, LiveChart, columns, stored
from .palette import Swatch
from .theme import SCHEMA

Facts: TypeAlias = Result  # an assessment as plain data (`scantling design --json`)
Row: TypeAlias = dict[str, Any]  # one mark, as it travels to the page
Data: TypeAlias = Mapping[str, Frame]  # {name of the rows: rows, or columns by name}
Spec: TypeAlias = dict[str, Any]  # a Vega-Lite specification
Drawn: TypeAlias = "alt.Chart | alt.LayerChart"
P = ParamSpec("P")

WIDTH = 640  # of a static picture [px]
# specifications of the figures of the desk, which a page in a browser takes with it
DRAWN_AHEAD = Path(__file__).with_name("drawn.json")


class Assessed(Protocol):
    """What knows its assessment as plain data."""

    def as_dict(self) -> Facts: ...


def facts(result: Assessed | Facts) -> Facts:
    """The plain dictionary of an assessment, whichever of the two it is given as."""
    return result if isinstance(result, dict) else result.as_dict()


@record
class Figure(Generic[P]):
    """A chart by name.

    name      : unlike that of any other figure; stem of the files that it is saved as
    draw      : the marks, with a legend or without
    rows      : what they show, by the names of the rows
    words     : what the picture says, for somebody who cannot see it
    height    : pixels, or of a row {"step": pixels}
    empty     : what stands in the place of a picture that has nothing to show
    renderer  : svg, or canvas for thousands of marks
    """

    name: str
    title: str
    draw: Callable[[bool], Drawn]
    rows: Callable[Concatenate[Facts, P], Data]
    words: Callable[Concatenate[Facts, P], str]
    height: int | dict[str, int] = 220
    empty: str = "Nothing to draw for this design."
    renderer: str = "svg"

    def data(
        self, result: Assessed | Facts, *args: P.args, **kwargs: P.kwargs
    ) -> dict[str, Columns]:
        """{name of the rows: {column: values}} of an assessment."""
        data = self.rows(facts(result), *args, **kwargs)
        return {name: table(frame) for name, frame in data.items()}

    def __call__(
        self, result: Assessed | Facts, *args: P.args, **kwargs: P.kwargs
    ) -> alt.TopLevelMixin:
        """The chart as a static Altair chart of one assessment, its data inside."""
        spec = self.static(WIDTH, True, result, *args, **kwargs)
        return alt.Chart.from_dict(spec)

    def static(
        self, width: int, legend: bool, result: Assessed | Facts, *args: P.args, **kwargs: P.kwargs
    ) -> Spec:
        """The specification of a picture `width` pixels wide, its data inside."""
        data = self.data(result, *args, **kwargs)
        return {
            **self.spec(legend),
            "width": width,
            "description": self.words(facts(result), *args, **kwargs),
            "datasets": {name: records(frame) for name, frame in data.items()},
        }

    def live(self, legend: bool = False) -> LiveChart:
        """The chart as a part of the page, without data; `show` gives it an assessment."""
        assert isinstance(self.height, int), "a figure of the desk keeps its height"
        return LiveChart(
            spec=self.spec(legend),
            empty=self.empty,
            file_name=self.name,
            renderer=self.renderer,
            height=self.height + 30,
        )

    def spec(self, legend: bool = False) -> Spec:
        """The specification for the desk, as wide as its place."""
        return {
            "$schema": SCHEMA,
            "width": "container",
            "height": self.height,
            **marks(self, legend),
        }

    def show(
        self, chart: LiveChart, result: Assessed | Facts, *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Put another assessment under a chart that `live` made."""
        chart.update(self.data(result, *args, **kwargs), self.words(facts(result), *args, **kwargs))


def saying(
    rows: Callable[Concatenate[Facts, P], Data],
    lead: str,
    names: Iterable[str],
    most: int | None = None,
) -> Callable[Concatenate[Facts, P], str]:
    """The words of a figure whose rows say themselves (column `says`): `lead`, then those of the
    rows `names`, each once, at most so many."""
    spoken = tuple(names)

    def words(figures: Facts, /, *args: P.args, **kwargs: P.kwargs) -> str:
        data = rows(figures, *args, **kwargs)
        rows_said = (str(row["says"]) for name in spoken for row in records_of(data, name))
        texts = list(dict.fromkeys(rows_said))
        return f"{lead} {'; '.join(texts[:most]) or 'nothing is drawn'}."

    return words


# ---------------------------------------------------------------- drawing, once
def compiled(chart: alt.TopLevelMixin) -> Spec:
    """A chart as a Vega-Lite specification of its own marks alone: neither Altair's look nor an
    address of its schema."""
    spec = chart.to_dict()
    for added in ("$schema", "config"):
        spec.pop(added, None)
    return spec


def marks(figure: Figure[P], legend: bool) -> Spec:
    """The marks of a figure as a specification. Each is drawn once and stored: Altair takes a
    second to load."""
    if in_a_page() and DRAWN_AHEAD.is_file():
        return _ahead()[figure.name][int(legend)]
    name = f"chart-{figure.name}-{int(legend)}-{_digest()}.json"
    return dict(loads(stored(name, lambda: dumps(compiled(figure.draw(legend))))))


@cache
def _ahead() -> dict[str, list[Spec]]:
    return dict(loads(DRAWN_AHEAD.read_text(encoding="utf-8")))


@cache
def _digest() -> str:
    """Of the code that draws, the names of quantities, and Altair: when one of them changes, the
    charts are drawn again."""
    total = hashlib.sha256(metadata.version("altair").encode())
    here = Path(__file__).parent
    names = Path(table_of_quantities.__file__).parent
    for path in (
        *sorted(here.glob("*.py")),
        here.parent / "quantity_texts.py",
        *sorted(names.iterdir()),
    ):
        if path.suffix not in {".py", ".csv"}:
            continue
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


# ---------------------------------------------------------------- rows
def table(frame: Frame) -> Columns:
    """Rows as columns; columns stay as they are."""
    if isinstance(frame, Mapping):
        return frame
    return {name: [row[name] for row in frame] for name in (frame[0] if frame else ())}


def records(frame: Columns) -> list[Row]:
    """Columns as the list of rows that a Vega-Lite specification holds."""
    lists = columns(frame)
    return [dict(zip(lists, values)) for values in zip(*lists.values(), strict=True)]


def records_of(data: Data, name: str) -> list[Row]:
    """The rows of that name; none where there are none."""
    return records(table(data.get(name, ())))


class Stretch(NamedTuple):
    """A part of a whole, laid behind the parts before it."""

    part: str
    colour: str
    size: float
    start: float
    end: float

    @property
    def mid(self) -> float:
        return (self.start + self.end) / 2


def laid(parts: Mapping[str, Swatch], amounts: Mapping[str, float | None]) -> list[Stretch]:
    """Parts of a whole laid end to end; one that is missing is nil."""
    sizes = [float(amounts.get(key) or 0.0) for key in parts]
    ends = [0.0, *accumulate(sizes)]
    return [
        Stretch(swatch.name, swatch.colour, size, start, end)
        for swatch, size, start, end in zip(parts.values(), sizes, ends, ends[1:])
    ]


class QuantityAxis(NamedTuple):
    """An axis that shows a quantity: its title, and the Vega expression of its ticks."""

    title: str
    ticks: str


def quantity_axis(key: str) -> QuantityAxis:
    """The axis of a quantity, titled with its name and unit."""
    return QuantityAxis(titled(key), axis(key)[1])
