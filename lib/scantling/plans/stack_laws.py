"""Laws of software stacks: what a stack's own code refuses of a plan that is lawful by nature, each
with the release that it was read in. A design that names the stack is held to them; of one that
names none, `runs_on` says which stacks would take its plan."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

from ..base.columns import Array, among
from ..base.errors import CatalogueError
from ..base.records import Lines, record
from ..catalogue.families import family
from ..catalogue.load import of_rows
from ..catalogue.models.shape import Model
from ..catalogue.stacks import Stack, stack, stacks
from ..catalogue.words import Precision, RecomputeModule
from ..design.resolved import Phase
from ..physics.cases import FULL, HOST_ALL, HOST_STATES, ZERO1, ZERO2, ZERO3, Plan, accumulated
from ..physics.gather import Situation
from ..physics.recompute import bits_of
from .laws import Columns, either
from .plan_names import CODED

MEGATRON = "megatron-core 0.19.2"
DEEPSPEED = "DeepSpeed 0.19.8"
TITAN = "torchtitan 0.3.0"
MAXTEXT = "MaxText 0.2.5"
ACTIVATIONS = bits_of([RecomputeModule.MLP_ACT])
FUSED = bits_of([RecomputeModule.MLP_ACT, RecomputeModule.NORM])
ALIGNED: Mapping[str, int] = {  # rows of a product that its scales are laid over
    Precision.FP8: 16,
    Precision.FP8_ROW: 16,
    Precision.FP8_CURRENT: 16,
    Precision.FP8_BLOCK: 128,
    Precision.MXFP8: 32,
}


class Run(NamedTuple):
    """What the laws of a stack look at beside the plan."""

    model: Model
    phase: Phase


Test = Callable[[Columns, Run], Array]  # true where plans keep a law


@record
class StackLaw:
    """One law of stacks, which their files name by its function: the field it concerns, the columns
    that it reads, what it says, the release and the place that say so."""

    field: str
    reads: frozenset[str]
    text: str
    source: str
    holds: Test


def whole_key_heads(c: Columns, s: Run) -> Array:
    """tp divides the key-value heads."""
    return np.asarray((s.model.kv_heads % c["tp"] == 0) | (s.model.attention == "mla"))


def a_micro_batch_a_stage(c: Columns, s: Run) -> Array:
    """m >= pp."""
    m = accumulated(s.phase.global_batch, c["dp"], c["micro_batch"])
    return either(c["pp"] == 1, m >= c["pp"])


def whole_layers_again(c: Columns, s: Run) -> Array:
    """Full recompute of all layers of a stage, or of none."""
    return either(c["recompute"] != FULL, c["recompute_share"] >= 1)


def sharded_context(c: Columns, s: Run) -> Array:
    """Context-parallel ranks share one sharded copy."""
    return either(c["cp"] == 1, c["sharding"] > 0)


def stages_of_whole_gradients(c: Columns, s: Run) -> Array:
    """No ZeRO-2 or ZeRO-3 under a pipeline."""
    return either(c["pp"] == 1, c["sharding"] < ZERO2)


def states_on_hosts(c: Columns, s: Run) -> Array:
    """Optimizer states leave the device from ZeRO-1 on, weights under ZeRO-3."""
    alone = c["dp"] * c["cp"] == 1
    states = either(c["offload"] != HOST_STATES, c["sharding"] >= ZERO1, alone)
    return states & either(c["offload"] != HOST_ALL, c["sharding"] >= ZERO3, alone)


def modules_named(c: Columns, s: Run) -> Array:
    """Bits of the modules that a plan names, pinned ones too."""
    pinned = s.phase.pins.get("recompute_modules")
    modules = c.get("modules", np.zeros(1, np.int64))
    return np.asarray(bits_of(pinned) if pinned else modules).astype(np.int64)


def experts_activations_alone(c: Columns, s: Run) -> Array:
    """The activation of a dense feed-forward is not repeated alone."""
    return np.asarray((modules_named(c, s) & ACTIVATIONS == 0) | s.model.is_moe)


def fused_under_delayed_scaling(c: Columns, s: Run) -> Array:
    """Norms and activations are not repeated under delayed scaling."""
    delayed = s.phase.precision == Precision.FP8
    return np.asarray((modules_named(c, s) & FUSED == 0) | (not delayed))


def sequence_parallel_experts(c: Columns, s: Run) -> Array:
    """Experts beside tensor parallelism ask for sequence parallelism."""
    return either(not s.model.is_moe, c["tp"] == 1, c["sp"] > 0)


def sharded_weights_in_one_part(c: Columns, s: Run) -> Array:
    """Sharded weights do not combine with interleaved chunks."""
    return either(c["sharding"] < ZERO3, c["vpp"] == 1)


def one_etp_under_fsdp(c: Columns, s: Run) -> Array:
    """Experts are whole under sharded weights."""
    return either(c["sharding"] < ZERO3, c["etp"] == 1)


def expert_axis_is_tensor_axis(c: Columns, s: Run) -> Array:
    """Experts share the tensor axis."""
    return either(not s.model.is_moe, c["etp"] == c["tp"])


def rows_of_8_bit(c: Columns, s: Run) -> Array:
    """Tokens of a rank are a multiple of what the scales of an 8-bit recipe lie over."""
    block = ALIGNED.get(s.phase.precision, 1)
    parts = c["cp"] * np.where(c["sp"] > 0, c["tp"], 1)
    tokens = c["micro_batch"] * s.phase.seq_len
    return np.asarray(tokens % (parts * block) == 0)


def widths_of_8_bit(c: Columns, s: Run) -> Array:
    """Widths that tensor parallelism leaves are a multiple of the block, but for blocks of 128,
    which kernels pad."""
    block = min(ALIGNED.get(s.phase.precision, 1), 32)
    return np.asarray(s.model.ffn_hidden % (c["tp"] * block) == 0)


def _law(field: str, reads: Lines, text: str, source: str, holds: Test) -> StackLaw:
    return StackLaw(field=field, reads=frozenset(reads), text=text, source=source, holds=holds)


STACK_LAWS = (
    _law(
        "tp",
        ("tp",),
        "tp divides the key-value heads",
        f"{TITAN} shards them by the tensor axis; {MAXTEXT} likewise",
        whole_key_heads,
    ),
    _law(
        "pp",
        ("pp", "dp", "micro_batch"),
        "as many micro-batches a step as stages, at least",
        f"{TITAN}, distributed/pipeline_parallel.py: a stage without a micro-batch waits for ever",
        a_micro_batch_a_stage,
    ),
    _law(
        "recompute_layers",
        ("recompute", "recompute_share"),
        "full recompute of all layers, or of none",
        f"{TITAN}: FullAC wraps every block",
        whole_layers_again,
    ),
    _law(
        "sharding",
        ("cp", "sharding"),
        "context parallelism shares one sharded copy",
        f"{TITAN}: the mesh folds cp into the shard axis",
        sharded_context,
    ),
    _law(
        "sharding",
        ("pp", "sharding"),
        "zero2 and zero3 do not combine with pipeline stages",
        f"{DEEPSPEED}: PipelineEngine asserts a ZeRO stage below 2",
        stages_of_whole_gradients,
    ),
    _law(
        "offload",
        ("dp", "cp", "sharding", "offload"),
        "optimizer states leave the device from zero1 on, weights under zero3 alone",
        f"{DEEPSPEED}, runtime/zero/config.py",
        states_on_hosts,
    ),
    _law(
        "recompute_modules",
        ("modules",),
        "mlp_act is repeated for experts alone",
        f"{MEGATRON}: --recompute-modules moe_act",
        experts_activations_alone,
    ),
    _law(
        "recompute_modules",
        ("modules",),
        "norm and mlp_act are not repeated under delayed scaling",
        f"{MEGATRON}, transformer_config.py",
        fused_under_delayed_scaling,
    ),
    _law(
        "sp",
        ("tp", "sp"),
        "experts under tensor parallelism ask for sequence parallelism",
        f"{MEGATRON}, arguments.py",
        sequence_parallel_experts,
    ),
    _law(
        "sharding",
        ("vpp", "sharding"),
        "zero3 and hsdp do not combine with interleaved chunks",
        f"{MEGATRON}: Megatron-FSDP refuses virtual stages",
        sharded_weights_in_one_part,
    ),
    _law(
        "etp",
        ("etp", "sharding"),
        "etp is 1 under zero3 and hsdp",
        f"{MEGATRON}: Megatron-FSDP",
        one_etp_under_fsdp,
    ),
    _law(
        "etp",
        ("tp", "etp"),
        "etp is tp",
        f"{MAXTEXT}: experts share the tensor axis of its mesh",
        expert_axis_is_tensor_axis,
    ),
    _law(
        "micro_batch",
        ("tp", "cp", "sp", "micro_batch"),
        "tokens a rank are a multiple of 16 under fp8, of 32 under mxfp8, of 128 under fp8-block",
        f"Transformer Engine 2 as {MEGATRON} takes it, torchao as {TITAN} does: the rows of a "
        "product in 8 bit",
        rows_of_8_bit,
    ),
    _law(
        "tp",
        ("tp",),
        "the width of the feed-forward layer a rank is a multiple of 16 in 8 bit, of 32 in mxfp8",
        f"Transformer Engine 2 as {MEGATRON} takes it, torchao as {TITAN} does",
        widths_of_8_bit,
    ),
)


_BY_NAME = {law.holds.__name__: law for law in STACK_LAWS}


@of_rows
@cache
def laws_of_stack(name: str | None) -> tuple[StackLaw, ...]:
    """The laws that the file of a stack names; none without a stack. Raises CatalogueError for a
    name that is no law."""
    if not name:
        return ()
    names = stack(name).laws
    unknown = [law for law in names if law not in _BY_NAME]
    if unknown:
        raise CatalogueError(f"{name}: no law of stacks is called {', '.join(unknown)}")
    return tuple(_BY_NAME[law] for law in names)


def runs_on(plan: Plan, situation: Situation) -> list[Stack]:
    """Stacks with a launch kit for a design's chips whose laws one plan keeps and that offer its
    values."""
    return [stacks()[name] for name, runs in run_by(plan, situation).items() if np.all(runs)]


def run_by(plan: Plan, situation: Situation) -> dict[str, Array]:
    """Whether each stack with a launch kit for a design's chips would run some plans as they are:
    its laws are kept and every value is offered. {stack: bool [plans]}"""
    resolved = situation.resolved
    run = Run(resolved.model, situation.phase)
    columns = {name: np.asarray(value).astype(np.int64) for name, value in vars(plan).items()}
    columns["recompute_share"] = np.asarray(plan.recompute_share, float)
    vendor = family(resolved.cluster.accelerator.family).vendor_stack
    out = {}
    for one in stacks().values():
        if one.kit and vendor in one.chips.split():
            runs = offered_by(one, columns)
            for law in laws_of_stack(one.name):
                runs = runs & law.holds(columns, run)
            out[one.name] = runs
    return out


def offered_by(one: Stack, c: Columns) -> Array:
    """Whether a stack offers every value of some plans; sets of modules only where it names some.
    bool [plans]"""
    runs = np.ones(np.shape(c["tp"]), bool)
    if not one.offers.get("recompute_modules"):
        runs = runs & (c["modules"] == 0)
    for axis, values in one.offers.items():
        if axis == "recompute_share":
            runs = runs & either(c["recompute"] != FULL, among(c[axis], values))
        elif axis in c and axis != "recompute_modules":
            some = [CODED[axis].index(value) for value in values] if axis in CODED else values
            runs = runs & either(unused(axis, c), among(c[axis], some))
    return runs


def unused(axis: str, c: Columns) -> Array:
    """Where some plans have no use for an axis: one stage, one rank."""
    degrees = {"schedule": c["pp"], "cp_type": c["cp"], "sharding": c["dp"] * c["cp"]}
    return np.asarray(degrees.get(axis, 0) == 1)
