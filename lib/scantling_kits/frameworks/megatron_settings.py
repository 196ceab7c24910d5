"""Options of Megatron-Core that its makers' recipes set beside the plan, for Megatron-LM and for
Megatron-Bridge. The names are Megatron-Bridge's; Megatron-LM's flag is the last part of it.

Sources: `recipes` is perf_recipes of megatron-bridge 0.6.2, run and counted; file names are of
megatron-core 0.19.2; releases are the first tag whose source has the word.
"""

from collections.abc import Callable

from scantling.catalogue.models.patterns import layers_of
from scantling.catalogue.words import Precision, Sharding

from ..launch_plan import LaunchPlan
from ..recipe_settings import Chosen, Setting, Value, always
from . import megatron_core as core, user_buffers

BRIDGE_SINCE = "0.3.0"  # the first release whose wheel has the options of core 0.16


def of_both(
    since: str,
    when: Callable[[LaunchPlan], bool],
    name: str,
    value: Value | Callable[[LaunchPlan], Value],
    why: str,
    source: str,
    bridge: str = BRIDGE_SINCE,
) -> tuple[Setting, Setting]:
    """One option as Megatron-LM, from that release of megatron-core on, and as Megatron-Bridge has
    it."""
    return (
        Setting(
            framework="megatron",
            since=since,
            when=when,
            name=name,
            value=value,
            why=why,
            source=source,
        ),
        Setting(
            framework="megatron-bridge",
            since=bridge,
            when=when,
            name=name,
            value=value,
            why=why,
            source=source,
        ),
    )


def of_bridge(
    since: str,
    when: Callable[[LaunchPlan], bool],
    name: str,
    value: Value | Callable[[LaunchPlan], Value],
    why: str,
    source: str,
) -> Setting:
    """One option that Megatron-Bridge alone has, or spells its own way."""
    return Setting(
        framework="megatron-bridge",
        since=since,
        when=when,
        name=name,
        value=value,
        why=why,
        source=source,
    )


def of_megatron(
    since: str,
    when: Callable[[LaunchPlan], bool],
    name: str,
    value: Value | Callable[[LaunchPlan], Value],
    why: str,
    source: str,
) -> Setting:
    """One option that Megatron-LM's command line alone needs."""
    return Setting(
        framework="megatron", since=since, when=when, name=name, value=value, why=why, source=source
    )


def fused_router(launch: LaunchPlan) -> bool:
    """Experts routed on Transformer Engine; hybrids of Mamba-2 leave it off, as Nemotron's
    recipes."""
    return (
        launch.model.is_moe
        and launch.kin.transformer_engine
        and not core.scans(layers_of(launch.model.pattern))
    )


def fused_rotary(launch: LaunchPlan) -> bool:
    """Rotary positions of whole heads on Transformer Engine."""
    m = launch.model
    rotary = core.position_embedding(m) == "rope" and m.attention != "mla"
    return rotary and launch.kin.transformer_engine and not core.stacked(layers_of(m.pattern))


def latent(launch: LaunchPlan) -> bool:
    """Latent attention."""
    return launch.model.attention == "mla"


def fused_latent(launch: LaunchPlan) -> bool:
    """Latent attention whose rotary positions are fused: not under sparse attention."""
    return latent(launch) and launch.kin.transformer_engine and not launch.model.index_heads


def plain_latent(launch: LaunchPlan) -> bool:
    """Latent attention whose rotary positions are not fused."""
    return latent(launch) and not fused_latent(launch)


def tuned_loss(launch: LaunchPlan) -> bool:
    """A recipe that is tuned for speed, on Transformer Engine, but for Nemotron's largest hybrids
    and sparse attention."""
    tuned = bool(launch.does.tuned > 0)
    return tuned and launch.kin.transformer_engine and not launch.model.index_heads


def sure_loss(launch: LaunchPlan) -> bool:
    """Any other run."""
    return not tuned_loss(launch)


