"""The roofline of a plan: under its roofs, summing to the step, at the intensities that papers and
datasheets give."""

from __future__ import annotations

import pytest
import scantling
from scantling.design.design import Design
from scantling.physics.roofline import roofline
from scantling_widgets.shipped_files import example

DESIGNS = (
    "llama-3.1-405b",
    "case-5-deepseek-v3",
    "mixtral-8x22b-128-h100",
    "gpt-3-175b-64-a100",
    "llama-3.1-8b-8-h100-fsdp",
    "bloom-176b-384-a100",
    "llama-3.1-405b-256-tpu-v7x",
    "llama-3.1-70b-64-mi300x",
    "nemotron-4-15b-1536-h100",
    "qwen3-235b-a22b-256-gb200",
    "nemotron-3-super-64-gb300",
)


@pytest.fixture(scope="module", params=DESIGNS)
def judged(request):
    assessment = scantling.assess(Design.read(example(request.param)))
    return assessment, roofline(assessment)


def test_no_kernel_is_above_its_roof(judged):
    for kernel in judged[1].kernels:
        assert 0 < kernel.achieved_flops <= kernel.attainable_flops * (1 + 1e-9), kernel.kernel
        assert kernel.attainable_flops <= kernel.peak_flops


def test_kernels_take_what_the_step_gives_them(judged):
    assessment, roof = judged
    parts = assessment.step_breakdown_s
    computing = sum(
        parts[name] for name in ("gemm", "attention", "elementwise", "logits", "optimizer")
    )
    seconds = sum(k.seconds for k in roof.kernels)
    assert (
        computing * (1 - 1e-9) <= seconds <= computing + parts["recompute"] + 1e-9
    )  # a repeated forward also launches kernels
    assert seconds / assessment.step_s == pytest.approx(sum(k.share for k in roof.kernels))


def test_memory_bound_is_left_of_the_ridge(judged):
    roof = judged[1]
    for kernel in roof.kernels:
        assert (kernel.bound == "memory") == (
            kernel.intensity < kernel.peak_flops / roof.hbm_bytes_per_s
        )
    assert {k.kernel for k in roof.kernels if k.bound == "memory"} >= {"elementwise"}


def test_executed_flop_are_those_of_the_model(judged):
    """Against 6 N of PaLM's count, which knows no kernels: attention aside, what runs is what the
    shape asks for, plus recompute."""
    assessment, roof = judged
    c, figures = assessment.chosen.case, assessment.headline()
    m, layers = (
        figures["plan"]["grad_accum"],
        max(assessment.as_dict(advice=False)["layers_by_stage"]),
    )
    linear = sum(
        k.flops
        for k in roof.kernels
        if k.kernel in ("projections", "mlp", "experts", "shared_experts")
    )
    tokens = (
        figures["plan"]["micro_batch"] * assessment.chosen.phase.seq_len / figures["plan"]["cp"] * m
    )
    params = assessment.resolved.params
    active = params.active - params.embedding - params.lm_head
    counted = 6 * active * tokens / figures["plan"]["tp"] * layers / float(c.shape.layers)
    most = 1.35 if figures["plan"]["recompute"] == "none" else 1.35 * 4 / 3
    assert counted * 0.9 < linear < counted * most


def test_axes_stand_under_the_link_that_carries_them(judged):
    roof = judged[1]
    rate = {"scale-up": roof.scale_up_bytes_per_s, "scale-out": roof.scale_out_bytes_per_s}
    for axis in roof.axes:
        assert axis.attainable_flops == pytest.approx(
            min(roof.peak_flops, axis.intensity * rate[axis.tier])
        )
        assert axis.exposed_s <= axis.time_s * (1 + 1e-9)


def test_the_ridge_of_an_h100_is_that_of_its_datasheet():
    """989.4 TFLOP/s dense bf16 over 3.35 TB/s: 295 FLOP a byte (NVIDIA H100 datasheet, SXM5)."""
    roof = roofline(scantling.assess(Design.read(example())))
    assert roof.ridge == pytest.approx(989.4e12 / 3.35e12, rel=0.01)


def test_a_larger_micro_batch_raises_the_intensity_of_matrix_products_and_leaves_the_optimizer():
    design = Design.read(example("gpt-3-175b-64-a100"))
    small, large = (
        roofline(scantling.assess(design.change({"plan.micro_batch": b, "plan.recompute": "full"})))
        for b in (1, 2)
    )
    of = lambda roof, name: next(k.intensity for k in roof.kernels if k.kernel == name)
    assert of(large, "mlp") > of(small, "mlp")
    assert of(large, "optimizer") == pytest.approx(of(small, "optimizer"))


def test_an_impossible_design_has_none():
    assert roofline(scantling.assess(Design.read(example("case-2-1t-dense-8-v100")))) is None


def test_it_is_plain_data():
    import json

    roof = roofline(scantling.assess(Design.read(example()))).as_dict()
    assert json.loads(json.dumps(roof))["kernels"][0]["kernel"] == "projections"


def test_attention_is_counted_as_flash_attention_counts_it():
    """FlashAttention-2, section 4.1: 4 s^2 d heads forward, half of it where causal, 2.5 times as
    much backward; Llama 3 405B has 128 heads of 128."""
    design = Design.read(example("llama-3.1-405b")).change({"plan.recompute": "none"})
    assessment = scantling.assess(design)
    roof, plan = roofline(assessment), assessment.plan
    (kernel,) = (k for k in roof.kernels if k.kernel == "attention")
    layers = max(assessment.as_dict(advice=False)["layers_by_stage"])
    forward = 4 * 8192**2 / 2 * 128 * 128 / (plan["tp"] * plan["cp"])
    assert kernel.flops == pytest.approx(3.5 * forward * plan["grad_accum"] * layers)
    assert roof.as_dict()["hbm_bytes_per_s"] == roof.hbm_bytes_per_s == 3.35e12


def test_a_hybrid_says_what_its_scans_take_beside_its_attention():
    """Dao & Gu 2024, section 9.3: a scan's share falls with the sequence, where attention is
    quadratic; FLOP of Nemotron 3 Super's scan by its formula, 40 of 88 layers, 128 heads of 64,
    state 128, 8 groups, chunks of 128."""

    def shares(seq_len):
        assessment = scantling.assess(
            {
                "model": "nemotron-3-super-120b-a12b",
                "cluster": {"accelerator": "gb300-nvl72", "devices": 256},
                "job": {"tokens": 1e11, "seq_len": seq_len, "global_batch": 16777216 // seq_len},
                "plan": {"pp": 1, "recompute": "none"},
            }
        )
        return assessment, {k.kernel: k for k in roofline(assessment).kernels}

    (near, short), (_, far) = shares(8192), shares(1048576)
    assert short["scan"].share > 5 * short["attention"].share
    assert far["attention"].share > 5 * far["scan"].share
    inner = 128 * 64
    forward = 2 * 128 * (8 * 128 + inner) + 4 * inner * 128
    tokens = 16777216 / 256
    held = near.resolved.main_phase.global_batch * 8192 / 256
    assert held == tokens
    layers = 40 * (1 + 4 / 88)  # two passes of MTP take the time of four layers
    assert short["scan"].flops == pytest.approx(4 * forward * layers * tokens, rel=0.05)
