"""A session with one walkthrough: asks, checks, keeps the log, folds what is worked, and ends in a
scorecard.

Modes: `student` (hints and answers folded), `instructor` (right answers put in, everything open),
`blank` (timed practice: answers are noted
and nothing is said before the scorecard).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from . import show
from .answers import right_answer
from .grade import Verdict, grade, unanswered
from .question import OPEN, Question, Walkthrough
from .scorecard import HINT_COST, LEAST, TRY_COST, scorecard
from .texts import fill_text

MODES = ("student", "instructor", "blank")


@dataclass(eq=False)
class Card:
    """What a check shows: the question, the verdict, hints and the worked answer folded."""

    session: Session
    question: Question
    verdict: Verdict

    @property
    def right(self) -> bool:
        return self.verdict.right

    def __repr__(self) -> str:
        s, q = self.session, self.question
        if s.mode == "blank":
            return show.ask_text(q, s.facts) + (
                "" if self.verdict.status == OPEN else f"\nNoted: {self.verdict.answer}"
            )
        if self.verdict.status == OPEN:
            return (
                f"{show.ask_text(q, s.facts)}\n[{show.wanted(q)}] hint({q.id!r}) gives hints "
                f"one by one, answer({q.id!r}) the worked answer"
            )
        text = f"{show.ask_text(q, s.facts)}\n{self.verdict}"
        return f"{text}\n{show.answer_text(q, s.facts)}" if s.mode == "instructor" else text

    def _repr_html_(self) -> str:
        s = self.session
        return show.card(
            self.question,
            s.facts,
            self.verdict,
            s.mode,
            s.hints.get(self.question.id, 0),
        )


@dataclass(eq=False)
class Folded:
    """Something behind a fold: the work on a question, open for an instructor and once the answer
    was right."""

    title: str
    html: str
    text: str
    opened: bool

    def __repr__(self) -> str:
        return f"{self.title}\n{self.text}" if self.opened else f"{self.title}: folded"

    def _repr_html_(self) -> str:
        return show.block(
            show.parts().fold(
                self.title,
                self.html,
                "scl-work",
                self.opened,
            )
        )


@dataclass(eq=False)
class Said:
    """A paragraph with computed numbers."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return show.block(show.markdown(self.text))


@dataclass
class Session:
    """One reader's way through one walkthrough. `facts` are the computed numbers that questions and
    texts use."""

    walkthrough: Walkthrough
    mode: str = "student"
    facts: Any = None
    log: dict[str, list[Verdict]] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)  # hints taken before a question was right
    at: dict[str, float] = field(
        default_factory=dict
    )  # minutes from the start to the last answer of a question
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self):
        if self.mode not in MODES:
            raise ValueError(f"mode is {self.mode!r}, not one of {', '.join(MODES)}")
        if self.facts is None:
            self.facts = self.walkthrough.facts()

    def __repr__(self) -> str:
        w = self.walkthrough
        return (
            f"Walkthrough {w.number}, {w.title}: {len(w.questions)} questions, {w.minutes} "
            f"minutes, {self.mode}"
        )

    def _repr_html_(self) -> str:
        w = self.walkthrough
        return show.style() + show.block(
            f"<p>{len(w.questions)} questions · {w.minutes} minutes · {self.mode}</p>"
        )

    # ------------------------------------------------------------ what a notebook calls
    def check(
        self,
        ident: str,
        answer=...,
        mine=None,
    ) -> Card:
        """Ask a question, and judge the answer where there is one; `...` means none yet (an
        instructor's session puts the right one in)."""
        q = self.walkthrough.question(ident)
        if self.mode == "instructor" and unanswered(answer):
            answer = right_answer(q, self.facts)
        return Card(self, q, self.judge(q, answer, mine))

    def judge(
        self,
        q: Question,
        answer,
        mine=None,
    ) -> Verdict:
        """The verdict, kept in the log unless nothing was answered or the same answer was the last
        one."""
        verdict = grade(
            q,
            answer,
            self.facts,
            mine,
        )
        if verdict.status not in (OPEN, "unreadable"):
            tries = self.log.setdefault(q.id, [])
            self.at[q.id] = self.minutes()
            if not tries or (repr(tries[-1].answer), tries[-1].hits) != (
                repr(verdict.answer),
                verdict.hits,
            ):
                tries.append(verdict)
            if verdict.right:
                self.spent.setdefault(q.id, self.hints.get(q.id, 0))
        return verdict

    def hint(self, ident: str) -> Said:
        """The next hint of a question."""
        q = self.walkthrough.question(ident)
        n = self.hints[ident] = min(self.hints.get(ident, 0) + 1, len(q.hints))
        return Said(f"Hint {n} of {len(q.hints)}: {fill_text(q.hints[n - 1], self.facts)}")

    def answer(self, ident: str) -> Said:
        """The worked answer of a question."""
        q = self.walkthrough.question(ident)
        self.hints[ident] = len(q.hints)
        return Said(show.answer_text(q, self.facts))

    def say(self, text: str, **more) -> Said:
        """A paragraph of markdown with {placeholders} filled from the facts."""
        return Said(fill_text(text, self.facts, **more))

    def work(
        self,
        ident: str,
        *parts,
        title: str = "Work it",
    ) -> Folded | None:
        """What belongs behind the fold of a question: texts, pictures, tables, in their order; its
        takeaway at the end. Nothing in a blank."""
        if self.mode == "blank":
            return None
        q = self.walkthrough.question(ident)
        html, text = [], []
        for part in filter(lambda p: p is not None, parts):
            html.append(self._html_of(part))
            text.append(fill_text(part, self.facts) if isinstance(part, str) else repr(part))
        if q.takeaway:
            take = fill_text(q.takeaway, self.facts)
            html.append(
                f'<div class="scl-take"><p><strong>Takeaway</strong></p>{show.markdown(take)}</div>'
            )
            text.append(f"Takeaway: {take}")
        tries = self.log.get(ident, ())
        return Folded(
            title,
            "".join(html),
            "\n".join(text),
            self.mode == "instructor" or any(v.right for v in tries),
        )

    def scorecard(self):
        """Points by axis of the rubric, the level they amount to, and what to do again."""
        return scorecard(self)

    # ------------------------------------------------------------ inside
    def _html_of(self, part) -> str:
        if isinstance(part, str):
            return show.markdown(fill_text(part, self.facts))
        if hasattr(part, "figure"):
            return part.figure()
        if hasattr(part, "_repr_html_"):
            return part._repr_html_()
        return f"<pre>{show.escape(repr(part))}</pre>"

    def last(self, ident: str) -> Verdict | None:
        """The best verdict so far, the latest of equals; None where nothing was answered."""
        tries = self.log.get(ident)
        return max(reversed(tries), key=lambda v: v.credit) if tries else None

    def credit(self, ident: str) -> float:
        """What a question earned: the best answer, less for each try before it and each hint."""
        tries = self.log.get(ident)
        if not tries:
            return 0.0
        best = max(v.credit for v in tries)
        before = next(i for i, v in enumerate(tries) if v.credit == best)
        lost = TRY_COST * before + HINT_COST * self.spent.get(ident, self.hints.get(ident, 0))
        return max(best * LEAST, best - lost) if best else 0.0

    def minutes(self) -> float:
        """Minutes since the session began."""
        return (time.monotonic() - self.started) / 60
