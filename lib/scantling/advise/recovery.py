"""What a design does when something breaks, beyond the headline goodput: copies by tier, stores
that carry them, shrinking, the ladder, the finishing day.

Joins the models of failures, storage and elasticity for one assessment; each part names the
function whose docstring has formula and source.
"""

from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from ..base import show
from ..base.json import clean
from ..base.records import Known
from ..endure import elastic, reliability, scale, storage
from ..endure.checkpoint import COMMIT_S
from ..endure.first_step import first_step
from ..endure.life import lived
from ..endure.reliability import Endurance, EnduranceFigures, figures as endurance_figures
from ..endure.simulate import TooLong
from ..endure.tiers import TierRow
from ..physics import sites
from ..physics.step import step_time
from ..plans.plan_names import PlanRow
from ..verdict.assessment import Assessment, Chosen
from ..verdict.numbers import cost, days, useful_s
from ..verdict.result import HeadlineKey, Promise, Sites

LADDER_FROM = 1024  # devices below which whole-job restarts cost next to nothing
BEST_STORES = 5
SIZES = (1024, 16_384, 100_000, 300_000, 1_000_000)  # devices that the ladder is shown at
STARTS = (8, *SIZES)  # and a first start
MOST_ROWS = 24  # of spares
HABIT_S = (900.0, 1800.0)  # usual interval between saves
REPLICAS = 1000  # runs simulated for the finishing day
LOST_GANGS = (1, 2, 4, 8)  # gangs of replicas that lose a node at once
GOODPUT: tuple[HeadlineKey, ...] = (
    "goodput",
    "mtbf_s",
    "checkpoint_interval_s",
    "checkpoint_bytes",
    "checkpoint_overhead",
    "spares",
    "spares_recommended",
)
Row = dict[str, Any]  # of `goodput --json`


class SparesRow(TypedDict):
    """What the run comes to with so many spare nodes."""

    spares: int
    goodput: float
    days: Known
    cost_usd: Known


class Living(TypedDict, total=False):
    """The keys of `goodput --json`; name and verdict are the command's, the promise that of the
    packages beside the core."""

    name: str
    verdict: str
    goodput: float
    mtbf_s: float
    checkpoint_interval_s: float
    checkpoint_bytes: float
    checkpoint_overhead: float
    spares: int
    spares_recommended: int
    badput: dict[str, float]
    tiers: list[TierRow]
    spares_table: list[SparesRow]
    ladder: list[Row]
    ladder_by_size: list[Row]
    first_step: dict[str, Row]
    interval_why: str
    endurance: EnduranceFigures
    recovery: Row
    finishing_day: Row | None
    promise: Promise | None


def goodput(assessment: Assessment) -> Living:
    """How the run lives with failures, as plain data: the headline numbers of GOODPUT, `badput`,
    `tiers`, `spares_table`, `ladder`, `first_step`, `interval_why`, `endurance`, `recovery` and
    `finishing_day`."""
    endurance = assessment.endurance
    more = recovery(assessment)
    load_s = endurance.first_step_s["load"]
    return {
        "goodput": assessment.goodput,
        "mtbf_s": assessment.mtbf_s,
        "checkpoint_interval_s": assessment.checkpoint_interval_s,
        "checkpoint_bytes": assessment.checkpoint_bytes,
        "checkpoint_overhead": assessment.checkpoint_overhead,
        "spares": assessment.spares,
        "spares_recommended": assessment.spares_recommended,
        "badput": clean(endurance.badput),
        "tiers": clean(endurance.tiers),
        "spares_table": clean(spares_table(assessment)),
        "ladder": [
            {"recovery": rung["measure"], "goodput": rung["goodput"]}
            for rung in clean(more.get("ladder") or ())
        ],
        "ladder_by_size": clean(by_size(assessment)),
        "first_step": {str(n): clean(first_step(n, load_s)) for n in STARTS},
        "interval_why": interval_why(endurance),
        "endurance": endurance_figures(endurance),
        "recovery": clean(more),
        "finishing_day": finishing_day(assessment),
    }


def spares_table(assessment: Assessment) -> list[SparesRow]:
    """[{spares, goodput, days, cost_usd}] from none to some beyond those that the run has and is
    recommended: the same life with so many, priced with them paid for; days and dollars None
    without tokens and without a price."""
    endurance = assessment.endurance
    segments = endurance.segments
    now = int(endurance.life.spares)
    idle = assessment.idle_nodes
    idle_losses = int(segments.covered(idle))
    cheapest = int(segments.covered(endurance.spares_recommended + idle))
    top = max(now, cheapest) + 4
    return [
        _with_spares(assessment, losses, max(int(segments.nodes(losses)) - idle, 0))
        for losses in sorted({*range(idle_losses, idle_losses + min(top, MOST_ROWS)), now, top})
    ]


