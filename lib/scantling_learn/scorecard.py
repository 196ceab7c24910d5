"""The scorecard: what the answers say by axis of the rubric, the level they amount to, and three
things to do again."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from markupsafe import Markup
from scantling.base.records import Lines, record

from . import show
from .grade import Verdict, grade
from .question import OPEN, Question
from .rubric import LEVELS, Axis, Level, level_of, rubric

# of a question's credit: a hint, a wrong try, what a late right answer keeps
HINT_COST, TRY_COST, LEAST = 0.15, 0.25, 0.25


@record
class AxisScore:
    """One axis that was asked: points earned and points there were to earn (one for senior
    questions, one more for staff ones)."""

    axis: Axis
    points: float
    most: float
    questions: Lines

    @property
    def shows(self) -> str:
        """What this score shows, in the rubric's words."""
        share = self.points / self.most if self.most else 0.0
        return getattr(self.axis, level_of(share, 1.0).name)


@dataclass(
    frozen=True,
    kw_only=True,
    repr=False,
)
class Scorecard:
    """Scores of one session. `redo`: questions that earned least, worst first, with what to do
    again."""

    title: str
    axes: tuple[AxisScore, ...]
    not_asked: tuple[Axis, ...]
    credits: dict[str, float]
    verdicts: dict[str, Verdict | None]
    redo: tuple[tuple[Question, str], ...]
    minutes: float
    given: float
    at: dict[str, float]
    blank: bool
    facts: object

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
        return f"{self.minutes:.0f} of {self.given:.0f} minutes"

    def _when(self, ident: str) -> str:
        return f"{self.at[ident]:.0f}" if ident in self.at else ""

    def __repr__(self) -> str:
        lines = [
            (
                f"{self.title}: {self.points:.1f} of {self.most:.0f} points, "
                f"{self.level.name} ({self.level.says}), {self.time}"
            )
        ]
        lines += [
            f"  {a.axis.name:28} {a.points:.1f} of {a.most:.0f}   {a.shows}" for a in self.axes
        ]
        if self.redo:
            lines += ["Do again:"] + [f"  {q.id}: {why}" for q, why in self.redo]
        return "\n".join(lines)

    def axis_rows(self):
        """(axis, points, a bar, what it shows) of each axis that was asked."""
        for a in self.axes:
            width = 5 * a.points / a.most
            bar = Markup(f'<span class="scl-bar" style="width:{width:.2f}em"></span>')
            yield a.axis.name, f"{a.points:.1f} of {a.most:.0f}", bar, a.shows

    def _repr_html_(self) -> str:
        if all(v is None or v.status == OPEN for v in self.verdicts.values()):
            return show.style() + show.block(self._rubric())
        title = f"{self.points:.1f} of {self.most:.0f} points: {self.level.name}"
        questions = [
            (
                Markup("<code>{}</code>").format(name),
                show.mark(self.verdicts[name]),
                f"{credit:.2f}",
                self._when(name),
            )
            for name, credit in self.credits.items()
        ]
        missing = ", ".join(a.name.lower() for a in self.not_asked)
        cards = "".join(self._open_card(v) for v in self.verdicts.values() if self.blank and v)
        body = show.parts().scorecard(
            self,
            title,
            questions,
            missing,
            cards,
        )
        return show.style() + show.block(body)

    def _open_card(self, v: Verdict) -> str:
        """A question of a blank with its verdict and the worked answer."""
        q = v.question
        inside = show.ask_part(q, self.facts) + show.verdict_part(v)
        return show.block(show.parts().card(inside + show.answer_part(q, self.facts)))

    def _rubric(self) -> str:
        """What is looked for on every axis: for somebody who has not answered yet, or reads the
        page."""
        named = [(a.axis, a.axis.name) for a in self.axes]
        named += [(axis, f"{axis.name} (not asked here)") for axis in self.not_asked]
        data = {
            "axes": [asdict(a.axis) for a in self.axes],
            "levels": [
                {
                    "name": level.name,
                    "from": level.at_least,
                    "says": level.says,
                }
                for level in rubric()[1]
            ],
            "costs": {
                "try": TRY_COST,
                "hint": HINT_COST,
                "least": LEAST,
            },
        }
        rows = [(name, *(getattr(axis, level) for level in LEVELS)) for axis, name in named]
        return str(show.parts().rubric(show.packed(data), list(LEVELS), rows))


def scorecard(session) -> Scorecard:
    """The scorecard of a session.

    A question earns its credit (1 for right at once, less after wrong tries and hints). An axis has
    one point for its mid and senior
    questions and one for its staff questions, each the mean credit of those questions. The level is
    the share of all points that were
    there to earn: from 7 of 18 senior, from 13 of 18 staff, the thresholds of nine axes with two
    points each.
    """
    w = session.walkthrough
    credits = {q.id: session.credit(q.id) for q in w.questions}
    axes, missing = [], []
    for axis in rubric()[0].values():
        asked = [q for q in w.questions if q.axis == axis.key]
        if not asked:
            missing.append(axis)
            continue
        groups = [
            [credits[q.id] for q in asked if (q.level == LEVELS[2]) == staff]
            for staff in (False, True)
        ]
        groups = [g for g in groups if g]
        axes.append(
            AxisScore(
                axis=axis,
                points=sum(sum(g) / len(g) for g in groups),
                most=len(groups),
                questions=tuple(q.id for q in asked),
            )
        )
    weak = sorted((q for q in w.questions if credits[q.id] < 1.0), key=lambda q: credits[q.id])[:3]
    redo = tuple((q, _why(session, q)) for q in weak)
    verdicts = {q.id: session.last(q.id) for q in w.questions}
    if session.mode == "blank":
        verdicts = {q.id: verdicts[q.id] or grade(q, None, session.facts) for q in w.questions}
    return Scorecard(
        title=f"Walkthrough {w.number}",
        axes=tuple(axes),
        not_asked=tuple(missing),
        credits=credits,
        verdicts=verdicts,
        redo=redo,
        minutes=session.minutes(),
        given=w.minutes,
        at=dict(session.at),
        blank=session.mode == "blank",
        facts=session.facts,
    )


def _why(session, q: Question) -> str:
    found = session.last(q.id)
    again = rubric()[0][q.axis].redo
    if found is None:
        return f"not answered. {again}"
    if found.right:
        return (
            f"right, after {len(session.log[q.id])} tries and {session.spent.get(q.id, 0)} "
            f"hints. {again}"
        )
    return f"not right yet. {again}"
