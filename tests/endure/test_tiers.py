"""Copies by tier as inputs and results, spares priced, the ladder by size, time to a first step."""

import json

import numpy as np
import pytest
import scantling as sc
from scantling.advise.recovery import goodput as lived_through
from scantling.endure.first_step import first_step
from scantling.endure.life import Gang, lived
from scantling.endure.simulate import of_life, simulate

NEAR = {
    "l0": {"every_s": 60},
    "l1": {"every_s": 120},
    "l2": {"every_s": 600},
    "l3": {"every_s": 7200},
}


def design(**changes):
    """405B on 16,384 devices at Llama 3's own rate."""
    return sc.Design.from_data(
        {
            "model": "llama-3.1-405b",
            "cluster": {"accelerator": "h100-sxm", "devices": 16_384},
            "job": {"tokens": 15.6e12, "seq_len": 8192, "global_batch": 2048},
            "stack": "megatron-core",
            "reliability": {"preset": "llama3"},
            "plan": {"tp": 8, "pp": 16},
        }
    ).change(changes)


@pytest.fixture(scope="module")
def plain():
    return sc.assess(design())


def test_what_each_failure_restores_from():
    """A process that dies restarts from its host, a lost node from a peer, corruption from the
    shared store, the loss of that store from objects, for which nothing but L3 helps."""
    e = sc.assess(design(**{"checkpoint.tiers": NEAR})).endurance
    rows = {row["tier"]: row for row in e.tiers}
    assert [row["every_s"] for row in e.tiers] == [60, 120, 600, 7200]
    assert rows["L0"]["restores"] == ["software"]
    assert "gpu" in rows["L1"]["restores"] and "sdc" in rows["L2"]["restores"]
    assert rows["L3"]["restores"] == ["storage"]
    assert e.interval_set_by == "checkpoint.tiers"
    lost = {"reliability.causes.storage.per_1000_node_days": 0.02}
    far, near = (
        sc.assess(design(**lost, **{"checkpoint.tiers": tiers})).goodput
        for tiers in (NEAR, NEAR | {"l3": {"every_s": 86_400}})
    )
    assert far > near + 0.01, "the store's losses fall back as far as its copies beyond are old"
    found = simulate(of_life(e.life, 30 * 86_400), 400, 3)
    assert found.goodput == pytest.approx(float(e.goodput), abs=1e-3)


def test_a_pinned_interval_is_kept_and_never_beats_the_optimum(plain):
    for every in (30.0, 600.0, 3600.0):
        e = sc.assess(design(**{"checkpoint.interval_s": every})).endurance
        assert e.checkpoint_interval_s == every
        assert e.goodput <= plain.endurance.goodput + 1e-9


def test_an_object_store_alone_moves_the_headline(plain):
    e = sc.assess(design(**{"cluster.storage": "s3-standard"})).endurance
    assert e.tiers[0]["tier"] == "L3"
    assert e.checkpoint_durable_s > plain.endurance.checkpoint_durable_s
    assert e.goodput < plain.endurance.goodput - 1e-4


def test_copies_reach_back_past_corruption_and_loss_spikes(plain):
    """PaLM rewound some 100 steps (arXiv 2204.02311): as many copies as that takes, and as a check
    against corruption takes; what is given is kept."""
    e = plain.endurance
    period = float(e.checkpoint_interval_s + e.checkpoint_stall_s)
    assert int(e.retention) * period >= max(160 * plain.step_s, float(e.check_every_s))
    kept = sc.assess(design(**{"checkpoint.keep_versions": 5})).endurance
    assert int(kept.retention) == 5


def test_spares_are_priced_and_never_lower_goodput(plain):
    table = lived_through(plain)["spares_table"]
    good = [row["goodput"] for row in table]
    assert good == sorted(good)
    now = {row["spares"]: row for row in table}[plain.spares]
    assert now["goodput"] == pytest.approx(plain.goodput) and now["days"] == pytest.approx(
        plain.days
    )
    assert now["cost_usd"] == pytest.approx(plain.cost_usd)
    best = min(table, key=lambda row: row["cost_usd"])
    assert best["cost_usd"] >= 0.99 * plain.cost_usd, "a shortage that a few nodes would cure"


