"""The calibrated constants: what each means, its prior with its source, and how a case gets its
value. The priors are the rows of catalogue/priors.csv.

A value is prior x exp(global + family + chip + effort offset), and of a stack where two unrelated
families of runs earn one. Offsets live in catalogue/calibration.json, made by
`python -m tests.bench.validation.throughput_fit`; a family, chip or stack that is not there has
offset 0: the sourced prior and a wider band.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache
from typing import Any

import numpy as np

from ..base.columns import Column
from ..base.errors import DesignError
from ..base.files import csv_rows
from ..base.records import record
from ..catalogue.families import constants_of
from ..catalogue.load import HERE, fitted, of_rows
from .memory import constants as memory_constants
from .named import Names, Offsets, known_offsets, same_names


@record
class Prior:
    """One constant before any fit.

    Attributes
    ----------
    value, unit, source
        What it is worth, in which unit, and who says so.
    sd : float
        How far a fit may move it for all runs alike: standard deviation of the log offset; 0:
        fixed.
    by : dict
        The same by level, {"family" | "chip" | "effort" | "stack": sd}; "site": where the run was
        made, in a fit alone.
    families : dict
        Chip family -> prior that replaces `value`.
    chips : dict
        Chip -> factor on top.
    """

    value: float
    unit: str
    source: str
    sd: float = 0.0
    by: dict[str, float] = field(default_factory=dict)
    families: dict[str, float] = field(default_factory=dict)
    chips: dict[str, float] = field(default_factory=dict)


LEVELS = ("family", "chip", "effort")  # that a fit may move a constant by
OF_MEMORY = "memory."  # in front of the names of constants of the memory model


def _priors() -> dict[str, Prior]:
    """The rows of catalogue/priors.csv by name, with those of catalogue/prior_values.csv: what
    replaces a value on a family of chips, and the factor of a chip."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    for row in csv_rows(HERE / "prior_values.csv"):
        values.setdefault((row["name"], row["level"]), {})[row["of"]] = float(row["value"])
    return {
        row["name"]: Prior(
            value=float(row["value"]),
            unit=row["unit"],
            source=row["source"],
            sd=float(row["sd"]),
            by={level: float(row[f"sd_{level}"]) for level in LEVELS if row[f"sd_{level}"]},
            families=values.get((row["name"], "family"), {}),
            chips=values.get((row["name"], "chip"), {}),
        )
        for row in csv_rows(HERE / "priors.csv")
    }


PRIORS: dict[str, Prior] = _priors()


