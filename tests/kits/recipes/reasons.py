"""Why a kit differs from a published recipe, setting by setting: a reason each, or none."""

from __future__ import annotations

import re
from typing import NamedTuple

from differ import Difference


class Reason(NamedTuple):
    """Why settings of a name differ."""

    name: str  # a pattern
    why: str


OFFLOAD = "plan.activation_offload, which the pinned plan of the comparison leaves out"
BUFFERS = (
    "registered user buffers under Megatron-FSDP: one recipe in nine has them, not judged here"
)
MEASURED = "differs from recipe to recipe of one model: a measured choice, either way"
ROUTER = "as the model was trained; the hub's configuration sets it where the recipe does not"
PAIRED = "comes with captured graphs that the plan, as this library reads it, does not have"
BRIDGE = (
    Reason("model.moe_router_(dtype|score_function|enable_expert_bias|topk_scaling.*)", ROUTER),
    Reason("model.moe_router_(num_groups|group_topk|pre_softmax)", ROUTER),
    Reason("model.(moe_grouped_gemm|moe_permute_fusion|cross_entropy_loss_fusion)", ROUTER),
    Reason("model.moe_shared_expert_gate", ROUTER),
    Reason("model.(rope_type|rotary_scaling_factor)", "plain positions by the fused kernel"),
    Reason(
        "model.apply_rope_fusion", "no rotary positions in these hybrids; GPT-OSS 20B by its own"
    ),
    Reason(
        "model.bias_dropout_fusion",
        "not set by Qwen3's converter: without biases and dropout the same sum in one kernel",
    ),
    Reason("model.bias_activation_fusion", "off by default in two converters, on in Megatron-LM"),
    Reason("model.hetereogenous_dist_checkpoint", "how checkpoints of unlike layers are written"),
    Reason("model.async_tensor_model_parallel_allreduce", "an old word; on by itself"),
    Reason("model.overlap_p2p_comm|model.batch_p2p_comm", "comm_overlap sets it by itself"),
    Reason("model.tp_comm_bootstrap_backend", "the default of comm_overlap"),
    Reason("model.moe_hybridep_num_sms", "16 or 128 in some recipes: " + MEASURED),
    Reason("model.moe_(deepep|flex_dispatcher)_num_sms", MEASURED),
    Reason("ddp.average_in_collective", "a mean in the collective or after it: the same sum"),
    Reason("dist.enable_megatron_core_experimental", "no setting of the kit is experimental"),
    Reason("model.calculate_per_token_loss", "a mean over tokens: the same where none is masked"),
    Reason(
        "optimizer.main_(grads|params)_dtype", "gradients are summed in fp32, as the memory counts"
    ),
    Reason(
        "optimizer.use_precision_aware_optimizer",
        "with all states in fp32, in two recipes: it keeps of the fp32 weights the lower halves "
        "alone, 2 bytes a weight that the memory counts",
    ),
    Reason("model.first_last_layers_bf16", "the number format's own setting stands above it"),
    Reason("model.moe_router_padding_for_quantization", MEASURED),
    Reason("model.(fine_grained_.*|cpu_offloading.*|min_offloaded.*|delay_offload.*)", OFFLOAD),
    Reason("env NVTE_CPU_OFFLOAD_V1", OFFLOAD),
    Reason("ddp.(nccl_ub|bucket_size|num_buckets|suggested_comm.*|fsdp_manual.*)", BUFFERS),
    Reason(
        "ddp.(num_distributed_optimizer_instances|outer_dp_.*)", "a plan of Megatron has no hsdp"
    ),
    Reason("env (NCCL_CTA_POLICY|NCCL_NVLS_ENABLE)", BUFFERS),
    Reason("ddp.fsdp_double_buffer", "Megatron-FSDP alone; MoE recipes leave it to the library"),
    Reason(
        "ddp.megatron_fsdp_(main|grad).*", "types are no text of Hydra; the defaults sum in fp32"
    ),
    Reason("ddp.(fsdp_all_gather.*|megatron_fsdp_cuda_graph_mode)", "one recipe"),
    Reason("dist.high_priority_stream_groups", "TORCH_NCCL_HIGH_PRIORITY does so for all"),
    Reason("model.(fused_single_qkv_rope|tp_only_amax_red|mla_down_proj_fusion)", MEASURED),
    Reason(
        "model.(moe_a2a_overlap|moe_ncclep.*|moe_hybridep_pad.*|external_cuda_graph)", "old words"
    ),
    Reason("model.moe_permute_fusion_into_hybridep", MEASURED),
    Reason("optimizer.apply_wd_to_qk_layernorm", "training: no design says what is decayed"),
    Reason(
        "model.fp8_output_proj", "the output head stays in 16 bit: the maker's choice of one run"
    ),
    Reason("env NVTE_NORM_(FWD|BWD)_USE_CUDNN", MEASURED),
    Reason("env NVTE_(FWD|BWD)_LAYERNORM_SM_MARGIN", "16 in 11 recipes: " + MEASURED),
    Reason("env NVTE_(DPA_FP8.*|ALLOW_NONDETERMINISTIC_ALGO)", "kernels are chosen for speed"),
    Reason("env (NUM_OF_.*|NVLINK_DOMAIN_SIZE|USE_MNNVL)", "HybridEP's own: read under it alone"),
    Reason("env (PYTORCH_CUDA_ALLOC_CONF|TORCH_NCCL_AVOID_RECORD_STREAMS)", PAIRED),
    Reason(
        "env CUDA_DEVICE_MAX_CONNECTIONS",
        "8 in three recipes of Qwen3 235B on H100; Megatron's parser asks for 1 with tensor "
        "parallelism below Blackwell",
    ),
    Reason("env NCCL_GRAPH_REGISTER", PAIRED),
    Reason("rng.te_rng_tracker|model.use_te_rng_tracker", PAIRED),
    Reason("model.cuda_graph_(impl|modules)", PAIRED),
    Reason("model.(moe_paged_stash.*|moe_expert_rank.*|moe_pad_experts.*)", PAIRED),
    Reason("model.(use_transformer_engine_op_fuser|moe_mlp_glu_interleave_size)", PAIRED),
    Reason("env (NVTE_CUTEDSL_.*|CUDNNFE_.*)", PAIRED),
    Reason("model.(high_priority_a2a_comm_stream|moe_hybridep_num_sms_preprocessing)", PAIRED),
    Reason("mixed_precision.fp8_dot_product_attention", "8 bit with captured iterations alone"),
    Reason(
        "mixed_precision.(fp8_param_gather|reuse_grad.*)|ddp.reuse_grad.*|model.fp8_param.*",
        "weights are gathered in the format that the step counts on (plan.fp8_param_gather)",
    ),
    Reason(
        "mixed_precision.(fp4_param_gather|first_last.*|num_layers_at.*)", "layers kept in bf16"
    ),
    Reason("model.delay_wgrad_compute", "with an exchange beside another micro-batch alone"),
    Reason("model.moe_router_fusion", "left off in GPT-OSS 20B, on in Nemotron-3 Ultra alone"),
    Reason(
        "model.cross_entropy_fusion_impl", "native in Nemotron-3 Ultra: megatron-core warns of te"
    ),
    Reason("ddp.overlap_(param_gather|grad_reduce)", "off in single recipes short of memory"),
    Reason("model.use_fused_weighted_squared_relu|model.keep_mtp_spec_in_bf16", MEASURED),
    Reason(
        "model.moe_(expert_capacity_factor|pad_expert_input_to_capacity)", "job.capacity_factor"
    ),
    Reason("model.moe_shared_expert_overlap", "beside the exchange, where no micro-batch is"),
)


