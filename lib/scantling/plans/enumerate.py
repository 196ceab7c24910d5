"""Plans: which combinations of degrees are legal for a model on a cluster, each rule with its
reason, and all of them as columns.

A pin fixes an axis; what is not pinned takes every value of its axis in the space. Columns are
crossed one axis at a time and
cut by the rules as soon as a rule can be told, so the product of all axes never exists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..base.errors import DesignError
from ..catalogue.stacks import stacks
from ..physics.cases import CP_TYPES, OFFLOADS, RECOMPUTES, SHARDINGS, Plan, code
from ..physics.pipeline import RULES, SCHEDULES, schedule_code

INTERLEAVED, ONE_F = schedule_code("interleaved"), schedule_code("1f1b")
ULYSSES = code(CP_TYPES, "ulysses")
ZERO2, ZERO3, HSDP = (code(SHARDINGS, name) for name in ("zero2", "zero3", "hsdp"))
# tokens of a sequence that a context-parallel rank keeps, at least: the shortest that published
# runs use
MIN_CHUNK = 4096


@dataclass(frozen=True)
class Space:
    """Values of each axis that a search tries where a field is not pinned. The defaults are the
    default space:

    tp 1 2 4 8 16 · cp 1 to 32 in powers of two, at least 4,096 tokens of the sequence a rank · pp
    every depth that divides layers or
    layers + 2 (embedding and head a layer each), and powers of two where layers are odd
    (DeepSeek-V3: 61 on 16), to 128 · vpp 1, and every number of chunks to 20 that divides a stage
    (interleaved) ·
    dp the largest divisor of global_batch that the devices allow, and where it differs the one
    above half of them with most factors of two · micro_batch 1 2 4 8 16 · ep the divisors of the
    experts to 256 ·
    etp 1 and tp · sp on and off · sharding none, zero1, zero2 (one micro-batch a step), zero3 and
    hsdp (not interleaved) ·
    recompute none, selective, full for a quarter, half, three quarters and all of a stage's layers
    · schedule 1f1b, interleaved · cp_type ring, or the stack's own.

    Zero-bubble and DualPipe schedules, other exchanges of context parallelism, offload,
    micro-batches that are no power of two and other depths are in WIDE:
    too few runs are published with them to tell what they cost in practice, so they are tried where
    they are asked for or pinned.
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
    uneven: bool = False  # also depths that divide neither layers nor layers + 2
    precision: tuple = ()  # tried where the design leaves its precision open, besides its own
    min_chunk: int = MIN_CHUNK  # tokens of a sequence that a context-parallel rank keeps, at least


DEFAULT = Space()
COARSE = Space(
    tp=(1, 2, 4, 8),
    cp=(1, 2, 4, 8, 16),
    micro_batch=(1, 2, 4),
    sharding=("zero1", "zero3"),
    recompute_share=(0.5, 1.0),
    etp=(1,),
    sp=(1,),
)
# some 1,000 plans, for maps of many designs: its best step lies within a tenth of the default
# space's
MAP = replace(COARSE, micro_batch=(1, 2), recompute=("none", "full"), recompute_share=(1.0,))
WIDE = Space(
    tp=(1, 2, 4, 8, 16, 32, 64),
    micro_batch=(1, 2, 3, 4, 6, 8, 12, 16, 32),
    schedule=("1f1b", "interleaved", "zb-1p", "zb-2p", "zb-v", "dualpipe"),
    offload=OFFLOADS,
    cp_type=CP_TYPES,
    uneven=True,
    etp=(1, 2, 4, 8, 0),
    precision=("bf16", "fp8"),
)
# where nothing fits as it is
OFFLOADED = replace(DEFAULT, offload=OFFLOADS, uneven=True)
# the lean end of every axis that memory falls along: what does not fit here fits nowhere
LAST_RESORT = Space(
    tp=(),
    cp=tuple(2**i for i in range(12)),
    min_chunk=1,
    micro_batch=(1,),
    vpp=(1,),
    schedule=("1f1b",),
    sharding=("zero1", "zero3"),
    recompute=("full",),
    recompute_share=(1.0,),
    offload=OFFLOADS,
    sp=(1,),
    uneven=True,
)


