"""LiveChart: an Altair chart whose data are replaced in place, without a re-embed and without the
network.

The Vega bundle (0.9 MB, out of vl-convert) travels once per kernel in a runtime widget; a chart
itself is a
few kilobytes, and a change is one message that holds columns only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import metadata

import anywidget
import numpy as np
import traitlets
from ipywidgets import widget_serialization

from .kept import kept
from .resources import STATIC

_RUNTIME = (
    "globalThis.__scantlingVega = vegaEmbed;\nexport default { initialize() {}, render() {} };\n"
)


def module(*names: str) -> str:
    """Scripts of the static folder, joined into one module of a widget."""
    return "".join((STATIC / name).read_text(encoding="utf-8") for name in names)


def vega_version() -> str:
    """The Vega-Lite version that the installed Altair writes, in the form that vl-convert asks for
    ("6.4")."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


@functools.cache
def vega_bundle() -> str:
    """The Vega runtime as one JavaScript module."""

    def make() -> str:
        import vl_convert

        return vl_convert.javascript_bundle(_RUNTIME, vl_version=vega_version())

    return kept(
        f"vega-{metadata.version('altair')}-{metadata.version('vl-convert-python')}.js", make
    )


class _Runtime(anywidget.AnyWidget):
    _esm = _RUNTIME


@functools.cache
def _runtime() -> _Runtime:
    _Runtime._esm = vega_bundle()
    return _Runtime()


def columns(frame) -> dict[str, list]:
    """Columns as plain lists that survive JSON: NaN and infinities become null."""
    items = (
        frame.items()
        if isinstance(frame, Mapping)
        else ((name, frame[name].to_numpy()) for name in frame.columns)
    )
    out = {}
    for name, values in items:
        array = np.asarray(values)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            out[str(name)] = [x if np.isfinite(x) else None for x in array.tolist()]
        else:
            out[str(name)] = array.tolist()
    return out


def spec_of(chart) -> dict:
    """The Vega-Lite dictionary of a chart without Altair's own default view size, so that the page
    decides."""
    spec = chart.to_dict()
    view = spec.get("config", {}).get("view", {})
    view.pop("continuousWidth", None)
    view.pop("continuousHeight", None)
    return spec


class LiveChart(anywidget.AnyWidget):
    """A chart on the page.

    spec       a Vega-Lite specification over named data, see `spec_of`
    data       {name: columns} for each of those names
    alt        the text that stands for the picture for somebody who cannot see it
    empty      what to say instead of a picture that has no data
    file_name  stem of the files that the download buttons give
    renderer   svg, or canvas for a picture of thousands of marks
    picked     {index, serial}: the column `pick` of the mark that was clicked on last
    """

    _esm = STATIC / "livechart.js"
    runtime = traitlets.Instance(_Runtime).tag(sync=True, **widget_serialization)
    spec = traitlets.Dict().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)
    alt = traitlets.Unicode("").tag(sync=True)
    empty = traitlets.Unicode("Nothing to draw for this design.").tag(sync=True)
    file_name = traitlets.Unicode("chart").tag(sync=True)
    renderer = traitlets.Unicode("svg").tag(sync=True)
    revision = traitlets.Int(0).tag(sync=True)
    picked = traitlets.Dict({"index": -1, "serial": 0}).tag(sync=True)

    def __init__(self, spec, data, **traits):
        super().__init__(
            runtime=_runtime(),
            spec=spec,
            data={name: columns(frame) for name, frame in data.items()},
            **traits,
        )

    def on_pick(self, act: Callable[[int], None]) -> None:
        """Call `act` with the column `pick` of the mark that is clicked on."""
        self.observe(lambda change: act(int(change["new"]["index"])), "picked")

    def update(self, data, alt: str | None = None) -> None:
        """Put new data under the chart that is on the page: one message, the chart stays."""
        with self.hold_sync():
            self.data = {name: columns(frame) for name, frame in data.items()}
            if alt is not None:
                self.alt = alt
            self.revision += 1
