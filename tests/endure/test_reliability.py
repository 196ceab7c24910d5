"""Failure rates, exact goodput, spares, elastic and stragglers: worked examples of the papers and
properties."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import closed_forms
import numpy as np
import pytest
from lookups import one
from scantling import assess, catalogue
from scantling.base.errors import DesignError
from scantling.design.cluster_rules import build_cluster
from scantling.design.schema import Constraints
from scantling.endure import cost, elastic, failures, goodput, spares
from scantling.endure.copies import Level
from scantling.endure.life import BADPUT, lived
from scantling.endure.reliability import endure, finish, tiered
from scantling.endure.simulate import Fault, Scenario, Shrink, of_life, simulate
from scantling.verdict.constraints import missed
from scantling_site import part

HOUR = 3600.0
GALLERY = Path(__file__).parents[2] / "gallery" / "designs"


def cluster(devices=16_384, **spec):
    return build_cluster({"accelerator": "h100-sxm", "devices": devices, **spec})[0]


def run(spec=None, devices=16_384, params=405e9, **features):
    return endure(
        cluster(devices),
        spec,
        checkpoint_bytes=params * 14,
        state_bytes_per_device=params * 14 / devices,
        **features,
    )


def judge(e, wants):
    """Constraints on fault tolerance that a run misses."""
    resolved = SimpleNamespace(constraints=Constraints(**wants))
    return missed(
        SimpleNamespace(
            endurance=e,
            goodput=e.goodput,
            checkpoint_overhead=e.checkpoint_overhead,
            resolved=resolved,
        )
    )


# goodput
# ------------------------------------------------------------


def test_optimum_solves_its_own_equation():
    """d/dtau of tau / (e^((tau + d) / M) - 1) = 0 is e^((tau + d) / M) (1 - tau / M) = 1."""
    for ratio in np.geomspace(1e-9, 5, 60):
        tau = float(goodput.optimum_interval(1.0, ratio))
        assert math.exp(tau + ratio) * (1 - tau) == pytest.approx(1, rel=1e-6)


def test_optimum_tends_to_young_and_to_the_mtbf():
    assert goodput.optimum_interval(1e8, 1.0) == pytest.approx(goodput.young(1e8, 1.0), rel=1e-3)
    assert goodput.optimum_interval(100.0, 5000.0) == pytest.approx(100.0, rel=1e-6)


def test_optimum_does_not_depend_on_the_restart():
    tau = np.geomspace(20, 5000, 4001)
    for restart, durable, down in ((0, 0, 0), (600, 0, 0), (600, 120, 300)):
        best = tau[
            np.argmax(
                goodput.ettr(11_134, 10, tau, durable_s=durable, restart_s=restart, down_s=down)
            )
        ]
        assert best == pytest.approx(float(goodput.optimum_interval(11_134, 10)), rel=2e-3)


def test_values_of_the_exact_form():
    """0.90955 and 0.38419: asynchronous saves at 3.09 h, and 10 min until durable at 0.3 h with 0.5
    s stalls."""
    m = 3.09 * HOUR
    assert goodput.ettr(
        m, 5, goodput.optimum_interval(m, 5), durable_s=300, restart_s=300, down_s=120
    ) == pytest.approx(0.90955, abs=1e-5)
    assert goodput.ettr(1080, 0.5, 600 - 0.5, durable_s=600) == pytest.approx(0.4286, abs=1e-3)


def test_shares_sum_to_one_and_survive_extremes():
    rng = np.random.default_rng(1)
    m = 10 ** rng.uniform(0, 8, 500)
    s = goodput.shares(
        m,
        rng.uniform(0, 1e3, 500),
        10 ** rng.uniform(0, 6, 500),
        durable_s=rng.uniform(0, 1e3, 500),
        restart_s=rng.uniform(0, 1e4, 500),
        down_s=rng.uniform(0, 1e3, 500),
    )
    assert sum(s) == pytest.approx(np.ones(500))
    assert all(np.all((v >= 0) & (v <= 1)) for v in s)


def test_finite_job_tends_to_the_long_run_rate():
    m, d, tau = 5000.0, 10.0, 300.0
    w = 3e7
    assert w / closed_forms.finite_wall_s(
        w, m, d, tau, durable_s=60, restart_s=100, down_s=50
    ) == pytest.approx(
        float(goodput.ettr(m, d, tau, durable_s=60, restart_s=100, down_s=50)), rel=1e-4
    )
    assert closed_forms.finite_wall_s(100.0, 1e12, 1.0, 300.0, durable_s=7) == pytest.approx(108.0)


def test_one_tier_is_the_single_tier_form():
    assert closed_forms.ettr_tiers([1 / 1800], [1], 30, [1], [60], 20) == pytest.approx(
        float(goodput.ettr(1800, 1, 30, restart_s=60, down_s=20)), rel=1e-12
    )


def test_nearer_copies_never_hurt():
    one = closed_forms.ettr_tiers([1 / 1800], [1], 300, [20], [300])
    two = closed_forms.ettr_tiers([0.9 / 1800, 0.1 / 1800], [1, 10], 30, [1, 20], [60, 300])
    assert two > one


@pytest.mark.parametrize(
    ("mtbf", "nested", "first"),
    [(3.09 * HOUR, 5e-4, 2e-3), (1800.0, 5e-3, 1.2e-2), (828.0, 1.4e-2, 3.5e-2)],
)
def test_approximations_of_tiers_stay_within_their_stated_error(mtbf, nested, first):
    rates, every, tau, stalls, restores = (
        np.array([0.45, 0.5, 0.05]) / mtbf,
        [1, 4, 24],
        40.0,
        [1.0, 1.0, 1.0],
        [20.0, 60.0, 240.0],
    )
    exact = closed_forms.ettr_tiers(rates, every, tau, stalls, restores, 30.0)
    levels = [Level(stall_s=stall, every=k) for stall, k in zip(stalls, every)]
    assert goodput.ettr_tiers_nested(rates, levels, tau, restores, 30.0) == pytest.approx(
        exact, abs=nested
    )
    assert closed_forms.ettr_tiers_first_order(
        rates, tau * np.array(every), [1, 0, 0], restores, [0, 0, 0], 30.0
    ) == pytest.approx(exact, abs=first)


# failures
# ------------------------------------------------------------


def test_causes_are_table_5():
    assert sum(round(c.share * 419) for c in failures.CAUSES) == 419
    assert sum(c.share for c in failures.CAUSES) == pytest.approx(1)
    e = run({"failures_per_1000_node_days": 3.8})
    assert sum(e.failures_per_day.values()) == pytest.approx(3.8e-3 * 2048)


def test_rates_scale_per_device_not_per_node():
    half = failures.job_mtbf_s(3.8, 8192)
    assert half == pytest.approx(2 * failures.job_mtbf_s(3.8, 16_384))
    assert run(devices=8192).mtbf_s == pytest.approx(
        endure(
            cluster(8192, devices_per_node=4), checkpoint_bytes=1e12, state_bytes_per_device=1e9
        ).mtbf_s
    )


def test_every_preset_has_a_source_and_a_rate():
    for p in catalogue.failure_presets().values():
        assert p.source
        assert 0.1 < p.per_1000_node_days < 30
    with pytest.raises(DesignError, match="rsc-1"):
        catalogue.failure_preset("rsc1")


def test_domains_hold_each_other():
    found = part(assess(GALLERY / "llama-3.1-405b.yaml"), "domains")
    assert (
        one(found.rows, "process").devices
        <= one(found.rows, "node").devices
        <= one(found.rows, "rack").devices
        <= one(found.rows, "pod-maintenance").devices
        <= one(found.rows, "building").devices
    )
    assert one(found.rows, "node").count == 2048
    assert (
        failures.rack_devices(build_cluster({"accelerator": "gb200-nvl72", "devices": 7200})[0])
        == 72
    )
    assert all(d.rate_source for d in found.rows)


@pytest.mark.parametrize(
    ("chip", "devices"), [("h100-sxm", 32), ("b200-sxm", 16), ("gb200-nvl72", 72), ("tpu-v5p", 64)]
)
def test_racks_as_their_makers_fill_them(chip, devices):
    """DGX SuperPOD: 4 DGX H100 or 2 DGX B200 a rack; NVL72; a cube of 4 x 4 x 4 TPUs (Jouppi et al.
    2023)."""
    assert (
        failures.rack_devices(build_cluster({"accelerator": chip, "devices": 1024 * 9})[0])
        == devices
    )


def test_collectives_start_within_what_was_published():
    """17 s at 16,384 and 200 s at 98,304 (FT-HSDP); under 5 s at 2,048 and under 30 s beyond 10,000
    (MegaScale)."""
    from scantling.endure.first_step import communicator_init_s

    assert communicator_init_s(np.array([16_384, 98_304])) == pytest.approx([17, 200])
    assert 1 < communicator_init_s(8) <= communicator_init_s(2048) <= 5
    assert communicator_init_s(12_288) < 30


# spares
# ------------------------------------------------------------


def test_erlang_b_tables():
    """Erlang's table: 10 servers at 4.46 erlang block 1 %, 5 at 1.36 block 1 %, 20 at 12.0 block 1
    %."""
    for servers, load in ((10, 4.461), (5, 1.361), (20, 12.03)):
        assert spares.erlang_b(servers, load) == pytest.approx(0.01, rel=0.01)


def test_stall_shares_worked_by_hand():
    assert spares.stall_share(np.array([4, 6, 8, 10, 12]), 4.8) == pytest.approx(
        [0.2684, 0.1081, 0.0315, 0.0065, 0.00095], rel=0.01
    )


def test_shortage_without_downtime_is_erlang():
    for s in (0, 1, 4, 9):
        for load in (0.1, 1.3, 6.0):
            assert spares.shortage(s, load / 1000, 1000.0) == pytest.approx(
                spares.stall_share(s, load), rel=1e-9, abs=1e-15
            )
    assert spares.shortage(2, 1e-3, 2000.0, 500.0) < spares.stall_share(2, 2.0)


def test_spares_found_are_the_fewest():
    for load in (0.07, 1.3, 8.0):
        s = spares.spares_for(load, 0.99)
        assert spares.wait_chance(s, load) <= 0.01
        assert s == 0 or spares.wait_chance(s - 1, load) > 0.01
    assert list(spares.spares_for(np.array([0.07, 1.3, 8.0]), 0.99)) == [
        spares.spares_for(x, 0.99) for x in (0.07, 1.3, 8.0)
    ]


def test_cheapest_number_is_the_least_of_the_ladder():
    for load, nodes in ((0.07, 128), (1.3, 2048), (8.0, 12_288), (0.0, 1)):
        table = closed_forms.ladder(load / 1e4, 1e4, nodes, np.arange(120))
        known = spares.cheapest([(1.0, load)], nodes)
        assert known == int(np.argmin(table["cost_per_useful"]))
        slow = closed_forms.ladder(load / 1e4, 6e4, nodes, np.arange(120))
        mean = 0.4 * table["cost_per_useful"] + 0.6 * slow["cost_per_useful"]
        either = spares.cheapest([(0.4, load), (0.6, 6 * load)], nodes)
        assert either == int(np.argmin(mean)) and either >= known


def test_never_waiting_against_simulation():
    """Chance that a run never waits: first passage of the chain, against 2,000 simulated runs."""
    m, n, load = 3000.0, 5, 1.5
    for days in (10, 40):
        work = days * 86_400.0
        r = simulate(closed_forms.single(work, 1000, m, spares=n, repair_s=load * m), 2000, 4)
        chance = closed_forms.never_wait(n, 1 / m, load * m, float(r.wall_s.mean()))
        assert (r.waited_s == 0).mean() == pytest.approx(
            chance, abs=4 * math.sqrt(chance * (1 - chance) / 2000) + 0.01
        )


# endurance
# ------------------------------------------------------------


def test_a_16k_job_is_interrupted_every_three_hours():
    e = run({"preset": "llama3", "checkpoint_stall_s": 10})
    assert e.mtbf_s / HOUR == pytest.approx(3.09, abs=0.01)
    assert e.young_s / 60 == pytest.approx(7.86, abs=0.05)
    assert e.checkpoint_interval_s == pytest.approx(float(e.daly_s), rel=1e-3)
    assert 0.9 < e.goodput < 0.97


def test_goodput_and_badput_sum_to_one():
    for spec in (
        None,
        {"spares": 0},
        {"restart_s": 5000, "detect_s": 0},
        {"checkpoint_stall_s": 0},
        {"failures_per_1000_node_days": 0},
        {"failures_per_1000_node_days": 1e6},
        {"checkpoint_stall_s": 10},
    ):
        e = run(spec)
        assert e.goodput + sum(e.badput.values()) == pytest.approx(1, abs=1e-9)
        assert set(e.badput) == set(BADPUT)
        text = json.dumps(e.as_dict(), allow_nan=False)
        assert json.loads(text)["goodput"] > 0


def test_columns_equal_scalars():
    counts = np.array([64, 1024, 16_384, 98_304])
    many = endure(
        cluster(),
        {"preset": "bad"},
        checkpoint_bytes=5.67e12,
        state_bytes_per_device=5.67e12 / counts,
        devices=counts,
    )
    for i, n in enumerate(counts):
        one = endure(
            cluster(int(n), storage="superpod-better"),
            {"preset": "bad"},
            checkpoint_bytes=5.67e12,
            state_bytes_per_device=5.67e12 / n,
        )
        for key in (
            "mtbf_s",
            "goodput",
            "checkpoint_interval_s",
            "spares_recommended",
            "restart_s",
        ):
            assert np.asarray(getattr(many, key))[i] == pytest.approx(float(getattr(one, key)))
    without = endure(
        cluster(),
        {"preset": "bad", "spares": 0},
        checkpoint_bytes=5.67e12,
        state_bytes_per_device=5.67e12 / counts,
        devices=counts,
    )
    assert np.all(np.diff(without.goodput) < 0)  # what spares pay for bends the curve


def test_rate_given_beats_the_preset():
    assert run({"preset": "good", "failures_per_1000_node_days": 6.5}).mtbf_s == pytest.approx(
        float(run({"preset": "rsc-1"}).mtbf_s)
    )


def test_what_is_given_is_not_assumed():
    spec = {
        "preset": "llama3",
        "checkpoint_stall_s": 10,
        "checkpoint_durable_s": 120,
        "restart_s": 300,
        "detect_s": 120,
        "repair_s": 14_400,
        "spares": 16,
    }
    said = {a.field for a in run().assumed} - {a.field for a in run(spec).assumed}
    assert said == {f"reliability.{k}" for k in spec}
    assert all(a.why for a in run().assumed)


def test_interval_waits_for_the_save_in_flight_and_keeps_ceilings():
    slow = run({"checkpoint_durable_s": 5000, "checkpoint_stall_s": 1})
    assert slow.checkpoint_interval_s + 1 == pytest.approx(5000)
    assert slow.interval_set_by == "one save in flight"
    held = run({"checkpoint_stall_s": 60}, constraints={"max_checkpoint_overhead": 0.01})
    assert held.checkpoint_overhead == pytest.approx(0.01)
    brief = run(
        {"checkpoint_stall_s": 10, "checkpoint_durable_s": 50}, constraints={"max_lost_work_s": 300}
    )
    assert brief.lost_work_s == pytest.approx(300)


def test_no_run_saves_less_often_than_bloom_unless_its_saves_are_dear():
    # BLOOM saved every 3 h; its 48 nodes lost one or two GPUs a week
    fewest = run({"failures_per_1000_node_days": 0.01}, devices=64, params=8e9)
    assert fewest.optimum_s > 3 * HOUR == fewest.checkpoint_interval_s
    assert fewest.interval_set_by == "longest interval of published runs (3 h)"
    dear = run({"failures_per_1000_node_days": 0.01, "checkpoint_stall_s": 600}, devices=64)
    assert dear.checkpoint_interval_s == 100 * 600
    pinned = run({"failures_per_1000_node_days": 0.01}, saves={"interval_s": 40_000}, devices=64)
    assert pinned.checkpoint_interval_s == 40_000


@pytest.mark.parametrize(
    ("constraint", "value"),
    [
        ("min_goodput", 0.99),
        ("max_checkpoint_overhead", 1e-4),
        ("max_checkpoint_stall_s", 0.1),
        ("max_lost_work_s", 10),
        ("max_recovery_s", 60),
    ],
)
def test_missed_constraints_are_named(constraint, value):
    e = run({"checkpoint_stall_s": 1.0}, saves={"interval_s": 300})
    misses = judge(e, {constraint: value})
    assert [m.field for m in misses] == [constraint]
    assert misses[0].text
    loose = (
        1e9
        if constraint.startswith("max") and constraint != "max_checkpoint_overhead"
        else 0.99
        if constraint.startswith("max")
        else 0.01
    )
    assert judge(e, {constraint: loose}) == ()


@pytest.mark.parametrize(
    ("chip", "nodes", "size", "held"),
    [
        ("gb200", 64, 16, [0, 4, 8, 26, 44]),  # two trays in each of four racks, then racks
        ("gb300", 1024, 16, [0, 16, 32, 48]),  # a tray in each of 64 racks is dearer than a rack
        ("gb200", 36, 18, [0, 18, 36]),  # racks in full
        ("gb200", 67, 1, [0, 1, 2]),  # no number of trays divides 67 nodes
        ("h100-sxm", 128, 1, [0, 1, 2]),
        ("tpu-v5p", 128, 1, [0, 1, 2]),
    ],
)
def test_spares_stand_by_in_the_racks_that_nvlink_joins(chip, nodes, size, held):
    """Slurm's manual of sbatch, --segment: "the requested segment size must always evenly divide
    the requested node count"; a rack of GB200 or GB300 NVL72 has 18 trays of four."""
    c = build_cluster({"accelerator": chip, "devices": nodes * (8 if chip == "h100-sxm" else 4)})[0]
    stands = spares.segments(c, nodes)
    losses = np.arange(len(held))
    assert stands.size == size
    assert stands.nodes(losses).tolist() == held
    assert stands.covered(stands.nodes(losses)).tolist() == losses.tolist()
    stated = np.arange(200)
    covered = stands.covered(stated)
    assert np.all(np.diff(covered) >= 0)
    assert np.all(stands.nodes(covered) >= stated)  # what is stated is never held short
    assert np.all((nodes + stands.nodes(losses)) % stands.group(losses) == 0)


