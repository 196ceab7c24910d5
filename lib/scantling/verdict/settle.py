"""Plans of searches laid out one by one, as what an assessment is of."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from ..base.records import joined, take
from ..physics.memory.chance import oom_probability
from ..physics.memory.peak import memory
from ..physics.step import step_time
from ..plans.evaluate import CHUNK, Search, batches
from ..plans.ran import spread_of
from .assessment import Chosen
from .gangs import beside_whole, gang_of, shrunk, tied


class Pick(NamedTuple):
    """One plan of a search, whether it fits, and what was measured of it."""

    search: Search
    row: int
    fits: bool
    measured: Mapping[str, float]


def settled(picks: Sequence[Pick]) -> list[Chosen]:
    """Plans of searches laid out, those of a kind in one pass of the model; beside each what it is
    with some of its replicas gone."""
    chosen: dict[int, Chosen] = {}
    kinds = [pick.search.situation.kind for pick in picks]
    for batch in batches(kinds, [1] * len(picks), CHUNK):
        chosen |= zip(batch, of_a_kind([picks[i] for i in batch]))
    return [chosen[i] for i in range(len(picks))]


def of_a_kind(picks: Sequence[Pick]) -> list[Chosen]:
    """`settled` of plans whose situations are of one kind, in one pass."""
    cases = [search.case(row) for search, row, *_ in picks]
    plans = [pick.search.row(pick.row, case) for pick, case in zip(picks, cases)]
    per_node = [search.situation.resolved.cluster.devices_per_node for search, *_ in picks]
    gangs = [*map(gang_of, cases, plans, per_node)]
    fewer = [shrunk(*one) for one in zip(cases, map(tied, plans), [gang.probes for gang in gangs])]
    lengths = [1 + len(less) for less in fewer]
    table = joined(
        [case for pair in zip(cases, fewer) for case in pair],
        [rows for length in lengths for rows in (1, length - 1)],
    )
    n = sum(lengths)  # a row each, as an enumeration has them: layers are laid out row by row
    table = table.with_plan(**{name: np.broadcast_to(x, n) for name, x in vars(table.plan).items()})
    used, step = memory(table), step_time(table)
    bytes_, step_s = (np.broadcast_to(x.total, n) for x in (used, step))
    chosen = []
    starts = accumulate(lengths[:-1], initial=0)
    for at, length, pick, case, plan, gang, less in zip(
        starts, lengths, picks, cases, plans, gangs, fewer
    ):
        rest = slice(at + 1, at + length)
        situation, own = pick.search.situation, take(used, at)
        probed = beside_whole(less, bytes_[rest], own.capacity, step_s[rest])
        chance = oom_probability(own.total, own.capacity, spread_of(situation, case.plan))
        chosen.append(
            Chosen(
                phase=situation.phase,
                search=pick.search,
                row=pick.row,
                plan=plan,
                case=case,
                gang=replace(gang, probed=probed),
                memory=own,
                step=take(step, at),
                fits=pick.fits,
                oom_probability=float(chance),
                step_s=float(step_s[at]),
                step_s_low=float(step_s[at]),
                step_s_high=float(step_s[at]),
            )
        )
    return chosen
