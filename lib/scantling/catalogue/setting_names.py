"""What frameworks call the settings of a run."""

from enum import StrEnum


class Setting(StrEnum):
    """A setting that a log may state."""

    TP = "tp"
    PP = "pp"
    VPP = "vpp"
    CP = "cp"
    EP = "ep"
    DP = "dp"
    DEVICES = "devices"
    NODES = "nodes"
    MESH = "mesh"
    LAST_LOCAL_RANK = "last_local_rank"
    DEVICES_PER_NODE = "devices_per_node"
    SEQ_LEN = "seq_len"
    MICRO_BATCH = "micro_batch"
    GLOBAL_BATCH = "global_batch"
    ACCUMULATION = "accumulation"
    SP = "sp"
    RECOMPUTE = "recompute"
    RECOMPUTE_METHOD = "recompute_method"
    RECOMPUTE_LAYERS = "recompute_layers"
    ZERO_STAGE = "zero_stage"
    SHARDED_OPTIMIZER = "sharded_optimizer"
    TOTAL_BATCH_TOKENS = "total_batch_tokens"
    PRECISION = "precision"
    FP4 = "fp4"
    FP8 = "fp8"
    FP8_RECIPE = "fp8_recipe"
    BF16 = "bf16"
    FP16 = "fp16"
    MODEL = "model"
    LAYERS = "layers"
    HIDDEN = "hidden"
    HEADS = "heads"
    KV_HEADS = "kv_heads"
    FFN_HIDDEN = "ffn_hidden"
    VOCAB = "vocab"
    EXPERTS = "experts"
    TOP_K = "top_k"
    EXPERT_FFN_HIDDEN = "expert_ffn_hidden"
    SWIGLU = "swiglu"
    ACCELERATOR = "accelerator"
    RELEASE = "release"
    STEPS_PER_SECOND = "steps_per_second"  # over a whole run, evaluation included


