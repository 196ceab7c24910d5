"""Tornado, sweeps and direct answers: signs, edges, and that every figure is that of a design
assessed alone."""

from __future__ import annotations

import numpy as np
import pytest
from scantling import Design, assess
from scantling.advise import extremes, sensitivity, sweeps
from scantling.advise.batch_size import reshapes_of
from scantling.base.errors import DesignError
from scantling.catalogue.scaling_laws import compute_optimal
from scantling.plans import space as plans

TEXT = (
    "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {tokens: "
    "1.0e12, seq_len: 8192, global_batch: 256}\n"
)
D = Design.from_text(TEXT)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["days", "cost_usd", "mfu"])
def test_signs_of_the_tornado(key):
    a = assess(D)
    rows = {r["what"]: r for r in sensitivity.tornado(a, key)}
    now = a.headline()[key]
    worse = (lambda v: v >= now * (1 - 1e-9)) if key != "mfu" else (lambda v: v <= now * (1 + 1e-9))
    better = (
        (lambda v: v <= now * (1 + 1e-9)) if key != "mfu" else (lambda v: v >= now * (1 - 1e-9))
    )
    for what in ("HBM bandwidth", "Scale-up bandwidth", "Interconnect"):
        assert worse(rows[what]["low"]) and better(rows[what]["high"]), what
    if key == "cost_usd":
        assert rows["Price"]["low"] == pytest.approx(0.75 * now) and rows["Price"][
            "high"
        ] == pytest.approx(1.3 * now)
    if key == "days":
        assert rows["Failure rate"]["low"] < now < rows["Failure rate"]["high"]
        assert "Price" not in rows  # it moves nothing
    swings = [r["swing"] for r in rows.values()]
    assert swings == sorted(swings, reverse=True)


def test_each_bar_is_a_design_assessed_alone():
    a = assess(D)
    one = next(i for i in sensitivity.inputs(a) if i.what == "HBM bandwidth")
    (row,) = sensitivity.tornado(a, "step_s", over=[one])
    assert (
        row["low"] == assess(D.change(one.low)).step_s
        and row["high"] == assess(D.change(one.high)).step_s
    )


def test_unknown_quantities_are_refused():
    with pytest.raises(DesignError):
        sensitivity.tornado(assess(D), "happiness")


def test_a_one_way_sweep_and_its_edge():
    over = {"cluster.devices": [16, 32, 64, 128, 256]}
    seen = []
    cells = sweeps.sweep(
        D.change({"constraints.deadline_days": 25}), over, progress=lambda i, n: seen.append((i, n))
    )
    assert seen[-1] == (5, 5)
    assert [c.verdict for c in cells] == [
        "constraint-missed",
        "constraint-missed",
        "feasible",
        "feasible",
        "feasible",
    ]
    assert sweeps.edge(cells) == [(32, "constraint-missed", 64, "feasible")]
    assert cells[2].figures["days"] == assess(D).days


def test_a_two_way_sweep_with_what_is_refused():
    over = {"plan.tp": [1, 2, 3], "job.global_batch": [64, 256]}
    cells = sweeps.sweep(D, over)
    assert [c.at for c in cells] == [(tp, batch) for tp in (1, 2, 3) for batch in (64, 256)]
    assert all(c.verdict == "refused" and "tp" in c.why and not c.figures for c in cells[4:])
    assert cells[3].figures["step_s"] == assess(D.change({"plan.tp": 2})).step_s


@pytest.mark.slow
def test_a_map_of_many_designs_is_near_the_exact_one():
    d = D.change({"constraints.deadline_days": 25})
    over = {"cluster.devices": [16, 32, 64, 128], "job.tokens": [0.5e12, 1e12, 2e12]}
    seen = []
    cells = sweeps.sweep(d, over, space=plans.COARSE, progress=lambda i, n: seen.append(i))
    days = np.array([c.figures["days"] for c in cells]).reshape(4, 3)
    assert seen[-1] == 12
    assert np.all(np.diff(days, axis=0) < 0) and np.all(np.diff(days, axis=1) > 0)
    assert [c.verdict == "feasible" for c in cells] == (days.ravel() <= 25).tolist()
    exact = [c.figures["days"] for c in sweeps.sweep(d, over)]
    assert np.all(days.ravel() / np.array(exact) < 1.15)


