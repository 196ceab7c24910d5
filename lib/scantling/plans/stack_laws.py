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
from ..design.cluster import Cluster
from ..design.pins import Pins
from ..design.resolved import Offered, Phase
from ..physics.cases import (
    FULL,
    HOST_ALL,
    HOST_STATES,
    HSDP,
    ZERO1,
    ZERO2,
    ZERO3,
    Plan,
    accumulated,
)
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
    cluster: Cluster


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
    # of its launch kit as written: the search keeps it, and what is pinned may break it
    of_kit: bool = False


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
    """Sharded gradients and weights do not combine with interleaved chunks."""
    return either(c["sharding"] < ZERO2, c["vpp"] == 1)


def one_etp_under_fsdp(c: Columns, s: Run) -> Array:
    """Experts are whole under sharded gradients and weights."""
    return either(c["sharding"] < ZERO2, c["etp"] == 1)


def same_layers_a_chunk(c: Columns, s: Run) -> Array:
    """Every virtual chunk of a stage repeats as many layers, or all."""
    stage_layers = -(-s.model.layers // np.asarray(c["pp"]).astype(np.int64))
    again = np.round(c["recompute_share"] * stage_layers).astype(np.int64)
    return either(c["recompute"] != FULL, again >= stage_layers, again % c["vpp"] == 0)


def whole_matrices(c: Columns, s: Run) -> Array:
    """Muon works on whole matrices: weights and gradients are not sharded, its states stay on the
    device."""
    held = (c["sharding"] < ZERO2) & (c["offload"] == 0)
    return np.asarray(held | (s.phase.optimizer != "muon"))


def states_of_the_distributed_optimizer(c: Columns, s: Run) -> Array:
    """Adam's states on the hosts, or in 16 bit, are shared out."""
    plain = (c["offload"] == 0) & (s.phase.optimizer != "adamw-bf16")
    return either(c["sharding"] >= ZERO1, c["dp"] * c["cp"] == 1, plain)


def kept_layers_in_a_stage(c: Columns, s: Run) -> Array:
    """The layers of one end that stay in 16 bit lie in one stage."""
    most = max(s.phase.kept_16bit or (0, 0))
    return np.asarray(c["pp"] * most <= s.model.layers)


def states_inside_a_site(c: Columns, s: Run) -> Array:
    """What is sharded over all data-parallel ranks has one site."""
    spread = ZERO1 if s.phase.optimizer == "muon" else ZERO2
    return np.asarray((c["sharding"] < spread) | (s.cluster.sites == 1))


def stages_inside_a_site(c: Columns, s: Run) -> Array:
    """Stages, outermost in the mesh, have one site."""
    return np.asarray((c["pp"] == 1) | (s.cluster.sites == 1))


def whole_context_groups(c: Columns, s: Run) -> Array:
    """A group of shards holds whole groups of context parallelism."""
    return either(c["sharding"] != HSDP, c["shard_group"] % c["cp"] == 0)


def experts_inside_a_copy(c: Columns, s: Run) -> Array:
    """Expert ranks divide those that share one copy."""
    return np.asarray(_of_a_copy(c) * c["tp"] % c["ep"] == 0)


def experts_beside_tensors(c: Columns, s: Run) -> Array:
    """Expert ranks divide the data-parallel ones that share one copy."""
    return np.asarray(_of_a_copy(c) // c["cp"] % c["ep"] == 0)


def _of_a_copy(c: Columns) -> Array:
    """Ranks of data and context parallelism that share one copy."""
    alone = np.where(c["sharding"] == 0, c["cp"], c["dp"] * c["cp"])
    return np.where(c["sharding"] == HSDP, c["shard_group"], alone).astype(np.int64)


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


def _law(
    field: str, reads: Lines, text: str, source: str, holds: Test, of_kit: bool = False
) -> StackLaw:
    columns = frozenset(reads)
    return StackLaw(
        field=field, reads=columns, text=text, source=source, holds=holds, of_kit=of_kit
    )


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
        "zero2, zero3 and hsdp do not combine with interleaved chunks",
        f"{MEGATRON}: Megatron-FSDP refuses virtual stages",
        sharded_weights_in_one_part,
    ),
    _law(
        "etp",
        ("etp", "sharding"),
        "etp is 1 under zero2, zero3 and hsdp",
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
    _law(
        "recompute_layers",
        ("recompute", "recompute_share", "pp", "vpp"),
        "every virtual chunk repeats as many layers of a stage, or all",
        f"{MEGATRON}: --recompute-num-layers is of each virtual stage",
        same_layers_a_chunk,
        of_kit=True,
    ),
    _law(
        "sharding",
        ("sharding", "offload"),
        "Muon's weights and gradients are whole, and its states stay on the device",
        f"{MEGATRON}: its layer-wise distributed optimizer; Megatron-FSDP and "
        "--optimizer-cpu-offload refuse Muon",
        whole_matrices,
        of_kit=True,
    ),
    _law(
        "sharding",
        ("dp", "cp", "sharding", "offload"),
        "states on the hosts, or in 16 bit, are shared from zero1 on",
        f"{MEGATRON}: options of --use-distributed-optimizer",
        states_of_the_distributed_optimizer,
        of_kit=True,
    ),
    _law(
        "pp",
        ("pp",),
        "layers of one end that stay in 16 bit lie in one stage",
        f"{MEGATRON}, transformer_config.py: num_layers_at_start_in_bf16",
        kept_layers_in_a_stage,
        of_kit=True,
    ),
    _law(
        "sharding",
        ("sharding",),
        "states that all data-parallel ranks share have one site",
        f"{MEGATRON}: Megatron-FSDP and Muon as its kit writes them",
        states_inside_a_site,
        of_kit=True,
    ),
    _law(
        "pp",
        ("pp",),
        "stages have one site",
        f"{TITAN}: stages are outermost in its mesh",
        stages_inside_a_site,
        of_kit=True,
    ),
    _law(
        "shard_group",
        ("cp", "sharding", "shard_group"),
        "a shard group holds whole context groups",
        f"{TITAN}: the mesh folds cp into the shard axis; {MAXTEXT}: its fsdp axis is beside cp",
        whole_context_groups,
        of_kit=True,
    ),
    _law(
        "ep",
        ("tp", "cp", "dp", "ep", "sharding", "shard_group"),
        "expert ranks divide those that share one copy",
        f"{TITAN}: its expert mesh is laid over the shard, context and tensor axes",
        experts_inside_a_copy,
        of_kit=True,
    ),
    _law(
        "ep",
        ("cp", "dp", "ep", "sharding", "shard_group"),
        "expert ranks divide the data-parallel ones that share one copy",
        f"{MAXTEXT}: the expert axis is taken out of the fsdp axis",
        experts_beside_tensors,
        of_kit=True,
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


def allowed(law: StackLaw, c: Columns, run: Run, pins: Pins) -> Array:
    """Where some plans keep a law; everywhere where none does that the pins leave and it is of a
    launch kit alone."""
    keeps = np.broadcast_to(law.holds(c, run), np.shape(c["tp"]))
    stated = any(name in pins for name in (law.field, *law.reads))
    if law.of_kit and stated and not keeps.any():
        return np.ones_like(keeps)
    return keeps


def runs_on(plan: Plan, situation: Situation) -> list[Stack]:
    """Stacks with a launch kit for a design's chips whose laws one plan keeps and that offer its
    values."""
    return [stacks()[name] for name, runs in run_by(plan, situation).items() if np.all(runs)]


def kits_for(cluster: Cluster) -> list[Stack]:
    """Stacks with a launch kit for the chips of a cluster."""
    vendor = family(cluster.accelerator.family).vendor_stack
    return [one for one in stacks().values() if one.kit and vendor in one.chips.split()]


def run_by(plan: Plan, situation: Situation) -> dict[str, Array]:
    """Whether each stack with a launch kit for a design's chips would run some plans as they are:
    its laws are kept and every value is offered. {stack: bool [plans]}"""
    resolved = situation.resolved
    run = Run(resolved.model, situation.phase, resolved.cluster)
    columns = {name: np.asarray(value).astype(np.int64) for name, value in vars(plan).items()}
    columns["recompute_share"] = np.asarray(plan.recompute_share, float)
    out = {}
    for one in kits_for(resolved.cluster):
        runs = among_offers(one.offers, columns)
        if not one.offers.get("recompute_modules"):
            runs = runs & (columns["modules"] == 0)
        for law in laws_of_stack(one.name):
            runs = runs & law.holds(columns, run)
        out[one.name] = runs
    return out


def among_offers(offers: Mapping[str, Offered], c: Columns) -> Array:
    """Whether every value of some plans is among those that are offered, sets of modules apart.
    bool [plans]"""
    no_use = {  # of an axis: one stage, one rank
        "schedule": c["pp"] == 1,
        "cp_type": c["cp"] == 1,
        "sharding": c["dp"] * c["cp"] == 1,
        "recompute_share": c["recompute"] != FULL,
    }
    runs = np.ones(np.shape(c["tp"]), bool)
    for axis, values in offers.items():
        if axis in c and axis != "recompute_modules":
            some = [CODED[axis].index(value) for value in values] if axis in CODED else values
            runs = runs & (among(c[axis], some) | no_use.get(axis, False))
    return runs
