"""Published figures about failures, saves and goodput, from the closed forms of failures, goodput
and elastic."""

import numpy as np
from scantling import catalogue
from scantling.base.units import HOUR_S, MINUTE_S
from scantling.endure import elastic, failures, goodput, spares

from .record import printed


def _mtbf_s(preset: str, devices):
    return failures.job_mtbf_s(catalogue.failure_preset(preset).per_1000_node_days, devices)


def _ettr(g, interval_min):
    return goodput.ettr_meta(
        1 / (_mtbf_s(g["preset"], g["devices"]) / MINUTE_S),
        interval_min,
        g["stall_min"],
        g["restart_min"],
    )


def implied_restart_min() -> dict:
    """Minutes of restart that the printed points of an ETTR of 0.5 on 100,000 devices take, by
    fleet: u = M (1 - ETTR) - dt / 2, with saves that do not block.

    Kokolis et al. give 5 to 20 minutes for it and do not say which of them a figure is drawn with;
    two points that need different ones cannot both lie on a curve of one.
    """
    found = {
        r["given"]["preset"]: r["x"]
        for r in printed("ettr-interval")
        if r["given"]["devices"] == 100_000 and r["value"] == 0.5
    }
    return {
        preset.upper(): float(_mtbf_s(preset, 100_000)) / MINUTE_S * 0.5 - interval_min / 2
        for preset, interval_min in found.items()
    }


def _scale(r):
    g = r["given"]
    n = r["x"]
    mtbf_s = failures.job_mtbf_s(g["rate"], n) if "rate" in g else _mtbf_s(g["preset"], n)
    m = mtbf_s / MINUTE_S
    match g["kind"]:
        case "linear":
            return goodput.ettr_linear(m, g["loss_min"])
        case "ft-hsdp":
            return elastic.ft_hsdp(
                m, g["replicas"], stall_s=g["stall_min"], replica_recovery_s=g["loss_min"]
            )
        case "meta":
            save = g["save_min"]
            return goodput.ettr_meta(1 / m, goodput.young(m, save), save, g["restart_min"])
        case "exact":
            return goodput.ettr(m, 0.0, g["interval_min"], restart_s=g["restart_min"])


def _step_s() -> float:
    """Seconds of a step behind ByteRobust's table: the row with the longest save sets it, step /
    (step + stall) = printed share."""
    row = next(r for r in printed("save-stall") if r["given"].get("sets"))
    return row["x"] * row["value"] / (1 - row["value"])


def _save_stall_curves():
    stall_s = np.geomspace(0.01, 20, 40)
    return {"step / (step + stall)": (stall_s, OURS["save-stall"]({"x": stall_s}))}


OURS = {  # our value for a printed row
    "mtbf-scale": lambda r: _mtbf_s(r["given"]["preset"], r["x"]) / HOUR_S,
    "ettr-interval": lambda r: _ettr(r["given"], r["x"]),
    "ettr-scale": _scale,
    "save-stall": lambda r: _step_s() / (_step_s() + r["x"]),
    "standbys": lambda r: spares.standbys(int(r["x"]), r["given"]["per_window"]),
}
CURVES = {"save-stall": _save_stall_curves}  # ours between the points
