"""Neighbours of plans: the same plan but for one or two axes, at the values of a space."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..base.columns import Array
from ..catalogue.models.shape import shape_of
from ..catalogue.words import Recompute, Schedule
from ..design.pins import pin
from ..physics.cases import FULL, HSDP, SELECTIVE, accumulated
from ..physics.pipeline import SCHEDULES
from ..physics.recompute import distinct_sets
from .enumerate import (
    Columns,
    Question,
    chunks_of,
    data_parallel,
    depths,
    divisors,
    keep,
    rules_hold,
    splits_better,
    stacked,
)
from .laws import LAWS, all_hold
from .space import EVERY_DEPTH, MOST_EXPERT_RANKS
from .stack_laws import Run, allowed, among_offers, laws_of_stack

ONE_STAGE = SCHEDULES[Schedule.ONE_F_ONE_B].code
FAR = 2  # times as many ranks of an axis as a plan has, or as few, that its neighbours have
NEAR_DEPTH = 4 / 3  # times as many stages as a plan has, or as few, that are tried beyond
FIRST = 4  # rows that they are tried of
_PINNED_AS = {"recompute_share": "recompute_layers"}  # where an axis has another name as a pin
LEAST = 1e-9  # share of a layer by which a product of shares may miss a whole number


class Saving(NamedTuple):
    """One way of computing activations again."""

    recompute: int  # code
    share: float  # of a stage's layers
    modules: int  # bits; 0: the stack's own


def neighbours(seeds: Columns, q: Question) -> Columns:
    """Legal plans that differ from one of the seeds in how it passes through the stages and in the
    micro-batch, in what it shares out and computes again, in what leaves the device, or in one
    degree of parallelism."""
    parts = [_pipelines(seeds, q), _savings(seeds, q), _offloads(seeds, q), *_degrees(seeds, q)]
    parts.append(_roomier(seeds, q))
    parts.append(crossed(seeds, [(int(sp),) for sp in q.pick("sp")], "sp"))
    c = _completed(stacked([part for part in parts if len(part["tp"])] or [seeds]), q)
    return keep(c, _lawful(c, q))


def repeating(seeds: Columns, q: Question) -> Columns:
    """The seeds that repeat whole layers, with every number of a stage's layers that they may
    repeat; none where the design says how many, or the stack repeats all."""
    stated = q.pins.get("recompute") is not None or q.pins.get("recompute_layers") is not None
    if stated or min(q.space.recompute_share) >= 1:
        return keep(seeds, np.zeros(len(seeds["tp"]), bool))
    seeds = keep(seeds, seeds["recompute"] == FULL)
    if not len(seeds["tp"]):
        return seeds
    stage_layers = -(-q.model.layers // seeds["pp"])
    c = crossed(
        {**seeds, "stage": stage_layers},
        [(n,) for n in range(1, int(stage_layers.max()) + 1)],
        "recompute_share",
    )
    c = keep(c, c["recompute_share"] <= c["stage"])
    c["recompute_share"] = c["recompute_share"] / c.pop("stage")
    c = _completed(c, q)
    return keep(c, _lawful(c, q))


def crossed(c: Columns, values: Sequence[tuple[float, ...]], *names: str) -> Columns:
    """The rows with every one of some values of several fields together."""
    n, k = len(c["tp"]), len(values)
    out = {name: np.repeat(column, k) for name, column in c.items()}
    for name, column in zip(names, zip(*values)):
        out[name] = np.tile(np.array(column), n)
    return out


def savings(q: Question) -> list[Saving]:
    """Ways of computing activations again. A kind that is pinned is the whole of it, but that
    `selective` says which modules only of a stack that is named."""
    pinned = q.pins.get("recompute") is not None or q.pins.get("recompute_layers") is not None
    out = []
    for code, name in zip(q.codes("recompute"), q.pick("recompute")):
        if name == Recompute.FULL:
            shares = (1.0,) if pinned else q.space.recompute_share
            out += [Saving(code, share, 0) for share in shares]
        elif name == Recompute.SELECTIVE and not (pinned and q.space.stack):
            out += [Saving(code, 1.0, bits) for bits in (0, *module_sets(q))]
        else:
            out.append(Saving(code, 1.0, 0))
    return out


def module_sets(q: Question) -> list[int]:
    """Sets of the modules that a model has and a space may repeat, as bits, but for the stack's
    own, whose code is 0; none where the design says what is repeated."""
    budget = q.phase.memory_budget is not None
    if budget or q.phase.remat or q.pins.get("recompute_modules"):
        return []
    sets = distinct_sets(q.space.recompute_modules, shape_of(q.model))
    return [bits for bits in sets if bits != q.own_modules]


def _pipelines(c: Columns, q: Question) -> Columns:
    """Other micro-batches and ways through the stages; where there is one stage, the former
    alone."""
    c = crossed(c, [(int(size),) for size in q.pick("micro_batch")], "micro_batch")
    return _staged(keep(c, q.phase.global_batch % (c["dp"] * c["micro_batch"]) == 0), q)


def _staged(c: Columns, q: Question) -> Columns:
    """Every way through the stages of some rows that keeps the rules of its schedule."""
    alone = keep(c, c["pp"] == 1)
    none = np.zeros(len(alone["tp"]), np.int64)
    parts = [{**alone, "schedule": none + ONE_STAGE, "vpp": none + 1, "layer_split": none}]
    c = keep(c, c["pp"] > 1)
    if len(c["tp"]):
        m = np.asarray(accumulated(q.phase.global_batch, c["dp"], c["micro_batch"]))
        deepest = max(1, -(-q.model.layers // int(c["pp"].min())))
        for name in q.pick("schedule"):
            ways = [(SCHEDULES[name].code, vpp) for vpp in chunks_of(name, q, deepest)]
            if ways:
                rows = crossed({**c, "m": m}, ways, "schedule", "vpp")
                rows = keep(rows, rules_hold(name, rows["pp"], rows["vpp"], rows.pop("m"), q))
                parts.append(crossed(rows, [(x,) for x in q.codes("layer_split")], "layer_split"))
    c = stacked(parts)
    return keep(c, (c["layer_split"] == 0) | splits_better(c, q))


def _savings(c: Columns, q: Question) -> Columns:
    """Other ways of sharing state out and of computing activations again."""
    ways = [(*saving, sharding) for saving in savings(q) for sharding in q.codes("sharding")]
    return crossed(c, ways, "recompute", "recompute_share", "modules", "sharding")


def _roomier(c: Columns, q: Question) -> Columns:
    """Other micro-batches, and what is computed again for the room that they take."""
    ways = [(*saving, int(size)) for saving in savings(q) for size in q.pick("micro_batch")]
    c = crossed(c, ways, "recompute", "recompute_share", "modules", "micro_batch")
    c = keep(c, q.phase.global_batch % (c["dp"] * c["micro_batch"]) == 0)
    m = np.asarray(accumulated(q.phase.global_batch, c["dp"], c["micro_batch"]))
    lawful = c["pp"] == 1
    for name, schedule in SCHEDULES.items():
        lawful |= (c["schedule"] == schedule.code) & rules_hold(name, c["pp"], c["vpp"], m, q)
    return keep(c, lawful)


def _offloads(c: Columns, q: Question) -> Columns:
    """State elsewhere, and what is computed again for the room that this makes or takes."""
    ways = [(*saving, offload) for saving in savings(q) for offload in q.codes("offload")]
    return crossed(c, ways, "recompute", "recompute_share", "modules", "offload")


def _degrees(c: Columns, q: Question) -> list[Columns]:
    """Other degrees of parallelism, one at a time, with as many replicas as the devices allow."""
    space, most = q.space, min(q.cluster.by_site)
    values: dict[str, list[int]] = {
        "tp": [tp for tp in space.tp if tp <= min(most, q.cluster.scale_up_domain)],
        "cp": [cp for cp in space.cp if cp == 1 or q.phase.seq_len // cp >= space.min_chunk],
        "pp": depths(q.model.layers, space, most),
    }
    parts = []
    for name, ways in values.items():
        if pin(q.pins, name) is None:
            moved = _moved(c, name, ways, FAR if name == "pp" else math.inf)
            parts.append(keep(moved, moved["tp"] * moved["cp"] * moved["pp"] <= most))
            if name == "pp":
                parts += [_smaller(parts[-1]), _deepest(c, q), _near_depths(c, q, most)]
    for one, other in (("tp", "cp"), ("pp", "cp"), ("tp", "pp")):
        if pin(q.pins, one) is None and pin(q.pins, other) is None:
            parts += [_swapped(c, one, other, values), _swapped(c, other, one, values)]
    parts = [_spread(stacked(parts), q)] if parts else []
    if q.model.is_moe:
        parts.append(_experts(c, q))
    return parts


def _experts(c: Columns, q: Question) -> Columns:
    """Other groups of expert ranks, and experts that are whole, split as the layers are, or over as
    many ranks in all as before."""
    c = {**c, "expert_ranks": c["ep"] * c["etp"]}
    if q.pins.get("ep") is None:
        ranks = divisors(q.model.experts)
        moved = _moved(c, "ep", ranks[ranks <= MOST_EXPERT_RANKS].tolist(), FAR)
        c = stacked([c, moved])
    over = c.pop("expert_ranks")
    if q.pins.get("etp") is not None:
        return c
    whole = np.ones(len(c["tp"]), np.int64)
    as_before = np.maximum(over // c["ep"], 1)
    return stacked([{**c, "etp": etp} for etp in (whole, c["tp"], as_before)])


def _moved(c: Columns, name: str, values: list[int], far: float) -> Columns:
    """The rows with other values of an axis, at most `far` times as large or as small."""
    before = np.repeat(c[name], len(values))
    moved = crossed(c, [(value,) for value in values], name)
    after = moved[name]
    apart = np.maximum(before, after) / np.minimum(before, after)
    return keep(moved, (apart > 1) & (apart <= far))


def _smaller(c: Columns) -> Columns:
    """The rows with half the micro-batch: a deeper pipeline asks for more of them."""
    return keep({**c, "micro_batch": c["micro_batch"] // 2}, c["micro_batch"] > 1)


def _deepest(c: Columns, q: Question) -> Columns:
    """The rows with as many stages as the devices have room for, and with the even number of them
    that a two-way pipeline asks for."""
    replicas = np.asarray(q.cluster.in_smallest_site(c["dp"])).astype(np.int64)
    room = min(q.cluster.by_site) // (c["tp"] * c["cp"] * replicas)
    stages = np.minimum(room, q.model.layers)
    even = keep({**c, "pp": stages - 1}, (stages % 2 == 1) & (stages - 1 > c["pp"]))
    return stacked([keep({**c, "pp": stages}, stages > c["pp"]), even])


def _near_depths(c: Columns, q: Question, most: int) -> Columns:
    """The first few rows with every number of stages about their own."""
    every = list(range(EVERY_DEPTH + 1, min(most, q.model.layers) + 1))
    return _moved({name: column[:FIRST] for name, column in c.items()}, "pp", every, NEAR_DEPTH)


def _swapped(c: Columns, fewer: str, more: str, values: dict[str, list[int]]) -> Columns:
    """The rows with half as many ranks of one axis and twice as many of another, of which tensor
    and context-parallel ranks are among some values."""
    c = keep(c, c[fewer] % 2 == 0)
    c = {**c, fewer: c[fewer] // 2, more: 2 * c[more]}
    return keep(c, np.isin(c["tp"], values["tp"]) & np.isin(c["cp"], values["cp"]))


def _spread(c: Columns, q: Question) -> Columns:
    """Rows of other degrees with their replicas and every way through their stages."""
    room = np.asarray(q.cluster.replicas(c["tp"] * c["cp"] * c["pp"]))
    c = keep(c, room >= (q.pins.get("dp") or 1))
    if not len(c["tp"]):
        return c
    c = data_parallel(c, q)
    c.pop("under")
    c = _regrouped(c, q)
    return _staged(keep(c, q.phase.global_batch % (c["dp"] * c["micro_batch"]) == 0), q)


def _regrouped(c: Columns, q: Question) -> Columns:
    """The rows whose expert ranks no longer divide the others with as many as hold whole
    experts."""
    if not q.model.is_moe or q.pins.get("ep") is not None or q.pins.get("etp") is not None:
        return c
    ranks = np.asarray(q.cluster.in_smallest_site(c["dp"])).astype(np.int64) * c["cp"] * c["tp"]
    split = ranks % (c["ep"] * c["etp"]) > 0
    most = np.gcd(ranks, q.model.experts)
    ep = np.where(most > MOST_EXPERT_RANKS, np.gcd(ranks, c["ep"]), most)
    return {**c, "ep": np.where(split, ep, c["ep"]), "etp": np.where(split, 1, c["etp"])}


def _completed(c: Columns, q: Question) -> Columns:
    """What follows from the other fields: shares of whole layers, groups of shards, fields that
    have nothing to say."""
    stage_layers = -(-q.model.layers // c["pp"].astype(np.int64))
    share = np.ceil(c["recompute_share"] * stage_layers - LEAST) / stage_layers
    layers = q.pins.get("recompute_layers")
    if layers is not None:
        share = np.where(c["recompute"] > 0, np.minimum(layers / stage_layers, 1.0), 1.0)
    elif q.pins.get("recompute") is not None:
        share = np.ones(len(share))
    else:
        share = np.where(c["recompute"] == FULL, share, 1.0)
    sharding = c["sharding"]
    if q.pins.get("sharding") is None:
        offered = q.codes("sharding")
        sharding = np.where(np.isin(sharding, offered), sharding, offered[0])
        sharding = np.where(c["dp"] * c["cp"] == 1, 0, sharding)
    ranks = q.cluster.in_smallest_site(c["dp"]) * c["cp"]
    inside = np.maximum(q.cluster.scale_up_domain // c["tp"].astype(np.int64), 1)
    group = q.pins.get("shard_group") or np.gcd(ranks.astype(np.int64), inside)
    one = q.codes("cp_type")[0]
    sp = c["sp"] if q.pins.get("sp") is not None else np.where(c["tp"] > 1, c["sp"], 0)
    return {
        **c,
        "recompute_share": share,
        "modules": np.where(c["recompute"] == SELECTIVE, c["modules"], 0),
        "sharding": sharding,
        "shard_group": np.where(sharding == HSDP, group, ranks),
        "cp_type": np.where(c["cp"] > 1, c["cp_type"], one),
        "sp": sp,
    }


def _lawful(c: Columns, q: Question) -> Array:
    """Where complete plans keep every law, the rules of their schedule, the pins that follow from
    other fields, and what a search leaves out."""
    ranks = q.cluster.in_smallest_site(c["dp"]) * c["cp"]
    m = np.asarray(accumulated(q.phase.global_batch, c["dp"], c["micro_batch"]))
    lawful = all_hold(LAWS, c, q.setting)
    lawful &= c["dp"] <= np.asarray(q.cluster.replicas(c["tp"] * c["cp"] * c["pp"]))
    group = c["shard_group"]
    grouped = (group > 1) & (ranks % np.maximum(group, 1) == 0) & (group < ranks)
    lawful &= (c["sharding"] != HSDP) | grouped
    if q.pins.get("grad_accum") is not None:
        lawful &= m == q.pins["grad_accum"]
    open_axes = {
        axis: some
        for axis, some in q.space.offers
        if pin(q.pins, _PINNED_AS.get(axis, axis)) is None
    }
    lawful &= among_offers(open_axes, c)
    for law in laws_of_stack(q.space.stack):
        lawful &= allowed(law, c, Run(q.model, q.phase, q.cluster), q.pins)
    return lawful
