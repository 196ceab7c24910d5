"""bridge.overrides: the keys of Megatron-Bridge's configuration as Hydra overrides, one a line.

What a release of Megatron-Bridge calls its options stands here alone.
"""

from scantling.catalogue.models.patterns import layers_of
from scantling.catalogue.words import Offload, Precision, Recompute, Sharding

from ..launch_plan import SEED, LaunchPlan, norm_epsilon, rotary_base
from ..quote import hydra
from ..recipe_settings import Chosen, chosen
from ..training_schedule import WEIGHT_DECAY, Schedule, schedule
from ..values import RunValues
from . import megatron_core as core
from .megatron_settings import OPTIONS

RECIPES = {
    "bf16": "bf16_mixed",
    "fp16": "fp16_mixed",
    "fp8": "bf16_with_fp8_delayed_scaling_mixed",
    "fp8-current": "bf16_with_fp8_current_scaling_mixed",
    "fp8-block": "bf16_with_fp8_subchannel_scaling_mixed",
    "mxfp8": "bf16_with_mxfp8_mixed",
    "nvfp4": "bf16_with_nvfp4_mixed",
}
GATHERED = ("fp8", "fp8-current", "mxfp8")  # whose preset gathers weights in 8 bit


def overrides(launch: LaunchPlan, run: RunValues) -> list[str]:
    """All lines of bridge.overrides."""
    plan = schedule(launch, run)
    return [
        *shape(launch),
        *hybrid(launch),
        *attention(launch),
        *experts(launch),
        *further_tokens(launch),
        *degrees(launch),
        *kernels(launch),
        *recompute(launch),
        *sharding(launch),
        *optimizer(launch),
        *formats(launch),
        *training(launch, plan),
        *checkpoints(launch),
        *constants(launch),
        *(override(option) for option in chosen(OPTIONS, launch)),
    ]


def override(option: Chosen) -> str:
    """An option as Hydra reads it."""
    if isinstance(option.value, tuple):
        return f"{option.name}=[{','.join(option.value)}]"
    return f"{option.name}={hydra(option.value)}"


def shape(launch: LaunchPlan) -> list[str]:
    """Widths, vocabulary, norms and positions."""
    m = launch.model
    blocks = core.blocks_of_layer(layers_of(m.pattern))
    return [
        f"model.num_layers={m.layers * blocks}",
        f"model.hidden_size={m.hidden}",
        f"model.ffn_hidden_size={m.ffn_hidden or m.expert_ffn_hidden or m.hidden}",
        f"model.num_attention_heads={m.heads or 1}",
        f"model.seq_length={launch.phase.seq_len}",
        f"model.vocab_size={m.vocab}",
        "model.make_vocab_size_divisible_by=1",
        f"model.normalization={hydra('LayerNorm' if m.norm_bias else 'RMSNorm')}",
        f"model.gated_linear_unit={hydra(m.mlp in ('swiglu', 'geglu'))}",
        f"model.add_bias_linear={hydra(m.mlp_bias or m.out_bias)}",
        f"model.position_embedding_type={hydra(core.position_embedding(m))}",
        f"model.share_embeddings_and_output_weights={hydra(m.tied_embeddings)}",
    ]


