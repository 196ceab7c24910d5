"""Schedulers judged against what a design has at stake: score, what speaks against each, whether
the choice hangs on one reading of the documents."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import TypedDict

from scantling import catalogue
from scantling.base.records import Lines, Record, record
from scantling.design.cluster import Cluster

from ..constants import CONSTANTS
from ..facts import number
from ..job_site import Site
from .stakes import WORDS, Criterion

TIE = CONSTANTS.tie  # closer than this, the one with fewer control planes


class Fit(TypedDict):
    """How far a scheduler serves a criterion, and what that costs this design."""

    criterion: str
    stake: float
    fit: float
    costs: float  # stake x (1 - fit)
    says: str
    source: str


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
    fits: tuple[Fit, ...]
    against: Lines  # dearest first


@record
class Reading:
    """What a scheduler's documents say of one criterion."""

    name: str  # of the scheduler
    fit: float  # 0 to 1; of `nodes` and `parts` a count
    says: str
    source: str


@cache
def schedulers() -> dict[str, dict[str, Reading]]:
    """id -> criterion -> reading (catalogue/schedulers.csv)."""
    out: dict[str, dict[str, Reading]] = {}
    for row in catalogue.read(catalogue.HERE / "schedulers.csv", None):
        out.setdefault(row["id"], {})[row["criterion"]] = Reading(
            name=row["name"], fit=float(row["fit"]), says=row["says"], source=row["source"]
        )
    return out


def most_nodes(id: str, cluster: Cluster) -> int:
    """Nodes that a scheduler has been shown to hold; Google's clusters hold more of Kubernetes."""
    stated = int(schedulers()[id]["nodes"].fit)
    node = catalogue.nodes().get(cluster.node)
    google = node is not None and "google" in node.provider.lower()
    return int(number("R160")) if google and stated == number("R159") else stated


def lacks_torus(s: Site, id: str) -> bool:
    """Whether the chips are a torus and the scheduler hands out no slices of one."""
    return s.torus and schedulers()[id]["torus"].fit <= 0


def lacks_gang(id: str) -> bool:
    """Whether a scheduler starts jobs in parts."""
    return schedulers()[id]["gang"].fit < 1


def judge(s: Site, id: str, criteria: Sequence[Criterion], nodes: int) -> Option:
    """One scheduler against the criteria of a design that asks for so many nodes."""
    readings = schedulers()[id]
    most = most_nodes(id, s.cluster)
    fits = []
    for c in criteria:
        reading = readings[c.id]
        fit = min(1.0, most / nodes) if c.id == "nodes" else reading.fit
        fits.append(
            Fit(
                criterion=c.id,
                stake=c.stake,
                fit=fit,
                costs=c.stake * (1 - fit),
                says=reading.says,
                source=reading.source,
            )
        )
    refused = []
    if nodes > most:
        refused.append(f"size: {nodes:,} nodes, {most:,} is the most ({readings['nodes'].says})")
    if lacks_torus(s, id):
        refused.append(f"torus: {readings['torus'].says}")
    if lacks_gang(id):
        refused.append(f"gang start: {readings['gang'].says}")
    dear = sorted((f for f in fits if f["costs"] > 1e-5), key=lambda f: -f["costs"])
    costs = [f"{WORDS[f['criterion']]}: {f['costs']:.2%} of the run ({f['says']})" for f in dear]
    return Option(
        id=id,
        name=readings["gang"].name,
        usable=not refused,
        score=prod(1 - f["costs"] for f in fits),
        control_planes=int(readings["parts"].fit),
        most_nodes=most,
        fits=tuple(fits),
        against=(*refused, *costs),
    )


def ordered(options: Sequence[Option]) -> list[Option]:
    """Usable ones first; among those within TIE of the best the one with fewest control planes."""
    top = max((o.score for o in options if o.usable), default=1.0)

    def rank(o: Option) -> tuple[bool, int, int, float, str]:
        close = o.score >= top - TIE
        planes = o.control_planes if close else 0
        return not o.usable, 0 if close else 1, planes, -o.score, o.id

    return sorted(options, key=rank)


def best_first(s: Site, options: Sequence[Option], nodes: int) -> list[Option]:
    """The options in order; beyond every published size the one that is stretched least first."""
    order = ordered(options)
    if order[0].usable:
        return order
    return sorted(
        options,
        key=lambda o: (lacks_gang(o.id) or lacks_torus(s, o.id), nodes / o.most_nodes, -o.score),
    )


def steady(options: Sequence[Option], best: Option) -> str:
    """Whether the choice hangs on a fit that is a reading of documents: each partial fit moved by a
    quarter, one at a time; empty where no option can be used."""
    if not best.usable:
        return ""
    for o in options:
        if not o.usable:
            continue
        for f in o.fits:
            if f["criterion"] == "nodes" or not 0 < f["fit"] < 1:
                continue
            for better in (False, True):
                other = _with_fit(options, o, f, better)
                if other.id != best.id:
                    return (
                        f"it would be {other.name} if {o.name} did a quarter "
                        f"{'better' if better else 'worse'} at: {WORDS[f['criterion']]}"
                    )
    return "the choice stands with every partial fit a quarter better or worse"


def _with_fit(options: Sequence[Option], changed: Option, f: Fit, better: bool) -> Option:
    """The best option where one fits a criterion a quarter better or worse."""
    step = CONSTANTS.nudge if better else -CONSTANTS.nudge
    fit = min(max(f["fit"] + step, 0.0), 1.0)
    score = changed.score * (1 - f["stake"] * (1 - fit)) / (1 - f["costs"])
    others = [replace(x, score=score) if x is changed else x for x in options]
    return ordered(others)[0]
