"""A search as a table: every fitting plan with its names, figures and zone, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.columns import Array
from ..base.records import take
from ..catalogue import eight_bit
from ..catalogue.words import Precision
from ..design.design import Design
from ..design.resolved import Phase, Resolved
from ..physics.cases import devices
from ..physics.gather import situation
from ..physics.memory.chance import oom_probability
from ..physics.memory.peak import ZONES, zone
from ..physics.recompute import modules_of_bits
from ..physics.step import counted_share, mfu_basis, rates
from .evaluate import Counts, Search, added
from .plan_names import named
from .prepare import prepare
from .ran import spread_of
from .remote import Progress, Scheduler
from .space import Space, offered, space_of
from .stages import searched
from .stream import search_space

if TYPE_CHECKING:
    from pandas import DataFrame


class Columns(dict[str, Array]):
    """Columns by name, all of one length; `attrs` holds the counts of the search."""

    attrs: Counts


def search(
    design: Design,
    space: Space | str | None = None,
    progress: Progress | None = None,
    scheduler: Scheduler | None = None,
) -> DataFrame | Columns:
    """All fitting plans of a design's longest phase, best first, as the winner of a design is
    chosen: kinds of plan that have been run before others; of each, those with the allowed
    `oom_probability` by step time, then the rest by memory. A pandas DataFrame where pandas is
    installed, else a mapping of columns.

    space : the plans that are looked at, or their name (coarse, default, wide); the default space
    where left out.
    progress : function(done, of), may return False to end with what there is.
    scheduler : address of a Dask scheduler.

    Columns: the fields of a plan, precision, devices_used, step_s [s], tokens_per_s_per_device,
    mfu, memory_bytes, zone ("safe" | "tight"), oom_probability, practised (False for a kind of plan
    that nobody has published).
    `assess` takes the plainest within 3 % of the first row, 10 % where that one offloads.
    `.attrs`: legal, evaluated (plans timed), seconds, rejected {reason: count}, unseen (legal plans
    not looked at); legal = fitting + rejected.
    Raises DesignError for a wrong design.

    >>> plans = search(Design.from_text("8B on 64 H100, 1T tokens"))
    >>> plans.attrs["legal"] == len(plans) + sum(plans.attrs["rejected"].values())
    True
    """
    try:
        import pandas as pd
    except ImportError:
        return plan_columns(design, space, progress, scheduler)
    words_of = partial(pd.array, dtype="str")  # so that pandas converts each word once
    columns = plan_columns(design, space, progress, scheduler, words_of)
    table = pd.DataFrame(columns)
    table.attrs = {**columns.attrs}
    return table


def plan_columns(
    design: Design,
    space: Space | str | None = None,
    progress: Progress | None = None,
    scheduler: Scheduler | None = None,
    words_of: Callable[[Sequence[str]], Any] = np.array,
) -> Columns:
    """What `search` returns, as columns without pandas.

    Where the space names precisions and the design leaves its own open, each of them that the chip
    has is searched too.
    Beside the default space stands what decides where memory is short: `stages.searched`. A space
    with offload (the wide one) is streamed: its 50,000 best plans are listed, its counts are of
    all.
    progress, scheduler : as `find`; words_of : as `named`.
    """
    resolved = prepare(design)
    phase = resolved.main_phase
    space = space_of(space)
    allowed = offered(space, resolved)
    searches = []
    for precision in precisions(resolved, phase, allowed):
        one_phase = situation(resolved, replace(phase, precision=precision))
        search = search_space(one_phase, allowed, progress=progress, scheduler=scheduler)
        if search.counts["unseen"]:
            searches.append(search)
            break
        searches.append(searched(one_phase, space, search))
    tables = [listed(one, one.order, words_of) for one in searches]
    table = Columns(_joined(tables, resolved.max_oom_probability))
    table.attrs = added(one.counts for one in searches)
    return table


def precisions(resolved: Resolved, phase: Phase, space: Space) -> list[str]:
    """The phase's precision and, where the design leaves it open, those of the space that the chip
    has."""
    left_open = any(a.field.rpartition(".")[2] == "precision" for a in resolved.assumed)
    chip = resolved.cluster.accelerator
    able = {*eight_bit(chip), *([Precision.BF16] if chip.bf16_flops > 0 else [])}
    others = [p for p in space.precision if left_open and p != phase.precision and p in able]
    return [phase.precision, *others]


def _joined(tables: Sequence[dict[str, Array]], allowed: float) -> dict[str, Array]:
    """The rows of several tables, best first as in each: `by_merit`."""
    if len(tables) == 1:
        return tables[0]
    whole = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    tight = whole["oom_probability"] > allowed
    merit = np.where(tight, whole["memory_bytes"], whole["step_s"])
    order = np.lexsort((merit, tight, ~whole["practised"]))
    return {name: column[order] for name, column in whole.items()}


def listed(
    search: Search, rows: Array, words_of: Callable[[Sequence[str]], Any] = np.array
) -> dict[str, Array]:
    """Plans of one search as columns: those of `plan_columns`."""
    n, plan = len(rows), take(search.plan, rows)
    step_s, memory = search.step_s[rows], search.total_bytes[rows]
    situation = search.situation
    phase = situation.phase
    cases = situation.cases(plan)
    tokens, _, mfu = rates(cases, step_s)
    figures = {
        "devices_used": np.asarray(devices(plan)).astype(int),
        "step_s": step_s,
        "tokens_per_s_per_device": tokens,
        "mfu": mfu,
        "mfu_shown": mfu * counted_share(cases, mfu_basis(cases)),
        "memory_bytes": memory,
        "practised": search.practised[rows],
        "oom_probability": oom_probability(memory, search.capacity, spread_of(situation, plan)),
    }
    table = named(plan, n, phase.global_batch, words_of)
    bits = np.broadcast_to(plan.modules, n).astype(int)
    modules = np.empty(bits.max(initial=0) + 1, object)  # empty lists: the stack's own
    for sets in np.flatnonzero(np.bincount(bits)).tolist():
        modules[sets] = modules_of_bits(sets)
    table["recompute_modules"] = modules[bits]
    for name, column in figures.items():
        table[name] = np.broadcast_to(column, n)
    table["zone"] = words_of(ZONES)[np.asarray(zone(memory, search.capacity))]
    table["precision"] = words_of([phase.precision])[np.zeros(n, int)]
    return table
