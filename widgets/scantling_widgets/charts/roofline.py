"""Kernels under the roof of the device's memory, and axes of the plan under the roofs of its
links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scantling.base.show import flops, rate, seconds, share, size

from .altair_loader import alt
from .figure import Data, Facts, Figure, Row, quantity_axis, saying
from .palette import KERNELS, SECOND
from .theme import layered, over, tip

_LINKS = {"scale-up": "#0072b2", "scale-out": SECOND}
_DECADES = [10.0**e for e in range(-3, 10)]
_BETWEEN = [200.0, 500.0, 2000.0, 5000.0]
_LOW, _ROOM = 0.4, 2.2  # of the lowest point, and above the peak


class Roof(NamedTuple):
    """A slope of `rate` [bytes/s] up to the peak [FLOP/s], then level."""

    name: str
    rate: float
    peak: float


def _intensity(value: float) -> str:
    return rate(value, "FLOP/byte")


def _corners(roofs: Iterable[Roof], low: float, right: float) -> list[Row]:
    """The two ends and the ridge of each roof."""
    rows = []
    for name, rate_, peak in roofs:
        for x, y in ((low / rate_, low), (peak / rate_, peak), (right, peak)):
            rows.append({"x": x, "y": y, "roof": name})
    return rows


def _axes(x_title: str) -> tuple[alt.X, alt.Y]:
    """FLOP per byte across, FLOP/s up, both in decades."""
    unit, ticks = quantity_axis("roofline.achieved_flops")
    scale = alt.Scale(type="log", nice=False)
    x = alt.X(
        "x:Q",
        title=x_title,
        axis=alt.Axis(
            grid=False,
            labelExpr="datum.value < 1000 ? format(datum.value, '~r') : format(datum.value, '~s')",
            labelFlush=False,
            values=_DECADES,
        ),
        scale=scale,
    )
    y = alt.Y(
        "y:Q",
        title="TFLOP/s",
        axis=alt.Axis(labelExpr=ticks, values=[1e12 * v for v in _DECADES + _BETWEEN]),
        scale=scale,
    )
    return x, y


def _texts(name: str, **mark: Any) -> alt.Chart:
    """Texts of a picture of roofs."""
    texts: alt.Chart = over(name).mark_text(fontSize=10.5, style="ink-text", **mark)
    return texts


# ---------------------------------------------------------------- kernels
def _kernels_rows(figures: Facts, roof: Mapping[str, Any] | None = None) -> Data:
    """`roof`: `scantling.physics.roofline.roofline(assessment).as_dict()`."""
    if not roof:
        return {"points": []}
    kernels, hbm = roof["kernels"], roof["hbm_bytes_per_s"]
    low = min(kernel["achieved_flops"] for kernel in kernels) * _LOW
    peaks = sorted({roof["peak_flops"], *(kernel["peak_flops"] for kernel in kernels)})
    high = peaks[-1]
    right = 3 * max(high / hbm, *(kernel["intensity"] for kernel in kernels))
    return {
        "points": [_kernel(kernel) for kernel in kernels],
        "roofs": _corners((Roof(f"HBM {i}", hbm, p) for i, p in enumerate(peaks)), low, right),
        "tops": [_top(peak, peaks, roof, right) for peak in peaks],
        "slopes": [{"x": 0.1 * high / hbm, "y": 0.1 * high, "says": f"HBM {size(hbm)}/s"}],
        "frame": [{"x": low / hbm, "y": low}, {"x": right, "y": high * _ROOM}],
    }


def _kernel(kernel: Mapping[str, Any]) -> Row:
    return {
        "x": kernel["intensity"],
        "y": kernel["achieved_flops"],
        "what": kernel["label"],
        "kernel": kernel["kernel"],
        "share": kernel["share"],
        "says": f"{kernel['label']}: {_intensity(kernel['intensity'])}, "
        f"{flops(kernel['achieved_flops'])} of {flops(kernel['attainable_flops'])} under the roof "
        f"({kernel['bound']}-bound), {share(kernel['share'])} of the step",
    }


def _top(peak: float, peaks: Sequence[float], roof: Mapping[str, Any], right: float) -> Row:
    """The name of a level: over its right end, or, below the highest, before its ridge."""
    sixteen = len(peaks) > 1 and peak == roof["bf16_flops"]
    highest = peak == peaks[-1]
    return {
        "x": right if highest else peak / roof["hbm_bytes_per_s"],
        "y": peak,
        "says": f"{flops(peak)}{', 16 bit' if sixteen else ' dense peak'}",
        "side": "over" if highest else "under",
    }


def _draw_kernels(legend: bool) -> alt.LayerChart:
    x, y = _axes("FLOP per byte of HBM traffic")
    says = alt.Text("says:N")
    top = (
        _texts("tops", align="right", baseline="bottom", dx=0, dy=-4)
        .transform_filter("datum.side == 'over'")
        .encode(x, y, says)
    )
    lower = (
        _texts("tops", align="right", baseline="middle", dx=-8, dy=0)
        .transform_filter("datum.side == 'under'")
        .encode(x, y, says)
    )
    roofs = over("roofs").mark_line(strokeWidth=1.8, style="soft")
    points = (
        over("points")
        .mark_point(filled=True, opacity=0.95, strokeWidth=0.8)
        .encode(
            x,
            y,
            alt.Color(
                "kernel:N",
                legend=None,
                scale=alt.Scale(domain=list(KERNELS), range=list(KERNELS.values())),
                sort=None,
            ),
            alt.Size(
                "share:Q",
                legend=None,
                scale=alt.Scale(type="sqrt", domain=[0, 0.7], range=[50, 520]),
            ),
            tip(),
        )
    )
    return layered(
        over("frame").mark_point(opacity=0).encode(x, y),
        roofs.encode(x, y, alt.Detail("roof:N")),
        top,
        lower,
        _texts("slopes", align="right", dx=-9).encode(x, y, says),
        points,
    )


kernels = Figure(
    name="roofline",
    title="Kernels under the roof of HBM",
    draw=_draw_kernels,
    rows=_kernels_rows,
    words=saying(_kernels_rows, "Kernels under the roofline.", ["points"]),
    height=270,
)


# ---------------------------------------------------------------- axes of the plan
def _sides(places: Sequence[float], near: float = 4.0) -> list[str]:
    """Over or under its mark for each name, so that neighbours on a log axis do not cover each
    other."""
    order, sides = sorted(range(len(places)), key=places.__getitem__), ["over"] * len(places)
    for before, here in zip(order, order[1:]):
        if places[here] / places[before] < near and sides[before] == "over":
            sides[here] = "under"
    return sides


def _links_rows(figures: Facts, roof: Mapping[str, Any] | None = None) -> Data:
    if not roof or not roof["axes"]:
        return {"points": []}
    axes, peak, achieved = roof["axes"], roof["peak_flops"], roof["achieved_flops"]
    rates = {"scale-up": roof["scale_up_bytes_per_s"], "scale-out": roof["scale_out_bytes_per_s"]}
    low, slow, fast = achieved * 0.04, min(rates.values()), max(rates.values())
    left = low / fast / 8  # room for the names of the slopes
    places = [row["intensity"] for row in axes]
    right = 3 * max(peak / slow, *places)
    return {
        "points": [_axis(axis, side) for axis, side in zip(axes, _sides(places))],
        "roofs": _corners((Roof(tier, rate_, peak) for tier, rate_ in rates.items()), low, right),
        "slopes": [
            {
                "x": 0.14 * peak / rate_,
                "y": 0.14 * peak,
                "says": f"{tier} {size(rate_)}/s",
                "rate": f"{size(rate_)}/s",
                "tier": tier,
                "side": "left" if tier == "scale-up" else "right",
            }
            for tier, rate_ in rates.items()
        ],
        "tops": [{"x": right, "y": peak, "says": f"{flops(peak)} dense peak"}],
        "step": [{"x": left, "y": achieved, "says": f"this plan: {flops(achieved)}"}],
        "frame": [{"x": left, "y": low}, {"x": right, "y": peak * _ROOM}],
    }


def _axis(axis: Mapping[str, Any], side: str) -> Row:
    name = axis["axis"].upper()
    return {
        "x": axis["intensity"],
        "y": axis["achieved_flops"],
        "name": name,
        "tier": axis["tier"],
        "side": side,
        "says": f"{name} over {axis['tier']}: {_intensity(axis['intensity'])} sent; the link alone "
        f"would allow {flops(axis['attainable_flops'])}; {seconds(axis['exposed_s'])} of "
        f"{seconds(axis['time_s'])} exposed",
    }


def _draw_links(legend: bool) -> alt.LayerChart:
    x, y = _axes("FLOP of the step per byte sent")
    tiers = alt.Scale(domain=list(_LINKS), range=list(_LINKS.values()))
    says = alt.Text("says:N")

    def name(side: str, baseline: Any, dy: int) -> alt.Chart:
        chart: alt.Chart = (
            over("points")
            .transform_filter(f"datum.side == '{side}'")
            .mark_text(baseline=baseline, dy=dy, fontSize=11, fontWeight="bold", style="ink-text")
            .encode(x, y, alt.Text("name:N"), tip())
        )
        return chart

    def slope(side: str, align: Any, dx: int) -> alt.Chart:
        texts = _texts("slopes", align=align, dx=dx).transform_filter(f"datum.side == '{side}'")
        shown = texts.transform_calculate(name="width < 300 ? datum.rate : datum.says")
        return shown.encode(x, y, alt.Text("name:N"))

    roofs = over("roofs").mark_line(strokeWidth=1.8)
    step = over("step").mark_rule(strokeDash=[4, 3], strokeWidth=1.2, style="soft")
    points = over("points").mark_point(filled=True, opacity=1, shape="diamond", size=110)
    return layered(
        over("frame").mark_point(opacity=0).encode(x, y),
        roofs.encode(x, y, alt.Color("roof:N", legend=None, scale=tiers)),
        step.encode(y),
        slope("left", "right", -9),
        slope("right", "left", 9),
        _texts("tops", align="right", baseline="bottom", dy=-4).encode(x, y, says),
        _texts("step", align="left", baseline="top", dx=4, dy=4).encode(x, y, says),
        points.encode(x, y, alt.Color("tier:N", legend=None, scale=tiers), tip()),
        name("over", "bottom", -8),
        name("under", "top", 9),
    )


links = Figure(
    name="roofline-links",
    title="Axes of the plan under the roofs of their links",
    draw=_draw_links,
    rows=_links_rows,
    words=saying(_links_rows, "Axes of the plan under the roofs of their links.", ["points"]),
    height=270,
    empty="One device: nothing is sent.",
)
