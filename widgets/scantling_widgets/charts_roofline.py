"""Kernels under the roof of the device's memory, and axes of the plan under the roofs of its
links."""

from __future__ import annotations

from collections.abc import Mapping

from .figures import Figure, named
from .grammar import alt
from .palette import SECOND
from .words import axis, share, show

_KERNELS = {
    "projections": "#0072b2",
    "mlp": "#56b4e9",
    "experts": "#d55e00",
    "shared_experts": "#e69f00",
    "attention": "#cc79a7",
    "elementwise": "#009e73",
    "logits": "#8a8f98",
    "optimizer": "#9b72aa",
}
_LINKS = {"scale-up": "#0072b2", "scale-out": SECOND}
_RATE, _PER_BYTE = "roofline.achieved_flops", "roofline.intensity"
_DECADES = [10.0**e for e in range(-3, 10)]
_BETWEEN = [200.0, 500.0, 2000.0, 5000.0]
_LOW, _ROOM = 0.4, 2.2  # of the lowest point, and above the peak


def _roof(name: str, rate: float, peak: float, floor: float, right: float) -> dict:
    """The two ends and the ridge of one roof: a slope of `rate` bytes/s up to the peak, then
    level."""
    return {"x": [floor / rate, peak / rate, right], "y": [floor, peak, peak], "roof": [name] * 3}


def _join(tables) -> dict:
    tables = list(tables)
    return (
        {key: [value for table in tables for value in table[key]] for key in tables[0]}
        if tables
        else {}
    )


# ---------------------------------------------------------------- kernels
def _kernels_data(given, roof: Mapping | None = None) -> dict:
    """`roof`: `scantling.physics.roofline.roofline(assessment).as_dict()`."""
    if not roof:
        return {"points": {}}
    rows = roof["kernels"]
    hbm = roof["hbm_bytes_per_s"]
    low, high = min(k["achieved_flops"] for k in rows) * _LOW, max(k["peak_flops"] for k in rows)
    right = max(max(k["intensity"] for k in rows) * 3, high / hbm * 3)
    peaks = {p: "" for p in sorted({k["peak_flops"] for k in rows} | {roof["peak_flops"]})}
    tops = [
        {
            "x": [right if p == high else p / hbm],
            "y": [p],
            "side": ["over" if p == high else "under"],
            "says": [
                f"{show(_RATE, p)}"
                + (", 16 bit" if len(peaks) > 1 and p == roof["bf16_flops"] else " dense peak")
            ],
        }
        for p in peaks
    ]
    return {
        "points": {
            "x": [k["intensity"] for k in rows],
            "y": [k["achieved_flops"] for k in rows],
            "what": [k["label"] for k in rows],
            "kernel": [k["kernel"] for k in rows],
            "share": [k["share"] for k in rows],
            "says": [
                f"{k['label']}: {show(_PER_BYTE, k['intensity'])}, "
                f"{show(_RATE, k['achieved_flops'])} of "
                f"{show(_RATE, k['attainable_flops'])} under the roof "
                f"({k['bound']}-bound), {share(k['share'])} of the step"
                for k in rows
            ],
        },
        "roofs": _join(_roof(f"HBM {i}", hbm, p, low, right) for i, p in enumerate(peaks)),
        "tops": _join(tops),
        "slopes": {
            "x": [0.1 * high / hbm],
            "y": [0.1 * high],
            "says": [f"HBM {show('communication.bytes', hbm)}/s"],
        },
        "frame": {"x": [low / hbm, right], "y": [low, high * _ROOM]},
    }


def _kernels_words(given, roof=None) -> str:
    return (
        "Kernels under the roofline. "
        + "; ".join(_kernels_data(given, roof)["points"].get("says", []))
        + "."
    )


def _axes(x_title: str):
    unit, ticks = axis(_RATE)
    x = alt.X(
        "x:Q",
        title=x_title,
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(
            labelFlush=False,
            labelExpr="datum.value < 1000 ? format(datum.value, '~r') : format(datum.value, '~s')",
            values=_DECADES,
            grid=False,
        ),
    )
    y = alt.Y(
        "y:Q",
        title=unit,
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(labelExpr=ticks, values=[1e12 * v for v in _DECADES + _BETWEEN]),
    )
    return x, y


def _kernels_chart(legend: bool = True) -> alt.Chart:
    x, y = _axes("FLOP per byte of HBM traffic")
    tip = alt.Tooltip("says:N", title=" ")
    names = {
        "projections": "QKV and output projections",
        "mlp": "MLP",
        "experts": "Routed experts (grouped)",
        "shared_experts": "Shared experts",
        "attention": "Attention core",
        "elementwise": "Element-wise chains",
        "logits": "Output head and loss",
        "optimizer": "Optimizer update",
    }
    scale = alt.Scale(domain=list(names.values()), range=[_KERNELS[k] for k in names])
    roofs = (
        alt.Chart(named("roofs"))
        .mark_line(strokeWidth=1.8, style="soft")
        .encode(x=x, y=y, detail="roof:N")
    )
    tops = [
        alt.Chart(named("tops"))
        .transform_filter(f"datum.side == '{side}'")
        .mark_text(align=align, baseline=base, dx=dx, dy=dy, fontSize=10.5, style="ink-text")
        .encode(x=x, y=y, text="says:N")
        for side, align, base, dx, dy in (
            ("over", "right", "bottom", 0, -4),
            ("under", "right", "middle", -8, 0),
        )
    ]
    slopes = (
        alt.Chart(named("slopes"))
        .mark_text(align="right", dx=-9, fontSize=10.5, style="ink-text")
        .encode(x=x, y=y, text="says:N")
    )
    points = (
        alt.Chart(named("points"))
        .mark_point(filled=True, opacity=0.95, strokeWidth=0.8)
        .encode(
            x=x,
            y=y,
            size=alt.Size(
                "share:Q",
                scale=alt.Scale(type="sqrt", domain=[0, 0.7], range=[50, 520]),
                legend=None,
            ),
            color=alt.Color("what:N", scale=scale, sort=None, legend=None),
            tooltip=tip,
        )
    )
    frame = alt.Chart(named("frame")).mark_point(opacity=0).encode(x=x, y=y)
    return alt.layer(frame, roofs, *tops, slopes, points)