def hybrid(launch: LaunchPlan) -> list[str]:
    """Layers that are not all attention before a feed-forward."""
    m = launch.model
    layers = layers_of(m.pattern)
    linear = core.linear_layers(layers)
    sparse = bool(m.index_heads and layers)
    out = []
    if core.stacked(layers):
        out += [
            "model.is_hybrid_model=true",
            f"model.hybrid_layer_pattern={hydra(core.hybrid_pattern(launch))}",
        ]
        if core.scans(layers):
            out += [
                f"model.mamba_state_dim={m.state_size}",
                f"model.mamba_head_dim={m.ssm_head_dim}",
                f"model.mamba_num_groups={m.groups}",
                f"model.mamba_num_heads={m.ssm_heads}",
                f"model.mamba_chunk_size={m.chunk}",
            ]
    elif 1 in linear:
        out += [
            "model.experimental_attention_variant='gated_delta_net'",
            f"model.linear_attention_freq={_numbers(linear)}",
        ]
    elif sparse:
        out.append("model.experimental_attention_variant='dsa'")
    if sparse:
        out += [
            f"model.dsa_indexer_n_heads={m.index_heads}",
            f"model.dsa_indexer_head_dim={m.index_dim}",
            f"model.dsa_indexer_topk={m.index_topk}",
            "model.dsa_indexer_loss_coeff=0.01",
            "model.dsa_indexer_use_sparse_loss=true",
        ]
    if 1 in linear:
        out += [
            f"model.linear_conv_kernel_dim={m.conv}",
            f"model.linear_key_head_dim={m.lin_k_dim}",
            f"model.linear_value_head_dim={m.lin_v_dim}",
            f"model.linear_num_key_heads={m.lin_k_heads}",
            f"model.linear_num_value_heads={m.lin_v_heads}",
        ]
    return out


def _numbers(values: list[int]) -> str:
    return f"[{','.join(map(str, values))}]"


def attention(launch: LaunchPlan) -> list[str]:
    """Heads, latent or grouped, their norms, windows and biases."""
    m = launch.model
    out = []
    if m.attention_gate:
        out.append("model.attention_output_gate=true")
    if m.attention == "mla":
        out += [
            f"model.q_lora_rank={hydra(m.q_lora or None)}",
            "model.multi_latent_attention=true",
            f"model.kv_lora_rank={m.kv_lora}",
            f"model.qk_head_dim={m.qk_nope}",
            f"model.qk_pos_emb_head_dim={m.qk_rope}",
            f"model.v_head_dim={m.v_head_dim}",
        ]
    else:
        out += [
            f"model.num_query_groups={m.kv_heads or 1}",
            f"model.kv_channels={m.head_dim or m.hidden}",
        ]
    if m.qk_norm or m.attention == "mla":
        out.append("model.qk_layernorm=true")
    if m.sinks:
        out.append("model.softmax_type='learnable'")
    if m.window and m.windowed_layers:
        out.append(f"model.window_size=[{m.window - 1},0]")
        if m.windowed_layers < m.layers:
            every = m.layers // (m.layers - m.windowed_layers)
            out.append(f"model.window_attn_skip_freq={every}")
    if m.qkv_bias and not (m.mlp_bias or m.out_bias):
        out.append("model.add_qkv_bias=true")
    return out


def experts(launch: LaunchPlan) -> list[str]:
    """Experts: their widths, how tokens reach them, the router."""
    m = launch.model
    if not m.is_moe:
        return []
    out = [
        f"model.num_moe_experts={m.experts}",
        f"model.moe_router_topk={m.top_k}",
        f"model.moe_ffn_hidden_size={m.expert_ffn_hidden}",
        "model.moe_grouped_gemm=true",
        *dispatch(launch),
        "model.moe_permute_fusion=true",
        "model.moe_router_dtype='fp32'",
        f"model.expert_model_parallel_size={launch.plan.ep}",
        f"model.expert_tensor_parallel_size={launch.plan.etp}",
        *router(launch),
    ]
    if m.latent:
        out.append(f"model.moe_latent_size={m.latent}")
    if m.shared_gate:
        out.append("model.moe_shared_expert_gate=true")
    if m.moe_layers < m.layers and not core.stacked(layers_of(m.pattern)):
        out.append(f"model.moe_layer_freq={_numbers(core.moe_layers(m))}")
    if m.shared_ffn_hidden:
        out.append(f"model.moe_shared_expert_intermediate_size={m.shared_ffn_hidden}")
    return out