def test_the_longest_sequence_fits_and_the_next_does_not():
    best = extremes.longest_sequence(D)
    pins = {f"plan.{k}": assess(D).plan[k] for k in ("tp", "pp", "cp", "dp", "ep", "sharding")}
    at = lambda seq: assess(D.change({**pins, "job.seq_len": seq}))  # noqa: E731
    fits = at(best["seq_len"])
    assert fits.memory_bytes["total"] <= fits.memory_bytes["capacity"]
    more = at(best["seq_len"] + 1024)
    assert (
        more.memory_bytes["total"] > more.memory_bytes["capacity"] or more.plan["offload"] != "none"
    )


@pytest.mark.slow
def test_the_fewest_devices_and_one_node_less():
    d = D.change({"constraints.deadline_days": 25})
    n = extremes.fewest_devices(d)["devices"]
    assert assess(d.change({"cluster.devices": n})).met
    assert not assess(d.change({"cluster.devices": n - 8})).met
    assert extremes.fewest_devices(d.change({"constraints.deadline_days": 1e-3})) is None


def test_the_biggest_micro_batch():
    best = extremes.biggest_micro_batch(D)
    assert best["memory_share"] <= 1 and best["micro_batch"] >= assess(D).plan["micro_batch"]


def test_the_earliest_finish_is_no_later_than_any_count_tried():
    best = extremes.earliest_finish(D, most_devices=256)
    assert best["value"] == best["likely"]["days"]
    assert best["value"] <= min(
        assess(D.change({"cluster.devices": n})).likely.days for n in (64, 128, 256)
    )


@pytest.mark.slow
def test_the_earliest_finish_is_no_hidden_cap():
    """ "`earliest-finish` -> 33.6 days, 2,048 devices, "no other constraint". Same file: 3072 ->
    29.6 days; 4096 -> 20.2 days. Silent cap at 4x the design's own devices"."""
    best = extremes.earliest_finish(D)
    own = assess(D).resolved.cluster.devices
    for times in (2, 4, 6, 8, 16, 32, 64):
        a = assess(D.change({"cluster.devices": own * times}))
        assert not a.met or a.likely.days >= best["value"] * 0.999, times
    assert "searched up to" in best["bound"]
    capped = extremes.earliest_finish(D, most_devices=2 * own)
    assert capped["devices"] == 2 * own
    assert capped["bound"].startswith(f"the {2 * own:,} devices that are allowed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "field", "stricter"),
    [
        ("longest_sequence", "days", {"constraints.deadline_days": 40}),
        ("largest_model", "days", {"constraints.deadline_days": 40}),
        ("fewest_devices", "days", {"constraints.deadline_days": 40}),
        ("earliest_finish", "cost_usd", {"constraints.budget_usd": 95_000}),
    ],
)
def test_answers_keep_every_stated_constraint(question, field, stricter):
    d = D.change(stricter)
    said = getattr(extremes, question)(d)
    (limit,) = stricter.values()
    assert said[field] <= limit
    assert said["verdict"] in ("feasible", "feasible-at-risk")
    assert said["bound"]


def test_the_bound_of_an_answer_is_what_stops_the_next():
    d = D.change({"constraints.deadline_days": 25})
    said = extremes.fewest_devices(d)
    assert f"with {said['devices'] - 8:,} devices: deadline" in said["bound"]


def test_racks_are_counted_whole():
    """ "`fewest-devices` says 984 devices, dp 123" on NVL72; 4,096/72 = 56.9 racks"."""
    rack = D.change({"cluster": {"accelerator": "gb200-nvl72", "devices": 4096}})
    for question in (extremes.fewest_devices, extremes.earliest_finish):
        assert question(rack)["devices"] % 72 == 0


def test_the_largest_model_by_the_deadline():
    d = D.change({"constraints.deadline_days": 30})
    best = extremes.largest_model(d)
    assert (
        9e9 < best["params"] < 16e9 and best["days"] <= 30
    )  # the 8B takes 19 of the 30 days: about 1.5 times its size


