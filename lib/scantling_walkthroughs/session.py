"""A session with one walkthrough: asks, checks, keeps the log, folds what is worked, and ends in a
scorecard.

Modes: `student` (hints and answers folded), `instructor` (right answers put in, everything open),
`blank` (timed practice: answers are noted and nothing is said before the scorecard).
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from html import escape
from time import monotonic
from typing import Any

from scantling.base.displayed import Html, markdown

from . import question_pages
from .grade import Verdict, grade, unanswered
from .question import OPEN, Question, Walkthrough
from .right_answers import right_answer
from .scorecard import COSTS, Scorecard

MODES = ("student", "instructor", "blank")


@dataclass(eq=False)
class Card:
    """What a check shows: the question, the verdict, hints and the worked answer folded."""

    session: "Session"
    question: Question
    verdict: Verdict

    @property
    def right(self) -> bool:
        return self.verdict.right

    def __repr__(self) -> str:
        s = self.session
        q = self.question
        v = self.verdict
        lines = [question_pages.ask_text(q)]
        if s.mode == "blank":
            lines += [f"Noted: {v.answer}"] if v.status != OPEN else []
        elif v.status == OPEN:
            lines.append(
                f"[{question_pages.wanted(q)}] hint({q.id!r}) gives hints one by one, "
                f"answer({q.id!r}) the worked answer"
            )
        else:
            lines += [str(v), *([question_pages.answer_text(q)] if s.mode == "instructor" else ())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        s = self.session
        return question_pages.card(
            self.question, self.verdict, s.mode, s.hints.get(self.question.id, 0)
        )


def _paragraph(text: str) -> Html:
    """A paragraph of markdown."""
    return Html(html=question_pages.block(markdown(text)), words=text)


def _html_of(part: Any) -> str:
    """A picture, a table or anything that shows itself."""
    if hasattr(part, "figure"):
        return str(part.figure())
    if hasattr(part, "_repr_html_"):
        return str(part._repr_html_())
    return f"<pre>{escape(repr(part))}</pre>"


@dataclass
class Session:
    """One reader's way through one walkthrough. `facts` are the computed numbers that questions and
    texts use."""

    walkthrough: Walkthrough[Any]
    mode: str = "student"
    facts: Any = None
    log: dict[str, list[Verdict]] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)  # hints taken before a question was right
    # minutes from the start to the last answer of a question
    at: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=monotonic)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is {self.mode!r}, not one of {', '.join(MODES)}")
        if self.facts is None:
            self.facts = self.walkthrough.facts

    def __repr__(self) -> str:
        w = self.walkthrough
        return (
            f"Walkthrough {w.number}, {w.title}: {len(w.asks)} questions, {w.minutes} minutes, "
            f"{self.mode}"
        )

    def _repr_html_(self) -> str:
        w = self.walkthrough
        return question_pages.style() + question_pages.block(
            f"<p>{len(w.asks)} questions · {w.minutes} minutes · {self.mode}</p>"
        )

    # ------------------------------------------------------------ what a notebook calls
    def check(self, ident: str, answer: Any = ..., mine: Collection[int] | None = None) -> Card:
        """Ask a question, and judge the answer where there is one; `...` means none yet (an
        instructor's session puts the right one in)."""
        q = self.walkthrough.question(ident)
        if self.mode == "instructor" and unanswered(answer):
            answer = right_answer(q)
        return Card(self, q, self.judge(q, answer, mine))

    def judge(self, q: Question, answer: Any, mine: Collection[int] | None = None) -> Verdict:
        """The verdict, kept in the log unless nothing was answered or the same answer was the last
        one."""
        verdict = grade(q, answer, mine)
        if verdict.status not in (OPEN, "unreadable"):
            tries = self.log.setdefault(q.id, [])
            self.at[q.id] = self.minutes()
            answers = [(repr(v.answer), v.hits) for v in (*tries[-1:], verdict)]
            if answers[0] != answers[-1] or not tries:
                tries.append(verdict)
            if verdict.right:
                self.spent.setdefault(q.id, self.hints.get(q.id, 0))
        return verdict

    def hint(self, ident: str) -> Html:
        """The next hint of a question."""
        q = self.walkthrough.question(ident)
        n = self.hints[ident] = min(self.hints.get(ident, 0) + 1, len(q.hints))
        return _paragraph(f"Hint {n} of {len(q.hints)}: {q.hints[n - 1]}")

    def answer(self, ident: str) -> Html:
        """The worked answer of a question."""
        q = self.walkthrough.question(ident)
        self.hints[ident] = len(q.hints)
        return _paragraph(question_pages.answer_text(q))

    def work(self, ident: str, *parts: Any) -> Html | None:
        """What belongs behind the fold of a question: texts, pictures, tables, in their order; its
        takeaway at the end. Open for an instructor and once the answer was right; nothing in a
        blank."""
        if self.mode == "blank":
            return None
        q = self.walkthrough.question(ident)
        html = []
        text = []
        for part in parts:
            if isinstance(part, str):
                text.append(part)
                html.append(markdown(part))
            elif part is not None:
                text.append(repr(part))
                html.append(_html_of(part))
        if q.takeaway:
            take = markdown(q.takeaway)
            html.append(f'<div class="scl-take"><p><strong>Takeaway</strong></p>{take}</div>')
            text.append(f"Takeaway: {q.takeaway}")
        opened = self.mode == "instructor" or any(v.right for v in self.log.get(ident, ()))
        fold = question_pages.part("fold", "Work it", "".join(html), "scl-work", opened)
        words = "\n".join(["Work it", *text]) if opened else "Work it: folded"
        return Html(html=question_pages.block(fold), words=words)

    def scorecard(self) -> Scorecard:
        """Points by axis of the rubric, the level they amount to, and what to do again."""
        return Scorecard(self)

    # ------------------------------------------------------------ inside
    def last(self, ident: str) -> Verdict | None:
        """The best verdict so far, the latest of equals; None where nothing was answered."""
        tries = reversed(self.log.get(ident, []))
        return max(tries, key=lambda verdict: verdict.credit, default=None)

    def credit(self, ident: str) -> float:
        """What a question earned: the best answer, less for each try before it and each hint."""
        credits = [v.credit for v in self.log.get(ident, ())]
        best = max(credits, default=0.0)
        if not best:
            return 0.0
        hints = self.spent.get(ident, self.hints.get(ident, 0))
        lost = COSTS["try"] * credits.index(best) + COSTS["hint"] * hints
        return max(best * COSTS["least"], best - lost)

    def minutes(self) -> float:
        """Minutes since the session began."""
        return (monotonic() - self.started) / 60
