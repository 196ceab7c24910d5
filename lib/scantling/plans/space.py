"""Spaces: which values of every axis a search tries where a field is not pinned."""

from dataclasses import replace
from typing import Any

from ..base.errors import DesignError
from ..base.records import record
from ..catalogue.published import published_schedules
from ..catalogue.words import (
    CP_TYPES,
    LAYER_SPLITS,
    OFFLOADS,
    RECOMPUTES,
    SHARDINGS,
    CpType,
    Offload,
    Precision,
    Recompute,
    Schedule,
    Sharding,
)
from ..design.resolved import Phase, Resolved
from ..physics.pipeline import DUALPIPES, SCHEDULES as SCHEDULES_BY_NAME
from ..physics.recompute import SWITCH_OF

# modules of a layer that `selective` may repeat, in any set
MODULES = tuple(module.value for module in SWITCH_OF)
# tokens of a sequence that a context-parallel rank keeps, at least: the shortest that published
# runs use
MIN_CHUNK = 4096
# and with which a plan is looked at beside the best; nobody has published a run with fewer
SHORT_CHUNK = 512
# the ends of axes that a space leaves open
DEEPEST = 128  # pipeline stages
EVERY_DEPTH = 16  # up to which every number of stages is tried, whatever the layers
MOST_CHUNKS = 20  # model parts of a stage
MOST_EXPERT_RANKS = 256


@record
class Space:
    """Values of each axis that a search tries where a field is not pinned. The defaults are the
    default space:

    tp 1 2 4 8 16 · cp 1 to 32 in powers of two, at least 4,096 tokens of the sequence a rank · pp
    every depth that divides layers or layers + 2 (embedding and head a layer each), and powers of
    two where layers are odd (DeepSeek-V3: 61 on 16), to 128 · vpp 1, and every number of chunks to
    20 that divides a stage (interleaved) · dp the largest divisor of global_batch that the devices
    allow, where it differs the one above half of them with most factors of two, and for a schedule
    that needs more micro-batches than that leaves, the largest that leaves them, with devices idle
    · micro_batch 1 2 3 4 6 8 16 · ep the divisors of the experts to 256 · etp 1 and tp · sp on ·
    sharding none, zero1, zero2, zero3 and hsdp (not interleaved) · recompute none, selective, full
    for an eighth, a quarter, half, three quarters and all of a stage's layers · schedule 1f1b,
    interleaved, and those of published runs of at least half the devices · cp_type ring, or the
    stack's own · layers even on the stages, and balanced where the slowest is a hundredth faster
    so.

    State in host memory and more context-parallel ranks are tried beside it (`stages.searched`),
    and of its best plans the neighbours in NEAR: sets of modules that are computed again, eighths
    of the layers, other depths, chunks and micro-batches (`refine.refined`).
    Schedules beyond the size that they were published on and other exchanges of context
    parallelism are in WIDE: too few runs are published with them to tell what they cost in
    practice, so they are tried where they are asked for, pinned, or a limit on speed would be
    missed without.
    """

    tp: tuple[int, ...] = (1, 2, 4, 8, 16)  # () = every divisor of the heads
    cp: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    pp: tuple[int, ...] = ()  # () = every depth that divides layers, or layers + 2
    vpp: tuple[int, ...] = ()  # () = every number of chunks to 20 that divides a stage
    micro_batch: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 16)
    ep: tuple[int, ...] = ()  # () = divisors of the experts, to 256
    etp: tuple[int, ...] = (1, 0)  # 0 = the same as tp
    sharding: tuple[str, ...] = SHARDINGS
    recompute: tuple[str, ...] = RECOMPUTES
    # modules of a layer whose sets `selective` is tried with, beside the stack's own
    recompute_modules: tuple[str, ...] = ()
    # of a stage's layers, under full recompute
    recompute_share: tuple[float, ...] = (0.125, 0.25, 0.5, 0.75, 1.0)
    schedule: tuple[str, ...] = (Schedule.ONE_F_ONE_B, Schedule.INTERLEAVED)
    offload: tuple[str, ...] = (Offload.NONE,)
    # where cp is above 1, and the stack has no way of its own
    cp_type: tuple[str, ...] = (CpType.RING,)
    sp: tuple[int, ...] = (1,)
    layer_split: tuple[str, ...] = LAYER_SPLITS  # where pp is above 1
    uneven: bool = False  # also depths that divide neither layers nor layers + 2
    # tried where the design leaves its precision open, besides its own
    precision: tuple[str, ...] = ()
    min_chunk: int = MIN_CHUNK  # tokens of a sequence that a context-parallel rank keeps, at least
    gathered_chunks: bool = False  # sharded weights beside interleaved chunks, where none is pinned
    stack: str = ""  # whose laws plans keep
    # axis -> the values that the stack, or the framework of a kit, has
    offers: tuple[tuple[str, tuple[Any, ...]], ...] = ()


