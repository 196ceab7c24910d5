"""Every legal plan of a space as columns.

A pin fixes an axis; what is not pinned takes every value of its axis in the space. Columns are
crossed one axis at a time and cut by the laws as soon as a law can be told, so the product of all
axes never exists.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ..base.errors import DesignError
from ..base.records import record
from ..catalogue.models.shape import shape_of
from ..physics.cases import FULL, HSDP, ZERO2, Plan, accumulated, code
from ..physics.layout import gains
from ..physics.pipeline import RULES, SCHEDULES, Division
from .laws import Law, of
from .space import DEFAULT, Space
from .words import NAMES

ANY = -1  # of `under`: any schedule may follow


@lru_cache(maxsize=4096)
def divisors(n: int) -> np.ndarray:
    """All divisors of n, ascending."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return np.array(sorted({*small, *(n // d for d in small)}), np.int64)


def cross(columns: dict, name: str, values) -> dict:
    """Columns with every row repeated for each value of one more axis."""
    values = np.asarray(values)
    if values.dtype.kind == "i":  # 32 bits by default on some machines: a product would wrap
        values = values.astype(np.int64)
    n = len(next(iter(columns.values()), (0,)))
    if len(values) > 1:
        columns = {k: np.repeat(v, len(values)) for k, v in columns.items()}
    return columns | {name: np.tile(values, n)}


def keep(columns: dict, mask) -> dict:
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
        tried.update(2**i for i in range(8))
    if space.uneven:
        tried.update(range(1, 17))
    return sorted(p for p in tried if p <= min(most, 128))


@record
class Question:
    """What plans are asked for: the space, the pins in it, and what they have to suit."""

    model: object
    phase: object
    cluster: object
    space: Space
    pins: dict

    def pick(self, name: str, default=None):
        """The pin of an axis alone, else `default`, or the values of the space."""
        if self.pins.get(name) is not None:
            return (self.pins[name],)
        return getattr(self.space, name) if default is None else default

    def codes(self, name: str) -> list[int]:
        """The codes of an axis whose values are words."""
        return [code(NAMES[name], value) for value in self.pick(name)]

    def kept(self, law: Law, columns: dict):
        """Where a law is kept."""
        return law.kept(self.model, self.phase, self.cluster, **columns)


def enumerate_plans(
    model, phase, cluster, space: Space = DEFAULT, pins: dict | None = None
) -> Plan:
    """Every legal plan of the space under the pins, as columns.

    dp is the largest divisor of global_batch that the devices allow. Beside it stand two that leave
    devices idle: the roundest, and the largest that leaves a schedule the micro-batches it needs.
    Raises DesignError, naming the law, where the pins leave no legal plan.
    """
    q = Question(model=model, phase=phase, cluster=cluster, space=space, pins=pins or {})
    c = {}
    for name, values in degrees(q).items():
        c = cross(c, name, values)
    c = _lawful(c, "degrees", q)
    for axis in (
        _data_parallel,
        _micro_batches,
        _experts,
        _schedules,
        _splits,
        _sharding,
        _shard_groups,
        _recompute,
        _offload,
        _sequence,
        _exchange,
    ):
        c = axis(c, q)
    return Plan(**{k: v if k in NAMES else v.astype(float) for k, v in c.items()})


