"""The global batch of a phase whose design counts it in tokens or leaves it open: near what is
asked for, the number of sequences whose best plan takes least time a token.

The rule of `design.phases` lets a batch divide over the devices or the nodes. A plan wants it to
divide over its replicas, and the micro-batches of one over the stages of an interleaved pipeline:
405B on 10,000 H100 takes 29 % less time a token with 1,872 sequences (39 replicas of 256 devices,
48 micro-batches each) than with 2,000.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from math import ceil
from typing import NamedTuple

import numpy as np

from ..base.columns import Array
from ..base.errors import DesignError
from ..base.records import Assumed, take
from ..base.show import percent
from ..catalogue.load import of_rows
from ..catalogue.models.shape import Params
from ..design.design import Design
from ..design.phases import NEAR_BATCH, NEAR_USUAL, usual_batch, usual_batch_tokens
from ..design.resolve import resolve
from ..design.resolved import Phase, Resolved
from ..design.schema import PhaseSpec
from ..physics.cases import devices
from ..physics.gather import Situation, situation as situation_of
from .evaluate import Search, evaluate_together, legal
from .laws import LAWS, all_hold, setting_of
from .space import COARSE, offered

WORTH_A_BATCH = 0.02  # of the time of a token, from which another batch is taken or named
SHAPES = 400  # best plans of a search, whose shapes are given other numbers of replicas
WIDTHS = np.linspace(0.8, 1.0, 128)  # shares of the replicas that the devices have room for
TRIED = 5  # batches that are searched beside the rule's and the one with most divisors
MOST_COUNTS = 5_000  # sequences to either side of the aim, beyond which one is as good as another
SHAPE = ("tp", "cp", "pp", "vpp", "micro_batch", "ep", "etp", "sp", "cp_type")
OF_SHAPE = [law for law in LAWS if law.reads <= {*SHAPE, "dp"}]


class Aim(NamedTuple):
    """About how many sequences a step is to have, and the share by which it may be off."""

    sequences: float
    near: float
    says: str = ""  # what asks for them

    def within(self, batch: Array) -> Array:
        """Where a batch is near enough. bool"""
        return np.abs(batch - self.sequences) <= self.near * self.sequences


def aim_of(spec: PhaseSpec, seq_len: int, params: Params) -> Aim:
    """The aim of a phase: the sequences or tokens that it states, or the usual tokens."""
    if spec.global_batch is not None:
        return Aim(spec.global_batch, NEAR_USUAL)
    if spec.global_batch_tokens is not None:
        tokens = spec.global_batch_tokens
        return Aim(tokens / seq_len, NEAR_BATCH, f"about {tokens:,.0f} tokens")
    total = float(params.total)
    return Aim(usual_batch_tokens(total) / seq_len, NEAR_USUAL, usual_batch(total))


def with_batches(resolved: Resolved) -> Resolved:
    """A resolved design with the batches of the phases that do not state theirs in sequences."""
    stretches = resolved.design.job.phases
    sections = [f"job.phases.{i}" for i in range(len(stretches or ()))] or ["job"]
    specs: Sequence[PhaseSpec] = stretches or [resolved.design.job]
    rows = {row.field: row for row in resolved.assumed}
    if not any(f"{section}.global_batch" in rows for section in sections):
        return resolved
    best = suited(resolved.design.of_a_step(), resolved.stack)
    phases = []
    for section, spec, phase, batch in zip(sections, specs, resolved.phases, best):
        field = f"{section}.global_batch"
        if field in rows and batch != phase.global_batch:
            aim = aim_of(spec, phase.seq_len, resolved.params)
            why = (
                f"{aim.says}; of the numbers of sequences within {percent(aim.near)} the one whose "
                f"best plan takes least time a token on {resolved.cluster.devices:,} devices"
            )
            rows[field] = Assumed(field, batch, why)
            phase = replace(phase, global_batch=batch)
        phases.append(phase)
    return replace(resolved, phases=tuple(phases), assumed=tuple(rows.values()))


@of_rows
@lru_cache(maxsize=256)
def suited(design: Design, framework: str | None = None) -> tuple[int, ...]:
    """The batch of each phase that suits its plans best, near the one that it has; `framework` is
    the stack of a design that names none."""
    resolved = resolve(design, framework)
    specs: Sequence[PhaseSpec] = design.job.phases or [design.job]
    seen: list[tuple[Aim, Phase]] = []
    found: list[int] = []
    for spec, phase in zip(specs, resolved.phases):
        aim = aim_of(spec, phase.seq_len, resolved.params)
        own = (aim, replace(phase, tokens=None, name=""))
        again = seen.index(own) if own in seen else None
        seen.append(own)
        found.append(
            best_batch(situation_of(resolved, phase), aim) if again is None else found[again]
        )
    return tuple(found)


def best_batch(situation: Situation, aim: Aim) -> int:
    """Of the batches near an aim the one whose best plan takes least time a token, by coarse
    searches; the phase's own where none saves WORTH_A_BATCH.

    The shapes of plans (all degrees but dp) of two searches, with the phase's batch and with the
    one that has most divisors, are given as many replicas as the devices have room for, and a few
    fewer; each asks for a batch that its replicas, micro-batches and stages divide. The TRIED
    batches that promise most are searched.
    """
    own = situation.phase.global_batch
    count = situation.resolved.cluster.devices
    if _power_of_two(own) and _power_of_two(count):
        return own  # degrees that are powers of two divide both
    if aim.near * aim.sequences > MOST_COUNTS:
        return own
    near = _near(situation, aim)
    if not len(near):
        return own
    searches = _searches(situation, [own])
    if own in searches and _uses_all(searches[own]):
        return own
    searches |= _searches(situation, {_most_divisible(near), *_of_pins(situation, aim)} - {own})
    promising = [one for search in searches.values() for one in _promising(search, aim)]
    best = sorted(promising, reverse=True)
    more = dict.fromkeys(batch for _, batch in best if batch not in searches)
    searches |= _searches(situation, list(more)[:TRIED])
    rates = {batch: _rate(search, batch) for batch, search in searches.items()}
    fastest = max(rates, key=lambda batch: (rates[batch], batch), default=own)
    if own in rates and rates[own] >= (1 - WORTH_A_BATCH) * rates[fastest]:
        return own
    return fastest


def _uses_all(search: Search) -> bool:
    """Whether another batch has little to give: the best plan has no pipeline, or an interleaved
    one, and no other makes more of a device than it does of them all."""
    best = search.best()
    if best is None or (search.column("pp")[best] > 1 and search.column("vpp")[best] == 1):
        return False
    rows = search.order[:SHAPES]
    used = np.broadcast_to(devices(take(search.plan, rows)), len(rows))
    each = 1 / (search.step_s[rows] * used)
    at_most = each.max() * search.situation.resolved.cluster.devices
    return bool(at_most * search.step_s[best] <= 1 / (1 - WORTH_A_BATCH))


def _power_of_two(n: int) -> bool:
    return n & (n - 1) == 0


def _near(situation: Situation, aim: Aim) -> Array:
    """Whole numbers of sequences near an aim that the sites can share."""
    shares = situation.resolved.cluster.shares
    least, most = ((1 + sign * aim.near) * aim.sequences / shares for sign in (-1, 1))
    return shares * np.arange(max(ceil(least), 1), int(most) + 1)


def _most_divisible(near: Array) -> int:
    """The number with most divisors, the largest of equals."""
    parts = np.arange(1, int(near.max() ** 0.5) + 1)
    counts = (near[:, None] % parts == 0).sum(axis=1)
    return int(near[len(near) - 1 - counts[::-1].argmax()])


def _of_pins(situation: Situation, aim: Aim) -> list[int]:
    """The nearest batch that pinned replicas, micro-batches and steps of accumulation divide."""
    pins = situation.phase.pins
    unit = pins.get("dp", 1) * pins.get("micro_batch", 1) * pins.get("grad_accum", 1)
    batch = max(round(aim.sequences / unit), 1) * unit
    return [batch] if aim.within(np.asarray(batch)) else []


def _searches(situation: Situation, batches: Iterable[int]) -> dict[int, Search]:
    """Batch -> its coarse search, of those that leave a legal plan, in the same passes."""
    space = offered(COARSE, situation.resolved)
    asks = {}
    for batch in batches:
        one = situation.with_batch(batch)
        with suppress(DesignError):
            asks[batch] = (one, legal(one, space))
    return dict(zip(asks, evaluate_together([*asks.values()])))


def _rate(search: Search, batch: int) -> float:
    """Sequences a second of the best plan of a search; 0 where none fits."""
    best = search.best()
    return 0.0 if best is None else batch / float(search.step_s[best])


def _promising(search: Search, aim: Aim) -> list[tuple[float, int]]:
    """(sequences a second, batch) of the shapes of a search's best plans with other numbers of
    replicas, at the rate a device that the search found."""
    situation = search.situation
    rows = search.order[:SHAPES]
    plan = take(search.plan, rows)
    each = situation.phase.global_batch / (search.step_s[rows] * devices(plan))
    c = {name: search.column(name)[rows, None] for name in SHAPE}
    ranks = c["tp"] * c["cp"] * c["pp"]
    cluster = situation.resolved.cluster
    room = np.asarray(cluster.replicas(ranks))
    dp = np.maximum((room * WIDTHS).astype(int) // cluster.shares, 1) * cluster.shares
    unit = dp * c["micro_batch"] * np.where(c["vpp"] > 1, c["pp"], 1)
    batch = np.maximum(np.rint(aim.sequences / unit), 1) * unit
    setting = setting_of(situation.resolved.model, situation.phase, cluster)
    lawful = all_hold(OF_SHAPE, {**c, "dp": dp}, replace(setting, global_batch=batch))
    good = lawful & aim.within(batch) & (dp <= room)
    rate = each[:, None] * dp * ranks
    best = np.argsort(-rate[good])[: 64 * TRIED]
    return [*zip(rate[good][best].tolist(), batch[good][best].astype(int).tolist())]
