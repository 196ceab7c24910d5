"""Common claims about failures and checkpoints at scale, put to the numbers of the library."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scantling import catalogue
from scantling.base.units import DAY_S, HOUR_S, MINUTE_S
from scantling.endure import elastic, failures, goodput, spares
from scantling.endure.checkpoint import snapshot_stall_s
from scantling.physics import stragglers


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim as it goes round, what the numbers say ("holds", "does not hold as worded",
    "depends"), and those numbers."""

    id: str
    claim: str
    verdict: str
    finding: str
    numbers: dict

    def as_dict(self) -> dict:
        return dict(self.__dict__)


def claims() -> tuple[Claim, ...]:
    """Rules of thumb about failures and checkpoints at scale, each worked out; the verdict follows
    from the numbers, not the other way round."""
    return (
        _interruptions(),
        _interval(),
        _lost_work(),
        _stall(),
        _peer(),
        _spares(),
        _mtbf_100k(),
        _half(),
        _slowest(),
        _elastic(),
    )


def said(id, claim, holds, finding, numbers, depends=False) -> Claim:
    """A Claim with its verdict from whether it holds, or depends."""
    return Claim(
        id=id,
        claim=claim,
        verdict="depends" if depends else "holds" if holds else "does not hold as worded",
        finding=finding,
        numbers=numbers,
    )


def _interruptions():
    hours = 54 * 24 / 419
    return said(
        "interruptions",
        "16,384 H100 meet a hardware failure every few hours",
        2 <= hours <= 5,
        (
            f"419 unexpected interruptions in 54 days: one every {hours:.2f} h; 78 % of them "
            f"hardware, so one of those every {hours / 0.78:.2f} h"
        ),
        {"hours": hours, "hardware_hours": hours / 0.78},
    )


def _interval():
    m, d = 3 * HOUR_S, np.array([1.0, 5.0, 10.0, 30.0, 60.0, 150.0])
    best, y = goodput.optimum_interval(m, d) / MINUTE_S, goodput.young(m, d) / MINUTE_S
    span = np.array([15.0, 30.0]) * MINUTE_S
    need = span**2 / (2 * m)
    return said(
        "interval",
        "MTBF 3 h and seconds of stall put Young/Daly's interval at 15-30 min",
        bool(np.any((y[:3] >= 15) & (y[:3] <= 30))),
        (
            f"1 s gives {best[0]:.1f} min, 5 s {best[1]:.1f}, 10 s {best[2]:.1f}; 15-30 min "
            f"takes {need[0]:.1f}-{need[1]:.0f} s of stall"
        ),
        {
            "stall_s": d.tolist(),
            "optimum_min": best.tolist(),
            "young_min": y.tolist(),
            "stall_for_15_to_30_min_s": need.tolist(),
        },
    )


def _lost_work():
    m, d, durable = 3 * HOUR_S, 60.0, 120.0
    tau = float(goodput.optimum_interval(m, d))
    worst, mean = tau + d + durable, tau / 2 + durable
    return said(
        "lost-work",
        "checkpointing at the optimum bounds worst-case lost work to a few percent of an interval",
        worst < 0.1 * tau,
        f"one failure can lose the interval and the save in flight: {worst / tau:.0%} of "
        f"an interval at worst, {mean / tau:.0%} on average; "
        f"what is a few percent is the mean loss over the MTBF ({mean / m:.1%})",
        {"interval_s": tau, "worst_s": worst, "mean_s": mean, "mean_over_mtbf": mean / m},
    )


def _stall():
    per = 405e9 * 14 / 16_384
    ours, whole = float(snapshot_stall_s(per, 63e9)), float(snapshot_stall_s(80e9, 63e9))
    return said(
        "stall",
        "an asynchronous save stalls the device less than a second",
        ours < 1,
        f"405B over 16,384 devices is {per / 1e6:.0f} MB each: {ours:.2f} s (0.59 s "
        f"blocked in ByteCheckpoint at 8,960); with a full 80 GB device it would be "
        f"{whole:.1f} s, and PyTorch's asynchronous DCP of 2024 stalled 6.3 s",
        {"bytes_per_device": per, "stall_s": ours, "full_device_stall_s": whole},
    )