def test_the_ladder_at_a_hundred_thousand_and_a_million(plain):
    rows = lived_through(plain)["ladder_by_size"]
    by = {n: [r["goodput"] for r in rows if r["devices"] == n] for n in (16_384, 100_000, 10**6)}
    assert by[100_000][0] < 0.5 < by[100_000][-1]
    assert all(0 <= g <= 1 for values in by.values() for g in values)
    assert all(np.array(by[16_384]) >= np.array(by[100_000]))
    json.dumps(rows, allow_nan=False)


def test_first_step_by_size():
    """A requeue of 454 s at 2,048 devices and 768 s at 16,384 (ByteRobust, Table 7), collectives 17
    and 200 s at 16,384 and 98,304 (FT-HSDP)."""
    assert first_step(2048)["scheduler"] == pytest.approx(454)
    assert first_step(16_384)["scheduler"] == pytest.approx(768, rel=1e-3)
    assert first_step(98_304)["communicators"] == pytest.approx(200, rel=1e-3)
    total = [sum(first_step(n).values()) for n in (8, 1024, 16_384, 98_304)]
    assert total == sorted(total)
    assert set(first_step(8, recovery="in-place")) < set(first_step(8))


def test_a_run_without_a_replica_is_the_plan_reshaped(plain):
    """43 of 64 replicas: 48 micro-batches where 32 were; step and memory are that plan's own."""
    gang = plain.endurance.life.gang
    lost = {key: column.item() for key, column in gang.reshape(np.array([21])).items()}
    assert gang.replicas == plain.plan["dp"] and lost["dp"] == plain.plan["dp"] - 21
    assert lost["micro_batches"] == -(-plain.plan["grad_accum"] * gang.replicas // lost["dp"])
    pins = {f"plan.{k}": plain.plan[k] for k in ("cp", "vpp", "micro_batch", "recompute")}
    batch = lost["micro_batches"] * lost["dp"] * plain.plan["micro_batch"]
    pins |= {"plan.dp": lost["dp"], "job.global_batch": int(batch), "cluster.devices": 11_008}
    alone = sc.assess(design(**pins))
    assert alone.step_s / plain.step_s == pytest.approx(lost["ratio"], rel=0.01)
    assert alone.memory_bytes["total"] == pytest.approx(lost["memory_bytes"], rel=0.01)


def test_a_replica_less_that_does_not_fit_is_waited_for():
    """Where two gangs less do not fit, nothing trains until one is back."""
    ratios = Gang(
        replicas=4,
        nodes=1,
        micro_batches=8,
        reshape=lambda gone: {"ratio": np.full(len(gone), 1.3), "fits": gone < 2},
    ).ratios
    assert ratios[1] == pytest.approx(1.3) and all(1 / ratios[2:] < 1e-5)


def test_elastic_running_reaches_the_headline():
    """Repairs of three days and no spare: running on without a replica beats waiting."""
    slow = {"reliability.repair_s": 259_200.0, "reliability.spares": 0}
    waiting = sc.assess(design(**slow)).endurance
    assert waiting.recovery == "in-place"  # what the kits do
    elastic = {"reliability.recovery": "elastic"}
    free = sc.assess(design(**slow, **elastic)).endurance
    waits = sc.assess(design(**slow, **{"reliability.recovery": "in-place"})).endurance
    assert free.recovery == "elastic" and free.goodput > waits.goodput + 0.2
    said = (
        sc.assess(design(**slow, **{"reliability.recovery": r})) for r in ("elastic", "in-place")
    )
    here, there = (a.as_dict(advice=False) for a in said)
    assert here["days"] < 0.5 * there["days"] and here["goodput"] == free.goodput
    requeued = sc.assess(design(**{"reliability.recovery": "restart"})).endurance
    assert requeued.badput["restart"] > 2 * waits.badput["restart"]
    assert lived(free.life)[0] == pytest.approx(float(free.goodput))