def test_the_cost_counts_the_spares_that_the_job_holds():
    of = {}
    for n in (0, 1, 4, 5, 16):
        c = build_cluster({"accelerator": "gb200", "devices": 256})[0]
        e = endure(c, {"spares": n}, checkpoint_bytes=1e12, state_bytes_per_device=4e9)
        of[n] = int(e.spares), int(e.life.spares), float(e.goodput)
    assert [of[n][:2] for n in of] == [(0, 0), (4, 1), (4, 1), (8, 2), (26, 3)]
    assert of[0][2] < of[1][2] == of[4][2] < of[5][2]


def test_surviving_a_rack_takes_spares_for_it():
    e = run(devices=1024, constraints={"survive": "rack"})
    assert e.spares_recommended >= 4
    assert judge(e, {"survive": "rack"}) == ()
    poor = run({"spares": 1}, devices=1024, constraints={"survive": "rack"})
    assert [m.field for m in judge(poor, {"survive": "rack"})] == ["survive"]


def test_interval_below_what_the_store_takes_is_missed():
    e = run(saves={"interval_s": 5})
    assert judge(e, {})[0].field == "checkpoint.interval_s"


@pytest.mark.parametrize(
    ("devices", "preset", "spec", "within"),
    [
        (1024, "typical", {}, 1e-3),
        (16_384, "llama3", {}, 1e-3),
        (16_384, "llama3", {"spares": 2}, 4e-3),
        (98_304, "bad", {}, 4e-3),
    ],
)
def test_product_of_losses_against_simulation(devices, preset, spec, within):
    e = run({"preset": preset, **spec}, devices=devices)
    r = simulate(of_life(e.life, 86_400 * (150 if devices < 5000 else 30)), 300, 1)
    assert r.goodput == pytest.approx(float(e.goodput), abs=within)