def dispatch(launch: LaunchPlan) -> list[str]:
    """How tokens travel to experts and back."""
    does = launch.does
    deep = core.dispatcher(launch)
    captured = core.graphs(launch)
    if deep:
        out = [
            "model.moe_token_dispatcher_type='flex'",
            f"model.moe_flex_dispatcher_backend={hydra(deep)}",
        ]
    else:
        out = [f"model.moe_token_dispatcher_type={hydra(core.plain_dispatcher(launch))}"]
    if does.capacity_factor > 0:
        out.append(f"model.moe_expert_capacity_factor={does.capacity_factor}")
        if deep != "deepep":
            out.append("model.moe_pad_expert_input_to_capacity=true")
    if launch.routes_at_random:
        out.append(f"{launch.framework.forces_even_routing}=true")
    if core.overlaps_exchange(launch):
        out += [
            "model.overlap_moe_expert_parallel_comm=true",
            f"model.delay_wgrad_compute={hydra(captured != 'layers')}",
        ]
    if captured == "whole":
        out += [
            "model.moe_pad_experts_for_cuda_graph_inference=true",
            "model.moe_paged_stash=true",
            "model.moe_expert_rank_capacity_factor=1.5",
            "model.moe_paged_stash_buffer_size_factor_cuda=1.2",
            "model.moe_paged_stash_buffer_size_factor_cpu=1.0",
        ]
    return out


def router(launch: LaunchPlan) -> list[str]:
    """The router's scores and how its load is balanced."""
    m = launch.model
    if m.router_buffers:
        return [
            "model.moe_router_score_function='sigmoid'",
            "model.moe_router_enable_expert_bias=true",
            "model.moe_router_load_balancing_type='seq_aux_loss'",
            "model.moe_aux_loss_coeff=0.0001",
        ]
    return ["model.moe_router_load_balancing_type='aux_loss'", "model.moe_aux_loss_coeff=0.001"]


def further_tokens(launch: LaunchPlan) -> list[str]:
    """Modules that predict further tokens."""
    m = launch.model
    if not m.mtp_layers:
        return []
    out = [f"model.mtp_num_layers={core.further_modules(m)}"]
    if m.mtp_repeats > 1:
        out.append("model.mtp_use_repeated_layer=true")
    return out


def degrees(launch: LaunchPlan) -> list[str]:
    """Degrees of parallelism, and layers of the stages."""
    p = launch.plan
    hybrid_model = core.stacked(layers_of(launch.model.pattern))
    out = [
        f"model.tensor_model_parallel_size={p.tp}",
        f"model.pipeline_model_parallel_size={p.pp}",
        f"model.context_parallel_size={p.cp}",
        f"model.sequence_parallel={hydra(p.sp)}",
    ]
    if p.cp > 1:
        out.append(f"model.cp_comm_type={hydra(core.CP[p.cp_type])}")
    if p.pp > 1 and core.uneven(launch) and not hybrid_model:
        out.append(f"model.pipeline_model_parallel_layout={hydra(core.layout(launch))}")
    if p.pp > 1 and p.vpp > 1:
        out.append(f"model.virtual_pipeline_model_parallel_size={p.vpp}")
        if launch.does.p2p_overlap > 0:
            out += ["model.overlap_p2p_comm=true", "model.batch_p2p_comm=false"]
    return out


def kernels(launch: LaunchPlan) -> list[str]:
    """Products that overlap their collectives, and captured graphs."""
    out = []
    if core.overlaps_tensor_products(launch):
        out += ["model.tp_comm_overlap=true", "model.tp_comm_bootstrap_backend='nccl'"]
    captured = core.graphs(launch)
    if captured == "whole":
        out.append("model.cuda_graph_impl='full_iteration'")
    if captured == "layers":
        out += [
            "model.cuda_graph_impl='transformer_engine'",
            f"model.cuda_graph_modules=[{','.join(core.captured_modules(launch))}]",
        ]
    if captured:
        out += [
            "rng.te_rng_tracker=true",
            "model.use_te_rng_tracker=true",
            "rerun_state_machine.check_for_nan_in_loss=false",
            "ddp.check_for_nan_in_grad=false",
        ]
    return out