COLOURS = _KERNELS
kernels = Figure(
    "roofline",
    "Kernels under the roof of HBM",
    _kernels_chart,
    _kernels_data,
    _kernels_words,
    height=270,
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


def _links_data(given, roof: Mapping | None = None) -> dict:
    if not roof or not roof["axes"]:
        return {"points": {}}
    rows, peak = roof["axes"], roof["peak_flops"]
    rates = {"scale-up": roof["scale_up_bytes_per_s"], "scale-out": roof["scale_out_bytes_per_s"]}
    low = roof["achieved_flops"] * 0.04
    left, right = (
        low / max(rates.values()) / 8,
        max(max(a["intensity"] for a in rows) * 3, 3 * peak / min(rates.values())),
    )  # room for the names of the slopes
    return {
        "points": {
            "x": [a["intensity"] for a in rows],
            "y": [a["achieved_flops"] for a in rows],
            "name": [a["axis"].upper() for a in rows],
            "tier": [a["tier"] for a in rows],
            "side": _sides([a["intensity"] for a in rows]),
            "says": [
                f"{a['axis'].upper()} over {a['tier']}: "
                f"{show(_PER_BYTE, a['intensity'])} sent; the link alone would allow "
                f"{show(_RATE, a['attainable_flops'])}; "
                f"{show('step_s', a['exposed_s'])} of {show('step_s', a['time_s'])} exposed"
                for a in rows
            ],
        },
        "roofs": _join(_roof(tier, rate, peak, low, right) for tier, rate in rates.items()),
        "slopes": _join(
            {
                "x": [0.14 * peak / rate],
                "y": [0.14 * peak],
                "says": [f"{tier} {show('communication.bytes', rate)}/s"],
                "tier": [tier],
                "side": [side],
            }
            for (tier, rate), side in zip(rates.items(), ("left", "right"))
        ),
        "tops": {"x": [right], "y": [peak], "says": [f"{show(_RATE, peak)} dense peak"]},
        "step": {
            "y": [roof["achieved_flops"]],
            "x": [left],
            "says": [f"this plan: {show(_RATE, roof['achieved_flops'])}"],
        },
        "frame": {"x": [left, right], "y": [low, peak * _ROOM]},
    }


def _links_words(given, roof=None) -> str:
    return (
        "Axes of the plan under the roofs of their links. "
        + "; ".join(_links_data(given, roof)["points"].get("says", []))
        + "."
    )


def _links_chart(legend: bool = True) -> alt.Chart:
    x, y = _axes("FLOP of the step per byte that one device sends")
    tip = alt.Tooltip("says:N", title=" ")
    colour = alt.Scale(domain=list(_LINKS), range=list(_LINKS.values()))
    roofs = (
        alt.Chart(named("roofs"))
        .mark_line(strokeWidth=1.8)
        .encode(x=x, y=y, color=alt.Color("roof:N", scale=colour, legend=None))
    )
    slopes = alt.Chart(named("slopes"))
    texts = [
        slopes.transform_filter(f"datum.side == '{side}'")
        .mark_text(
            align="right" if side == "left" else "left",
            dx=-9 if side == "left" else 9,
            fontSize=10.5,
            style="ink-text",
        )
        .encode(x=x, y=y, text="says:N")
        for side in ("left", "right")
    ]
    tops = (
        alt.Chart(named("tops"))
        .mark_text(align="right", baseline="bottom", dy=-4, fontSize=10.5, style="ink-text")
        .encode(x=x, y=y, text="says:N")
    )
    level = alt.Chart(named("step"))
    rule = level.mark_rule(strokeDash=[4, 3], strokeWidth=1.2, style="soft").encode(y=y)
    said = level.mark_text(
        align="left", baseline="bottom", dx=4, dy=-4, fontSize=10.5, style="ink-text"
    ).encode(x=x, y=y, text="says:N")
    points = (
        alt.Chart(named("points"))
        .mark_point(filled=True, size=110, shape="diamond", opacity=1)
        .encode(x=x, y=y, color=alt.Color("tier:N", scale=colour, legend=None), tooltip=tip)
    )
    names = [
        alt.Chart(named("points"))
        .transform_filter(f"datum.side == '{side}'")
        .mark_text(baseline=base, dy=dy, fontSize=11, fontWeight="bold", style="ink-text")
        .encode(x=x, y=y, text="name:N", tooltip=tip)
        for side, base, dy in (("over", "bottom", -8), ("under", "top", 9))
    ]
    frame = alt.Chart(named("frame")).mark_point(opacity=0).encode(x=x, y=y)
    return alt.layer(frame, roofs, rule, *texts, tops, said, points, *names)


links = Figure(
    "roofline-links",
    "Axes of the plan under the roofs of their links",
    _links_chart,
    _links_data,
    _links_words,
    height=270,
    empty="One device: nothing is sent.",
)
