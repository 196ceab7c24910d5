"""What slows plans that nobody would choose: hosts, pieces, dispatchers, measured networks; each
against a published figure, in its limits, and as a law over plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scantling import Design, assess
from scantling.blocks.kernels import GATHERED
from scantling.catalogue.models.shape import make_shape
from scantling.design.cluster import NetworkMeasured
from scantling.physics import traffic
from scantling.physics.cases import ZERO3
from scantling.physics.collectives import measured_link, out_rate, volume
from scantling.physics.constants import efforts
from scantling.physics.software import DEEPEP, HYBRIDEP, UCCL
from scantling.physics.step import dispatch_s, dispatch_waits_s, step_time
from scantling.physics.wires import Link, Wires
from scantling.runs.predict import predict as predict_table
from scantling.runs.read import table_of_user
from scantling.runs.to_cases import to_runs
from test_step import MOE, NODE, case

EFA = replace(NODE, srd=1)
LLAMA = make_shape(
    layers=16,
    hidden=2048,
    ffn_hidden=8192,
    heads=32,
    kv_heads=32,
    head_dim=64,
    vocab=131072,
    mlp="swiglu",
    attention="mha",
)
EAGER = {"fused_norm": 0.0, "norm_kernel": 1.0}
JOB = {"seq_len": 4096.0, "global_batch": 256.0}
ROW = {
    "id": "a",
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "n_devices": 64,
    "seq_len": 8192,
    "global_batch_seqs": 128,
    "micro_batch": 1,
    "precision": "bf16",
    "tp": 2,
    "pp": 1,
    "stack": "megatron-core",
}


def predicted(**columns):
    """What `predict` says of one row."""
    return predict_table(table_of_user(pd.DataFrame([ROW | columns]))).iloc[0]


# -- the host


def test_an_eager_layer_takes_what_its_launches_take():
    """The Ultra-Scale Playbook's grid: 4.4 to 4.8 ms a layer and micro-batch under tp 8, whatever
    the width; a large micro-batch is the device's own pace."""
    small = case(LLAMA, JOB, software=EAGER, tp=8, dp=2, sp=1, micro_batch=1)
    step = step_time(small)
    layer_s = step.total / (small.micro_batches * small.shape.layers)
    assert 0.0042 < layer_s < 0.0056
    large = case(LLAMA, JOB, software=EAGER, tp=8, dp=2, sp=1, micro_batch=32)
    assert dispatch_waits_s(large, np.float64(0.02)) == 0
    assert dispatch_s(replace(small, software=replace(small.software, fused_norm=1.0))) == 0


def test_a_pipeline_of_eager_layers_stalls_between_nodes_alone():
    """10, 15, 25 ms a layer under tp 2, 4, 8 between nodes, the usual 4.4 ms inside one."""
    software = EAGER | {"eager_pipeline": 1.0}
    for tp, seconds in ((2, 0.010), (4, 0.015), (8, 0.025)):
        c = case(LLAMA, JOB, software=software, tp=tp, pp=2, dp=8)
        assert dispatch_s(c) == pytest.approx(seconds, rel=0.12)
    inside = case(LLAMA, JOB, software=software, tp=4, pp=2)
    assert dispatch_s(inside) < 0.005
    assert dispatch_s(case(LLAMA, JOB, software=software, tp=1, pp=2, dp=16)) < 0.005


def test_states_gathered_tensor_by_tensor_hide_where_the_device_waits_for_its_host():
    one = EAGER | {"tensor_gather": 1.0}
    slow, usual = (
        case(LLAMA, JOB, software=s, tp=4, dp=32, sp=1, sharding=1, micro_batch=8)
        for s in (one, EAGER)
    )
    added = step_time(slow).total - step_time(usual).total
    assert 0.03 < added < 0.09  # the grid: 50 ms at 16 nodes
    slow, usual = (
        case(LLAMA, JOB, software=s, tp=8, dp=16, sp=1, sharding=1, micro_batch=1)
        for s in (one, EAGER)
    )
    assert step_time(slow).total == pytest.approx(step_time(usual).total, rel=1e-6)


def test_chunks_of_a_ring_wait_only_across_nodes():
    """7 and 15 ms a layer and micro-batch under tp 16 and 32 on EFA, nine rings a layer."""
    for tp, seconds in ((16, 0.007), (32, 0.0145)):
        c = case(LLAMA, JOB, link=EFA, software=EAGER, tp=tp, dp=4, sp=1)
        assert 9 * traffic.chunk_waits_s(c) == pytest.approx(seconds, rel=0.2)
    assert traffic.chunk_waits_s(case(LLAMA, JOB, link=EFA, tp=8, dp=4)) == 0