def narrow_hybrid(launch: LaunchPlan) -> bool:
    """Experts of a Mamba-2 hybrid in 8 or 4 bit by blocks."""
    scans = core.scans(layers_of(launch.model.pattern))
    return (
        launch.model.is_moe
        and scans
        and launch.phase.precision in (Precision.MXFP8, Precision.NVFP4)
    )


def narrow_further(launch: LaunchPlan) -> bool:
    """Modules of further tokens of a Mamba-2 hybrid in 8 or 4 bit."""
    m = launch.model
    scans = core.scans(layers_of(m.pattern))
    return (
        bool(m.mtp_layers)
        and scans
        and launch.phase.precision not in (Precision.BF16, Precision.FP16, Precision.FP32)
    )


def squared(launch: LaunchPlan) -> bool:
    """Squared ReLU between two matrices of experts."""
    return launch.model.mlp == "squared-relu" and launch.kin.transformer_engine


def squared_experts(launch: LaunchPlan) -> bool:
    """Experts of two matrices with squared ReLU, whose weights of the router are applied inside."""
    return squared(launch) and launch.model.is_moe


def hybrid_ep(launch: LaunchPlan) -> bool:
    """Tokens travel by HybridEP."""
    return core.dispatcher(launch) == "hybridep"


def whole_experts(launch: LaunchPlan) -> bool:
    """Graphs of the whole iteration hold experts."""
    return core.graphs(launch) == "whole" and launch.model.is_moe


def scaled_router(launch: LaunchPlan) -> bool:
    """The scale of the router's weights is known."""
    m = launch.model
    return m.is_moe and m.router_scale > 0 and m.router_scale != 1


def router_scale(launch: LaunchPlan) -> float:
    """The scale of the router's weights."""
    return launch.model.router_scale


def clamped_gates(launch: LaunchPlan) -> bool:
    """Both halves of the gated feed-forward are bounded, as GPT-OSS was trained."""
    return launch.model.gate_clamp > 0


def gate_clamp(launch: LaunchPlan) -> float:
    """The bound of both halves."""
    return launch.model.gate_clamp


def offset_gates(launch: LaunchPlan) -> bool:
    """Something is added to the half that is not gated."""
    return launch.model.gate_offset > 0


def gate_offset(launch: LaunchPlan) -> float:
    """What is added to it."""
    return launch.model.gate_offset


def centered_norms(launch: LaunchPlan) -> bool:
    """Weights of norms are kept as their distance from one."""
    return launch.model.norm_zero_centered


def grouped_router(launch: LaunchPlan) -> bool:
    """Experts stand in groups of which a token visits some."""
    return core.group_limit(launch) is not None


def router_groups(launch: LaunchPlan) -> int:
    """Groups of experts."""
    limit = core.group_limit(launch)
    return limit.groups if limit else 1


def router_most(launch: LaunchPlan) -> int:
    """Groups that a token may visit."""
    limit = core.group_limit(launch)
    return limit.most if limit else 1


def soft_first(launch: LaunchPlan) -> bool:
    """The softmax runs over all experts, before some are chosen."""
    m = launch.model
    one = m.top_k == 1 and not m.router_buffers
    return m.is_moe and (one or m.router_pre_softmax)


def reused_buffer(launch: LaunchPlan) -> bool:
    """Weights gathered in MXFP8 by the distributed optimizer."""
    return (
        core.gathers_low(launch)
        and launch.phase.precision == Precision.MXFP8
        and launch.plan.sharding == Sharding.ZERO1
    )


def fully(launch: LaunchPlan) -> bool:
    """Megatron-FSDP."""
    return launch.plan.sharding in core.FSDP_STRATEGY


def fully_narrow(launch: LaunchPlan) -> bool:
    """Megatron-FSDP whose gradients travel in bf16."""
    return fully(launch) and core.narrow(launch)


def fully_low(launch: LaunchPlan) -> bool:
    """Megatron-FSDP in 8 bit."""
    return fully(launch) and launch.phase.precision in (
        Precision.FP8,
        Precision.FP8_CURRENT,
        Precision.FP8_BLOCK,
        Precision.MXFP8,
    )


def fully_experts(launch: LaunchPlan) -> bool:
    """Megatron-FSDP of a mixture of experts, whose ranks share unlike numbers of tokens."""
    return fully(launch) and launch.model.is_moe


