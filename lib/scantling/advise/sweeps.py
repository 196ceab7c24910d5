"""Many changed copies of one design: sweeps over one or two inputs with the edge of feasibility, in
this process or over Dask.

A sweep is a list of changes; the order of the results is that of the changes, whoever worked them
out.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from time import perf_counter

from ..base.errors import DesignError
from ..base.records import record
from ..design.design import Design
from ..physics.gather import situation
from ..plans import space as plans
from ..plans.evaluate import added
from ..plans.prepare import prepare
from ..plans.remote import across
from ..plans.stream import looked_through
from ..verdict.assess import assess

KEYS = ("step_s", "mfu", "days", "cost_usd", "goodput", "devices_used", "tokens_per_s_per_device")


@record
class Cell:
    """One changed copy: the values of the swept inputs, verdict ("refused" where the design does
    not allow them), headline figures, why."""

    at: tuple
    verdict: str
    figures: dict = field(default_factory=dict)
    memory_share: float | None = None
    why: str = ""


def cell(design, paths, at, space=None) -> Cell:
    """Assess one changed copy. `paths` are dotted paths, `at` their values."""
    try:
        a = assess(design.change(dict(zip(paths, at))), space=space)
    except DesignError as error:
        return Cell(at=at, verdict="refused", why=str(error))
    if not a.phases:
        return Cell(
            at=at,
            verdict=a.verdict,
            why=next((line for line in a.refusal if line.startswith("sum:")), ""),
        )
    return Cell(
        at=at,
        verdict=a.verdict,
        figures=a.figures(*KEYS, "plan"),
        memory_share=a.memory_share,
        why=a.missed[0].text if a.missed else "",
    )


def sweep(
    design: Design,
    over: Mapping[str, Iterable],
    *,
    space: plans.Space | str | None = None,
    progress: Callable[[int, int], object] | None = None,
    scheduler: str | None = None,
    chunk: int = 64,
) -> list:
    """Every combination of values, in order (the last path varies fastest).

    over : {dotted path: values}.  progress : function(done, of), called as results come; it may
    raise to stop.
    scheduler : address of a Dask scheduler, or a distributed.Client; None works here, one copy
    after the other.
    chunk : copies that one task of a cluster takes.

    >>> cells = sweep(Design.from_text("8B on 64 H100, 1T tokens"), {"cluster.devices": [64, 128]})
    >>> [cell.verdict for cell in cells], cells[0].figures["days"] > cells[1].figures["days"]
    (['feasible', 'feasible'], True)
    """
    if not isinstance(over, Mapping) or not all(isinstance(v, Iterable) for v in over.values()):
        raise DesignError("over", over, "a mapping of dotted paths to lists of values")
    grid = list(itertools.product(*over.values()))
    each = 1 if scheduler is None else chunk
    starts = range(0, len(grid), each)
    done = across(
        _cells,
        [(design, tuple(over), grid[i : i + each], space) for i in starts],
        scheduler,
        progress,
        len(grid),
        each,
    )
    return [*itertools.chain(*done)]


def _cells(design, paths, part, space):
    return [cell(design, paths, at, space) for at in part]


def edge(cells: list) -> list:
    """Neighbouring values of a one-way sweep between which the verdict changes: [(at before,
    verdict before, at after, verdict after)]."""
    return [
        (a.at[0], a.verdict, b.at[0], b.verdict)
        for a, b in zip(cells, cells[1:])
        if a.verdict != b.verdict
    ]


def variant_designs(design, over: dict) -> list:
    """[(values, changed copy)] of every combination that the design allows, in order (the last path
    varies fastest)."""
    out = []
    for at in itertools.product(*over.values()):
        with suppress(DesignError):
            out.append((at, design.change(dict(zip(over, at)))))
    return out


def variants(designs, *, space=None, progress=None, scheduler=None, top: int = 20) -> tuple:
    """Searches of many designs, each streamed in chunks: the best `top` plans of each with its
    place in the list, most tokens/s first; and {legal, evaluated, seconds, rejected, unseen} over
    all searches (unseen: designs not looked at).

    For what is too large for one search: thousands of cluster variants x plans. The rows are the
    same from this process and from a cluster.
    progress may return False to stop.
    """
    start = perf_counter()
    tasks = [(d, i, space, top) for i, d in enumerate(designs)]
    done = [p for p in across(_best, tasks, scheduler, progress) if p is not None]
    rows = sorted(
        itertools.chain(*(p[0] for p in done)),
        key=lambda row: (-row["tokens_per_s"], row["design"], row["rank"]),
    )
    return rows, added(searched for _, searched in done) | {
        "seconds": perf_counter() - start,
        "unseen": len(tasks) - len(done),
    }


def _best(design, number, space, top):
    try:
        r = prepare(design)
        phase = r.main_phase
        found = looked_through(situation(r, phase), plans.offered(plans.space_of(space), r))
    except DesignError:
        return [], added(())
    tokens = phase.global_batch * phase.seq_len
    rows = [
        {
            "design": number,
            "rank": k,
            "devices": r.cluster.devices,
            "step_s": float(found.step_s[i]),
            "tokens_per_s": tokens / float(found.step_s[i]),
            "memory_bytes": float(found.total_bytes[i]),
            "legal": found.legal,
            **found.row(i),
        }
        for k, i in enumerate(found.order[:top].tolist())
    ]
    return rows, found.counts