def test_experts_whose_weights_are_gathered_one_by_one():
    """A user of Transformers under ZeRO-3: 166 s a step of four micro-batches of 30B-A3B on 8
    H100; with grouped products a few seconds."""
    design = {
        "model": "qwen3-30b-a3b",
        "cluster": {"accelerator": "h100-sxm", "devices": 8},
        "job": {"seq_len": 4096, "global_batch": 32, "from_checkpoint": True},
        "stack": "deepspeed",
        "plan": {
            "tp": 1,
            "pp": 1,
            "cp": 1,
            "sharding": "zero3",
            "micro_batch": 1,
            "ep": 1,
            "offload": "none",
            "recompute": "full",
        },
    }
    step_s = assess(Design.from_data(design)).step_s
    assert 166 / 1.5 < step_s < 166 * 1.5
    assert GATHERED == ZERO3


# -- dispatchers


def test_small_micro_batches_pay_a_dispatch_over_efa_and_nowhere_else():
    """Seventeen to twenty milliseconds a layer and micro-batch (AWS, Qwen3-30B-A3B on H100), NCCL
    over two and four nodes alike; a node of its own or InfiniBand pay nothing."""
    for ep in (16, 32):
        c = case(MOE, JOB, link=EFA, tp=8, dp=4, ep=ep)
        exposed = 4 * traffic.dispatch_s(c)
        assert 0.010 < exposed < 0.018
    assert traffic.dispatch_s(case(MOE, JOB, link=EFA, tp=1, dp=8, ep=8)) == 0
    assert traffic.dispatch_s(case(MOE, JOB, link=NODE, tp=8, dp=4, ep=16)) == 0


def test_dispatchers_stand_in_another_order_over_efa():
    """Over EFA a message a token is dearer than a few large ones: NCCL is faster than DeepEP over
    UCCL for Qwen3-30B-A3B on four nodes of H100; over InfiniBand DeepEP is."""

    def step_s(link, dispatcher):
        software = {"dedup_dispatch": float(dispatcher)}
        return step_time(
            case(MOE, JOB, link=link, software=software, tp=1, dp=32, ep=32, micro_batch=1)
        ).total

    assert step_s(EFA, UCCL) > step_s(EFA, DEEPEP)
    assert step_s(NODE, DEEPEP) < step_s(NODE, 0)
    assert step_s(NODE, DEEPEP) == step_s(NODE, HYBRIDEP) == step_s(NODE, UCCL)


def test_a_row_names_its_dispatcher_effort_and_documents():
    moe = {"model": "qwen3-30b-a3b", "ep": 8}
    assert predicted(**moe, moe_dispatcher="uccl").error == ""
    assert "moe_dispatcher" in predicted(**moe, moe_dispatcher="pigeon").error
    assert "effort" in predicted(effort="heroic").error
    packed = predicted(document_tokens=1024)
    assert packed.step_time_s < predicted().step_time_s
    unsaid = predicted(other_opts="varlen attention")
    assert "document_tokens=1024" in unsaid.assumed
    assert efforts(np.array([1.0, 0.0, -1.0])).tolist() == ["tuned", "typical", "first-week"]


def test_a_row_says_its_attention_by_its_heads_and_its_vocabulary_by_its_name():
    shape = dict(layers=32, hidden=4096, ffn_hidden=14336, heads=32, mlp="swiglu")
    by_heads = predicted(**shape, kv_heads=8, vocab=128256)
    assert by_heads.error == ""
    assert (
        by_heads.step_time_s
        == predicted(**shape, kv_heads=8, vocab=128256, attention="gqa").step_time_s
    )
    named = predicted(**shape, kv_heads=8)
    assert "vocab=128256" in named.assumed and named.error == ""
    assert "vocab" in predicted(**shape, kv_heads=8, model="nobody's own").error


@pytest.mark.parametrize(
    "words, column, value",
    [
        ("liger; flash_attention_4", "flash", 4),
        ("unfused attention", "flash", 0),
        ("zigzag ring attention", "balanced_ring", 1),
        ("token drop, capacity factor 1.25", "capacity_factor", 1.25),
    ],
)
def test_words_of_options_settle_their_switch(words, column, value):
    rows = to_runs(table_of_user(pd.DataFrame([ROW | {"other_opts": words}])))
    assert np.ravel(getattr(rows.cases.software, column)) == value


