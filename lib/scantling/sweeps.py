"""Many changed copies of one design: sweeps over one or two inputs with the edge of feasibility, in this process or over Dask.

A sweep is a list of changes; the order of the results is that of the changes, whoever worked them out.
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from .errors import DesignError

KEYS = ("step_s", "mfu", "days", "cost_usd", "goodput", "devices_used", "tokens_per_s_per_device")


@dataclass(frozen=True)
class Cell:
    """One changed copy: the values of the swept inputs, verdict ("refused" where the design does not allow them), headline figures, why."""

    at: tuple
    verdict: str
    figures: dict
    memory_share: float | None
    why: str


def cell(design, paths, at, space=None) -> Cell:
    """Assess one changed copy. `paths` are dotted paths, `at` their values."""
    from . import plans
    from .verdict import assess

    try:
        a = assess(design.change(dict(zip(paths, at))), space=space or plans.DEFAULT)
    except DesignError as error:
        return Cell(at, "refused", {}, None, str(error))
    if a.verdict == "impossible":
        return Cell(at, a.verdict, {}, None, a.limits[-1] if a.limits else "")
    f = a.figures
    return Cell(at, a.verdict, {k: f[k] for k in KEYS} | {"plan": f["plan"]}, f["memory_bytes"]["total"] / f["memory_bytes"]["capacity"], a.missed[0].text if a.missed else "")


def sweep(design, over: dict, *, space=None, progress=None, scheduler=None, chunk: int = 64) -> list[Cell]:
    """Every combination of values, in order (the last path varies fastest).

    over : {dotted path: values}.  progress : function(done, of), called as results come; it may raise to stop.
    scheduler : address of a Dask scheduler, or a distributed.Client; None works here, one copy after the other.
    chunk : copies that one task of a cluster takes.
    """
    paths, grid = tuple(over), list(itertools.product(*over.values()))
    if scheduler is None:
        out = []
        for i, at in enumerate(grid):
            out.append(cell(design, paths, at, space))
            if progress:
                progress(i + 1, len(grid))
        return out
    parts = [grid[i:i + chunk] for i in range(0, len(grid), chunk)]
    return [c for part in across(_cells, [(design.to_yaml(), paths, part, space) for part in parts], scheduler, progress, len(grid), chunk) for c in part]


def _cells(text, paths, part, space):
    from .design import Design

    design = Design.from_text(text)
    return [cell(design, paths, at, space) for at in part]


def across(function, tasks, scheduler, progress=None, total=None, each: int = 1) -> list:
    """Results of function(*task) for each task on a Dask cluster, in the order of the tasks. Raises ImportError where Dask is not installed."""
    from distributed import Client, as_completed

    client = scheduler if hasattr(scheduler, "submit") else Client(scheduler)
    try:
        futures = [client.submit(function, *task, pure=False) for task in tasks]
        done = 0
        for _ in as_completed(futures):
            done += 1
            if progress:
                progress(min(done * each, total or len(tasks)), total or len(tasks))
        return client.gather(futures)
    finally:
        if client is not scheduler:
            client.close()


def edge(cells: list[Cell]) -> list[tuple]:
    """Neighbouring values of a one-way sweep between which the verdict changes: [(at before, verdict before, at after, verdict after)]."""
    return [(a.at[0], a.verdict, b.at[0], b.verdict) for a, b in zip(cells, cells[1:]) if a.verdict != b.verdict]


def table(cells: list[Cell], over: dict, key: str) -> np.ndarray:
    """A two-way sweep as a matrix of one figure, nan where it is not feasible. [len(first values), len(second values)]"""
    values = [c.figures.get(key) if c.verdict == "feasible" else None for c in cells]
    return np.array([np.nan if v is None else v for v in values], float).reshape([len(v) for v in over.values()])


def variants(designs, *, space=None, progress=None, scheduler=None, top: int = 20) -> list[dict]:
    """Searches of many designs, each streamed in chunks: the best `top` plans of each with its place in the list, best step time per token first.

    For what is too large for one search: thousands of cluster variants x plans. The rows are the same from this process and from a cluster.
    """
    texts = [d.to_yaml() for d in designs]
    if scheduler is None:
        parts = []
        for i, text in enumerate(texts):
            parts.append(_best(text, i, space, top))
            if progress:
                progress(i + 1, len(texts))
    else:
        parts = across(_best, [(text, i, space, top) for i, text in enumerate(texts)], scheduler, progress, len(texts))
    return sorted(itertools.chain(*parts), key=lambda row: (-row["tokens_per_s"], row["design"], row["rank"]))


def _best(text, number, space, top):
    from . import plans
    from .design import Design
    from .searching import find
    from .situation import situation

    try:
        r = Design.from_text(text).resolve()
        phase = max(r.phases, key=lambda p: p.tokens or 0)
        found = find(situation(r, phase), space or plans.offered(plans.DEFAULT, r.stack))
    except DesignError:
        return []
    tokens = phase.global_batch * phase.seq_len
    return [dict(design=number, rank=k, devices=r.cluster.devices, step_s=float(found.step_s[i]), tokens_per_s=tokens / float(found.step_s[i]),
                 memory_bytes=float(found.total_bytes[i]), legal=found.legal, **found.row(int(i))) for k, i in enumerate(found.order[:top])]
