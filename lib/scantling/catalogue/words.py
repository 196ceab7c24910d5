"""The words that a design file may use where it must choose one of a few."""

PRECISIONS = (
    "bf16",
    "fp16",
    "fp8",
    "fp8-row",
    "fp8-current",
    "fp8-block",
    "mxfp8",
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
CP_TYPES = ("ring", "all-gather", "ulysses")
OFFLOADS = ("none", "optimizer", "optimizer+params")
MLPS = ("gelu", "squared-relu", "relu", "swiglu", "geglu")
ATTENTIONS = ("mha", "gqa", "mqa", "mla")
SURVIVE = ("node", "rack", "pod")
LAYER_SPLITS = ("even", "balanced")
