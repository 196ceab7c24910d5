"""What the world measured and printed about failures, goodput and checkpoints, against the kit;
disagreements are named with their reason.

`facts` are rows of the catalogue's reliability table, where title, address, place and how the
figure was read stand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass

import closed_forms
import failure_claims
import numpy as np
import pytest
from scantling import catalogue
from scantling.endure import checkpoint, elastic, failures, goodput, scale, spares, storage

SDC_SHARE = next(c.share for c in failures.CAUSES if c.id == "sdc")

MIN, HOUR, DAY = 60.0, 3600.0, 86_400.0


@dataclass(frozen=True)
class Target:
    """One printed figure: fact rows it comes from, the figure, ours, and how near it has to be
    (relative unless `absolute`)."""

    id: str
    facts: str
    said: float
    ours: Callable[[], float]
    within: float
    absolute: bool = False
    miss: str = ""  # why the sources disagree; the figure must then stay outside the tolerance

    def error(self) -> float:
        return abs(self.ours() - self.said) / (1 if self.absolute else abs(self.said))


def m_min(fleet, devices):
    """MTBF in minutes."""
    return (
        float(failures.job_mtbf_s(catalogue.failure_preset(fleet).per_1000_node_days, devices))
        / MIN
    )


def meta(fleet, devices, dt, u0=5.0, w=0.0, q=0.0):
    if q:
        return float(closed_forms.ettr_meta_queued(1 / m_min(fleet, devices), dt, u0, q, 1e9))
    return float(goodput.ettr_meta(1 / m_min(fleet, devices), dt, w, u0))


def exact(fleet, devices, dt, u0=5.0, w=0.0):
    return float(goodput.ettr(m_min(fleet, devices), w, dt, restart_s=u0))


def megatron_step_s():
    """Step time behind ByteRobust's Table 8 (256B on 16,384): Megatron's save of 12.98 s at every
    step left 42.80 % of the MFU."""
    return 12.98 * 0.4280 / (1 - 0.4280)


TARGETS = (
    # failures
    Target("llama3-hours", "R021", 3.0, lambda: m_min("llama3", 16_384) / 60, 0.05),
    Target(
        "llama3-counts",
        "R021",
        419,
        lambda: sum(
            f.number
            for f in catalogue.reliability_facts()
            if f.id in {f"R{i:03d}" for i in range(1, 19)}
        ),
        0,
    ),
    Target(
        "llama3-rows-percent",
        "R001",
        30.1,
        lambda: 148 / 419 * 100,
        0.05,
        miss=(
            "Table 5 prints 30.1 % for 148 of 419, which is 35.3 %; its counts add up to "
            "419, so counts are used"
        ),
    ),
    Target(
        "llama3-gpu-percent",
        "R024",
        58.7,
        lambda: 100 * sum(c.share for c in failures.CAUSES if c.id in ("accelerator", "sdc")),
        0.05,
        miss="the text sums the printed percentages; the counts give 268 of 419, 64.0 %",
    ),
    Target("rsc1-16k-hours", "R036", 1.8, lambda: m_min("rsc-1", 16_384) / 60, 0.01),
    Target("rsc1-131k-hours", "R037", 0.23, lambda: m_min("rsc-1", 131_072) / 60, 0.03),
    Target(
        "rsc1-1024-hours",
        "R034",
        7.9,
        lambda: m_min("rsc-1", 1024) / 60,
        0.25,
        miss=(
            "measured on jobs of 1,024; the rate was fitted on larger jobs and misses what "
            "kills small ones (28.8 h)"
        ),
    ),
    Target(
        "rsc1-8-days",
        "R035",
        47.7,
        lambda: m_min("rsc-1", 8) / 1440,
        0.25,
        miss="one node lasts 154 days by the rate of large jobs, 47.7 measured",
    ),
    Target("ft-hsdp-minutes", "R078", 18.0, lambda: m_min("rsc-1", 98_304), 0.01),
    Target(
        "ft-hsdp-at-llama3",
        "R078",
        18.0,
        lambda: m_min("llama3", 98_304),
        0.25,
        miss="at Llama 3's rate it would be 31 min; the run met RSC-1's",
    ),
    Target("epoch-100k-minutes", "R136", 30.0, lambda: m_min("epoch", 100_000), 0.01),
    Target("epoch-1m-minutes", "R136", 3.0, lambda: m_min("epoch", 1_000_000), 0.01),
    Target("bloom-per-device-day", "R125", 1.5 / 7 / 384, lambda: 1440 / m_min("bloom", 1), 0.01),
    Target("opt-waste", "R111", 0.123, lambda: 178_000 / (992 * 61 * 24), 0.01),
    Target(
        "hpn-crashes-2300",
        "R119",
        1.5,
        lambda: float(failures.network_crashes_per_s(2300, 144)) * 30 * DAY,
        0.5,
        absolute=True,
    ),
    Target(
        "hpn-crashes-3000",
        "R119",
        1.5,
        lambda: float(failures.network_crashes_per_s(3000, 188)) * 30 * DAY,
        0.5,
        absolute=True,
    ),
    # goodput
    Target(
        "rsc1-16k-hourly", "R044", 0.70, lambda: exact("rsc-1", 16_000, 60), 0.03, absolute=True
    ),
    Target(
        "rsc1-16k-hourly-formula",
        "R044",
        0.70,
        lambda: meta("rsc-1", 16_000, 60),
        0.03,
        absolute=True,
    ),
    Target("rsc1-16k-5min", "R045", 0.93, lambda: exact("rsc-1", 16_000, 5), 0.01, absolute=True),
    Target(
        "rsc1-8k-30min", "R046", 0.90, lambda: exact("rsc-1", 8000, 30, u0=6), 0.01, absolute=True
    ),
    Target(
        "rsc1-8k-30min-formula",
        "R046",
        0.90,
        lambda: meta("rsc-1", 8000, 30, q=1),
        0.01,
        absolute=True,
    ),
    Target(
        "rsc1-100k-7min-formula",
        "R047",
        0.50,
        lambda: meta("rsc-1", 100_000, 7),
        0.03,
        absolute=True,
    ),
    Target(
        "rsc1-100k-7min",
        "R047",
        0.50,
        lambda: exact("rsc-1", 100_000, 7),
        0.05,
        absolute=True,
        miss=(
            "the printed figure is the first-order formula's, 0.52; the exact value is 0.62 "
            "(or 0.64 where restarts cannot fail)"
        ),
    ),
    Target(
        "rsc2-100k-21min",
        "R048",
        0.50,
        lambda: meta("rsc-2", 100_000, 21),
        0.05,
        absolute=True,
        miss=(
            "0.685 with a restart of 5 min; another restart time or device count must stand "
            "behind the figure"
        ),
    ),
    Target(
        "rsc2-100k-2-and-2",
        "R049",
        0.90,
        lambda: exact("rsc-2", 100_000, 2, u0=2),
        0.05,
        absolute=True,
    ),
    Target(
        "rsc1-12k-10s-saves",
        "R050",
        0.90,
        lambda: meta("rsc-1", 12_000, math.sqrt(2 * m_min("rsc-1", 12_000) / 6), w=1 / 6),
        0.025,
        absolute=True,
    ),
    Target(
        "rf1-12k-5min-saves",
        "R050",
        0.90,
        lambda: float(goodput.ettr_meta(1 / 960, math.sqrt(2 * 5 * 960), 5, 5)),
        0.01,
        absolute=True,
    ),
    Target(
        "formula-error-8k",
        "R042",
        0.0,
        lambda: meta("rsc-1", 8000, 60) / exact("rsc-1", 8000, 60) - 1,
        0.05,
        absolute=True,
    ),
    Target(
        "formula-error-8k-slow",
        "R042",
        0.0,
        lambda: meta("rsc-1", 8000, 60, u0=20) / exact("rsc-1", 8000, 60, u0=20) - 1,
        0.05,
        absolute=True,
    ),
    Target(
        "sync-100k-linear",
        "R081",
        0.44,
        lambda: float(goodput.ettr_linear(18, 10)),
        0.01,
        absolute=True,
    ),
    Target(
        "sync-100k-renewal",
        "R081",
        0.44,
        lambda: float(closed_forms.ettr_renewal(18, 10)),
        0.05,
        absolute=True,
        miss=(
            "10 min lost every 18 min of running is 0.64; 44 % charges each loss against "
            "wall time, or counts some 10 min of lost work"
        ),
    ),
    Target(
        "sync-100k-restart-fails",
        "R081",
        0.44,
        lambda: float(closed_forms.ettr_renewal(18, 10, fails_in_restart=True)),
        0.05,
        absolute=True,
        miss="0.57 where restarts can fail too: still no lost work in it",
    ),
    Target(
        "sync-100k-with-lost-work",
        "R081",
        0.44,
        lambda: float(goodput.ettr(18, 0, 10, restart_s=10)),
        0.02,
        absolute=True,
    ),
    Target(
        "ft-hsdp-linear",
        "R082",
        0.80,
        lambda: float(elastic.ft_hsdp(18 * MIN, 12)),
        0.02,
        absolute=True,
    ),
    Target(
        "ft-hsdp-renewal",
        "R082",
        0.80,
        lambda: float(closed_forms.ft_hsdp_renewal(18 * MIN, 12)),
        0.02,
        absolute=True,
    ),
    Target("gemini25-elastic", "R088", (1 - 0.934) / 2, lambda: 3 * 40 / 3600, 0.03),
    # spares
    *(
        Target(f"byterobust-standbys-{n}", "R073", k, lambda n=n: spares.standbys(n, 1.2e-3), 0)
        for n, k in ((128, 2), (256, 2), (512, 3), (1024, 4))
    ),
    Target(
        "delta-5-percent",
        "R131",
        5.0,
        lambda: 100 * next(s for s in range(99) if poisson_tail(s, 2.2 / 1.9) <= 1e-3) / 152,
        0.3,
    ),
    Target(
        "delta-2-percent",
        "R131",
        2.0,
        lambda: 100 * next(s for s in range(99) if poisson_tail(s, 5 / 60 / 1.9) <= 1e-3) / 152,
        0.3,
        miss=(
            "one spare node in 152 (0.7 %) is enough with recoveries of 5 min; their "
            "simulation recovers differently"
        ),
    ),
    # checkpoints and stores
    Target(
        "mt-nlg-42-minutes",
        "R109",
        42.0,
        lambda: float(checkpoint.transfer_s(530e9 * 12, 20e9 / 8)) / MIN,
        0.02,
    ),
    Target("dcp-ratio", "R112", 23.62, lambda: 148.8 / 6.3, 0.001),
    Target(
        "bytecheckpoint-block",
        "R106",
        0.59,
        lambda: float(checkpoint.snapshot_stall_s(405e9 * 14 / 8960, 25e9)),
        0.15,
    ),
    Target(
        "bytecheckpoint-block-7b",
        "R107",
        0.34,
        lambda: float(checkpoint.snapshot_stall_s(7e9 * 14 / 1488, 25e9)),
        0.25,
        miss=(
            "half a second is the larger model's; smaller plans are pinned faster, which "
            "moves goodput by less than 0.1 point"
        ),
    ),
    Target(
        "tectonic-seconds",
        "R029",
        2.4,
        lambda: float(
            checkpoint.transfer_s(
                405e9 * 12, catalogue.storage("meta-tectonic").total_write_bytes_per_s
            )
        ),
        0.02,
    ),
    Target(
        "vast-few-hundred",
        "R135",
        250e9,
        lambda: float(checkpoint.write_rate_needed(1e12 * 14, 60)),
        0.2,
    ),
    Target(
        "jeanzay-bloom",
        "R126",
        40.0,
        lambda: float(
            checkpoint.transfer_s(2.3e12, catalogue.storage("gpfs-jeanzay").total_write_bytes_per_s)
        ),
        0.01,
    ),
    Target(
        "byterobust-rel-mfu-own",
        "R075",
        0.9911,
        lambda: megatron_step_s() / (megatron_step_s() + 0.02),
        0.02,
        absolute=True,
    ),
    Target(
        "byterobust-rel-mfu-memory",
        "R075",
        0.9692,
        lambda: megatron_step_s() / (megatron_step_s() + 0.18),
        0.02,
        absolute=True,
    ),
    Target("init-16k", "R085", 17.0, lambda: init_s(16_384), 0.01),
    Target("init-98k", "R085", 200.0, lambda: init_s(98_304), 0.01),
    # corruption
    Target(
        "llama3-sdc-8h",
        "R010",
        0.037,
        lambda: float(goodput.sdc_loss(6 / (54 * DAY), 8 * HOUR)),
        0.01,
    ),
    Target(
        "gemini25-sdc-replays",
        "R090",
        0.0025,
        lambda: 1 - math.exp(-SDC_SHARE / (m_min("llama3", 16_384) * MIN) * 1800),
        0.15,
    ),
    Target(
        "rsc-lemons", "R052", 0.73, lambda: float(closed_forms.large_job_hazard(0.14, 0.04)), 0.01
    ),
)


def poisson_tail(s, load):
    return 1 - sum(math.exp(-load) * load**k / math.factorial(k) for k in range(s + 1))


def init_s(devices):
    from scantling.endure.first_step import communicator_init_s

    return float(communicator_init_s(devices))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.id)
def test_published_figure(target):
    rows = {f.id for f in catalogue.reliability_facts()}
    assert set(target.facts.split()) <= rows, "the figure has no source in the catalogue"
    if target.miss:
        assert target.error() > target.within, (
            f"{target.id} agrees now: say so, instead of '{target.miss}'"
        )
    else:
        assert target.error() <= target.within + 1e-12, (
            f"{target.id}: {target.ours():.5g} against {target.said:g} printed"
        )


@pytest.mark.parametrize(("stall", "minutes"), [(5, 12.7), (10, 10.4), (30, 4.6)])
def test_llama3_above_ninety_percent_needs_short_restarts(stall, minutes):
    """More than 90 % effective with 466 interruptions in 54 days: what is left for detection and
    restart at each stall [min]."""
    m = 54 * DAY / 466
    best = float(goodput.ettr(m, stall, goodput.optimum_interval(m, stall)))
    assert m * math.log(best / 0.9) / MIN == pytest.approx(minutes, abs=0.6)


def test_llama3_above_ninety_percent_is_out_of_reach_beyond_45_seconds():
    """A stall of 60 s cannot reach 90 % even with instant restarts; with a minute and a half of
    recovery the limit is 45 s, with none 53 s."""
    m = 54 * DAY / 466
    best = lambda d, r: float(goodput.ettr(m, d, goodput.optimum_interval(m, d), restart_s=r))
    assert best(60, 0) < 0.9
    for recovery, limit in ((90, 45), (0, 53.5)):
        assert best(limit - 1, recovery) > 0.9 > best(limit + 1, recovery)


def test_first_order_formula_breaks_at_scale():
    """Meta's formula against the exact value at 30-min intervals: a few percent low at 8K, far off
    at 64K, below zero near 100K."""
    low = [meta("rsc-1", n, 30) / exact("rsc-1", n, 30) - 1 for n in (8192, 32_768, 65_536)]
    assert low[0] == pytest.approx(-0.015, abs=0.015)
    assert low[1] < -0.05
    assert low[2] < -0.3
    assert meta("rsc-1", 100_000, 30) < 0 < exact("rsc-1", 100_000, 30)


def test_two_to_four_thousand_devices_saving_hourly_stay_above_ninety():
    for n in (2000, 4000):
        assert exact("rsc-1", n, 60) > 0.9
        assert meta("rsc-1", n, 60) > 0.9


def test_young_and_daly_against_the_optimum():
    """Wall time above the best: Young 0.47, 1.3, 5, 14 % at stall/M = 0.1, 0.2, 0.5, 1; Daly's
    higher order below 0.2 % to 2."""
    wall = lambda d, tau: np.expm1(tau + d) / tau
    for d, worse in ((0.1, 0.0047), (0.2, 0.013), (0.5, 0.05), (1.0, 0.14)):
        best = wall(d, goodput.optimum_interval(1.0, d))
        assert wall(d, goodput.young(1.0, d)) / best - 1 == pytest.approx(worse, rel=0.1)
    for d in np.geomspace(1e-3, 2, 40):
        assert (
            0
            <= wall(d, goodput.daly(1.0, d)) / wall(d, goodput.optimum_interval(1.0, d)) - 1
            < 0.002
        )


def test_saxena_period_and_the_exact_one():
    """MTBF 3 h, 60 s a save, 600 s a restart: 1,231 s of theirs, 1,159 s exact, 2e-4 of goodput
    apart (arXiv 2410.18124)."""
    m = 3 * HOUR
    theirs, ours = (
        float(closed_forms.saxena_period(m, 60, 600)),
        float(goodput.optimum_interval(m, 60)) + 60,
    )
    assert (theirs, ours) == pytest.approx((1231, 1159), abs=1)
    assert float(
        goodput.ettr(m, 60, ours - 60, restart_s=600)
        - goodput.ettr(m, 60, theirs - 60, restart_s=600)
    ) == pytest.approx(2e-4, abs=1e-4)


def test_gemini25_waiting_ten_minutes_would_lose_half():
    """Interrupted some three times an hour: tens of seconds each is 3.3 %, ten minutes each would
    be 50 %."""
    assert goodput.ettr_linear(1200, 600) == pytest.approx(0.5)


def test_llama3_tectonic_share_per_device():
    """2 TB/s sustained over 16,384 devices is 0.12 GB/s each; 1 MB to 4 GB of checkpoint per device
    holds 405B's 12-16 bytes a parameter."""
    assert catalogue.storage("meta-tectonic").total_write_bytes_per_s / 16_384 == pytest.approx(
        0.122e9, rel=0.01
    )
    for each in (12, 14, 16):
        assert 1e6 < 405e9 * each / 16_384 < 4e9


