"""The kinds of blocks: counts by hand, columns of models, and a kind that nobody has named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scantling import blocks
from scantling.base.records import record
from scantling.blocks import KINDS, Block, Gemm, Saved, Time
from scantling.catalogue.models.entries import models
from scantling.catalogue.models.shape import flops_per_token, make_shape, parameters, shape_of
from scantling.physics import compute
from scantling.physics.cases import Cases, Chip, Job, Plan
from scantling.physics.constants import gather
from scantling.physics.memory.peak import memory, saved_bytes
from scantling.physics.software import USUAL
from scantling.physics.step import step_time
from scantling.physics.wires import Link

ANSWERS = ("parameters", "flops", "kernel_s", "saved_bytes", "exchanges")
SIZES = dict(
    layers=8, hidden=2048, ffn_hidden=8192, heads=16, kv_heads=16, head_dim=128, vocab=32000
)
GPT = dict(**SIZES, mlp="gelu", attention="mha")


def case(shape, **plan):
    return Cases(
        shape=shape,
        job=Job(seq_len=4096.0, global_batch=64.0, precision=0),
        chip=Chip(
            linear_flops=989e12,
            bf16_flops=989e12,
            hbm_bytes_per_s=3.35e12,
            usable_bytes=79e9,
            host_bytes_per_s=55e9,
            newer_flash=1.0,
        ),
        link=Link(
            domain=8,
            up_bytes_per_s=450e9,
            out_bytes_per_s=50e9,
            pod_devices=1e9,
            oversubscription=1.0,
        ),
        plan=Plan(**plan),
        software=USUAL,
        constants=gather("hopper", "h100-sxm", "megatron-core"),
    )


def test_every_kind_is_one_file_and_answers_all_questions():
    files = {kind.__module__.rpartition(".")[2] for kind in KINDS.values()}
    here = {path.stem for path in Path(blocks.__file__).parent.glob("*.py")}
    shared = {
        "__init__",
        "answers",
        "block",
        "block_table",
        "kernels",
        "saved_tensors",
        "mixer",
        "recurrent",
    }
    assert files == here - shared
    for name, kind in KINDS.items():
        assert kind.kind == name and issubclass(kind, Block)
        assert all(callable(getattr(kind, answer)) for answer in ANSWERS)


def test_every_model_is_counts_of_kinds():
    for model in models().values():
        shape = shape_of(model)
        assert {b.kind for b in shape.blocks} <= KINDS.keys()
        assert shape.count("mixer") == shape.count("feed") == model.layers
        sliding = sum(map(shape.count, ("window", "window-mla", "chunk")))
        assert sliding == model.windowed_layers
        assert (shape.moe_layers, shape.mtp_layers) == (model.moe_layers, model.mtp_layers)


def test_a_windowed_layer_has_the_weights_of_its_kind_and_a_core_of_fewer_keys():
    """4,096 tokens, a window of 1,024: w - w^2 / 2s = 896 keys of the causal 2,048."""
    shape = make_shape(**GPT, window=1024, windowed_layers=4)
    (plain,), (window,) = shape.of("attention"), shape.of("window")
    assert window.parameters() == plain.parameters()
    assert (plain.keys_seen(4096), window.keys_seen(4096)) == (2048, 896)
    on = compute.device(case(shape))
    launch = on.constants.gemm_launch_s
    ratio = (window.core_s(on)[0] - launch) / (plain.core_s(on)[0] - launch)
    assert ratio == pytest.approx(896 / 2048)
    assert compute.keys_seen(case(shape)) == (2048 + 896) / 2


def test_a_column_of_models_of_different_kinds_is_each_model():
    some = [
        models()[name] for name in ("gpt-3-175b", "mixtral-8x22b", "deepseek-v3", "gpt-oss-120b")
    ]
    names = [f for f in some[0].__dataclass_fields__ if f not in ("name", "source", "seq_len")]
    together = make_shape(**{f: np.array([getattr(m, f) for m in some]) for f in names})
    plan = dict(tp=2, pp=2, dp=8, ep=4)
    step, held = step_time(case(together, **plan)), memory(case(together, **plan))
    for i, model in enumerate(some):
        one = case(shape_of(model), **plan)
        assert step.total[i] == pytest.approx(float(step_time(one).total))
        assert held.total[i] == pytest.approx(float(memory(one).total))


@record
class ShortConvolution(Block):
    """LFM2: h x 3h in, h x h out and k taps a channel; no scores, nothing sent over cp."""

    kind = "shortconv"
    place = "mixer"
    taps: int = 3

    def parameters(self):
        return {"other": 4 * self.hidden**2 + self.taps * self.hidden, "norms": 2 * self.hidden}

    def flops(self, seq_len):
        return {"attention_linear": 24 * self.hidden**2}

    def gemms(self, on):
        t, h, tp = on.tokens, self.hidden, on.plan.tp
        elements = t * (2 * h + 4 * h / tp) + 4 * h * h / tp
        return (Gemm("projections", 8 * t * h * h / tp, elements, 2.0),)

    def kernel_s(self, on):
        return Time(gemm=sum(on.gemm_s(product) for product in self.gemms(on)))

    def saved_bytes(self, keep):
        stream = self.hidden * keep.wide
        return Saved(outer=4.0 * stream, outer_selective=4.0 * stream, inner=10.0 * stream)


def test_a_new_kind_goes_through_parameters_time_and_memory_unnamed():
    """Half of the layers mix by another kind: nothing but its own record knows of it."""
    plain = make_shape(**GPT)
    blocks = [replace(b, count=4) if b.place == "mixer" else b for b in plain.blocks]
    hybrid = replace(plain, blocks=(*blocks, ShortConvolution(count=4, hidden=2048)))
    n, m = parameters(plain), parameters(hybrid)
    assert n.total - m.total == 4 * (4 * 2048**2 - 4 * 2048**2 - 3 * 2048)
    assert m.attention == n.attention / 2
    scores = flops_per_token(hybrid, 4096).attention_scores
    assert scores == flops_per_token(plain, 4096).attention_scores / 2
    plan = dict(tp=2, pp=2, dp=4)
    a, b = (step_time(case(shape, **plan)) for shape in (plain, hybrid))
    assert float(b.attention) == pytest.approx(float(a.attention) / 2)
    assert b.total < a.total
    # attention keeps q, k, v and its output, 8h a token, and 4 bytes a head; this one keeps 10h
    a, b = (float(saved_bytes(case(shape, **plan))[0]) for shape in (plain, hybrid))
    assert b - a == pytest.approx(4096 * (10 * 2048 - 8 * 2048 - 4 * 16) / 2 / 2)
    assert memory(case(hybrid, **plan)).activations > memory(case(plain, **plan)).activations


def test_a_scan_takes_what_its_kernels_were_measured_at():
    """Dao & Gu 2024, Figure 10: 51 ns a token forward at width 4,096 and state 64 on A100, half to
    twice; chunk scans on H100 run between 28 and 197 TFLOP/s (TileLang's users, PipeThreader)."""
    sizes = dict(heads=64, head_dim=64, groups=1, norms=0, conv=4, chunk=256, hidden=2048, count=1)
    narrow, wide = (KINDS["mamba2"](**sizes, state_size=n) for n in (64, 128))
    c = case(make_shape(**GPT), micro_batch=1)
    a100 = replace(c.chip, bf16_flops=312e12, hbm_bytes_per_s=2.0e12)
    on = compute.device(replace(c, chip=a100, constants=gather("ampere", "a100-80gb-sxm", "")))
    assert 25e-9 < narrow.kernel_s(on).attention / on.tokens < 102e-9  # half to twice
    h100 = compute.device(c)
    products = wide.scan_flops() * h100.tokens / wide.kernel_s(h100).attention
    assert 28e12 < products < 197e12
    faster = replace(h100, bytes_per_s=2 * h100.bytes_per_s)
    assert wide.kernel_s(faster).attention < wide.kernel_s(h100).attention


def test_a_core_that_gathers_its_keys_is_slower_than_one_over_all():
    """flash-attention, pull request 2621, on Blackwell: sparse MLA 1,180 TFLOP/s forward and 820
    backward, dense causal attention 1,834 and 1,095."""

    class Whole(KINDS["mla_dsa"]):
        gathered = False

    sizes = dict(count=1, hidden=7168, heads=128, norms=0, q_lora=1536, kv_lora=512)
    sizes |= dict(qk_nope=128, qk_rope=64, v_head_dim=128)
    sizes |= dict(index_heads=64, index_dim=128, index_topk=2048)
    on = replace(compute.device(case(make_shape(**GPT), micro_batch=64)), seq_len=32768)
    sparse, dense = (kind(**sizes).core_s(on) for kind in (KINDS["mla_dsa"], Whole))
    rates = [b / a for a, b in zip(sparse, dense, strict=True)]
    assert rates == pytest.approx([1180 / 1834, 820 / 1095], rel=0.01)


def test_copies_of_the_stream_move_what_fused_kernels_move():
    """mHC (arXiv 2512.24880), Table 2 and section 4.3.1: of four streams of C values a sub-layer
    reads 4 C for its mappings, 4 C for its input, 4 C + C to merge, and writes C and 4 C."""
    on = compute.device(case(make_shape(**GPT), micro_batch=1))
    wide, one = (KINDS["stream"](count=1, hidden=2048, copies=n) for n in (4, 1))
    moved = wide.kernel_s(on).elementwise / (on.chain_s * on.tokens)
    assert moved == 2 * 2 * 2048 * ((4 + 4 + 5) + (1 + 4))
    assert one.kernel_s(on).elementwise == 0


def test_passes_of_prediction_stand_for_layers_by_their_blocks():
    """Nemotron 3 Super: one module of attention and experts, two of 88 layers, run for two depths;
    DeepSeek-V3: a layer."""
    passes = {n: shape_of(models()[n]) for n in ("nemotron-3-super-120b-a12b", "deepseek-v3")}
    assert [s.mtp_layers for s in passes.values()] == [1, 1]
    assert [s.mtp_passes for s in passes.values()] == [2, 1]
    assert [s.mtp_depth for s in passes.values()] == [4, 1]


def test_what_deepseek_v3_repeats_is_a_share_of_its_layer():
    """DeepSeek-V3 (arXiv 2412.19437, section 3.2.3) repeats RMSNorm and the up-projections of MLA;
    weights by its config.json: ranks 1,536 and 512, 128 heads of 128 + 64 and 128, 8 + 1 of 256
    experts of 2,048, three dense layers of 18,432."""
    hidden, heads = 7168, 128
    ups = 1536 * heads * (128 + 64) + 512 * heads * (128 + 128)
    mla = ups + hidden * (1536 + 512 + 64) + heads * 128 * hidden
    experts = 3 * hidden * 2048 * 9 + hidden * 256
    layer = mla + (58 * experts + 3 * 3 * hidden * 18432) / 61
    shape = shape_of(models()["deepseek-v3"])

    def repeated(**switches):
        one = case(shape, recompute=1)
        return replace(one, software=replace(one.software, **switches)).recomputed

    none = dict(selective_attention=0.0, selective_norm=0.0)
    assert repeated(**none, selective_up=1.0).gemm == pytest.approx(ups / layer, rel=0.005)
    routed = repeated(**none, selective_moe=1.0).gemm
    assert routed == pytest.approx(58 / 61 * experts / layer, rel=0.005)