def gated_engine(launch: LaunchPlan) -> bool:
    """SwiGLU on Transformer Engine, of experts or not."""
    return launch.model.mlp == "swiglu" and launch.kin.transformer_engine


def plain_residuals(launch: LaunchPlan) -> bool:
    """Attention and feed-forward in turn, without biases: what a residual adds is one tensor."""
    m = launch.model
    return not (m.mlp_bias or m.out_bias or core.stacked(layers_of(m.pattern)))


def shared_beside(launch: LaunchPlan) -> bool:
    """Shared experts that run beside the plain exchange, where no other micro-batch does."""
    m = launch.model
    plain = not core.dispatcher(launch) and launch.plan.ep > 1
    return bool(m.is_moe and m.shared_ffn_hidden and plain and not core.overlaps_exchange(launch))


def whole_mxfp8(launch: LaunchPlan) -> bool:
    """Captured iterations of experts in MXFP8."""
    return whole_experts(launch) and launch.phase.precision == Precision.MXFP8


OPTIONS: tuple[Setting, ...] = (
    of_bridge(
        "0.3.0",
        gated_engine,
        "model.bias_activation_fusion",
        True,
        "gate and activation in one kernel; Megatron-LM does so by default",
        "recipes: 82 of 82 that say so; llama_bridge.py, deepseek_v3_bridge.py, kimi_bridge.py",
    ),
    of_bridge(
        "0.3.0",
        plain_residuals,
        "model.bias_dropout_fusion",
        True,
        "the residual is added in one kernel; Megatron-LM does so by default",
        "llama_bridge.py, deepseek_v3_bridge.py, kimi_bridge.py (off in GPT-OSS, whose layers have "
        "biases)",
    ),
    *of_both(
        "0.11.0",
        shared_beside,
        "model.moe_shared_expert_overlap",
        True,
        "shared experts run beside the exchange of the others",
        "recipes: 35, all that send tokens by alltoall and have shared experts",
    ),
    *of_both(
        "0.18.0",
        core.fuses_experts,
        "model.use_transformer_engine_op_fuser",
        True,
        "grouped products that apply and cast the activation themselves",
        "recipes: 65, in MXFP8 and in captured iterations",
        bridge="0.6.0",
    ),
    *of_both(
        "0.18.0",
        core.fuses_experts,
        "model.moe_mlp_glu_interleave_size",
        32,
        "gates and values in turns of 32, as those products read them",
        "recipes: 57",
        bridge="0.6.0",
    ),
    *of_both(
        "0.14.0",
        fused_router,
        "model.moe_router_fusion",
        True,
        "scores, choice and auxiliary loss of the router in one kernel of Transformer Engine",
        "recipes: 172 of 218 of a mixture of experts",
    ),
    of_bridge(
        "0.3.0",
        fused_rotary,
        "model.apply_rope_fusion",
        True,
        "one kernel turns queries and keys; Megatron-LM does so by default",
        "recipes: 325 of 338",
    ),
    *of_both(
        "0.11.0",
        plain_latent,
        "model.rope_type",
        "rope",
        "sparse attention turns its heads itself",
        "transformer_config.py: RoPE fusion is not supported for DSAttention",
    ),
    *of_both(
        "0.11.0",
        fused_latent,
        "model.rope_type",
        "yarn",
        "the fused kernel of latent attention knows YaRN's positions alone; at a scale of 1 they "
        "are the plain ones",
        "transformer_config.py: apply_rope_fusion for MLA only works with YARN RoPE",
    ),
    *of_both(
        "0.11.0",
        fused_latent,
        "model.rotary_scaling_factor",
        1.0,
        "positions are not stretched: the run trains at its own length",
        "yarn_rotary_pos_embedding.py: at a factor of 1 both frequencies and mscale are equal",
    ),
    of_bridge(
        "0.3.0",
        fused_latent,
        "model.apply_rope_fusion",
        True,
        "one kernel turns queries and keys",
        "recipes: all of DeepSeek-V3 and Kimi K2",
    ),
    of_bridge(
        "0.3.0",
        plain_latent,
        "model.apply_rope_fusion",
        False,
        "sparse attention turns its heads itself",
        "transformer_config.py: RoPE fusion is not supported for DSAttention",
    ),
    of_megatron(
        "0.11.0",
        plain_latent,
        "model.no_rope_fusion",
        True,
        "sparse attention turns its heads itself",
        "transformer_config.py: RoPE fusion is not supported for DSAttention",
    ),
    of_bridge(
        "0.3.0",
        always,
        "model.cross_entropy_loss_fusion",
        True,
        "logits are never copied to fp32 as a whole",
        "recipes: 318 of 338; Megatron-LM: --cross-entropy-loss-fusion",
    ),
    of_bridge(
        "0.3.0",
        tuned_loss,
        "model.cross_entropy_fusion_impl",
        "te",
        "the loss in Transformer Engine's kernel, as the recipes that the speed is measured on; "
        "megatron-core warns of its stability: native where the loss jumps",
        "recipes: 329 of 338; model_parallel_config.py: known stability issues",
    ),
    of_bridge(
        "0.3.0",
        sure_loss,
        "model.cross_entropy_fusion_impl",
        "native",
        "megatron-core warns of the stability of Transformer Engine's loss, which tuned recipes "
        "(job.effort tuned) take for about 1 % of a step",
        "model_parallel_config.py: known stability issues; recipes: 9 of 338",
    ),
    *of_both(
        "0.16.0",
        narrow_hybrid,
        "model.moe_router_padding_for_quantization",
        True,
        "rows of each expert come in whole blocks of the number format",
        "recipes: Nemotron-3 Super and Ultra, all of MXFP8 and NVFP4",
    ),
    *of_both(
        "0.14.0",
        squared_experts,
        "model.use_fused_weighted_squared_relu",
        True,
        "activation and the router's weight in one kernel",
        "recipes: 54 of 54 of Nemotron-3",
    ),
    *of_both(
        "0.16.0",
        hybrid_ep,
        "model.moe_hybridep_num_sms",
        32,
        "multiprocessors that HybridEP takes; from megatron-core 0.19 on another word for "
        "moe_flex_dispatcher_num_sms",
        "recipes: 141 of 154 under HybridEP (_common.py)",
    ),
    *of_both(
        "0.18.0",
        whole_experts,
        "model.moe_hybridep_num_sms_preprocessing",
        32,
        "its scan of the routing leaves the other multiprocessors to the products",
        "recipes: 41 of 43 of whole iterations",
        bridge="0.6.0",
    ),
    *of_both(
        "0.18.0",
        whole_mxfp8,
        "model.high_priority_a2a_comm_stream",
        True,
        "the exchange goes before the products that it runs beside",
        "recipes: 27 of 28 of whole iterations in MXFP8",
        bridge="0.6.0",
    ),
    *of_both(
        "0.11.0",
        scaled_router,
        "model.moe_router_topk_scaling_factor",
        router_scale,
        "as the model was trained: the weights of the chosen experts are multiplied",
        "config.json of the model: routed_scaling_factor",
    ),
    *of_both(
        "0.15.0",
        clamped_gates,
        "model.activation_func_clamp_value",
        gate_clamp,
        "as the model was trained: both halves of the gated feed-forward are bounded",
        "config.json of the model: swiglu_limit; gpt_oss_provider.py",
        bridge="0.2.0",
    ),
    *of_both(
        "0.15.0",
        offset_gates,
        "model.glu_linear_offset",
        gate_offset,
        "as the model was trained: added to the half that is not gated",
        "transformers, GptOssExperts: (up + 1) * glu; gpt_oss_provider.py",
        bridge="0.2.0",
    ),
    Setting(
        framework="megatron",
        since="0.11.0",
        when=centered_norms,
        name="model.apply_layernorm_1p",
        value=True,
        why="weights of norms are kept as their distance from one, as the model's own",
        source="transformers, Qwen3NextRMSNorm: (1 + weight)",
    ),
    Setting(
        framework="megatron-bridge",
        since=BRIDGE_SINCE,
        when=centered_norms,
        name="model.layernorm_zero_centered_gamma",
        value=True,
        why="weights of norms are kept as their distance from one, as the model's own",
        source="transformers, Qwen3NextRMSNorm: (1 + weight)",
    ),
    *of_both(
        "0.11.0",
        grouped_router,
        "model.moe_router_num_groups",
        router_groups,
        "groups of experts, of which a token visits some: as the model was trained, or as the "
        "design limits nodes",
        "config.json of the model: n_group; job.node_limit",
    ),
    *of_both(
        "0.11.0",
        grouped_router,
        "model.moe_router_group_topk",
        router_most,
        "groups that a token may visit",
        "config.json of the model: topk_group; job.node_limit",
    ),
    *of_both(
        "0.10.0",
        soft_first,
        "model.moe_router_pre_softmax",
        True,
        "the weights of the chosen do not sum to one: the softmax runs over all experts",
        "config.json of the model: norm_topk_prob; moe_utils.py: one expert is chosen so",
    ),
    of_megatron(
        "0.13.0",
        reused_buffer,
        "ddp.reuse_grad_buf_for_mxfp8_param_ag",
        True,
        "gathered weights stand in the gradients' buffer: without it they take one of their own",
        "mixed_precision.py of Megatron-Bridge, bf16_with_mxfp8_mixed; distrib_optimizer.py",
    ),
    of_megatron(
        "0.15.0",
        core.gathers_four,
        "ddp.fp4_param_gather",
        True,
        "weights are gathered in 4 bit, as Megatron-Bridge's preset has it",
        "mixed_precision.py of Megatron-Bridge, bf16_with_nvfp4_mixed",
    ),
    *of_both(
        "0.12.0",
        fully,
        "model.init_model_with_meta_device",
        True,
        "weights are made shard by shard: no host or device holds the whole model at the start",
        "recipes: 26 of 26 of Megatron-FSDP",
    ),
    *of_both(
        "0.13.0",
        fully,
        "ddp.fsdp_double_buffer",
        True,
        "two buffers that stay in place of gathers that come and go: no fragmentation",
        "recipes: 25 of 26 of Megatron-FSDP",
    ),
    *of_both(
        "0.10.0",
        fully_experts,
        "model.calculate_per_token_loss",
        True,
        "the loss is summed by token, so that gradients are scaled once",
        "recipes: 33 of 46; Megatron-LM examples/megatron_fsdp",
    ),
    of_bridge(
        "0.3.0",
        fully_low,
        "ddp.keep_fp8_transpose_cache",
        False,
        "no second copy of 8-bit weights between forward and backward",
        "recipes: 26 of 26 of Megatron-FSDP",
    ),
    of_megatron(
        "0.17.0",
        fully_narrow,
        "ddp.megatron_fsdp_grad_comm_dtype",
        "bf16",
        "gradients are sent in bf16, as the step counts; they are summed in fp32",
        "distributed_data_parallel_config.py; recipes of Nemotron-3 Ultra",
    ),
    of_bridge(
        "0.3.0",
        user_buffers.named,
        "model.tp_comm_overlap_cfg",
        user_buffers.name_of,
        "multiprocessors and splits of the products that overlap their collectives, as the makers "
        "have them by chip, width, tp, sequence and micro-batch",
        "training/comm_overlap.py; recipes: 40 of 40 of Llama with tensor parallelism",
    ),
    of_bridge(
        "0.6.0",
        narrow_further,
        "model.keep_mtp_spec_in_bf16",
        True,
        "the modules that predict further tokens stay in bf16",
        "recipes: 36 of 36 of Nemotron-3 with such modules",
    ),
)


def flag(option: Chosen) -> str:
    """An option as Megatron-LM's command line has it: --moe-router-topk 8."""
    word = f"--{option.name.rpartition('.')[2].replace('_', '-')}"
    if option.value is True:
        return word
    if isinstance(option.value, tuple):
        return f"{word} {' '.join(option.value)}"
    if isinstance(option.value, float):
        return f"{word} {option.value:g}"
    return f"{word} {option.value}"