def _peer():
    node = 405e9 * 14 / 2048
    peer, store = node / (0.25 * 400e9), 120.0 + 405e9 * 14 / 2e12
    return said(
        "peer",
        "restoring one node from a neighbour takes seconds, from the parallel file system minutes",
        peer < 60 < store,
        f"{node / 1e9:.1f} GB at a quarter of 8 x 400 Gbit/s: {peer:.2f} s against "
        f"{store:.0f} s (opening and planning dominate, not bytes); "
        "the restart around it takes minutes in both cases",
        {"peer_s": peer, "store_s": store},
    )


def _spares():
    evicts = sum(c.share for c in failures.CAUSES if c.evicts)
    load = evicts * 14_400 / (3.09 * HOUR_S)
    best, sure = int(spares.cheapest([(1.0, load)], 2048)), int(spares.spares_for(load, 0.999))
    lasting = 300 * 3.09 * HOUR_S / evicts / DAY_S
    return said(
        "spares",
        "a few hundred warm spare nodes are needed for 2,048",
        sure > 100,
        f"with 4 h to repair, {sure} spares are ready for 99.9 % of failures and {best} "
        f"make useful hours cheapest; "
        f"300 would be right only if a node took {lasting:.0f} days to come back",
        {"load": float(load), "cheapest": best, "spares_999": sure, "repair_days_for_300": lasting},
    )


def _mtbf_100k():
    n = 100_000
    minutes = {
        p: float(failures.job_mtbf_s(catalogue.failure_preset(p).per_1000_node_days, n)) / 60
        for p in ("rsc-2", "llama3", "rsc-1")
    }
    return said(
        "mtbf-100k",
        "beyond 100,000 devices the MTBF is tens of minutes",
        all(10 <= v < 100 for v in minutes.values()),
        "at the rates of RSC-2, Llama 3 and RSC-1: "
        + ", ".join(f"{v:.0f} min" for v in minutes.values()),
        minutes,
    )


def _half():
    out = {}
    for p in ("rsc-2", "llama3", "rsc-1"):
        m = float(failures.job_mtbf_s(catalogue.failure_preset(p).per_1000_node_days, 100_000))

        def at(stall, durable, restart, m=m):
            return float(
                goodput.ettr(
                    m,
                    stall,
                    max(float(goodput.optimum_interval(m, stall)), durable - stall),
                    durable_s=durable,
                    restart_s=restart,
                )
            )

        out[p] = {
            "synchronous": at(300, 0, 1200),
            "asynchronous": at(5, 120, 600),
            "strong": at(1, 30, 180),
        }
    sync, mild = (
        max(v["synchronous"] for v in out.values()),
        min(v["asynchronous"] for v in out.values()),
    )

    def words(key):
        return "/".join(f"{v[key]:.2f}" for v in out.values())

    return said(
        "half",
        "beyond 100,000 devices effective time falls below one half without strong fault tolerance",
        False,
        f"with 5-min synchronous saves and 20-min restarts of the whole job "
        f"{words('synchronous')} (Meta measured 0.44): below one half. "
        f"Asynchronous saves and 10-min restarts alone give {words('asynchronous')}, "
        f"strong tolerance {words('strong')}",
        {"by_preset": out, "best_synchronous": sync, "worst_asynchronous": mild},
        depends=sync < 0.5 < max(v["asynchronous"] for v in out.values()),
    )


def _slowest():
    k = float(stragglers.slowest_of(16_384))
    return said(
        "slowest",
        "in a synchronous barrier the slowest rank taxes all 16,384",
        k > 3,
        (
            f"the slowest of 16,384 is {k:.2f} standard deviations late: 1 % of jitter per "
            f"rank costs {k:.1f} % of every step"
        ),
        {"deviations": k},
    )


def _elastic():
    ratio = float(elastic.shrink_ratio(16, 128))
    return said(
        "elastic",
        "losing one of 128 replicas costs its share of the throughput",
        ratio - 1 < 2 / 128,
        (
            f"with 16 micro-batches per replica and the global batch kept, the step grows by "
            f"{ratio - 1:.2%}, not {1 / 127:.2%}: micro-batches are whole"
        ),
        {"ratio": ratio, "naive": 128 / 127},
    )
