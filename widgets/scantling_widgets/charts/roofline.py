"""Kernels under the roof of the device's memory, and axes of the plan under the roofs of its
links."""

from collections.abc import Iterable, Mapping

from .chart import figure, shown_on, worded
from .palette import KERNELS, SECOND

_LINKS = {"scale-up": "#0072b2", "scale-out": SECOND}
_DECADES = [10.0**e for e in range(-3, 10)]
_BETWEEN = [200.0, 500.0, 2000.0, 5000.0]
_LOW, _ROOM = 0.4, 2.2  # of the lowest point, and above the peak


def _scales(hues: Mapping) -> dict:
    """Both axes in decades, and what is coloured."""
    return shown_on("roofline.achieved_flops", "{}") | {
        "decades": _DECADES,
        "flops_decades": [1e12 * v for v in _DECADES + _BETWEEN],
        "names": list(hues),
        "hues": list(hues.values()),
    }


def _spot(x: float, y: float, **more) -> dict:
    """One place of a picture, and what it says."""
    return {"x": x, "y": y, **more}


def _roofs(slopes: Iterable, low: float, right: float) -> list[dict]:
    """The two ends and the ridge of each roof (name, rate, peak): a slope of `rate` bytes/s up to
    the peak, then level."""
    return [
        _spot(x, y, roof=name)
        for name, rate, peak in slopes
        for x, y in ((low / rate, low), (peak / rate, peak), (right, peak))
    ]


# ---------------------------------------------------------------- kernels
def _kernels_rows(given, roof: Mapping | None = None) -> dict:
    """`roof`: `scantling.physics.roofline.roofline(assessment).as_dict()`."""
    if not roof:
        return {"points": []}
    rows, hbm = roof["kernels"], roof["hbm_bytes_per_s"]
    low = min(kernel["achieved_flops"] for kernel in rows) * _LOW
    peaks = sorted({roof["peak_flops"], *(kernel["peak_flops"] for kernel in rows)})
    high = peaks[-1]
    right = 3 * max(high / hbm, *(kernel["intensity"] for kernel in rows))
    tops = [
        {
            "peak": p,
            "bits": ", 16 bit" if len(peaks) > 1 and p == roof["bf16_flops"] else " dense peak",
            "x": right if p == high else p / hbm,
            "side": "over" if p == high else "under",
        }
        for p in peaks
    ]
    slope = _spot(0.1 * high / hbm, 0.1 * high, rate=hbm)
    return {
        "points": worded("kernels", "points", rows),
        "roofs": _roofs(((f"HBM {i}", hbm, p) for i, p in enumerate(peaks)), low, right),
        "tops": worded("kernels", "tops", tops),
        "slopes": worded("kernels", "slopes", [slope]),
        "frame": [_spot(low / hbm, low), _spot(right, high * _ROOM)],
    }


kernels = figure("kernels", _kernels_rows, given=_scales(KERNELS))


# ---------------------------------------------------------------- axes of the plan
def _sides(places, near: float = 2.0) -> list[str]:
    """Over or under its mark for each name, so that neighbours on a log axis do not cover each
    other."""
    order, out = sorted(range(len(places)), key=places.__getitem__), ["over"] * len(places)
    for before, here in zip(order, order[1:]):
        if places[here] / places[before] < near and out[before] == "over":
            out[here] = "under"
    return out


def _links_rows(given, roof: Mapping | None = None) -> dict:
    if not roof or not roof["axes"]:
        return {"points": []}
    rows, peak, achieved = roof["axes"], roof["peak_flops"], roof["achieved_flops"]
    rates = {tier: roof[tier.replace("-", "_") + "_bytes_per_s"] for tier in _LINKS}
    low, slow, fast = achieved * 0.04, min(rates.values()), max(rates.values())
    left = low / fast / 8  # room for the names of the slopes
    places = [row["intensity"] for row in rows]
    right = 3 * max(peak / slow, *places)
    named = [
        row | {"name": row["axis"].upper(), "side": side} for row, side in zip(rows, _sides(places))
    ]
    slopes = [
        _spot(0.14 * peak / rate, 0.14 * peak, tier=tier, rate=rate, side=side)
        for (tier, rate), side in zip(rates.items(), ("left", "right"))
    ]
    return {
        "points": worded("links", "points", named),
        "roofs": _roofs(((tier, rate, peak) for tier, rate in rates.items()), low, right),
        "slopes": worded("links", "slopes", slopes),
        "tops": worded("links", "tops", [_spot(right, peak)]),
        "step": worded("links", "step", [_spot(left, achieved)]),
        "frame": [_spot(left, low), _spot(right, peak * _ROOM)],
    }


links = figure("links", _links_rows, given=_scales(_LINKS))