DEFAULT = Space()
COARSE = Space(
    tp=(1, 2, 4, 8),
    micro_batch=(1, 2, 4),
    sharding=(Sharding.ZERO1, Sharding.ZERO3),
    recompute_share=(0.5, 1.0),
    etp=(1,),
)
_EVERY_SCHEDULE = (
    Schedule.ONE_F_ONE_B,
    Schedule.INTERLEAVED,
    Schedule.ZB_1P,
    Schedule.ZB_2P,
    Schedule.ZB_V,
    Schedule.DUALPIPE,
)
WIDE = Space(
    tp=(1, 2, 4, 8, 16, 32, 64),
    micro_batch=(1, 2, 3, 4, 6, 8, 12, 16, 32),
    schedule=_EVERY_SCHEDULE,
    offload=OFFLOADS,
    cp_type=CP_TYPES,
    sp=(0, 1),
    uneven=True,
    etp=(1, 2, 4, 8, 0),
    precision=(Precision.BF16, Precision.FP8, Precision.MXFP8),
)
# beside the default space: what state in host memory and uneven depths make room for
OFFLOADS_COARSE = replace(
    COARSE,
    offload=(Offload.OPTIMIZER, Offload.OPTIMIZER_PARAMS),
    uneven=True,
    etp=(1, 0),
    micro_batch=(1, 2, 3, 4),
)
# where little or nothing fits as it is
OFFLOADED = Space(offload=OFFLOADS, uneven=True)
# before a limit on speed is called missed: schedules and expert layouts of the wide space
SCHEDULES = replace(COARSE, schedule=_EVERY_SCHEDULE, etp=(1, 2, 4, 8, 0), uneven=True)
EVERY_CP = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
# the lean end of every axis that memory falls along: what does not fit here fits nowhere
LAST_RESORT = Space(
    tp=(),
    cp=EVERY_CP,
    min_chunk=1,
    micro_batch=(1,),
    vpp=(1,),
    # both ends of the pipe on each device: less of embedding and head
    schedule=(Schedule.ONE_F_ONE_B, Schedule.DUALPIPE),
    sharding=(Sharding.ZERO1, Sharding.ZERO3),
    recompute=(Recompute.FULL,),
    recompute_share=(1.0,),
    offload=OFFLOADS,
    uneven=True,
)
# of it, what needs no schedule of its own, and what needs no host memory: beside the default space
LEAN_OFFLOADED = replace(LAST_RESORT, schedule=(Schedule.ONE_F_ONE_B,))
LEAN = replace(LEAN_OFFLOADED, offload=(Offload.NONE,))
# beside it: more context-parallel ranks than it has, of plans that repeat nothing
MORE_CP = replace(
    COARSE,
    cp=EVERY_CP,
    min_chunk=SHORT_CHUNK,
    micro_batch=(1,),
    sharding=(Sharding.ZERO1,),
    recompute=(Recompute.NONE,),
)
# the values among which neighbours of good plans are sought
NEAR = Space(
    sp=(0, 1),
    tp=(1, 2, 4, 8, 16, 32, 64),
    cp=EVERY_CP,
    micro_batch=(1, 2, 3, 4, 6, 8, 12, 16),
    offload=OFFLOADS,
    recompute_modules=MODULES,
    recompute_share=(0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0),
    uneven=True,
    gathered_chunks=True,
    min_chunk=SHORT_CHUNK,
)
SPACES = {"coarse": COARSE, "default": DEFAULT, "wide": WIDE}


def space_of(space: Space | str | None) -> Space:
    """The space that is given or named; the default one where it is left out. Raises DesignError
    for anything else."""
    if space is None:
        return DEFAULT
    if isinstance(space, Space):
        return space
    if space not in SPACES:
        raise DesignError("space", space, SPACES)
    return SPACES[space]


def offered(space: Space, resolved: Resolved, own_stack: bool = True) -> Space:
    """The space without what the named stack, or the framework of a kit, does not offer, and with
    the schedules that are its own; where nothing of an axis would be left, the stack's values.
    What is not offered is not searched; a pin may still ask for it. Where neither names
    schedules, those of published runs of at least half the devices are tried besides; DualPipe,
    which hides the exchange of experts (DeepSeek-V3, section 3.2.1), with experts alone. Sets of
    modules are tried under a stack that offers them, and where none is named.

    own_stack : False leaves out the stack and the framework."""
    offers: dict[str, tuple[Any, ...]] = resolved.offers if own_stack else {}
    named = resolved.stack if own_stack else None
    if "schedule" not in offers and not named:
        schedules = (*space.schedule, *_published_besides(space, resolved))
        space = replace(space, schedule=schedules)
    if named and "recompute_modules" not in offers:
        space = replace(space, recompute_modules=())
    values: dict[str, Any] = {
        axis: _offered_values(space, axis, values) for axis, values in offers.items()
    }
    return replace(space, **values, stack=named or "", offers=tuple(offers.items()))


def more_cp(resolved: Resolved, phase: Phase, own_stack: bool) -> list[Space]:
    """The space of the context-parallel ways that the default one leaves out; none where there are
    none, or the ways are pinned."""
    usual, more = (
        {cp for cp in space.cp if phase.seq_len // cp >= space.min_chunk}
        for space in (offered(one, resolved, own_stack) for one in (DEFAULT, MORE_CP))
    )
    further = sorted(more - usual - {1})
    return [replace(MORE_CP, cp=tuple(further))] if further and phase.pins.get("cp") is None else []


def _published_besides(space: Space, resolved: Resolved) -> list[str]:
    """Schedules of published runs of at least half the devices that a space does not list; DualPipe
    with experts alone."""
    return [
        name
        for name in published_schedules(resolved.cluster.devices)
        if name not in space.schedule
        and (resolved.model.is_moe or SCHEDULES_BY_NAME[name].code not in DUALPIPES)
    ]


def _offered_values(space: Space, axis: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of an axis of a space that are offered; those that are offered where the space has
    none of them, and of schedules always."""
    if axis == "schedule":
        return values
    common = tuple(value for value in values if value in vars(space)[axis])
    return common or values
