"""One kind of trouble evaluated on a design, and what evaluating needs: goodput, days and dollars
of a run with something changed."""

from dataclasses import replace
from math import erf, exp, sqrt

import numpy as np
from scantling.base.columns import Array, Column
from scantling.base.records import Known, record
from scantling.base.show import several
from scantling.endure import goodput
from scantling.endure.interval import chosen_interval
from scantling.endure.life import lived, otherwise

from ..job_site import Site

EVEN = 0.5  # the chance where nobody has published a rate
NO_RATE = "nobody has published a rate: an even chance"
CAPACITY_LEAD = "capacity lead"
NETWORK_ENGINEER = "network engineer"
PERFORMANCE_ENGINEER = "performance engineer"
SITE_ENGINEER = "site engineer"
STORAGE_ENGINEER = "storage engineer"
TRAINING_ENGINEER = "training engineer"
# events before which a mitigation has to be decided
SIGNING = "signing"
DELIVERY = "delivery"
ACCEPTANCE = "acceptance"
FIRST_STEP = "the first step"


@record
class Trouble:
    """One kind of trouble on one design: the chance, what it costs where it happens, what was
    evaluated, and what would prevent it."""

    id: str
    risk: str
    likelihood: float  # that it happens in this run
    likelihood_from: str
    days: float  # where it happens
    usd: Known  # where it happens; None without a price
    evidence: str
    mitigation: str
    left: Known = None  # expected days with the mitigation
    mitigation_usd: Known = None
    in_headline: bool = False
    before_start: bool = False
    owner: str
    by: str


def goodput_at(
    s: Site,
    *,
    spares: Column | None = None,
    durable_s: Column | None = None,
    restart_s: Column | None = None,
    repair_s: Column | None = None,
) -> Column:
    """Goodput with other spares or other times (`endure.life.lived`), of several at once where
    these are columns. Where nodes are short for days the run is launched again on fewer replicas,
    by hand where nothing does it by itself."""
    life = otherwise(s.e.life, durable_s=durable_s, restart_s=restart_s, repair_s=repair_s)
    covered = s.e.segments.covered(s.standbys if spares is None else spares)
    near = life.levels[0]
    interval = np.maximum(life.interval_s, near.durable_s - near.stall_s)
    good, _ = lived(replace(life, spares=covered, shrinks=True, interval_s=interval))
    return good


def goodputs_of_fleets(s: Site, more_failures: Array) -> Array:
    """Goodput with each of so many times the failures, otherwise as `goodput_at`; the interval
    between saves moves with the failures where there is one level of copies."""
    life = s.e.life
    near = life.levels[0]
    covered = s.e.segments.covered(s.standbys)
    life = replace(life, spares=covered, slower=life.slower * more_failures, shrinks=True)
    interval = life.interval_s
    if len(life.levels) == 1:
        interval, _ = chosen_interval(
            goodput.optimum_interval(life.stopping_s, near.stall_s),
            near.stall_s,
            near.durable_s,
            s.a.resolved.constraints,
            s.a.resolved.checkpoint,
            s.step_s,
        )
    interval = np.maximum(interval, near.durable_s - near.stall_s)
    return np.asarray(lived(replace(life, interval_s=interval))[0])


def days_at(s: Site, goodput: float) -> float:
    """Days that the run takes longer at another goodput."""
    return max(days_of_step(s, s.e.goodput / max(goodput, 1e-9)), 0.0)


def days_of_step(s: Site, ratio: float) -> float:
    """Days that the run takes longer where the step takes `ratio` times as long."""
    return s.run.days * (ratio - 1)


def usd_of_nodes(s: Site, n: float) -> Known:
    """Dollars of so many nodes held as long as the run."""
    return s.run.usd(s.run.days * max(n, 0) / s.nodes)


def idle_nodes(s: Site) -> str:
    """What to say of nodes that the plan leaves idle."""
    if s.idle_nodes > 0:
        return f" (beside {several(s.idle_nodes, 'node')} that the plan leaves idle)"
    return ""


def mean_excess(sd: float) -> float:
    """Mean of a log-normal over its median, given that it exceeds it, less one:
    2 (exp(sd^2 / 2) Phi(sd) - 1/2)."""
    return 2 * (exp(sd * sd / 2) * 0.5 * (1 + erf(sd / sqrt(2))) - 0.5)


def at_least_one(events: float) -> float:
    """Chance of one or more of so many expected: 1 - exp(-events)."""
    return 1 - exp(-events)