def test_notes_locators_and_names_of_models_move_nothing():
    words = "bf16 parameters and bf16 Adam states; branch 23.10-release; without flash attention"
    shape = dict(layers=32, hidden=4096, ffn_hidden=14336, heads=32, kv_heads=8, mlp="swiglu")
    shape |= {"vocab": 128256, "attention": "gqa"}
    plain, told = predicted(**shape), predicted(**shape, notes=words, locator=words, source=words)
    assert plain.drop("id").equals(told.drop("id"))


# -- a measured network


def test_a_measured_all_reduce_is_that_of_the_rings():
    """Over 8 nodes of 8 a bus bandwidth of 160 GB/s is 20 GB/s a card; never above the line."""
    link = measured_link(NODE, 64.0, NetworkMeasured(all_reduce=160e9))
    assert out_rate(Wires(8.0, 1.0, link)) == pytest.approx(20e9)
    link = measured_link(NODE, 64.0, NetworkMeasured(all_reduce=900e9))
    assert out_rate(Wires(8.0, 1.0, link)) == pytest.approx(NODE.out_bytes_per_s)
    assert measured_link(NODE, 64.0, NetworkMeasured()) is NODE
    assert volume("all_reduce", 8.0) == pytest.approx(1.75)


@given(
    st.floats(1e9, 1e12),
    st.floats(1.05, 4.0),
    st.sampled_from(["all_reduce", "all_reduce_in_node", "all_to_all"]),
    st.sampled_from([(8, 1, 8), (1, 1, 64), (4, 2, 8), (16, 1, 4)]),
)
@settings(max_examples=40, deadline=None)
def test_a_network_measured_faster_is_never_slower(rate, more, what, plan):
    tp, pp, dp = plan

    def step_s(measured):
        link = measured_link(EFA, 64.0, NetworkMeasured(**{what: measured}))
        c = case(MOE, JOB, link=link, tp=tp, pp=pp, dp=dp, ep=min(dp * tp, 16), sharding=1)
        return step_time(c).total

    assert step_s(rate * more) <= step_s(rate) * (1 + 1e-9)


def test_a_design_states_what_was_measured():
    design = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm", "devices": 64},
        "job": {"seq_len": 8192, "global_batch": 128},
        "plan": {"tp": 1, "pp": 1, "micro_batch": 1, "sharding": "zero1"},
    }
    usual = assess(Design.from_data(design)).step_s
    design["cluster"]["measured"] = {"all_reduce_gbytes_per_s": 20}
    assert assess(Design.from_data(design)).step_s > 1.3 * usual


# -- attention


def test_wide_heads_and_balanced_rings_on_a_torus():
    """MaxText's long contexts on Ironwood (heads of 256): a device does over half of its peak in
    attention where heads of 128 do a quarter; a ring dealt out evenly waits for nothing."""
    shape = dict(GQA, heads=16, kv_heads=4, head_dim=256)
    job = {"seq_len": 65536.0, "global_batch": 64.0}
    torus = replace(case().chip, is_tpu=1.0, wave_outputs=0.0)
    wide, narrow = (
        step_time(case(make_shape(**s), job, chip=torus, dp=64)).attention for s in (shape, GQA)
    )
    assert narrow / wide == pytest.approx(2.0, rel=0.05)
    plain, balanced = (
        step_time(case(LLAMA, job, software={"balanced_ring": on}, cp=16, dp=4)).attention
        for on in (0.0, 1.0)
    )
    assert balanced < 0.75 * plain


GQA = dict(
    layers=32,
    hidden=4096,
    ffn_hidden=14336,
    heads=32,
    kv_heads=8,
    head_dim=128,
    vocab=128256,
    mlp="swiglu",
    attention="gqa",
)


def test_a_node_of_fewer_devices_is_a_smaller_domain():
    """One superchip a node (a course on GH200): its gathers cross the network."""
    row = dict(accelerator="gh200-96", n_devices=2, tp=1, sharding="zero3", global_batch_seqs=2)
    near = predicted(**row, devices_per_node=2).step_time_s
    assert predicted(**row, devices_per_node=1).step_time_s > 1.3 * near
    rack = dict(accelerator="gb200-nvl72", n_devices=8, tp=8, global_batch_seqs=64)
    assert predicted(**rack, devices_per_node=4).step_time_s == predicted(**rack).step_time_s


def test_links_of_one_device_need_no_network():
    link = Link(domain=1.0, up_bytes_per_s=450e9, out_bytes_per_s=50e9)
    same = measured_link(link, 1.0, NetworkMeasured(all_reduce=1e9, all_to_all=1e9))
    assert np.isnan(same.ring_reach) and same.up_bytes_per_s == link.up_bytes_per_s