@record
class Constants:
    """One value or column a constant; what a run can move it, and its source, is its row of
    catalogue/priors.csv."""

    gemm: Column  # share of bf16 dense peak
    gemm_fp8: Column  # share of fp8 dense peak
    gemm_fp4: Column  # share of fp4 dense peak
    gemm_bytes: Column  # of one read or write of each operand
    wave: Column  # of the units that a last wave of 128 x 256 tiles leaves idle
    scan: Column  # share of the HBM rate that chunked scans reach
    scan_gemm: Column  # share of bf16 dense peak in products of a chunk
    scan_vector: Column  # rate of a scan without matrix products over one with
    scan_backward: Column  # times of the forward
    gemm_launch_s: Column  # s per kernel
    fp8_row: Column  # rate of row-wise over tensor-wise fp8 GEMMs
    mxfp8: Column  # rate of block-scaled over tensor-wise fp8 GEMMs
    unaligned: Column  # rate where hidden % 128 != 0
    hbm_share: Column  # of the HBM rate
    attention: Column  # share of bf16 peak, causal half counted, FlashAttention-2 or later
    attention_half: Column  # tokens at half rate
    attention_tiles: Column  # tiles of 128 queries and a head at half rate
    # rate of FlashAttention-2 over -3 and cuDNN where those exist (Hopper on)
    attention_fa2: Column
    attention_fa4: Column  # rate of FlashAttention-4 over cuDNN on Blackwell
    attention_fa1: Column  # rate of FlashAttention-1 over -2
    attention_forward: Column  # rate of the forward over both passes
    attention_backward: Column  # rate of the backward over both passes
    attention_tiles_backward: Column  # of the forward's loss to few tiles
    attention_odd_head: Column  # rate where head size % 8 != 0
    attention_gathered: Column  # rate where each query gathers keys of its own, forward
    attention_gathered_backward: Column  # rate where each query gathers keys of its own, backward
    attention_fp8: Column  # rate of 8-bit over 16-bit attention
    attention_full: Column  # of the share of plain GEMMs, materialised scores
    scores_passes: Column  # passes over the score matrix
    scores_unfused: Column  # passes of unfused over fused mask and softmax
    ring_loss: Column  # of the attention time, rings of many steps: x (1 - 2/cp)
    ring_merge: Column  # bytes per value of the attention output and ring step
    eager: Column  # element-wise bytes of eager over fused kernels
    elementwise: Column  # of the counted bytes
    norm_kernel: Column  # of the eager element-wise bytes once the norm is one kernel
    logit_eager: Column  # bytes of an eager over a fused fp32 cross entropy
    logit_bytes: Column  # bytes per logit
    cast_fp8: Column  # bytes per GEMM element
    cast_mxfp8: Column  # bytes per GEMM element
    cast_fp4: Column  # bytes per GEMM element
    grouped_gemm: Column  # rate of grouped over plain GEMM
    grouped_half: Column  # tokens per expert at half rate, beyond the operands' traffic
    router: Column  # of bf16 peak, tokens x experts
    permute: Column  # passes over a routed token
    layer_host_s: Column  # s per layer and micro-batch, forward
    moe_host_s: Column  # s per MoE layer and micro-batch, forward
    static_host: Column  # of that left where experts take a fixed number of rows
    expert_loop_s: Column  # s per expert of a rank and pass, experts run one by one
    expert_gather_s: Column  # s more per expert and pass, its weights gathered and given back
    # s per layer and micro-batch, at least, where DTensor dispatches tensor parallelism
    eager_tp_s: Column
    # s per layer and micro-batch, both ways, at least, where kernels are launched one by one
    eager_layer_s: Column
    # s per layer, micro-batch and rank of tp where a pipeline of such kernels leaves the domain
    eager_stall_s: Column
    step_host_s: Column  # s per step
    graphs_part: Column  # of host time left
    graphs_full: Column  # of host time left
    scale_up_share: Column  # of the rate that a ring alone reaches inside a domain
    scale_out_share: Column  # of the rate that a ring alone reaches across domains
    tp_exposed: Column  # of tensor-parallel time
    # of a network step that each chunk of a tensor-parallel ring across nodes waits at every rank
    tp_hops: Column
    tp_overlapped: Column  # of tensor-parallel time with overlap
    pp_exposed: Column  # of point-to-point time
    cp_window: Column  # of attention time hides the ring
    # of the passes that an exchange runs beside: backward for gradients, forward for weights
    dp_window: Column
    # of the rate that a ring alone reaches across nodes, gradient rings; bounded by the line
    dp_rate: Column
    dp_alone: Column  # of that rate where nothing runs beside gradient rings
    fsdp_contention: Column  # of the smaller of compute and traffic is lost
    ep_up_share: Column  # of the scale-up rate of an all-to-all alone
    ep_out_share: Column  # of the network rate of an all-to-all alone
    ep_out_efa: Column  # the same where cards deliver in any order
    # s per exchange of tokens, at least, over cards that deliver in any order (EFA)
    dispatch_s: Column
    dispatch_uccl: Column  # of that and of a message under UCCL
    # s per token and node, a message each, over cards that deliver in any order
    token_message_s: Column
    ep_overlapped: Column  # of all-to-all time with overlap
    ep_imbalance: Column  # fullest expert rank over the mean
    fsdp_power: Column  # exponent of max-like sum of compute and gathers
    broadcast_s: Column  # s per rank, parameters gathered by one broadcast a rank
    gather_tensor_s: Column  # s per tensor, states that come back tensor by tensor across nodes
    gather_slice_s: Column  # s per tensor and rank, the same: a view of each rank's slice
    optimizer_bytes: Column  # bytes per locally updated parameter
    straggler: Column  # per doubling of nodes
    straggler_wide: Column  # per doubling of devices beyond a thousand, runs that are not tuned
    engine: Column  # of the step under DeepSpeed's pipeline engine
    overall: Column  # of the step
    # of the forward's tensor-parallel time that sequence parallelism adds to the backward
    tp_sequence: Column
    # of tp_exposed where part of the collectives is cut for overlap or nothing runs beside any
    tp_alone: Column
    host_passes: Column  # launches of forward and backward over those of the forward
    host_rank_bytes_per_s: Column  # bytes/s that one of eight ranks gets of its host's memory
    step_host_least: Column  # of step_host_s on a stage of few layers
    step_host_layers: Column  # layers on a stage from which step_host_s is paid in full
    step_host_graphs: Column  # of step_host_s left where the whole iteration is captured
    straggler_devices: Column  # devices that slow down as one node
    dp_bucket_bytes: Column  # bytes of gradients reduced in one call
    memory: memory_constants.MemoryConstants  # those of the memory model