# the names of each, best first; "-" and "_" are one, case does not count
NAMES: dict[Setting, tuple[str, ...]] = {
    Setting.TP: (
        "tensor_model_parallel_size",
        "tensor_parallelism",
        "tensor_parallel_size",
        "tensor_parallel_degree",
        "model_parallel_size",
        "model_parallel",
        "tp_size",
        "ici_tensor_parallelism",
    ),
    Setting.PP: (
        "pipeline_model_parallel_size",
        "pipeline_parallelism",
        "pipeline_parallel_size",
        "pipe_parallel_size",
        "pipeline_parallel_degree",
        "pp_size",
        "ici_pipeline_parallelism",
    ),
    Setting.VPP: ("virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"),
    Setting.CP: (
        "context_parallel_size",
        "context_parallelism",
        "context_parallel_degree",
        "cp_size",
    ),
    Setting.EP: (
        "expert_model_parallel_size",
        "expert_parallelism",
        "expert_parallel_degree",
        "ep_size",
        "ici_expert_parallelism",
    ),
    Setting.DP: ("data_parallel_size", "dp_size"),
    Setting.DEVICES: (
        "devices_total",
        "world_size",
        "global_num_gpus",
        "num_gpus",
        "n_devices",
        "number_of_ranks",
    ),
    Setting.NODES: ("num_nodes", "nnodes", "n_nodes", "number_of_nodes", "slurm_nnodes"),
    Setting.MESH: ("mesh",),
    Setting.LAST_LOCAL_RANK: ("last_local_rank",),
    Setting.DEVICES_PER_NODE: (
        "num_gpus_per_node",
        "nproc_per_node",
        "n_gpus_per_node",
        "gpus_per_node",
        "accelerators_per_node",
        "devices",
        "dgxngpu",
    ),
    Setting.SEQ_LEN: (
        "seq_length",
        "max_sequence_length",
        "encoder_seq_length",
        "seq_len",
        "max_seq_length",
        "max_target_length",
        "max_seq_len",
        "sequence_length",
        "cutoff_len",
        "model_max_length",
        "block_size",
    ),
    Setting.MICRO_BATCH: (
        "micro_batch_size",
        "train_micro_batch_size_per_gpu",
        "local_batch_size",
        "per_device_train_batch_size",
        "per_device_batch_size",
        "device_batch_size",
        "micro_bsz",
    ),
    Setting.GLOBAL_BATCH: (
        "global_batch_size",
        "global_batch_size_to_train_on",
        "global_train_batch_size",
        "total_train_batch_size",
        "train_batch_size",
    ),
    Setting.ACCUMULATION: ("gradient_accumulation_steps", "accumulate_grad_batches", "micro_num"),
    Setting.SP: ("sequence_parallel",),
    Setting.RECOMPUTE: (
        "recompute_granularity",
        "activations_checkpoint_granularity",
        "gradient_checkpointing",
        "checkpoint_activations",
        "remat_policy",
    ),
    Setting.RECOMPUTE_METHOD: ("recompute_method", "activations_checkpoint_method"),
    Setting.RECOMPUTE_LAYERS: ("recompute_num_layers", "activations_checkpoint_num_layers"),
    Setting.ZERO_STAGE: ("zero_optimization_stage", "zero_stage"),
    Setting.SHARDED_OPTIMIZER: ("use_distributed_optimizer",),
    Setting.TOTAL_BATCH_TOKENS: ("total_batch_tokens", "train_batch_tokens", "total_batch_size"),
    Setting.PRECISION: (
        "lowest_numerical_precision_linear",
        "precision",
        "params_dtype",
        "mixed_precision",
        "torch_dtype",
        "dtype",
    ),
    Setting.FP4: ("fp4", "fp4_format"),
    Setting.FP8: ("fp8", "fp8_format"),
    Setting.FP8_RECIPE: ("fp8_recipe",),
    Setting.BF16: ("bf16",),
    Setting.FP16: ("fp16", "fp16_enabled"),
    Setting.MODEL: (
        "model_name",
        "submission_benchmark",
        "model_name_or_path",
        "name_or_path",
        "pretrained_model_name_or_path",
        "base_model",
    ),
    Setting.LAYERS: ("num_layers", "n_layer", "num_hidden_layers"),
    Setting.HIDDEN: ("hidden_size", "n_embd", "hidden_dim"),
    Setting.HEADS: ("num_attention_heads", "n_head"),
    Setting.KV_HEADS: ("num_query_groups", "num_key_value_heads"),
    Setting.FFN_HIDDEN: ("ffn_hidden_size", "intermediate_size"),
    Setting.VOCAB: ("padded_vocab_size", "vocab_size"),
    Setting.EXPERTS: ("num_experts", "num_moe_experts", "num_local_experts", "n_routed_experts"),
    Setting.TOP_K: ("moe_router_topk", "num_experts_per_tok", "moe_top_k"),
    Setting.EXPERT_FFN_HIDDEN: ("moe_ffn_hidden_size", "moe_intermediate_size"),
    Setting.SWIGLU: ("swiglu", "gated_linear_unit", "activation"),
    Setting.ACCELERATOR: ("accelerator_name", "submission_platform", "accelerator_model_name"),
    Setting.RELEASE: ("release",),
    Setting.STEPS_PER_SECOND: ("train_steps_per_second",),
}
SETTING_OF = {name: setting for setting, names in NAMES.items() for name in names}
# settings that are words; the others are numbers
TEXTS = frozenset(
    {
        Setting.PRECISION,
        Setting.FP4,
        Setting.FP8,
        Setting.FP8_RECIPE,
        Setting.BF16,
        Setting.FP16,
        Setting.SWIGLU,
        Setting.MODEL,
        Setting.ACCELERATOR,
        Setting.SP,
        Setting.RECOMPUTE,
        Setting.RECOMPUTE_METHOD,
        Setting.SHARDED_OPTIMIZER,
    }
)
NOT_SET = frozenset({"", "none", "false", "no", "null", "0"})  # a switch that is off
