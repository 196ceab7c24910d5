"""Walkthroughs in a notebook: the checks of `scantling_learn` with an input, a button and hints
where a live kernel is behind the page, and pictures.

Executed by papermill, or rendered, the same cells show the same questions folded and without
controls.
"""

from __future__ import annotations

import os

import ipywidgets as W
import scantling_learn as learn
from scantling_learn import beside, show
from scantling_learn.question import OPEN, Choice, Explain, Number, Plan
from scantling_learn.session import Card, Session

from .charts_learn import bars, lines
from .figures import Figure
from .report import pictures
from .report.pictures import Picture
from .servers import PAGE_SIGNS

__all__ = ["bars", "begin", "beside", "chart", "lines", "picture"]


def live() -> bool:
    """Whether this kernel serves a page with controls: a notebook opened in Jupyter, or Voilà; not
    papermill, nbconvert or a test."""
    notebook, server = (os.environ.get(sign, "") for sign in PAGE_SIGNS)
    return bool(notebook) or server.startswith("voila")


def begin(which: str, mode: str = "student", controls: bool | None = None) -> Session:
    """A session with a walkthrough; `controls`: with input and buttons, by default where the page
    is live."""
    wanted = live() if controls is None else controls
    return (LiveSession if wanted and mode != "instructor" else Session)(
        learn.walkthrough(which), mode
    )


def picture(figure: Figure, assessment, **more) -> Picture | None:
    """One of the kit's figures (`charts.memory`) of an assessment as a picture."""
    return pictures.draw(figure, assessment, **more)


def chart(drawn, words: str, caption: str = "") -> Picture:
    """Any Altair chart as a picture; `words` say what it shows to somebody who cannot see it."""
    spec = drawn.to_dict()
    spec.setdefault("width", pictures.WIDTH - 60)
    return Picture(spec, words, caption or words)


class LiveSession(Session):
    """A session whose checks carry controls, and whose scorecard follows the answers."""

    def check(self, ident: str, answer=..., mine=None) -> Card:
        card = super().check(ident, answer, mine)
        return LiveCard(self, card.question, card.verdict)

    def judge(self, q, answer, mine=None):
        verdict = super().judge(q, answer, mine)
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
        done = W.Button(
            description="Hand in",
            button_style="primary",
            tooltip="Show the scorecard, with every answer",
        )
        done.on_click(lambda _: self.session.follow(shown))
        return W.VBox([done, shown])


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
        ask = W.HTML(
            show.style()
            + show.block(
                f'<div class="scl-card">{show.ask_part(q, session.facts, options=False)}</div>'
            )
        )
        self.feedback = W.HTML(self._feedback(self.verdict))
        self.feedback.add_class("scl-feedback")
        self.mine = W.VBox([])
        go = W.Button(
            description="Note" if session.mode == "blank" else "Check",
            button_style="primary",
            tooltip="Check the answer",
            layout=W.Layout(width="90px"),
        )
        go.add_class("scl-check")
        go.on_click(self._check)
        if isinstance(q, Number | Plan):
            self.entry.observe(self._check, "value")  # Enter, or leaving the field
        controls, after = [self.entry, go], [self.feedback, self.mine]
        if session.mode != "blank":
            self.more = W.Button(
                description=self._hint_name(),
                tooltip="Show the next hint",
                layout=W.Layout(width="110px"),
            )
            self.more.on_click(self._hint)
            self.hints = W.HTML(self._hints())
            controls.append(self.more)
            after += [self.hints, W.HTML(show.block(show.answer_part(q, session.facts)))]
        flow = "row wrap" if isinstance(q, Number | Plan) else "column"
        return W.VBox(
            [
                ask,
                W.Box(
                    controls,
                    layout=W.Layout(
                        display="flex", align_items="flex-start", flex_flow=flow, grid_gap="6px"
                    ),
                ),
                *after,
            ]
        )

    # ------------------------------------------------------------ what the buttons do
    def _check(self, _=None):
        self.verdict = self.session.judge(self.question, self.read())
        self.feedback.value = self._feedback(self.verdict)
        if (
            isinstance(self.question, Explain)
            and self.session.mode != "blank"
            and self.verdict.status != OPEN
        ):
            self._offer_points()

    def _offer_points(self):
        """The points again as boxes: the words were a guess, the reader decides."""
        boxes = [
            W.Checkbox(
                value=hit,
                description=_plain(show.tell(p.says, self.session.facts)),
                indent=False,
                layout=W.Layout(width="100%"),
            )
            for p, hit in zip(self.question.points, self.verdict.hits)
        ]

        def count(_):
            mine = [i for i, box in enumerate(boxes, 1) if box.value]
            self.verdict = self.session.judge(self.question, self.read(), mine)
            self.feedback.value = self._feedback(self.verdict)

        for box in boxes:
            box.observe(count, "value")
        self.mine.children = [W.HTML(show.block("<p>Tick what you did say:</p>")), *boxes]

    def _hint(self, _=None):
        n = self.session.hints.get(self.question.id, 0)
        self.session.hints[self.question.id] = min(n + 1, len(self.question.hints))
        self.hints.value = self._hints()
        self.more.description = self._hint_name()
        self.more.disabled = n + 1 >= len(self.question.hints)

    # ------------------------------------------------------------ what they show
    def _hint_name(self) -> str:
        return (
            f"Hint "
            f"{min(self.session.hints.get(self.question.id, 0) + 1, len(self.question.hints))} "
            f"of {len(self.question.hints)}"
        )

    def _hints(self) -> str:
        q, n = self.question, self.session.hints.get(self.question.id, 0)
        return show.block(
            "".join(
                (
                    f"<p><em>Hint "
                    f"{i + 1}.</em></p>{show.markdown(show.tell(q.hints[i], self.session.facts))}"
                )
                for i in range(n)
            )
        )

    def _feedback(self, verdict) -> str:
        if verdict.status == OPEN:
            return ""
        if self.session.mode == "blank":
            return show.block('<div class="scl-verdict"><p>Noted.</p></div>')
        return show.block(show.verdict_part(verdict))


def _plain(text: str) -> str:
    """A text for a label: without the marks of markdown."""
    return text.replace("**", "").replace("`", "")


def _entry(q, session):
    """The input of a question, and a function that reads it."""
    if isinstance(q, Choice):
        texts = [f"{o.key}   {_plain(show.tell(o.text, session.facts))}" for o in q.options]
        if q.several:
            boxes = [
                W.Checkbox(
                    value=False, description=text, indent=False, layout=W.Layout(width="100%")
                )
                for text in texts
            ]
            return W.VBox(boxes, layout=W.Layout(width="100%")), lambda: [
                o.key for o, b in zip(q.options, boxes) if b.value
            ]
        entry = W.RadioButtons(
            options=[(text, o.key) for text, o in zip(texts, q.options)],
            value=None,
            layout=W.Layout(width="max-content"),
        )
        return entry, lambda: entry.value
    if isinstance(q, Explain):
        entry = W.Textarea(
            placeholder="Your answer, in a few sentences",
            rows=4,
            layout=W.Layout(width="min(100%, 620px)"),
        )
        return entry, lambda: entry.value
    entry = W.Text(
        placeholder=f"Your answer: {show.wanted(q)}",
        continuous_update=False,
        layout=W.Layout(width="320px"),
    )
    return entry, lambda: entry.value
