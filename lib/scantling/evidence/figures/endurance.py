"""Published figures about failures, saves and goodput, from the closed forms of failures, goodput
and elastic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ... import catalogue
from ...base.units import HOUR_S, MINUTE_S
from ...endure import elastic, failures, goodput, spares
from .record import points_of, printed


def _mtbf_h(preset: str, devices):
    return (
        failures.job_mtbf_s(catalogue.failure_preset(preset).per_1000_node_days, devices) / HOUR_S
    )


def _mtbf_curves():
    axis = np.geomspace(1000, 1e6, 40)
    return {
        series: (axis, _mtbf_h(preset, axis))
        for series, preset in (
            ("RSC-1", "rsc-1"),
            ("Llama 3", "llama3"),
            ("one failure in 50,000 device-hours", "epoch"),
        )
    }


def _ettr(g, interval_min):
    m = (
        failures.job_mtbf_s(catalogue.failure_preset(g["preset"]).per_1000_node_days, g["devices"])
        / MINUTE_S
    )
    return goodput.ettr_meta(1 / m, interval_min, g["stall_min"], g["restart_min"])


def _ettr_interval_curves():
    axis, out = np.geomspace(0.5, 180, 60), {}
    for r in printed("ettr-interval"):
        if r["series"] not in out:
            y = _ettr(r["given"], axis)
            out[r["series"]] = (axis[y > 0], y[y > 0])
    return out


def implied_restart_min(devices: float = 100_000, ettr: float = 0.5) -> dict[str, float]:
    """Minutes of restart that the printed points of one ETTR take, by fleet: u = M (1 - ETTR) - dt
    / 2, with saves that do not block.

    Kokolis et al. give 5 to 20 minutes for it and do not say which of them a figure is drawn with;
    two points that need different ones cannot both lie on a curve of one.
    """
    rows = [
        r
        for r in printed("ettr-interval")
        if r["given"]["devices"] == devices and r["value"] == ettr
    ]
    mtbf_min = {
        r["given"]["preset"]: float(
            failures.job_mtbf_s(
                catalogue.failure_preset(r["given"]["preset"]).per_1000_node_days, devices
            )
        )
        / MINUTE_S
        for r in rows
    }
    return {
        preset.upper(): mtbf_min[preset] * (1 - ettr) - r["x"] / 2
        for r in rows
        for preset in [r["given"]["preset"]]
    }


def exact_ettr(preset: str, devices, interval_s, *, stall_s=0.0, restart_s=0.0):
    """The exact share of time (goodput.ettr) at a preset's failure rate; what the first-order
    figures of the papers should have been."""
    m = failures.job_mtbf_s(catalogue.failure_preset(preset).per_1000_node_days, devices)
    return goodput.ettr(m, stall_s, interval_s, restart_s=restart_s)


def _scale(r) -> float:
    g, n = r["given"], r["x"]
    rate = g["rate"] if "rate" in g else catalogue.failure_preset(g["preset"]).per_1000_node_days
    m = float(failures.job_mtbf_s(rate, n)) / MINUTE_S
    match g["kind"]:
        case "linear":
            return goodput.ettr_linear(m, g["loss_min"])
        case "ft-hsdp":
            return elastic.ft_hsdp(
                m * MINUTE_S,
                g["replicas"],
                stall_s=g["stall_min"] * MINUTE_S,
                replica_recovery_s=g["loss_min"] * MINUTE_S,
            )
        case "meta":
            return goodput.ettr_meta(
                1 / m, goodput.young(m, g["save_min"]), g["save_min"], g["restart_min"]
            )
        case "exact":
            return goodput.ettr(m, 0.0, g["interval_min"], restart_s=g["restart_min"])


def _scale_curves():
    out = {}
    axis = np.geomspace(2000, 131_072, 40)
    for r in printed("ettr-scale"):
        y = np.array([_scale({**r, "x": n}) for n in axis])
        out[r["series"]] = (axis[y > 0], y[y > 0])
    return out


def _step_s() -> float:
    """Seconds of a step behind ByteRobust's table: the row with the longest save sets it, step /
    (step + stall) = printed share."""
    row = next(r for r in printed("save-stall") if r["given"].get("sets"))
    return row["x"] * row["value"] / (1 - row["value"])


def _save_stall(r) -> float:
    return _step_s() / (_step_s() + r["x"])


def _save_stall_points():
    return [
        replace(
            p,
            counted=p.series != "Megatron",
            why="sets the step time" if p.series == "Megatron" else "",
        )
        for p in points_of("save-stall", _save_stall)
    ]


def _save_stall_curves():
    axis = np.geomspace(0.01, 20, 40)
    return {"step / (step + stall)": (axis, _step_s() / (_step_s() + axis))}


OURS = {  # our value for a printed row
    "mtbf-scale": lambda r: _mtbf_h(r["given"]["preset"], r["x"]),
    "ettr-interval": lambda r: _ettr(r["given"], r["x"]),
    "ettr-scale": _scale,
    "standbys": lambda r: spares.standbys(int(r["x"]), r["given"]["per_window"]),
}
POINTS = {  # all points
    "save-stall": _save_stall_points,
}
CURVES = {  # ours between the points
    "mtbf-scale": _mtbf_curves,
    "ettr-interval": _ettr_interval_curves,
    "ettr-scale": _scale_curves,
    "save-stall": _save_stall_curves,
}
