"""The scorecard: what the answers say by axis of the rubric, the level they amount to, and three
things to do again."""

from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from scantling.base.records import record

from . import question_pages
from .grade import grade
from .question import Question
from .rubric import LEVELS, Axis, Level, level_of, rubric

# of a question's credit: a hint, a wrong try, what a late right answer keeps
UNANSWERED = "not answered"
COSTS = {"hint": 0.15, "try": 0.25, "least": 0.25}


@record
class AxisScore:
    """One axis that was asked: points earned and points there were to earn (one for senior
    questions, one more for staff ones); whether any of its questions was answered."""

    axis: Axis
    points: float
    most: float
    answered: bool

    @property
    def points_text(self) -> str:
        """Points of those there were: 1.5 of 2."""
        return f"{self.points:.1f} of {self.most:.0f}"

    @property
    def shows(self) -> str:
        """What this score shows, in the rubric's words."""
        if not self.answered:
            return UNANSWERED
        return self.axis.shows(level_of(self.points, self.most).name)


@dataclass(frozen=True, repr=False)
class Scorecard:
    """What a session has earned so far.

    A question earns its credit (1 for right at once, less after wrong tries and hints). An axis has
    one point for its mid and senior questions and one for its staff questions, each the mean credit
    of those questions. The level is the share of all points that were there to earn: from 7 of 18
    senior, from 13 of 18 staff, the thresholds of nine axes with two points each.
    """

    session: Any

    @cached_property
    def credits(self) -> dict[str, float]:
        """What each question earned."""
        return {q.id: self.session.credit(q.id) for q in self.session.walkthrough.questions}

    @cached_property
    def axes(self) -> tuple[AxisScore, ...]:
        """The axes that were asked."""
        groups: dict[str, dict[bool, list[float]]] = {}
        answered = set()
        for q in self.session.walkthrough.questions:
            of = groups.setdefault(q.axis, {})
            of.setdefault(q.level == LEVELS[2], []).append(self.credits[q.id])
            if self.session.last(q.id):
                answered.add(q.axis)
        return tuple(
            AxisScore(
                axis=axis,
                points=sum(fmean(credits) for credits in groups[key].values()),
                most=len(groups[key]),
                answered=key in answered,
            )
            for key, axis in rubric()[0].items()
            if key in groups
        )

    @property
    def absent_axes(self) -> list[Axis]:
        axes = [a.axis for a in self.axes]
        return [axis for axis in rubric()[0].values() if axis not in axes]

    @property
    def redo(self) -> list[tuple[Question, str]]:
        """Questions that earned least, worst first, with what to do again."""
        by_credit = sorted(self.session.walkthrough.questions, key=lambda q: self.credits[q.id])
        return [(q, _why(self.session, q)) for q in by_credit[:3] if self.credits[q.id] < 1.0]

    @property
    def points(self) -> float:
        return sum(a.points for a in self.axes)

    @property
    def most(self) -> float:
        return sum(a.most for a in self.axes)

    @property
    def level(self) -> Level:
        """Mid, senior or staff, by the share of the points on the axes that were asked."""
        return level_of(self.points, self.most)

    @property
    def full(self) -> bool:
        """Every question right at the first try, without hints."""
        return all(c == 1.0 for c in self.credits.values())

    @property
    def time(self) -> str:
        return f"{self.session.minutes():.0f} of {self.session.walkthrough.minutes:.0f} minutes"

    def __repr__(self) -> str:
        number = self.session.walkthrough.number
        lines = [
            f"Walkthrough {number}: {self.points:.1f} of {self.most:.0f} points, "
            f"{self.level.name} ({self.level.says}), {self.time}"
        ]
        for axis in self.axes:
            lines.append(f"  {axis.axis.name:28} {axis.points_text}   {axis.shows}")
        if self.redo:
            lines += ["Do again:", *(f"  {q.id}: {why}" for q, why in self.redo)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        session = self.session
        best = {name: session.last(name) for name in self.credits}
        if not any(best.values()):
            return question_pages.style() + question_pages.block(self._rubric())
        cards = map(
            self._open_card, session.walkthrough.questions if session.mode == "blank" else ()
        )
        questions = []
        for name, credit in self.credits.items():
            minute = f"{session.at[name]:.0f}" if name in session.at else ""
            questions.append((name, question_pages.mark(best[name]), f"{credit:.2f}", minute))
        axes = []
        for axis in self.axes:
            bar_em = f"{5 * axis.points / axis.most:.2f}"
            axes.append((axis.axis.name, axis.points_text, bar_em, axis.shows))
        headline = f"{self.points:.1f} of {self.most:.0f} points: {self.level.name}"
        body = question_pages.part("scorecard", headline, self, axes, questions, "".join(cards))
        return question_pages.style() + question_pages.block(body)

    def _open_card(self, q: Question) -> str:
        """A question of a blank with its verdict and the worked answer."""
        verdict = self.session.last(q.id) or grade(q, None)
        inside = question_pages.ask_part(q) + question_pages.verdict_part(verdict)
        return question_pages.part("card", inside + question_pages.answer_part(q))

    def _rubric(self) -> str:
        """What is looked for on every axis: for somebody who has not answered yet, or reads the
        page."""
        data = {
            "axes": [asdict(a.axis) for a in self.axes],
            "levels": list(map(asdict, rubric()[1])),
            "costs": COSTS,
        }
        return question_pages.part("rubric", question_pages.packed(data), list(LEVELS), self)


def _why(session: Any, q: Question) -> str:
    best = session.last(q.id)
    state = "not right yet" if best else UNANSWERED
    if best and best.right:
        state = (
            f"right, after {len(session.log[q.id])} tries and {session.spent.get(q.id, 0)} hints"
        )
    return f"{state}. {rubric()[0][q.axis].redo}"
