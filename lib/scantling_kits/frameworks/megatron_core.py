"""What Megatron-Core makes of a plan: dispatchers, captured graphs, layouts, patterns of layers.

Megatron-LM and Megatron-Bridge name the same choices by other options; torchtitan shares the
dispatchers.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from scantling.catalogue.models.patterns import counted, layers_of
from scantling.catalogue.models.shape import Model
from scantling.catalogue.words import Offload, Precision, Recompute, Sharding
from scantling.physics.software import HYBRIDEP, UCCL

from ..launch_plan import Gap, LaunchPlan

CP = {"ring": "p2p", "all-gather": "all_gather", "ulysses": "a2a"}
FSDP_STRATEGY = {"zero2": "optim_grads", "zero3": "optim_grads_params"}
Layers = tuple[tuple[str, ...], ...]  # the words of the blocks of each layer


def scans(layers: Layers) -> bool:
    """Whether Mamba-2 is among the blocks of layers."""
    return any("mamba2" in layer for layer in layers)


def stacked(layers: Layers) -> bool:
    """Whether layers make Megatron's hybrid model, a letter a block, and not its GPT with gated
    delta nets in place of some attention."""
    return scans(layers) or any(len(layer) != 2 for layer in layers)


def blocks_of_layer(layers: Layers) -> int:
    """Megatron's layers in one of the model's: each block of a hybrid model is a layer of its
    own."""
    return len(layers[0]) if stacked(layers) else 1


def moe_layers(model: Model) -> list[int]:
    """1 for each layer with experts, 0 for a dense one; [] where no layer has any."""
    if not model.is_moe:
        return []
    if model.pattern:
        return [int("moe" in counted(layer)) for layer in layers_of(model.pattern)]
    dense = model.layers - model.moe_layers
    if model.moe_layout == "dense-first" or not dense:
        return [0] * dense + [1] * model.moe_layers
    every = model.layers // model.moe_layers
    return [int(i % every == every - 1) for i in range(model.layers)]


def linear_layers(layers: Layers) -> list[int]:
    """1 for each layer with a gated delta net, 0 for one with attention."""
    return [int("gdn" in layer) for layer in layers]


def position_embedding(model: Model) -> str:
    """Kind of positions: a learned table, rotary, or none where a hybrid states no base."""
    if model.position_rows:
        return "learned_absolute"
    return "rope" if model.rope_base or not model.pattern else "none"


def runs_of(kinds: Iterable[int]) -> str:
    """Kinds of layers as Megatron reads them, runs of equal ones: ([0]*3+[1]*58)."""
    return "(" + "+".join(f"[{kind}]*{len(list(run))}" for kind, run in groupby(kinds)) + ")"


def further_modules(model: Model) -> int:
    """Modules that predict further tokens, each depth of a repeated one counted."""
    return model.mtp_layers * model.mtp_repeats


def uneven(launch: LaunchPlan) -> bool:
    """Whether the virtual stages need a layout of their own."""
    return bool(launch.model.mtp_layers) or len({*launch.runs}) > 1


def layout(launch: LaunchPlan) -> str:
    """Layers (t) of every virtual stage with embedding (E), modules of further tokens (m) and loss
    (L): Ett|ttt|ttmL."""
    stages = "|".join("t" * layers for layers in launch.runs)
    return "E" + stages + "m" * further_modules(launch.model) + "L"


def hybrid_pattern(launch: LaunchPlan) -> str:
    """A letter a block, by stages, and after / the layers of each module of further tokens."""
    model = launch.model
    layers = layers_of(model.pattern)
    stages = []
    first = 0
    for count in launch.runs:
        stages.append(_letters(layers[first : first + count], launch))
        first += count
    further = _letters(layers_of(model.mtp_pattern) or layers[-1:], launch)
    return "|".join(stages) + f"/{further}" * further_modules(model)


def _letters(layers: Sequence[tuple[str, ...]], launch: LaunchPlan) -> str:
    return "".join(launch.framework.blocks[word] for layer in layers for word in layer)


def full_recompute(launch: LaunchPlan) -> tuple[str, int]:
    """(method, layers) of full recompute: every layer of a virtual stage, or the first few."""
    p = launch.plan
    blocks = blocks_of_layer(layers_of(launch.model.pattern))
    each = -(-launch.model.layers // (p.pp * p.vpp))
    some = -(-p.recompute_layers // p.vpp)
    if some < each:
        return "block", some * blocks
    return "uniform", 1 if launch.model.mtp_layers else blocks


def recompute_modules(launch: LaunchPlan) -> list[str]:
    """The framework's words for what `selective` repeats."""
    modules = launch.framework.modules
    return [modules[m] for m in launch.plan.recompute_modules if m != "layers"]