def test_goodput_curve_peaks_at_the_interval():
    e = run({"checkpoint_stall_s": 10})
    best = e.curve["interval_s"][np.argmax(e.curve["goodput"])]
    assert best == pytest.approx(float(e.checkpoint_interval_s), rel=0.05)
    assert max(e.curve["goodput"]) == pytest.approx(float(e.goodput), rel=1e-3)


def test_nearer_copies_lift_goodput_and_agree_with_simulation():
    for devices in (16_384, 98_304):
        e = run({"preset": "ft-hsdp"}, devices=devices)
        t = tiered(cluster(devices), e, state_bytes_per_device=5.67e12 / devices)
        assert t["gain"] > 0
        found = simulate(of_life(t["life"], 30 * 86_400), 300, 5)
        assert found.goodput == pytest.approx(t["goodput"], abs=5e-3)
        assert [x.id for x in t["tiers"]] == ["L0", "L1", "L2", "L3"]
        assert t["every"][2] * (t["interval_s"] + e.checkpoint_stall_s) >= e.checkpoint_durable_s


def test_finishing_day_has_a_spread():
    e = run({"preset": "llama3"})
    f = finish(e, 54 * 86_400, replicas=300, seed=2)
    assert 54 < f["days_p10"] < f["days_p50"] < f["days_p90"] < 60
    assert f == finish(e, 54 * 86_400, replicas=300, seed=2)
    json.dumps(f, allow_nan=False)


