"""Step time against hand counts and papers' formulas, and the laws that hold for every plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scantling import assess
from scantling.catalogue import accelerators
from scantling.catalogue.models.shape import flops_per_token, make_shape
from scantling.catalogue.words import CP_TYPES, PRECISIONS, RECOMPUTES, SHARDINGS
from scantling.physics import compute, traffic
from scantling.physics.cases import TILE, Cases, Chip, Job, Plan, code, devices
from scantling.physics.constants import PRIORS, gather
from scantling.physics.pipeline import schedule_code
from scantling.physics.software import USUAL
from scantling.physics.step import (
    PARTS,
    cards_busy_s,
    hardware_share,
    layer_exchanges,
    layers_per_stage,
    overall,
    rates,
    step_time,
)
from scantling.physics.wires import Link
from scantling.verdict.numbers import tables

H100 = Chip(
    linear_flops=989e12,
    bf16_flops=989e12,
    hbm_bytes_per_s=3.35e12,
    usable_bytes=85e9,
    host_bytes_per_s=55e9,
    is_tpu=0.0,
    newer_flash=1.0,
    wave_outputs=132 * TILE,
)
NODE = Link(domain=8, up_bytes_per_s=450e9, out_bytes_per_s=50e9)
GPT3_175B = dict(
    layers=96,
    hidden=12288,
    ffn_hidden=4 * 12288,
    heads=96,
    kv_heads=96,
    head_dim=128,
    vocab=51200,
    mlp="gelu",
    attention="mha",
)
GPT3 = make_shape(**GPT3_175B)
MIXTRAL = dict(
    layers=32,
    hidden=4096,
    ffn_hidden=14336,
    heads=32,
    kv_heads=8,
    head_dim=128,
    vocab=32000,
    mlp="swiglu",
    attention="gqa",
    experts=8,
    top_k=2,
    expert_ffn_hidden=14336,
    moe_layers=32,
)
MOE = make_shape(**MIXTRAL)


def case(shape=GPT3, job=None, link=NODE, chip=H100, software=None, **plan):
    job = {
        "seq_len": 2048.0,
        "global_batch": 1536.0,
        "precision": code(PRECISIONS, "bf16"),
        **(job or {}),
    }
    return Cases(
        shape=shape,
        job=Job(**job),
        chip=chip,
        link=link,
        plan=Plan(**plan),
        software=replace(USUAL, **(software or {})),
        constants=gather("hopper", "h100-sxm", "megatron-core"),
    )


# -- counts by hand
# ------------------------------------------------------------


def test_linear_flops_of_a_gpt_layer_are_24_t_h_squared():
    """Narayanan et al. 2021, appendix: 24 B s h^2 a layer's products forward, 8 of them in
    attention's projections; over tp 8 an eighth each."""
    for tp in (1, 8):
        c = case(tp=tp)
        (attention,) = c.shape.of("mixer")
        (product,) = attention.gemms(compute.device(c, 2048.0))
        assert product.flops == pytest.approx(8 * 2048 * 12288**2 / tp)


@pytest.mark.parametrize(
    "name, layers, hidden, heads, batch, devices_, step_s, tflops",
    [
        ("175B", 96, 12288, 96, 64, 64, 13.75, 51.4 * 312 / 100),
        ("530B", 105, 20480, 128, 280, 280, 37.83, 56.0 * 312 / 100),
        ("1T", 128, 25600, 160, 512, 512, 71.49, 56.3 * 312 / 100),
    ],
)
def test_model_flops_are_those_that_korthikanti_divides_by(
    name, layers, hidden, heads, batch, devices_, step_s, tflops
):
    """arXiv 2205.05198, Table 5: the printed iteration times and MFU (of 312 TFLOP/s) imply the
    model FLOPs of appendix A, 72 B L s h^2 (1 + s/6h + v/12Lh)."""
    shape = make_shape(
        layers=layers,
        hidden=hidden,
        ffn_hidden=4 * hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        vocab=51200,
        mlp="gelu",
        attention="mha",
    )
    c = case(shape, dict(global_batch=float(batch)), dp=devices_)
    assert float(rates(c, step_s).flops_per_s) / 1e12 == pytest.approx(tflops, rel=0.01)
    formula = 72 * layers * hidden**2 * (1 + 2048 / (6 * hidden) + 51200 / (12 * layers * hidden))
    assert float(flops_per_token(shape, 2048.0).total) == pytest.approx(formula, rel=2e-3)