@pytest.mark.slow
def test_a_compute_budget_becomes_size_and_tokens():
    d = D.change({"constraints.deadline_days": 30})
    got = extremes.within_budget_of_compute(d)
    assert 29 < got["days"] <= 30 and "deadline: " in got["bound"]  # shapes go in steps
    size, tokens = compute_optimal(got["compute_flops"])
    assert got["params"] == pytest.approx(float(size), rel=1e-6) and got["tokens"] == pytest.approx(
        float(tokens), rel=1e-6
    )
    assert (
        10 < got["tokens"] / got["params"] < 40
    )  # about 20 tokens a parameter (Hoffmann et al. 2022)
    assert "arXiv" in got["source"]


def test_a_compute_budget_where_the_designs_own_model_has_no_plan():
    d = Design.from_data(
        {
            "scantling": 1,
            "model": {"like": "llama-3.1-405b"},
            "cluster": {"accelerator": "tpu-v5e", "devices": 4},
            "job": {"tokens": 1e12, "seq_len": 32768, "global_batch": 8},
            "constraints": {"deadline_days": 30},
        }
    )
    assert assess(d).verdict == "impossible"
    got = extremes.within_budget_of_compute(d)
    assert 26 < got["days"] <= 30  # a hidden size of 2,048 or 2,560: a tenth of the time
    scaled = extremes.by_scaling_laws(d)["rows"]
    (same,) = (row for row in scaled if row["law"] == got["law"])
    for name in ("params", "days", "cost_usd", "mfu", "mfu_shown"):
        assert same[name] == got[name]


def test_a_compute_budget_in_four_bits_may_pass_the_peak_of_sixteen():
    d = Design.from_data(
        {
            "scantling": 1,
            "model": {"like": "llama-3.1-8b"},
            "cluster": {"accelerator": "gb300-nvl72", "devices": 72},
            "job": {
                "tokens": 1e12,
                "seq_len": 4096,
                "global_batch": 1152,
                "precision": "nvfp4",
                "effort": "tuned",
            },
            "stack": "megatron-core",
            "constraints": {"deadline_days": 10},
        }
    )
    got = extremes.within_budget_of_compute(d)
    assert 9 < got["likely"]["days"] <= 10
    assert "deadline" in got["bound"]


MIXTURE = {  # small models leave this machine idle
    "model": {"like": "qwen3-235b-a22b"},
    "cluster": {"accelerator": "h200-sxm", "devices": 1024, "scale_out": "ib-ndr"},
    "job": {"tokens": 4e12, "seq_len": 8192, "precision": "fp8"},
    "stack": "megatron-core",
    "constraints": {"deadline_days": 60, "budget_usd": 6e6},
}


def test_the_biggest_micro_batch_is_no_smaller_than_the_plans_own():
    d = Design.from_data(
        {
            "model": {"size": 70e9},
            "cluster": {"accelerator": "h100-sxm", "devices": 192},
            "job": {"seq_len": 8192},
        }
    )
    assert assess(d).plan["recompute_modules"]
    best = extremes.biggest_micro_batch(d)
    assert best is not None and best["micro_batch"] >= assess(d).plan["micro_batch"]


def test_the_longest_sequence_is_no_shorter_than_that_of_a_design_which_keeps_its_deadline():
    """A batch keeps its sequences: with short ones a step is small, and the deadline is missed."""
    d = Design.from_data(
        {
            "model": {"size": 34e9},
            "cluster": {"accelerator": "mi355x", "devices": 1024},
            "job": {"tokens": 2e12, "seq_len": 32768, "precision": "fp8"},
            "stack": "nanotron",
            "constraints": {"deadline_days": 45},
        }
    )
    assert assess(d).met
    best = extremes.longest_sequence(d)
    assert best is not None and best["seq_len"] >= 32768


@pytest.mark.slow
def test_the_largest_model_of_a_machine_that_is_too_large_for_a_small_one():
    d = Design.from_data(MIXTURE)
    now = assess(d)
    small = assess(d.change(d.freed | {"model": {"size": 1e8, "moe": True}}))
    assert now.met and small.verdict == "impractical"
    best = extremes.largest_model(d)
    assert best is not None and best["params"] > now.params
    assert best["likely"]["cost_usd"] <= 6e6 and best["likely"]["days"] <= 60