def offered(space: Space, stack: str | None) -> Space:
    """The space without what the named stack does not offer, and with the schedules that are its
    own; where nothing of an axis would be left,
    the stack's values. What a named stack does not offer is not searched; a pin may still ask for
    it."""
    axes = stacks().get(stack).offers if stack in stacks() else {}
    return replace(
        space,
        **{
            k: values
            if k == "schedule"
            else tuple(v for v in values if v in getattr(space, k)) or values
            for k, values in axes.items()
        },
    )


@dataclass(frozen=True)
class Rule:
    """One law that a plan must keep: the field it concerns, what it says, whose it is."""

    field: str
    text: str
    source: str
    kept: object  # function(columns, model, phase, cluster) -> bool column


def _divides(a, b):
    return (b % np.maximum(a, 1)) == 0


LAWS = (
    Rule(
        "tp",
        "tp divides the attention heads",
        "Megatron-LM asserts num_attention_heads % tp == 0",
        lambda c, m, j, k: _divides(c["tp"], m.heads),
    ),
    Rule(
        "tp",
        "tp divides the key-value heads or is a multiple of them",
        "Megatron-LM replicates key-value heads only by whole copies",
        lambda c, m, j, k: (
            _divides(c["tp"], m.kv_heads) | (c["tp"] % m.kv_heads == 0)
            if m.attention != "mla"
            else c["tp"] > 0
        ),
    ),
    Rule(
        "tp",
        "tp divides the width of the feed-forward layer",
        "column-parallel linear layers split evenly (Megatron-LM, torchtitan)",
        lambda c, m, j, k: _divides(c["tp"], m.ffn_hidden) & _divides(c["tp"], m.shared_ffn_hidden),
    ),
    Rule(
        "cp",
        "2 x cp divides the sequence",
        "causal load balance gives each rank two chunks (Megatron-Core, Llama 3 section 3.3.2)",
        lambda c, m, j, k: (c["cp"] == 1) | (j.seq_len % (2 * c["cp"]) == 0),
    ),
    Rule(
        "pp",
        "every stage holds a layer",
        "Megatron-LM and torchtitan refuse empty stages",
        lambda c, m, j, k: c["pp"] <= m.layers,
    ),
    Rule(
        "tp",
        "tp x cp x pp is at most the devices",
        "one rank a device",
        lambda c, m, j, k: c["tp"] * c["cp"] * c["pp"] <= k.devices,
    ),
)
BATCH = (
    Rule(
        "micro_batch",
        "dp x micro_batch divides the global batch",
        "every step must see the whole batch (convergence)",
        lambda c, m, j, k: j.global_batch % (c["dp"] * c["micro_batch"]) == 0,
    ),
)
EXPERTS = (
    Rule(
        "ep",
        "ep divides the experts",
        "each rank holds whole experts (Megatron-Core)",
        lambda c, m, j, k: _divides(c["ep"], max(m.experts, 1)),
    ),
    Rule(
        "ep",
        "ep x etp divides dp x cp x tp",
        "expert groups fold into the other ranks (Liu et al. 2025)",
        lambda c, m, j, k: (c["dp"] * c["cp"] * c["tp"]) % (c["ep"] * c["etp"]) == 0,
    ),
    Rule(
        "etp",
        "etp divides the expert width",
        "column-parallel experts",
        lambda c, m, j, k: _divides(c["etp"], max(m.expert_ffn_hidden, 1)) | (c["etp"] == 1),
    ),
)
SEQUENCE = (
    Rule(
        "sp",
        "with sequence parallelism, tp (with cp: tp x 2 cp) divides the sequence",
        "torchtitan's trainer asks for it; Megatron-Core splits a rank's tokens over tp",
        lambda c, m, j, k: (
            (c["sp"] == 0) | (j.seq_len % (c["tp"] * np.where(c["cp"] > 1, 2 * c["cp"], 1)) == 0)
        ),
    ),
)
SHARDED = (
    Rule(
        "sharding",
        "zero3 and hsdp do not combine with interleaved chunks",
        "weights would be gathered once per chunk; no framework offers it",
        lambda c, m, j, k: (c["sharding"] < ZERO3) | (c["vpp"] == 1),
    ),
)
HEADS = (
    Rule(
        "cp",
        "with ulysses, tp x cp divides the heads and the key-value heads",
        "Transformer Engine asks both to be multiples of cp after tp (attention by all-to-all)",
        lambda c, m, j, k: (
            (c["cp_type"] != ULYSSES)
            | (c["cp"] == 1)
            | (
                _divides(c["tp"] * c["cp"], m.heads)
                & ((m.attention == "mla") | _divides(c["tp"] * c["cp"], m.kv_heads))
            )
        ),
    ),
)
GROUPS = (
    Rule(
        "ep",
        "under hsdp, ep x etp divides shard_group x tp",
        "torchtitan folds expert ranks into one shard group's",
        lambda c, m, j, k: (
            (c["sharding"] != HSDP)
            | (c["ep"] == 1)
            | ((c["shard_group"] * c["tp"]) % (c["ep"] * c["etp"]) == 0)
        ),
    ),
)
LATER = (*BATCH, *EXPERTS, *SEQUENCE, *SHARDED, *HEADS, *GROUPS)