def test_full_recompute_is_four_thirds_of_the_layers():
    """Narayanan et al. 2021, equation 3, counts 96 B s L h^2 with activations recomputed against 72
    without; the output head is not recomputed."""
    f = flops_per_token(GPT3, 2048.0)
    assert float(hardware_share(case(recompute=code(RECOMPUTES, "full")))) == pytest.approx(
        1 + (f.total - f.lm_head) / 3 / f.total
    )


def test_tensor_parallel_sends_what_two_ring_all_reduces_a_layer_send():
    """Korthikanti, section 4.2.2: forward two all-reduces of t h 16-bit values; a ring all-reduce
    moves 2 (n-1)/n of the tensor (nccl-tests, PERFORMANCE.md)."""
    for tp in (2, 4, 8):
        assert float(traffic.tensor_parallel(case(tp=tp)).bytes) == pytest.approx(
            2 * 2 * (tp - 1) / tp * 2048 * 12288 * 2
        )


@pytest.mark.parametrize(
    "sp, recompute, passes", [(0, "none", 2), (0, "full", 3), (1, "none", 2.5)]
)
def test_bytes_shown_are_those_that_were_timed(sp, recompute, passes):
    """A recomputed forward sends its activations again (Korthikanti et al. 2022, section 5), and
    sequence parallelism gathers the inputs of a layer's two column-parallel products again (section
    4.2.2): ten collectives of equal volume, of which the forward has four. Time on the wire and
    bytes of the axis grow alike."""
    c = case(tp=8, sp=sp, recompute=code(RECOMPUTES, recompute))
    shown, once = step_time(c).axes["tp"], traffic.tensor_parallel(c)
    rounds = float(shown.bytes) / float(once.bytes)
    assert rounds == pytest.approx(passes * 96 * float(c.micro_batches))
    timed = float((shown.exposed_s + shown.hidden_s) / (once.wire_s * overall(c)))
    assert timed == pytest.approx(rounds)


@pytest.mark.parametrize("sp, forward, backward", [(0, 7.7, 11.9), (1, 7.2, 11.8)])
def test_a_layer_of_22b_takes_what_korthikanti_measured(sp, forward, backward):
    """Korthikanti et al. 2022, Table 4: one layer of 22 B, tp 8 on A100, micro-batch 4, in ms. The
    backward is 1.55 and 1.64 forwards, not two: Megatron-LM reduces the gradient of an input beside
    the product that gives the weights'. Its rows in the table of runs are tuned ones."""
    layer = dict(layers=48, hidden=6144, ffn_hidden=4 * 6144, heads=64, kv_heads=64, head_dim=96)
    ampere = replace(
        H100,
        linear_flops=312e12,
        bf16_flops=312e12,
        hbm_bytes_per_s=2.04e12,
        newer_flash=0.0,
        wave_outputs=108 * TILE,
    )
    c = case(
        make_shape(**GPT3_175B | layer),
        job=dict(global_batch=4.0),
        link=replace(NODE, up_bytes_per_s=300e9, out_bytes_per_s=25e9),
        chip=ampere,
        software={"async_reduce": 1.0, "flash": 0.0},
        tp=8,
        sp=sp,
        micro_batch=4,
    )
    c = replace(c, constants=gather("ampere", "a100-80-sxm", "megatron-core", tuned=1.0))
    step = step_time(c)
    both = sum(float(getattr(step, part)) for part in ("gemm", "attention", "elementwise", "tp"))
    assert both / 48 * 1e3 == pytest.approx(forward + backward, rel=0.08)


@pytest.mark.parametrize("sharding, volume", [("none", 2 * 4), ("zero1", 4 + 2), ("zero2", 4 + 2)])
def test_data_parallel_bytes_are_those_of_rajbhandari(sharding, volume):
    """arXiv 1910.02054, section 7: all-reduce moves twice the gradient, reduce-scatter and
    all-gather once each; fp32 gradients, 16-bit weights. One micro-batch a step."""
    n = 16
    one = case(GPT3, dict(global_batch=float(n)), dp=n, sharding=code(SHARDINGS, sharding))
    got = traffic.data_parallel(one, 1e9, 0.0)
    assert float(got.bytes) == pytest.approx(1e9 * volume * (n - 1) / n)


