"""What the result hangs on: each input a step down and a step up, the largest swing first."""
from __future__ import annotations

from .. import studies, theme
from ..background import Job
from ..charts_plans import tornado
from .base import Panel


class Sensitivity(Panel):
    title = "Sensitivity"

    def build(self):
        self.rows: list[dict] = []
        self.of = None
        self.job = Job("Vary the inputs", self._start, self._step, self._end)
        self.note = theme.text()
        self.chart = tornado.live()
        return [self.job, self.note, theme.card(tornado.title, self.chart)]

    def draw(self):
        self._show()

    def _start(self):
        self.of, self.rows = self.session.now, []
        return studies.vary(self.session.judge, self.session, "step_s")

    def _step(self, row) -> None:
        if row["low"] is not None or row["high"] is not None:
            self.rows.append(row)
            self._show()

    def _end(self, error) -> None:
        if error is not None:
            self.session.report(error)
            self.session.tell()

    def _show(self) -> None:
        if self.rows and self.of is not self.session.now:
            self.note.value = "<span class='sd-dim'>Drawn for an earlier design; vary again.</span>"
        else:
            self.note.value = "<span class='sd-dim'>The plan is searched again for every variation unless it is pinned.</span>"
        given = self.of.given if self.of is not None else self.session.now.given
        now = given.get("step_s") or 0.0
        ranked = sorted(self.rows, key=lambda row: -max(abs(value - now) for value in (row["low"], row["high"]) if value is not None))
        tornado.show(self.chart, given, rows=ranked)