@lru_cache(maxsize=4096)
def divisors(n: int) -> np.ndarray:
    """All divisors of n, ascending."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return np.array(sorted({*small, *(n // d for d in small)}))


def cross(columns: dict, name: str, values) -> dict:
    """Columns with every row repeated for each value of one more axis."""
    values = np.asarray(values)
    n = len(next(iter(columns.values()))) if columns else 1
    out = {k: np.repeat(v, len(values)) for k, v in columns.items()}
    out[name] = np.tile(values, n)
    return out


def keep(columns: dict, mask) -> dict:
    """The rows where mask holds."""
    return columns if np.all(mask) else {k: v[mask] for k, v in columns.items()}


def enumerate_plans(
    model, phase, cluster, space: Space = DEFAULT, pins: dict | None = None
) -> Plan:
    """Every legal plan of the space under the pins, as columns.

    dp is the largest divisor of global_batch that the devices allow, and the roundest one beside
    it, so an awkward count leaves some
    idle rather than none legal.
    Raises DesignError, naming the rule, where the pins leave no legal plan.
    """
    pins = pins or {}
    pick = lambda name, default: (pins[name],) if pins.get(name) is not None else default  # noqa: E731
    c: dict = {}
    for name, values in (
        (
            "tp",
            pick("tp", [int(t) for t in space.tp or divisors(model.heads) if t <= cluster.devices]),
        ),
        (
            "cp",
            pick("cp", [x for x in space.cp if x == 1 or phase.seq_len // x >= space.min_chunk]),
        ),
        ("pp", pick("pp", depths(model.layers, space, cluster.devices))),
    ):
        c = cross(c, name, values)
    c = _lawful(c, LAWS, model, phase, cluster, pins)
    room = cluster.devices // (c["tp"] * c["cp"] * c["pp"])
    if pins.get("dp") is not None:
        c = keep({**c, "dp": np.full(len(room), pins["dp"])}, room >= pins["dp"])
        _some(c, "plan.dp", pins["dp"], "at most devices / (tp x cp x pp)", int(room.max()))
    else:
        table = divisors(phase.global_batch)
        if pins.get("micro_batch"):
            table = table[phase.global_batch % (table * pins["micro_batch"]) == 0]
        if pins.get("grad_accum"):
            table = table[phase.global_batch % (table * pins["grad_accum"]) == 0]
        if not len(table):
            raise DesignError(
                "plan.micro_batch",
                pins.get("micro_batch"),
                f"a divisor of the global batch {phase.global_batch:,}",
            )
        c["dp"] = table[np.maximum(np.searchsorted(table, room, side="right") - 1, 0)]
        if cluster.devices & (cluster.devices - 1) or phase.global_batch & (phase.global_batch - 1):
            c = _rounder(c, table, room)
    if pins.get("grad_accum") is not None:
        c["micro_batch"] = phase.global_batch // (c["dp"] * pins["grad_accum"])
        bad = (c["micro_batch"] < 1) | (
            c["micro_batch"] * c["dp"] * pins["grad_accum"] != phase.global_batch
        )
        whole = keep(c, ~bad)
        _some(
            whole,
            "plan.grad_accum",
            pins["grad_accum"],
            f"dp x micro_batch x grad_accum = global_batch {phase.global_batch:,}",
        )
        if pins.get("micro_batch") is not None:
            whole = keep(whole, whole["micro_batch"] == pins["micro_batch"])
            _some(
                whole,
                "plan.grad_accum",
                pins["grad_accum"],
                f"dp x micro_batch x grad_accum = global_batch {phase.global_batch:,}",
            )
        c = whole
    else:
        c = cross(c, "micro_batch", pick("micro_batch", space.micro_batch))
    c = _lawful(c, BATCH, model, phase, cluster, pins)
    c = _experts(c, model, space, pick)
    c = _lawful(c, EXPERTS, model, phase, cluster, pins)
    c = _schedules(c, model, phase, space, pick)
    c = cross(c, "sharding", [code(SHARDINGS, s) for s in pick("sharding", space.sharding)])
    if pins.get("sharding") is None:
        # zero2 with accumulation is one of two things: gradients reduced after every micro-batch,
        # which sends them m times (DeepSpeed), or kept whole
        # until the last one, which is zero1's memory (FSDP's no_sync, Megatron's distributed
        # optimizer). Neither is the zero2 of the table, so only a pin asks for it
        once = phase.global_batch <= c["dp"] * c["micro_batch"]
        alone = c["dp"] * c["cp"] == 1  # nothing to shard over: one way, and its name is none
        c = keep(
            c,
            (~alone | (c["sharding"] == c["sharding"].min()))
            & (alone | once | (c["sharding"] != ZERO2)),
        )
        c["sharding"] = np.where(c["dp"] * c["cp"] == 1, 0, c["sharding"])
    c = _lawful(c, SHARDED, model, phase, cluster, pins)
    c = _lawful(_shard_groups(c, cluster, pins), GROUPS, model, phase, cluster, pins)
    c = _recompute(c, model, space, pins, pick)
    c = cross(c, "offload", [code(OFFLOADS, v) for v in pick("offload", space.offload)])
    c = cross(c, "sp", [int(v) for v in pick("sp", space.sp)])
    if pins.get("sp") is None:  # one row where only one value is left
        able = (c["tp"] > 1) & SEQUENCE[0].kept({**c, "sp": 1}, model, phase, cluster)
        c = keep({**c, "sp": np.where(able, c["sp"], 0)}, able | (c["sp"] == max(space.sp)))
    else:
        c = _lawful(c, SEQUENCE, model, phase, cluster, pins)
    types = [code(CP_TYPES, v) for v in pick("cp_type", space.cp_type)]
    if len(types) > 1 or ULYSSES in types:
        c = cross(c, "cp_type", types)
        c = _lawful(
            keep(c, (c["cp"] > 1) | (c["cp_type"] == types[0])), HEADS, model, phase, cluster, pins
        )
    columns = {
        k: v.astype(float)
        if k not in ("sharding", "schedule", "recompute", "offload", "cp_type")
        else v
        for k, v in c.items()
    }
    return Plan(**{"cp_type": types[0], **columns})


def _rounder(c, table, room):
    """The same rows and, where that is another number, with the divisor in (room / 2, room] that
    has most factors of two: expert
    parallelism and interleaving may need them more than the last devices."""
    rooms, where = np.unique(room, return_inverse=True)
    other = np.array(
        [
            max(
                (int(d) for d in table[(2 * table > r) & (table <= r)]),
                key=lambda d: (d & -d, d),
                default=0,
            )
            for r in rooms
        ]
    )[where]
    more = keep({**c, "dp": other}, (other > 0) & (other != c["dp"]))
    return {k: np.concatenate([v, more[k]]) for k, v in c.items()}


def _recompute(c, model, space, pins, pick):
    """Recompute and the share of a stage's layers that it covers, in whole layers; a share that
    rounds to another one is left out."""
    full = RECOMPUTES.index("full")
    some = pins.get("recompute_layers")
    shares = (
        (1.0,)
        if some is not None or pins.get("recompute") is not None
        else tuple(sorted(space.recompute_share))
    )  # pinned: all layers
    pairs = [
        (code(RECOMPUTES, name), s)
        for name in pick("recompute", space.recompute)
        for s in (shares if name == "full" else (1.0,))
    ]
    c = cross(c, "recompute", np.arange(len(pairs)))
    kind, share = (np.array(x)[c["recompute"]] for x in zip(*pairs))
    held = -(-model.layers // c["pp"])
    if some is not None:
        return {
            **c,
            "recompute": kind,
            "recompute_share": np.where(kind > 0, np.minimum(some / held, 1.0), 1.0),
        }
    whole = np.ceil(share * held)
    again = np.zeros(len(kind), bool)
    for smaller in shares[:-1]:
        again |= (kind == full) & (share > smaller) & (np.ceil(smaller * held) == whole)
    return keep(
        {**c, "recompute": kind, "recompute_share": np.where(kind == full, whole / held, 1.0)},
        ~again,
    )


def _lawful(c, rules, model, phase, cluster, pins):
    for rule in rules:
        c_next = keep(c, rule.kept(c, model, phase, cluster))
        if not len(c_next["tp"]):
            field = (
                rule.field
                if pins.get(rule.field) is not None
                else next(
                    (
                        f
                        for f in ("tp", "cp", "pp", "dp", "micro_batch", "ep")
                        if pins.get(f) is not None
                    ),
                    rule.field,
                )
            )
            raise DesignError(
                f"plan.{field}",
                pins.get(field),
                f"{rule.text} ({rule.source})",
                problem="leaves no legal plan",
            )
        c = c_next
    return c


def _some(c, field, value, allowed, nearest=None):
    if not len(c["tp"]):
        raise DesignError(field, value, allowed, nearest, problem="leaves no legal plan")


def depths(layers: int, space: Space, devices: int) -> list[int]:
    """Pipeline depths of a space, ascending."""
    if space.pp:
        return [p for p in space.pp if p <= min(layers, devices)]
    even = {int(p) for n in (layers, layers + 2) for p in divisors(n)}
    if layers % 2:
        even |= {2**i for i in range(9)}
    if space.uneven:
        even |= {2**i for i in range(9)} | set(range(1, 17))
    return sorted(p for p in even if p <= min(layers, devices, 128))


def _experts(c, model, space, pick):
    if not model.is_moe:
        return {**c, "ep": np.ones(len(c["tp"]), int), "etp": np.ones(len(c["tp"]), int)}
    ep = space.ep or [int(d) for d in divisors(model.experts) if d <= 256]
    c = cross(c, "ep", pick("ep", ep))
    etp = pick("etp", space.etp)
    c = cross(c, "etp", etp)
    same = c["etp"] == 0
    if np.any(same):
        c = keep(
            c, ~(same & np.isin(c["tp"], [v for v in etp if v]))
        )  # said by another value already
        c = {**c, "etp": np.where(c["etp"] == 0, c["tp"], c["etp"])}
    return c


def _schedules(c, model, phase, space, pick):
    names = pick("schedule", space.schedule)
    m = phase.global_batch // (c["dp"] * c["micro_batch"])
    parts = []
    for name in names:
        row = SCHEDULES[name]
        per_stage = max(1, -(-model.layers // int(c["pp"].min())))
        if row.chunks is None:
            values = [
                v
                for v in pick(
                    "vpp", space.vpp or [int(d) for d in range(2, min(per_stage, 20) + 1)]
                )
                if v > 1
            ]
        else:
            values = [v for v in pick("vpp", (row.chunks,)) if v == row.chunks]
        if not values:
            continue
        part = cross({**c, "m": m}, "vpp", values)
        lawful = np.ones(len(part["tp"]), bool)
        for rule in RULES:
            if name in rule.schedules:
                lawful &= rule.kept(part["pp"], part["vpp"], part["m"], model.layers)
        if row.chunks is None:
            layers = np.where(model.layers % part["pp"] == 0, model.layers, model.layers + 2)
            lawful &= (layers % (part["pp"] * part["vpp"]) == 0) | (np.size(pick("vpp", ())) > 0)
        part = keep(part, lawful)
        part["schedule"] = np.full(len(part["tp"]), row.code)
        parts.append(part)
    whole = (
        {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
        if parts
        else {**c, "m": m, "vpp": m[:0]}
    )
    if not parts or not len(whole["tp"]):
        rules = "; ".join(sorted({r.text for n in names for r in RULES if n in r.schedules}))
        field, value = (
            ("plan.schedule", pick("schedule", (None,))[0])
            if pick("schedule", ())
            else ("plan.vpp", pick("vpp", (None,))[0])
        )
        raise DesignError(field, value, rules, problem="leaves no legal plan")
    del whole["m"]
    return whole


def _shard_groups(c, cluster, pins):
    ranks = c["dp"] * c["cp"]
    inside = np.maximum(cluster.scale_up_domain // np.maximum(c["tp"], 1), 1)
    group = pins.get("shard_group") or np.maximum(np.gcd(ranks, inside), 1)
    hybrid = c["sharding"] == HSDP
    c = {**c, "shard_group": np.where(hybrid, np.broadcast_to(group, ranks.shape), ranks)}
    legal = ~hybrid | (
        (c["shard_group"] > 1)
        & (ranks % np.maximum(c["shard_group"], 1) == 0)
        & (c["shard_group"] < ranks)
    )
    out = keep(c, legal)
    _some(
        out,
        "plan.shard_group",
        pins.get("shard_group"),
        "a divisor of dp x cp, above 1 and below it, for hsdp",
    )
    return out


def as_dict(plan: Plan, i: int, model, phase) -> dict:
    """One row of plan columns as plain values, in the keys of the assessment."""
    at = lambda name: np.broadcast_to(np.asarray(getattr(plan, name)), np.shape(plan.tp))[i]  # noqa: E731
    whole = {
        k: int(at(k))
        for k in ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "sp", "shard_group", "micro_batch")
    }
    recompute = RECOMPUTES[int(at("recompute"))]
    per_stage = -(-model.layers // whole["pp"])
    order = ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "sp")
    out = {k: whole[k] for k in order}
    out.update(
        sharding=SHARDINGS[int(at("sharding"))],
        shard_group=whole["shard_group"],
        schedule=list(SCHEDULES)[int(at("schedule"))],
        micro_batch=whole["micro_batch"],
        grad_accum=max(1, int(phase.global_batch // (whole["dp"] * whole["micro_batch"]))),
        recompute=recompute,
        recompute_layers=0
        if recompute == "none"
        else int(round(float(at("recompute_share")) * per_stage)),
        layer_split="even" if model.layers % whole["pp"] == 0 else "balanced",
        cp_type=CP_TYPES[int(at("cp_type"))],
        offload=OFFLOADS[int(at("offload"))],
        precision=phase.precision,
    )
    out["sp"] = bool(out["sp"])
    return out


def one(plan: Plan, i: int) -> Plan:
    """Row i of plan columns as scalars."""
    size = np.shape(plan.tp)
    return replace(
        plan,
        **{
            f: np.broadcast_to(np.asarray(getattr(plan, f)), size)[i].item()
            for f in plan.__dataclass_fields__
        },
    )