def racked(launch: LaunchPlan) -> bool:
    """Whether NVLink joins more devices than a board of eight."""
    k = launch.cluster
    return max(k.scale_up_domain, k.accelerator.scale_up_domain_max) > max(k.devices_per_node, 8)


def dispatcher(launch: LaunchPlan) -> str:
    """What sends a token once to each rank, where the step counts on it and the chip has it: the
    one that the design names, else HybridEP on racks and DeepEP on boards. DeepEP is not written
    for racks, be it one tray of them (flex_dispatcher_backend.py: Ampere, Hopper, B200 and B300);
    nothing elsewhere."""
    p = launch.plan
    if not (launch.does.dedup_dispatch > 0 and launch.kin.modern and p.ep * p.etp > 1):
        return ""
    if launch.does.dedup_dispatch == UCCL:
        return "deepep"  # whose interface it has
    if racked(launch) or launch.does.dedup_dispatch == HYBRIDEP:
        return "hybridep"
    return "deepep"


def dispatcher_gaps(launch: LaunchPlan) -> list[Gap]:
    """A dispatcher that the design names and the chip does not have."""
    if launch.dispatcher != "deepep" or dispatcher(launch) != "hybridep":
        return []
    return [
        Gap(
            "moe_dispatcher",
            "deepep",
            "DeepEP is written for boards of Ampere, Hopper, B200 and B300, not for racks that "
            "NVLink joins",
            "hybridep",
            "the step that the design counts with hybridep",
        )
    ]


def plain_dispatcher(launch: LaunchPlan) -> str:
    """What sends a token once for each of its experts, or to all ranks."""
    return "allgather" if launch.does.dedup_dispatch < 0 else "alltoall"


class GroupLimit(NamedTuple):
    """Node-limited routing."""

    groups: int  # of experts, one a scale-up domain
    most: int  # of them that a token may visit


def group_limit(launch: LaunchPlan) -> GroupLimit | None:
    """Groups of experts that a token may visit some of: those that the step counts on (nodes of
    the expert group), else those that the model was trained with; None without any."""
    m = launch.model
    most = int(launch.does.group_limit)
    groups = launch.plan.ep * launch.plan.etp // launch.cluster.scale_up_domain
    counted = most and most < groups and m.experts % groups == 0 and m.top_k >= most
    trained = m.router_groups > 1 and m.experts % m.router_groups == 0
    if trained and (not counted or groups == m.router_groups):
        return GroupLimit(m.router_groups, m.router_group_topk)
    if counted:
        return GroupLimit(groups, most)
    return None


def gathers_low(launch: LaunchPlan) -> bool:
    """Whether weights are gathered in 8 bit: where the step counts on it, but for scales by block,
    whose preset keeps 16 bit (mixed_precision.py of Megatron-Bridge, subchannel scaling)."""
    low = ("fp8", "fp8-current", "mxfp8")
    p = launch.plan
    counted = bool(launch.does.fp8_gather > 0)
    return counted and launch.phase.precision in low and p.sharding != Sharding.NONE


def ultra(launch: LaunchPlan) -> bool:
    """Whether products in 4 bit are more than twice as fast as in 8 bit: Blackwell Ultra, whose
    exponentials of attention are twice as fast as Blackwell's too (NVIDIA, Inside Blackwell
    Ultra)."""
    chip = launch.cluster.accelerator
    return chip.fp4_flops > 2 * chip.fp8_flops


def keeps_attention(launch: LaunchPlan) -> bool:
    """Whether the makers' recipes keep latent attention in 16 bit on this chip, though its stack
    has it in 8 bit (perf_recipes/deepseek of Megatron-Bridge: 8 bit on B300 and GB300 alone, 16 bit
    on B200 and GB200; none for a family that nobody has published a run on)."""
    kin = launch.kin
    if launch.model.attention != "mla" or launch.chip != "nvidia" or ultra(launch):
        return False
    return kin.block_scales and kin.measured