def degrees(q: Question) -> dict[str, list]:
    """The values of tensor, context and pipeline parallelism that are tried."""
    devices, space = q.cluster.devices, q.space
    return {
        "tp": q.pick("tp", [t for t in space.tp or divisors(q.model.heads) if t <= devices]),
        "cp": q.pick(
            "cp", [x for x in space.cp if x == 1 or q.phase.seq_len // x >= space.min_chunk]
        ),
        "pp": q.pick("pp", depths(q.model.layers, space, devices)),
    }


def _data_parallel(c: dict, q: Question) -> dict:
    batch, pinned = q.phase.global_batch, q.pins.get("dp")
    room = q.cluster.replicas(c["tp"] * c["cp"] * c["pp"])
    if pinned is not None:
        c = keep(_with(c, pinned), room >= pinned)
        return _some(c, "plan.dp", pinned, "at most devices / (tp x cp x pp)", int(room.max()))
    table = divisors(batch)
    table = table[table % q.cluster.shares == 0]
    for name in ("micro_batch", "grad_accum"):
        if q.pins.get(name):
            table = table[batch % (table * q.pins[name]) == 0]
    if not len(table):
        raise DesignError(
            "plan.micro_batch",
            q.pins.get("micro_batch"),
            f"a divisor of the global batch {batch:,}",
        )
    at = np.searchsorted(table, room, side="right") - 1
    free = [np.where(at < 0, 0, table[at]), _roundest(table, room)]
    tried = [(ANY, dp) for dp in free]
    tried += _accumulating(q, table, at, c["pp"])
    parts = []
    for i, (under, dp) in enumerate(tried):
        new = np.all([dp > 0, *(dp != known for known in free[:i])], axis=0)
        parts.append(keep(_with(c, dp, under), new))
    return {k: np.concatenate([part[k] for part in parts]) for k in parts[0]}


def _with(c: dict, dp, under: int = ANY) -> dict:
    """The rows with so many replicas; under : the code of the one schedule that may follow."""
    n = len(c["tp"])
    return c | {"dp": np.broadcast_to(np.int64(dp), n), "under": np.full(n, under)}


def _accumulating(q: Question, table, at, pp) -> Iterator[tuple]:
    """(code, dp) of each schedule: the largest divisor, of a table up to the row `at`, whose
    micro-batches its rules allow, 0 where there is none. Interleaving and two-way schedules ask for
    as many micro-batches as there are stages, or twice that: on more devices than have so many,
    half of them idle may be faster."""
    stages, stage = np.unique(pp, return_inverse=True)
    m = q.phase.global_batch // (table * min(q.pick("micro_batch")))
    for name in q.pick("schedule"):
        schedule = SCHEDULES[name]
        kept = _rules(name, stages[:, None], schedule.chunks or 2, m, q)
        most = np.maximum.accumulate(np.where(kept, table, 0), axis=1)
        yield schedule.code, np.where(at < 0, 0, most[stage, at])


def _micro_batches(c: dict, q: Question) -> dict:
    batch, steps, pinned = q.phase.global_batch, q.pins.get("grad_accum"), q.pins.get("micro_batch")
    if steps is None:
        return _lawful(cross(c, "micro_batch", q.pick("micro_batch")), "batch", q)
    size = batch // (c["dp"] * steps)
    whole = (size >= 1) & (size * c["dp"] * steps == batch)
    if pinned is not None:
        whole &= size == pinned
    c = keep({**c, "micro_batch": size}, whole)
    return _lawful(
        _some(
            c, "plan.grad_accum", steps, f"dp x micro_batch x grad_accum = global_batch {batch:,}"
        ),
        "batch",
        q,
    )


def _roundest(table, room):
    """The divisor in (room / 2, room] that has most factors of two, 0 where there is none: expert
    parallelism and interleaving may need them more than the last devices."""
    rooms, where = np.unique(room, return_inverse=True)
    return np.array(
        [
            max(table[(2 * table > r) & (table <= r)], key=lambda d: (d & -d, d), default=0)
            for r in rooms
        ]
    )[where]


def _experts(c: dict, q: Question) -> dict:
    if not q.model.is_moe:
        one = np.ones(len(c["tp"]), np.int64)
        return {**c, "ep": one, "etp": one}
    etps = q.pick("etp")  # 0 is the same as tp
    every = divisors(q.model.experts)
    c = cross(cross(c, "ep", q.pick("ep", q.space.ep or every[every <= 256])), "etp", etps)
    c = keep(c, (c["etp"] > 0) | ~np.isin(c["tp"], etps))
    return _lawful({**c, "etp": np.where(c["etp"] > 0, c["etp"], c["tp"])}, "experts", q)


def _chunks(name: str, q: Question, deepest: int) -> list:
    """Model parts a stage that a schedule is tried with."""
    fixed = SCHEDULES[name].chunks
    if fixed is not None:
        return [v for v in q.pick("vpp", (fixed,)) if v == fixed]
    return [v for v in q.pick("vpp", q.space.vpp or range(2, min(deepest, 20) + 1)) if v > 1]


def _rules(name: str, pp, vpp, m, q: Question):
    """Where a schedule's own rules are kept, over columns that fit together."""
    ends = 0 if q.model.pattern else 2
    plan = Division(pp=pp, vpp=vpp, m=m, layers=q.model.layers, ends=ends)
    own = [rule.kept(plan) for rule in RULES if name in rule.schedules]
    return np.all(np.broadcast_arrays(pp * m > 0, *own), axis=0)


def _scheduled(name: str, c: dict, m, values, q: Question) -> dict:
    """Rows of one schedule: every number of model parts that its rules allow."""
    layers, row = q.model.layers, SCHEDULES[name]
    may = (c["under"] == ANY) | (c["under"] == row.code)
    c, m = keep(c, may), m[may]
    c = cross({**c, "m": m, "schedule": np.full(len(m), row.code, np.int64)}, "vpp", values)
    pp, vpp = c["pp"], c["vpp"]
    lawful = _rules(name, pp, vpp, c["m"], q)
    if row.chunks is None and q.pins.get("vpp") is None:
        lawful &= np.where(layers % pp == 0, layers, layers + 2) % (pp * vpp) == 0
    return keep(c, lawful)


def _schedules(c: dict, q: Question) -> dict:
    names = q.pick("schedule")
    m = accumulated(q.phase.global_batch, c["dp"], c["micro_batch"])
    deepest = max(1, -(-q.model.layers // int(c["pp"].min())))
    parts = [
        _scheduled(name, c, m, values, q) for name in names if (values := _chunks(name, q, deepest))
    ]
    whole = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]} if parts else {"tp": ()}
    _some(
        whole,
        "plan.schedule",
        names[0],
        "; ".join(sorted({r.text for n in names for r in RULES if n in r.schedules})),
    )
    del whole["m"], whole["under"]
    return whole


def _splits(c: dict, q: Question) -> dict:
    """How layers fall on stages: as the framework lays them, and balanced where the slowest stage
    may have less to do so and no run of layers is left empty."""
    better = gains(shape_of(q.model), q.phase.seq_len, c["pp"])
    better &= c["pp"] * c["vpp"] < q.model.layers
    better |= bool(q.pins.get("layout"))  # runs that are given are not the framework's own
    pinned = q.pins.get("layer_split")
    c = cross(c, "layer_split", q.codes("layer_split") if pinned or np.any(better) else [0])
    c = keep(c, (c["layer_split"] == 0) | np.repeat(better, len(c["pp"]) // len(better)))
    return _some(c, "plan.layer_split", pinned, "even: balanced stages have no less to do here")


def _sharding(c: dict, q: Question) -> dict:
    """What data-parallel ranks share out. zero2 with accumulation is one of two things: gradients
    reduced after every micro-batch, which sends them m times (DeepSpeed), or kept whole until the
    last one, which is zero1's memory (FSDP's no_sync, Megatron's distributed optimizer). Neither is
    the zero2 of the table, so only a pin asks for it, or a stack that is published with it, or a
    machine of the size that it was published on."""
    c = cross(c, "sharding", q.codes("sharding"))
    if q.pins.get("sharding") is None:
        once = q.space.accumulates | (q.phase.global_batch <= c["dp"] * c["micro_batch"])
        alone = c["dp"] * c["cp"] == 1  # nothing to shard over: one way, and its name is none
        first = c["sharding"] == c["sharding"].min()
        c = {**c, "sharding": np.where(alone, 0, c["sharding"])}
        c = keep(c, np.where(alone, first, once | (c["sharding"] != ZERO2)))
    return _lawful(c, "sharding", q)


def _shard_groups(c: dict, q: Question) -> dict:
    ranks, pinned = q.cluster.in_smallest_site(c["dp"]) * c["cp"], q.pins.get("shard_group")
    hybrid = c["sharding"] == HSDP
    inside = np.maximum(q.cluster.scale_up_domain // c["tp"], 1)
    group = np.where(hybrid, pinned or np.gcd(ranks, inside), ranks)
    legal = ~hybrid | (group > 1) & (ranks % group == 0) & (group < ranks)
    c = keep({**c, "shard_group": group}, legal)
    return _lawful(
        _some(
            c,
            "plan.shard_group",
            pinned,
            "a divisor of dp x cp in a site, above 1 and below it, for hsdp",
        ),
        "shard_group",
        q,
    )


def _recompute(c: dict, q: Question) -> dict:
    """Recompute and the share of a stage's layers that it covers, in whole layers; a share that
    rounds to another one is left out."""
    some = q.pins.get("recompute_layers")
    pinned = some is not None or q.pins.get("recompute") is not None  # then all layers
    shares = (1.0,) if pinned else sorted(q.space.recompute_share)
    pairs = [
        (code(NAMES["recompute"], name), s)
        for name in q.pick("recompute")
        for s in (shares if name == "full" else (1.0,))
    ]
    c = cross(c, "recompute", np.arange(len(pairs)))
    kind, share = (np.array(x)[c["recompute"]] for x in zip(*pairs))
    held = -(-q.model.layers // c["pp"])
    if some is not None:
        share = np.where(kind > 0, np.minimum(some / held, 1.0), 1.0)
        return {**c, "recompute": kind, "recompute_share": share}
    whole, full = np.ceil(share * held), kind == FULL
    again = np.zeros(len(kind), bool)
    for smaller in shares[:-1]:
        again |= full & (share > smaller) & (np.ceil(smaller * held) == whole)
    share = np.where(full, whole / held, 1.0)
    return keep({**c, "recompute": kind, "recompute_share": share}, ~again)


def _offload(c: dict, q: Question) -> dict:
    return cross(c, "offload", q.codes("offload"))


def _sequence(c: dict, q: Question) -> dict:
    """Sequence parallelism beside tensor parallelism; one row where only one value is left."""
    c = cross(c, "sp", [int(v) for v in q.pick("sp")])
    if q.pins.get("sp") is not None:
        return _lawful(c, "sequence", q)
    able = c["tp"] > 1
    for law in of("sequence"):
        able = able & q.kept(law, c | {"sp": 1})
    return keep({**c, "sp": np.where(able, c["sp"], 0)}, able | (c["sp"] == max(q.space.sp)))


def _exchange(c: dict, q: Question) -> dict:
    """How context parallelism exchanges keys and values; one row where there is none."""
    types = q.codes("cp_type")
    c = cross(c, "cp_type", types)
    c = _lawful(keep(c, (c["cp"] > 1) | (c["cp_type"] == types[0])), "exchange", q)
    return {**c, "cp_type": types[0]} if len(types) == 1 else c


def _lawful(c: dict, stage: str, q: Question) -> dict:
    """The rows that keep the laws of one stage."""
    for law in of(stage):
        c = keep(c, q.kept(law, c))
        if not len(c["tp"]):
            fields = (law.field, "tp", "cp", "pp", "dp", "micro_batch", "ep")
            field = next((f for f in fields if q.pins.get(f) is not None), law.field)
            _some(c, f"plan.{field}", q.pins.get(field), f"{law.text} ({law.source})")
    return c


def _some(c, field, value, allowed, nearest=None):
    """The rows, of which there has to be one."""
    if not len(c["tp"]):
        raise DesignError(field, value, allowed, nearest, problem="leaves no legal plan")
    return c
