"""What a design does when something breaks, beyond the headline goodput: copies by tier, stores
that carry them, shrinking, the ladder, the finishing day.

Joins the models of failures, storage and elasticity for one assessment; each part names the
function whose docstring has formula and source.
"""

from dataclasses import replace

import numpy as np

from ..base.json import clean
from ..endure import elastic, reliability, scale, storage
from ..endure.checkpoint import COMMIT_S
from ..endure.first_step import first_step
from ..endure.life import lived
from ..endure.simulate import TooLong
from ..physics import sites
from ..physics.step import step_time
from ..verdict.numbers import OF_ENDURANCE, cost, days, useful_s
from .words import say

LADDER_FROM = 1024  # devices below which whole-job restarts cost next to nothing
BEST_STORES = 5
SIZES = (1024, 16_384, 100_000, 300_000, 1_000_000)  # devices that the ladder is shown at
STARTS = (8, *SIZES)  # and a first start
MOST_ROWS = 24  # of spares
HABIT_S = (900.0, 1800.0)  # usual interval between saves
REPLICAS = 1000  # runs simulated for the finishing day
LOSSES = (1, 2, 4, 8)  # gangs of replicas that lose a node at once
GOODPUT = ("goodput", *OF_ENDURANCE)


def goodput(assessment) -> dict:
    """How the run lives with failures, as plain data: the headline numbers of GOODPUT, `badput`,
    `tiers`, `spares_table`, `ladder`, `first_step`, `interval_why`, `endurance`, `recovery` and
    `finishing_day`."""
    e = assessment.endurance
    more = recovery(assessment)
    said = assessment.figures(*GOODPUT) | {
        "badput": e.badput,
        "tiers": e.tiers,
        "spares_table": spares_table(assessment),
        "ladder": [
            {"recovery": r["measure"], "goodput": r["goodput"]} for r in more.get("ladder") or ()
        ],
        "ladder_by_size": by_size(assessment),
        "first_step": {str(n): first_step(n, e.first_step_s["load"]) for n in STARTS},
        "interval_why": interval_why(e),
        "endurance": e,
        "recovery": more,
        "finishing_day": finishing_day(assessment),
    }
    return clean(said)


def spares_table(assessment) -> list:
    """[{spares, goodput, days, cost_usd}] from none to some beyond those that the run has and is
    recommended: the same life with so many, priced with them paid for; days and dollars None
    without tokens and without a price."""
    e = assessment.endurance
    now, cheapest = int(e.life.spares), int(e.segments.covered(e.spares_recommended))
    top = max(now, cheapest) + 4
    rows = []
    for losses in sorted({*range(min(top, MOST_ROWS)), now, cheapest, top}):
        n = int(e.segments.nodes(losses))
        good = float(lived(replace(e.life, spares=losses))[0])
        took = days(assessment.phases, max(good, 1e-12)) if assessment.phases else None
        money = cost(assessment.resolved, replace(e, spares=n), took, good)
        rows.append(
            {
                "spares": n,
                "goodput": good,
                "days": took,
                "cost_usd": None if money is None else money.cost_usd,
            }
        )
    return rows


