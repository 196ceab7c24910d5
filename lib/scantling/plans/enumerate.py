"""Every legal plan of a space as columns.

A pin fixes an axis; what is not pinned takes every value of its axis in the space. Columns are
crossed one axis at a time and cut by the laws as soon as a law can be told, so the product of all
axes never exists.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..base.columns import Array, Column
from ..base.errors import DesignError
from ..base.records import record
from ..catalogue.models.shape import Model, shape_of
from ..catalogue.words import Recompute
from ..design.cluster import Cluster
from ..design.pins import Pins, pin
from ..design.resolved import Phase
from ..physics.cases import FULL, HSDP, ZERO3, Plan, accumulated, code
from ..physics.layout import gains
from ..physics.pipeline import RULES, SCHEDULES, Division
from .laws import Law, Setting, Stage, laws_of, setting_of
from .plan_names import CODED
from .space import DEEPEST, DEFAULT, EVERY_DEPTH, MOST_CHUNKS, MOST_EXPERT_RANKS, Space
from .stack_laws import Run, allowed, laws_of_stack

ANY = -1  # of `under`: any schedule may follow
FEW_DIVISORS = 3  # of a global batch (a prime, its square), with no more of which each is tried

Columns = dict[str, Array]  # the axes laid out so far, a row a plan


@lru_cache(maxsize=4096)
def divisors(n: int) -> Array:
    """All divisors of n, ascending."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return np.array(sorted({*small, *(n // d for d in small)}), np.int64)


def cross(columns: Columns, name: str, values: Sequence[Any] | Array) -> Columns:
    """Columns with every row repeated for each value of one more axis."""
    axis = np.asarray(values)
    if axis.dtype.kind == "i":  # 32 bits by default on some machines: a product would wrap
        axis = axis.astype(np.int64)
    n = len(next(iter(columns.values()), (0,)))
    if len(axis) > 1:
        columns = {k: np.repeat(v, len(axis)) for k, v in columns.items()}
    return columns | {name: np.tile(axis, n)}


def keep(columns: Columns, mask: Array) -> Columns:
    """The rows where mask holds."""
    if np.all(mask):
        return columns
    rows = np.flatnonzero(mask)  # once, not once a column
    return {k: v[rows] for k, v in columns.items()}


def depths(layers: int, space: Space, devices: int) -> list[int]:
    """Pipeline depths of a space, ascending."""
    most = min(layers, devices)
    if space.pp:
        return [p for p in space.pp if p <= most]
    tried = {*divisors(layers).tolist(), *divisors(layers + 2).tolist()}
    if layers % 2 or space.uneven:
        tried.update(2**i for i in range(DEEPEST.bit_length()))
    if space.uneven:
        tried.update(range(1, EVERY_DEPTH + 1))
    return sorted(p for p in tried if p <= min(most, DEEPEST))


@record
class Question:
    """What plans are asked for: the space, the pins in it, and what they have to suit."""

    model: Model
    phase: Phase
    cluster: Cluster
    space: Space
    pins: Pins
    own_modules: int = 0  # bits of what the stack's own `selective` repeats; 0: no set says it

    @cached_property
    def setting(self) -> Setting:
        """What the plans have to suit."""
        return setting_of(self.model, self.phase, self.cluster)

    def pick(
        self, name: str, default: Sequence[Any] | Array | None = None
    ) -> Sequence[Any] | Array:
        """The pin of an axis alone, else `default`, or the values of the space."""
        pinned = pin(self.pins, name)
        if pinned is not None:
            return (pinned,)
        if default is not None:
            return default
        values: tuple[Any, ...] = vars(self.space)[name]
        return values

    def codes(self, name: str) -> list[int]:
        """The codes of an axis whose values are words."""
        return [code(CODED[name], value) for value in self.pick(name)]

    def keeps(self, law: Law, columns: Columns) -> Array:
        """Where a law is kept."""
        return law.holds(columns, self.setting)


