"""Trouble with the training itself: loss spikes, memory, a precision that does not converge."""

from dataclasses import replace
from math import erfc, log, sqrt

import numpy as np
from scantling.advise.diagnose import MEMORY_SD
from scantling.base.show import params, several
from scantling.base.units import DAY_S
from scantling.catalogue.words import PRECISIONS, WIDE_PRECISIONS, Precision

from ..facts import number, source
from ..job_site import Site
from ..rollout.playbooks import loss_spike_s, spikes
from .trouble import (
    EVEN,
    FIRST_STEP,
    NO_RATE,
    PERFORMANCE_ENGINEER,
    TRAINING_ENGINEER,
    Trouble,
    days_of_step,
)


def divergence(s: Site) -> Trouble | None:
    """Loss spikes that force rewinds."""
    steps = s.useful_s / s.step_s
    chance, count = spikes(steps)
    seconds = loss_spike_s(s)
    days = count * seconds / DAY_S
    return Trouble(
        id="spikes",
        risk="loss spikes force rewinds",
        likelihood=chance,
        likelihood_from=source("R148", "R165", "R166"),
        days=days,
        usd=s.run.usd(days),
        evidence=(
            f"{several(round(count), 'rewind')} of {seconds / 60:.0f} min in {params(steps)} "
            "steps, as in PaLM"
        ),
        mitigation=(
            "rewind by the playbook; keep copies far enough back; clipping and z-loss with an ML "
            "specialist"
        ),
        owner=TRAINING_ENGINEER,
        by=FIRST_STEP,
    )


def memory_over(s: Site) -> Trouble | None:
    """A peak beyond the memory, so that the safe plan has to run."""
    chosen = s.chosen
    share = float(chosen.memory.total / chosen.memory.capacity)
    safe = chosen.search.best_safe()
    if not chosen.fits or share <= 0.5 or safe is None:
        return None
    ratio = float(chosen.search.step_s[safe] / chosen.search.step_s[chosen.row])
    if ratio <= 1:
        return None
    days = days_of_step(s, ratio)
    return Trouble(
        id="memory",
        risk="the plan runs out of memory",
        likelihood=0.5 * erfc(log(1 / share) / MEMORY_SD / sqrt(2)),
        likelihood_from=(
            f"{share:.0%} of the usable memory, a tenth of spread over published peaks"
        ),
        days=days,
        usd=s.run.usd(days),
        evidence=(f"the fastest plan that keeps a fifth free has a step {ratio - 1:.1%} longer"),
        mitigation="try the peak on one replica first; the safe plan's file ready",
        left=0.0,
        mitigation_usd=0.0,
        owner=PERFORMANCE_ENGINEER,
        by=FIRST_STEP,
    )


def low_precision(s: Site) -> Trouble | None:
    """Matrix products of few bits that go on in bf16."""
    case = s.case
    precision = PRECISIONS[int(case.job.precision)]
    if precision in WIDE_PRECISIONS or not np.isfinite(case.chip.bf16_flops):
        return None
    ratio = s.step_ratio(
        replace(
            case,
            job=replace(case.job, precision=PRECISIONS.index(Precision.BF16)),
            chip=replace(case.chip, linear_flops=case.chip.bf16_flops),
        )
    )
    if ratio <= 1:
        return None
    chance = EVEN
    likelihood_from = NO_RATE
    if precision.startswith(("fp8", "mxfp8")):
        # one published run, by the rule of succession
        chance = (number("R166") + 1) / (1 + 2)
        likelihood_from = f"{source('R166')} by the rule of succession"
    days = days_of_step(s, ratio)
    return Trouble(
        id="precision",
        risk=f"training in {s.phase.precision} does not converge and goes on in bf16",
        likelihood=chance,
        likelihood_from=likelihood_from,
        days=days,
        usd=s.run.usd(days),
        evidence=f"the step in bf16 is {ratio:.2f} times as long",
        mitigation=(
            "a small run against bf16 first, confirmed by an ML specialist; keep bf16 copies"
        ),
        owner=TRAINING_ENGINEER,
        by=FIRST_STEP,
    )
