"""The verdicts: what each is called, its exit code, and whether a design with it may be run."""

from __future__ import annotations

from ..base.files import table_rows
from ..base.records import record
from ..catalogue.load import filled


@record
class Verdict:
    """One verdict. `met`: the plan fits and every stated constraint holds; `tone`: good, warn or
    bad, for whoever colours it."""

    id: str
    exit: int
    met: bool
    name: str
    short: str
    tone: str
    means: str
    lead: str  # words that begin its lines among the limits


# by id, the best first; where several hold, the last of them is said
VERDICTS = {v.id: v for v in filled(Verdict, table_rows(__file__, "verdicts"))}
EXIT = {v.id: v.exit for v in VERDICTS.values()}


def without_lead(line: str) -> str:
    """A line of the limits to stand after the name of its verdict, which says its first words."""
    lead, _, rest = line.partition(": ")
    return rest if lead in {v.lead for v in VERDICTS.values()} else line


def met(verdict: str) -> bool:
    """Whether a design with this verdict may be run: feasible, at risk or not. False for what is no
    verdict."""
    return verdict in VERDICTS and VERDICTS[verdict].met


def rank(verdict: str) -> int:
    """Place of a verdict among all, the best first."""
    return list(VERDICTS).index(verdict)
