"""Why a kit differs from a published recipe, setting by setting: a reason each, or none."""

from __future__ import annotations

import re
from typing import Any, NamedTuple


class Reason(NamedTuple):
    """Why settings of a name differ."""

    name: str  # a pattern
    why: str


OFFLOAD = "a plan has no word for activations in host memory"
BUFFERS = (
    "registered user buffers under Megatron-FSDP: one recipe in nine has them, not judged here"
)
MEASURED = "differs from recipe to recipe of one model: a measured choice, either way"
ROUTER = "as the model was trained; the hub's configuration sets it where the recipe does not"
PAIRED = "comes with captured graphs that the plan, as this library reads it, does not have"
REASONS = (
    Reason("model.moe_router_(dtype|score_function|enable_expert_bias|topk_scaling.*)", ROUTER),
    Reason("model.moe_router_(num_groups|group_topk|pre_softmax)", ROUTER),
    Reason("model.(moe_grouped_gemm|moe_permute_fusion|cross_entropy_loss_fusion)", ROUTER),
    Reason("model.moe_shared_expert_gate", ROUTER),
    Reason("model.(rope_type|rotary_scaling_factor)", "plain positions by the fused kernel"),
    Reason(
        "model.apply_rope_fusion", "no rotary positions in these hybrids; GPT-OSS 20B by its own"
    ),
    Reason("model.overlap_p2p_comm|model.batch_p2p_comm", "comm_overlap sets it by itself"),
    Reason("model.tp_comm_overlap_cfg", "sizes of user buffers, measured for one width and chip"),
    Reason("model.tp_comm_bootstrap_backend", "the default of comm_overlap"),
    Reason("model.moe_hybridep_num_sms", "16 or 128 in some recipes: " + MEASURED),
    Reason("model.moe_(deepep|flex_dispatcher)_num_sms", MEASURED),
    Reason("ddp.average_in_collective", "a mean in the collective or after it: the same sum"),
    Reason("dist.enable_megatron_core_experimental", "no setting of the kit is experimental"),
    Reason("model.calculate_per_token_loss", "a mean over tokens: the same where none is masked"),
    Reason(
        "optimizer.main_(grads|params)_dtype", "gradients are summed in fp32, as the memory counts"
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


def reason_of(name: str, kind: str, recipe: Any, kit: Any) -> str:
    """The reason for one difference; "" for none."""
    for row in REASONS:
        if re.fullmatch(row.name, name):
            return row.why
    return ""