def recompute(launch: LaunchPlan) -> list[str]:
    """What the backward pass computes again."""
    if launch.plan.recompute == Recompute.FULL:
        method, layers = core.full_recompute(launch)
        return [
            "model.recompute_granularity='full'",
            f"model.recompute_method={hydra(method)}",
            f"model.recompute_num_layers={layers}",
        ]
    if launch.plan.recompute == Recompute.SELECTIVE:
        modules = ",".join(core.recompute_modules(launch))
        return ["model.recompute_granularity='selective'", f"model.recompute_modules=[{modules}]"]
    return []


def sharding(launch: LaunchPlan) -> list[str]:
    """What data-parallel ranks share, on which of several sites. States on the host are the
    distributed optimizer's, of one rank too."""
    p = launch.plan
    shares = p.sharding != Sharding.NONE
    fsdp = p.sharding in core.FSDP_STRATEGY
    muon = launch.phase.optimizer == "muon"
    low = p.offload == Offload.OPTIMIZER or launch.phase.optimizer == "adamw-bf16"
    distributed = hydra((shares or low) and not muon)
    out = [
        f"ddp.use_distributed_optimizer={distributed}",
        f"optimizer.use_distributed_optimizer={distributed}",
        f"ddp.overlap_grad_reduce={hydra(shares)}",
        f"ddp.overlap_param_gather={hydra(shares and not muon)}",
        f"ddp.use_megatron_fsdp={hydra(fsdp)}",
        "ddp.data_parallel_sharding_strategy="
        + hydra(core.FSDP_STRATEGY.get(p.sharding, "no_shard")),
    ]
    if launch.sync:
        out += [
            f"ddp.num_distributed_optimizer_instances={launch.cluster.sites if shares else 1}",
            f"dist.use_tp_pp_dp_mapping={hydra(p.pp > 1)}",
        ]
    if fsdp:
        out += ["model.gradient_accumulation_fusion=false", "ddp.average_in_collective=false"]
    if p.offload == Offload.OPTIMIZER:
        out += [
            "optimizer.optimizer_cpu_offload=true",
            "optimizer.optimizer_offload_fraction=1.0",
            "optimizer.use_precision_aware_optimizer=true",
        ]
    return out


def optimizer(launch: LaunchPlan) -> list[str]:
    """The optimizer where it is not the recipe's own, Adam with fp32 moments. Formats of moments
    are set in pretrain_bridge.py: they are no text. Muon is as Megatron-Bridge has it
    (distributed_muon_with_cosine_annealing): whole matrices over the ranks, the rest by Adam."""
    name = launch.phase.optimizer
    if name == "muon":
        whole = "dist_muon" if launch.plan.sharding != Sharding.NONE else "muon"
        return [
            f"optimizer.optimizer={hydra(whole)}",
            "optimizer.muon_momentum=0.95",
            "optimizer.muon_nesterov=true",
            "optimizer.muon_extra_scale_factor=1.0",
            "optimizer.muon_fp32_matmul_prec='medium'",
            "optimizer.muon_scalar_optimizer='adam'",
            "optimizer.muon_scale_mode='spectral'",
            "optimizer.muon_num_ns_steps=5",
            "optimizer.muon_tp_mode='blockwise'",
        ]
    if name == "sgd":
        return ["optimizer.optimizer='sgd'"]
    if name == "adamw-bf16":
        return ["optimizer.use_precision_aware_optimizer=true"]
    return []