def _with_spares(assessment: Assessment, losses: int, nodes: int) -> SparesRow:
    """What the run comes to with spare nodes that cover so many losses at a time."""
    endurance = assessment.endurance
    share = float(lived(replace(endurance.life, spares=losses))[0])
    took = days(assessment.phases, max(share, 1e-12)) if assessment.phases else None
    money = cost(assessment.resolved, replace(endurance, spares=nodes), took, share)
    return {
        "spares": nodes,
        "goodput": share,
        "days": took,
        "cost_usd": clean(money and money.cost_usd),
    }


def ladder(endurance: Endurance, plan: PlanRow, devices: int) -> tuple[scale.Rung, ...]:
    """The rungs of `scale.measures` at so many devices: this design's saves and times, replicas of
    its size, the failures and the collectives of that many."""
    replicas = max(plan["dp"] * devices // int(endurance.devices), 2)
    return scale.measures(endurance, devices, replicas)


def by_size(assessment: Assessment) -> list[Row]:
    """[{devices, recovery, goodput}]: the `ladder` at SIZES."""
    return [
        {"devices": devices, "recovery": rung.measure, "goodput": rung.goodput}
        for devices in SIZES
        for rung in ladder(assessment.endurance, assessment.plan, devices)
    ]


def interval_why(endurance: Endurance) -> str:
    """Why the interval is what it is, against the habit of half an hour."""
    tau = float(endurance.checkpoint_interval_s)
    stall = float(endurance.checkpoint_stall_s)
    mtbf_s = float(endurance.mtbf_s)
    if tau >= HABIT_S[0] or len(endurance.life.levels) > 1:
        return f"set by {endurance.interval_set_by}"
    low, high = (habit * habit / 2 / mtbf_s for habit in HABIT_S)
    end = "" if high > stall else " at this stall"
    habit = float(lived(replace(endurance.life, interval_s=HABIT_S[1]))[0])
    durable = float(endurance.checkpoint_durable_s)
    return (
        f"{show.seconds(tau)} is set by {endurance.interval_set_by}: a save stalls training "
        f"{show.seconds(stall)} and a failure comes every {show.seconds(mtbf_s)}. The usual 15 to "
        f"30 min would be right for stalls of {low:,.0f} to {high:,.0f} s{end}; 30 min here leaves "
        f"a goodput of {show.share(habit)} instead of {show.share(float(endurance.goodput))}. Each "
        f"save is final {show.seconds(durable)} later, "
        f"{show.seconds(min(COMMIT_S, durable))} of it metadata and commit by all writers"
        f"{_waited_for(endurance)}"
    )


def _waited_for(endurance: Endurance) -> str:
    """What a save costs whose end training waits for, where the watchdog would end the run."""
    save_s, limit_s = float(endurance.synchronous_save_s), endurance.watchdog_s
    if save_s <= limit_s:
        return ""
    return (
        f"; waited for, it takes {save_s:,.0f} s, and the watchdog ends a run whose ranks wait "
        f"{limit_s:,.0f} s for each other"
    )


def recovery(assessment: Assessment) -> Row:
    """Plain data of one assessment: tiers, stores, corpus, capacity, elastic, restart, ladder,
    sites.

    tiers: checkpoint copies near and far, with the goodput they would give (`reliability.tiered`).
    stores: published stores that can take the saves (`storage.carriers`). corpus: tokenised bytes
    and read rate (`storage.corpus`; None without tokens). capacity: room to provision [bytes].
    elastic: drop a replica or wait for its node (`elastic.wait_or_shrink`). restart: in place
    against requeued. ladder: measures from synchronous saves to replica-level recovery, each with
    its gain (`scale.measures`). sites: what several datacentres exchange, how often and at what
    cost (`between_sites`).
    """
    if not assessment.phases:
        return {}
    endurance = assessment.endurance
    chosen = assessment.chosen
    tokens = sum(one.phase.tokens or 0.0 for one in assessment.phases)
    corpus = corpus_of(chosen, tokens) if tokens else None
    stall = float(endurance.checkpoint_stall_s)
    size = float(endurance.checkpoint_bytes)
    interval = float(endurance.checkpoint_interval_s)
    stores = storage.carriers(assessment.resolved.cluster, size, interval, stall_s=stall)
    rungs: tuple[scale.Rung, ...] = ()
    if assessment.devices_used >= LADDER_FROM:
        rungs = ladder(endurance, chosen.plan, assessment.devices_used)
    result: Row = clean(
        {
            "tiers": _tiers(near_copies(assessment)),
            "stores": stores[:BEST_STORES],
            "stores_that_carry": sum(store.carries for store in stores),
            "corpus": corpus,
            "capacity": storage.capacity(
                size, corpus.bytes if corpus else 0.0, recent=int(np.max(endurance.retention))
            ),
            "elastic": fewer(endurance),
            "restart": elastic.in_place_or_requeue(
                float(endurance.mtbf_s),
                stall,
                detect_s=float(endurance.detect_s),
                durable_s=float(endurance.checkpoint_durable_s),
            ),
            "ladder": rungs,
            "sites": between_sites(assessment),
        }
    )
    return result


def _tiers(near: reliability.Tiered) -> Row:
    """The copies of a run that saves to every tier, and the goodput that they give."""
    return {
        "copies": [vars(tier) for tier in near["tiers"]],
        "interval_s": near["interval_s"],
        "every": near["every"],
        "goodput": near["goodput"],
        "gain": near["gain"],
    }


def near_copies(assessment: Assessment) -> reliability.Tiered:
    """The design's run with copies at every tier, saved as often as pays (`reliability.tiered`)."""
    endurance = assessment.endurance
    per_device = float(endurance.checkpoint_bytes) / assessment.devices_used
    cluster = assessment.resolved.cluster
    return reliability.tiered(cluster, endurance, state_bytes_per_device=per_device)


def fewer(endurance: Endurance) -> list[Row]:
    """Where `lost` gangs of replicas lose a node each: wait for repairs, run on without them (the
    global batch kept by more micro-batches on the others, the plan reshaped), or swap in spares
    that are ready, whichever costs least; a row a loss."""
    gang = endurance.life.gang
    if gang is None or gang.reshape is None:
        return []
    losses = np.array([n for n in LOST_GANGS if n < gang.replicas], int)
    if not losses.size:
        return []
    waits = elastic.wait_or_shrink(
        float(endurance.repair_s),
        gang.micro_batches,
        gang.replicas,
        lost=losses,
        ratios=gang.ratios,
    )
    covered = losses <= int(endurance.life.spares)
    columns: dict[str, Any] = {
        **waits,
        **gang.reshape(losses),
        "lost": losses,
        "choice": np.where(covered, "swap", waits["choice"]),
    }
    return [dict(zip(columns, row)) for row in zip(*np.broadcast_arrays(*columns.values()))]


def corpus_of(chosen: Chosen, tokens: float) -> storage.Corpus:
    """The corpus of so many tokens, as a phase reads it."""
    phase = chosen.phase
    return storage.corpus(
        tokens,
        float(chosen.case.job.token_bytes),
        tokens_per_s=phase.global_batch * phase.seq_len / chosen.step_s,
        readers=chosen.plan["dp"],
    )


def between_sites(assessment: Assessment) -> Sites | None:
    """What several sites exchange, how often and at what cost (`sites.report`), with the state
    that the outer optimizer keeps [bytes a device] and the devices of each; None for one site."""
    case = assessment.chosen.case
    cluster = assessment.resolved.cluster
    if cluster.sites < 2:
        return None
    one_site = replace(case, link=replace(case.link, sites=1.0))
    step_s = float(assessment.chosen.step.total)
    report = sites.report(case, step_s, float(step_time(one_site).total))
    return Sites(
        **report,
        devices=list(cluster.by_site),
        gbits_per_s=cluster.site_bytes_per_s * 8e-9,
        rtt_ms=cluster.site_rtt_s * 1e3,
        outer_bytes=cluster.sync.outer_bytes * assessment.params,
    )


def finishing_day(assessment: Assessment) -> Row | None:
    """Distribution of the finishing day over simulated runs: {days_p10, days_p50, days_p90,
    goodput, badput, replicas, seed}; None without tokens, and where failures are so many that no
    simulated run ends.

    Monte-Carlo (`reliability.finish`): failures only, at the estimated step time; the band of the
    step comes on top.
    """
    work = useful_s(assessment.phases) if assessment.phases else None
    if work is None:
        return None
    try:
        result = reliability.finish(assessment.endurance, work, replicas=REPLICAS, seed=0)
    except TooLong:
        return None
    cleaned: Row = clean(result)
    return cleaned
