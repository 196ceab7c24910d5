"""The scorecard: what the answers say by axis of the rubric, the level they amount to, and three
things to do again."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from . import show
from .grade import OPEN, Verdict
from .question import Question
from .rubric import LEVELS, Axis, Level, level_of, rubric

HINT_COST, TRY_COST, LEAST = (
    0.15,
    0.25,
    0.25,
)  # of a question's credit: a hint, a wrong try, what a late right answer keeps


@dataclass(frozen=True)
class AxisScore:
    """One axis that was asked: points earned and points there were to earn (one for senior
    questions, one more for staff ones)."""

    axis: Axis
    points: float
    most: float
    questions: tuple[str, ...]

    @property
    def shows(self) -> str:
        """What this score shows, in the rubric's words."""
        share = self.points / self.most if self.most else 0.0
        return getattr(self.axis, level_of(share, 1.0).name)


@dataclass(frozen=True)
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
    def _time(self) -> str:
        return f"{self.minutes:.0f} of {self.given:.0f} minutes"

    def _when(self, ident: str) -> str:
        return f"{self.at[ident]:.0f}" if ident in self.at else ""

    def __repr__(self) -> str:
        lines = [
            (
                f"{self.title}: {self.points:.1f} of {self.most:.0f} points, "
                f"{self.level.name} ({self.level.says}), {self._time}"
            )
        ]
        lines += [
            f"  {a.axis.name:28} {a.points:.1f} of {a.most:.0f}   {a.shows}" for a in self.axes
        ]
        if self.redo:
            lines += ["Do again:"] + [f"  {q.id}: {why}" for q, why in self.redo]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if all(v is None or v.status == OPEN for v in self.verdicts.values()):
            return show.style() + show.block(self._rubric())
        e = show.escape
        rows = "".join(
            f'<tr><td class="t">{e(a.axis.name)}</td><td>{a.points:.1f} of {a.most:.0f}</td>'
            f'<td class="t"><span class="scl-bar" '
            f'style="width:{5 * a.points / a.most:.2f}em"></span></td><td '
            f'class="t">{e(a.shows)}</td></tr>'
            for a in self.axes
        )
        questions = "".join(
            (
                f"<tr><td "
                f'class="t"><code>{e(name)}</code></td><td>{show.mark(self.verdicts[name])}</td><td>{credit:.2f}</td><td>{self._when(name)}</td></tr>'
            )
            for name, credit in self.credits.items()
        )
        redo = "".join(f"<li><code>{e(q.id)}</code>: {e(why)}</li>" for q, why in self.redo)
        missing = ", ".join(a.name.lower() for a in self.not_asked)
        out = [
            (
                f"<p><strong>{self.points:.1f} of {self.most:.0f} points: "
                f"{self.level.name}</strong>, {e(self.level.says)}. {self._time}.</p>"
            ),
            (
                f'<table class="scl-table"><tr><th '
                f'class="t">axis</th><th>points</th><th></th><th class="t">what it '
                f"shows</th></tr>{rows}</table>"
            ),
            f"<p>Not asked here: {e(missing)}.</p>" if missing else "",
            f"<p><strong>Do again</strong></p><ul>{redo}</ul>"
            if redo
            else "<p><strong>Nothing to do again.</strong></p>",
            (
                f"<details><summary>Question by question</summary><div><table "
                f'class="scl-table"><tr><th '
                f'class="t">question</th><th></th><th>credit</th><th>at '
                f"minute</th></tr>{questions}</table></div></details>"
            ),
        ]
        if self.blank:
            out += [
                show.block(
                    f"<div "
                    f'class="scl-card">{show.ask_part(v.question, self.facts)}{show.verdict_part(v)}{show.answer_part(v.question, self.facts)}</div>'
                )
                for v in self.verdicts.values()
                if v is not None
            ]
        return show.style() + show.block("".join(out))

    def _rubric(self) -> str:
        """What is looked for on every axis: for somebody who has not answered yet, or reads the
        page."""
        e = show.escape
        named = [(a.axis, a.axis.name) for a in self.axes] + [
            (axis, f"{axis.name} (not asked here)") for axis in self.not_asked
        ]
        rows = "".join(
            f'<tr><td class="t">{e(name)}</td>'
            + "".join(f'<td class="t">{e(getattr(axis, level))}</td>' for level in LEVELS)
            + "</tr>"
            for axis, name in named
        )
        data = {
            "axes": [asdict(a.axis) for a in self.axes],
            "levels": [
                {"name": level.name, "from": level.at_least, "says": level.says}
                for level in rubric()[1]
            ],
            "costs": {"try": TRY_COST, "hint": HINT_COST, "least": LEAST},
        }
        return (
            f'<div class="scl-rubric" data-key="{show.packed(data)}"><p>Nothing is '
            f"answered yet. This is what each axis is judged by:</p><table "
            f'class="scl-table"><tr><th class="t">axis</th>'
            f'{"".join(f"""<th class="t">{level}</th>""" for level in LEVELS)}</tr>{rows}</table></div>'
        )


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
                axis, sum(sum(g) / len(g) for g in groups), len(groups), tuple(q.id for q in asked)
            )
        )
    weak = sorted((q for q in w.questions if credits[q.id] < 1.0), key=lambda q: credits[q.id])[:3]
    redo = tuple((q, _why(session, q)) for q in weak)
    verdicts = {q.id: session.last(q.id) for q in w.questions}
    if session.mode == "blank":
        verdicts = {
            q.id: verdicts[q.id] or Verdict(q, None, OPEN, "", facts=session.facts)
            for q in w.questions
        }
    return Scorecard(
        f"Walkthrough {w.number}",
        tuple(axes),
        tuple(missing),
        credits,
        verdicts,
        redo,
        session.minutes(),
        w.minutes,
        dict(session.at),
        session.mode == "blank",
        session.facts,
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
