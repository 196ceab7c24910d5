"""Walkthroughs in a notebook: the checks of `scantling_learn` with an input, a button and hints
where a live kernel is behind the page, and pictures.

Executed by papermill, or rendered, the same cells show the same questions folded and without
controls.
"""

from __future__ import annotations

import os
import re

import ipywidgets as W
import scantling_learn as learn
from scantling_learn import compare, show
from scantling_learn.question import OPEN, Choice, Explain, Number, Plan
from scantling_learn.session import Card, Session

from .curves import bars, lines
from .report import pictures
from .report.pictures import Picture
from .servers import PAGE_SIGNS

__all__ = [
    "bars",
    "begin",
    "compare",
    "chart",
    "lines",
    "picture",
]


def button(name: str, act, tip: str, style: str = "", **layout) -> W.Button:
    """A button that calls `act` without an argument."""
    made = W.Button(
        description=name,
        tooltip=tip,
        button_style=style,
        layout=layout,
    )
    made.on_click(lambda _: act())
    return made


def live() -> bool:
    """Whether this kernel serves a page with controls: a notebook opened in Jupyter, or Voilà; not
    papermill, nbconvert or a test."""
    notebook, server = (os.environ.get(sign, "") for sign in PAGE_SIGNS)
    return bool(notebook) or server.startswith("voila")


def begin(
    which: str,
    mode: str = "student",
    controls: bool | None = None,
) -> Session:
    """A session with a walkthrough; `controls`: with input and buttons, by default where the page
    is live."""
    wanted = live() if controls is None else controls
    kind = LiveSession if wanted and mode != "instructor" else Session
    return kind(learn.walkthrough(which), mode)


picture = pictures.draw  # one of the kit's figures (`charts.memory`) of an assessment


def chart(
    drawn,
    words: str,
    caption: str = "",
) -> Picture:
    """Any Altair chart as a picture; `words` say what it shows to somebody who cannot see it."""
    spec = {
        "width": pictures.WIDTH - 60,
        **drawn.to_dict(),
    }
    return Picture(
        spec,
        words,
        caption or words,
    )


class Shown:
    """Something made of widgets, by `box`."""

    def _ipython_display_(self):
        from IPython.display import display

        display(self.box())


class LiveSession(Session):
    """A session whose checks carry controls, and whose scorecard follows the answers."""

    def __post_init__(self):
        super().__post_init__()
        self.followers = []

    def check(
        self,
        ident: str,
        answer=...,
        mine=None,
    ) -> Card:
        card = super().check(
            ident,
            answer,
            mine,
        )
        return LiveCard(**vars(card))

    def judge(
        self,
        q,
        answer,
        mine=None,
    ):
        verdict = super().judge(
            q,
            answer,
            mine,
        )
        for shown in self.followers:
            self.follow(shown)
        return verdict

    def scorecard(self):
        return LiveScorecard(self)

    def follow(self, shown: W.HTML) -> None:
        """Put the scorecard as it stands into a widget."""
        shown.value = super().scorecard()._repr_html_()


class LiveScorecard(Shown):
    """The scorecard as a widget: it follows the answers; in a blank it waits until they are handed
    in."""

    def __init__(self, session: LiveSession):
        self.session = session

    def box(self) -> W.VBox:
        self.shown = W.HTML()
        if self.session.mode != "blank":
            self._follow()
            return W.VBox([self.shown])
        done = button(
            "Hand in",
            self._follow,
            "Show the scorecard, with every answer",
            "primary",
        )
        return W.VBox([done, self.shown])

    def _follow(self) -> None:
        self.session.followers.append(self.shown)
        self.session.follow(self.shown)


