"""Many changed copies of one design: sweeps over one or two inputs with the edge of feasibility, in
this process or over Dask.

A sweep is a list of changes; the order of the results is that of the changes, whoever worked them
out.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field

import numpy as np

from ..base.errors import DesignError
from ..physics.gather import situation
from ..plans import space as plans
from ..plans.prepare import prepare
from ..plans.remote import across
from ..plans.run import find
from ..plans.stream import stream
from ..verdict.assess import assess

KEYS = ("step_s", "mfu", "days", "cost_usd", "goodput", "devices_used", "tokens_per_s_per_device")


@dataclass(
    frozen=True,
    kw_only=True,
)
class Cell:
    """One changed copy: the values of the swept inputs, verdict ("refused" where the design does
    not allow them), headline figures, why."""

    at: tuple
    verdict: str
    figures: dict = field(default_factory=dict)
    memory_share: float | None = None
    why: str = ""


def cell(
    design,
    paths,
    at,
    space=None,
) -> Cell:
    """Assess one changed copy. `paths` are dotted paths, `at` their values."""
    try:
        a = assess(design.change(dict(zip(paths, at))), space=space or plans.DEFAULT)
    except DesignError as error:
        return Cell(
            at=at,
            verdict="refused",
            why=str(error),
        )
    if a.verdict == "impossible":
        sums = (line for line in a.refusal if line.startswith("sum:"))
        return Cell(
            at=at,
            verdict=a.verdict,
            why=next(sums, ""),
        )
    return Cell(
        at=at,
        verdict=a.verdict,
        figures={k: getattr(a, k) for k in (*KEYS, "plan")},
        memory_share=a.memory_bytes["total"] / a.memory_bytes["capacity"],
        why=a.missed[0].text if a.missed else "",
    )


def sweep(
    design,
    over: dict,
    *,
    space=None,
    progress=None,
    scheduler=None,
    chunk: int = 64,
) -> list[Cell]:
    """Every combination of values, in order (the last path varies fastest).

    over : {dotted path: values}.  progress : function(done, of), called as results come; it may
    raise to stop.
    scheduler : address of a Dask scheduler, or a distributed.Client; None works here, one copy
    after the other.
    chunk : copies that one task of a cluster takes.
    """
    paths, grid = tuple(over), list(itertools.product(*over.values()))
    if scheduler is None:
        out = []
        for i, at in enumerate(grid):
            out.append(
                cell(
                    design,
                    paths,
                    at,
                    space,
                )
            )
            if progress:
                progress(i + 1, len(grid))
        return out
    parts = [grid[i : i + chunk] for i in range(0, len(grid), chunk)]
    return [
        c
        for part in across(
            _cells,
            [(design, paths, part, space) for part in parts],
            scheduler,
            progress,
            len(grid),
            chunk,
        )
        for c in part
    ]


def _cells(
    design,
    paths,
    part,
    space,
):
    return [
        cell(
            design,
            paths,
            at,
            space,
        )
        for at in part
    ]


def edge(cells: list[Cell]) -> list[tuple]:
    """Neighbouring values of a one-way sweep between which the verdict changes: [(at before,
    verdict before, at after, verdict after)]."""
    return [
        (a.at[0], a.verdict, b.at[0], b.verdict)
        for a, b in zip(cells, cells[1:])
        if a.verdict != b.verdict
    ]


def table(
    cells: list[Cell],
    over: dict,
    key: str,
) -> np.ndarray:
    """A two-way sweep as a matrix of one figure, nan where it is not feasible. [len(first values),
    len(second values)]"""
    values = [c.figures.get(key) if c.verdict == "feasible" else None for c in cells]
    return np.array([np.nan if v is None else v for v in values], float).reshape(
        [len(v) for v in over.values()]
    )


@dataclass(
    frozen=True,
    kw_only=True,
)
class HeatMap:
    """A two-way sweep as matrices of shape (len(rows), len(columns)), plain lists throughout.

    paths : the two dotted paths, that of the rows first; rows, columns : their values.
    verdict : "feasible", "constraint-missed", "impossible" or "refused" in each place.
    figures : {key of KEYS: matrix}, None where there is no number; memory_share : memory over
    usable memory of the best plan, None where refused.
    why : the constraint that is missed most, or why the place is refused or impossible, "" where it
    is feasible.
    edge : neighbouring places between which `verdict` changes to or from feasible: [((row, column),
    (row, column))] by index, along both axes.
    """

    paths: tuple[str, str]
    rows: list
    columns: list
    verdict: list
    figures: dict
    memory_share: list
    why: list
    edge: list

    def as_dict(self) -> dict:
        """Plain data, ready for JSON."""
        return {
            **self.__dict__,
            "paths": list(self.paths),
            "edge": [[list(a), list(b)] for a, b in self.edge],
        }


def heat_map(
    design,
    rows: tuple,
    columns: tuple,
    *,
    space=None,
    progress=None,
    scheduler=None,
) -> HeatMap:
    """Two inputs against each other with the edge of feasibility: `heat_map(d, ("cluster.devices",
    [4096, 8192]), ("job.global_batch", [1024, 2048]))`.

    rows, columns : (dotted path, values).
    space : plans.MAP unless given: eight by eight in half a second, each best step within a tenth
    of the default space's; plans.DEFAULT for the exact figures.
    progress, scheduler : as `sweep`.
    """
    over = dict((rows, columns))
    if len(over) != 2:
        raise DesignError(
            rows[0],
            allowed="two different fields",
            problem="is given twice",
        )
    cells = sweep(
        design,
        over,
        space=space or plans.MAP,
        progress=progress,
        scheduler=scheduler,
    )
    n, m = len(rows[1]), len(columns[1])

    def matrix(values) -> list[list]:
        values = list(values)
        return [values[i * m : (i + 1) * m] for i in range(n)]

    good = matrix(c.verdict == "feasible" for c in cells)
    edge = [
        ((i, j), (i + a, j + b))
        for i, j, (a, b) in itertools.product(range(n), range(m), ((0, 1), (1, 0)))
        if i + a < n and j + b < m and good[i][j] != good[i + a][j + b]
    ]
    return HeatMap(
        paths=tuple(over),
        rows=list(rows[1]),
        columns=list(columns[1]),
        figures={key: matrix(c.figures.get(key) for c in cells) for key in KEYS},
        edge=edge,
        **{k: matrix(getattr(c, k) for c in cells) for k in ("verdict", "memory_share", "why")},
    )


def variant_designs(design, over: dict) -> list[tuple]:
    """[(values, changed copy)] of every combination that the design allows, in order (the last path
    varies fastest)."""
    out = []
    for at in itertools.product(*over.values()):
        try:
            out.append((at, design.change(dict(zip(over, at)))))
        except DesignError:
            continue
    return out


def variants(
    designs,
    *,
    space=None,
    progress=None,
    scheduler=None,
    top: int = 20,
    counts: bool = False,
):
    """Searches of many designs, each streamed in chunks: the best `top` plans of each with its
    place in the list, most tokens/s first.

    For what is too large for one search: thousands of cluster variants x plans. The rows are the
    same from this process and from a cluster.
    counts : also {legal, evaluated, seconds, rejected, unseen} over all searches (unseen: designs
    not looked at), as (rows, counts).
    progress may return False to stop.
    """
    start = time.perf_counter()
    tasks = [(d, i, space, top) for i, d in enumerate(designs)]
    if scheduler is None:
        parts = []
        for i, task in enumerate(tasks):
            parts.append(_best(*task))
            if progress and progress(i + 1, len(tasks)) is False:
                break
    else:
        parts = across(
            _best,
            tasks,
            scheduler,
            progress,
            len(tasks),
        )
    done = [p for p in parts if p is not None]
    rows = sorted(
        itertools.chain(*(p[0] for p in done)),
        key=lambda row: (-row["tokens_per_s"], row["design"], row["rank"]),
    )
    if not counts:
        return rows
    reasons = dict.fromkeys(text for p in done for text in p[1]["rejected"])
    total = {k: sum(p[1][k] for p in done) for k in ("legal", "evaluated")} | {
        "rejected": {text: sum(p[1]["rejected"].get(text, 0) for p in done) for text in reasons}
    }
    return rows, total | {
        "seconds": time.perf_counter() - start,
        "unseen": len(tasks) - len(done),
    }


def _best(
    design,
    number,
    space,
    top,
):
    try:
        r = prepare(design)
        phase = r.main_phase
        space = space or plans.offered(plans.DEFAULT, r.stack)
        found = (stream if space.offload != ("none",) else find)(situation(r, phase), space)
    except DesignError:
        return [], dict(
            legal=0,
            evaluated=0,
            rejected={},
        )
    tokens = phase.global_batch * phase.seq_len
    rows = [
        dict(
            design=number,
            rank=k,
            devices=r.cluster.devices,
            step_s=float(found.step_s[i]),
            tokens_per_s=tokens / float(found.step_s[i]),
            memory_bytes=float(found.total_bytes[i]),
            legal=found.legal,
            **found.row(int(i)),
        )
        for k, i in enumerate(found.order[:top])
    ]
    return rows, dict(
        legal=found.legal,
        evaluated=found.fitting,
        rejected=found.rejected,
    )