def enumerate_plans(
    model: Model, phase: Phase, cluster: Cluster, space: Space = DEFAULT, pins: Pins | None = None
) -> Plan:
    """Every legal plan of the space under the pins, as columns.

    dp is the largest divisor of global_batch that the devices allow. Beside it stand two that leave
    devices idle: the roundest, and the largest that leaves a schedule the micro-batches it needs;
    every divisor, of a batch that has few.
    Raises DesignError, naming the law, where the pins leave no legal plan.
    """
    q = Question(model=model, phase=phase, cluster=cluster, space=space, pins=pins or {})
    c: Columns = {}
    for name, values in degrees(q).items():
        c = cross(c, name, values)
    c = _lawful(c, Stage.DEGREES, q)
    for lay_out in (
        data_parallel,
        _micro_batches,
        _experts,
        _schedules,
        _splits,
        _sharding,
        shard_groups,
        _recompute,
        _offload,
        _sequence,
        _of_stack,
        _exchange,
    ):
        c = lay_out(c, q)
    return plan_of(c)


def _of_stack(c: Columns, q: Question) -> Columns:
    """The rows that keep the laws of the space's stack."""
    for law in laws_of_stack(q.space.stack):
        c = keep(c, allowed(law, c, Run(q.model, q.phase, q.cluster), q.pins))
        field = f"plan.{law.field}"
        c = _some(c, field, pin(q.pins, law.field), f"{law.text} ({law.source})")
    return c


def plan_of(c: Columns) -> Plan:
    """Columns laid out as plans, as the models take them."""
    fields: dict[str, Any] = {name: _field(name, column) for name, column in c.items()}
    return Plan(**fields)


def _field(name: str, column: Array) -> Column:
    """A column of plans as the models take it: codes whole, numbers as floats, one value of all as
    a scalar."""
    if column.ndim == 0:
        value: float = column.item()
        return value
    return column if name in CODED else column.astype(float)


