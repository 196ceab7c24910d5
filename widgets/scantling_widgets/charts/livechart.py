"""A chart on the page whose data are replaced in place, without a re-embed and without the network.

The Vega bundle (0.9 MB, out of vl-convert) travels once to a front end that has none; a chart
itself is a few kilobytes, and a change is one message that holds columns only.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from math import isfinite
from os import environ
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scantling.base.files import write_whole

from .page_parts import Part

_WHOLE = "//whole\n"
_RUNTIME = "globalThis.__scantlingVega = vegaEmbed;\n"


def folder() -> Path:
    """Where the files are stored."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scantling"


def stored(name: str, make: Callable[[], str]) -> str:
    """The text that the folder has under `name`, made when it has none; a folder that cannot be
    written only costs the making again."""
    path = folder() / name
    try:
        text = path.read_text(encoding="utf-8")
        if text.startswith(_WHOLE):
            return text.removeprefix(_WHOLE)
    except OSError:
        pass
    text = make()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (_WHOLE + text).encode())
    except OSError:
        pass
    return text


def vega_version() -> str:
    """The newest Vega-Lite version that vl-convert draws with ("6.4")."""
    import vl_convert

    return vl_convert.get_vegalite_versions()[-1]


@functools.cache
def vega_bundle() -> str:
    """The Vega runtime as one JavaScript module."""
    return stored(f"vega-{metadata.version('vl-convert-python')}.js", _bundle)


def _bundle() -> str:
    import vl_convert

    return vl_convert.javascript_bundle(_RUNTIME, vl_version=vega_version())


Columns: TypeAlias = Mapping[str, Sequence[Any] | NDArray[Any]]  # values by column
Frame: TypeAlias = Sequence[dict[str, Any]] | Columns  # rows, or their columns


def columns(frame: Columns) -> dict[str, list[Any]]:
    """Columns as plain lists that survive JSON: NaN and infinities become null."""
    out = {}
    for name, values in frame.items():
        array = np.asarray(values)
        column = array.tolist()
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            column = [value if isfinite(value) else None for value in column]
        out[str(name)] = column
    return out


class LiveChart(Part):
    """A chart on the page.

    spec       a Vega-Lite specification over named data
    data       {name: columns} for each of those names
    alt        the text that stands for the picture for somebody who cannot see it
    empty      what to say instead of a picture that has no data
    file_name  stem of the files that the download buttons give
    renderer   svg, or canvas for a picture of thousands of marks
    height     room that it keeps [px]
    picked     {index, serial}: the column `pick` of the mark that was clicked on last
    """

    KIND, HEARS = "chart", ("picked",)
    STATE = {
        "spec": {},
        "data": {},
        "alt": "",
        "empty": "Nothing to draw for this design.",
        "file_name": "chart",
        "renderer": "svg",
        "height": 0,
        "revision": 0,
        "picked": {},
    }

    spec: dict[str, Any]
    data: dict[str, dict[str, list[Any]]]
    alt: str
    empty: str
    file_name: str
    renderer: str
    height: int
    revision: int
    picked: dict[str, int]

    def on_pick(self, act: Callable[[int], None]) -> None:
        """Call `act` with the column `pick` of the mark that is clicked on."""
        self.on("picked", lambda picked: act(int(picked["index"])))

    def update(self, data: Mapping[str, Columns], alt: str | None = None) -> None:
        """Put new data under the chart that is on the page; the chart stays."""
        self.data = {name: columns(frame) for name, frame in data.items()}
        if alt is not None:
            self.alt = alt
        self.revision += 1