same_names(Constants, PRIORS, "priors.csv", elsewhere=("memory",))


def calibration() -> Mapping[str, Any]:
    """The fit that ships with the kit: offsets, their support, and the bands of its errors."""
    return fitted("calibration")


@cache
def shipped_offsets() -> Offsets:
    """The offsets of catalogue/calibration.json, each of a constant of PRIORS."""
    levels = (*LEVELS, "stack")
    return known_offsets(calibration()["offsets"], PRIORS, levels, "calibration.json")


def standing_in(constants: Constants, values: Mapping[str, Column]) -> Constants:
    """Constants with other values or columns in their place: {name: value}, those of the memory
    model under `memory.`. Raises DesignError for a name that is none."""
    step = {name: value for name, value in values.items() if not name.startswith(OF_MEMORY)}
    memory = {
        name.removeprefix(OF_MEMORY): value
        for name, value in values.items()
        if name.startswith(OF_MEMORY)
    }
    for names, known in ((step, vars(constants)), (memory, vars(constants.memory))):
        for name in names:
            if name == "memory" or name not in known:
                raise DesignError("constants", name, list(known), problem="is no constant")
    values_now: dict[str, Any] = {**step, "memory": replace(constants.memory, **memory)}
    made: Constants = replace(constants, **values_now)
    return made


def gather(
    families: Names | None,
    chips: Names | None,
    stacks: Names | None,
    offsets: Offsets | None = None,
    tuned: Column = 0.0,
) -> Constants:
    """Constants for each case, from the names of its chip family, chip and stack (str or arrays of
    str), and whether its recipe is tuned (0 or 1).

    Unknown names have offset 0. Scalars give scalars; arrays of shape (n,) give columns where a
    constant differs.
    """
    effort = efforts(tuned)
    if (
        offsets is None
        and isinstance(families, str)
        and isinstance(chips, str)
        and isinstance(stacks, str)
        and isinstance(effort, str)
    ):
        return _shipped(families, chips, stacks, effort)
    if offsets is None:
        offsets = shipped_offsets()
    return _gather(families, chips, stacks, effort, offsets)


def efforts(tuned: Column) -> Names:
    """ "tuned", "typical" or "first-week", one name or a column."""
    effort = np.asarray(tuned)
    names = np.where(effort > 0, "tuned", np.where(effort < 0, "first-week", "typical"))
    return names if names.ndim else str(names)


@of_rows
@cache
def _shipped(family: str, chip: str, stack: str, effort: str) -> Constants:
    """The constants that ship with the kit for one chip and stack: every chunk of a search asks."""
    return _gather(family, chip, stack, effort, shipped_offsets())


def _gather(
    families: Names | None,
    chips: Names | None,
    stacks: Names | None,
    effort: Names,
    offsets: Offsets,
) -> Constants:
    if families is not None:
        families = constants_of(families)
    levels = {"effort": effort, "family": families, "chip": chips, "stack": stacks}
    columns: dict[str, Column] = {}
    for name, prior in PRIORS.items():
        moved = offsets.get(name, {})
        value = _lookup(families, prior.families, prior.value)
        offset = moved.get("global", 0.0) + sum(
            _lookup(names, moved.get(level, {}), 0.0) for level, names in levels.items()
        )
        columns[name] = value * _lookup(chips, prior.chips, 1.0) * np.exp(offset)
    return Constants(**columns, memory=memory_constants.gather(stacks))


def _lookup(names: Names | None, table: Mapping[str, float], default: float) -> Column:
    """The table's value of each name; one number where the table is empty or the name is one."""
    if not table or names is None:
        return default
    if isinstance(names, str):
        return table.get(names, default)
    unique, inverse = np.unique(np.asarray(names, dtype=str), return_inverse=True)
    return np.array([table.get(u, default) for u in unique])[inverse]
