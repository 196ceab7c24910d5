"""Planes: the step's pieces sum to the step, its collectives to the traffic, its state to the
checkpoint."""

import json

import pytest
from scantling import Design, assess
from scantling.physics.communication import communication
from scantling_site import part

DESIGNS = {
    "dense": dict(
        model="llama-3.1-405b",
        devices=16384,
        plan={"tp": 8, "cp": 1, "pp": 16, "dp": 128},
        batch=2048,
        seq=8192,
    ),
    "long": dict(
        model="llama-3.1-405b",
        devices=16384,
        plan={"tp": 8, "cp": 16, "pp": 16, "dp": 8},
        batch=128,
        seq=131072,
    ),
    "experts": dict(
        model="deepseek-v3",
        devices=2048,
        plan={"tp": 1, "pp": 16, "dp": 128, "ep": 64},
        batch=15360,
        seq=4096,
    ),
    "fsdp": dict(
        model="llama-3.1-8b",
        devices=64,
        plan={"tp": 1, "pp": 1, "cp": 1, "dp": 64, "sharding": "zero3"},
        batch=256,
        seq=8192,
    ),
    "one": dict(model="llama-3.1-8b", devices=8, plan={}, batch=64, seq=8192),
}


def assessment(name, **more):
    d = DESIGNS[name]
    return assess(
        Design.from_data(
            {
                "scantling": 1,
                "model": d["model"],
                "cluster": {
                    "accelerator": "h100-sxm",
                    "devices": d["devices"],
                    "scale_out": "ib-ndr",
                },
                "job": {
                    "seq_len": d["seq"],
                    "global_batch": d["batch"],
                    "precision": "bf16",
                    "tokens": 1e12,
                },
                "plan": d["plan"],
                **more,
            }
        )
    )


@pytest.fixture(scope="module", params=list(DESIGNS))
def case(request):
    return assessment(request.param)


def test_exposed_pieces_sum_to_the_step_and_follow_one_another(case):
    pieces = part(case, "planes").timeline
    assert sum(p.exposed_s for p in pieces) == pytest.approx(case.step_s)
    at = 0.0
    for p in pieces:
        assert p.start_s == pytest.approx(at) and p.exposed_s >= 0 and p.hidden_s >= 0
        assert p.hidden_s == 0 or p.beside, p
        at += p.exposed_s


def test_hidden_communication_is_all_there(case):
    network = sum(
        p.hidden_s for p in part(case, "planes").timeline if p.plane in ("network", "compute")
    )
    assert network == pytest.approx(
        sum(case.as_dict(advice=False)["hidden_s"].values()), rel=1e-6, abs=1e-9
    )


def test_a_measured_step_is_what_the_timeline_sums_to():
    a = assessment("dense", measured={"step_s": 7.5})
    assert sum(p.exposed_s for p in part(a, "planes").timeline) == pytest.approx(7.5)


def test_collectives_sum_to_the_traffic_of_their_axis(case):
    rows = part(case, "planes").collectives
    for row in communication(case.chosen.case, case.chosen.step):
        mine = [r for r in rows if r.axis == row["axis"]]
        assert sum(r.bytes for r in mine) == pytest.approx(row["bytes"])
        assert sum(r.time_s for r in mine) == pytest.approx(row["time_s"]) and sum(
            r.exposed_s for r in mine
        ) == pytest.approx(row["exposed_s"])
        assert all(r.ranks * r.groups <= case.devices_used and r.times >= 1 for r in mine)
    assert {r.axis for r in rows} - {"all"} == {
        r["axis"] for r in communication(case.chosen.case, case.chosen.step)
    }