@pytest.mark.slow
def test_a_compute_budget_keeps_the_budget_in_dollars_too():
    d = Design.from_data(MIXTURE)
    got = extremes.within_budget_of_compute(d)
    assert got["likely"]["cost_usd"] <= 6e6 and "budget" in got["bound"]


def test_reshapes_keep_the_global_batch():
    rows = reshapes_of(assess(D), most=20)
    assert len(rows) > 5 and all(r["dp"] * r["micro_batch"] * r["grad_accum"] == 256 for r in rows)
    assert [r["step_s"] for r in rows] == sorted(r["step_s"] for r in rows)
    assert all(
        r["memory_share"] <= 1 and r["tp"] * r["cp"] * r["pp"] * r["dp"] == r["devices_used"] <= 64
        for r in rows
    )


def test_variants_are_the_same_here_and_on_a_cluster():
    distributed = pytest.importorskip("distributed")
    designs = [D.change({"cluster.devices": n}) for n in (32, 64, 96)]
    here, _ = sweeps.variants(designs, top=5)
    assert len(here) == 15 and here[0]["tokens_per_s"] == max(r["tokens_per_s"] for r in here)
    over = {"cluster.devices": [32, 64, 96]}
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert sweeps.variants(designs, top=5, scheduler=client)[0] == here
        for space in (plans.COARSE, plans.DEFAULT):
            here = sweeps.sweep(D, over, space=space)
            assert sweeps.sweep(D, over, space=space, scheduler=client, chunk=2) == here


def test_a_budget_of_compute_by_the_laws_and_by_the_answer_is_one():
    """The size, tokens, days and dollars of the law that both take, the plan that keeps the
    deadline in both."""
    d = Design.from_data(
        {
            "model": {"size": 45e9},
            "cluster": {"accelerator": "h200-sxm", "devices": 256},
            "job": {},
            "constraints": {"deadline_days": 21},
        }
    )
    got = extremes.within_budget_of_compute(d)
    (same,) = (r for r in extremes.by_scaling_laws(d)["rows"] if r["law"] == got["law"])
    for name in ("params", "tokens", "days", "cost_usd", "likely", "mfu_shown", "plan"):
        assert same[name] == got[name], name


def test_a_slower_rate_raises_no_utilisation_of_a_job_in_phases():
    """Each phase keeps its plan: another one, which a search might choose, would hide the rate."""
    phase = {"seq_len": 8192, "global_batch": 256, "tokens": 1e12}
    longer = {"seq_len": 65536, "global_batch": 32, "tokens": 1e11}
    a = assess(D.change({"job": {"phases": [phase, longer]}}))
    rates = ("HBM bandwidth", "Scale-up bandwidth", "Interconnect")
    inputs = [one for one in sensitivity.inputs(a) if one.what in rates]
    assert len(a.phases) == 2 and len(inputs) == 3
    for row in sensitivity.tornado(a, "mfu", over=inputs):
        assert row["low"] <= a.mfu <= row["high"] * (1 + 1e-9), row["what"]


def test_a_longer_restart_or_more_failures_end_no_run_sooner():
    """Where the longer run misses its deadline, further schedules are searched: the swing would be
    that of another plan."""
    d = Design.from_data(
        {
            "model": "llama-3.1-405b",
            "cluster": {"accelerator": "h200-sxm", "devices": 16384},
            "job": {"tokens": 1e13, "seq_len": 8192, "global_batch": 2048},
        }
    )
    d = d.change({"constraints.deadline_days": 1.01 * assess(d).likely.days})
    a = assess(d)
    recovery = ("Failure rate", "Restart", "Stall of a save")
    over = [one for one in sensitivity.inputs(a) if one.what in recovery]
    assert len(over) == 3
    for row in sensitivity.tornado(a, "likely.days", over=over):
        assert row["low"] <= a.likely.days * (1 + 1e-9) <= row["high"] * (1 + 2e-9), row["what"]
