"""The risk register: what may go wrong, how likely, what it costs in days and dollars, what it
takes to prevent; dearest first."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.records import Record
from ..record import Run, run_of
from .found import FOUND, Scene

HARMLESS = 0.001  # of the run, in days and in dollars: below both a risk is not listed


@dataclass(frozen=True)
class Risk(Record):
    """One risk. Impact is what it costs where it happens; expected = likelihood x impact. Dollars
    are None where nothing is priced."""

    id: str
    risk: str
    likelihood: float  # that it happens in this run
    likelihood_from: str
    impact_days: float
    impact_usd: float | None
    expected_days: float
    expected_usd: float | None
    in_headline: bool  # its mean is part of the predicted days already
    evidence: str  # what was evaluated, with the figures
    mitigation: str
    left_after_days: float | None  # expected days with the mitigation, evaluated
    mitigation_usd: float | None  # what the mitigation costs over the run
    pays: bool | None  # whether it costs less than it saves
    owner: str


@dataclass(frozen=True)
class Risks(Record):
    """The register, ordered by expected dollars (days where nothing is priced), and what was looked
    at and is harmless here."""

    run: Run
    rows: tuple[Risk, ...]
    harmless: tuple[str, ...]
    expected_days: float  # of the rows that the headline does not contain
    expected_usd: float | None


def risks(assessment) -> Risks:
    """Every known kind of trouble evaluated on this design; those below HARMLESS of the run in
    expected days and dollars are left out.

    Impact comes from evaluating the design with the trouble in it (step, goodput, failures, price);
    likelihood from published counts, by
    the rule of succession (k + 1) / (n + 2) over n published cases where k went wrong, so an even
    chance where nobody has published one
    (said in `likelihood_from`). Days late are days of the whole allocation, so dollars = days x
    dollars a day, except where the devices
    are not paid for while they are late.
    """
    run = run_of(assessment)
    scene = Scene.of(assessment, run)
    whole = run.usd(run.days)
    rows, harmless = [], []
    for look in FOUND:
        found = look(scene)
        if found is None:
            continue
        risk = _risk(scene, **found)
        small = risk.expected_days < HARMLESS * run.days and (
            risk.expected_usd is None or risk.expected_usd < HARMLESS * whole
        )
        if small:
            harmless.append(risk.risk)
        else:
            rows.append(risk)
    rows.sort(
        key=lambda x: (-(x.expected_usd if x.expected_usd is not None else 0.0), -x.expected_days)
    )
    extra = [x for x in rows if not x.in_headline]
    return Risks(
        run,
        tuple(rows),
        tuple(harmless),
        sum(x.expected_days for x in extra),
        None if run.usd_per_day is None else sum(x.expected_usd or 0.0 for x in extra),
    )


def _risk(
    scene,
    *,
    id,
    risk,
    likelihood,
    source,
    days,
    evidence,
    mitigation,
    owner,
    usd=-1.0,
    left=None,
    cost_usd=None,
    in_headline=False,
) -> Risk:
    """One row; usd -1 stands for the days at the run's price."""
    paid = scene.run.usd(days) if usd == -1.0 else usd
    expected_days, expected_usd = likelihood * days, None if paid is None else likelihood * paid
    pays = None
    if left is not None and cost_usd is not None and scene.run.usd_per_day is not None:
        pays = cost_usd < expected_usd - scene.run.usd(left) if expected_usd is not None else None
    return Risk(
        id,
        risk,
        float(likelihood),
        source,
        float(days),
        paid,
        float(expected_days),
        expected_usd,
        in_headline,
        evidence,
        mitigation,
        left,
        cost_usd,
        pays,
        owner,
    )
