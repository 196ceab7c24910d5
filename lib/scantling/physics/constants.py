"""The calibrated constants: what each means, its prior with its source, and how a case gets its
value.

A value is prior x exp(global + family + chip + stack offset). Offsets live in
catalogue/calibration.json, made by
`python -m scantling.evidence.calibrate.throughput`; a family, chip or stack that is not there has offset 0:
the sourced prior and a wider band.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from .memory import constants as memory_constants


@dataclass(frozen=True)
class Prior:
    """One constant before any fit: its value, how far a fit may take it (standard deviations of log
    offsets), unit and source."""

    value: float
    unit: str
    source: str
    sd: float = 0.0  # global
    by: dict = field(
        default_factory=dict
    )  # {"family" | "chip" | "stack" | "pair": sd}, pair = stack on chip
    families: dict = field(default_factory=dict)  # family -> prior that replaces `value`
    chips: dict = field(default_factory=dict)  # chip -> factor on top


GEMM = (
    "gemm_efficiency.csv sustained training shapes; MAMF tables as upper bounds "
    "(ml-engineering, Azure guide, SimuMax)"
)
PRIORS: dict[str, Prior] = {
    "gemm": Prior(
        0.74,
        "share of bf16 dense peak",
        GEMM,
        0.02,
        {"family": 0.05, "chip": 0.07, "pair": 0.04},
        {
            "volta": 0.77,
            "ampere": 0.75,
            "hopper": 0.72,
            "blackwell": 0.60,
            "tpu": 0.86,
            "cdna3": 0.55,
            "cdna2": 0.55,
            "cdna4": 0.55,
        },
        {"h100-96-hbm2e-500w": 0.88, "b200-sxm": 0.88},
    ),  # 500 W of 700 W: the clock that GEMMs can hold; B200: SimuMax GEMM table
    "gemm_fp8": Prior(
        0.72,
        "share of fp8 dense peak",
        GEMM,
        0.02,
        {"family": 0.08, "chip": 0.1},
        {"hopper": 0.72, "blackwell": 0.64, "tpu": 0.72},
    ),
    "gemm_fp4": Prior(0.58, "share of fp4 dense peak", GEMM, 0.05, {"chip": 0.05}),
    "gemm_bytes": Prior(
        0.6, "of one read or write of each operand", "additive roofline; fitted", 0.3
    ),
    "wave": Prior(
        1.0,
        "of the units that a last wave of 128 x 256 tiles leaves idle",
        "libraries choose smaller tiles where that fills the device",
        0.3,
    ),
    "gemm_launch_s": Prior(
        6e-6, "s per kernel", "half-rate size of cuBLASLt cubes (Azure guide)", 0.3
    ),
    "fp8_row": Prior(
        0.55,
        "rate of row-wise over tensor-wise fp8 GEMMs",
        "torchtitan float8 row-wise tables",
        0.2,
    ),
    "unaligned": Prior(
        0.62, "rate where hidden % 128 != 0", "BLOOM prequel h=14400, GPT-OSS h=2880", 0.1
    ),
    "hbm_share": Prior(
        0.85,
        "of the HBM rate",
        "copy and triad (Azure guide, ml-engineering, SimuMax)",
        0.0,
        {},
        {"ampere": 0.82, "hopper": 0.87, "blackwell": 0.72},
    ),
    "attention": Prior(
        0.40,
        "share of bf16 peak, causal half counted, FlashAttention-2 or later",
        "FlashAttention-2 and -3 papers; cuDNN 9.13 on B200 in FlashAttention-4's",
        0.1,
        {"family": 0.15, "chip": 0.08, "stack": 0.25, "pair": 0.1},
        {"ampere": 0.6, "hopper": 0.57, "blackwell": 0.48, "tpu": 0.25},
    ),
    "attention_half": Prior(
        500.0, "tokens at half rate", "FlashAttention-2 and -3 curves at constant tokens", 0.3
    ),
    "attention_tiles": Prior(
        300.0,
        "tiles of 128 queries and a head at half rate",
        "SimuMax attention by heads, 4,096 tokens",
        0.3,
        {},
        {"ampere": 190.0, "hopper": 350.0, "blackwell": 700.0},
    ),
    "attention_fa2": Prior(
        0.57,
        "rate of FlashAttention-2 over -3 and cuDNN where those exist (Hopper on)",
        "FlashAttention-3, section 4.1",
        0.1,
    ),
    "attention_fa4": Prior(
        1.25,
        "rate of FlashAttention-4 over cuDNN on Blackwell",
        "FlashAttention-4 (arXiv 2603.05451): up to 1.3 times cuDNN 9.13",
        0.1,
    ),
    "attention_fa1": Prior(
        0.68, "rate of FlashAttention-1 over -2", "FlashAttention-2, Table 1", 0.1
    ),
    "attention_full": Prior(0.72, "of peak, materialised scores", "batched GEMM", 0.1),
    "scores_passes": Prior(
        5.2, "passes over the score matrix", "masked softmax fused kernel; dropout", 0.2
    ),
    "scores_unfused": Prior(
        1.7, "passes of unfused over fused mask and softmax", "Megatron-LM fused kernels", 0.15
    ),
    "ring_loss": Prior(
        0.8,
        "of the attention time, rings of many steps: x (1 - 2/cp)",
        "long-context rows of MoE parallel folding and torchtitan",
        0.3,
    ),
    "ring_merge": Prior(
        12.0,
        "bytes per value of the attention output and ring step",
        "partial outputs and log-sum-exp merged in fp32",
        0.3,
    ),
    "eager": Prior(
        4.0,
        "element-wise bytes of eager over fused kernels",
        "fp32 norms, rotary and gates one operation each",
        0.3,
    ),
    "elementwise": Prior(
        1.0,
        "of the counted bytes",
        "Korthikanti et al. 2022 tensor list",
        0.15,
        {"family": 0.1, "stack": 0.5},
    ),
    "norm_kernel": Prior(
        0.37,
        "of the eager element-wise bytes once the norm is one kernel",
        "Hagemann et al. 2024",
        0.15,
    ),
    "logit_eager": Prior(
        2.5,
        "bytes of an eager over a fused fp32 cross entropy",
        "cast, log-softmax and loss one operation each, both ways",
        0.25,
    ),
    "logit_bytes": Prior(
        10.0, "bytes per logit", "fp32 cross entropy, read and write", 0.25, {"stack": 0.2}
    ),
    "cast_fp8": Prior(5.5, "bytes per GEMM element", "amax, cast and transpose", 0.25),
    "cast_mxfp8": Prior(7.2, "bytes per GEMM element", "block scales both ways", 0.25),
    "cast_fp4": Prior(
        11.0, "bytes per GEMM element", "Hadamard, stochastic rounding, block scales", 0.25
    ),
    "grouped_gemm": Prior(
        0.95, "rate of grouped over plain GEMM", "SimuMax grouped-GEMM points", 0.1, {"family": 0.1}
    ),
    "grouped_half": Prior(
        100.0,
        "tokens per expert at half rate, beyond the operands' traffic",
        "SimuMax grouped GEMM, 128 to 9,832 tokens an expert",
        0.3,
    ),
    "permute": Prior(
        7.0, "passes over a routed token", "permute, unpermute, probs", 0.3, {"family": 0.2}
    ),
    "layer_host_s": Prior(
        0.17e-3,
        "s per layer and micro-batch, forward",
        "launch-bound tails of small models",
        0.3,
        {"stack": 0.5, "family": 0.2, "chip": 0.2},
    ),
    "moe_host_s": Prior(
        0.6e-3,
        "s per MoE layer and micro-batch, forward",
        "dispatch synchronisation",
        0.3,
        {"chip": 0.3},
    ),
    "static_host": Prior(
        0.7,
        "of that left where experts take a fixed number of rows",
        (
            "tokens dropped and padded to a capacity: nothing waits for counts "
            "(Megatron-Core's dispatcher)"
        ),
        0.1,
    ),
    "step_host_s": Prior(
        40e-3, "s per step", "data, logging, optimizer launches", 0.4, {"stack": 0.4}
    ),
    "graphs_part": Prior(0.5, "of host time left", "layer-wise CUDA graphs", 0.2),
    "graphs_full": Prior(0.16, "of host time left", "full-iteration CUDA graphs", 0.3),
    "scale_up_share": Prior(
        0.86, "of the link rate", "nccl-tests one node (collective_bench)", 0.05
    ),
    "scale_out_share": Prior(
        0.84, "of the NIC rate", "nccl-tests many nodes (collective_bench)", 0.05
    ),
    "tp_exposed": Prior(
        0.8, "of tensor-parallel time", "no overlap but stream concurrency", 0.1, {"stack": 0.35}
    ),
    "tp_overlapped": Prior(
        0.45,
        "of tensor-parallel time with overlap",
        "Megatron userbuffers, async TP",
        0.2,
        {"stack": 0.2},
    ),
    "tp_latency_s": Prior(20e-6, "s per collective and log2(tp)", "nccl-tests 32 KiB", 0.3),
    "pp_exposed": Prior(0.3, "of point-to-point time", "fitted", 0.4),
    "p2p_latency_s": Prior(10e-6, "s per send", "nccl-tests", 0.2),
    "cp_window": Prior(0.6, "of attention time hides the ring", "fitted", 0.3),
    "dp_window": Prior(
        1.6, "of one micro-batch's backward hides the gradient reduction", "fitted", 0.3
    ),
    "dp_rate": Prior(
        1.0,
        "of the network rate, gradient rings across nodes",
        "what a stack's rings leave of every card at once",
        0.05,
        {"stack": 1.2},
    ),
    "dp_hop_s": Prior(8.5e-6, "s per rank and bucket", "ring latency, 0.5 GB buckets", 0.5),
    "gather_hop_s": Prior(
        17e-6,
        "s per domain that a ring of gathers crosses",
        "collective_bench: time beyond bytes over rate, all-gathers of 8 to 128 nodes",
        0.3,
    ),
    "fsdp_contention": Prior(
        0.5,
        "of the smaller of compute and traffic is lost",
        "shared memory and SMs",
        0.3,
        {"stack": 0.6},
    ),
    "ep_up_share": Prior(
        0.75, "of the scale-up rate in an all-to-all", "DeepEP, nccl-tests all-to-all", 0.1
    ),
    "ep_out_share": Prior(
        0.85,
        "of the network rate in a plain all-to-all",
        "NCCL over 2 to 32 nodes: 128 to 512 MB against 2 GB (collective_bench)",
        0.1,
    ),
    "ep_overlapped": Prior(0.4, "of all-to-all time with overlap", "fitted", 0.3),
    "ep_imbalance": Prior(
        1.1,
        "fullest expert rank over the mean",
        (
            "between loss-free balancing, 1.04, and an auxiliary loss, 1.5 for single "
            "experts (Wang et al. 2024, arXiv 2408.15664)"
        ),
        0.05,
    ),
    "fsdp_power": Prior(4.0, "exponent of max-like sum of compute and gathers", "fitted", 0.0),
    "broadcast_s": Prior(
        2.5e-3,
        "s per rank, parameters gathered by one broadcast a rank",
        "InternEvo ZeRO-1 over all data-parallel ranks",
        0.2,
    ),
    "optimizer_bytes": Prior(
        34.0, "bytes per locally updated parameter", "fused Adam, fp32 states", 0.15
    ),
    "straggler": Prior(
        0.0035,
        "per doubling of nodes",
        "slowest of n nodes whose speeds lie 1 % apart: 1 % x sqrt(2 ln n)",
        0.5,
    ),
    "engine": Prior(
        1.08,
        "of the step under DeepSpeed's pipeline engine",
        "instructions run one by one; BLOOM, MT-NLG and GPT-NeoX against Megatron",
        0.05,
    ),
    "overall": Prior(
        1.0, "of the step", "what the terms leave", 0.0, {"stack": 0.08, "pair": 0.04}
    ),
}

Constants = make_dataclass(
    "Constants",
    [*((name, object) for name in PRIORS), ("memory", object, memory_constants.GENERIC)],
    frozen=True,
)
Constants.__doc__ = (
    "One value or column per constant of PRIORS, in its unit; `memory` holds those of the "
    "memory model."
)


@cache
def calibration() -> dict:
    """The fitted offsets that ship with the kit; empty where none were made."""
    path = files("scantling.catalogue") / "calibration.json"
    return json.loads(path.read_text()) if path.is_file() else {"offsets": {}}


def gather(families, chips, stacks, offsets: dict | None = None) -> Constants:
    """Constants for each case, from the names of its chip family, chip and stack (str or arrays of
    str).

    Unknown names have offset 0. Scalars give scalars; arrays of shape (n,) give columns where a
    constant differs.
    """
    offsets = calibration()["offsets"] if offsets is None else offsets
    levels = {"family": families, "chip": chips, "stack": stacks, "pair": pairs(stacks, chips)}
    columns = {}
    for name, prior in PRIORS.items():
        value = (
            _lookup(
                families, {k: np.log(v) for k, v in prior.families.items()}, np.log(prior.value)
            )
            if prior.families
            else np.log(prior.value)
        )
        if prior.chips:
            value = value + _lookup(chips, {k: np.log(v) for k, v in prior.chips.items()}, 0.0)
        fitted = offsets.get(name, {})
        value = value + fitted.get("global", 0.0)
        for level in prior.by:
            if fitted.get(level):
                value = value + _lookup(levels[level], fitted[level], 0.0)
        columns[name] = np.exp(value)
    return Constants(**columns, memory=memory_constants.gather(stacks))


def pairs(stacks, chips):
    """ "stack on chip", one name or a column."""
    if isinstance(stacks, (str, type(None))) and isinstance(chips, (str, type(None))):
        return f"{stacks} on {chips}"
    stacks, chips = np.broadcast_arrays(
        np.asarray(stacks, dtype=object), np.asarray(chips, dtype=object)
    )
    return np.array([f"{s} on {c}" for s, c in zip(stacks, chips)])


def _lookup(names, table: dict, default: float):
    if isinstance(names, str) or names is None:
        return table.get(names, default)
    unique, inverse = np.unique(np.asarray(names, dtype=str), return_inverse=True)
    return np.array([table.get(u, default) for u in unique])[inverse]
