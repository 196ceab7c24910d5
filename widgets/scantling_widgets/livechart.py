"""LiveChart: an Altair chart whose data are replaced in place, without a re-embed and without the network.

The Vega bundle (0.9 MB, out of vl-convert) travels once per kernel in a runtime widget; a chart itself is a
few kilobytes, and a change is one message that holds columns only.
"""
from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import anywidget
import numpy as np
import traitlets
from ipywidgets import widget_serialization

STATIC = Path(__file__).parent / "static"
_RUNTIME = "globalThis.__scantlingVega = vegaEmbed;\nexport default { initialize() {}, render() {} };\n"


def vega_version() -> str:
    """The Vega-Lite version that the installed Altair writes, in the form that vl-convert asks for ("6.4")."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "scantling"


@functools.cache
def vega_bundle() -> str:
    """The Vega runtime as one JavaScript module; kept on disk because making it takes over a second."""
    kept = _cache_folder() / f"vega-{vega_version()}-{metadata.version('vl-convert-python')}.js"
    try:
        text = kept.read_text(encoding="utf-8")
        if text.startswith("//whole\n"):
            return text
    except OSError:
        pass
    import vl_convert

    text = "//whole\n" + vl_convert.javascript_bundle(_RUNTIME, vl_version=vega_version())
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=kept.parent, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, kept)
    except OSError:
        pass                                   # a read-only home only costs the second again
    return text


class _Runtime(anywidget.AnyWidget):
    _esm = _RUNTIME


@functools.cache
def _runtime() -> _Runtime:
    _Runtime._esm = vega_bundle()
    return _Runtime()


def columns(frame) -> dict[str, list]:
    """Columns as plain lists that survive JSON: NaN and infinities become null."""
    items = frame.items() if isinstance(frame, Mapping) else ((name, frame[name].to_numpy()) for name in frame.columns)
    out = {}
    for name, values in items:
        array = np.asarray(values)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            out[str(name)] = [x if np.isfinite(x) else None for x in array.tolist()]
        else:
            out[str(name)] = array.tolist()
    return out


def spec_of(chart) -> dict:
    """The Vega-Lite dictionary of a chart without Altair's own default view size, so that the page decides."""
    spec = chart.to_dict()
    view = spec.get("config", {}).get("view", {})
    view.pop("continuousWidth", None)
    view.pop("continuousHeight", None)
    return spec


class LiveChart(anywidget.AnyWidget):
    """A chart on the page.

    chart      an Altair chart over named data (`altair.NamedData`)
    data       {name: columns} for each of those names
    alt        the text that stands for the picture for somebody who cannot see it
    empty      what to say instead of a picture that has no data
    file_name  stem of the files that the download buttons give
    """

    _esm = STATIC / "livechart.js"
    runtime = traitlets.Instance(_Runtime).tag(sync=True, **widget_serialization)
    spec = traitlets.Dict().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)
    alt = traitlets.Unicode("").tag(sync=True)
    empty = traitlets.Unicode("Nothing to draw for this design.").tag(sync=True)
    file_name = traitlets.Unicode("chart").tag(sync=True)
    revision = traitlets.Int(0).tag(sync=True)

    def __init__(self, chart, data, **traits):
        super().__init__(runtime=_runtime(), spec=spec_of(chart),
                         data={name: columns(frame) for name, frame in data.items()}, **traits)

    def update(self, data, alt: str | None = None) -> None:
        """Put new data under the chart that is on the page: one message, the chart stays."""
        with self.hold_sync():
            self.data = {name: columns(frame) for name, frame in data.items()}
            if alt is not None:
                self.alt = alt
            self.revision += 1
