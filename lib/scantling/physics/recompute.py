"""What the backward computes again: modules of a layer, the switches that name them, and what a
plan repeats of each kind of kernel."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..base.columns import Column
from ..blocks.attention import Softmax
from ..blocks.block import Block
from ..blocks.block_table import Shape
from ..blocks.kernels import STREAM_BYTES
from ..blocks.mlp import Mlp
from ..blocks.moe import Moe
from ..catalogue.words import Recompute, RecomputeModule, Remat
from .software import Software


class Recomputed(NamedTuple):
    """Forwards that the backward repeats: of whole layers, and of a layer's kernels by kind."""

    layer: Column
    gemm: Column
    attention: Column
    elementwise: Column
    expert: Column  # of the exchanges between experts


# module of a layer: the switch of Software that says that it is repeated
SWITCH_OF = {
    RecomputeModule.CORE_ATTN: "selective_attention",
    RecomputeModule.MLA_UP_PROJ: "selective_up",
    RecomputeModule.NORM: "selective_norm",
    RecomputeModule.MLP_ACT: "selective_act",
    RecomputeModule.MOE: "selective_moe",
}


def switches_of(modules: Sequence[str]) -> dict[str, float]:
    """The switches of Software under which `selective` repeats these modules and nothing else."""
    switches = {switch: float(module in modules) for module, switch in SWITCH_OF.items()}
    return {**switches, "selective_gemm": 0.0}


def bits_of(modules: Sequence[str]) -> int:
    """Modules as one number, a bit each in the order of SWITCH_OF."""
    return sum(1 << at for at, module in enumerate(SWITCH_OF) if module in modules)


def modules_of_bits(bits: int) -> list[str]:
    """The modules of `bits_of`."""
    return [module.value for at, module in enumerate(SWITCH_OF) if bits >> at & 1]


def bits_of_stack(software: Software, shape: Shape) -> int:
    """The modules that the stack's own `selective` repeats of those that a model has, as bits; 0
    where it repeats none of them, or a part of one, which no set of modules says."""
    switches: Mapping[str, Column] = vars(software)
    shares = {switch: switches[switch] for switch in (*SWITCH_OF.values(), "selective_gemm")}
    if software.selective_gemm or any(share not in (0.0, 1.0) for share in shares.values()):
        return 0
    return bits_of([m for m in modules_in(shape) if shares[SWITCH_OF[m]]])


def modules_in(shape: Shape) -> list[RecomputeModule]:
    """The modules that the layers of a model have."""
    absent = set()
    if not share_of_ups(shape) > 0:
        absent.add(RecomputeModule.MLA_UP_PROJ)
    if not shape.moe_layers > 0:
        absent.add(RecomputeModule.MOE)
    return [module for module in SWITCH_OF if module not in absent]


def distinct_sets(modules: Sequence[str], shape: Shape) -> list[int]:
    """Every set of some modules of a model that repeats something of its own, as bits. Whole MoE
    blocks hold their activations: where all feed-forwards are such blocks, `moe` beside `mlp_act`
    is `moe`."""
    some = [module for module in modules_in(shape) if module in modules]
    sets = [bits_of(one) for n in range(1, len(some) + 1) for one in combinations(some, n)]
    within = bits_of([RecomputeModule.MOE, RecomputeModule.MLP_ACT])
    if all(isinstance(block, Moe) for block in shape.of("feed")):
        sets = [bits for bits in sets if bits & within != within]
    return sets


def switches_at(bits: Column, switches: Mapping[str, Column]) -> dict[str, Column]:
    """The switches of Software under which `selective` repeats the modules of `bits_of` and nothing
    else; as they are where a plan leaves them to the stack (0)."""
    if not np.any(bits):
        return {}
    whole = np.asarray(bits).astype(np.int64)
    named = whole > 0
    out: dict[str, Column] = {
        switch: np.where(named, (whole >> at) & 1, switches[switch])[()]
        for at, switch in enumerate(SWITCH_OF.values())
    }
    out["selective_gemm"] = np.where(named, 0.0, switches["selective_gemm"])[()]
    return out


# of a layer's matrix products, what each of MaxText's policies repeats, and whether it repeats the
# attention core (1: `context` is not among the names that it saves); the product out of the
# feed-forward is repeated by none, since the backward never reads what it gives
QKV, OUT, WI, WO = "qkv", "out", "wi", "wo"
REPEATED_BY: Mapping[str, tuple[tuple[str, ...], float]] = {
    Remat.MINIMAL: ((), 1.0),
    Remat.MINIMAL_WITH_CONTEXT: ((), 0.0),
    Remat.MINIMAL_OFFLOADED: ((), 1.0),
    Remat.SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP: ((WI,), 0.0),
    Remat.SAVE_DOT_EXCEPT_MLP: ((WI,), 1.0),
    Remat.SAVE_DOT_EXCEPT_MLPWI: ((WI,), 1.0),
    Remat.SAVE_QKV_PROJ: ((OUT, WI), 1.0),
    Remat.SAVE_OUT_PROJ: ((QKV, WI), 1.0),
}


