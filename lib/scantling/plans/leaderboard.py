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
from .evaluate import Found, added, ranked, spread_of
from .prepare import prepare
from .space import Space, offered, space_of
from .stream import looked_through
from .words import named

if TYPE_CHECKING:
    import pandas as pd


class Columns(dict):
    """Columns by name, all of one length; `attrs` holds the counts of the search."""

    attrs: dict


def search(
    design: Design,
    space: Space | str | None = None,
    progress: Callable[[int, int], bool | None] | None = None,
    scheduler: str | None = None,
) -> pd.DataFrame | Columns:
    """All fitting plans of a design's longest phase, best first: a pandas DataFrame where pandas is
    installed, else a mapping of columns.

    space : the plans that are looked at, or their name (coarse, default, wide); the default space
    where left out.
    progress : function(done, of), may return False to end with what there is.
    scheduler : address of a Dask scheduler.

    Columns: the fields of a plan, precision, devices_used, step_s [s], tokens_per_s_per_device,
    mfu, memory_bytes, zone ("safe" | "tight"),
    oom_probability, practised (False for a kind of plan that nobody has published).
    `assess` takes the simplest within 1 % of the first row that is practised and has at most the
    allowed oom_probability.
    `.attrs`: legal, evaluated (plans timed), seconds, rejected {reason: count}, unseen (legal plans
    not looked at); legal = fitting + rejected.
    Raises DesignError for a wrong design.

    >>> plans = search(Design.from_text("8B on 64 H100, 1T tokens"))
    >>> plans.attrs["legal"] == len(plans) + sum(plans.attrs["rejected"].values())
    True
    """
    columns = plan_columns(
        design,
        space,
        progress,
        scheduler,
    )
    try:
        import pandas as pd
    except ImportError:
        return columns
    table = pd.DataFrame(columns)
    table.attrs = columns.attrs
    return table


def plan_columns(
    design,
    space: Space | str | None = None,
    progress: Callable | None = None,
    scheduler=None,
) -> Columns:
    """What `search` returns, as columns without pandas.

    Where the space names precisions and the design leaves its own open, each of them that the chip
    has is searched too.
    A space with offload (the wide one) is streamed: its 50,000 fastest plans are listed, its counts
    are of all.
    progress, scheduler : as `find`.
    """
    resolved = prepare(design)
    phase = resolved.main_phase
    space = offered(space_of(space), resolved)
    outcomes = []
    for name in precisions(resolved, phase, space):
        found = looked_through(
            situation(resolved, replace(phase, precision=name)),
            space,
            progress=progress,
            scheduler=scheduler,
        )
        outcomes.append(found)
        if found.counts["unseen"]:
            break
    table = Columns(
        _joined([listed(f, ranked(f.plan, f.step_s, np.flatnonzero(f.fits))) for f in outcomes])
    )
    table.attrs = added(found.counts for found in outcomes)
    return table


def precisions(
    resolved,
    phase,
    space,
) -> list:
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


def _joined(tables: list) -> dict:
    """The rows of several tables by step time."""
    if len(tables) == 1:
        return tables[0]
    whole = {k: np.concatenate([t[k] for t in tables]) for k in tables[0]}
    order = np.argsort(whole["step_s"], kind="stable")
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
