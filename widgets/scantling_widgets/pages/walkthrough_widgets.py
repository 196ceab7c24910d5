"""Walkthroughs in a notebook: the checks of `scantling_walkthroughs` with an input, a button and
hints where a live kernel is behind the page, and pictures.

Executed by papermill, or rendered, the same cells show the same questions folded and without
controls.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import environ
from typing import Any

import anywidget
import ipywidgets as W
import scantling_walkthroughs as learn
from IPython.display import display
from scantling import Assessment
from scantling_walkthroughs import compare, question_pages
from scantling_walkthroughs.grade import Verdict, grade
from scantling_walkthroughs.question import Question
from scantling_walkthroughs.session import Card, Session
from traitlets import Dict, Unicode

from .. import shipped_files
from ..charts import memory_step, pictures
from ..charts.altair_loader import alt
from ..charts.curves import bars, lines
from ..charts.pictures import Picture
from .servers import PAGE_SIGNS

__all__ = ["bars", "begin", "compare", "chart", "lines", "picture", "steps"]


def live() -> bool:
    """Whether this kernel serves a page with controls: a notebook opened in Jupyter, or Voilà; not
    papermill, nbconvert or a test."""
    notebook, server = (environ.get(sign, "") for sign in PAGE_SIGNS)
    return bool(notebook) or server.startswith("voila")


def begin(which: str, mode: str = "student", controls: bool | None = None) -> Session:
    """A session with a walkthrough; `controls`: with input and buttons, by default where the page
    is live."""
    wanted = live() if controls is None else controls
    kind = LiveSession if wanted and mode != "instructor" else Session
    return kind(learn.walkthrough(which), mode)


picture = pictures.draw  # one of the kit's figures (`charts.memory`) of an assessment


def steps(*results: Assessment) -> list[Picture]:
    """The steps of several designs in time, on one scale."""
    until = max(
        float(at)
        for result in results
        for name, column in (("solid", "end"), ("pale", "end"), ("band", "high"))
        for at in memory_step.step.data(result)[name].get(column, ())
    )
    drawn = (picture(memory_step.step, result, until=until) for result in results)
    return [one for one in drawn if one is not None]


def chart(drawn: alt.TopLevelMixin, words: str) -> Picture:
    """Any Altair chart as a picture; `words` say what it shows to somebody who cannot see it."""
    spec = {"width": pictures.WIDTH - 60, **drawn.to_dict()}
    return Picture(spec, words, words)


class LiveSession(Session):
    """A session whose checks carry controls, and whose scorecard follows the answers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.followers: list[W.HTML] = []

    def check(self, ident: str, answer: Any = ..., mine: Any = None) -> Card:
        """A question, with its controls."""
        card = super().check(ident, answer, mine)
        return LiveCard(card.session, card.question, card.verdict)

    def judge(self, q: Question, answer: Any, mine: Any = None) -> Verdict:
        """The verdict; whoever shows the scorecard is told."""
        verdict = super().judge(q, answer, mine)
        for shown in self.followers:
            self.follow(shown)
        return verdict

    def scorecard(self) -> Any:
        """The scorecard as a widget: it follows the answers; in a blank it waits until they are
        handed in."""
        shown = W.HTML()

        def show(*_: Any) -> None:
            self.followers.append(shown)
            self.follow(shown)

        if self.mode != "blank":
            show()
            return W.VBox([shown])
        done = W.Button(
            description="Hand in",
            tooltip="Show the scorecard, with every answer",
            button_style="primary",
        )
        done.on_click(show)
        return W.VBox([done, shown])

    def follow(self, shown: W.HTML) -> None:
        """Put the scorecard as it stands into a widget."""
        shown.value = super().scorecard()._repr_html_()


class Front(anywidget.AnyWidget):
    """A card with the controls that a rendered page has; the kernel judges.

    html   the card; `key`: what its controls hang on
    given  what the reader did last: {serial, answer, mine, hints}
    said   what stands below the controls
    """

    _esm = shipped_files.scripts("controls", "live")
    html = Unicode().tag(sync=True)
    said = Unicode().tag(sync=True)
    key = Dict().tag(sync=True)
    given = Dict().tag(sync=True)


class LiveCard(Card):
    """A question with its controls: what is typed is checked on Enter or the button; hints are
    opened one by one; the worked answer waits for a try or a hint."""

    def _ipython_display_(self) -> None:
        display(self.front())

    def front(self) -> Front:
        q, s = self.question, self.session
        card = question_pages.card(q, grade(q, ...), s.mode, s.hints.get(q.id, 0))
        front = Front(
            html=question_pages.style() + card,
            key=question_pages.controls(q) | {"act": "Note" if s.mode == "blank" else "Check"},
            said=question_pages.block(question_pages.reply_part(self.verdict, s.mode)),
        )
        front.observe(lambda _: self._hear(front, front.given), "given")
        return front

    def _hear(self, front: Front, given: Mapping[str, Any]) -> None:
        """Keep the hints that were taken, or judge an answer and say what became of it."""
        q, s = self.question, self.session
        s.hints[q.id] = max(given.get("hints", 0), s.hints.get(q.id, 0))
        if "answer" in given:
            self.verdict = s.judge(q, given["answer"], given.get("mine"))
            front.said = question_pages.block(question_pages.reply_part(self.verdict, s.mode))