def formats(launch: LaunchPlan) -> list[str]:
    """Number formats of products and gradients."""
    precision = launch.phase.precision
    out = [f"mixed_precision={hydra(RECIPES[precision])}"]
    if core.narrow(launch):
        out += ["mixed_precision.grad_reduce_in_fp32=false", "ddp.grad_reduce_in_fp32=false"]
    if core.low_attention(launch):
        out.append("mixed_precision.fp8_dot_product_attention=true")
    if precision in GATHERED and not core.gathers_low(launch):
        out.append("mixed_precision.fp8_param_gather=false")
        if precision == Precision.MXFP8:
            out.append("mixed_precision.reuse_grad_buf_for_mxfp8_param_ag=false")
    first, last = core.kept_layers(launch)
    if precision == Precision.FP8_CURRENT and not (first or last):
        out.append("mixed_precision.first_last_layers_bf16=false")
    if precision == Precision.NVFP4 and not core.gathers_four(launch):
        out.append("mixed_precision.fp4_param_gather=false")
    if first or last:
        out += [
            "mixed_precision.first_last_layers_bf16=true",
            f"mixed_precision.num_layers_at_start_in_bf16={first}",
            f"mixed_precision.num_layers_at_end_in_bf16={last}",
        ]
    return out


def training(launch: LaunchPlan, plan: Schedule) -> list[str]:
    """Steps, batch, data and learning rate."""
    return [
        f"train.train_iters={plan.steps}",
        f"train.global_batch_size={launch.phase.global_batch}",
        f"train.micro_batch_size={launch.plan.micro_batch}",
        "train.exit_signal_handler=true",
        f"dataset.seq_length={launch.phase.seq_len}",
        "tokenizer.tokenizer_type='NullTokenizer'",
        f"tokenizer.vocab_size={launch.model.vocab}",
        f"optimizer.lr={plan.lr}",
        f"optimizer.min_lr={plan.lr / 10}",
        f"scheduler.lr_warmup_iters={plan.warm_up}",
        # the scheduler writes its own over the optimizer's in every step (OptimizerParamScheduler),
        # and the recipe that the kit starts from has another there: 0.033
        f"optimizer.weight_decay={WEIGHT_DECAY}",
        f"scheduler.start_weight_decay={WEIGHT_DECAY}",
        f"scheduler.end_weight_decay={WEIGHT_DECAY}",
    ]


def checkpoints(launch: LaunchPlan) -> list[str]:
    """Saves in RUN_DIR, and copies near the devices."""
    fsdp = launch.plan.sharding in core.FSDP_STRATEGY
    out = [
        f"checkpoint.save_interval={launch.save_steps}",
        f"checkpoint.ckpt_format={hydra('fsdp_dtensor' if fsdp else 'torch_dist')}",
        "checkpoint.async_save=true",
        "checkpoint.use_persistent_ckpt_worker=true",
    ]
    if len(launch.tiers) > 1 and not fsdp:
        out += [
            "checkpoint.non_persistent_ckpt_type='local'",
            f"checkpoint.non_persistent_save_interval={launch.near_save_steps}",
            f"checkpoint.non_persistent_local_ckpt_dir='/dev/shm/{launch.slug}'",
        ]
        if "L1" in [tier["tier"] for tier in launch.tiers]:
            out += [
                "checkpoint.replication=true",
                f"checkpoint.replication_jump={launch.per_node}",
                "checkpoint.replication_factor=2",
            ]
    return [*out, f"checkpoint.most_recent_k={launch.keep}"]


def constants(launch: LaunchPlan) -> list[str]:
    """What a design does not say of training, and the model's constants."""
    m = launch.model
    out = [
        "model.attention_dropout=0.0",
        "model.hidden_dropout=0.0",
        "validation.eval_iters=0",
        f"dist.distributed_timeout_minutes={launch.first_hang_s // 60}",
        f"dist.distributed_timeout_seconds_after_init={launch.hang_s}",
        f"rng.seed={SEED}",
        f"dataset.random_seed={SEED}",
        f"model.layernorm_epsilon={norm_epsilon(m)}",
    ]
    if core.position_embedding(m) == "rope":
        out.append(f"model.rotary_base={rotary_base(m)}")
    return out