class LiveCard(Shown, Card):
    """A question with its controls: what is typed is checked on Enter or the button; hints come one
    by one; the worked answer stays folded."""

    def box(self) -> W.VBox:
        q, session = self.question, self.session
        self.open = session.mode != "blank"
        self.entry, self.read = _entry(q, session.facts)
        self.entry.add_class("scl-entry")
        asked = show.ask_part(
            q,
            session.facts,
            options=False,
        )
        self.feedback = W.HTML()
        self.feedback.add_class("scl-feedback")
        self.mine = W.VBox([])
        go = button(
            "Check" if self.open else "Note",
            self._check,
            "Check the answer",
            "primary",
            width="90px",
        )
        go.add_class("scl-check")
        line = isinstance(q, Number | Plan)
        if line:
            self.entry.observe(self._check, "value")  # Enter, or leaving the field
        controls, after = [self.entry, go], [self.feedback, self.mine]
        if self.open:
            self.more = button(
                "",
                self._hint,
                "Show the next hint",
                width="110px",
            )
            self.hints, self.answer = W.HTML(), W.HTML()  # the answer after a try or a hint
            controls.append(self.more)
            after += [self.hints, self.answer]
            self._show_hints()
        self._show_verdict()
        row = W.Box(
            controls,
            layout={
                "display": "flex",
                "align_items": "flex-start",
                "flex_flow": "row wrap" if line else "column",
                "grid_gap": "6px",
            },
        )
        return W.VBox([W.HTML(show.style() + show.part("card", asked)), row, *after])

    # ------------------------------------------------------------ what the buttons do
    def _check(self, _=None):
        self._judge()
        if self.open and self.verdict.status != OPEN:
            self._give_answer()
            if isinstance(self.question, Explain):
                self._offer_points()

    def _judge(self, mine=None) -> None:
        self.verdict = self.session.judge(
            self.question,
            self.read(),
            mine,
        )
        self._show_verdict()

    def _offer_points(self):
        """The points again as boxes: the words were a guess, the reader decides."""
        pairs = zip(self.question.points, self.verdict.hits)
        boxes = [
            _tick(
                p.says,
                self.session.facts,
                hit,
            )
            for p, hit in pairs
        ]
        for tick in boxes:
            tick.observe(
                lambda _: self._judge([i for i, box in enumerate(boxes, 1) if box.value]), "value"
            )
        self.mine.children = [W.HTML(show.block("<p>Tick what you did say:</p>")), *boxes]

    def _give_answer(self) -> None:
        self.answer.value = show.block(show.answer_part(self.question, self.session.facts))

    def _hint(self):
        self.session.hint(self.question.id)
        self._show_hints()
        self._give_answer()

    # ------------------------------------------------------------ what they show
    def _show_hints(self) -> None:
        """The hints that were taken, and how the button calls the next."""
        q, facts = self.question, self.session.facts
        taken, there = self.session.hints.get(q.id, 0), len(q.hints)
        texts = (
            f"<p><em>Hint {i}.</em></p>{show.told(hint, facts)}"
            for i, hint in enumerate(q.hints[:taken], 1)
        )
        self.hints.value = show.block("".join(texts))
        self.more.description = f"Hint {min(taken + 1, there)} of {there}"
        self.more.disabled = taken >= there

    def _show_verdict(self) -> None:
        part = show.verdict_part(self.verdict)
        if not self.open and self.verdict.status != OPEN:
            part = '<div class="scl-verdict"><p>Noted.</p></div>'
        self.feedback.value = show.block(part)


def _plain(text: str, facts) -> str:
    """A text for a label: without the marks of markdown."""
    return re.sub(
        r"\*\*|`",
        "",
        show.fill_text(text, facts),
    )


def _entry(q, facts):
    """The input of a question, and a function that reads it."""
    if isinstance(q, Choice) and q.several:
        boxes = {o.key: _tick(f"{o.key}   {o.text}", facts) for o in q.options}
        rows = W.VBox([*boxes.values()], layout={"width": "100%"})
        return rows, lambda: [key for key, tick in boxes.items() if tick.value]
    if isinstance(q, Choice):
        entry = W.RadioButtons(
            options=[(f"{o.key}   {_plain(o.text, facts)}", o.key) for o in q.options],
            value=None,
            layout={"width": "max-content"},
        )
    elif isinstance(q, Explain):
        entry = W.Textarea(
            placeholder="Your answer, in a few sentences",
            rows=4,
            layout={"width": "min(100%, 620px)"},
        )
    else:
        entry = W.Text(
            placeholder=f"Your answer: {show.wanted(q)}",
            continuous_update=False,
            layout={"width": "320px"},
        )
    return entry, lambda: entry.value


def _tick(
    text: str,
    facts,
    value: bool = False,
) -> W.Checkbox:
    """A box to tick before a text."""
    return W.Checkbox(
        value=value,
        description=_plain(text, facts),
        indent=False,
        layout={"width": "100%"},
    )