def test_zero2_scatters_the_gradients_of_every_micro_batch():
    """DeepSpeed's stage 2 and Megatron-FSDP's optim_grads keep a shard of the gradients alone, so
    each micro-batch sends its own; FSDP's no_sync keeps them whole."""
    n, m = 16, 8
    kept = [
        float(traffic.data_parallel(c, 1e9, 0.0).bytes)
        for c in (
            case(GPT3, dict(global_batch=float(n * m)), dp=n, sharding=code(SHARDINGS, sharding))
            for sharding in ("zero1", "zero2")
        )
    ]
    assert kept[1] - kept[0] == pytest.approx((m - 1) * 1e9 * 4 * (n - 1) / n)


def test_bubble_of_1f1b_is_that_of_narayanan():
    """Section 2.2.1: bubble / ideal = (p - 1) / m, interleaved (p - 1) / (v m); ends of equal
    weight, nothing exposed beside."""
    shape = make_shape(**{**GPT3_175B, "vocab": np.float64(0.0)})
    for vpp, m in ((1, 8), (1, 64), (3, 64)):
        s = step_time(
            case(
                shape,
                dict(global_batch=float(m)),
                pp=8,
                vpp=vpp,
                schedule=schedule_code("interleaved" if vpp > 1 else "1f1b"),
            )
        )
        ideal = (
            s.gemm
            + s.attention
            + s.elementwise
            + s.logits
            + s.recompute
            + s.tp
            + s.cp
            + s.ep
            + (s.host - gather("hopper", "h100-sxm", "megatron-core").step_host_s)
        )
        assert float(s.bubble / ideal) == pytest.approx(7 / (vpp * m), rel=0.08)


def test_a_mirrored_pipeline_shares_its_ends():
    """DeepSeek-V3, section 3.2.1: a DualPipe device holds a stage from either end, so loss and MTP
    weigh half on the slowest."""
    shape = make_shape(**GPT3_175B, mtp_layers=np.int64(1))
    plan = dict(pp=16, dp=4, micro_batch=1)
    one_way = step_time(case(shape, **plan, schedule=schedule_code("zb-1p")))
    two_way = step_time(case(shape, **plan, schedule=schedule_code("dualpipe")))
    assert float(two_way.logits) == pytest.approx(float(one_way.logits) / 2)
    assert two_way.gemm < one_way.gemm


