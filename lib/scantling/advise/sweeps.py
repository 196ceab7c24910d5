"""Many changed copies of one design: sweeps over one or two inputs with the edge of feasibility, in
this process or over Dask.

A sweep is a list of changes; the order of the results is that of the changes, whoever worked them
out.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from time import perf_counter
from typing import Any, NamedTuple

from ..base.errors import DesignError
from ..base.plugins import FUNCTIONS, entries, function
from ..base.records import record
from ..design.design import Design
from ..design.methods import PLANNER, is_posttraining, of_method, refuse_posttraining
from ..physics.gather import situation
from ..plans import space as plans
from ..plans.evaluate import Counts, added
from ..plans.prepare import prepare
from ..plans.remote import Progress, Scheduler, across
from ..plans.stream import search_space
from ..verdict.assess import assess_together
from ..verdict.assessment import Assessment
from ..verdict.result import FigureName, bases_differ

KEYS: tuple[FigureName, ...] = (
    "step_s",
    "mfu",
    "mfu_causal",
    "mfu_shown",
    "mfu_basis",
    "days",
    "cost_usd",
    "likely",
    "goodput",
    "devices_used",
    "tokens_per_s_per_device",
)
TOGETHER = 8  # copies in the coarse space that pass through the model together
Values = tuple[Any, ...]  # of the swept inputs
Row = dict[str, Any]  # a plan of a search with its figures


@record
class Cell:
    """One changed copy: the values of the swept inputs, verdict ("refused" where the design does
    not allow them), headline figures, why."""

    at: Values
    verdict: str
    figures: dict[str, Any] = field(default_factory=dict)
    memory_share: float | None = None
    why: str = ""


def cells(
    design: Design, changes: Sequence[Mapping[str, Any]], space: plans.Space | str | None = None
) -> list[Cell]:
    """Changed copies of a design. `changes`: {dotted path: value} of each."""
    at_once = _at_once(space)
    parts = [changes[i : i + at_once] for i in range(0, len(changes), at_once)]
    return [cell for part in parts for cell in _together(design, part, space)]


def _at_once(space: plans.Space | str | None) -> int:
    """Copies that pass through the model together: one in larger spaces, whose plans fill a pass,
    and memory, by themselves."""
    return TOGETHER if plans.space_of(space) == plans.COARSE else 1


def _together(
    design: Design, changes: Sequence[Mapping[str, Any]], space: plans.Space | str | None
) -> list[Cell]:
    """Changed copies of a design that pass through the model together."""
    places = [tuple(change.values()) for change in changes]
    done: dict[int, Cell] = {}
    copies: dict[int, Design] = {}
    for i, (at, change) in enumerate(zip(places, changes)):
        try:
            copy = _changed(design, {**change})
            if is_posttraining(copy):
                done[i] = _tuned(copy, at)
            else:
                copies[i] = copy
        except DesignError as error:
            done[i] = _cell(at, error)
    for i, answer in zip(copies, assess_together([*copies.values()], space=space)):
        done[i] = _cell(places[i], answer)
    return [done[i] for i in range(len(places))]


def _cell(at: Values, answer: Assessment | DesignError) -> Cell:
    """What a sweep keeps of one copy."""
    if isinstance(answer, DesignError):
        return Cell(at=at, verdict="refused", why=str(answer))
    if not answer.phases:
        sums = (line for line in answer.refusal if line.startswith("sum:"))
        return Cell(at=at, verdict=answer.verdict, why=next(sums, ""))
    return Cell(
        at=at,
        verdict=answer.verdict,
        figures=answer.figures(*KEYS, "plan"),
        memory_share=answer.memory_share,
        why=answer.missed[0].text if answer.missed else "",
    )


def comparable(cells: Sequence[Cell]) -> list[Cell]:
    """Cells whose MFU is shown in one convention: that of all where they have one, else attention
    counted as causal masks leave it."""
    if not bases_differ(cell.figures for cell in cells):
        return [*cells]
    return [replace(cell, figures=_causal(cell.figures)) for cell in cells]


def _causal(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures of a cell, its MFU shown with attention as causal masks leave it."""
    if not figures.get("mfu_basis"):
        return figures
    return figures | {"mfu_shown": figures["mfu_causal"], "mfu_basis": "causal"}


def _changed(design: Design, changes: Row) -> Design:
    """A changed copy; another method leaves out what it has no use for."""
    method = changes.pop("job.method", None)
    return (design if method is None else of_method(design, method)).change(changes)


def _tuned(design: Design, at: Values) -> Cell:
    """A copy that tunes a trained model, which another package assesses."""
    if PLANNER not in entries(FUNCTIONS):
        refuse_posttraining(design)
    result: Row = function(PLANNER)(design).as_dict()
    if result["plan"] is None:
        return Cell(at=at, verdict=result["verdict"], why=next(iter(result["limits"]), ""))
    memory = result["memory_bytes"]
    return Cell(
        at=at,
        verdict=result["verdict"],
        figures={key: result.get(key) for key in (*KEYS, "plan")},
        memory_share=memory["total"] / memory["capacity"],
        why=next(iter(result["limits"]), ""),
    )