def low_attention(launch: LaunchPlan) -> bool:
    """Whether attention runs in 8 bit, as the step counts on: with captured iterations alone, as in
    the makers' recipes (23 of 23 of GPT models)."""
    counted = launch.does.fp8_attention > 0 and launch.phase.precision == Precision.MXFP8
    return bool(counted) and graphs(launch) == "whole" and not keeps_attention(launch)


def attention_words(launch: LaunchPlan, lack: str) -> str:
    """What is said of attention in 8 bit that is not set: that the makers leave it off on this
    chip, or what a framework lacks."""
    if keeps_attention(launch):
        return "attention in 8 bit, which the makers' recipes leave off on this chip"
    return f"attention in 8 bit{lack}"


KEPT_SHARE = 0.15  # of the layers, the last: Nemotron-3 Super 14 of 88, Ultra 16 of 108


def kept_layers(launch: LaunchPlan) -> tuple[int, int]:
    """First and last layers of Megatron's that stay in bf16 beside 8 or 4 bit: as the design says,
    else as the maker's recipe."""
    stated = launch.phase.kept_16bit
    if stated is None:
        return 0, kept_by_recipe(launch)
    blocks = blocks_of_layer(layers_of(launch.model.pattern))
    return stated[0] * blocks, stated[1] * blocks


def kept_by_recipe(launch: LaunchPlan) -> int:
    """Last blocks of a hybrid of latent experts that stay in bf16 under NVFP4, in whole pairs of a
    mixer and experts; 0 where the maker's recipes keep none (mixed_precision.py of Megatron-Bridge
    0.6.2, nemotron_3_super_bf16_with_nvfp4_mixed and _ultra_; arXiv 2509.25149: about 15 %)."""
    if launch.phase.precision != Precision.NVFP4 or not launch.model.latent:
        return 0
    layers = launch.model.layers * blocks_of_layer(layers_of(launch.model.pattern))
    return 2 * round(KEPT_SHARE * layers / 2)


def gathers_four(launch: LaunchPlan) -> bool:
    """Whether weights are gathered in 4 bit: all of them under the distributed optimizer, as the
    preset; none where some layers stay in bf16, as Nemotron's recipes."""
    four = launch.phase.precision == Precision.NVFP4 and launch.plan.sharding == Sharding.ZERO1
    return four and not any(kept_layers(launch))


def layer_formats(launch: LaunchPlan) -> bool:
    """Whether products have number formats of their own by name, in quantization.yaml: NVFP4 of a
    hybrid of latent experts under the distributed optimizer."""
    return kept_by_recipe(launch) > 0 and launch.plan.sharding not in FSDP_STRATEGY


def narrow(launch: LaunchPlan) -> bool:
    """Whether gradients are summed and sent in bf16; those of fp16 are 16 bit anyhow."""
    return bool(launch.does.grad_bytes <= 2) and launch.phase.precision != Precision.FP16


def overlaps_exchange(launch: LaunchPlan) -> bool:
    """Whether an all-to-all runs beside another micro-batch: where the step counts on it and
    Megatron-Core lays it so (transformer_config.py, overlap_moe_expert_parallel_comm; GPTModel
    alone)."""
    p = launch.plan
    m = launch.model
    experts = m.is_moe and not m.pattern and p.ep > 1
    pipeline = p.pp == 1 or p.vpp > 1
    repeats = p.recompute == Recompute.FULL or "moe" in p.recompute_modules
    return (
        bool(launch.does.ep_overlap > 0)
        and experts
        and pipeline
        and not repeats
        and further_modules(m) <= 1
        and launch.phase.precision != Precision.FP32
        and p.sharding in (Sharding.NONE, Sharding.ZERO1)
    )


def graphs(launch: LaunchPlan) -> str:
    """Captured graphs that the step counts on and Megatron-Core takes (transformer_config.py,
    cuda_graph_impl): "whole", "layers" or nothing. The whole iteration with experts as the recipes
    for MXFP8 do it, rows of a rank bounded and paged; of hybrids the layers alone, as Nemotron's
    recipes."""
    p = launch.plan
    m = launch.model
    able = (
        launch.kin.transformer_engine
        and p.sharding in (Sharding.NONE, Sharding.ZERO1)
        and p.offload == Offload.NONE
    )
    if not able:
        return ""
    if launch.does.graphs >= 2:
        held = not stacked(layers_of(m.pattern)) and (not m.is_moe or paged_experts(launch))
        return "whole" if held else ""
    repeats = p.recompute == Recompute.FULL or "moe" in p.recompute_modules
    return "layers" if launch.does.graphs > 0 and not repeats and captured_modules(launch) else ""


