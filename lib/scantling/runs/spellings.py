"""One spelling of the words of run tables: by which names trainers and papers call them."""

from collections.abc import Mapping
from contextlib import suppress

from .. import catalogue
from ..base.errors import DesignError
from ..base.records import Lines
from ..catalogue.words import Dispatcher
from ..physics.pipeline import SCHEDULES

# column -> word -> its other names, in lower case, with "-" for "_" and for blanks
OTHER_NAMES: Mapping[str, Mapping[str, Lines]] = {
    "precision": {
        # PyTorch's types, Lightning's --precision, Composer's, Megatron-Bridge's compute dtypes
        "bf16": ("bfloat16", "bf16-mixed", "amp-bf16"),
        "fp16": ("float16", "half", "16-mixed", "fp16-mixed", "amp-fp16"),
        "fp8": ("fp8-delayed", "fp8-ds", "fp8-e4m3", "fp8-hybrid", "amp-fp8"),
        "fp8-current": ("fp8-cs", "fp8-tensorwise"),
        "fp8-row": ("fp8-rowwise",),
        "fp8-block": ("fp8-blockwise", "fp8-sc"),
        "mxfp8": ("fp8-mx",),
        "nvfp4": ("fp4",),
    },
    "sharding": {
        # Rajbhandari et al. 2020; PyTorch's ShardingStrategy; Megatron's optimizer and its FSDP's
        # --data-parallel-sharding-strategy; Paddle's group_sharded_parallel
        "none": ("ddp", "no", "no-shard", "zero0", "zero-0"),
        "zero1": ("zero-1", "stage-1", "distributed-optimizer", "dist-opt", "optim", "os"),
        "zero2": ("zero-2", "stage-2", "shard-grad-op", "optim-grads", "os-g"),
        "zero3": (
            *("zero-3", "stage-3", "fsdp", "fsdp2", "full-shard", "fully-sharded"),
            *("optim-grads-params", "p-g-os"),
        ),
        "hsdp": ("hybrid-shard", "hybrid-sharded"),
    },
    "recompute": {
        "none": ("no", "off", "false", "disabled"),
        # Trainer's gradient_checkpointing is a switch, of every layer; Megatron's methods of full
        "full": ("true", "yes", "on", "uniform", "block"),
        "selective": ("op", "selective-op", "core-attn"),  # torchtitan's option, Megatron's module
    },
    "offload": {"none": ("no", "off", "false")},
    "mlp": {
        "swiglu": ("silu", "gated-silu", "swish-glu"),
        "geglu": ("gated-gelu",),
        "squared-relu": ("relu2", "relu^2", "sqrelu"),
    },
    "attention": {
        "mha": ("multi-head", "multi-head-attention"),
        "gqa": ("grouped-query", "grouped-query-attention"),
        "mqa": ("multi-query", "multi-query-attention"),
        "mla": ("multi-head-latent", "multi-head-latent-attention", "multi-latent-attention"),
    },
    "schedule": {
        # classes of torch.distributed.pipelining
        "interleaved": ("interleaved1f1b",),
        "zb-v": ("zbvzerobubble",),
    },
    # cp_comm_type of Transformer Engine
    "cp_type": {"ring": ("p2p",), "all-gather": ("allgather",), "ulysses": ("a2a",)},
    "moe_dispatcher": {
        Dispatcher.ALLTOALL: ("all-to-all", "a2a", "nccl"),
        Dispatcher.ALLGATHER: ("all-gather",),
        Dispatcher.DEEPEP: ("deep-ep",),
        Dispatcher.HYBRIDEP: ("hybrid-ep",),
    },
    "optimizer": {
        # OptimizerNames of Transformers; NeMo's optimizer over data-parallel ranks
        "adamw": ("adamw-torch", "adamw-torch-fused", "fused-adam", "distributed-fused-adam"),
        "adamw-8bit": ("adamw8bit", "adamw-bnb-8bit", "paged-adamw-8bit"),
    },
}


_WORDS = {
    column: {other: word for word, others in names.items() for other in others}
    for column, names in OTHER_NAMES.items()
}
_WORDS["schedule"] |= {alias: row.name for row in SCHEDULES.values() for alias in row.aliases}
CATALOGUED = ("accelerator", "optimizer", "scale_out")  # columns of ids of the catalogue
SPELT = frozenset((*OTHER_NAMES, *CATALOGUED, "stack", "effort"))  # columns of words


def spelt(column: str, cell: str) -> str:
    """The word of a column for a cell; the cell in lower case, with "-" for "_" and for blanks,
    where the column knows none."""
    name = "-".join(cell.lower().replace("_", "-").split())
    word = _WORDS.get(column, {}).get(name, name)
    return id_of(column, word) if word and column in CATALOGUED else word


def id_of(column: str, word: str) -> str:
    """The id of what the catalogue has by an id or alias; the word itself where it has none."""
    with suppress(DesignError):
        match column:
            case "accelerator":
                return catalogue.accelerator(word).id
            case "optimizer":
                return catalogue.optimizer(word).id
            case "scale_out":
                return catalogue.fabric(word).id
    return word
