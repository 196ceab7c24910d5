"""Kernels under the roof of the device's memory, and axes of the plan under the roofs of its
links."""

from __future__ import annotations

from collections.abc import Mapping

from .figures import figure
from .palette import KERNELS, SECOND
from .words import axis, share, show

_LINKS = {
    "scale-up": "#0072b2",
    "scale-out": SECOND,
}
_RATE, _PER_BYTE = "roofline.achieved_flops", "roofline.intensity"
_DECADES = [10.0**e for e in range(-3, 10)]
_BETWEEN = [
    200.0,
    500.0,
    2000.0,
    5000.0,
]
_LOW, _ROOM = 0.4, 2.2  # of the lowest point, and above the peak
_UNIT, _TICKS = axis(_RATE)
_AXES = {
    "unit": _UNIT,
    "ticks": _TICKS,
    "decades": _DECADES,
    "flops_decades": [1e12 * v for v in _DECADES + _BETWEEN],
}


def _roof(
    name: str,
    rate: float,
    peak: float,
    floor: float,
    right: float,
) -> list[dict]:
    """The two ends and the ridge of one roof: a slope of `rate` bytes/s up to the peak, then
    level."""
    ends = ((floor / rate, floor), (peak / rate, peak), (right, peak))
    return [
        {
            "x": x,
            "y": y,
            "roof": name,
        }
        for x, y in ends
    ]


# ---------------------------------------------------------------- kernels
def _kernels_rows(given, roof: Mapping | None = None) -> dict:
    """`roof`: `scantling.physics.roofline.roofline(assessment).as_dict()`."""
    if not roof:
        return {"points": []}
    rows, hbm = roof["kernels"], roof["hbm_bytes_per_s"]
    low, high = min(k["achieved_flops"] for k in rows) * _LOW, max(k["peak_flops"] for k in rows)
    right = max(max(k["intensity"] for k in rows) * 3, high / hbm * 3)
    peaks = sorted({k["peak_flops"] for k in rows} | {roof["peak_flops"]})
    bits = [
        ", 16 bit" if len(peaks) > 1 and p == roof["bf16_flops"] else " dense peak" for p in peaks
    ]
    return {
        "points": [
            {
                "x": k["intensity"],
                "y": k["achieved_flops"],
                "what": k["label"],
                "kernel": k["kernel"],
                "share": k["share"],
                "says": (
                    f"{k['label']}: {show(_PER_BYTE, k['intensity'])}, "
                    f"{show(_RATE, k['achieved_flops'])} of {show(_RATE, k['attainable_flops'])} "
                    f"under the roof ({k['bound']}-bound), {share(k['share'])} of the step"
                ),
            }
            for k in rows
        ],
        "roofs": [
            r
            for i, p in enumerate(peaks)
            for r in _roof(
                f"HBM {i}",
                hbm,
                p,
                low,
                right,
            )
        ],
        "tops": [
            {
                "x": right if p == high else p / hbm,
                "y": p,
                "side": "over" if p == high else "under",
                "says": show(_RATE, p) + bit,
            }
            for p, bit in zip(peaks, bits)
        ],
        "slopes": [
            {
                "x": 0.1 * high / hbm,
                "y": 0.1 * high,
                "says": f"HBM {show('communication.bytes', hbm)}/s",
            }
        ],
        "frame": [
            {
                "x": low / hbm,
                "y": low,
            },
            {
                "x": right,
                "y": high * _ROOM,
            },
        ],
    }


kernels = figure(
    "kernels",
    _kernels_rows,
    given={
        **_AXES,
        "names": list(KERNELS),
        "hues": list(KERNELS.values()),
    },
)


# ---------------------------------------------------------------- axes of the plan
def _sides(places, near: float = 2.0) -> list[str]:
    """Over or under its mark for each name, so that neighbours on a log axis do not cover each
    other."""
    order, out = sorted(range(len(places)), key=lambda i: places[i]), ["over"] * len(places)
    for before, here in zip(order, order[1:]):
        if places[here] / places[before] < near and out[before] == "over":
            out[here] = "under"
    return out


def _links_rows(given, roof: Mapping | None = None) -> dict:
    if not roof or not roof["axes"]:
        return {"points": []}
    rows, peak, achieved = roof["axes"], roof["peak_flops"], roof["achieved_flops"]
    rates = {
        "scale-up": roof["scale_up_bytes_per_s"],
        "scale-out": roof["scale_out_bytes_per_s"],
    }
    low, slow, fast = achieved * 0.04, min(rates.values()), max(rates.values())
    left = low / fast / 8  # room for the names of the slopes
    right = max(max(a["intensity"] for a in rows) * 3, 3 * peak / slow)
    return {
        "points": [
            {
                "x": a["intensity"],
                "y": a["achieved_flops"],
                "name": a["axis"].upper(),
                "tier": a["tier"],
                "side": side,
                "says": (
                    f"{a['axis'].upper()} over {a['tier']}: {show(_PER_BYTE, a['intensity'])} "
                    f"sent; the link alone would allow {show(_RATE, a['attainable_flops'])}; "
                    f"{show('step_s', a['exposed_s'])} of {show('step_s', a['time_s'])} exposed"
                ),
            }
            for a, side in zip(rows, _sides([a["intensity"] for a in rows]))
        ],
        "roofs": [
            r
            for tier, rate in rates.items()
            for r in _roof(
                tier,
                rate,
                peak,
                low,
                right,
            )
        ],
        "slopes": [
            {
                "x": 0.14 * peak / rate,
                "y": 0.14 * peak,
                "says": f"{tier} {show('communication.bytes', rate)}/s",
                "tier": tier,
                "side": side,
            }
            for (tier, rate), side in zip(rates.items(), ("left", "right"))
        ],
        "tops": [
            {
                "x": right,
                "y": peak,
                "says": f"{show(_RATE, peak)} dense peak",
            }
        ],
        "step": [
            {
                "x": left,
                "y": achieved,
                "says": f"this plan: {show(_RATE, achieved)}",
            }
        ],
        "frame": [
            {
                "x": left,
                "y": low,
            },
            {
                "x": right,
                "y": peak * _ROOM,
            },
        ],
    }


links = figure(
    "links",
    _links_rows,
    given={
        **_AXES,
        "tiers": list(_LINKS),
        "hues": list(_LINKS.values()),
    },
)
