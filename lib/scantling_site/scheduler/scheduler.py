"""Scheduler and orchestration: the choice by stated criteria, the request for this job as data,
spares, preemption, requeue, health checks."""

from collections.abc import Iterator, Sequence
from typing import TypedDict

from scantling.base.records import Lines, Record, record
from scantling.base.show import several
from scantling.base.units import DAY_S

from ..constants import CONSTANTS
from ..facts import number, source
from ..job_site import Run, Site
from .dialects import request
from .health import HealthCheck, health_checks
from .queue import Queue, queue
from .request import (
    BAD_START_S,
    Request,
    SparesRequest,
    early_failures,
    kill_after_s,
    spares_request,
    stop_lead_s,
)
from .scheduler_choice import TIE, Option, best_first, judge, schedulers, steady
from .stakes import Criterion, in_place_gain, requeue_s, stakes


class Preemption(TypedDict):
    """Who may stop whom."""

    job: str
    others: str
    grace_s: int
    eligible_after_s: float
    stolen_nodes_per_day_without_spares: float
    goodput_lost_where_restarts_preempt: float
    source: str


class Requeue(TypedDict):
    """Restart in place against a requeue."""

    first: str
    requeue_s: float
    goodput_in_place: float
    goodput_requeued: float
    gain: float
    automatic: bool
    from_copy: str
    most_in_a_row: int
    why_most: str
    signal_before_end_s: int
    source: str


@record
class Scheduler(Record):
    """The scheduler of a design and what it is asked for."""

    run: Run
    choice: str
    name: str
    why: Lines
    criteria: tuple[Criterion, ...]
    options: tuple[Option, ...]  # best first
    request: Request
    spares: SparesRequest
    preemption: Preemption
    requeue: Requeue
    health_checks: tuple[HealthCheck, ...]
    queue: Queue
    lines: Lines