def sweep(
    design: Design,
    over: Mapping[str, Iterable[Any]],
    *,
    together: bool = False,
    space: plans.Space | str | None = None,
    progress: Progress | None = None,
    scheduler: Scheduler | None = None,
    chunk: int = 64,
) -> list[Cell]:
    """Every combination of values, in order (the last path varies fastest).

    over : {dotted path: values}.  together : the first values of all paths are one copy, the second
    ones another, in place of every combination.
    progress : function(done, of), called as results come; it may raise to stop.
    scheduler : address of a Dask scheduler, or a distributed.Client; None works here.
    chunk : copies that one task of a cluster takes, at least; whole groups of those that are worked
    out together, so that every figure is the same here and there.

    >>> cells = sweep(Design.from_text("8B on 64 H100, 1T tokens"), {"cluster.devices": [64, 128]})
    >>> [cell.verdict for cell in cells], cells[0].figures["days"] > cells[1].figures["days"]
    (['feasible', 'feasible'], True)
    """
    if not isinstance(over, Mapping) or not all(isinstance(v, Iterable) for v in over.values()):
        raise DesignError("over", over, "a mapping of dotted paths to lists of values")
    columns = [tuple(values) for values in over.values()]
    if together and len({len(values) for values in columns}) > 1:
        raise DesignError(
            "over",
            ", ".join(f"{len(values)} of {path}" for path, values in zip(over, columns)),
            "as many values of each",
            problem="do not pair",
        )
    grid = list(zip(*columns) if together else itertools.product(*columns))
    at_once = _at_once(space)
    each = at_once * (1 if scheduler is None else -(-chunk // at_once))
    changes = [dict(zip(over, at)) for at in grid]
    tasks = [(design, changes[i : i + each], space) for i in range(0, len(grid), each)]
    parts = across(cells, tasks, scheduler, progress, len(grid), each)
    return [cell for part in parts if part is not None for cell in part]


class Edge(NamedTuple):
    """Neighbouring values of a sweep over one input between which the verdict changes."""

    low: Any
    verdict_at_low: str
    high: Any
    verdict_at_high: str


def edge(cells: Sequence[Cell]) -> list[Edge]:
    """Where the verdict changes along a sweep over one input."""
    return [
        Edge(a.at[0], a.verdict, b.at[0], b.verdict)
        for a, b in zip(cells, cells[1:])
        if a.verdict != b.verdict
    ]


def variant_designs(
    design: Design, over: Mapping[str, Iterable[Any]]
) -> list[tuple[Values, Design]]:
    """[(values, changed copy)] of every combination that the design allows, in order (the last path
    varies fastest)."""
    copies = []
    for at in itertools.product(*over.values()):
        with suppress(DesignError):
            copies.append((at, design.change(dict(zip(over, at)))))
    return copies


def variants(
    designs: Iterable[Design],
    *,
    space: plans.Space | str | None = None,
    progress: Progress | None = None,
    scheduler: Scheduler | None = None,
    top: int = 20,
) -> tuple[list[Row], Counts]:
    """Searches of many designs, each streamed in chunks: the best `top` plans of each with its
    place in the list, most tokens/s first; and {legal, evaluated, seconds, rejected, unseen} over
    all searches (unseen: designs not looked at).

    For what is too large for one search: thousands of cluster variants x plans. The rows are the
    same from this process and from a cluster.
    progress may return False to stop.
    """
    start = perf_counter()
    tasks = [(design, i, space, top) for i, design in enumerate(designs)]
    results = across(_best, tasks, scheduler, progress)
    done = [result for result in results if result is not None]
    rows = [row for part, _ in done for row in part]
    rows.sort(key=lambda row: (-row["tokens_per_s"], row["design"], row["rank"]))
    counts = added(searched for _, searched in done)
    counts["seconds"] = perf_counter() - start
    counts["unseen"] = len(tasks) - len(done)
    return rows, counts


def _best(
    design: Design, number: int, space: plans.Space | str | None, top: int
) -> tuple[list[Row], Counts]:
    """The best plans of one design, and what its search looked at."""
    try:
        resolved = prepare(design)
        phase = resolved.main_phase
        offered = plans.offered(plans.space_of(space), resolved)
        search = search_space(situation(resolved, phase), offered)
    except DesignError:
        return [], added(())
    tokens = phase.global_batch * phase.seq_len
    rows = [
        {
            "design": number,
            "rank": rank,
            "devices": resolved.cluster.devices,
            "step_s": float(search.step_s[i]),
            "tokens_per_s": tokens / float(search.step_s[i]),
            "memory_bytes": float(search.total_bytes[i]),
            "legal": search.legal,
            **search.row(i),
        }
        for rank, i in enumerate(search.order[:top].tolist())
    ]
    return rows, search.counts
