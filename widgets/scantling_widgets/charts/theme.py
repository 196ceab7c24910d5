"""How pictures look: inks, the configuration of a static picture, and what several charts draw
alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .altair_loader import alt
from .palette import OVER

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
INK, SOFT, LINE, PAPER = "#1c2430", "#56616f", "#d9dee5", "#fefefe"
# inks of a static picture, and the variable of the page that takes the place of each
INKS = {INK: "--ink", SOFT: "--soft", LINE: "--line", PAPER: "--paper"}

PERCENT = "format(datum.value * 100, '~r') + ' %'"  # ticks of an axis of shares
NARROW = "containerSize()[0] < 500"  # whether a picture stands on a telephone
# labels of an axis of words, a line break in them kept; in two lines where the picture is narrow
_BROKEN = "replace(datum.label, regexp('^(.{12,24}?) '), '$1\\n')"
NARROW_LINES = f"split({NARROW} ? {_BROKEN} : datum.label, '\\n')"
# ticks of an axis of counts: 10, 20k, 3M, 7B, 15T, 1e20
COUNTS = (
    "datum.value >= 1e15 ? replace(format(datum.value, '~e'), '+', '') : datum.value >= "
    "1e12 ? format(datum.value / 1e12, '~r') + 'T' : "
    "datum.value >= 1e4 ? replace(format(datum.value, '~s'), 'G', 'B') : "
    "format(datum.value, '~r')"
)
# Vega's configuration of every picture of the report
THEME: dict[str, Any] = {
    "background": "transparent",
    "font": "DejaVu Sans",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": SOFT,
        "gridColor": LINE,
        "domainColor": SOFT,
        "tickColor": SOFT,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": 500,
        "labelLimit": 260,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": SOFT,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "labelLimit": 260,
    },
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start"},
    "text": {"color": INK},
    "rule": {"color": SOFT},
    "style": {
        "ink": {"color": INK, "stroke": INK},
        "ink-text": {"fill": INK, "stroke": None},
        "soft": {"stroke": SOFT},
        "soft-text": {"fill": SOFT, "stroke": None},
    },
}


def themed(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification in the inks of the report."""
    own = {k: v for k, v in spec.get("config", {}).items() if k not in ("view", "axis")}
    return {**spec, "config": {**THEME, **own}}


# ---------------------------------------------------------------- what several charts draw alike
def over(name: str) -> alt.Chart:
    """Marks over the rows that the chart is given under this name."""
    return alt.Chart(alt.NamedData(name))


def listed(rows: Iterable[dict[str, Any]]) -> alt.Chart:
    """Marks over rows that travel with the chart."""
    return alt.Chart(alt.InlineData(values=list(rows)))


def layered(*layers: alt.Chart) -> alt.LayerChart:
    """Marks on top of each other, the first at the bottom."""
    return alt.LayerChart(layer=list(layers))


def tip() -> alt.Tooltip:
    """What a mark says when it is pointed at: the column `says`."""
    return alt.Tooltip("says:N", title=" ")


def hatch(colour: str = OVER, stripes: int = 9, between: str = "#ffffff") -> alt.LinearGradient:
    """A striped fill: reads as hatching without colour vision and in print."""
    stops = []
    for i in range(stripes):
        for part, ink in ((0.0, colour), (0.5, colour), (0.5, between), (1.0, between)):
            stops.append(alt.GradientStop(offset=(i + part) / stripes, color=ink))
    return alt.LinearGradient(gradient="linear", stops=stops, x1=0, y1=0, x2=0.5, y2=1)