def scheduler(s: Site) -> Scheduler:
    """Choose a scheduler for a design and write down what the job asks of it.

    Score = product over criteria of 1 - stake x (1 - fit). A stake is what this design would lose
    with nothing to serve the criterion, as a share of its useful time, evaluated (`stakes`): the
    step with its groups scattered, a requeue instead of a restart in place, waiting instead of
    shrinking, idle devices not lent. A fit between 0 and 1 is what the scheduler's documents say it
    does (catalogue/schedulers.csv). Not usable: no gang start, no torus where there is one, more
    nodes than have been run. Within TIE of each other the one with fewer control planes wins.
    """
    criteria = stakes(s)
    nodes = -(-(s.nodes + s.spares) // s.sites)  # each site has a scheduler of its own
    judged = [judge(s, id, criteria, nodes) for id in schedulers()]
    options = best_first(s, judged, nodes)
    best = options[0]
    spares = spares_request(s)
    again = requeue(s)
    job = request(s, best.id)
    return Scheduler(
        run=s.run,
        choice=best.id,
        name=best.name,
        why=tuple(_why(s, options, criteria, nodes, steady(judged, best))),
        criteria=criteria,
        options=tuple(options),
        request=job,
        spares=spares,
        preemption=preemption(s),
        requeue=again,
        health_checks=health_checks(s),
        queue=queue(s, job["topology"]),
        lines=tuple(_lines(s, options, job, spares, again, nodes)),
    )


def _why(
    s: Site, options: Sequence[Option], criteria: Sequence[Criterion], nodes: int, steady: str
) -> Iterator[str]:
    """Why the first option is chosen."""
    best, second = options[:2]
    cost = 1 - best.score
    if not best.usable:
        yield (
            f"{nodes:,} nodes are more than any of these has been shown to hold; split the site "
            f"into {-(-nodes // best.most_nodes)} cells under one launcher"
        )
    if abs(second.score - best.score) < TIE:
        yield (
            f"a tie: what it lacks costs {cost:.1%} of the run, what {second.name} lacks "
            f"{1 - second.score:.1%}; it has {several(best.control_planes, 'control plane')}, "
            f"{second.name} {second.control_planes}"
        )
    else:
        yield (
            f"what it lacks costs {cost:.1%} of the run; next is {second.name} with "
            f"{1 - second.score:.1%}"
        )
    if s.sites > 1:
        yield (
            f"{s.sites} sites have one such cluster of {nodes:,} nodes each; one launcher starts a "
            "gang in every site and joins them at each average"
        )
    heavy = max(criteria, key=lambda c: c.stake)
    if heavy.stake > 0.001:
        yield f"most at stake: {heavy.what}, {heavy.stake:.1%} of the run ({heavy.why})"
    else:
        yield (
            "nothing much is at stake: the job is small or its fabric flat; take what the site "
            "already runs"
        )
    if not any(c.id in ("services", "share") and c.stake > 0.05 for c in criteria):
        yield (
            "decide again if other teams, inference or rollouts are to share these devices: that "
            "is what Kubernetes is for"
        )
    if steady:
        yield steady


def preemption(s: Site) -> Preemption:
    """Who may stop whom. A restart that takes other jobs' nodes instead of spares pays for their
    lost work too."""
    return Preemption(
        job="never preempted; above everything else on its nodes",
        others="may run on spares and idle nodes, killed without notice when a spare is called",
        grace_s=kill_after_s(s.step_s, s.save_s),
        eligible_after_s=CONSTANTS.preempt_s,
        stolen_nodes_per_day_without_spares=s.failures_per_day
        - s.e.failures_per_day.get("software", 0.0),
        goodput_lost_where_restarts_preempt=number("R053") / 100,
        source=source("R053"),
    )


def requeue(s: Site) -> Requeue:
    """Restart in place against a requeue at this size; see `stakes.requeue_s`."""
    in_place, requeued = in_place_gain(s)
    tries = early_failures(s.e.mtbf_s, s.run.days * DAY_S)
    return Requeue(
        first=(
            "in place: the launcher restarts the ranks inside the allocation, the dead node's "
            "ranks on a spare"
        ),
        requeue_s=requeue_s(s.cluster.nodes, s.per_node),
        goodput_in_place=in_place,
        goodput_requeued=requeued,
        gain=in_place - requeued,
        automatic=True,
        from_copy="newest durable",
        most_in_a_row=tries,
        why_most=(
            f"{tries} starts in a row that end within {BAD_START_S / 60:.0f} min and save nothing "
            "are one cause: stop and call"
        ),
        signal_before_end_s=stop_lead_s(s.step_s, s.save_s),
        source=source("R071", "R072"),
    )


def _lines(
    s: Site,
    options: Sequence[Option],
    job: Request,
    spares: SparesRequest,
    again: Requeue,
    nodes: int,
) -> Iterator[str]:
    """The choice and the request, a line each."""
    best, second = options[:2]
    topology = job["topology"]
    gang = job["gang"]
    yield f"{best.name} for {several(nodes, 'node')}"
    yield f"instead of {second.name}: {_loses(best, second)}"
    block = topology["block_nodes"]
    blocks = f" in blocks of {block}" if block else ""
    yield (
        f"gang of {several(gang['nodes'], 'node')} x {gang['tasks_per_node']}, "
        f"{topology['unit']} by {topology['unit']}: segments of "
        f"{several(topology['segment_nodes'], 'node')}{blocks}"
    )
    if spares["nodes"]:
        yield f"{several(spares['nodes'], 'spare')} {spares['where']}"
    else:
        yield f"no spares: {s.a.endurance.without_spares}"
    yield (
        f"restart in place: goodput {again['goodput_in_place']:.1%} against "
        f"{again['goodput_requeued']:.1%} requeued"
    )


def _loses(best: Option, second: Option) -> str:
    """Why the second option is not the first."""
    level = second.usable and second.score >= best.score - TIE
    if second.against and not level:
        return second.against[0]
    return (
        f"{second.control_planes} control planes to keep up against {best.control_planes}, for "
        f"{abs(second.score - best.score):.2%} of the run"
    )
