"""A figure: one chart that the desk keeps on the page and the report prints, fed from an
assessment.

How it looks is a Vega-Lite chart in `specs/`; what it shows are rows made from an assessment on
every change. Neither computes: they pick, order and label what the assessment holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from scantling.base.records import record
from scantling.base.words import Filler, table as read_yaml

from ..words import PERCENT, axis, titled
from .livechart import LiveChart, columns
from .palette import ACCENT, MEMORY, OVER, SECOND, STEP

SPECS = Path(__file__).parent / "specs"
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH = 640  # of a static picture, in pixels


def hatch(colour: str, stripes: int = 9, between: str = "#ffffff") -> dict:
    """A striped fill: reads as hatching without colour vision and in print."""
    return {
        "gradient": "linear",
        "x1": 0,
        "y1": 0,
        "x2": 0.5,
        "y2": 1,
        "stops": [
            {"offset": (i + part) / stripes, "color": ink}
            for i in range(stripes)
            for part, ink in ((0, colour), (0.5, colour), (0.5, between), (1, between))
        ],
    }


# what `$word` stands for in every specification
_SHARED = {
    "accent": ACCENT,
    "over": OVER,
    "second": SECOND,
    "percent": PERCENT,
    "counts": (
        "datum.value >= 1e15 ? replace(format(datum.value, '~e'), '+', '') : datum.value >= "
        "1e12 ? format(datum.value / 1e12, '~r') + 'T' : "
        "datum.value >= 1e4 ? replace(format(datum.value, '~s'), 'G', 'B') : "
        "format(datum.value, '~r')"
    ),
    "tip": {"field": "says", "type": "nominal", "title": " "},
    "hatch": hatch(OVER),
    "memory": [name for name, _ in MEMORY.values()],
    "memory_hues": [hue for _, hue in MEMORY.values()],
    "step": [name for name, _ in STEP.values()],
    "step_hues": [hue for _, hue in STEP.values()],
}


def spec(name: str, part: str = "", /, **given) -> dict:
    """The Vega-Lite chart `specs/{name}.yaml`, or one part of it.

    In it `$word` stands for `given["word"]`, and a mapping with `when: word` is null unless
    `given["word"]` is true.
    """
    read = _read(name)
    return _filled(read[part] if part else read, _SHARED | given)


@cache
def _read(name: str) -> dict:
    return read_yaml(SPECS / name, name)


def _filled(node, given: Mapping):
    if isinstance(node, str):
        return given[node[1:]] if node.startswith("$") else node
    if isinstance(node, list):
        return [part for item in node if (part := _filled(item, given)) is not None]
    if not isinstance(node, dict):
        return node
    if not given.get(node.get("when"), True):
        return None
    own = ("when", "figure", "rows", "texts")
    return {key: _filled(item, given) for key, item in node.items() if key not in own}


_said = Filler().vformat


def text(looks: str, name: str, /, **facts) -> str:
    """The text `name` of the file `looks` in `specs/`, its {placeholders} filled."""
    return _said(_read(looks)["texts"][name], (), facts)


def worded(looks: str, name: str, /, records, **more) -> list:
    """A row for each record, as the file `looks` says under `rows`: a word copies the field of that
    name, a text with {placeholders} is filled, from the record and from `more`."""
    columns = _read(looks)["rows"][name].items()
    return [
        {key: _said(how, (), facts) if "{" in how else facts[how] for key, how in columns}
        for facts in (more | record for record in records)
    ]


def facts(result) -> Mapping:
    """The plain dictionary of an assessment, whichever of the two it is given as."""
    return result if isinstance(result, Mapping) else result.as_dict()


@record
class Figure:
    """A chart by name.

    rows(facts, **more) -> {data name: list of records, or columns by name}
    words(facts, **more) -> what the picture says, for somebody who cannot see it
    looks : its file in `specs/`; `given`: what the words with a dollar stand for there
    """

    name: str
    title: str
    rows: Callable[..., Mapping]
    words: Callable[..., str]
    looks: str
    given: dict = field(default_factory=dict)
    height: Any = 220
    empty: str = "Nothing to draw for this design."
    renderer: str = "svg"

    def data(self, result, **more) -> dict:
        """{data name: {column: values}} of an assessment."""
        return {name: table(frame) for name, frame in self.rows(facts(result), **more).items()}

    def __call__(self, result, **more):
        """The chart as a static Altair chart of one assessment, its data inside."""
        import altair

        return altair.Chart.from_dict(self.static(result, **more))

    def static(self, result, *, width: int = WIDTH, legend: bool = True, **more) -> dict:
        """The specification of that picture."""
        data = self.data(result, **more)
        return {
            **self.spec(legend),
            "width": width,
            "description": self.words(facts(result), **more),
            "datasets": {name: records(frame) for name, frame in data.items()},
        }

    def live(self, *, legend: bool = False) -> LiveChart:
        """The chart as a widget without data; `show` gives it an assessment."""
        return LiveChart(
            spec=self.spec(legend),
            empty=self.empty,
            file_name=self.name,
            renderer=self.renderer,
            height=self.height + 30,
        )

    def spec(self, legend: bool = False, **given) -> dict:
        """The specification for the desk, as wide as its place."""
        return {
            "$schema": SCHEMA,
            "width": "container",
            "height": self.height,
            **spec(self.looks, **self.given | given, legend=legend),
        }

    def show(self, widget: LiveChart, result, **more) -> None:
        """Put another assessment under a chart that `live` made."""
        widget.update(self.data(result, **more), self.words(facts(result), **more))


def figure(
    looks: str, rows: Callable, words: Callable | None = None, *, lead: str = "", **more
) -> Figure:
    """The figure `looks`, called as its file in `specs/` says under `figure`.

    There `says` holds a start, the frames of `rows` whose records say themselves, and how many of
    them do; it stands for `words`, and `lead` for its start.
    """
    about = _read(looks)["figure"] | more
    start, frames, most = about.pop("says", ("", (), None))

    def told(given, **more):
        data = rows(given, **more)
        says = [row["says"] for frame in frames for row in data.get(frame, ())]
        return f"{lead or start} {'; '.join(says[:most]) or 'nothing is drawn'}."

    return Figure(looks=looks, rows=rows, words=words or told, **about)


def shown_on(key: str, title: str = "") -> dict:
    """`$title` and `$ticks` of an axis that shows a quantity: its name and unit, or `title` with
    the unit in its place."""
    unit, ticks = axis(key)
    return {"title": title.format(unit) if title else titled(key), "ticks": ticks}


def table(frame) -> Mapping:
    """A list of records as columns; columns stay as they are."""
    if isinstance(frame, Mapping):
        return frame
    return {name: [row[name] for row in frame] for name in (frame[0] if frame else ())}


def records(frame) -> list:
    """Columns as the list of records that a Vega-Lite specification holds."""
    lists = columns(frame)
    return [dict(zip(lists, values)) for values in zip(*lists.values(), strict=True)]


def laid(parts: Mapping[str, tuple[str, str]], amounts: Mapping) -> list:
    """Parts {key: (name, colour)} of a whole laid end to end, a record each."""
    sizes = [float(amounts.get(key) or 0.0) for key in parts]
    ends = [0.0, *accumulate(sizes)]
    names = ("part", "hue", "size", "start", "end")
    rows = zip(*zip(*parts.values()), sizes, ends, ends[1:])
    return [dict(zip(names, row)) for row in rows]