def test_checkpoint_of_a_trillion_parameters_needs_what_85000_checkpoints_showed():
    """A few hundred GB/s, below 1 TB/s, carry a trillion parameters' checkpoints (PDSW'25): every
    minute, at 12 to 16 bytes."""
    for each in (12, 14, 16):
        assert 100e9 < checkpoint.write_rate_needed(1e12 * each, 60) < 1e12


CLAIMS = {
    "interruptions": "holds",
    "interval": "does not hold as worded",
    "lost-work": "does not hold as worded",
    "stall": "holds",
    "peer": "holds",
    "spares": "does not hold as worded",
    "mtbf-100k": "holds",
    "half": "depends",
    "slowest": "holds",
    "elastic": "does not hold as worded",
}


def test_common_claims_and_their_verdicts():
    found = {c.id: c for c in failure_claims.claims()}
    assert {k: c.verdict for k, c in found.items()} == CLAIMS
    n = found["interval"].numbers
    assert n["optimum_min"] == pytest.approx([2.4, 5.4, 7.6, 13.1, 18.3, 28.4], abs=0.06)
    assert n["stall_for_15_to_30_min_s"] == pytest.approx([37.5, 150])
    half = found["half"].numbers["by_preset"]
    assert [v["synchronous"] for v in half.values()] == pytest.approx([0.41, 0.28, 0.14], abs=0.01)
    assert [v["asynchronous"] for v in half.values()] == pytest.approx([0.74, 0.63, 0.46], abs=0.01)
    assert [v["strong"] for v in half.values()] == pytest.approx([0.91, 0.86, 0.79], abs=0.01)
    assert list(found["mtbf-100k"].numbers.values()) == pytest.approx([49, 30, 18], abs=0.6)


