"""What a design does when something breaks, beyond the headline goodput: copies by tier, stores
that carry them, shrinking, the ladder, the finishing day.

Joins the models of failures, storage and elasticity for one assessment; each part names the
function whose docstring has formula and source.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from ..base.json import clean
from ..endure import elastic, reliability, scale, storage
from ..physics.cases import devices, micro_batches
from ..verdict.numbers import useful_s

LADDER_FROM = 1024  # devices below which whole-job restarts cost next to nothing
BEST_STORES = 5
GOODPUT = (
    "goodput",
    "mtbf_s",
    "checkpoint_interval_s",
    "checkpoint_bytes",
    "checkpoint_overhead",
    "spares",
    "spares_recommended",
)


def goodput(assessment) -> dict:
    """How the run lives with failures, as plain data: the headline numbers of GOODPUT, `endurance`,
    `recovery` and `finishing_day`."""
    return {name: getattr(assessment, name) for name in GOODPUT} | {
        "endurance": assessment.endurance.as_dict(),
        "recovery": recovery(assessment),
        "finishing_day": finishing_day(assessment),
    }


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
    (`scale.measures`). sites: local updates between
    datacentres, where the cluster has several (`elastic.local_update`).
    """
    if not assessment.phases:
        return {}
    r, e, chosen = assessment.resolved, assessment.endurance, assessment.chosen
    cluster, plan = r.cluster, chosen.plan
    ranks = int(devices(chosen.case.plan))
    near = reliability.tiered(cluster, e, state_bytes_per_device=float(e.checkpoint_bytes) / ranks)
    tokens = sum(c.phase.tokens or 0.0 for c in assessment.phases)
    text = (
        storage.corpus(
            tokens,
            r.model.vocab,
            step_s=assessment.step_s,
            global_batch_tokens=chosen.phase.global_batch * chosen.phase.seq_len,
            readers=plan["dp"],
        ).as_dict()
        if tokens
        else None
    )
    m = float(micro_batches(chosen.case.job, chosen.case.plan))
    shrink = elastic.wait_or_shrink(float(e.repair_s), m, plan["dp"]) if plan["dp"] > 1 else None
    stall, size = float(e.checkpoint_stall_s), float(e.checkpoint_bytes)
    again = elastic.in_place_or_requeue(
        float(e.mtbf_s),
        stall,
        detect_s=float(e.detect_s),
        durable_s=float(e.checkpoint_durable_s),
    )
    stores = storage.carriers(
        cluster,
        size,
        float(e.checkpoint_interval_s),
        stall_s=stall,
    )
    return clean(
        dict(
            tiers=dict(
                copies=[asdict(t) for t in near["tiers"]],
                **{k: near[k] for k in ("interval_s", "every", "goodput", "gain")},
            ),
            stores=[s.as_dict() for s in stores[:BEST_STORES]],
            stores_that_carry=sum(s.carries for s in stores),
            corpus=text,
            capacity=storage.capacity(
                size,
                text["bytes"] if text else 0.0,
                recent=int(np.max(e.retention)),
            ),
            elastic=shrink,
            restart=again,
            ladder=[
                rung.as_dict()
                for rung in scale.measures(
                    replicas=max(plan["dp"], 2),
                    endurance=e,
                )
            ]
            if ranks >= LADDER_FROM
            else [],
            sites=elastic.local_update(
                r.params.total,
                assessment.step_s,
                sites=cluster.sites,
                site_bytes_per_s=cluster.site_bytes_per_s,
            )
            if cluster.sites > 1
            else None,
        )
    )


def finishing_day(
    assessment,
    replicas: int = 1000,
    seed: int = 0,
) -> dict | None:
    """Distribution of the finishing day over simulated runs: {days_p10, days_p50, days_p90,
    goodput, badput, replicas, seed}; None without tokens.

    Monte-Carlo (`reliability.finish`): failures only, at the estimated step time; the band of the
    step comes on top.
    """
    work = useful_s(assessment.phases) if assessment.phases else None
    return (
        None
        if work is None
        else clean(
            reliability.finish(
                assessment.endurance,
                work,
                replicas=replicas,
                seed=seed,
            )
        )
    )
