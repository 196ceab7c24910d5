"""From coarse to fine: the neighbours of the best plans of a search, and theirs, on the axes whose
values a space leaves out.

A space crosses its axes, so each further value of one multiplies it. The neighbours of a few dozen
good plans, of as many kinds as there are, hold the same values at a hundredth of the cost: chunks
that layers do not divide into, micro-batches of three and six, sets of modules that are computed
again, eighths of a stage's layers, sharded gradients over several micro-batches, state in host
memory, depths and context-parallel ways between those of the space.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..base.columns import Array
from ..base.records import take
from ..catalogue.words import Recompute
from ..physics.cases import Plan
from ..physics.gather import Situation
from ..physics.recompute import bits_of_stack
from .enumerate import Columns, Question, plan_of
from .evaluate import Search, asked, evaluate, joined_plans, keys_of, union
from .neighbours import module_sets, neighbours, repeating
from .space import NEAR, offered

SEEDS = 32  # plans whose neighbours are looked at first
NEXT = 24  # those of every later round
ROUNDS = 8
FINISHED = 4  # best plans at the end that are tried with every number of repeated layers
PATIENCE = 1  # rounds without a gain after which the search ends
FEW = 20_000  # legal plans of all searches, below which it has more of it
MORE_PATIENCE = 3
LOOKED_AT = 20_000  # of the best plans of a search, among which seeds of every kind are sought
SLOWER = 1.6  # times the fastest step, of a seed at most
GAIN = 5e-4  # share of the step below which a round is the last


def refined(
    situation: Situation, searches: Sequence[Search], own_stack: bool = True
) -> list[Search]:
    """The neighbours of the best plans of some searches, round by round; nothing where no plan
    fits."""
    question = asked_near(situation, own_stack)
    rounds = repeating_most(situation, searches, question)
    pool = seeds_of([*searches, *rounds], SEEDS)
    if pool is None:
        return []
    looked_at, expanded = np.empty(0, np.uint64), np.empty(0, np.uint64)
    idle = 0
    patience = MORE_PATIENCE if sum(s.legal for s in searches) < FEW else PATIENCE
    while len(rounds) < ROUNDS and idle < patience:
        keys = keys_of(pool.plan)
        rows = np.flatnonzero(~np.isin(keys, expanded))[: NEXT if rounds else SEEDS]
        if not len(rows):
            break
        expanded = np.concatenate([expanded, keys[rows]])
        near = neighbours(columns_of(take(pool.plan, rows)), question)
        keys = keys_of(plan_of(near))
        unique, first = np.unique(keys, return_index=True)
        fresh = np.sort(first[~np.isin(unique, looked_at)])
        if not len(fresh):
            break
        looked_at = np.concatenate([looked_at, keys[fresh]])
        one = evaluate(situation, plan_of({name: column[fresh] for name, column in near.items()}))
        rounds.append(one)
        idle = 0 if gains(pool, one) else idle + 1
        pool = seeds_of([pool, one], SEEDS) or pool
    return [*rounds, *finished(pool.only(pool.order[:FINISHED]), own_stack)]


def finished(search: Search, own_stack: bool = True) -> list[Search]:
    """The plans of a search with every number of layers that a stage may repeat (the searches
    before draw eighths of a stage); nothing where none of them repeats layers."""
    situation = search.situation
    question = asked_near(situation, own_stack)
    plans = plan_of(repeating(columns_of(search.plan), question))
    return [evaluate(situation, plans)] if np.size(plans.tp) else []


def asked_near(situation: Situation, own_stack: bool) -> Question:
    """What neighbours are asked for; a set of modules that is the stack's own has no second row."""
    question = asked(situation, offered(NEAR, situation.resolved, own_stack))
    own = bits_of_stack(situation.cases(Plan()).software, situation.shape)
    return replace(question, own_modules=own)


def gains(before: Search, after: Search) -> bool:
    """Whether a search has a better plan than another by more than GAIN of its step."""
    old, new = before.best(), after.best()
    if old is None or new is None:
        return new is not None
    ranks = [(not s.practised[row], not s.roomy[row]) for s, row in ((before, old), (after, new))]
    if ranks[0] != ranks[1]:
        return ranks[1] < ranks[0]
    return bool(after.step_s[new] < (1 - GAIN) * before.step_s[old])


def seeds_of(searches: Sequence[Search], most: int) -> Search | None:
    """The best plans of some searches, of as many degrees of parallelism as there are, best first;
    None where no plan fits."""
    some = [s.only(kinds(s, 2 * most)) for s in searches if len(s.order)]
    if not some:
        return None
    whole = union(some)
    return whole.only(kinds(whole, most))


def repeating_most(
    situation: Situation, searches: Sequence[Search], question: Question
) -> list[Search]:
    """The plans of some searches whose `selective` leaves the modules open, with all of them
    repeated; nothing where the kind of recompute is open, or the modules are not."""
    sets = module_sets(question)
    if question.pins.get("recompute") != Recompute.SELECTIVE or question.space.stack or not sets:
        return []
    plans = joined_plans([search.plan for search in searches])
    return [evaluate(situation, replace(plans, modules=np.full(np.shape(plans.tp), max(sets))))]


def kinds(search: Search, most: int) -> Array:
    """Rows of the best plan of each set of degrees without those of experts, best first, no slower
    than SLOWER times the best of all, at most half of `most`; then a quarter that are the best of
    all; then an eighth that would be faster and are least short of room; then the best with each
    part of the state away from the device; then those of each set with the ranks of experts; then
    the best of all others."""
    rows = search.order[:LOOKED_AT]
    rows = rows[search.step_s[rows] <= SLOWER * search.step_s[rows[0]]]
    short = search.order[~search.roomy[search.order]]
    short = short[search.step_s[short] < search.step_s[rows[0]]]
    short = short[np.argsort(search.total_bytes[short])][: most // 8]
    degrees = np.stack([search.column(name)[rows] for name in ("tp", "cp", "pp", "ep")])
    of_degrees = first_of_each(degrees[:3])[: most // 2]
    of_offload = first_of_each(search.column("offload")[rows][None] + 1)
    best = np.arange(len(rows))
    others = np.concatenate((of_offload, first_of_each(degrees)[:most], best))
    in_turn = (rows[of_degrees], rows[: most // 4], short, rows[others])
    taken, at = np.unique(np.concatenate(in_turn), return_index=True)
    chosen: Array = taken[np.argsort(at)][:most]
    return chosen


def first_of_each(columns: Array) -> Array:
    """Positions of the first row of each set of values from 1 on, ascending.
    [columns: (fields, n)]"""
    kind = np.zeros(columns.shape[1])
    for column in columns:
        kind = kind * 4096 + np.log2(column) * 64
    return np.sort(np.unique(kind, return_index=True)[1])


def columns_of(plan: Plan) -> Columns:
    """Plan columns as an enumeration has them: whole numbers but for shares of layers."""
    n = np.size(plan.tp)
    columns = {name: np.broadcast_to(np.asarray(value), n) for name, value in vars(plan).items()}
    return {
        name: column.astype(float if name == "recompute_share" else np.int64)
        for name, column in columns.items()
    }