def test_copies_on_local_disks_do_not_survive_a_node():
    e = endure(
        cluster(storage="nvme"),
        {"spares": 16},
        checkpoint_bytes=5.67e12,
        state_bytes_per_device=3.5e8,
    )
    assert [m.field for m in judge(e, {"survive": "node"})] == ["survive"]
    assert judge(run({"spares": 16}), {"survive": "rack"}) == ()
    (pod,) = judge(run({"spares": 16}), {"survive": "pod"})
    assert pod.field == "survive" and "16 nodes stand by, 2,048 needed" in pod.text


def test_a_hang_waits_for_the_timeout():
    assert failures.detection_s(timeout_s=1800) == pytest.approx(352, abs=1)
    assert failures.detection_s(timeout_s=120) == pytest.approx(186, abs=1)


def test_shrinking_for_want_of_spares_against_simulation():
    """Poisson nodes in repair, whole micro-batches: the closed sum against runs that shrink and
    grow."""
    m, load, n = 7200.0, 2.0, 1
    base = Scenario(
        work_s=1500 * m,
        interval_s=300,
        levels=(Level(stall_s=0, durable_s=0, restart_s=0),),
        faults=(Fault(rate_per_s=1 / m, level=0, down_s=0, nodes=1),),
        spares=n,
        repair_s=load * m,
        shrink=Shrink(gangs=16, gang_nodes=4, micro_batches=15),
    )
    r = simulate(base, 100, 1)
    lost = r.badput["shrunk"]
    assert lost == pytest.approx(elastic.shrink_loss(load, n, 4, 16, 15), rel=0.06)
    assert lost < spares.stall_share(n, load) / 3
    assert elastic.shrink_loss(0.0, 0, 4, 16, 15) == 0


