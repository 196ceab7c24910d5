"""The risk register: what may go wrong, how likely, what it costs in days and dollars, what it
takes to prevent; dearest first."""

from scantling.base.records import Known, Lines, Record, record

from ..job_site import Run, Site
from .commercial import dearer, late_delivery, slower_than_estimated
from .failing_nodes import (
    beyond_spares,
    lost_replica,
    no_spares,
    sites_apart,
    slow_repairs,
    standstill,
    worse_fleet,
)
from .machines import corruption, slow_network, slow_store, unscreened
from .training import divergence, low_precision, memory_over
from .trouble import Trouble

KINDS = (
    standstill,
    slower_than_estimated,
    late_delivery,
    dearer,
    worse_fleet,
    no_spares,
    slow_repairs,
    corruption,
    slow_store,
    slow_network,
    unscreened,
    divergence,
    memory_over,
    beyond_spares,
    low_precision,
    sites_apart,
    lost_replica,
)
HARMLESS = 0.001  # of the run, in days and in dollars: below both a risk is not listed


@record
class Risk(Record):
    """One risk. Impact is what it costs where it happens; expected = likelihood x impact. Dollars
    are None where nothing is priced."""

    id: str
    risk: str
    likelihood: float  # that it happens in this run
    likelihood_from: str
    impact_days: float
    impact_usd: Known
    expected_days: float
    expected_usd: Known
    in_headline: bool  # its mean is part of the predicted days already
    before_start: bool  # it delays the start; the days from there on stay as they are
    evidence: str  # what was evaluated, with the figures
    mitigation: str
    left_after_days: Known  # expected days with the mitigation, evaluated
    mitigation_usd: Known  # what the mitigation costs over the run
    pays: bool | None  # whether it costs less than it saves
    owner: str
    by: str  # the event before which the mitigation has to be decided


@record
class Risks(Record):
    """The register, ordered by expected dollars (days where nothing is priced), and what was looked
    at and is harmless here."""

    run: Run
    rows: tuple[Risk, ...]
    harmless: Lines
    expected_days: float  # of the rows that add to the run (`adds`)
    expected_usd: Known


def risks(s: Site) -> Risks:
    """Every known kind of trouble evaluated on this design; those below HARMLESS of the run in
    expected days and dollars are left out.

    Impact comes from evaluating the design with the trouble in it (step, goodput, failures, price);
    likelihood from published counts, by the rule of succession (k + 1) / (n + 2) over n published
    cases where k went wrong, so an even chance where nobody has published one (said in
    `likelihood_from`). Days late are days of the whole allocation, so dollars = days x dollars a
    day, except where the devices are not paid for while they are late.
    """
    every = [_risk(s, trouble) for kind in KINDS if (trouble := kind(s)) is not None]
    rows = [x for x in every if not _small(x, s.run)]
    rows.sort(key=lambda x: (-(x.expected_usd or 0.0), -x.expected_days))
    extra = [x for x in rows if adds(x)]
    usd = sum(x.expected_usd or 0.0 for x in extra)
    return Risks(
        run=s.run,
        rows=tuple(rows),
        harmless=tuple(x.risk for x in every if _small(x, s.run)),
        expected_days=sum(x.expected_days for x in extra),
        expected_usd=None if s.run.usd_per_day is None else usd,
    )


def adds(x: Risk) -> bool:
    """True where a risk adds to the run and its headline does not contain it."""
    return not (x.in_headline or x.before_start)


def _small(x: Risk, run: Run) -> bool:
    if x.expected_days >= HARMLESS * run.days:
        return False
    whole = run.usd(run.days)
    return x.expected_usd is None or whole is None or x.expected_usd < HARMLESS * whole


def _risk(s: Site, x: Trouble) -> Risk:
    """One row of the register."""
    usd = None if x.usd is None else x.likelihood * x.usd
    return Risk(
        id=x.id,
        risk=x.risk,
        likelihood=x.likelihood,
        likelihood_from=x.likelihood_from,
        impact_days=x.days,
        impact_usd=x.usd,
        expected_days=x.likelihood * x.days,
        expected_usd=usd,
        in_headline=x.in_headline,
        before_start=x.before_start,
        evidence=x.evidence,
        mitigation=x.mitigation,
        left_after_days=x.left,
        mitigation_usd=x.mitigation_usd,
        pays=_pays(usd, s.run.usd(x.left), x.mitigation_usd),
        owner=x.owner,
        by=x.by,
    )


def _pays(expected: Known, left: Known, mitigation: Known) -> bool | None:
    """Whether a mitigation costs less than it saves [dollars]; None where one is not known."""
    if expected is None or left is None or mitigation is None:
        return None
    return mitigation < expected - left