def test_sequence_parallel_layers_gather_and_scatter_twice_each_way():
    """Korthikanti et al. 2022, section 4.2.2: two all-gathers and two reduce-scatters a layer,
    forward and backward alike, those of the forward once more where it is recomputed, and in the
    backward the inputs of the two column-parallel products again."""
    a = assessment("dense")
    rows = [r for r in part(a, "planes").collectives if r.axis == "tp"]
    layers = 8 * a.plan["grad_accum"]  # the fullest of 16 stages with 126 layers
    ahead = round(2 * layers * (1 + float(a.chosen.case.recomputed.layer)))
    assert [(r.operation, r.times) for r in rows] == [
        ("all_gather", ahead),
        ("reduce_scatter", ahead),
        ("all_gather", 2 * layers),
        ("all_gather", 2 * layers),
        ("reduce_scatter", 2 * layers),
    ]
    assert all(r.tier == "scale-up" and r.groups == 2048 for r in rows)


def test_experts_exchange_tokens_twice_a_layer_each_way():
    """Dispatch and combine in every MoE layer, forward and backward (DeepSeek-V3, section 3.2), and
    once more in the layers that recompute; the fullest of 16 stages has 4 of the 61 layers."""
    a = assessment("experts")
    rows = [r for r in part(a, "planes").collectives if r.axis == "ep"]
    assert len(rows) == 4 and all(r.operation == "all_to_all" for r in rows)
    layers, again = 4 * a.plan["grad_accum"], float(a.chosen.case.recomputed.expert)
    assert [r.times for r in rows] == [round(layers * (1 + again))] * 2 + [layers] * 2


def test_zero_volumes():
    """Rajbhandari et al. 2020, section 7: sharded weights are gathered for forward and for
    backward, gradients scattered once a pass; stage 1 scatters gradients and gathers updated
    weights once a step."""
    full = assessment("fsdp")
    weights, gradients = (r for r in part(full, "planes").collectives if r.axis == "dp")
    layers, m = 32, full.plan["grad_accum"]
    assert (weights.times, gradients.times) == (2 * layers * m, layers * m), (
        "each of 32 layers twice forward and back, once for its gradients"
    )
    assert weights.bytes / (2 * m) == pytest.approx(2 * 8.03e9 * 63 / 64, rel=0.01)
    assert [r.times for r in part(assessment("dense"), "planes").collectives if r.axis == "dp"] == [
        1,
        1,
    ]


def test_the_saved_state_is_the_checkpoint(case):
    p = part(case, "planes")
    assert p.training_state_bytes + p.job_state_bytes == pytest.approx(
        case.checkpoint_bytes, rel=1e-6
    )
    assert p.checkpoint_bytes == pytest.approx(case.checkpoint_bytes)
    assert {s.item for s in p.states if s.saved} >= {
        "weights",
        "master weights",
        "optimizer moments",
        "random-number states",
        "data position",
    }
    assert not any(s.saved for s in p.states if s.item in ("gradients", "activations"))


def test_mixed_precision_adam_saves_14_bytes_a_parameter():
    """2 bytes of bf16 weight, 4 of fp32 master, 8 of moments (Rajbhandari et al. 2020, section 3.1,
    without its gradients)."""
    p = part(assessment("dense"), "planes")
    assert p.training_state_bytes / 405.85e9 == pytest.approx(14, rel=0.001)


def test_four_planes_decide_run_feed_and_remember(case):
    rows = part(case, "planes").planes
    assert [(p.plane, p.role) for p in rows] == [
        ("control", "decides"),
        ("compute", "runs"),
        ("data", "feeds"),
        ("storage", "remembers"),
    ]
    feeds = next(p for p in rows if p.plane == "data")
    assert feeds.rate_bytes_per_s * case.step_s == pytest.approx(
        feeds.figures["tokens_per_step"] * feeds.figures["token_bytes"]
    )


def test_feeding_is_far_from_the_step(case):
    """Megabytes a second for the whole job: text does not starve devices by bandwidth."""
    read = next(p for p in part(case, "planes").timeline if p.what == "next batch read")
    assert read.exposed_s == 0 and read.hidden_s < 0.05 * case.step_s


def test_plain_json(case):
    json.dumps(part(case, "planes").as_dict(), allow_nan=False)
