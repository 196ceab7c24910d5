"""Walkthroughs in a notebook: the checks of `scantling_learn` with an input, a button and hints
where a live kernel is behind the page, and pictures.

Executed by papermill, or rendered, the same cells show the same questions folded and without
controls.
"""

from __future__ import annotations

import os
from functools import partial

import ipywidgets as W
import scantling_learn as learn
from scantling_learn import compare, show
from scantling_learn.question import OPEN, Choice, Explain, Number, Plan
from scantling_learn.session import Card, Session

from .assessment_charts import Figure
from .charts_learn import bars, lines
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
    layout = W.Layout(**layout)
    made = W.Button(
        description=name,
        tooltip=tip,
        button_style=style,
        layout=layout,
    )
    made.on_click(lambda _: act())
    return made


def box(kind: type, cls: str, *children, **layout) -> W.Box:
    """A box of one of the kinds of ipywidgets."""
    return kind(children, layout=W.Layout(**layout))


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
    return (LiveSession if wanted and mode != "instructor" else Session)(
        learn.walkthrough(which), mode
    )


def picture(figure: Figure, assessment, **more) -> Picture | None:
    """One of the kit's figures (`charts.memory`) of an assessment as a picture."""
    return pictures.draw(
        figure,
        assessment,
        **more,
    )


def chart(
    drawn,
    words: str,
    caption: str = "",
) -> Picture:
    """Any Altair chart as a picture; `words` say what it shows to somebody who cannot see it."""
    spec = drawn.to_dict()
    spec.setdefault("width", pictures.WIDTH - 60)
    return Picture(
        spec,
        words,
        caption or words,
    )


class LiveSession(Session):
    """A session whose checks carry controls, and whose scorecard follows the answers."""

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
        return LiveCard(
            self,
            card.question,
            card.verdict,
        )

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
        for shown in self.__dict__.get("_cards", ()):
            shown.value = super().scorecard()._repr_html_()
        return verdict

    def scorecard(self):
        return _LiveScorecard(self)

    def follow(self, shown: W.HTML) -> None:
        """Keep a widget at the scorecard as it stands."""
        self.__dict__.setdefault("_cards", []).append(shown)
        shown.value = super().scorecard()._repr_html_()


class _LiveScorecard:
    """The scorecard as a widget: it follows the answers; in a blank it waits until they are handed
    in."""

    def __init__(self, session: LiveSession):
        self.session = session

    def _ipython_display_(self):
        from IPython.display import display

        display(self.box())

    def box(self) -> W.VBox:
        shown = W.HTML()
        if self.session.mode != "blank":
            self.session.follow(shown)
            return W.VBox([shown])
        tip, follow = "Show the scorecard, with every answer", partial(self.session.follow, shown)
        return W.VBox(
            [
                button(
                    "Hand in",
                    follow,
                    tip,
                    "primary",
                ),
                shown,
            ]
        )


