"""Spaces: which values of every axis a search tries where a field is not pinned."""

from dataclasses import replace

from ..base.errors import DesignError
from ..base.records import record
from ..base.words import table
from ..catalogue.published import published_accumulation, published_schedules
from ..catalogue.stacks import stack
from ..catalogue.words import LAYER_SPLITS
from ..physics.pipeline import DUALPIPES, SCHEDULES as SCHEDULES_BY_NAME

# tokens of a sequence that a context-parallel rank keeps, at least: the shortest that published
# runs use
MIN_CHUNK = 4096


@record
class Space:
    """Values of each axis that a search tries where a field is not pinned. The defaults are the
    default space:

    tp 1 2 4 8 16 · cp 1 to 32 in powers of two, at least 4,096 tokens of the sequence a rank · pp
    every depth that divides layers or
    layers + 2 (embedding and head a layer each), and powers of two where layers are odd
    (DeepSeek-V3: 61 on 16), to 128 · vpp 1, and every number of chunks to 20 that divides a stage
    (interleaved) ·
    dp the largest divisor of global_batch that the devices allow, where it differs the one
    above half of them with most factors of two, and for a schedule that needs more micro-batches
    than that leaves, the largest that leaves them, with devices idle · micro_batch 1 2 4 8 16 ·
    ep the divisors of the experts to 256 ·
    etp 1 and tp · sp on and off · sharding none, zero1, zero2 (one micro-batch a step), zero3 and
    hsdp (not interleaved) ·
    recompute none, selective, full for a quarter, half, three quarters and all of a stage's layers
    · schedule 1f1b, interleaved, and those of published runs of at least half the devices ·
    cp_type ring, or the stack's own · layers even on the stages, and balanced where the slowest is
    a hundredth faster so.

    State in host memory and recompute by eighths are tried beside it (`stages.searched`).
    Schedules beyond the size that they were published on, other exchanges of context parallelism,
    micro-batches that are no power of two and other depths are in WIDE: too few runs are published
    with them to tell what they cost in practice, so they are tried where they are asked for,
    pinned, or a limit on speed would be missed without.
    """

    tp: tuple = (1, 2, 4, 8, 16)  # () = every divisor of the heads
    cp: tuple = (1, 2, 4, 8, 16, 32)
    pp: tuple = ()  # () = every depth that divides layers, or layers + 2
    vpp: tuple = ()  # () = every number of chunks to 20 that divides a stage
    micro_batch: tuple = (1, 2, 4, 8, 16)
    ep: tuple = ()  # () = divisors of the experts, to 256
    etp: tuple = (1, 0)  # 0 = the same as tp
    sharding: tuple = ("none", "zero1", "zero2", "zero3", "hsdp")
    recompute: tuple = ("none", "selective", "full")
    recompute_share: tuple = (0.25, 0.5, 0.75, 1.0)  # of a stage's layers, under full recompute
    schedule: tuple = ("1f1b", "interleaved")
    offload: tuple = ("none",)
    cp_type: tuple = ("ring",)  # where cp is above 1, and the stack has no way of its own
    sp: tuple = (0, 1)
    layer_split: tuple = LAYER_SPLITS  # where pp is above 1
    accumulates: bool = False  # zero2 over several micro-batches too
    uneven: bool = False  # also depths that divide neither layers nor layers + 2
    precision: tuple = ()  # tried where the design leaves its precision open, besides its own
    min_chunk: int = MIN_CHUNK  # tokens of a sequence that a context-parallel rank keeps, at least


DEFAULT = Space()


def _spaces() -> dict:
    """The rows of spaces.yaml by name."""
    made = {"default": DEFAULT}
    for name, row in table(__file__, "spaces").items():
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
        like = values.pop("like", "default")
        made[name] = replace(made[like], **values)
    return made


_, COARSE, WIDE, OFFLOADS_COARSE, OFFLOADED, SCHEDULES, LAST_RESORT, LEAN, FINE = _spaces().values()


SPACES = {"coarse": COARSE, "default": DEFAULT, "wide": WIDE}


def space_of(space: Space | str | None) -> Space:
    """The space that is given or named; the default one where it is left out. Raises DesignError
    for anything else."""
    found = DEFAULT if space is None else SPACES.get(str(space), space)
    if isinstance(found, Space):
        return found
    raise DesignError("space", space, SPACES)


def offered(space: Space, resolved, own: bool = True) -> Space:
    """The space without what the named stack, or the framework of a kit, does not offer, and with
    the schedules that are its own; where nothing of an axis would be left, the stack's values.
    What is not offered is not searched; a pin may still ask for it. Where neither names
    schedules, those of published runs of at least half the devices are tried besides; DualPipe,
    which hides the exchange of experts (DeepSeek-V3, section 3.2.1), with experts alone. zero2
    over several micro-batches is tried under a stack whose own sharding it is (Llama 3, section
    3.3.2), and where no software is named on about as many devices as it was published on. own :
    False leaves out the stack and the framework."""
    offers = resolved.offers if own else {}
    named = own and resolved.stack
    if "schedule" not in offers and not named:
        published = published_schedules(resolved.cluster.devices)
        more = (
            s
            for s in published
            if s not in space.schedule
            and (resolved.model.is_moe or SCHEDULES_BY_NAME[s].code not in DUALPIPES)
        )
        space = replace(space, schedule=(*space.schedule, *more))
    alone = "sharding" not in offers and published_accumulation(resolved.cluster.devices)
    return replace(
        space,
        accumulates=stack(named).sharding == "zero2" if named else alone,
        **{
            k: values
            if k == "schedule"
            else tuple(v for v in values if v in getattr(space, k)) or values
            for k, values in offers.items()
        },
    )