def paged_experts(launch: LaunchPlan) -> bool:
    """Whether rows of an expert rank are bounded and paged, as captured experts need it."""
    m = launch.model
    return (
        dispatcher(launch) == "hybridep"
        and launch.phase.precision in (Precision.MXFP8, Precision.NVFP4)
        and m.mlp == "swiglu"
        and not (m.mlp_bias or m.out_bias)
        and bool(launch.does.capacity_factor <= 0)
    )


def fuses_experts(launch: LaunchPlan) -> bool:
    """Whether grouped products apply their activation themselves (Transformer Engine's op fuser
    over interleaved gates): in captured iterations, and in MXFP8 over HybridEP where the step
    counts on it."""
    m = launch.model
    if not m.is_moe or m.mlp != "swiglu" or m.mlp_bias or m.out_bias:
        return False
    counted = bool(launch.does.fused_experts > 0) and launch.phase.precision == Precision.MXFP8
    fused = counted and dispatcher(launch) == "hybridep" and launch.kin.transformer_engine
    return fused or graphs(launch) == "whole"


def captured_modules(launch: LaunchPlan) -> list[str]:
    """What of a layer graphs of layers hold: what the design names, else mixers, unless the step
    counts on the router alone, and the router with what sorts its tokens. Dense feed-forwards of
    hybrids stay outside, as in Nemotron-H's recipes."""
    if launch.phase.graph_modules:
        return [*launch.phase.graph_modules]
    layers = layers_of(launch.model.pattern)
    out = []
    if launch.does.graphs >= 1:
        out.append("attn")
        if scans(layers):
            out.append("mamba")
    if launch.model.is_moe:
        return [*out, "moe_router", "moe_preprocess"]
    return [*out, "mlp"] if out and not stacked(layers) else out


def overlaps_tensor_products(launch: LaunchPlan) -> bool:
    """Whether products overlap their tensor-parallel collectives, as the step counts on and
    Transformer Engine does it: under sequence parallelism."""
    p = launch.plan
    counted_on = p.tp > 1 and bool(launch.does.tp_overlap >= 1)
    return counted_on and p.sp and launch.kin.transformer_engine


def unset_options(launch: LaunchPlan, attention: str) -> list[str]:
    """What the step counts on and the kit does not set; `attention`: what is said of attention in
    8 bit, "" where the kit sets it."""
    does = launch.does
    p = launch.plan
    captured = graphs(launch)
    out = []
    if does.graphs >= 2 and not captured:
        out.append("graphs of the whole iteration")
    if 0 < does.graphs < 2 and not captured:
        out.append("graphs of attention and router")
    experts = launch.model.is_moe and p.ep > 1
    if does.ep_overlap > 0 and experts and not overlaps_exchange(launch):
        out.append("the all-to-all beside another micro-batch")
    if does.fp8_attention > 0 and attention:
        out.append(attention)
    if does.tp_overlap >= 1 and p.tp > 1 and not overlaps_tensor_products(launch):
        out.append("products that overlap their tensor-parallel collectives")
    return out


def graphs_note(launch: LaunchPlan) -> str:
    """What captured graphs ask of the reader; "" without any."""
    captured = graphs(launch)
    if not captured:
        return ""
    share = ""
    if captured == "whole" and launch.model.is_moe:
        share = "; a rank takes at most 1.5 times an even share of the tokens"
    return (
        "CUDA graphs are on, and the checks for NaN are off under them: watch the loss, and "
        f"compare its first steps with a run without them{share}."
    )


def options_note(launch: LaunchPlan, unset: list[str]) -> str:
    """What the step counts on beside what is set, and what captured graphs ask; "" where there is
    nothing to say."""
    out = []
    if unset:
        out.append(
            "The step counts on what is not set here, since Megatron-Core does not take it with "
            f"this plan or has no option for it: {'; '.join(unset)}. Until it is, expect a longer "
            "step."
        )
    if note := graphs_note(launch):
        out.append(note)
    return " ".join(out)