@pytest.mark.parametrize("slower", [1.0, 3.0, 10.0])
def test_a_life_among_others_is_the_life_alone(slower):
    """Also where some of them hardly ever wait for a node, and so do not shrink."""
    settled = assess(GALLERY / "llama-3.1-405b.yaml").endurance.life
    life = replace(settled, shrinks=True, slower=slower)
    counts = np.arange(0, 60)
    among, _ = lived(replace(life, spares=counts))
    alone = [float(lived(replace(life, spares=int(n)))[0]) for n in counts]
    assert np.asarray(among) == pytest.approx(alone, rel=1e-12)


def test_spares_for_a_whole_run_are_more_than_for_one_failure():
    rate, repair, run_s = 1 / 13_000, 14_400.0, 54 * 86_400.0
    s = closed_forms.spares_for_run(0.99, rate, repair, run_s)
    assert (
        closed_forms.never_wait(s, rate, repair, run_s)
        >= 0.99
        > closed_forms.never_wait(s - 1, rate, repair, run_s)
    )
    assert s > spares.spares_for(rate * repair, 0.99)


COMPLETE = sorted(id for id, chip in catalogue.accelerators().items() if not chip.unpublished)


@pytest.mark.parametrize("accelerator", COMPLETE)
def test_every_accelerator_endures_and_has_a_finite_cost(accelerator):
    c, _ = build_cluster({"accelerator": accelerator, "devices": 512})
    e = endure(c, None, checkpoint_bytes=1e12, state_bytes_per_device=2e9)
    assert 0 < e.goodput < 1
    json.dumps(e.as_dict(), allow_nan=False)
    x = cost.price(
        c,
        None,
        wall_s=86_400.0,
        devices_paid=512 + int(e.spares) * c.devices_per_node,
        goodput=e.goodput,
    )
    json.dumps(x.as_dict(), allow_nan=False)
    assert x.power_w is None or 10 < x.power_w / 512 < 5000


