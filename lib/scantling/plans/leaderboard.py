"""A search as a table: every fitting plan with its names, figures and zone, best first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..base.records import take
from ..design.design import Design
from ..physics.cases import devices
from ..physics.gather import situation
from ..physics.memory.chance import oom_probability
from ..physics.memory.peak import ZONES, zone
from ..physics.step import rates
from .evaluate import Found, added, spread_of
from .prepare import prepare
from .space import Space, offered, space_of
from .stages import searched
from .stream import looked_through
from .words import named

if TYPE_CHECKING:
    from pandas import DataFrame


class Columns(dict):
    """Columns by name, all of one length; `attrs` holds the counts of the search."""

    attrs: dict


def search(
    design: Design,
    space: Space | str | None = None,
    progress: Callable[[int, int], bool | None] | None = None,
    scheduler: str | None = None,
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
    mfu, memory_bytes, zone ("safe" | "tight"),
    oom_probability, practised (False for a kind of plan that nobody has published).
    `assess` takes the simplest within 1 % of the first row.
    `.attrs`: legal, evaluated (plans timed), seconds, rejected {reason: count}, unseen (legal plans
    not looked at); legal = fitting + rejected.
    Raises DesignError for a wrong design.

    >>> plans = search(Design.from_text("8B on 64 H100, 1T tokens"))
    >>> plans.attrs["legal"] == len(plans) + sum(plans.attrs["rejected"].values())
    True
    """
    columns = plan_columns(design, space, progress, scheduler)
    try:
        import pandas as pd
    except ImportError:
        return columns
    table = pd.DataFrame(columns)
    table.attrs = columns.attrs
    return table


def plan_columns(
    design, space: Space | str | None = None, progress: Callable | None = None, scheduler=None
) -> Columns:
    """What `search` returns, as columns without pandas.

    Where the space names precisions and the design leaves its own open, each of them that the chip
    has is searched too.
    Beside the default space stands what decides where memory is short: `stages.searched`. A space
    with offload (the wide one) is streamed: its 50,000 best plans are listed, its counts are of
    all.
    progress, scheduler : as `find`.
    """
    resolved = prepare(design)
    phase = resolved.main_phase
    space, outcomes = space_of(space), []
    for name in precisions(resolved, phase, offered(space, resolved)):
        where = situation(resolved, replace(phase, precision=name))
        found = looked_through(
            where, offered(space, resolved), progress=progress, scheduler=scheduler
        )
        if found.counts["unseen"]:
            outcomes.append(found)
            break
        outcomes.append(searched(where, space, found))
    table = Columns(_joined([listed(f, f.order) for f in outcomes], resolved.max_oom_probability))
    table.attrs = added(found.counts for found in outcomes)
    return table


def precisions(resolved, phase, space) -> list:
    """The phase's precision and, where the design leaves it open, those of the space that the chip
    has."""
    left_open = any(a.field.rpartition(".")[2] == "precision" for a in resolved.assumed)
    return [
        phase.precision,
        *(
            p
            for p in space.precision
            if left_open
            and p != phase.precision
            and getattr(resolved.cluster.accelerator, f"{p[:3]}_flops", 0) > 0
        ),
    ]


def _joined(tables: list, allowed: float) -> dict:
    """The rows of several tables, best first as in each: `by_merit`."""
    if len(tables) == 1:
        return tables[0]
    whole = {k: np.concatenate([t[k] for t in tables]) for k in tables[0]}
    tight = whole["oom_probability"] > allowed
    order = np.lexsort(
        (np.where(tight, whole["memory_bytes"], whole["step_s"]), tight, ~whole["practised"])
    )
    return {k: v[order] for k, v in whole.items()}


def listed(found: Found, rows) -> dict:
    """Plans of one search as columns: those of `plan_columns`."""
    n, plan, step_s, memory = (
        len(rows),
        take(found.plan, rows),
        found.step_s[rows],
        found.total_bytes[rows],
    )
    phase = found.situation.phase
    tokens, _, mfu = rates(found.situation.cases(plan), step_s)
    figures = {
        "devices_used": devices(plan).astype(int),
        "step_s": step_s,
        "tokens_per_s_per_device": tokens,
        "mfu": mfu,
        "memory_bytes": memory,
        "practised": found.practised[rows],
        "oom_probability": oom_probability(memory, found.capacity, spread_of(found.situation)),
        "zone": np.array(ZONES)[zone(memory, found.capacity)],
        "precision": phase.precision,
    }
    return named(plan, n, phase.global_batch) | {
        k: np.broadcast_to(v, n) for k, v in figures.items()
    }