ON_HOST = "names in host memory beside those that a plan has words for, or none where it fits"
NEWEST = "on in the newest runs on v6e (Llama 3.1), off in older ones: the kit follows the newest"
SPARSE = "the sparse cores sum gradients of copies; these runs hold one copy, whose sums are small"
TILES = "tiles of 2,048 in the newest runs, of 512 or 1,024 in others: " + MEASURED
DROPS = "the run drops tokens (job.capacity_factor); the kit is without dropped tokens"
TRIED = "set in single runs: " + MEASURED
MAXTEXT = (
    Reason("remat_policy|decoder_layer_input|(query|key|value|out)_proj|context|mlpwo", ON_HOST),
    Reason(
        "flag xla_(tpu_enable_all_experimental_scheduler_features|tpu_host_transfer.*)", ON_HOST
    ),
    Reason("flag xla_(tpu_enable_scheduler_memory.*|tpu_aggressive.*|max_concurrent.*)", ON_HOST),
    Reason("flag xla_(latency_hiding_scheduler_rerun|lhs_prioritize.*|should_.*)", ON_HOST),
    Reason("flag xla_tpu_(enable_ag_backward.*|scheduler_percent.*|iova_dma.*)", ON_HOST),
    Reason("optimizer_memory_host_offload", "stands in where the run does not fit by this model"),
    Reason("sa_block_\\w+|sa_use_fused_bwd_kernel", TILES),
    Reason("flag xla_tpu_(enable_data_parallel_all_reduce_opt|data_parallel_opt.*)", NEWEST),
    Reason("flag xla_tpu_(assign_all_reduce_scatter.*|relayout_group.*|use_minor_.*)", NEWEST),
    Reason(
        "flag xla_tpu_enable_(sparse_core_collective_offload_)?(all_gather|reduce_scatter)"
        "(_offload_tracing)?",
        "gathers and scatters on the sparse cores: " + TRIED,
    ),
    Reason("flag xla_sc_.*|flag xla_tpu_use_tc_device_shape_on_sc", SPARSE),
    Reason("flag xla_tpu_enable_(\\w+_offload_tracing|sparse_core_.*)", SPARSE),
    Reason("flag xla_tpu_enable_async_collective_fusion_fuse_(all_reduce|reduce_scatter)", SPARSE),
    Reason(
        "flag xla_(enable_async_all_gather|tpu_enable_async_collective_fusion.*"
        "|tpu_overlap_compute_collective_tc)",
        "left out in three runs whose gathers are the sparse cores'",
    ),
    Reason("sparse_matmul|megablox|capacity_factor", DROPS),
    Reason("use_iota_embed", "not in GPT-3, whose positions are learned, and five others"),
    Reason("attention", "what MaxText selects by itself on this chip"),
    Reason("use_qwix_quantization", "asks for qwix in place of AQT where a format is named"),
    Reason("allow_split_physical_axes", "asked for wherever an axis is no side of the slice"),
    Reason("custom_mesh", "a ring of 64 by 4 on one slice of 256 v6e: " + TRIED),
    Reason(
        "flag xla_tpu_scoped_vmem_limit_kib",
        "raised on v5e and v5p at 8,192 tokens, and as measured for Gemma; the kit: on v6e",
    ),
    Reason("weight_dtype|opt_type|gradient_clipping_threshold", "the run's own training, no speed"),
    Reason("num_vocab_tiling|tile_\\w+|use_custom_sort_vjp|fused_(qkv|mlp)", TRIED),
    Reason("flag xla_(jf_spmd_.*|enable_async_collective_permute|tpu_megacore_.*)", TRIED),
    Reason("flag xla_tpu_use_bundle_aware_cost_model_for_fusions", "GPT-3 alone: a slow fusion"),
    Reason("flag xla_gpu_(enable_pipelined|pipeline)_.*", "renamed in jaxlib 0.10: the same flags"),
    Reason("packing", "off beside context parallelism of 131,072 tokens in one run"),
)
COMPILED = (
    "blocks are compiled where the step counts on it (torchtitan's tables are measured so, by "
    "--compile.enable)"
)
TITAN = (
    Reason("compile\\.(enable|components)", COMPILED),
    Reason("compile.enable_async_tensor_parallel", "plan.tp_overlap"),
    Reason(
        "model.converters",
        "dense models: the output head stays in bf16, and the router's name matches nothing",
    ),
    Reason(
        "model.non_blocking_capacity_factor|training.disable_cuda_graphs",
        "a bound of tokens a rank lets graphs be captured and drops what is beyond; the kit drops "
        "none",
    ),
    Reason("model.moe_comm_backend|override.imports", "minimal_async_ep is for one device"),
    Reason("parallelism.enable_sequence_parallel", "no tensor parallelism: nothing to split"),
    Reason(
        "model.attn_backend",
        "varlen keeps documents of fine-tuning apart; under FlexAttention the same mask",
    ),
    Reason("optimizer", "the kit writes AdamW; the plan names Muon as what it cannot express"),
    Reason("parallelism.spmd_backend", "asked for by NVFP4's products and by experiments"),
)
TABLES = {"Megatron-Bridge": BRIDGE, "torchtitan": TITAN, "MaxText": MAXTEXT}


def reason_of(framework: str, one: Difference) -> str:
    """The reason for one difference; "" for none."""
    for row in TABLES[framework]:
        if re.fullmatch(row.name, one.name):
            return row.why
    return ""