@pytest.mark.parametrize("devices", [1, 16_384, 10_000_000])
@pytest.mark.parametrize(
    "spec",
    [
        {"failures_per_1000_node_days": 1e6},
        {"repair_s": 1e9},
        {"repair_s": 0},
        {"spares": 10**6},
        {"restart_s": 1e9},
        {"detect_s": 1e9},
        {"checkpoint_stall_s": 1e9},
        {"checkpoint_durable_s": 1e9},
        {
            "failures_per_1000_node_days": 0,
            "detect_s": 0,
            "repair_s": 0,
            "checkpoint_stall_s": 0,
            "checkpoint_durable_s": 0,
            "restart_s": 0,
        },
    ],
)
def test_anything_the_design_file_allows_gives_finite_figures(devices, spec):
    e = endure(cluster(devices), spec, checkpoint_bytes=1e12, state_bytes_per_device=1e8)
    json.dumps(e.as_dict(), allow_nan=False)
    assert e.goodput + sum(e.badput.values()) == pytest.approx(1, abs=1e-9)
    judge(e, {"min_goodput": 0.9, "survive": "rack", "max_lost_work_s": 60})


def test_waiting_by_spares_falls_and_is_what_the_badput_says():
    import scantling
    from scantling.design.design import Design
    from scantling.endure.reliability import waiting
    from scantling.endure.spares import erlang_b
    from scantling_widgets.shipped_files import example

    design = Design.read(example()).change({"reliability.recovery": "in-place"})
    endurance = scantling.assess(design).endurance
    table = waiting(endurance)
    assert table["repair_s"] == pytest.approx([14_400, 86_400])  # 4 h, and a day
    own, slow = table["shortage"]
    assert own == sorted(own, reverse=True) and all(a <= b for a, b in zip(own, slow))
    assert own[int(endurance.spares)] == pytest.approx(endurance.badput["spare shortage"], rel=0.1)
    load = (
        0.9 * float(endurance.repair_s) / float(endurance.mtbf_s)
    )  # nearly every failure takes a node out
    chances = table["wait_chance"][0]
    assert chances[2] == pytest.approx(float(erlang_b(2, load)), rel=0.25)
    assert chances[0] == 1.0
    stated = scantling.assess(design.change({"reliability.repair_s": 14_400})).endurance
    assert waiting(stated)["repair_s"] == pytest.approx([14_400])