def degrees(q: Question) -> dict[str, Sequence[Any] | Array]:
    """The values of tensor, context and pipeline parallelism that are tried."""
    devices, space = q.cluster.devices, q.space
    tps = space.tp or divisors(q.model.heads)
    cps = (cp for cp in space.cp if cp == 1 or q.phase.seq_len // cp >= space.min_chunk)
    return {
        "tp": q.pick("tp", [tp for tp in tps if tp <= devices]),
        "cp": q.pick("cp", [*cps]),
        "pp": q.pick("pp", depths(q.model.layers, space, devices)),
    }


class Replicas(NamedTuple):
    """So many replicas of every row, and the code of the one schedule that may follow."""

    dp: Array  # 0: the row has no such number
    under: int = ANY


def data_parallel(c: Columns, q: Question) -> Columns:
    """The rows with each number of replicas that is tried, each once."""
    pinned = q.pins.get("dp")
    room = np.asarray(q.cluster.replicas(c["tp"] * c["cp"] * c["pp"]))
    if pinned is not None:
        c = keep(_with(c, Replicas(np.asarray(pinned))), room >= pinned)
        return _some(c, "plan.dp", pinned, "at most devices / (tp x cp x pp)", int(room.max()))
    table = _replica_counts(q)
    at = np.searchsorted(table, room, side="right") - 1
    largest = np.where(at < 0, 0, table[at])
    tried = [Replicas(largest), Replicas(_roundest(table, room))]
    if len(table) <= FEW_DIVISORS:
        tried += [Replicas(np.where(room >= count, count, 0)) for count in table.tolist()]
    of_any_schedule = len(tried)
    tried += _accumulating(q, table, at, c["pp"])
    parts = []
    for i, replicas in enumerate(tried):
        new = replicas.dp > 0
        for before in tried[: min(i, of_any_schedule)]:
            new = new & (replicas.dp != before.dp)
        parts.append(keep(_with(c, replicas), new))
    return stacked(parts)


def _replica_counts(q: Question) -> Array:
    """Numbers of replicas that share the global batch out evenly, ascending."""
    batch = q.phase.global_batch
    table: Array = divisors(batch)
    table = table[table % q.cluster.shares == 0]
    for parts in (q.pins.get("micro_batch"), q.pins.get("grad_accum")):
        if parts:
            table = table[batch % (table * parts) == 0]
    if not table.size:
        allowed = f"a divisor of the global batch {batch:,}"
        raise DesignError("plan.micro_batch", q.pins.get("micro_batch"), allowed)
    return table


def stacked(parts: list[Columns]) -> Columns:
    """The rows of several tables, one after the other."""
    return {k: np.concatenate([part[k] for part in parts]) for k in parts[0]}


def _with(c: Columns, replicas: Replicas) -> Columns:
    """The rows with so many replicas."""
    n = len(c["tp"])
    return c | {
        "dp": np.broadcast_to(np.int64(replicas.dp), n),
        "under": np.full(n, replicas.under),
    }


def _accumulating(q: Question, table: Array, at: Array, pp: Array) -> Iterator[Replicas]:
    """Of each schedule the largest divisor, of a table up to the row `at`, whose micro-batches its
    rules allow. Interleaving and two-way schedules ask for
    as many micro-batches as there are stages, or twice that: on more devices than have so many,
    half of them idle may be faster."""
    stages, stage = np.unique(pp, return_inverse=True)
    m = q.phase.global_batch // (table * min(q.pick("micro_batch")))
    for name in q.pick("schedule"):
        schedule = SCHEDULES[name]
        lawful = rules_hold(name, stages[:, None], schedule.chunks or 2, m, q)
        most = np.maximum.accumulate(np.where(lawful, table, 0), axis=1)
        yield Replicas(np.where(at < 0, 0, most[stage, at]), schedule.code)


def _micro_batches(c: Columns, q: Question) -> Columns:
    """The rows with each size of a micro-batch, or with the one that pinned steps of accumulation
    leave."""
    batch, steps, pinned = q.phase.global_batch, q.pins.get("grad_accum"), q.pins.get("micro_batch")
    if steps is None:
        return _lawful(cross(c, "micro_batch", q.pick("micro_batch")), Stage.BATCH, q)
    size = batch // (c["dp"] * steps)
    whole = (size >= 1) & (size * c["dp"] * steps == batch)
    if pinned is not None:
        whole &= size == pinned
    c = keep({**c, "micro_batch": size}, whole)
    allowed = f"dp x micro_batch x grad_accum = global_batch {batch:,}"
    return _lawful(_some(c, "plan.grad_accum", steps, allowed), Stage.BATCH, q)


def _roundest(table: Array, room: Array) -> Array:
    """The divisor in (room / 2, room] that has most factors of two, 0 where there is none: expert
    parallelism and interleaving may need them more than the last devices."""
    rooms, index = np.unique(room, return_inverse=True)
    best = [
        max(table[(2 * table > r) & (table <= r)], key=lambda d: (d & -d, d), default=0)
        for r in rooms
    ]
    return np.array(best)[index]


def _experts(c: Columns, q: Question) -> Columns:
    """How experts are spread, and each of them split; one row of a dense model."""
    if not q.model.is_moe:
        one = np.ones(len(c["tp"]), np.int64)
        return {**c, "ep": one, "etp": one}
    etps = q.pick("etp")  # 0 is the same as tp
    every = divisors(q.model.experts)
    c = cross(c, "ep", q.pick("ep", q.space.ep or every[every <= MOST_EXPERT_RANKS]))
    c = cross(c, "etp", etps)
    c = keep(c, (c["etp"] > 0) | ~np.isin(c["tp"], etps))
    etp = np.where(c["etp"] > 0, c["etp"], c["tp"])
    return _lawful({**c, "etp": etp}, Stage.EXPERTS, q)


def chunks_of(name: str, q: Question, deepest: int) -> list[int]:
    """Model parts a stage that a schedule is tried with."""
    fixed = SCHEDULES[name].chunks
    if fixed is not None:
        return [v for v in q.pick("vpp", (fixed,)) if v == fixed]
    tried = q.space.vpp or range(2, min(deepest, MOST_CHUNKS) + 1)
    return [v for v in q.pick("vpp", tried) if v > 1]


def rules_hold(name: str, pp: Array, vpp: Array | int, m: Array, q: Question) -> Array:
    """Where a schedule's own rules are kept, over columns that fit together."""
    ends = 0 if q.model.pattern else 2
    division = Division(pp=pp, vpp=vpp, m=m, layers=q.model.layers, ends=ends)
    lawful = pp * m > 0
    for rule in RULES:
        if name in rule.schedules:
            lawful = lawful & rule.holds(division)
    return np.asarray(lawful)


def _scheduled(name: str, c: Columns, m: Array, values: list[int], q: Question) -> Columns:
    """Rows of one schedule: every number of model parts that its rules allow."""
    layers, schedule = q.model.layers, SCHEDULES[name]
    may = (c["under"] == ANY) | (c["under"] == schedule.code)
    c, m = keep(c, may), m[may]
    codes = np.full(len(m), schedule.code, np.int64)
    c = cross({**c, "m": m, "schedule": codes}, "vpp", values)
    pp, vpp = c["pp"], c["vpp"]
    lawful = rules_hold(name, pp, vpp, c["m"], q)
    if schedule.chunks is None and q.pins.get("vpp") is None:
        lawful = lawful & (np.where(layers % pp == 0, layers, layers + 2) % (pp * vpp) == 0)
    return keep(c, lawful)


def _schedules(c: Columns, q: Question) -> Columns:
    """The rows under each schedule that may follow, with its numbers of model parts."""
    names = q.pick("schedule")
    m = np.asarray(accumulated(q.phase.global_batch, c["dp"], c["micro_batch"]))
    deepest = max(1, -(-q.model.layers // int(c["pp"].min())))
    parts = []
    for name in names:
        chunks = chunks_of(name, q, deepest)
        if chunks:
            parts.append(_scheduled(name, c, m, chunks, q))
    rows = stacked(parts) if parts else {"tp": np.empty(0)}
    rules = {rule.text for name in names for rule in RULES if name in rule.schedules}
    rows = _some(rows, "plan.schedule", names[0], "; ".join(sorted(rules)))
    return {k: v for k, v in rows.items() if k not in ("m", "under")}


def _splits(c: Columns, q: Question) -> Columns:
    """How layers fall on stages: as the framework lays them, and balanced where the slowest stage
    may have less to do so and no run of layers is left empty."""
    better = splits_better(c, q)
    pinned = q.pins.get("layer_split")
    c = cross(c, "layer_split", q.codes("layer_split") if pinned or np.any(better) else [0])
    c = keep(c, (c["layer_split"] == 0) | np.repeat(better, len(c["pp"]) // len(better)))
    return _some(c, "plan.layer_split", pinned, "even: balanced stages have no less to do here")


def splits_better(c: Columns, q: Question) -> Array:
    """Where balanced runs of layers may leave the slowest stage less to do, and none empty."""
    better: Array = np.asarray(gains(shape_of(q.model), q.phase.seq_len, c["pp"]))
    better &= c["pp"] * c["vpp"] < q.model.layers
    # runs that are given are not the framework's own
    return np.broadcast_to(better | bool(q.pins.get("layout")), c["tp"].shape)


def _sharding(c: Columns, q: Question) -> Columns:
    """What data-parallel ranks share out; nothing where there is one of them."""
    c = cross(c, "sharding", q.codes("sharding"))
    if q.pins.get("sharding") is None:
        alone = c["dp"] * c["cp"] == 1  # nothing to shard over: one way, and its name is none
        first = c["sharding"] == c["sharding"].min()
        c = keep({**c, "sharding": np.where(alone, 0, c["sharding"])}, first | ~alone)
        open_chunks = all(pin(q.pins, name) is None for name in ("vpp", "schedule"))
        if open_chunks and not q.space.gathered_chunks:
            # weights would be gathered once a chunk: few frameworks do, and none that gained by it
            c = keep(c, (c["sharding"] < ZERO3) | (c["vpp"] == 1))
    return c


def shard_groups(c: Columns, q: Question) -> Columns:
    """Ranks that share one copy: under hsdp those of a scale-up domain, else all."""
    ranks, pinned = q.cluster.in_smallest_site(c["dp"]) * c["cp"], q.pins.get("shard_group")
    hybrid = c["sharding"] == HSDP
    inside = np.maximum(q.cluster.scale_up_domain // c["tp"], 1)
    group = np.where(hybrid, pinned or np.gcd(ranks, inside), ranks)
    legal = ~hybrid | (group > 1) & (ranks % group == 0) & (group < ranks)
    c = keep({**c, "shard_group": group}, legal)
    allowed = "a divisor of dp x cp in a site, above 1 and below it, for hsdp"
    return _lawful(_some(c, "plan.shard_group", pinned, allowed), Stage.SHARD_GROUP, q)


def _recompute(c: Columns, q: Question) -> Columns:
    """Recompute and the share of a stage's layers that it covers, in whole layers; a share that
    rounds to another one is left out."""
    layers = q.pins.get("recompute_layers")
    pinned = layers is not None or q.pins.get("recompute") is not None  # then all layers
    shares = (1.0,) if pinned else tuple(sorted(q.space.recompute_share))
    pairs = [
        (code(CODED["recompute"], name), share)
        for name in q.pick("recompute")
        for share in (shares if name == Recompute.FULL else (1.0,))
    ]
    c = cross(c, "recompute", np.arange(len(pairs)))
    kind, share = (np.array(column)[c["recompute"]] for column in zip(*pairs))
    stage_layers = -(-q.model.layers // c["pp"])
    if layers is not None:
        share = np.where(kind > 0, np.minimum(layers / stage_layers, 1.0), 1.0)
        return {**c, "recompute": kind, "recompute_share": share}
    whole, full = np.ceil(share * stage_layers), kind == FULL
    again = np.zeros(len(kind), bool)
    for smaller in shares[:-1]:
        again |= full & (share > smaller) & (np.ceil(smaller * stage_layers) == whole)
    share = np.where(full, whole / stage_layers, 1.0)
    return keep({**c, "recompute": kind, "recompute_share": share}, ~again)


def _offload(c: Columns, q: Question) -> Columns:
    """What waits in host memory."""
    return cross(c, "offload", q.codes("offload"))


def _sequence(c: Columns, q: Question) -> Columns:
    """Sequence parallelism beside tensor parallelism; one row where only one value is left."""
    c = cross(c, "sp", [int(v) for v in q.pick("sp")])
    if q.pins.get("sp") is not None:
        return _lawful(c, Stage.SEQUENCE, q)
    able = c["tp"] > 1
    for law in laws_of(Stage.SEQUENCE):
        able = able & q.keeps(law, c | {"sp": np.ones_like(c["sp"])})
    return keep({**c, "sp": np.where(able, c["sp"], 0)}, able | (c["sp"] == max(q.space.sp)))


def _exchange(c: Columns, q: Question) -> Columns:
    """How context parallelism exchanges keys and values; one row where there is none."""
    types = q.codes("cp_type")
    c = cross(c, "cp_type", types)
    c = _lawful(keep(c, (c["cp"] > 1) | (c["cp_type"] == types[0])), Stage.EXCHANGE, q)
    return {**c, "cp_type": np.array(types[0])} if len(types) == 1 else c


def _lawful(c: Columns, stage: Stage, q: Question) -> Columns:
    """The rows that keep the laws of one stage."""
    for law in laws_of(stage):
        c = keep(c, q.keeps(law, c))
        if not len(c["tp"]):
            fields = (law.field, "tp", "cp", "pp", "dp", "micro_batch", "ep")
            field = next((f for f in fields if pin(q.pins, f) is not None), law.field)
            _some(c, f"plan.{field}", pin(q.pins, field), f"{law.text} ({law.source})")
    return c


def _some(c: Columns, field: str, value: Any, allowed: str, nearest: int | None = None) -> Columns:
    """The rows, of which there has to be one."""
    if not len(c["tp"]):
        raise DesignError(field, value, allowed, nearest, problem="leaves no legal plan")
    return c
