"""The words of plans, steps and memory, each list once and in one order: enums where the program
decides by them, tuples where a design file may choose."""

from enum import StrEnum


class Precision(StrEnum):
    """Recipes of the matrix products."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    FP8_ROW = "fp8-row"
    FP8_CURRENT = "fp8-current"
    FP8_BLOCK = "fp8-block"
    INT8 = "int8"
    MXFP8 = "mxfp8"
    MXFP4 = "mxfp4"
    NVFP4 = "nvfp4"
    FP32 = "fp32"


WIDE_PRECISIONS = (Precision.BF16, Precision.FP16, Precision.FP32)  # of 16 bits and more
NARROW_PRECISIONS = tuple(name for name in Precision if name not in WIDE_PRECISIONS)


class Sharding(StrEnum):
    """What data parallelism shares: nothing, optimizer states, + gradients, + weights, the same
    inside groups."""

    NONE = "none"
    ZERO1 = "zero1"
    ZERO2 = "zero2"
    ZERO3 = "zero3"
    HSDP = "hsdp"


class Schedule(StrEnum):
    """Pipeline schedules."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"
    ZB_1P = "zb-1p"
    ZB_2P = "zb-2p"
    ZB_V = "zb-v"
    V_HALF = "v-half"
    V_MIN = "v-min"
    DUALPIPE = "dualpipe"
    DUALPIPE_V = "dualpipe-v"


class Recompute(StrEnum):
    """What the backward computes again."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class RecomputeModule(StrEnum):
    """What `selective` may repeat, and whole layers."""

    CORE_ATTN = "core_attn"
    MLA_UP_PROJ = "mla_up_proj"
    NORM = "norm"
    MLP_ACT = "mlp_act"
    MOE = "moe"
    LAYERS = "layers"


class OffloadModule(StrEnum):
    """What of a layer's activations is sent to the host: the inputs of its modules, in the words of
    Megatron-Core's fine-grained offload; `attn_norm` reads the layer's own input."""

    ATTN_NORM = "attn_norm"
    QKV_LINEAR = "qkv_linear"
    CORE_ATTN = "core_attn"
    ATTN_PROJ = "attn_proj"
    MLP_NORM = "mlp_norm"
    MLP_FC1 = "mlp_fc1"
    MLP_ACT = "mlp_act"
    MLP_FC2 = "mlp_fc2"
    EXPERT_FC1 = "expert_fc1"
    MOE_ACT = "moe_act"
    LAYERS = "layers"


class GraphModule(StrEnum):
    """What captured graphs hold, in the words of Megatron-Core (CudaGraphModule; before,
    CudaGraphScope)."""

    ATTN = "attn"
    MLP = "mlp"
    MOE = "moe"
    MOE_ROUTER = "moe_router"
    MOE_PREPROCESS = "moe_preprocess"
    MAMBA = "mamba"
    FULL_ITERATION = "full_iteration"


class Remat(StrEnum):
    """What MaxText keeps of a layer, by the names of its policies (src/maxtext/layers/decoders.py,
    get_remat_policy)."""

    FULL = "full"
    MINIMAL = "minimal"
    MINIMAL_WITH_CONTEXT = "minimal_with_context"
    SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP = "save_dot_with_context_except_mlp"
    SAVE_DOT_EXCEPT_MLP = "save_dot_except_mlp"
    SAVE_DOT_EXCEPT_MLPWI = "save_dot_except_mlpwi"
    SAVE_QKV_PROJ = "save_qkv_proj"
    SAVE_OUT_PROJ = "save_out_proj"
    MINIMAL_OFFLOADED = "minimal_offloaded"
    QKV_PROJ_OFFLOADED = "qkv_proj_offloaded"


class CpType(StrEnum):
    """How context parallelism exchanges keys and values."""

    RING = "ring"
    ALL_GATHER = "all-gather"
    ULYSSES = "ulysses"


class Moments(StrEnum):
    """Number format of the optimizer's moments."""

    FP32 = "fp32"
    BF16 = "bf16"
    INT8 = "int8"


class Offload(StrEnum):
    """What lives in host memory."""

    NONE = "none"
    OPTIMIZER = "optimizer"
    OPTIMIZER_PARAMS = "optimizer+params"