def test_claims_say_numbers():
    for c in failure_claims.claims():
        assert c.verdict in ("holds", "does not hold as worded", "depends")
        assert any(ch.isdigit() for ch in c.finding)
        json.dumps(c.as_dict(), allow_nan=False)


def rungs_of(devices, spec, params=405e9):
    """The ladder of a job of H100 with these failures and times, a replica for each 1,024."""
    from scantling.design.cluster_rules import build_cluster
    from scantling.endure.reliability import endure

    cluster, _ = build_cluster({"accelerator": "h100-sxm", "devices": devices})
    size = params * 14
    e = endure(cluster, spec, checkpoint_bytes=size, state_bytes_per_device=size / devices)
    return e, scale.measures(e, devices, devices // 1024)


def test_ladder_lifts_a_hundred_thousand_devices_above_one_half():
    """With the times that papers print (5 min to save, 5 s of stall, 2 min until durable): from
    below one half with synchronous saves and whole-job restarts to above 0.8, no rung a step down,
    gains adding up."""
    for preset in ("bad", "llama3", "good"):
        times = {"checkpoint_stall_s": 5, "checkpoint_durable_s": 120}
        _, rungs = rungs_of(100_000, {"preset": preset} | times)
        assert rungs[0].goodput < 0.5 < 0.8 < rungs[-1].goodput
        assert all(r.gain > 0 for r in rungs[1:])
        assert rungs[0].goodput + sum(r.gain for r in rungs[1:]) == pytest.approx(rungs[-1].goodput)


def test_ladder_of_a_design_starts_from_its_own_saves():
    e, rungs = rungs_of(131_072, {"preset": "llama3"}, params=2e12)
    assert rungs[0].goodput < 0.5 < rungs[-1].goodput
    assert rungs[0].mtbf_s == pytest.approx(float(e.mtbf_s))
    assert all(r.gain > 0 for r in rungs[1:])


def test_parts_that_average_stop_alone_as_decoupled_diloco_prints():
    """Goodput 0.88 with 8 learners and 0.93 with 16, 0.27 all in step on more than a million
    simulated chips (Decoupled DiLoCo, arXiv 2604.21428): what each stop takes, found from the
    first, gives the second, and less than one half in step. The ladder's last rung is as high."""
    lost = 8 / 0.88 - 8  # a stop over the time between the whole job's
    sixteen, together = (goodput.ettr(parts / lost, 0.0, 1e-6, down_s=1.0) for parts in (16, 1))
    assert sixteen == pytest.approx(0.93, abs=0.01)
    assert together < 0.5
    _, rungs = rungs_of(1_000_000, {"preset": "llama3"})
    assert rungs[-1].goodput == pytest.approx(0.93, abs=0.03)
    assert rungs[-2].goodput < 0.5 < rungs[-1].goodput


def test_store_of_llama3_carries_its_checkpoints():
    from scantling.design.cluster_rules import build_cluster

    cluster, _ = build_cluster({"accelerator": "h100-sxm", "devices": 16_384})
    found = {c.id: c for c in storage.carriers(cluster, 405e9 * 14, 330, stall_s=5)}
    assert found["meta-tectonic"].carries
    assert found["meta-tectonic"].write_bytes_per_s == pytest.approx(2e12)
    assert not found["gpfs-jeanzay"].carries or found["gpfs-jeanzay"].durable_s < 335
