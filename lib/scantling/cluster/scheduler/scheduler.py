"""Scheduler and orchestration: the choice by stated criteria, the request for this job as data,
spares, preemption, requeue, health checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import prod

from ... import catalogue
from ...base.records import Record
from ...base.show import several
from ..site import Run, is_torus, run_of, site_of
from ..texts import number, source
from .queue import Queue, queue
from .request import health_checks, request, spares_held
from .stakes import stakes

# of the run, about what a tenth of a fit is worth: closer than this, the one with fewer control
# planes
TIE = 0.005
NUDGE = 0.25  # of a fit: how far a reading of the documents may be off
WORDS = {
    "gang": "starts whole or not at all",
    "leaf": "keeps the job under few leaves",
    "rack": "keeps groups inside one NVLink rack",
    "torus": "hands out whole slices of the torus",
    "swap": "replaces a node without a requeue",
    "shrink": "goes on with fewer replicas",
    "share": "lends idle devices to others",
    "services": "runs services beside the job",
    "nodes": "holds so many nodes",
}


@dataclass(frozen=True)
class Criterion(Record):
    """One criterion as this design puts it: what is at stake [share of the run's useful time], and
    why it is that much."""

    id: str
    what: str
    stake: float
    why: str


@dataclass(frozen=True)
class Option(Record):
    """One scheduler judged: goodput it keeps of what is at stake, whether it can be used at all,
    and why it loses."""

    id: str
    name: str
    usable: bool
    score: float  # product over criteria of 1 - stake x (1 - fit)
    control_planes: int
    most_nodes: int
    fits: tuple[dict, ...]  # {criterion, stake, fit, costs, says, source}
    against: tuple[str, ...]  # dearest first


@dataclass(frozen=True)
class Scheduler(Record):
    """The scheduler of a design and what it is asked for."""

    run: Run
    choice: str
    name: str
    why: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    options: tuple[Option, ...]  # best first
    request: dict
    spares: dict
    preemption: dict
    requeue: dict
    health_checks: tuple[dict, ...]
    queue: Queue
    lines: tuple[str, ...]

    def option(self, id: str) -> Option:
        """One option by id. Raises KeyError for an unknown one."""
        for one in self.options:
            if one.id == id:
                return one
        raise KeyError(id)


def scheduler(assessment) -> Scheduler:
    """Choose a scheduler for a design and write down what the job asks of it.

    Score = product over criteria of 1 - stake x (1 - fit). A stake is what this design would lose
    with nothing to serve the criterion, as a
    share of its useful time, evaluated (`scheduler_stakes`): the step with its groups scattered, a
    requeue instead of a restart in place,
    waiting instead of shrinking, idle devices not lent. A fit between 0 and 1 is what the
    scheduler's documents say it does
    (catalogue/schedulers.csv). Not usable: no gang start, no torus where there is one, more nodes
    than have been run. Within TIE of each
    other the one with fewer control planes wins.
    """
    assessment = site_of(assessment).a
    run, cluster = run_of(assessment), assessment.resolved.cluster
    asked = tuple(Criterion(k, WORDS[k], stake, why) for k, stake, why in stakes(assessment, run))
    sites = max(1, int(cluster.sites))
    nodes = -(
        -(int(cluster.nodes) + int(assessment.endurance.spares)) // sites
    )  # each site has a scheduler of its own
    found = [_judge(id, asked, nodes, cluster) for id in _names()]
    order = _ordered(found)
    if not order[0].usable:  # beyond every published size: the one that is stretched least
        order = sorted(
            found, key=lambda o: (not _gates(o, cluster), nodes / o.most_nodes, -o.score)
        )
    best = order[0]
    held, asks = spares_held(assessment, run), request(assessment, best.id)
    again = _requeue(assessment)
    return Scheduler(
        run,
        best.id,
        best.name,
        (*_why(best, order, asked, nodes, sites), *_steady(found, best)),
        asked,
        tuple(order),
        asks,
        held,
        _preemption(assessment, run),
        again,
        health_checks(assessment),
        queue(assessment, asks["topology"]),
        _lines(best, order, asks, held, again, nodes),
    )


def _ordered(found) -> list[Option]:
    """Usable ones first; among those within TIE of the best the one with fewest control planes."""
    top = max((o.score for o in found if o.usable), default=1.0)
    level = lambda o: (0, o.control_planes) if o.score >= top - TIE else (1, 0)  # noqa: E731
    return sorted(found, key=lambda o: (not o.usable, *level(o), -o.score, o.id))


def _steady(found, best: Option) -> tuple[str, ...]:
    """Whether the choice hangs on a fit that is a reading of documents: each partial fit moved by
    NUDGE, one at a time."""
    turns = []
    for o in found:
        for f in o.fits:
            if o.usable and f["criterion"] != "nodes" and 0 < f["fit"] < 1:
                for step in (-NUDGE, NUDGE):
                    fit = min(max(f["fit"] + step, 0.0), 1.0)
                    score = o.score * (1 - f["stake"] * (1 - fit)) / max(1 - f["costs"], 1e-12)
                    other = _ordered([replace(x, score=score) if x is o else x for x in found])[0]
                    if other.id != best.id:
                        turns.append(
                            f"{other.name} if {o.name} did a quarter "
                            f"{'better' if step > 0 else 'worse'} at: "
                            f"{WORDS[f['criterion']]}"
                        )
    if not best.usable:
        return ()
    return (
        (f"it would be {turns[0]}",)
        if turns
        else ("the choice stands with every partial fit a quarter better or worse",)
    )


@cache
def _table() -> dict:
    out: dict[str, dict] = {}
    for row in catalogue.read(catalogue.HERE / "schedulers.csv", None):
        out.setdefault(row["id"], {})[row["criterion"]] = row
    return out


def _names() -> tuple[str, ...]:
    return tuple(_table())


def _most_nodes(id: str, cluster) -> int:
    own = int(float(_table()[id]["nodes"]["fit"]))
    node = catalogue.nodes().get(cluster.node)
    google = node is not None and "google" in node.provider.lower()
    return int(number("R160")) if google and own == int(number("R159")) else own


def _judge(id: str, asked, nodes: int, cluster) -> Option:
    table, most = _table()[id], _most_nodes(id, cluster)
    fits = []
    for c in asked:
        fit = min(1.0, most / nodes) if c.id == "nodes" else float(table[c.id]["fit"])
        fits.append(
            dict(
                criterion=c.id,
                stake=c.stake,
                fit=fit,
                costs=c.stake * (1 - fit),
                says=table[c.id]["says"],
                source=table[c.id]["source"],
            )
        )
    gang, torus = (
        float(table["gang"]["fit"]),
        float(table["torus"]["fit"]) if is_torus(cluster) else 1.0,
    )
    against = [
        f"{WORDS[f['criterion']]}: {f['costs']:.2%} of the run ({f['says']})"
        for f in sorted(fits, key=lambda f: -f["costs"])
        if f["costs"] > 1e-5
    ]
    if gang < 1:
        against.insert(0, f"gang start: {table['gang']['says']}")
    if torus <= 0:
        against.insert(0, f"torus: {table['torus']['says']}")
    if nodes > most:
        against.insert(0, f"size: {nodes:,} nodes, {most:,} is the most ({table['nodes']['says']})")
    return Option(
        id,
        table["gang"]["name"],
        gang >= 1 and torus > 0 and nodes <= most,
        prod(1 - f["costs"] for f in fits),
        int(float(table["parts"]["fit"])),
        most,
        tuple(fits),
        tuple(against),
    )


def _gates(option: Option, cluster) -> bool:
    table = _table()[option.id]
    return float(table["gang"]["fit"]) >= 1 and (
        not is_torus(cluster) or float(table["torus"]["fit"]) > 0
    )


def _why(best: Option, order, asked, nodes: int, sites: int) -> tuple[str, ...]:
    out = [
        (
            f"what it does not do costs {1 - best.score:.1%} of the run; next is "
            f"{order[1].name} with {1 - order[1].score:.1%}"
        )
        + (
            f", {order[1].control_planes} control planes against {best.control_planes}"
            if abs(order[1].score - best.score) < TIE
            else ""
        )
    ]
    if not best.usable:
        out.insert(
            0,
            (
                f"{nodes:,} nodes are more than any of these has been shown to hold; split "
                f"the site into {-(-nodes // best.most_nodes)} cells under one launcher"
            ),
        )
    if sites > 1:
        out.append(
            f"{sites} sites have one such cluster of {nodes:,} nodes each; one launcher "
            f"starts a gang in every site and joins them at each average"
        )
    heavy = max(asked, key=lambda c: c.stake)
    if heavy.stake > 0.001:
        out.append(f"most at stake: {heavy.what}, {heavy.stake:.1%} of the run ({heavy.why})")
    else:
        out.append(
            "nothing much is at stake: the job is small or its fabric flat; take what "
            "the site already runs"
        )
    if not any(c.id in ("services", "share") and c.stake > 0.05 for c in asked):
        out.append(
            "decide again if other teams, inference or rollouts are to share these "
            "devices: that is what Kubernetes is for"
        )
    return tuple(out)


def _preemption(assessment, run: Run) -> dict:
    """Who may stop whom. A restart that takes other jobs' nodes instead of spares pays for their
    lost work too."""
    e = assessment.endurance
    evictions = float(sum(float(x) for k, x in e.failures_per_day.items() if k != "software"))
    return dict(
        job="never preempted; above everything else on its nodes",
        others="may run on spares and idle nodes, killed without notice when a spare is called",
        grace_s=float(e.checkpoint_stall_s + e.checkpoint_durable_s),
        eligible_after_s=2 * 3600.0,
        stolen_nodes_per_day_without_spares=evictions,
        goodput_lost_where_restarts_preempt=number("R053") / 100,
        source=source("R053"),
    )


def _requeue(assessment) -> dict:
    """Restart in place against a requeue at this size; see `scheduler_stakes.requeue_s`."""
    from .stakes import in_place_gain, requeue_s

    nodes = assessment.resolved.cluster.nodes
    kept, gone = in_place_gain(assessment)
    e = assessment.endurance
    return dict(
        first=(
            "in place: the launcher restarts the ranks inside the allocation, the dead "
            "node's ranks on a spare"
        ),
        requeue_s=requeue_s(nodes, assessment.resolved.cluster.devices_per_node),
        goodput_in_place=kept,
        goodput_requeued=gone,
        gain=kept - gone,
        automatic=True,
        from_copy="newest durable",
        most_in_a_row=3,
        why_most=(
            f"three restarts within {3 * float(e.recovery_s) / 60:.0f} min that make no step "
            f"are one cause: stop and call"
        ),
        signal_before_end_s=float(e.checkpoint_stall_s + e.checkpoint_durable_s),
        source=source("R071", "R072"),
    )


def _lines(best: Option, order, asks, held, again, nodes: int) -> tuple[str, ...]:
    loser = order[1]
    t = asks["topology"]
    out = [
        f"{best.name} for {several(nodes, 'node')}",
        f"instead of {loser.name}: "
        + (
            loser.against[0]
            if loser.against and (loser.score < best.score - TIE or not loser.usable)
            else (
                f"{loser.control_planes} control planes to keep up against "
                f"{best.control_planes}, for {abs(loser.score - best.score):.2%} of the run"
            )
        ),
        (
            f"gang of {several(asks['gang']['nodes'], 'node')} x "
            f"{asks['gang']['tasks_per_node']}, {t['unit']} by {t['unit']}: segments of "
            f"{several(t['segment_nodes'], 'node')}"
        )
        + (f" in blocks of {t['block_nodes']}" if t.get("block_nodes") else ""),
        "no spares: a failure waits for its repair"
        if held["nodes"] == 0
        else f"{several(held['nodes'], 'spare')} {held['where']}",
        (
            f"restart in place: goodput {again['goodput_in_place']:.1%} against "
            f"{again['goodput_requeued']:.1%} requeued"
        ),
    ]
    return tuple(out)
