"""A figure: one chart that the desk keeps on the page and the report prints, fed from an
assessment.

`build` draws over named data and runs once; `data` turns an assessment into columns and runs on
every change.
Neither computes physics: they pick, order and label what the assessment holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from scantling.base.quantities import rows as quantities_rows

from .grammar import alt
from .kept import kept
from .livechart import LiveChart, columns, spec_of

WIDTH = 640  # of a static picture, in pixels


def facts(result) -> Mapping[str, Any]:
    """The plain dictionary of an assessment, whichever of the two it is given as."""
    return result if isinstance(result, Mapping) else result.as_dict()


def named(name: str) -> alt.NamedData:
    return alt.NamedData(name=name)


@dataclass(frozen=True)
class Figure:
    """A chart by name.

    build(legend) -> Altair chart over named data, without a width
    data(facts, **more) -> {data name: {column: values}}
    words(facts, **more) -> what the picture says, for somebody who cannot see it
    """

    name: str
    title: str
    build: Callable[..., alt.Chart]
    data: Callable[..., dict[str, dict]]
    words: Callable[..., str]
    height: int = 220
    empty: str = "Nothing to draw for this design."
    renderer: str = "svg"

    def __call__(
        self, result, *, width: int = WIDTH, legend: bool = True, title: str | None = None, **more
    ) -> alt.Chart:
        """The chart as a static picture of one assessment, its data inside."""
        return alt.Chart.from_dict(
            self.static(result, width=width, legend=legend, title=title, **more)
        )

    def static(
        self, result, *, width: int = WIDTH, legend: bool = True, title: str | None = None, **more
    ) -> dict:
        """The specification of that picture: what a program draws, without a second pass through
        Altair's schema."""
        given = facts(result)
        chart = self.build(legend).properties(
            width=width, height=self.height, description=self.words(given, **more)
        )
        if title is not None:
            chart = chart.properties(title=title)
        return {
            **chart.to_dict(),
            "datasets": {name: rows(frame) for name, frame in self.data(given, **more).items()},
        }

    def live(self, result=None, *, legend: bool = False, **more) -> LiveChart:
        """The chart as a widget; `show` gives it the next assessment."""
        data = self.data(facts(result), **more) if result is not None else {}
        words = self.words(facts(result), **more) if result is not None else ""
        widget = LiveChart(
            self.spec(legend),
            data,
            alt=words,
            empty=self.empty,
            file_name=self.name,
            renderer=self.renderer,
        )
        widget.layout.min_height = f"{self.height + 30}px"
        widget.layout.width = "100%"
        return widget

    def spec(self, legend: bool = False) -> dict:
        """The specification for the desk, kept between sessions for as long as its sources are the
        same."""

        def make() -> str:
            return json.dumps(
                spec_of(self.build(legend).properties(width="container", height=self.height))
            )

        return json.loads(
            kept(
                f"{self.name}-{_sources(self.build.__code__.co_filename)}-{self.height}-{legend:d}.json",
                make,
            )
        )

    def show(self, widget: LiveChart, result, **more) -> None:
        """Put another assessment under a chart that `live` made."""
        widget.update(self.data(facts(result), **more), self.words(facts(result), **more))


@cache
def _sources(file: str) -> str:
    """Digest of everything that a specification is made from."""
    here = Path(__file__).parent
    texts = [
        Path(f).read_bytes()
        for f in (file, __file__, here / "palette.py", here / "words.py", quantities_rows.__file__)
    ]
    return hashlib.sha256(b"".join([*texts, metadata.version("altair").encode()])).hexdigest()[:16]


def rows(frame) -> list[dict]:
    """Columns as the list of records that a Vega-Lite specification holds."""
    lists = columns(frame)
    count = max((len(v) for v in lists.values()), default=0)
    return [{name: values[i] for name, values in lists.items()} for i in range(count)]


def stacked(values) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of each of several lengths laid end to end along the last axis."""
    ends = np.cumsum(np.nan_to_num(np.asarray(values, float)), axis=-1)
    starts = np.concatenate([np.zeros_like(ends[..., :1]), ends[..., :-1]], axis=-1)
    return starts, ends


def colours(parts: Mapping[str, tuple[str, str]]) -> alt.Scale:
    """The fixed colour scale of a family of parts, by their names on screen."""
    return alt.Scale(
        domain=[name for name, _ in parts.values()], range=[colour for _, colour in parts.values()]
    )


def hatch(colour: str, stripes: int = 9, between: str = "#ffffff") -> dict:
    """A striped fill: reads as hatching without colour vision and in print."""
    stops = []
    for i in range(stripes):
        a, m, b = i / stripes, (i + 0.5) / stripes, (i + 1) / stripes
        stops += [
            {"offset": a, "color": colour},
            {"offset": m, "color": colour},
            {"offset": m, "color": between},
            {"offset": b, "color": between},
        ]
    return {"gradient": "linear", "x1": 0, "y1": 0, "x2": 0.5, "y2": 1, "stops": stops}
