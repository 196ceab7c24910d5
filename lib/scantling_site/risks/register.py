"""The risk register: what may go wrong, how likely, what it costs in days and dollars, what it
takes to prevent; dearest first."""

from scantling.base.records import Known, Lines, Record, record

from ..site import Run, Site
from ..texts import fill, source, texts
from .kinds import FOUND, Found

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
    found = [_risk(s, x) for look in FOUND if (x := look(s)) is not None]
    rows = [x for x in found if not _small(x, s.run)]
    rows.sort(key=lambda x: (-(x.expected_usd or 0.0), -x.expected_days))
    extra = [*filter(adds, rows)]
    usd = sum(x.expected_usd or 0.0 for x in extra)
    return Risks(
        run=s.run,
        rows=tuple(rows),
        harmless=tuple(x.risk for x in found if _small(x, s.run)),
        expected_days=sum(x.expected_days for x in extra),
        expected_usd=None if s.run.usd_per_day is None else usd,
    )


def adds(x: Risk) -> bool:
    """True where a risk adds to the run and its headline does not contain it."""
    return not (x.in_headline or x.before_start)


def _small(x: Risk, run: Run) -> bool:
    return x.expected_days < HARMLESS * run.days and (
        x.expected_usd is None or x.expected_usd < HARMLESS * run.usd(run.days)
    )


def _risk(s: Site, found: Found) -> Risk:
    """One row of the register; words from tables/risks.yaml."""
    words = texts("risks", found.id)
    run = s.run
    facts = source(*words["facts"].split()) if "facts" in words else ""

    def text(key):
        return found.words.get(key) or fill(words.get(key, ""), s, **found.words)

    paid = run.usd(found.days) if found.usd == -1.0 else found.usd
    usd = None if paid is None else found.likelihood * paid
    left = found.left
    cost = found.cost_usd
    judged = None not in (left, cost, run.usd_per_day, usd)
    return Risk(
        id=words.get("id", found.id),
        risk=text("risk"),
        likelihood=found.likelihood,
        likelihood_from=text("source") + facts,
        impact_days=found.days,
        impact_usd=paid,
        expected_days=found.likelihood * found.days,
        expected_usd=usd,
        in_headline=found.in_headline,
        before_start=found.before_start,
        evidence=text("evidence"),
        mitigation=text("mitigation"),
        left_after_days=left,
        mitigation_usd=cost,
        pays=cost < usd - run.usd(left) if judged else None,
        owner=words["owner"],
        by=words["by"],
    )