def remat_switches(policy: str, shape: Shape) -> dict[str, Column]:
    """The switches of Software under which `selective` is one of MaxText's policies: the share of a
    layer's products that it repeats goes by their FLOPs, norms and activations are repeated by
    all. Whole layers (`full`, `qkv_proj_offloaded`) need none."""
    if policy not in REPEATED_BY:
        return {}
    products, attention = REPEATED_BY[policy]
    shares = product_shares(shape)
    return {
        "selective_gemm": sum(shares[product] for product in products),
        "selective_attention": attention,
        "selective_norm": 1.0,
        "selective_act": 1.0,
        "selective_up": 0.0,
        "selective_moe": 0.0,
    }


POINTWISE_SHARE = 0.5  # of the activations that a compiled layer keeps


def budget_switches(budget: float) -> dict[str, Column]:
    """The switches of Software under which `selective` is the compiler's own choice for a memory
    budget, from 0 (of a layer only its input stays) to 1 (what the fastest code keeps).

    What costs least is repeated first: operations without matrix products, which are half of the
    activations, then products, attention last (PyTorch's blog, "Current and New Activation
    Checkpointing Techniques": 50 % by pointwise operations alone; its default estimate of a time
    counts FLOPs, torch/_functorch/config.py)."""
    pointwise = min(1.0, (1.0 - budget) / POINTWISE_SHARE)
    return {
        "memory_budget": budget,
        "selective_norm": pointwise,
        "selective_act": pointwise,
        "selective_gemm": max(0.0, 1.0 - budget / POINTWISE_SHARE),
        "selective_attention": float(budget <= 0.0),
        "selective_up": 0.0,
        "selective_moe": 0.0,
    }


def product_shares(shape: Shape) -> dict[str, Column]:
    """Of the FLOPs of a layer's weights: projections into the mixer, out of it, into the
    feed-forward and out of it."""
    whole = linear_flops(shape)
    mixer = shape.mean("mixer", weight_flops) / whole
    out = 6 * shape.mean(Softmax, lambda b: b.out_width * b.hidden) / whole
    feed = shape.mean("feed", weight_flops) / whole
    back = shape.mean("feed", down_flops) / whole
    return {QKV: mixer - out, OUT: out, WI: feed - back, WO: back}


def modules_of(recompute: str, software: Software, shape: Shape) -> list[str]:
    """The modules that a plan repeats: those of the switches that this model has, whole layers
    under `full`."""
    if recompute == Recompute.FULL:
        return [RecomputeModule.LAYERS.value]
    if recompute != Recompute.SELECTIVE:
        return []
    switches: Mapping[str, Column] = vars(software)
    return [m.value for m in modules_in(shape) if np.all(switches[SWITCH_OF[m]] >= 1)]


def repeated(shape: Shape, software: Software, some: Column, full: Column) -> Recomputed:
    """What recompute repeats: everything in the share `full` of the layers, in the share `some` the
    modules of SWITCH_OF that are switched on (Korthikanti et al. 2022, section 5; DeepSeek-V3,
    section 3.2.3). A module's share of the layer goes by FLOPs and bytes."""
    moe = software.selective_moe
    gemm = software.selective_gemm + software.selective_up * share_of_ups(shape)
    chain = software.selective_norm
    if np.any(software.selective_act != software.selective_norm) or np.any(moe):
        activations, of_experts = activation_shares(shape)
        chain = (1 - activations) * chain + activations * software.selective_act
        chain = chain + of_experts * moe * (1 - software.selective_act)
    within = shape.mean(Moe, weight_flops) / linear_flops(shape)
    gemm = gemm + moe * within * (1 - software.selective_gemm)
    return Recomputed(
        layer=full,
        gemm=full + some * gemm,
        attention=full + some * software.selective_attention,
        elementwise=full + some * chain,
        expert=full + some * moe,
    )


def share_of_ups(shape: Shape) -> Column:
    """Of the FLOPs of a layer's weights, those of up-projections of latent attention."""
    return 6 * shape.mean(Softmax, lambda b: b.up_weights) / linear_flops(shape)


def linear_flops(shape: Shape) -> Column:
    """Training FLOPs a token of an average layer's weights."""
    return sum(shape.mean(place, weight_flops) for place in ("mixer", "stream", "feed"))


def weight_flops(block: Block) -> Column:
    """Training FLOPs a token of a block's weights."""
    return sum(flops for part, flops in block.flops(1.0).items() if part != "attention_scores")


def down_flops(block: Block) -> Column:
    """Training FLOPs a token of the products that come out of a feed-forward."""
    return weight_flops(block) / block.matrices if isinstance(block, (Mlp, Moe)) else 0.0


def activation_shares(shape: Shape) -> tuple[Column, Column]:
    """(of activations of feed-forwards, of those in MoE blocks) in the bytes that a layer's
    element-wise chains move, tensor parallelism aside."""
    all_bytes: Column = 0.0
    moe_bytes: Column = 0.0
    for block in shape.of("feed"):
        moved = block.count / shape.layers * block.active_bytes
        all_bytes = all_bytes + moved
        if isinstance(block, Moe):
            moe_bytes = moe_bytes + moved
    whole = all_bytes + 2 * STREAM_BYTES * shape.hidden
    return all_bytes / whole, moe_bytes / whole
