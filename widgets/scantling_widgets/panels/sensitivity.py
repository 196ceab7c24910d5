"""What the result hangs on: each input a step down and a step up, the largest swing first."""
from __future__ import annotations

import ipywidgets as W

from .. import studies, theme
from ..background import Job
from ..charts_plans import tornado
from ..words import label
from .base import Panel


class Sensitivity(Panel):
    title = "Sensitivity"

    def build(self):
        self.rows: list[dict] = []
        self.of = self.key = None
        self.what = W.Dropdown(options=[(label(key), key) for key in tornado], description="What moves", style={"description_width": "80px"}, layout=W.Layout(width="240px"))
        self.what.observe(lambda _: self._show(), "value")
        self.job = Job("Vary the inputs", self._start, self._step, self._end)
        self.note = theme.text()
        self.chart = tornado[self.what.value].live()
        return [W.HBox([self.what, self.job], layout=W.Layout(grid_gap="12px")), self.note, theme.card("Each input a step down and up", self.chart)]

    def draw(self):
        self._show()

    def _start(self):
        self.of, self.key, self.rows = self.session.now, self.what.value, []
        return studies.vary(self.of.result, self.key)

    def _step(self, rows) -> None:
        self.rows = sorted([*self.rows, *rows], key=lambda row: -row["swing"])
        self._show()

    def _end(self, error) -> None:
        if error is not None:
            self.session.report(error)
            self.session.tell()

    def _show(self) -> None:
        key, mine = self.what.value, self.rows if self.key == self.what.value else []
        old = "Drawn for an earlier design; vary again. " if mine and self.of is not self.session.now else ""
        self.note.value = f"<span class='sd-dim'>{old}The plan is searched again for every variation unless it is pinned.</span>"
        given = self.of.given if mine else self.session.now.given
        self.chart.spec = tornado[key].spec()
        tornado[key].show(self.chart, given, rows=mine, key=key)