class Dispatcher(StrEnum):
    """How tokens travel to experts."""

    ALLGATHER = "allgather"
    ALLTOALL = "alltoall"
    DEEPEP = "deepep"
    HYBRIDEP = "hybridep"
    UCCL = "uccl"


class Vendor(StrEnum):
    """Whose words the templates of kits speak."""

    NVIDIA = "nvidia"
    AMD = "amd"
    TPU = "tpu"
    OTHER = "other"


class Axis(StrEnum):
    """Degrees of a parallel plan."""

    TP = "tp"
    CP = "cp"
    PP = "pp"
    VPP = "vpp"
    DP = "dp"
    EP = "ep"
    ETP = "etp"


class MemoryPart(StrEnum):
    """What a device's memory holds; the parts sum to the total."""

    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    ACTIVATIONS = "activations"
    OTHER = "other"


class StepPart(StrEnum):
    """Where the exposed seconds of a step go; the parts sum to the step."""

    GEMM = "gemm"
    ATTENTION = "attention"
    ELEMENTWISE = "elementwise"
    LOGITS = "logits"
    RECOMPUTE = "recompute"
    TP = "tp"
    CP = "cp"
    EP = "ep"
    DP = "dp"
    PP = "pp"
    BUBBLE = "bubble"
    OPTIMIZER = "optimizer"
    HOST = "host"
    STRAGGLER = "straggler"
    DATA = "data"


class Method(StrEnum):
    """What is trained, and on what: all weights on text, on examples or on preferences, adapters
    beside frozen weights, or a policy on its own samples."""

    PRETRAIN = "pretrain"
    SFT = "sft"
    LORA = "lora"
    QLORA = "qlora"
    DPO = "dpo"
    GRPO = "grpo"
    PPO = "ppo"


class WeightSync(StrEnum):
    """How new weights reach the engine that generates: inside the same devices, from one rank to
    all, or shard to shard."""

    IPC = "ipc"
    BROADCAST = "broadcast"
    RESHARD = "reshard"


def values(words: type[StrEnum]) -> tuple[str, ...]:
    """The words of an enum as plain text, in order."""
    return tuple(word.value for word in words)


PRECISIONS = values(Precision)
SHARDINGS = values(Sharding)
SCHEDULES = values(Schedule)
RECOMPUTES = values(Recompute)
MODULES = values(RecomputeModule)
OFFLOAD_MODULES = values(OffloadModule)
CP_TYPES = values(CpType)
OFFLOADS = values(Offload)
DISPATCHERS = values(Dispatcher)
DEGREES = values(Axis)
MEMORY_PARTS = values(MemoryPart)
STEP_PARTS = values(StepPart)
METHODS = values(Method)
WEIGHT_SYNCS = values(WeightSync)
ADAPTED = (Method.LORA, Method.QLORA)
POLICIES = (Method.GRPO, Method.PPO)

MLPS = ("gelu", "squared-relu", "relu", "swiglu", "geglu")
ATTENTIONS = ("mha", "gqa", "mqa", "mla")
GATES = ("", "head", "width")  # output gates of attention
RENTS = ("on-demand", "reserved", "spot")
SURVIVE = ("device", "node", "rack", "pod")
RECOVERIES = ("restart", "in-place", "elastic", "replica", "parts")
TOPOLOGIES = ("fat-tree", "rail-optimized", "rail-only", "multi-plane", "dragonfly", "dragonfly+")
DEDUPS = ("exact", "near")
SYNCS = ("synchronous", "local-steps")
# bytes a parameter: fp32 weights of the last average, and a momentum
OUTERS = {"nesterov": 8.0, "sgd": 4.0}
LAYER_SPLITS = ("even", "balanced")
EFFORTS = ("tuned", "typical", "first-week")
ROUTINGS = ("natural", "forced")
CUDA_GRAPHS = ("none", "layer", "full")
GRAPH_MODULES = values(GraphModule)
EXPERT_SHARDINGS = (Sharding.ZERO1.value, Sharding.ZERO3.value)
REMAT_POLICIES = values(Remat)
TP_OVERLAPS = ("none", "async", "userbuffer")
GRADIENTS = ("bf16", "fp32")
MOMENTS = values(Moments)
ROLLOUT_ENGINES = ("vllm", "sglang")
ADAPTER_TARGETS = ("attention", "qkv", "out", "mlp")