class LiveCard(Card):
    """A question with its controls: what is typed is checked on Enter or the button; hints come one
    by one; the worked answer stays folded."""

    def _ipython_display_(self):
        from IPython.display import display

        display(self.box())

    def box(self) -> W.VBox:
        q, session = self.question, self.session
        self.entry, self.read = _entry(q, session)
        self.entry.add_class("scl-entry")
        asked = show.ask_part(
            q,
            session.facts,
            options=False,
        )
        ask = W.HTML(show.style() + show.block(f'<div class="scl-card">{asked}</div>'))
        self.feedback = W.HTML(self._feedback(self.verdict))
        self.feedback.add_class("scl-feedback")
        self.mine = W.VBox([])
        name = "Note" if session.mode == "blank" else "Check"
        go = button(
            name,
            self._check,
            "Check the answer",
            "primary",
            width="90px",
        )
        go.add_class("scl-check")
        if isinstance(q, Number | Plan):
            self.entry.observe(self._check, "value")  # Enter, or leaving the field
        controls, after = [self.entry, go], [self.feedback, self.mine]
        if session.mode != "blank":
            self.more = button(
                self._hint_name(),
                self._hint,
                "Show the next hint",
                width="110px",
            )
            self.hints = W.HTML(self._hints())
            controls.append(self.more)
            self.answer = W.HTML("")  # after a try or a hint
            after += [self.hints, self.answer]
        flow = "row wrap" if isinstance(q, Number | Plan) else "column"
        return W.VBox(
            [
                ask,
                box(
                    W.Box,
                    "",
                    *controls,
                    display="flex",
                    align_items="flex-start",
                    flex_flow=flow,
                    grid_gap="6px",
                ),
                *after,
            ]
        )

    # ------------------------------------------------------------ what the buttons do
    def _check(self, _=None):
        self.verdict = self.session.judge(self.question, self.read())
        self.feedback.value = self._feedback(self.verdict)
        if self.verdict.status != OPEN:
            self._give_answer()
        if (
            isinstance(self.question, Explain)
            and self.session.mode != "blank"
            and self.verdict.status != OPEN
        ):
            self._offer_points()

    def _offer_points(self):
        """The points again as boxes: the words were a guess, the reader decides."""
        boxes = [
            _tick(_plain(show.fill_text(p.says, self.session.facts)), hit)
            for p, hit in zip(self.question.points, self.verdict.hits)
        ]

        def count(_):
            mine = [i for i, box in enumerate(boxes, 1) if box.value]
            self.verdict = self.session.judge(
                self.question,
                self.read(),
                mine,
            )
            self.feedback.value = self._feedback(self.verdict)

        for tick in boxes:
            tick.observe(count, "value")
        self.mine.children = [W.HTML(show.block("<p>Tick what you did say:</p>")), *boxes]

    def _give_answer(self) -> None:
        if self.session.mode != "blank":
            self.answer.value = show.block(show.answer_part(self.question, self.session.facts))

    @property
    def _shown(self) -> int:
        """Hints of the question that are on the page."""
        return self.session.hints.get(self.question.id, 0)

    def _hint(self, _=None):
        there = len(self.question.hints)
        self.session.hints[self.question.id] = min(self._shown + 1, there)
        self.hints.value, self.more.description = self._hints(), self._hint_name()
        self.more.disabled = self._shown >= there
        self._give_answer()

    # ------------------------------------------------------------ what they show
    def _hint_name(self) -> str:
        there = len(self.question.hints)
        return f"Hint {min(self._shown + 1, there)} of {there}"

    def _hints(self) -> str:
        hints = (
            show.fill_text(hint, self.session.facts) for hint in self.question.hints[: self._shown]
        )
        shown = (f"<p><em>Hint {i}.</em></p>{show.markdown(h)}" for i, h in enumerate(hints, 1))
        return show.block("".join(shown))

    def _feedback(self, verdict) -> str:
        if self.session.mode == "blank" and verdict.status != OPEN:
            return show.block('<div class="scl-verdict"><p>Noted.</p></div>')
        return show.block(show.verdict_part(verdict))


def _plain(text: str) -> str:
    """A text for a label: without the marks of markdown."""
    return text.replace("**", "").replace("`", "")


def _entry(q, session):
    """The input of a question, and a function that reads it."""
    place = W.Layout
    if isinstance(q, Choice):
        texts = [f"{o.key}   {_plain(show.fill_text(o.text, session.facts))}" for o in q.options]
        keys = [o.key for o in q.options]
        if q.several:
            boxes = [*map(_tick, texts)]
            return box(
                W.VBox,
                "",
                *boxes,
                width="100%",
            ), lambda: [key for key, tick in zip(keys, boxes) if tick.value]
        entry = W.RadioButtons(
            options=list(zip(texts, keys)),
            value=None,
            layout=place(width="max-content"),
        )
    elif isinstance(q, Explain):
        said, room = "Your answer, in a few sentences", place(width="min(100%, 620px)")
        entry = W.Textarea(
            placeholder=said,
            rows=4,
            layout=room,
        )
    else:
        said, room = f"Your answer: {show.wanted(q)}", place(width="320px")
        entry = W.Text(
            placeholder=said,
            continuous_update=False,
            layout=room,
        )
    return entry, lambda: entry.value


def _tick(text: str, value: bool = False) -> W.Checkbox:
    """A box to tick before a text."""
    return W.Checkbox(
        value=value,
        description=text,
        indent=False,
        layout=W.Layout(width="100%"),
    )
