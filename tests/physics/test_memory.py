"""Memory: other people's counts and formulas, the published peaks and failures, and what must hold
for every plan."""

from __future__ import annotations

import csv
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from closed_forms import saved_bytes_per_layer
from hypothesis import given, settings, strategies as st
from scantling import assess
from scantling.catalogue.models.shape import make_shape, parameters
from scantling.catalogue.words import OFFLOADS, PRECISIONS, RECOMPUTES, SHARDINGS
from scantling.physics.cases import HOST_ALL, ZERO2, ZERO3, Cases, Chip, Job, Plan, code
from scantling.physics.constants import gather
from scantling.physics.memory import constants as memory_constants
from scantling.physics.memory.peak import (
    PARTS,
    STAGES,
    ZONES,
    memory,
    memory_by_stage,
    saved_bytes,
    zone,
)
from scantling.physics.pipeline import SCHEDULE_NAMES, schedule_code
from scantling.physics.software import USUAL
from scantling.physics.wires import Link
from scantling.runs.read import read_runs
from scantling.runs.to_cases import to_runs
from validation.memory_fit import fit, predict, read, score

GIB = 2.0**30
HERE = Path(__file__).parents[1] / "published" / "memory"
SHIPPED = files("scantling.catalogue") / "published_memory.csv"
GRID = Path(__file__).parents[1] / "bench" / "data" / "nanotron_grid.csv"
PLAIN = memory_constants.gather("megatron-lm", {})  # priors alone: dropout on, nothing fitted
LLAMA = dict(
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
DEEPSEEK = dict(
    layers=61,
    hidden=7168,
    ffn_hidden=18432,
    heads=128,
    kv_heads=128,
    head_dim=128,
    vocab=129280,
    mlp="swiglu",
    attention="mla",
    experts=256,
    top_k=8,
    expert_ffn_hidden=2048,
    shared_ffn_hidden=2048,
    moe_layers=58,
    mtp_layers=1,
    q_lora=1536,
    kv_lora=512,
    qk_nope=128,
    qk_rope=64,
    v_head_dim=128,
)


def gpt(layers, hidden, heads):
    return make_shape(
        layers=layers,
        hidden=hidden,
        ffn_hidden=4 * hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        vocab=51200,
        mlp="gelu",
        attention="mha",
        tied_embeddings=True,
    )


def cases(shape, plan=None, job=None, software=None, constants=None):
    job = {
        "seq_len": 2048,
        "global_batch": 4096,
        "precision": code(PRECISIONS, "bf16"),
        **(job or {}),
    }
    made = replace(
        gather("hopper", "h100-sxm", None, {}), memory=constants or memory_constants.GENERIC
    )
    return Cases(
        shape=shape,
        job=Job(**job),
        chip=Chip(
            linear_flops=989e12,
            bf16_flops=989e12,
            hbm_bytes_per_s=3.35e12,
            usable_bytes=85e9,
            host_bytes_per_s=55e9,
        ),
        link=Link(domain=8, up_bytes_per_s=450e9, out_bytes_per_s=50e9),
        plan=Plan(**(plan or {})),
        software=replace(USUAL, **(software or {})),
        constants=made,
    )


# -- other people's counts
# ------------------------------------------------------------

KORTHIKANTI = {
    "22B": (48, 6144, 64, 4),
    "175B": (96, 12288, 96, 1),
    "530B": (105, 20480, 128, 1),
    "1T": (128, 25600, 160, 1),
}


@pytest.mark.parametrize("name", KORTHIKANTI)
def test_activations_of_a_gpt_layer_are_those_of_korthikanti(name):
    """arXiv 2205.05198, equations 1, 2, 4 and table 2: sbh(34 + 5as/h); tensor parallel sbh(10 +
    24/t + 5as/ht); with sequence parallel all over t."""
    layers, h, a, b = KORTHIKANTI[name]
    s, t = 2048, 8
    shape = gpt(layers, h, a)

    def of(**plan):
        return saved_bytes(
            cases(shape, dict(micro_batch=b, **plan), software=dict(flash=0), constants=PLAIN)
        )[0]

    sbh = s * b * h
    assert of() == pytest.approx(sbh * (34 + 5 * a * s / h), rel=1e-12)
    assert of(tp=t) == pytest.approx(sbh * (10 + 24 / t + 5 * a * s / (h * t)), rel=1e-12)
    assert of(tp=t, sp=1) == pytest.approx(sbh / t * (34 + 5 * a * s / h), rel=1e-12)


@pytest.mark.parametrize(
    ("recompute", "per_layer"),
    [("none", 34 + 5 * 96 * 2048 / 12288), ("selective", 34), ("full", 2 * 8)],
)
def test_recompute_leaves_what_korthikanti_says(recompute, per_layer):
    """Table 2: selective leaves 34sbh/t, full 2sbh (here sharded with the sequence, so 2sbh/t);
    175B, tp 8, interleaved 1F1B of 3 chunks."""
    constants = replace(PLAIN, working=0.0)
    plan = dict(
        tp=8,
        pp=8,
        sp=1,
        vpp=3,
        schedule=schedule_code("interleaved"),
        recompute=code(RECOMPUTES, recompute),
    )
    c = cases(gpt(96, 12288, 96), plan, software=dict(flash=0), constants=constants)
    sbh_t = 2048 * 12288 / 8
    held = 12 * 8 * (1 + 7 / 24)  # section 4.2.3: L (1 + (p - 1)/(p v)) layers on the first stage
    expected = held * sbh_t * (2 if recompute == "full" else per_layer)
    repeated = (
        sbh_t
        * {"none": 0, "selective": 5 * 96 * 2048 / 12288, "full": 34 + 5 * 96 * 2048 / 12288 - 2}[
            recompute
        ]
    )
    assert memory_by_stage(c)[0]["activations"] == pytest.approx(expected + repeated, rel=1e-9)


def test_weights_and_optimizer_equal_megatron_lms_own_report():
    """Megatron-LM, theoretical_memory_usage.py for 175B at tp 8, pp 8: 46.9 GiB of weights and
    optimizer, 12.4 GiB of activations at vpp 3."""
    plan = dict(
        tp=8,
        pp=8,
        sp=1,
        vpp=3,
        schedule=schedule_code("interleaved"),
        recompute=code(RECOMPUTES, "selective"),
    )
    first = memory_by_stage(
        cases(
            gpt(96, 12288, 96), plan, software=dict(flash=0), constants=replace(PLAIN, working=0.0)
        )
    )[0]
    assert (first["weights"] + first["gradients"] + first["optimizer"]) / GIB == pytest.approx(
        46.9, abs=0.05
    )
    repeated = (
        2048 * 12288 / 8 * 5 * 96 * 2048 / 12288
    )  # the scores of the layer that repeats them, which the report leaves out
    assert (first["activations"] - repeated) / GIB == pytest.approx(12.4, abs=0.05)


@pytest.mark.parametrize(
    ("sharding", "gb"), [("none", 120.0), ("zero1", 31.4), ("zero2", 16.6), ("zero3", 1.9)]
)
def test_model_states_of_zero(sharding, gb):
    """Rajbhandari et al. 2020, arXiv 1910.02054, figure 1: 7.5B parameters, 64 ranks, K = 12,
    16-bit gradients."""
    shape = gpt(36, 4096, 32)
    m = memory(
        cases(shape, dict(dp=64, sharding=code(SHARDINGS, sharding)), job=dict(grad_bytes=2.0))
    )
    per_parameter = (m.weights + m.gradients + m.optimizer) / parameters(shape).total
    assert per_parameter * 7.5e9 / 1e9 == pytest.approx(gb, abs=0.051)


def test_llama_405b_fits_as_meta_ran_it():
    """Llama 3 Herd of Models, arXiv 2407.21783, table 4: 405B at tp 8, cp 1, pp 16, dp 128 ran on
    80 GB devices at 8,192 tokens, without recompute."""
    shape = make_shape(
        layers=126,
        hidden=16384,
        ffn_hidden=53248,
        heads=128,
        kv_heads=8,
        head_dim=128,
        vocab=128256,
        mlp="swiglu",
        attention="gqa",
    )
    plan = dict(tp=8, pp=16, dp=128, sp=1, sharding=code(SHARDINGS, "zero2"))
    job = dict(seq_len=8192, global_batch=2048)
    assert memory(cases(shape, plan, job, constants=memory_constants.gather("meta-4d"))).fits
    assert not memory(
        cases(shape, plan | dict(pp=1, dp=2048), job, constants=memory_constants.gather("meta-4d"))
    ).fits  # 2 bytes x 405B / 8 alone exceed 80 GB


def test_deepseek_v3_fits_as_it_was_trained():
    """arXiv 2412.19437, sections 3.2 and 3.3: pp 16, ep 64, ZeRO-1, DualPipe on 80 GB devices
    without tensor parallelism; norms, up-projections and
    SwiGLU repeated, bf16 moments, fp32 master and gradients, fp8 linear layers."""
    plan = dict(
        pp=16,
        dp=128,
        ep=64,
        schedule=schedule_code("dualpipe"),
        sharding=code(SHARDINGS, "zero1"),
        recompute=code(RECOMPUTES, "selective"),
    )
    job = dict(
        seq_len=4096, global_batch=15360, precision=code(PRECISIONS, "fp8"), optimizer_bytes=4.0
    )
    c = cases(
        make_shape(**DEEPSEEK),
        plan,
        job,
        dict(selective_norm=1.0, selective_act=1.0, selective_up=1.0, balanced_layout=1.0),
        memory_constants.gather("hai-llm"),
    )
    assert memory(c).fits
    assert not memory(replace(c, job=replace(c.job, precision=code(PRECISIONS, "fp32")))).fits


@pytest.mark.parametrize(
    ("precision", "copies"),
    [
        ("bf16", 0.0),
        ("fp8", 2.0),
        ("mxfp8", 2 * 33 / 32),
        ("mxfp4", 2 * 17 / 32),
        ("nvfp4", 2 * 9 / 16),
    ],
)
def test_low_precision_recipes_keep_both_layouts_of_a_weight(precision, copies):
    """Transformer Engine caches a weight row-wise and column-wise; OCP MX: one scale byte for 32
    values, NVFP4: one for 16."""
    shape = gpt(24, 2048, 16)
    m = memory(cases(shape, job=dict(precision=code(PRECISIONS, precision))))
    n = parameters(shape)
    assert m.weights == pytest.approx(2 * n.total + copies * (n.total - n.embedding), rel=1e-3)


# -- saved tensors as counted by hooks on the transformers library's blocks
# ------------------------------------------------------------


def _saved_rows():
    with open(HERE / "saved_tensors.csv", newline="") as handle:
        return list(csv.DictReader(handle))


def _shape_of(row, layers=2):
    return make_shape(
        layers=layers,
        vocab=1000,
        mlp=row["mlp"],
        parallel_block=row["kind"] == "gpt_neox",
        **{k: int(row[k]) for k in ("hidden", "ffn_hidden", "heads", "kv_heads", "head_dim")},
    )


def _key(row):
    return "-".join(
        row[k] for k in ("kind", "dtype", "attention", "batch", "seq_len", "checkpointed")
    )


EXACT = [
    r
    for r in _saved_rows()
    if r["kind"] in ("llama", "qwen3", "gpt2") and r["checkpointed"] == "no"
]


@pytest.mark.parametrize("row", EXACT, ids=_key)
def test_eager_blocks_keep_to_the_byte_what_hooks_counted(row):
    tokens = int(row["batch"]) * int(row["seq_len"])
    got = saved_bytes_per_layer(
        _shape_of(row),
        tokens,
        int(row["seq_len"]),
        2 if row["dtype"] == "bfloat16" else 4,
        "eager",
        row["attention"],
        row["kind"] == "qwen3",
    )
    assert got == int(row["bytes_per_layer"])


def test_the_worked_example_of_a_llama_block():
    """h 1024, f 2816, 16 heads, 4 kv heads of 64, bf16, flash: 44,104 bytes a token."""
    row = next(r for r in EXACT if _key(r) == "llama-bfloat16-flash-2-128-no")
    assert (
        saved_bytes_per_layer(_shape_of(row), 1, 128, 2, "eager")
        == 44104
        == int(row["bytes_per_layer"]) / 256
    )


@pytest.mark.parametrize("row", [r for r in _saved_rows() if r["checkpointed"] == "no"], ids=_key)
def test_fused_blocks_keep_less_than_any_eager_one(row):
    fused = saved_bytes_per_layer(
        _shape_of(row),
        int(row["batch"]) * int(row["seq_len"]),
        int(row["seq_len"]),
        2 if row["dtype"] == "bfloat16" else 4,
        "fused",
        row["attention"],
    )
    assert 0.4 * int(row["bytes_per_layer"]) < fused < int(row["bytes_per_layer"])


@pytest.mark.parametrize(
    "row",
    [r for r in _saved_rows() if r["checkpointed"] == "yes" and r["dtype"] == "bfloat16"],
    ids=_key,
)
def test_a_checkpointed_block_keeps_its_input(row):
    c = cases(
        _shape_of(row),
        dict(micro_batch=int(row["batch"]), recompute=code(RECOMPUTES, "full")),
        job=dict(seq_len=int(row["seq_len"])),
    )
    one, two = (memory(replace(c, shape=_shape_of(row, n))) for n in (2, 3))
    assert (two.activations - one.activations) / c.constants.memory.activation == pytest.approx(
        int(row["bytes_per_layer"])
    )


@given(
    heads=st.sampled_from([8, 16, 32]),
    kv=st.sampled_from([1, 2, 8]),
    f=st.integers(1, 40),
    mlp=st.sampled_from(["swiglu", "gelu"]),
    b=st.integers(1, 4),
)
@settings(max_examples=30, deadline=None)
def test_the_models_own_list_is_the_fused_one(heads, kv, f, mlp, b):
    shape = make_shape(
        layers=4,
        hidden=heads * 64,
        ffn_hidden=64 * f,
        heads=heads,
        kv_heads=kv,
        head_dim=64,
        vocab=1000,
        mlp=mlp,
    )
    assert saved_bytes(cases(shape, dict(micro_batch=b)))[0] == pytest.approx(
        saved_bytes_per_layer(shape, b * 2048, 2048)
    )


# -- what ran and what did not
# ------------------------------------------------------------


@pytest.fixture(scope="module")
def published():
    return read(SHIPPED)


def _check(found):
    assert found["median"] <= 0.07  # each family with weight one
    assert found["p90"] <= 0.2
    assert found["ran_called_fitting"] >= 0.95
    assert found["out_of_memory_called"] >= 0.92


def test_published_peaks_and_failures_with_the_constants_that_ship(published):
    found = score(published, *predict(published, memory_constants.calibration()["offsets"]))
    assert found["peaks"] > 150
    assert found["out_of_memory"] > 300
    _check(found)


@pytest.mark.slow
@pytest.mark.xfail(
    raises=AssertionError,
    reason="105 of 112 runs are called fitting, 93.75 % for 95: four of COLM's eager stack are "
    "5 to 20 % above the memory, three of IBM's 0.6 %",
)
def test_configurations_that_the_fit_has_not_seen(published):
    """One fold of five, refitted here: the data file's figures over all five are made the same
    way."""
    out = published.folds == 0
    found = score(published.take(out), *predict(published.take(out), fit(published.take(~out))))
    _check(found)


def test_a_stack_that_the_fit_has_not_seen(published):
    """COLM's eager stack is the only one with hundreds of failures; without it, four of five are
    still called."""
    out = published.stacks == "aleph-alpha-scaling"
    found = score(published.take(out), *predict(published.take(out), fit(published.take(~out))))
    assert found["out_of_memory_called"] >= 0.80
    assert found["ran_called_fitting"] >= 0.92


@pytest.mark.parametrize(
    ("source", "share"),
    [
        ("MPT Training Benchmarks", 0.97),
        ("MaxText high performance configs, TPU v5e", 0.97),
        ("MaxText high performance configs, TPU v5p", 0.97),
        ("vTrain", 0.95),
    ],
)
def test_runs_of_sources_without_a_memory_figure_are_called_fitting(source, share):
    """They ran: llm-foundry on A100 40 and 80 GB and H100 with its micro-batches as large as they
    go, MaxText on 16 and 95 GB TPUs, vTrain's Megatron rows.

    None of them is in the fit.
    """
    frame = read_runs(HERE / "ran.csv")
    runs = to_runs(frame[frame.source.str.startswith(source)])
    assert len(runs.cases) >= 10
    m = memory(runs.cases)
    assert np.mean(m.fits) >= share
    assert (
        np.max(m.total / m.capacity) > 0.75
    )  # and not because everything is called fitting: some fill the device


@pytest.mark.parametrize(
    ("source", "median"),
    [
        ("torchtitan Llama 3.1", 0.05),  # an eager loss in fp32
        ("torchao", 0.1),  # a compiled one
        ("ml-engineering", 0.05),  # DeepSpeed
        ("Zero Bubble", 0.05),
        ("SimuMax", 0.05),
        ("BigScience tr11-176B prequel", 0.07),
        ("KempnerForge", 0.1),
        ("InternEvo", 0.11),
        ("Sailor", 0.07),
    ],
)
def test_peaks_by_what_the_code_of_a_stack_does_with_nothing_fitted(published, source, median):
    """The priors and the facts of catalogue/stacks alone: no offset has seen any peak."""
    rows = published.take(np.char.startswith(published.sources, source))
    assert score(rows, *predict(rows, {}))["median"] <= median


def test_the_grid_of_nanotron_with_nothing_fitted():
    """2,917 configurations of one public grid, 1,272 that ran and 1,645 that ran out of memory: no
    offset has seen any of them. Peaks are reserved bytes of the allocator."""
    frame = read_runs(GRID)
    runs = to_runs(frame)
    frame = frame[runs.ready]  # four have more stages than layers
    bare = memory_constants.gather(runs.stacks, {})
    held = memory(replace(runs.cases, constants=replace(runs.cases.constants, memory=bare)))
    ran = frame.outcome.eq("ran").to_numpy()
    assert (runs.ready.size, len(ran)) == (2917, 2913) and ran.sum() >= 1268
    peak = (frame.measured_peak_memory_gb * frame.peak_unit.fillna(1)).to_numpy(float) * 1e9
    assert np.nanmedian(np.abs(held.total / peak - 1)) <= 0.15
    assert held.fits[ran].mean() >= 0.99 and (~held.fits[~ran]).mean() >= 0.92


def _under_zero3(stack: str, micro_batches: int = 1, plan=None, **job):
    """A Llama 3 8B on 8 devices under ZeRO-3, 4 sequences of 4,096 a micro-batch, full recompute;
    nothing fitted."""
    plan = dict(dp=8, micro_batch=4, sharding=3, recompute=2) | (plan or {})
    batch = plan["dp"] * 4 * micro_batches
    return memory(
        cases(
            make_shape(**LLAMA),
            plan,
            dict(seq_len=4096, global_batch=batch) | job,
            constants=memory_constants.gather(stack, {}),
        )
    )


def test_gradients_that_are_not_there_leave_room_for_logits():
    """One micro-batch a step and gradients that are None before it: Llama 3 8B of fms-acceleration
    on four A100 takes 47.6 GB with 4 sequences and 69.0 with 8. Beside what grows with them 26.2 GB
    are left: weights and moments in fp32, two layers and the embedding gathered in 16 bit, and no
    gradients, of 8 GB."""
    one = _under_zero3("hf-trainer")
    held = parameters(make_shape(**LLAMA)).total / 8
    assert one.gradients == pytest.approx(4 * held, rel=1e-5)
    assert one.total < _under_zero3("deepspeed").total


def test_gradients_without_exchange_are_whole_in_the_format_that_computes():
    """Accelerate 1.15.0, `set_mixed_precision`: reduce_dtype is param_dtype, and `fully_shard`
    casts a gradient that waits for its exchange to reduce_dtype alone: 16 bit for each of all
    parameters while micro-batches add up, 4 bytes under fp32. Micro-batches that are exchanged one
    by one leave the fp32 shards."""
    total = parameters(make_shape(**LLAMA)).total
    summed, wide = (
        _under_zero3("hf-trainer", 2, precision=PRECISIONS.index(name)) for name in ("bf16", "fp32")
    )
    assert summed.gradients == pytest.approx(2 * total, rel=1e-5)
    assert wide.gradients == pytest.approx(4 * total, rel=1e-5)
    assert _under_zero3("pytorch-fsdp", 2).gradients == pytest.approx(4 * total / 8, rel=1e-5)


def test_gradients_without_exchange_stay_on_the_device_beside_offloaded_weights():
    """PyTorch's FSDP moves a gradient to the host when it is reduced (`CPUOffload`,
    `CPUOffloadPolicy`): under no_sync that is after the last micro-batch."""
    total = parameters(make_shape(**LLAMA)).total
    away = dict(offload=HOST_ALL)
    assert _under_zero3("hf-trainer", 1, away).gradients == 0
    assert _under_zero3("hf-trainer", 2, away).gradients == pytest.approx(2 * total, rel=1e-5)


def test_zero3_of_deepspeed_steps_over_a_sub_group_at_a_time():
    """DeepSpeed, runtime/zero/stage3.py: `_create_fp16_sub_groups` cuts what a device holds into
    groups of sub_group_size (1e9) parameters, `_prepare_fp32_grad_for_sub_group` widens the
    gradients of one, and `_release_sub_group` drops them before the next: 4e9 bytes, however many
    parameters a device holds. ZeRO-2 (stage_1_and_2.py) has one group of all that it owns."""
    held = parameters(make_shape(**LLAMA)).total / 2
    assert held > 3e9
    small = dict(dp=2, micro_batch=1)
    two, three = (
        _under_zero3("deepspeed", 1, small | dict(sharding=kind), seq_len=128, grad_bytes=2.0)
        for kind in (ZERO2, ZERO3)
    )
    step = lambda m: m.gathered + m.activations  # noqa: E731
    assert step(two) == pytest.approx(4 * held, rel=0.01)
    assert 4e9 <= step(three) < 1.5 * 4e9


def test_a_release_of_torchtitan_keeps_the_logits_of_its_day():
    """torchtitan's logs of Llama 3 8B on eight H100 (seq 8,192, selective recompute, no compile)
    print 49.66 GiB in June 2025 (pull request 1287). components/loss.py: eager until 2 April 2025,
    compiled with the blocks from then on (1033), in eighths of the sequence since 27 April 2026
    (2937). An eager cross entropy holds 14 bytes a logit, a compiled one 4."""

    def held(release, compiled):
        plan = {"tp": 1, "pp": 1, "cp": 1, "sharding": "zero3", "micro_batch": 1}
        return assess(
            {
                "model": "llama-3-8b",
                "cluster": {"accelerator": "h100-sxm", "devices": 8},
                "job": {"tokens": 1e9, "seq_len": 8192, "global_batch": 8, "precision": "bf16"},
                "plan": plan | {"recompute": "selective", "offload": "none", "compile": compiled},
                "stack": {"id": "torchtitan", "release": release},
            }
        ).chosen.memory

    logits = 8192 * 128256
    printed = {"25.03": (14, 14), "25.06": (4, 14), "26.08": (1.75, 1.75)}
    for release, sizes in printed.items():
        for compiled, size in zip((True, False), sizes):
            assert held(release, compiled).logits == pytest.approx(size * logits)
    assert held("25.06", False).total / GIB == pytest.approx(49.66, rel=0.03)


def test_gpt_neox_steps_as_the_engine_of_deepspeed_does():
    """GPT-NeoX: megatron/training.py calls deepspeed.initialize, as Megatron-DeepSpeed does; its
    configurations train without dropout. Its own run of 20B, on 96 A100 of 40 GB
    (configs/20B.yml), fits."""
    neox, deepspeed = (
        memory_constants.gather(name, {}) for name in ("gpt-neox", "megatron-deepspeed")
    )
    assert neox.step_parameters == deepspeed.step_parameters
    assert (neox.dropout, deepspeed.dropout) == (0, 1)
    own = assess(
        {
            "model": "gpt-neox-20b",
            "cluster": {"accelerator": "a100-40-sxm", "devices": 96},
            "job": {"tokens": 1e9, "seq_len": 2048, "global_batch": 1536, "precision": "fp16"},
            "plan": {"tp": 2, "pp": 4, "sharding": "zero1", "micro_batch": 4, "recompute": "full"},
            "stack": "gpt-neox",
        }
    )
    assert own.verdict == "feasible"


def test_kempnerforge_sums_whole_gradients_and_gathers_logits():
    """Its code: (2 + 4) bytes a parameter of weights and moments, shared by dp; 4 bytes a parameter
    of gradients, whole while micro-batches add to them; logits that every rank of tp holds."""
    shape = make_shape(**LLAMA)
    both = dict(tp=2, dp=4, sp=1)
    m = _under_zero3("kempnerforge", 4, both, master_bytes=0.0, optimizer_bytes=4.0)
    total = parameters(shape).total / 2
    assert m.weights + m.optimizer == pytest.approx((2 + 4) * total / 4, rel=1e-3)
    assert m.gradients == pytest.approx(4 * total, rel=1e-3)
    alone = _under_zero3("kempnerforge", 4)
    assert m.logits == pytest.approx(alone.logits, rel=1e-9)
    assert _under_zero3("torchtitan", 4, both).logits == pytest.approx(
        _under_zero3("torchtitan", 4).logits / 2, rel=1e-9
    )


def test_internevo_widens_all_gradients_and_copies_the_moments_for_a_step():
    """Its code: 16 bytes a parameter of states, and while AdamW of PyTorch before 2.1 steps fp32
    gradients, roots and denominators, 4 each: 28. InternLM 7B over tp 4 alone takes 52 GiB of an
    A800 under FSDP: 28 bytes for each of 1.83 B parameters, and 4.6 GB for all else."""
    m = _under_zero3("internevo", 4, dict(tp=4, dp=1, micro_batch=1), grad_bytes=2.0)
    held = parameters(make_shape(**LLAMA)).total / 4
    states = m.weights + m.gradients + m.optimizer
    assert states == pytest.approx(16 * held, rel=1e-5)
    assert states + m.activations + m.gathered == pytest.approx(28 * held, rel=1e-5)
    assert 52 * 2**30 - 28 * 7.322e9 / 4 == pytest.approx(4.6e9, rel=0.01)


@pytest.mark.parametrize(("half", "bytes_each"), [(1.0, 10), (0.0, 20)])
def test_the_optimizer_of_pytorch_steps_over_a_copy_of_its_second_moments(half, bytes_each):
    """fms-acceleration's references on A100: Mistral 7B in 16 bit on one device takes 72.4 GB, 10
    bytes for each of 7.24 B parameters; in fp32 on four 36.2 GB, 20 bytes for each that a device
    holds."""
    facts = dict(optimizer_bytes=8 - 4 * half, master_bytes=4 - 4 * half, grad_bytes=4 - 2 * half)
    m = _under_zero3("hf-trainer", **facts)
    held = parameters(make_shape(**LLAMA)).total / 8
    states = m.weights + m.gradients + m.optimizer
    assert states == pytest.approx((bytes_each - 2 * (2 - half)) * held, rel=1e-5)
    step = m.activations + m.gathered
    assert step >= 2 * (2 - half) * held * (1 - 1e-9)


def test_the_offsets_by_stack_are_of_stacks_with_published_peaks(published):
    for offsets in memory_constants.calibration()["offsets"].values():
        assert set(offsets["stack"]) <= {*published.stacks, "nanotron"}


def test_every_shipped_row_names_its_source():
    with SHIPPED.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert len({r["id"] for r in rows}) == len(rows)
    assert all(r["source"] and r["source_url"].startswith("http") and r["locator"] for r in rows)
    assert all((r["outcome"] == "ran") or not r["measured_peak_memory_gb"] for r in rows)


# -- what must hold for every plan
# ------------------------------------------------------------

SHAPES = [make_shape(**LLAMA), make_shape(**DEEPSEEK), gpt(24, 2048, 16)]


@st.composite
def any_plan(draw):
    shape = draw(st.sampled_from(SHAPES))
    powers = {"tp": 3, "cp": 2, "pp": 3, "dp": 6, "micro_batch": 2}
    plan = {name: 2 ** draw(st.integers(0, top)) for name, top in powers.items()}
    schedule = draw(st.sampled_from(SCHEDULE_NAMES)) if plan["pp"] > 1 else "1f1b"
    plan |= dict(
        schedule=schedule_code(schedule),
        vpp=2 if schedule == "interleaved" else 1,
        sp=draw(st.integers(0, 1)),
        sharding=draw(st.integers(0, len(SHARDINGS) - 1)),
        recompute=draw(st.integers(0, len(RECOMPUTES) - 1)),
        offload=draw(st.integers(0, len(OFFLOADS) - 1)),
    )
    plan["shard_group"] = min(8, plan["dp"] * plan["cp"])
    if np.any(shape.moe_layers):
        plan["ep"] = 2 ** draw(st.integers(0, 3))
        plan["dp"] = max(plan["dp"], plan["ep"])
    job = dict(
        precision=draw(st.integers(0, len(PRECISIONS) - 1)),
        grad_bytes=draw(st.sampled_from([2.0, 4.0])),
        global_batch=4096,
    )
    software = dict(
        flash=draw(st.sampled_from([0, 2])),
        fused_norm=draw(st.integers(0, 1)),
        chunked_loss=draw(st.integers(0, 1)),
        selective_gemm=draw(st.sampled_from([0, 0.45])),
        selective_norm=draw(st.sampled_from([0, 0.5])),
        selective_act=draw(st.sampled_from([0, 0.5])),
    )
    stack = draw(
        st.sampled_from(
            [None, "megatron-core", "torchtitan", "aleph-alpha-scaling", "megatron-deepspeed"]
        )
    )
    return cases(shape, plan, job, software, memory_constants.gather(stack))


@given(any_plan())
@settings(max_examples=150, deadline=None)
def test_parts_sum_to_the_total_and_none_is_negative(c):
    m = memory(c)
    values = [float(getattr(m, f.name)) for f in fields(m)]
    assert np.all(np.isfinite(values))
    assert min(values) >= 0
    assert m.total == pytest.approx(sum(float(getattr(m, part)) for part in PARTS))
    assert m.logits <= m.activations
    assert m.other == pytest.approx(m.gathered + m.buffers + m.framework + m.fragmentation)
    assert bool(m.fits) == (zone(m.total, m.capacity) < ZONES.index("over"))


@given(any_plan())
@settings(max_examples=150, deadline=None)
def test_the_fullest_of_all_stages_is_the_one_that_counts(c):
    stages, m = memory_by_stage(c), memory(c)
    assert len(stages) == c.plan.pp
    assert sum(s["layers"] for s in stages) == c.shape.layers
    fullest = max(stages, key=lambda s: s["total"])
    assert m.total == pytest.approx(
        fullest["total"], rel=0.05
    )  # a dense layer, or the half layer of a mirrored pair, moves it by less
    if c.plan.pp > 1 and fullest["stage"] in (0, c.plan.pp - 1):
        assert STAGES[int(m.stage)] in ("first", "last")


@pytest.mark.parametrize("schedule", ("1f1b", "dualpipe", "zb-1p"))
@pytest.mark.parametrize("pp", (4, 8, 16, 20, 30, 32, 60, 61))
def test_a_deep_pipeline_is_as_full_as_its_stages_behind_the_dense_layers(pp, schedule):
    """The three dense layers of DeepSeek-V3 are light: a stage behind them holds more than the
    second one as soon as stages are short."""
    shape = make_shape(**DEEPSEEK)
    plan = dict(pp=pp, dp=64, ep=16, sharding=1, schedule=schedule_code(schedule))
    for recompute in range(len(RECOMPUTES)):
        c = cases(shape, plan | {"recompute": recompute}, dict(global_batch=8192))
        fullest = max(stage["total"] for stage in memory_by_stage(c))
        assert memory(c).total == pytest.approx(fullest, rel=0.005)


def _columns(c, n):
    def widen(value):
        if isinstance(value, tuple):
            return tuple(widen(v) for v in value)
        if not hasattr(value, "__dataclass_fields__"):
            return np.full(n, value)
        return replace(value, **{f.name: widen(getattr(value, f.name)) for f in fields(value)})

    return widen(c)


@given(any_plan())
@settings(max_examples=80, deadline=None)
def test_a_column_of_one_case_is_the_case(c):
    one, many = memory(c), memory(_columns(c, 3))
    for f in fields(one):
        column = np.broadcast_to(getattr(many, f.name), 3)
        assert column == pytest.approx(np.full(3, float(getattr(one, f.name))), rel=1e-12), f.name
        assert np.ndim(getattr(one, f.name)) == 0


def _not_more(less, more):
    assert less.total <= more.total * (1 + 1e-9)


@given(any_plan())
@settings(max_examples=150, deadline=None)
def test_more_sharding_never_takes_more(c):
    order = [
        memory(c.with_plan(sharding=code(SHARDINGS, s)))
        for s in ("zero3", "zero2", "zero1", "none")
    ]
    for less, more in zip(order, order[1:]):
        _not_more(less, more)
    _not_more(
        memory(c.with_plan(sharding=code(SHARDINGS, "zero3"))),
        memory(c.with_plan(sharding=code(SHARDINGS, "hsdp"))),
    )


@given(any_plan())
@settings(max_examples=150, deadline=None)
def test_more_recompute_never_takes_more(c):
    order = [
        memory(c.with_plan(recompute=code(RECOMPUTES, r))) for r in ("full", "selective", "none")
    ]
    for less, more in zip(order, order[1:]):
        _not_more(less, more)


@given(any_plan())
@settings(max_examples=150, deadline=None)
def test_wider_groups_never_take_more(c):
    experts = (
        [dict(ep=2 * c.plan.ep)]
        if np.any(c.shape.moe_layers) and 2 * c.plan.ep <= c.plan.dp * c.plan.cp * c.plan.tp
        else []
    )
    for wider in (dict(tp=2 * c.plan.tp), dict(dp=2 * c.plan.dp, global_batch=2), *experts):
        job = replace(c.job, global_batch=c.job.global_batch * wider.pop("global_batch", 1))
        _not_more(memory(replace(c.with_plan(**wider), job=job)), memory(c))


@given(any_plan())
@settings(max_examples=100, deadline=None)
def test_a_split_sequence_takes_less_but_for_its_own_buffers(c):
    wider = memory(c.with_plan(cp=2 * c.plan.cp))
    assert wider.total - wider.buffers * (
        1 + wider.fragmentation / (wider.total - wider.fragmentation - wider.framework)
    ) <= memory(c).total * (1 + 1e-9)
    # device by device: with less of everything another one may be the fullest
    devices = zip(memory_by_stage(c.with_plan(cp=2 * c.plan.cp)), memory_by_stage(c), strict=True)
    assert all(half["activations"] <= whole["activations"] * (1 + 1e-9) for half, whole in devices)


@given(any_plan())
@settings(max_examples=100, deadline=None)
def test_what_is_offloaded_is_on_the_host(c):
    one = c.with_plan(
        pp=1, vpp=1, schedule=schedule_code("1f1b")
    )  # one stage: the fullest device stays the same one
    on, states, everything = (memory(one.with_plan(offload=o)) for o in range(len(OFFLOADS)))
    assert on.host == 0
    assert states.optimizer == everything.optimizer == 0
    assert everything.weights == 0
    assert 0 < states.host <= everything.host
    assert states.total <= on.total * (1 + 1e-9)


def test_dualpipe_holds_each_weight_twice():
    """DeepSeek-V3, arXiv 2412.19437, table 2: parameters 2x, activations of pp + 1
    micro-batches."""
    one, two = (
        memory(cases(SHAPES[2], dict(pp=8, schedule=schedule_code(s))))
        for s in ("1f1b", "dualpipe")
    )
    assert two.weights / one.weights == pytest.approx(
        2, rel=0.35
    )  # both ends hold embedding and head
    inner = [
        memory_by_stage(cases(SHAPES[2], dict(pp=8, schedule=schedule_code(s))))[3]
        for s in ("1f1b", "dualpipe")
    ]
    assert inner[1]["weights"] == 2 * inner[0]["weights"]


def test_zones_part_at_four_fifths():
    c = cases(SHAPES[2])
    total = float(memory(c).total)
    capacity = np.array([total / 0.79, total / 0.81, total / 0.99, total / 1.01])
    m = replace(memory(c), capacity=capacity)
    assert [ZONES[z] for z in zone(m.total, m.capacity)] == ["safe", "tight", "tight", "over"]


def test_one_case_at_a_time_by_stage():
    with pytest.raises(ValueError, match="one case"):
        memory_by_stage(_columns(cases(SHAPES[0]), 2))


@pytest.mark.parametrize(
    "wrong", [dict(kind="half-fused"), dict(attention="paged"), dict(dtype_bytes=1)]
)
def test_saved_bytes_names_what_it_does_not_know(wrong):
    with pytest.raises(ValueError, match="is none of"):
        saved_bytes_per_layer(SHAPES[0], 1, 1, **wrong)
