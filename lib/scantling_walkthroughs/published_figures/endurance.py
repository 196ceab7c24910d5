"""Published figures about failures, saves and goodput, from the closed forms of failures, goodput
and elastic."""

from functools import partial

import numpy as np
from scantling import catalogue
from scantling.base.units import HOUR_S, MINUTE_S
from scantling.endure import elastic, failures, goodput, spares

from .recreation import Curves, Figure, PrintedValue, curves_through, points_of, printed_values


def mtbf_s(preset: str, devices: float) -> float:
    """Seconds between failures of a job at the rate of a fleet."""
    rate = catalogue.failure_preset(preset).per_1000_node_days
    return float(failures.job_mtbf_s(rate, devices))


def implied_restart_min() -> dict[str, float]:
    """Minutes of restart that the printed points of an ETTR of 0.5 on 100,000 devices take, by
    fleet: u = M (1 - ETTR) - dt / 2, with saves that do not block.

    Kokolis et al. give 5 to 20 minutes for it and do not say which of them a figure is drawn with;
    two points that need different ones cannot both lie on a curve of one.
    """
    interval_min = {
        row.failure_preset: row.at
        for row in printed_values("ettr-interval")
        if row.devices == 100_000 and row.value == 0.5
    }
    return {
        preset.upper(): mtbf_s(preset, 100_000) / MINUTE_S * 0.5 - interval / 2
        for preset, interval in interval_min.items()
    }


def _mtbf_h(row: PrintedValue) -> float:
    return mtbf_s(row.failure_preset, row.at) / HOUR_S


def _ettr_by_interval(row: PrintedValue) -> float:
    m = mtbf_s(row.failure_preset, row.devices) / MINUTE_S
    return float(goodput.ettr_meta(1 / m, row.at, row.stall_min, row.restart_min))


def _ettr_by_scale(row: PrintedValue) -> float:
    """ETTR of a job of so many devices, in minutes, by the formula that its figure was drawn
    with."""
    if row.failure_preset:
        m = mtbf_s(row.failure_preset, row.at) / MINUTE_S
    else:
        m = float(failures.job_mtbf_s(row.failures_per_1000_node_days, row.at)) / MINUTE_S
    match row.formula:
        case "linear":
            ettr = goodput.ettr_linear(m, row.loss_min)
        case "ft-hsdp":
            ettr = elastic.ft_hsdp(
                m, row.replicas, stall_s=row.stall_min, replica_recovery_s=row.loss_min
            )
        case "meta":
            save = row.save_min
            interval = goodput.young(m, save)
            ettr = goodput.ettr_meta(1 / m, interval, save, row.restart_min)
        case "exact":
            interval = row.interval_min
            ettr = goodput.ettr(m, 0.0, interval, restart_s=row.restart_min)
        case formula:
            raise ValueError(f"no formula of an ETTR is called {formula}")
    return float(ettr)


def _step_s() -> float:
    """Seconds of a step behind ByteRobust's table: the row with the longest save sets it, step /
    (step + stall) = printed share."""
    longest = max(printed_values("save-stall"), key=lambda row: row.at)
    return longest.at * longest.value / (1 - longest.value)


def _useful_share(row: PrintedValue) -> float:
    return _step_s() / (_step_s() + row.at)


def _save_stall_curves() -> Curves:
    stall_s = np.geomspace(0.01, 20, 40)
    return {"step / (step + stall)": (stall_s, _step_s() / (_step_s() + stall_s))}


def _standbys(row: PrintedValue) -> float:
    return float(spares.standbys(int(row.at), row.failure_chance))


MTBF_SCALE = Figure(
    id="mtbf-scale",
    title="Time between failures against scale",
    basis="closed form",
    formula="M = 1 / (devices / 8 x failures per node-day)",
    x="devices",
    quantity="mean time between failures",
    unit="h",
    median=0.02,
    worst=0.04,
    misses=(
        "jobs of 1,024 devices failed several times as often as the rate says: "
        "it was fitted on larger jobs and misses what kills small ones"
    ),
    log="xy",
    points=partial(points_of, "mtbf-scale", _mtbf_h),
    curves=partial(curves_through, "mtbf-scale", _mtbf_h, np.geomspace(1000, 1000000.0, 40)),
)
ETTR_INTERVAL = Figure(
    id="ettr-interval",
    title="Share of time that trains against the checkpoint interval",
    basis="closed form",
    formula="E[ETTR] = (1 - l (u + dt / 2)) / (1 + w / dt), l failures per second",
    x="minutes between saves",
    quantity="ETTR",
    unit="1",
    absolute=True,
    median=0.02,
    worst=0.05,
    misses=(
        "two points say what an ETTR of one half takes at 100,000 devices, 7 "
        "minutes between saves on RSC-1 and 21 on RSC-2, and no one restart "
        "time meets both: RSC-1's needs 5 minutes, which is drawn, RSC-2's "
        "needs 14; the paper gives 5 to 20 and does not say which. At this size "
        "the first-order formula itself is too low"
    ),
    log="x",
    points=partial(points_of, "ettr-interval", _ettr_by_interval),
    curves=partial(curves_through, "ettr-interval", _ettr_by_interval, np.geomspace(0.5, 180, 60)),
)
ETTR_SCALE = Figure(
    id="ettr-scale",
    title="Share of time that trains against scale",
    basis="closed form",
    formula=(
        "restart of the whole job: 1 - L / M; of one replica of d: 1 - S / M - "
        "(R / M) / d; else E[ETTR] at Young's or the given interval"
    ),
    x="devices",
    quantity="ETTR",
    unit="1",
    absolute=True,
    median=0.025,
    worst=0.035,
    log="x",
    points=partial(points_of, "ettr-scale", _ettr_by_scale),
    curves=partial(curves_through, "ettr-scale", _ettr_by_scale, np.geomspace(2000, 131072, 40)),
)
SAVE_STALL = Figure(
    id="save-stall",
    title="What a save at every step leaves of the MFU",
    basis="closed form",
    formula="step / (step + stall)",
    x="seconds that a save blocks",
    quantity="share of MFU",
    unit="1",
    absolute=True,
    median=0.01,
    worst=0.02,
    log="x",
    points=partial(points_of, "save-stall", _useful_share),
    curves=_save_stall_curves,
)
STANDBYS = Figure(
    id="standbys",
    title="Warm standbys for one window of failures",
    basis="closed form",
    formula="the 99th percentile of Binomial(machines, p), one p for all four rows",
    x="machines",
    quantity="standbys",
    unit="machines",
    absolute=True,
    median=0.0,
    worst=0.0,
    log="x",
    points=partial(points_of, "standbys", _standbys),
)

FIGURES = (MTBF_SCALE, ETTR_INTERVAL, ETTR_SCALE, SAVE_STALL, STANDBYS)