def ladder(e, plan: dict, devices: int) -> tuple:
    """The rungs of `scale.measures` at so many devices: this design's saves and times, replicas of
    its size, the failures and the collectives of that many."""
    return scale.measures(e, devices, max(plan["dp"] * devices // int(e.devices), 2))


def by_size(assessment) -> list:
    """[{devices, recovery, goodput}]: the `ladder` at SIZES."""
    return [
        {"devices": n, "recovery": rung.measure, "goodput": rung.goodput}
        for n in SIZES
        for rung in ladder(assessment.endurance, assessment.plan, n)
    ]


def interval_why(e) -> str:
    """Why the interval is what it is, against the habit of half an hour."""
    tau, stall, m = (float(x) for x in (e.checkpoint_interval_s, e.checkpoint_stall_s, e.mtbf_s))
    if tau >= HABIT_S[0] or len(e.life.levels) > 1:
        return f"set by {e.interval_set_by}"
    low, high = (t * t / 2 / m for t in HABIT_S)
    written = float(e.checkpoint_durable_s)
    return say(
        "interval-why",
        tau=tau,
        by=e.interval_set_by,
        stall=stall,
        minutes=m / 60,
        low=low,
        high=high,
        end="" if high > stall else " at this stall",
        habit=float(lived(replace(e.life, interval_s=HABIT_S[1]))[0]),
        good=float(e.goodput),
        written=written,
        commit=min(COMMIT_S, written),
    )


def recovery(assessment) -> dict:
    """Plain data of one assessment: tiers, stores, corpus, capacity, elastic, restart, ladder,
    sites.

    tiers: checkpoint copies near and far, with the goodput they would give (`reliability.tiered`).
    stores: published stores that can take
    the saves (`storage.carriers`). corpus: tokenised bytes and read rate (`storage.corpus`; None
    without tokens). capacity: room to
    provision [bytes]. elastic: drop a replica or wait for its node (`elastic.wait_or_shrink`).
    restart: in place against requeued.
    ladder: measures from synchronous saves to replica-level recovery, each with its gain
    (`scale.measures`). sites: what several datacentres
    exchange, how often and at what cost (`between_sites`).
    """
    if not assessment.phases:
        return {}
    e = assessment.endurance
    chosen = assessment.chosen
    cluster = assessment.resolved.cluster
    plan = chosen.plan
    near = near_copies(assessment)
    tokens = sum(c.phase.tokens or 0.0 for c in assessment.phases)
    text = corpus_of(chosen, tokens) if tokens else None
    stall = float(e.checkpoint_stall_s)
    size = float(e.checkpoint_bytes)
    stores = storage.carriers(cluster, size, float(e.checkpoint_interval_s), stall_s=stall)
    return clean(
        {
            "tiers": dict(
                copies=[vars(t) for t in near["tiers"]],
                **{k: near[k] for k in ("interval_s", "every", "goodput", "gain")},
            ),
            "stores": stores[:BEST_STORES],
            "stores_that_carry": sum(s.carries for s in stores),
            "corpus": text,
            "capacity": storage.capacity(
                size, text.bytes if text else 0.0, recent=int(np.max(e.retention))
            ),
            "elastic": fewer(e),
            "restart": elastic.in_place_or_requeue(
                float(e.mtbf_s),
                stall,
                detect_s=float(e.detect_s),
                durable_s=float(e.checkpoint_durable_s),
            ),
            "ladder": ladder(e, plan, assessment.devices_used)
            if assessment.devices_used >= LADDER_FROM
            else [],
            "sites": between_sites(assessment),
        }
    )


def near_copies(assessment) -> dict:
    """The design's run with copies at every tier, saved as often as pays (`reliability.tiered`)."""
    e = assessment.endurance
    return reliability.tiered(
        assessment.resolved.cluster,
        e,
        state_bytes_per_device=float(e.checkpoint_bytes) / assessment.devices_used,
    )


def fewer(e) -> list:
    """Where `lost` gangs of replicas lose a node each: wait for repairs, run on without them (the
    global batch kept by more micro-batches on the others, the plan reshaped), or swap in spares
    that are ready, whichever costs least; a row a loss."""
    gang = e.life.gang
    losses = np.array([n for n in LOSSES if gang and n < gang.replicas], int)
    if not losses.size:
        return []
    found = elastic.wait_or_shrink(
        float(e.repair_s), gang.micro_batches, gang.replicas, lost=losses, ratios=gang.ratios
    ) | gang.reshape(losses)
    found |= {
        "lost": losses,
        "choice": np.where(losses <= int(e.life.spares), "swap", found["choice"]),
    }
    return [dict(zip(found, row)) for row in zip(*np.broadcast_arrays(*found.values()))]


def corpus_of(chosen, tokens: float) -> storage.Corpus:
    """The corpus of so many tokens, as a phase reads it."""
    phase = chosen.phase
    return storage.corpus(
        tokens,
        chosen.case.job.token_bytes,
        tokens_per_s=phase.global_batch * phase.seq_len / chosen.step_s,
        readers=chosen.plan["dp"],
    )


def between_sites(assessment) -> dict | None:
    """What several sites exchange, how often and at what cost (`sites.report`), with the state
    that the outer optimizer keeps [bytes a device] and the devices of each; None for one site."""
    case = assessment.chosen.case
    cluster = assessment.resolved.cluster
    if cluster.sites < 2:
        return None
    return sites.report(
        case,
        float(assessment.chosen.step.total),
        float(step_time(replace(case, link=replace(case.link, sites=1.0))).total),
    ) | {
        "devices": cluster.by_site,
        "gbits_per_s": cluster.site_bytes_per_s * 8e-9,
        "rtt_ms": cluster.site_rtt_s * 1e3,
        "outer_bytes": cluster.sync.outer_bytes * assessment.params,
    }


def finishing_day(assessment) -> dict | None:
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
        found = reliability.finish(assessment.endurance, work, replicas=REPLICAS, seed=0)
    except TooLong:
        return None
    return clean(found)
