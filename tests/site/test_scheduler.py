"""Scheduler: known sites get what they run, reasons follow from stakes, queueing and blocks against
simulation and counting."""

from itertools import product

import numpy as np
import pytest
from lookups import one
from scantling import Design, assess
from scantling.base.stats import binomial_share
from scantling_site import part
from scantling_site.job_site import site_of
from scantling_site.scheduler.queue import gather, whole_blocks
from scantling_site.scheduler.scheduler_choice import TIE
from scantling_site.scheduler.stakes import REQUEUE, requeue_s, scattered
from scipy.stats import binom


def test_sites_get_the_scheduler_that_such_sites_run(assessed):
    """One static H100 pre-training: Slurm (RSC, arXiv 2410.21680; Imbue). NVL72: topology/block
    (CoreWeave). TPU slices: JobSet and Kueue (GKE)."""
    h100, tpu = (
        part(assessed(n), "scheduler") for n in ("llama-3.1-405b", "llama-3.1-405b-256-tpu-v7x")
    )
    # four trays that stand by, of 64, are worth lending, which Slurm on Kubernetes does
    racks = assessed("qwen3-235b-a22b-256-gb200").design
    rack = part(assess(racks.change({"reliability.spares": 0})), "scheduler")
    assert h100.choice == "slurm" and h100.request["fields"]["plugin"] == "topology/tree"
    assert rack.choice == "slurm" and rack.request["fields"]["plugin"] == "topology/block"
    assert tpu.choice == "kueue" and tpu.request["topology"]["unit"] == "slice"
    assert not one(tpu.options, "slurm").usable


def test_a_rack_is_asked_for_in_segments_of_16_of_18_trays(assessed):
    """NVL72: 18 trays of 4; 16 scheduled and two kept back is common practice (topology/block,
    BlockSizes 18, --segment 16)."""
    t = part(assessed("qwen3-235b-a22b-256-gb200"), "scheduler").request["topology"]
    assert (t["segment_nodes"], t["block_nodes"], t["spare_trays"], t["segments"]) == (16, 18, 2, 4)


def test_five_thousand_nodes_end_upstream_kubernetes(assessed):
    """kubernetes.io: no more than 5,000 nodes in a cluster."""
    s = part(assessed("100k-multi-pod-ft"), "scheduler")
    assert s.choice == "slurm" and not one(s.options, "kueue").usable
    nodes = 98_304 // 8 + assessed("100k-multi-pod-ft").spares
    said = f"{nodes:,} nodes, 5,000 is the most"
    assert any(said in reason for reason in one(s.options, "kueue").against)
    assert one(part(assessed("llama-3.1-405b"), "scheduler").options, "kueue").usable


def test_scores_and_reasons_follow_from_stakes(each):
    s = part(each, "scheduler")
    stakes = {c.id: c.stake for c in s.criteria}
    assert all(0 <= v < 1 for v in stakes.values())
    for o in s.options:
        assert o.score == pytest.approx(
            np.prod([1 - stakes[f["criterion"]] * (1 - f["fit"]) for f in o.fits])
        )
        costs = [f["costs"] for f in o.fits]
        named = [r for r in o.against if "% of the run" in r]
        assert len(named) == sum(c > 1e-5 for c in costs)
        assert all(0 <= f["fit"] <= 1 and f["source"] for f in o.fits)
    usable = [o for o in s.options if o.usable]
    if usable:
        assert s.choice == usable[0].id and usable[0].score >= max(o.score for o in usable) - TIE
    assert s.options[0].id == s.choice and len({o.id for o in s.options}) == len(s.options)


def test_the_request_adds_up(each):
    q = part(each, "scheduler").request
    gang, t = q["gang"], q["topology"]
    assert (
        gang["all_or_nothing"]
        and gang["ranks"] == each.devices_used <= gang["nodes"] * gang["tasks_per_node"]
    )
    assert (
        t["segments"] * t["segment_nodes"] >= gang["nodes"]
        and (t["segments"] - 1) * t["segment_nodes"] < gang["nodes"]
    )
    assert q["time"]["limit_s"] is None or q["time"]["limit_s"] > each.days_high * 86_400
    assert 0 < gang["least_ranks"] <= gang["ranks"]


def test_scattering_costs_where_the_fabric_is_thin_and_nothing_where_it_is_not(assessed):
    assert scattered(site_of(assessed("100k-multi-pod-ft"))) > 0.05  # 7:1 between pods
    assert scattered(site_of(assessed("case-6-100k-gpus"))) > 0.01  # 3:1, hidden in part
    assert (
        scattered(site_of(assessed("qwen3-235b-a22b-256-gb200"))) > 0.2
    )  # experts over 32 devices of one rack
    assert scattered(site_of(assessed("llama-3.1-70b-128-h100"))) == pytest.approx(0, abs=1e-9)


def test_requeue_times_are_byterobusts():
    """ByteRobust, arXiv 2509.16293, Table 7: 454, 545, 635, 768 s at 128, 256, 512, 1,024 machines
    of 16."""
    for machines, seconds in REQUEUE:
        assert requeue_s(machines * 2, 8) == pytest.approx(seconds, rel=0.03)
    assert requeue_s(1, 8) < requeue_s(4096, 8)


