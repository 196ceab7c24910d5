"""Changes of a design, each assessed before it is shown: the one judge of every list of advice."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from itertools import islice
from json import dumps
from typing import Any

from ..base.records import record
from ..base.show import share
from ..catalogue.words import Offload
from ..design.repriced import price_note, repriced
from ..plans.space import COARSE, DEFAULT, Space
from ..verdict.assess import changed
from ..verdict.assessment import Assessment
from ..verdict.result import FixRow, TrialRow
from ..verdict.unpublished import host_state
from .changes import Change

# legal plans that a design and its changes may cost: some five seconds of a core, fifteen where the
# layers of a model differ
WORK = 2_500_000
VERIFIED = 3_100_000  # the same, with what is shown looked at in the whole space
EACH = 15_000  # plans in the time that one assessment takes beside its search
LARGE_SEARCH = 50_000  # legal plans of a design from which its changes are tried coarsely


@record
class Tried:
    """A change, the fields that it sets, prices of the machine after it among them, and the
    assessment after it, None where the design does not allow it."""

    change: Change
    set: dict[str, Any] = field(hash=False)
    after: Assessment | None

    @property
    def fits(self) -> bool:
        """Whether a plan of the changed design fits."""
        return self.after is not None and self.after.fits

    @property
    def feasible(self) -> bool:
        """Whether the changed design meets what it asks for."""
        return self.after is not None and self.after.met

    @property
    def safe(self) -> bool:
        """Feasible, and not at risk."""
        return self.after is not None and self.after.verdict == "feasible"

    @property
    def result(self) -> Assessment:
        """The assessment of a change that the design allows."""
        if self.after is None:
            raise ValueError(f"the design does not allow: {self.change.text}")
        return self.after

    def row(self) -> TrialRow:
        """Change, verdict, MFU, days, dollars and devices as plain values."""
        after = self.result
        text = self.change.text
        if "job.precision" in self.change.set:  # a share of another peak: say it of the common one
            peak = share(after.mfu_bf16_peak)
            text = text.replace("(", f"({peak} of the bf16 peak; ", 1)
        if after.plan["offload"] != Offload.NONE and "plan.offload" not in self.change.set:
            text += f", {host_state(after.chosen)}"
        if note := price_note(self.set):
            text += f", {note}"
        return {
            "change": text,
            "verdict": after.verdict,
            "mfu": after.mfu,
            "mfu_shown": after.mfu_shown,
            "days": after.days,
            "cost_usd": after.cost_usd,
            "devices": after.resolved.cluster.devices,
        }

    def fix(self) -> FixRow:
        """The row with the fields that are set and what is still missed."""
        missed = [m.text for m in self.result.missed]
        likely = self.result.likely.row()
        return {**self.row(), "likely": likely, "set": dict(self.set), "missed": missed}


# the assessment after fields are set, in a space and like another: the other is kept, so that its
# number stays its own
_Key = tuple[str, int, int]
_Answers = dict[_Key, tuple[Assessment | None, Assessment | None]]


class Trials:
    """Changes of one design, each tried once, until WORK legal plans have been looked at: what
    comes after that is in `left`. Changes of a design with LARGE_SEARCH legal plans or more are
    tried in the coarse space, from a coarse assessment (`before`); whoever shows one has it
    `verified`. `others`: trials of the same assessment, from which what both ask is taken; it
    counts as looked at all the same, so that no list depends on which came before."""

    def __init__(self, assessment: Assessment, others: "Trials | None" = None) -> None:
        legal = sum(one.search.legal for one in assessment.phases)
        self.assessment = assessment
        self.spent = legal
        self.seen: dict[str, Tried] = {}
        self.left: list[Change] = []
        self.space = COARSE if legal > LARGE_SEARCH else DEFAULT
        shared = others is not None and others.assessment is assessment
        self._answers: _Answers = others._answers if others is not None and shared else {}

    @cached_property
    def before(self) -> Assessment:
        """The design as it is, in the space that its changes are tried in."""
        if self.space is DEFAULT:
            return self.assessment
        coarse = self._after({}, COARSE, None)
        if coarse is None or coarse.fits != self.assessment.fits:
            return self.assessment
        return coarse

    def _after(
        self, fields: Mapping[str, Any], space: Space, like: Assessment | None
    ) -> Assessment | None:
        asked = _asked(fields, space, like)
        if asked not in self._answers:
            answer = changed(self.assessment.design, fields, space=space, like=like)
            self._answers[asked] = answer, like
        after, _ = self._answers[asked]
        searched_before = {id(one.search.reason) for one in like.phases} if like else set()
        searches = [one.search for one in after.phases] if after else []
        new = (s.legal for s in searches if id(s.reason) not in searched_before)
        self.spent += EACH + sum(new)
        return after

    def tried(self, change: Change) -> Tried:
        """The assessment after one change."""
        if change.key in self.seen:
            return self.seen[change.key]
        if self.spent > WORK:
            self.left.append(change)
            return self._row(change, None)
        if change.gives_way or self.space is DEFAULT:
            after = self._after(change.set, DEFAULT, self.assessment)
        else:
            after = self._after(change.set, COARSE, self.before)
        self.seen[change.key] = self._row(change, after)
        return self.seen[change.key]

    def _row(self, change: Change, after: Assessment | None) -> Tried:
        return Tried(change=change, set=repriced(self.assessment.design, change.set), after=after)

    def whole(self, fields: Mapping[str, Any]) -> Assessment | None:
        """The assessment in the whole space after fields are set, as it is known or not kept; None
        where the design does not allow them."""
        asked = _asked(fields, DEFAULT, self.assessment)
        if asked in self._answers:
            return self._answers[asked][0]
        return changed(self.assessment.design, fields, like=self.assessment)

    def judge(self, changes: Iterable[Change]) -> tuple[Tried, ...]:
        """Every one of the changes, assessed."""
        return tuple(self.tried(change) for change in changes)

    def known(self, row: Tried) -> Tried:
        """A row in the whole space where it has been looked at there, else as it is."""
        whole = self._answers.get(_asked(row.change.set, DEFAULT, self.assessment))
        return row if whole is None else self._row(row.change, whole[0])

    def verified(self, rows: Iterable[Tried], most: int | None = None) -> list[Tried]:
        """The first `most` rows that hold in the whole space too, as long as WORK lasts twice."""
        return [*islice(self._holding(rows), most)]

    def _holding(self, rows: Iterable[Tried]) -> Iterator[Tried]:
        for row in rows:
            if self.space is not COARSE:
                yield row
            elif self.spent <= VERIFIED:
                after = self._after(row.change.set, DEFAULT, self.assessment)
                whole = self._row(row.change, after)
                if whole.fits >= row.fits and whole.feasible >= row.feasible:
                    yield whole

    def __iter__(self) -> Iterator[Tried]:
        return iter(self.seen.values())


def _asked(fields: Mapping[str, Any], space: Space, like: Assessment | None) -> _Key:
    """The key of an answer."""
    return dumps(fields, sort_keys=True), id(space), id(like)
