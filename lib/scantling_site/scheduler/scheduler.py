"""Scheduler and orchestration: the choice by stated criteria, the request for this job as data,
spares, preemption, requeue, health checks."""

from dataclasses import replace
from functools import cache
from math import prod

from scantling import catalogue
from scantling.base.records import Lines, Record, Rows, record
from scantling.base.show import several
from scantling.base.units import DAY_S

from ..facts import number, source
from ..site import Run, Site
from ..texts import constant, fill, lines, texts
from .queue import Queue, queue
from .request import (
    BAD_START_S,
    early_failures,
    health_checks,
    kill_after_s,
    request,
    spares_held,
    stop_lead_s,
)
from .stakes import in_place_gain, requeue_s, stakes

TIE = constant("tie")  # closer than this, the one with fewer control planes
WORDS = texts("scheduler", "criteria")


@record
class Criterion(Record):
    """One criterion as this design puts it: what is at stake [share of the run's useful time], and
    why it is that much."""

    id: str
    what: str
    stake: float
    why: str


@record
class Option(Record):
    """One scheduler judged: goodput it keeps of what is at stake, whether it can be used at all,
    and why it loses."""

    id: str
    name: str
    usable: bool
    score: float  # product over criteria of 1 - stake x (1 - fit)
    control_planes: int
    most_nodes: int
    fits: Rows  # {criterion, stake, fit, costs, says, source}
    against: Lines  # dearest first