def test_restart_in_place_beats_a_requeue_and_more_so_with_more_failures(assessed):
    small, large = (
        part(assessed(n), "scheduler").requeue
        for n in ("llama-3.1-8b-8-h100-fsdp", "100k-multi-pod-ft")
    )
    assert (
        0 <= small["gain"] < large["gain"] and large["goodput_requeued"] < large["goodput_in_place"]
    )


def test_gathering_nodes_takes_what_simulation_says():
    rng = np.random.default_rng(1)
    for n, k in ((10, 4), (64, 64), (200, 150)):
        ends = np.sort(rng.exponential(1.0, (8000, n)), axis=1)[:, :k]
        wait, idle = gather(n, k)
        assert wait == pytest.approx(ends[:, -1].mean(), rel=0.02)
        assert idle == pytest.approx((ends[:, -1:] - ends).sum(axis=1).mean(), rel=0.03)
    assert gather(512, 512)[0] == pytest.approx(np.log(512) + 0.5772, rel=0.01)


def test_whole_blocks_are_counted_right():
    p = 0.07
    for block, spare in ((4, 0), (6, 1), (9, 2)):
        chance = sum(
            np.prod([p if down else 1 - p for down in state])
            for state in product((0, 1), repeat=block)
            if sum(state) <= spare
        )
        assert whole_blocks(block, p, spare) == pytest.approx(chance)


def test_two_spare_trays_lift_a_rack(assessed):
    q = part(assessed("qwen3-235b-a22b-256-gb200"), "scheduler").queue
    by = {(b["block_nodes"], b["spare_nodes"]): b for b in q.fragments}
    assert by[18, 2]["whole"] > by[16, 0]["whole"]
    assert q.useful == pytest.approx(q.chain[-1]["running"])


def test_what_is_useful_is_goodput_of_the_paid_devices(each):
    s = part(each, "scheduler")
    assert s.queue.useful == pytest.approx(
        float(each.endurance.goodput) * each.devices_used / s.run.devices_paid
    )


def test_health_checks_carry_this_machines_thresholds(assessed):
    h100 = {c["check"]: c for c in part(assessed("llama-3.1-405b"), "scheduler").health_checks}
    a100 = {
        c["check"]: c
        for c in part(assessed("case-1-175b-moe-1024-a100"), "scheduler").health_checks
    }
    assert (
        h100["all-reduce in the node, 16 GB"]["threshold"] == 460e9
    )  # Azure/azurehpc-health-checks, nd96isr_h100_v5.conf
    assert a100["all-reduce in the node, 16 GB"]["threshold"] == 228e9  # nd96asr_v4.conf
    assert h100["rate that each card negotiated"]["threshold"] == pytest.approx(50e9) and a100[
        "rate that each card negotiated"
    ]["threshold"] == pytest.approx(25e9)


def test_sharing_decides_where_half_of_the_devices_are_left_over(assessed):
    base = assessed("llama-3.1-8b-8-h100-fsdp")
    idle = assess(
        base.design.change(
            {"cluster.devices": 512, "job.global_batch": 16, "plan": {"tp": 1, "pp": 1, "cp": 1}}
        )
    )
    s = part(idle, "scheduler")
    share = next(c.stake for c in s.criteria if c.id == "share")
    assert share == pytest.approx(1 - idle.devices_used / s.run.devices_paid) and share > 0.5
    assert s.choice in ("kueue", "bridge")


def test_each_site_has_a_scheduler_of_its_own(assessed):
    two = part(
        assess(assessed("100k-multi-pod-ft").design.change({"cluster.sites": 4})), "scheduler"
    )
    assert one(two.options, "kueue").usable and any(
        "4 sites" in line for line in two.why
    )  # 12,310 nodes in four parts


def test_counts_of_nodes_that_are_down_are_those_of_the_binomial_law():
    """SciPy's own; a fast domain of 125,000 nodes has more ways than a float holds."""
    for n, p in ((18, 0.004), (64, 0.5), (125_000, 0.004), (5, 0.0)):
        for k in {0, 1, min(n, 584), n}:
            assert binomial_share(k, n, p) == pytest.approx(
                binom.pmf(k, n, p), rel=1e-8, abs=1e-290
            )


@pytest.mark.parametrize(
    ("recovery", "said"),
    [
        ("in-place", "a failure waits for its repair"),
        ("elastic", "the run goes on with fewer replicas until the repair"),
    ],
)
def test_without_spares_every_line_says_what_the_run_does(recovery, said):
    """Goodput counts on shrinking where the recovery shrinks: request and reasons say no other."""
    design = Design.from_data(
        {
            "model": "llama-3.1-70b",
            "cluster": {"accelerator": "h100-sxm", "devices": 1024},
            "job": {"tokens": 2e12, "seq_len": 8192, "global_batch": 1024},
            "reliability": {"spares": 0, "recovery": recovery},
        }
    )
    told = part(assess(design), "scheduler")
    assert f"none are held: {said}" == told.spares["where"]
    assert f"no spares: {said}" in told.lines