def test_stages_of_deepseek_v3_are_those_of_nvidias_recipes():
    """Megatron-Bridge's pp_layout Et*4|(t*4|)*14tmL: embedding and four layers, fourteen times
    four, one with the MTP layer and the loss; on eight devices the last has 4 + 1. The three dense
    layers stand on the first (DeepSeek-V3, section 4.2): every later stage is MoE throughout. Llama
    4 Maverick's alternate."""
    deepseek = make_shape(
        layers=61,
        hidden=7168,
        ffn_hidden=18432,
        heads=128,
        kv_heads=128,
        head_dim=128,
        vocab=129280,
        mlp="swiglu",
        attention="mha",
        experts=256,
        top_k=8,
        expert_ffn_hidden=2048,
        shared_ffn_hidden=2048,
        moe_layers=58,
        mtp_layers=1,
    )
    layout = [4, *14 * [4], 1]
    assert sum(layout) == 61
    for pp in (16, 8):
        stages = np.add.reduceat(layout, np.arange(0, 16, 16 // pp))
        c = case(deepseek, software=dict(balanced_layout=1.0), pp=pp, dp=16)
        assert [int(x) for x in layers_per_stage(c)] == [stages[0], max(stages[1:-1]), stages[-1]]
        assert float(c.moe_share) == 1.0
    assert float(case(deepseek).moe_share) == pytest.approx(58 / 61)
    assert float(case(make_shape(**{**MIXTRAL, "moe_layers": 16}), pp=4, dp=8).moe_share) == 0.5


def test_a_dropped_or_forced_token_waits_for_no_other():
    """Rows of the fullest expert rank: an even share where routing is forced even or the rest
    dropped, more elsewhere; fixed shapes also spare the host."""
    free, even, dropped = all_three = tuple(
        case(MOE, software=dict(even_routing=x), ep=8, dp=8) for x in (0.0, 1.0, 2.0)
    )
    (moe,) = MOE.of("moe")
    on = {
        name: compute.device(c, 2048.0) for name, c in zip(("free", "even", "dropped"), all_three)
    }
    assert (
        moe.busiest_rows(on["even"])
        == moe.busiest_rows(on["dropped"])
        == moe.expert_rows(on["even"])
        < moe.busiest_rows(on["free"])
    )
    assert (
        compute.layer_time(dropped).host
        < compute.layer_time(even).host
        == compute.layer_time(free).host
    )


def test_expert_traffic_pays_for_the_top_of_the_pod_that_it_crosses():
    """64 experts' ranks over pods of 32 at 8 : 1: of the 56 ranks outside the node 32 are outside
    the pod, on an eighth of the rate: 8 x 32 / 56 as long."""
    many = make_shape(**{**MIXTRAL, "experts": 64})
    wire = lambda **link: float(
        traffic.expert_parallel(
            case(many, link=replace(NODE, **link), ep=64, dp=64, micro_batch=1024)
        ).wire_s
    )  # noqa: E731
    assert wire(pod_devices=64, oversubscription=8.0) == wire() == wire(pod_devices=32)
    assert wire(pod_devices=32, oversubscription=8.0) == pytest.approx(
        8 * 32 / 56 * wire(), rel=0.02
    )  # start-up apart


def test_nothing_is_gathered_beside_experts_on_the_same_cards():
    """MoE Parallel Folding (arXiv 2504.14960, table 3): Mixtral 8x22B with sharded weights runs at
    half of the pipeline's throughput where experts leave the node too. Gathers hide beside the
    layers' work, and not beside an exchange on the cards that they take themselves."""
    far = dict(tp=2, dp=64, ep=8, etp=2, sharding=SHARDINGS.index("zero3"))
    for layout, some in (
        (far, True),
        (far | dict(ep=4), False),
        (far | dict(tp=1, dp=8, etp=1), False),
    ):
        c = case(shape=MOE, **layout)
        exchanges = layer_exchanges(c, compute.layer_time(c, compute.device(c)))
        held = cards_busy_s(c, exchanges)
        assert exchanges["ep"].exposed_s > 0
        assert held == (exchanges["ep"].exposed_s if some else 0)


def test_replicas_of_a_stage_share_a_rack_as_ranks_are_ordered():
    """Megatron-LM orders ranks tp-cp-ep-dp-pp: 72 / 4 of a stage's replicas share a rack of 72.
    With use_tp_pp_dp_mapping, tp-cp-ep-pp-dp: one replica of 4 x 2 x 8 devices, so the 2 of context
    parallelism, as on nodes of 8; stages then send to each other inside the rack."""
    plan = dict(tp=4, cp=2, pp=8, vpp=8, dp=40, sharding=code(SHARDINGS, "zero1"))

    def ordered(domain, outer, **more):
        link = replace(NODE, domain=domain)
        return case(link=link, software={"dp_outer": outer}, **plan | more)

    shared = [traffic.gradient_domain(ordered(n, by)) // 4 for n in (72, 8) for by in (0, 1)]
    assert shared == [18, 2, 2, 2]
    usual, outer = (ordered(72, by) for by in (0, 1))
    reduced = [traffic.data_parallel(c, 12.7e9, 0.0).reduce_wire_s for c in (usual, outer)]
    # each card carries 1/2 of 51 GB, not 1/18, at no more than its 50 GB/s
    assert reduced[1] > 12.7e9 * 4 / 2 / 50e9 * 79 / 80 > 2 * reduced[0]
    assert traffic.pipeline_send(outer).wire_s < traffic.pipeline_send(usual).wire_s / 3
    experts = ordered(72, 1, ep=8, etp=1)  # 8 of 72 / 8 = 9 devices
    assert traffic.gradient_domain(experts) == 9


def test_4_bit_without_a_hadamard_transform_is_cast_as_8_bit_is():
    """NVTE_NVFP4_DISABLE_RHT=1 (MLPerf Training v5.1): read for the largest value, read and written
    both ways, as with current scaling."""
    nvfp4 = {"precision": code(PRECISIONS, "nvfp4")}
    k = case().constants
    assert compute.cast_bytes(case(job=nvfp4)) == k.cast_fp4
    assert compute.cast_bytes(case(job=nvfp4, software={"plain_fp4": 1})) == k.cast_fp8


def test_slices_of_a_tpu_pay_for_each_other():
    """MaxText on TPU v5e, 64B: the step grows with the slices, 3.7 % over one slice at 2 and 19 %
    at 32 (published_runs.csv): nothing hides what goes between them."""
    steps = {}
    for slices in (2, 8, 32):
        c = case(
            make_shape(
                layers=64,
                hidden=10240,
                ffn_hidden=40960,
                heads=80,
                kv_heads=80,
                head_dim=128,
                vocab=32768,
                mlp="gelu",
                attention="mha",
            ),
            dict(global_batch=512.0 * slices),
            Link(
                domain=256,
                up_bytes_per_s=180e9,
                out_bytes_per_s=3.125e9,
                up_share=0.95,
                up_hop_s=1e-6,
                out_share=0.8 / 0.83,
                out_hop=8.0,
            ),
            Chip(
                linear_flops=197e12,
                bf16_flops=197e12,
                hbm_bytes_per_s=819e9,
                usable_bytes=16.9e9,
                host_bytes_per_s=16e9,
                is_tpu=1.0,
            ),
            dp=256 * slices,
            sharding=code(SHARDINGS, "hsdp"),
            shard_group=256,
            micro_batch=2,
            recompute=code(RECOMPUTES, "full"),
        )
        c = replace(c, constants=gather("tpu", "tpu-v5e", "maxtext"))
        steps[slices] = float(step_time(c).total)
    assert 1.02 < steps[32] / steps[2] < 1.17 and steps[2] < steps[8] < steps[32]


def test_full_waves_lose_nothing_and_a_spilled_tile_nearly_half():
    """NVIDIA, Matrix Multiplication Background: one tile more than the units doubles the waves. 132
    x 128 x 256 outputs fill an H100 once."""
    shape = make_shape(
        layers=1,
        hidden=4224,
        ffn_hidden=4224,
        heads=33,
        kv_heads=33,
        head_dim=128,
        vocab=51200,
        mlp="gelu",
        attention="mha",
    )
    c = case(shape)
    c = replace(c, constants=replace(c.constants, wave=1.0))
    (mlp,) = shape.of("mlp")
    full, spilled = (
        mlp.gemms(compute.device(c, t))[0].idle for t in (1024.0, 1025.0)
    )  # 1,024 x 4,224 = 132 tiles
    products = 2 * 1024 * 4224 * 4224 * 2
    assert full == 0.0
    assert spilled / products == pytest.approx(
        2 / 3, rel=0.01
    )  # both outputs of a product's three passes


def test_narrower_products_gain_at_most_the_ratio_of_the_peaks():
    """On every chip of the catalogue: what 8 and 4 bit gain over 16 is bounded by what the makers
    print of their units."""
    for a in accelerators().values():
        if np.isnan(a.bf16_flops):
            continue
        known = gather(a.family, a.id, "megatron-core")
        rates_of = {}
        for precision in set(a.precisions()) & {"bf16", "fp8", "nvfp4"}:
            peak = a.peak_flops(precision)
            c = case(
                job={"precision": code(PRECISIONS, precision)},
                chip=replace(H100, bf16_flops=a.bf16_flops, linear_flops=peak),
            )
            rates_of[precision] = peak, compute.linear_rate(replace(c, constants=known))
        wide_peak, wide = rates_of["bf16"]
        for precision, (peak, rate) in rates_of.items():
            assert rate / wide <= peak / wide_peak * (1 + 1e-9), (a.id, precision)


@given(grads=st.sampled_from([2.0, 4.0]), tp=st.sampled_from([1.0, 8.0]))
def test_sharding_over_one_rank_makes_nothing_faster(grads, tp):
    """A group of one has nothing to share out: zero3 takes as long as no sharding."""
    whole, sharded = (
        step_time(case(job={"grad_bytes": grads}, sharding=code(SHARDINGS, name), tp=tp))
        for name in ("none", "zero3")
    )
    assert sharded.total >= whole.total * (1 - 1e-9)


def test_recompute_that_needs_no_last_product_skips_it():
    """jax.checkpoint drops what the backward never reads: of a GPT layer's 12 h^2 weights the last
    product has 4, so a third of the products is not repeated."""
    # each rank adds a thousandth of the gradients: products alone
    plan = dict(recompute=code(RECOMPUTES, "full"), sharding=code(SHARDINGS, "zero3"), dp=1024.0)
    plain, lazy = (step_time(case(software=dict(lazy_recompute=x), **plan)) for x in (0.0, 1.0))
    assert float((plain.recompute - lazy.recompute) / (plain.gemm / 3)) == pytest.approx(
        1 / 3, rel=0.05
    )


# -- laws
# ------------------------------------------------------------

PLANS = st.fixed_dictionaries(
    dict(
        tp=st.sampled_from([1, 2, 4, 8]),
        pp=st.sampled_from([1, 2, 4, 8]),
        cp=st.sampled_from([1, 2]),
        dp=st.sampled_from([1, 2, 8, 64]),
        sp=st.sampled_from([0, 1]),
        micro_batch=st.sampled_from([1, 2, 4]),
        recompute=st.integers(0, 2),
        sharding=st.integers(0, 4),
        schedule=st.sampled_from(
            [schedule_code(n) for n in ("gpipe", "1f1b", "zb-1p", "dualpipe")]
        ),
    )
)
SHAPES = st.sampled_from([GPT3, MOE])


def made(shape, plan, **more):
    plan = dict(plan, shard_group=max(1, plan["dp"] // 2))
    if shape is MOE:
        plan["ep"] = min(8, plan["dp"])
    return case(shape, **plan, **more)


@settings(max_examples=60, deadline=None)
@given(SHAPES, PLANS)
def test_parts_are_finite_not_negative_and_sum_to_the_total(shape, plan):
    s = step_time(made(shape, plan))
    parts = [float(getattr(s, name)) for name in PARTS]
    assert all(np.isfinite(parts)) and min(parts) >= 0
    assert sum(parts) == pytest.approx(float(s.total))
    assert s.total > 0 and set(s.axes) == {"tp", "cp", "ep", "dp", "pp"}
    for axis, exchange in s.axes.items():
        assert float(exchange.exposed_s) == pytest.approx(float(getattr(s, axis)))
        assert min(float(x) for x in (exchange.hidden_s, exchange.bytes, exchange.calls)) >= 0


@settings(max_examples=60, deadline=None)
@given(
    SHAPES,
    PLANS,
    st.sampled_from(
        ["up_bytes_per_s", "out_bytes_per_s", "hbm_bytes_per_s", "linear_flops", "bf16_flops"]
    ),
    st.floats(1.01, 8),
)
def test_more_of_any_rate_never_slows(shape, plan, what, times):
    c = made(shape, plan)
    better = (
        replace(c, link=replace(c.link, **{what: getattr(c.link, what) * times}))
        if hasattr(c.link, what)
        else replace(c, chip=replace(c.chip, **{what: getattr(c.chip, what) * times}))
    )
    assert float(step_time(better).total) <= float(step_time(c).total) * (1 + 1e-9)


@settings(max_examples=30, deadline=None)
@given(SHAPES, st.lists(PLANS, min_size=2, max_size=5))
def test_columns_equal_scalars(shape, plans):
    each = [float(step_time(made(shape, p)).total) for p in plans]
    keys = made(shape, plans[0]).plan.__dataclass_fields__
    rows = [made(shape, p).plan for p in plans]
    columns = Plan(**{k: np.array([getattr(r, k) for r in rows]) for k in keys})
    assert np.broadcast_to(
        step_time(replace(made(shape, plans[0]), plan=columns)).total, len(plans)
    ) == pytest.approx(each)


@settings(max_examples=30, deadline=None)
@given(PLANS)
def test_rates_give_the_tokens_of_a_step_back(plan):
    c = made(GPT3, plan)
    total = float(step_time(c).total)
    assert float(rates(c, total).tokens_per_s) * total * devices(c.plan) == pytest.approx(
        c.job.global_batch * c.job.seq_len
    )


def test_every_constant_has_a_unit_a_source_and_moves_no_further_than_three_deviations():
    """A fitted global offset beyond three standard deviations of its sourced prior would be another
    constant."""
    from scantling.physics.constants import calibration

    assert all(p.unit and p.source for p in PRIORS.values())
    fitted = calibration()["offsets"]
    assert all(
        abs(fitted.get(name, {}).get("global", 0.0)) <= 3 * p.sd for name, p in PRIORS.items()
    )


def test_constants_of_one_source_are_named_and_can_be_left_out():
    """One table alone measured TPU v5e: the headline without its constants is another one; H100
    stands on many sources."""
    from scantling.physics.bands import without_single_source

    c = replace(case(tp=2, dp=4), constants=gather("tpu", "tpu-v5e", "maxtext"))
    alone = without_single_source(c, chip="tpu-v5e", family="tpu", stack="maxtext")
    assert "tpu-v5e" in alone["single_source"]
    whole = step_time(c).total
    assert alone["step_s"] != pytest.approx(float(whole), rel=0.01)
    # the FLOPs of a step over its seconds and the peak, whatever the constants
    assert alone["mfu"] * alone["step_s"] == pytest.approx(float(rates(c, whole).mfu * whole))
    assert (
        without_single_source(
            case(tp=2, dp=4), chip="h100-sxm", family="hopper", stack="megatron-core"
        )
        is None
    )


def test_megatron_lm_on_hopper_is_megatron_core():
    """Transformer Engine and Megatron-Core came with those chips; the stack of 2021 never ran on
    them."""
    from scantling.catalogue.families import family
    from scantling.catalogue.stacks import canonical

    assert (
        canonical("megatron-lm", family("hopper").modern) == "megatron-core"
        and canonical("megatron-lm", family("ampere").modern) == "megatron-lm"
    )


def test_a_release_brings_its_kernels():
    """Megatron-Bridge prints cutedsl_fused_grouped_mlp from 26.06 on, and its recipes of 26.08
    overlap the all-to-all and attend in 8 bit: the same recipe is no slower on a later release, and
    a design may say the switches that its recipe prints."""
    job = {"seq_len": 4096, "global_batch": 4096, "precision": "mxfp8", "routing": "forced"}
    plan = {"tp": 1, "pp": 2, "vpp": 8, "ep": 32, "micro_batch": 1, "cuda_graphs": "full"}

    def rate(stack, **pins):
        return assess(
            {
                "model": "deepseek-v3",
                "cluster": {"accelerator": "gb300-nvl72", "devices": 256},
                "job": job,
                "plan": plan | {"sharding": "zero1", "recompute": "none"} | pins,
                "stack": stack,
            }
        ).tokens_per_s_per_device

    early, late, last = (
        rate({"id": "megatron-core", "release": r}) for r in ("26.02", "26.06", "26.08")
    )
    assert early < late == rate("megatron-core") < last
    assert last == rate({"id": "megatron-core", "release": "26.08"}, moe_overlap=True)
    assert late < rate("megatron-core", moe_overlap=True)
    assert late > rate("megatron-core", moe_dispatcher="allgather")
    assert late > rate("megatron-core", cuda_graphs="none")


@pytest.mark.parametrize("pinned", [True, False])
def test_a_design_says_what_the_recipe_of_deepseek_says(pinned):
    """Megatron-Bridge 26.08, DeepSeek-V3 on 256 GB300: 6,288 to 6,338 tokens/s a device, gradients
    in bf16 (perf_recipes/_common.py: grad_reduce_in_fp32 False). Fitted with its family in."""
    plan = {"tp": 1, "pp": 2, "vpp": 8, "ep": 32, "sharding": "zero1", "recompute": "none"}
    assessed = {
        gradients: assess(
            {
                "model": "deepseek-v3",
                "cluster": {"accelerator": "gb300-nvl72", "devices": 256},
                "job": {"seq_len": 4096, "global_batch": 4096, "precision": "mxfp8"}
                | {"routing": "forced", "effort": "tuned"},
                "plan": {"gradients": gradients} | (plan | {"micro_batch": 1} if pinned else {}),
                "stack": {"id": "megatron-core", "release": "26.08"},
            }
        )
        for gradients in ("bf16", "fp32")
    }
    narrow, wide = assessed["bf16"], assessed["fp32"]
    assert narrow.tokens_per_s_per_device == pytest.approx(6288, rel=0.1)
    assert narrow.step_s < wide.step_s
    if pinned:  # Megatron-Core's table of the distributed optimizer: 4 + 16/d against 6 + 12/d
        held = [tables(a)["memory_by_stage"][0]["gradients"] for a in (narrow, wide)]
        assert 2 * held[0] == pytest.approx(held[1])


def test_a_release_brings_hybrids_what_their_recipes_set():
    """Megatron-Bridge v0.6.0, perf_recipes/nemotronh: captured blocks and HybridEP; no full graphs,
    no fused grouped MLP, no overlap (megatron-core builds its schedule in GPTModel alone), no 8-bit
    attention: 9,728 tokens/s a device under 26.06.01 and 9,808 under 26.08."""

    def rate(release):
        return assess(
            {
                "model": "nemotron-3-super-120b-a12b",
                "cluster": {"accelerator": "gb300-nvl72", "devices": 64},
                "job": {"seq_len": 8192, "global_batch": 512, "precision": "mxfp8"}
                | {"routing": "forced", "effort": "tuned"},
                "plan": {"tp": 1, "pp": 1, "ep": 64, "sharding": "zero1", "recompute": "none"}
                | {
                    "gradients": "bf16",
                    "micro_batch": 1,
                    "cuda_graphs": "layer",
                    "moe_dispatcher": "hybridep",
                },
                "stack": {"id": "megatron-core", "release": release},
            }
        ).tokens_per_s_per_device

    assert rate("26.06") == rate("26.08")
    assert rate("26.08") == pytest.approx(9808, rel=0.1)


@given(st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_packed_documents_cost_what_sequences_of_their_length_do(short, long):
    """Llama 3 (arXiv 2407.21783, section 3.2): a mask keeps documents of one sequence apart.
    FLOPs a token and attention are those of sequences as long as a document; longer documents are
    never faster, and one as long as the sequence changes nothing."""

    def step(document=0.0):
        packed = case(
            job={"seq_len": 131072.0, "global_batch": 64.0},
            software={"document_tokens": float(document)},
            tp=8,
            pp=8,
        )
        return packed, step_time(packed)

    whole, seconds = step()
    one, two = (step(256 * 2**n) for n in sorted((short, long)))
    assert one[1].total <= two[1].total * (1 + 1e-12) <= seconds.total * (1 + 2e-12)
    assert step(131072)[1].total == step(10**9)[1].total == seconds.total
    length = 256 * 2 ** min(short, long)
    alone = flops_per_token(whole.shape, float(length))
    tokens, flops, _ = rates(one[0], 1.0)
    assert flops == pytest.approx(tokens * (alone.total + alone.mtp))


@pytest.mark.parametrize(
    ("kind", "elements"),
    [
        # the keys and values of all other ranks pass by each: Liu et al. 2023, arXiv 2310.01889,
        # section 3; whole sequences gathered: Llama 3, arXiv 2407.21783, section 3.3.2
        ("ring", 2 * 65_536 * 12_288),
        ("all-gather", 2 * 65_536 * 12_288),
        # all-to-alls of 3 N h / P for queries, keys, values and N h / P for outputs: DeepSpeed
        # Ulysses, arXiv 2309.14509, section 3.2
        ("ulysses", 4 * 65_536 * 12_288 / 8),
    ],
)
def test_context_parallelism_sends_what_the_papers_count(kind, elements):
    """One layer and micro-batch forward, 16 bit, less the own part of each rank."""
    c = case(job={"seq_len": 65_536.0}, cp=8, cp_type=code(CP_TYPES, kind))
    sent = traffic.context_parallel(c, 0.0).bytes
    assert sent == pytest.approx(2 * elements * 7 / 8)