@record
class Scheduler(Record):
    """The scheduler of a design and what it is asked for."""

    run: Run
    choice: str
    name: str
    why: Lines
    criteria: tuple[Criterion, ...]
    options: tuple[Option, ...]  # best first
    request: dict
    spares: dict
    preemption: dict
    requeue: dict
    health_checks: Rows
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
    asked = tuple(
        Criterion(id=k, what=WORDS[k], stake=stake, why=why)
        for k, (stake, why) in stakes(s).items()
    )
    nodes = -(-(s.nodes + s.spares) // s.sites)  # each site has a scheduler of its own
    found = [_judge(id, asked, nodes, s) for id in _table()]
    order = _ordered(found)
    if not order[0].usable:  # beyond every published size: the one that is stretched least
        order = sorted(
            found,
            key=lambda o: (
                _fit(o.id, "gang") < 1 or s.torus and _fit(o.id, "torus") <= 0,
                nodes / o.most_nodes,
                -o.score,
            ),
        )
    best = order[0]
    held = spares_held(s)
    again = _requeue(s)
    asks = request(s, best.id)
    return Scheduler(
        run=s.run,
        choice=best.id,
        name=best.name,
        why=(*_why(s, order, asked, nodes), *_steady(found, best)),
        criteria=asked,
        options=tuple(order),
        request=asks,
        spares=held,
        preemption=_preemption(s),
        requeue=again,
        health_checks=health_checks(s),
        queue=queue(s, asks["topology"]),
        lines=_lines(order, asks, held, again, nodes),
    )


def _ordered(found) -> list:
    """Usable ones first; among those within TIE of the best the one with fewest control planes."""
    top = max((o.score for o in found if o.usable), default=1.0)

    def rank(o):
        level = (0, o.control_planes) if o.score >= top - TIE else (1, 0)
        return not o.usable, *level, -o.score, o.id

    return sorted(found, key=rank)


def _steady(found, best: Option) -> Lines:
    """Whether the choice hangs on a fit that is a reading of documents: each partial fit moved by a
    quarter, one at a time."""
    words = texts("scheduler", "steady")
    if not best.usable:
        return ()
    partial = (
        (o, f, step)
        for o in found
        for f in o.fits
        for step in (-constant("nudge"), constant("nudge"))
        if o.usable and f["criterion"] != "nodes" and 0 < f["fit"] < 1
    )
    for o, f, step in partial:
        fit = min(max(f["fit"] + step, 0.0), 1.0)
        score = o.score * (1 - f["stake"] * (1 - fit)) / (1 - f["costs"])
        other = _ordered([replace(x, score=score) if x is o else x for x in found])[0]
        if other.id != best.id:
            turn = fill(
                words["turn"],
                other=other.name,
                name=o.name,
                better="better" if step > 0 else "worse",
                what=WORDS[f["criterion"]],
            )
            return (turn,)
    return (words["stands"],)


@cache
def _table() -> dict:
    out = {}
    for row in catalogue.read(catalogue.HERE / "schedulers.csv", None):
        out.setdefault(row["id"], {})[row["criterion"]] = row
    return out


def _fit(id: str, criterion: str) -> float:
    return float(_table()[id][criterion]["fit"])


def _most_nodes(id: str, cluster) -> int:
    own = int(_fit(id, "nodes"))
    node = catalogue.nodes().get(cluster.node)
    google = node is not None and "google" in node.provider.lower()
    return int(number("R160")) if google and own == number("R159") else own


def _judge(id: str, asked, nodes: int, s: Site) -> Option:
    table = _table()[id]
    most = _most_nodes(id, s.cluster)
    words = texts("scheduler", "against")
    fits = tuple(
        {
            "criterion": c.id,
            "stake": c.stake,
            "fit": fit,
            "costs": c.stake * (1 - fit),
            "says": table[c.id]["says"],
            "source": table[c.id]["source"],
        }
        for c in asked
        for fit in [min(1.0, most / nodes) if c.id == "nodes" else _fit(id, c.id)]
    )
    dear = sorted((f for f in fits if f["costs"] > 1e-5), key=lambda f: -f["costs"])
    refused = {
        "size": nodes > most and "nodes",
        "torus": s.torus and _fit(id, "torus") <= 0 and "torus",
        "gang": _fit(id, "gang") < 1 and "gang",
    }
    return Option(
        id=id,
        name=table["gang"]["name"],
        usable=not any(refused.values()),
        score=prod(1 - f["costs"] for f in fits),
        control_planes=int(_fit(id, "parts")),
        most_nodes=most,
        fits=fits,
        against=(
            *(
                fill(words[k], nodes=nodes, most=most, says=table[row]["says"])
                for k, row in refused.items()
                if row
            ),
            *(fill(words["cost"], what=WORDS[f["criterion"]], **f) for f in dear),
        ),
    )


def _why(s: Site, order, asked, nodes: int) -> Lines:
    best, second, words = *order[:2], texts("scheduler")
    heavy = max(asked, key=lambda c: c.stake)
    near = abs(second.score - best.score) < TIE
    values = {"best": best, "second": second, "nodes": nodes, "heavy": heavy}
    return lines(
        words["why"],
        s,
        **values,
        stretched=not best.usable,
        cells=-(-nodes // best.most_nodes),
        cost=1 - best.score,
        second_cost=1 - second.score,
        near=near,
        behind=not near,
        apart=s.sites > 1,
        at_stake=heavy.stake > 0.001,
        little=heavy.stake <= 0.001,
        alone=not any(c.id in ("services", "share") and c.stake > 0.05 for c in asked),
    )


def _preemption(s: Site) -> dict:
    """Who may stop whom. A restart that takes other jobs' nodes instead of spares pays for their
    lost work too."""
    return fill(
        texts("scheduler", "preemption"),
        grace_s=kill_after_s(s.step_s, s.e.checkpoint_durable_s),
        evictions=s.failures_per_day - s.e.failures_per_day.get("software", 0.0),
        lost=number("R053") / 100,
        source=source("R053"),
    )


def _requeue(s: Site) -> dict:
    """Restart in place against a requeue at this size; see `stakes.requeue_s`."""
    kept, gone = in_place_gain(s)
    return fill(
        texts("scheduler", "requeue"),
        requeue_s=requeue_s(s.cluster.nodes, s.per_node),
        kept=kept,
        gone=gone,
        gain=kept - gone,
        tries=early_failures(s.e.mtbf_s, s.run.days * DAY_S),
        early=BAD_START_S,
        grace_s=stop_lead_s(s.step_s, s.e.checkpoint_durable_s),
        source=source("R071", "R072"),
    )


def _lines(order, asks, held, again, nodes: int) -> Lines:
    best, second, words = *order[:2], texts("scheduler")
    topology = asks["topology"]
    spare = held["nodes"]
    level = second.usable and second.score >= best.score - TIE
    block = topology.get("block_nodes")
    equal = fill(words["loses"], best=best, second=second, less=abs(second.score - best.score))
    kept = f"{several(spare, 'spare')} {held['where']}"
    return fill(
        words["lines"],
        best=best,
        second=second,
        again=again,
        topology=topology,
        nodes=nodes,
        loses=equal if level or not second.against else second.against[0],
        gang=asks["gang"],
        blocks=f" in blocks of {block}" if block else "",
        held=kept if spare else "no spares: a failure waits for its repair",
    )
