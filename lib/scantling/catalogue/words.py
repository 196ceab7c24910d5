"""The words that a design file may use where it must choose one of a few."""

PRECISIONS = (
    "bf16",
    "fp16",
    "fp8",
    "fp8-row",
    "fp8-current",
    "fp8-block",
    "int8",
    "mxfp8",
    "mxfp4",
    "nvfp4",
    "fp32",
)
SHARDINGS = ("none", "zero1", "zero2", "zero3", "hsdp")
SCHEDULES = (
    "gpipe",
    "1f1b",
    "interleaved",
    "zb-1p",
    "zb-2p",
    "zb-v",
    "v-half",
    "v-min",
    "dualpipe",
    "dualpipe-v",
)
RECOMPUTES = ("none", "selective", "full")
# what `selective` may repeat, and whole layers
MODULES = ("core_attn", "mla_up_proj", "norm", "mlp_act", "moe", "layers")
CP_TYPES = ("ring", "all-gather", "ulysses")
OFFLOADS = ("none", "optimizer", "optimizer+params")
MLPS = ("gelu", "squared-relu", "relu", "swiglu", "geglu")
ATTENTIONS = ("mha", "gqa", "mqa", "mla")
GATES = ("", "head", "width")  # output gates of attention
RENTS = ("on-demand", "reserved", "spot")
SURVIVE = ("device", "node", "rack", "pod")
RECOVERIES = ("restart", "in-place", "elastic")
TOPOLOGIES = ("fat-tree", "rail-optimized", "rail-only", "multi-plane", "dragonfly", "dragonfly+")
DEDUPS = ("exact", "near")
SYNCS = ("synchronous", "local-steps")
# bytes a parameter: fp32 weights of the last average, and a momentum
OUTERS = {"nesterov": 8.0, "sgd": 4.0}
LAYER_SPLITS = ("even", "balanced")
EFFORTS = ("tuned", "typical")
ROUTINGS = ("natural", "forced")
CUDA_GRAPHS = ("none", "layer", "full")
TP_OVERLAPS = ("none", "async", "userbuffer")
GRADIENTS = ("bf16", "fp32")
DISPATCHERS = ("allgather", "alltoall", "deepep", "hybridep")
