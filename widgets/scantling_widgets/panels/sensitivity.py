"""What the result hangs on: each input a step down and up, and sweeps along one or two inputs with
the edge of what is feasible."""

from __future__ import annotations

import ipywidgets as W

from .. import headline, studies, theme
from ..background import Job
from ..charts_plans import tornado
from ..charts_sweeps import heat, kind, line
from ..table import Table, cell
from ..words import label, share, show, titled
from .base import Panel

_KINDS = {
    "feasible": ("feasible", "good"),
    "missed": ("misses a limit", "warn"),
    "over": ("does not fit", "bad"),
    "impossible": ("impossible", "bad"),
    "refused": ("not legal", ""),
}


class Sensitivity(Panel):
    title = "Sensitivity"

    def build(self):
        self.rows: list[dict] = []
        self.cells: list = []
        self.of = self.key = self.swept = None
        drop = lambda name, options, width="250px", wide="92px": W.Dropdown(
            options=options,
            description=name,
            style={"description_width": wide},
            layout=W.Layout(width=width, flex="0 0 auto"),
        )
        given = self.session.now.given
        self.what = drop("What moves", [(label(key), key) for key in tornado])
        self.what.value = next(key for key in tornado if given.get(key) is not None)
        self.along, self.across = (
            drop("Along", [("", "")], "205px", "44px"),
            drop("and against", [("", "")], "245px", "82px"),
        )
        self.job = Job("Vary the inputs", self._start, self._step, self._end)
        self.sweep_job = Job("Sweep", self._sweep_start, self._sweep_step, self._end)
        self.note, self.sweep_note = theme.text(), theme.text()
        self.chart = tornado[self.what.value].live()
        self.map = line[self.what.value].live(legend=True)
        self.map.on_pick(self._pick)
        self.table = Table(
            "Cells of the sweep",
            self._pick,
            action="Use this design",
            file_name="sweep",
            empty="Not swept yet.",
            explain=self.explain_alone,
            columns=[
                {"key": "at", "label": "Use", "align": "left"},
                {"key": "verdict", "label": label("verdict"), "align": "left"},
            ],
        )
        self._offer()
        self.what.observe(lambda _: self._shown(), "value")
        row = lambda *items: W.HBox(
            items, layout=W.Layout(grid_gap="12px", align_items="center", flex_flow="row wrap")
        )
        return [
            row(self.what, self.job),
            self.note,
            theme.card("Each input a step down and up", self.chart),
            theme.card(
                "Sweep",
                row(self.along, self.across, self.sweep_job),
                self.sweep_note,
                self.map,
                self.table,
            ),
        ]

    def draw(self):
        self._offer()
        self._shown()

    def opened(self):
        self.job.run()

    def _shown(self) -> None:
        self._show()
        self._show_sweep()

    # ------------------------------------------------------------ one input at a time
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
        old = (
            "Drawn for an earlier design; vary again. "
            if mine and self.of is not self.session.now
            else ""
        )
        if self.session.now.given.get(key) is None:
            old = (
                f"This design has no {label(key).lower()}: it names no "
                f"{headline.lacking(self.session.now.given).removeprefix('a ')}. "
            )
        self.note.value = (
            f"<span class='sd-dim'>{old}The plan is searched again for every variation "
            f"unless it is pinned.</span>"
        )
        given = self.of.given if mine else self.session.now.given
        self.chart.spec = tornado[key].spec()
        tornado[key].show(self.chart, given, rows=mine, key=key)

    # ------------------------------------------------------------ sweeps
    def _offer(self) -> None:
        """The inputs that the design has now; what was chosen stays chosen."""
        self._alongs = {a.field: a for a in studies.alongs(self.session)}
        names = [(a.name, field) for field, a in self._alongs.items()]
        for box, options, first in (
            (self.along, names, "cluster.devices"),
            (self.across, [("nothing else", ""), *names], ""),
        ):
            if list(box.options) != options:
                kept = (
                    box.value
                    if box.value in dict(map(reversed, options)) and box.value != ""
                    else first
                )
                box.options = options
                box.value = kept

    def _sweep_start(self):
        along, across = self._alongs[self.along.value], self._alongs.get(self.across.value)
        if across is along:
            across = None
        if across is not None:
            along, across = studies.narrowed(along, 9), studies.narrowed(across)
        self.cells, self.swept = [], (self.session.now, along, across)
        self._show_sweep()
        return studies.sweep(self.session, along, across)

    def _sweep_step(self, found) -> None:
        self.cells.append(found)
        wide = len(self.swept[1].values)
        if self.swept[2] is None or len(self.cells) % wide == 0:
            self._show_sweep()

    def _names(self, i: int) -> list:
        """(input, place) of the inputs of a cell."""
        _, along, across = self.swept
        r, c = divmod(i, len(along.values))
        return [(along, c)] if across is None else [(across, r), (along, c)]

    def _show_sweep(self) -> None:
        key = self.what.value
        now = self.session.now.given
        if self.swept is None:
            line[key].show(self.map, now, key=key)
            self.sweep_note.value = (
                "<span class='sd-dim'>Any input of the desk; the plan is searched again in "
                "every cell unless it is pinned. A click on a point or cell puts it on the "
                "desk.</span>"
            )
            return
        of, along, across = self.swept
        old = "Swept for an earlier design; sweep again. " if of is not self.session.now else ""
        self.sweep_note.value = (
            (
                f"<span class='sd-dim'>{old}{theme.escape(titled(key))}: "
                f"{theme.escape(along.name)} "
                f"across{', ' + theme.escape(across.name) + ' down' if across else ''}; a "
                f"click puts a cell on the desk. "
            )
            + (
                (
                    "Red: the edge of what is feasible; !: misses a stated limit; hatched: "
                    "does not fit or is not legal."
                )
                if across
                else ""
            )
            + "</span>"
        )
        if across is None:
            self.map.spec = line[key].spec(True, along=along.name)
            line[key].show(
                self.map,
                of.given,
                cells=self.cells,
                texts=along.texts,
                key=key,
                name=along.name,
                now=along.now,
            )
        else:
            self.map.spec = heat[key].spec(True, along=along.name, across=across.name)
            here = (
                across.now * len(along.values) + along.now
                if along.now >= 0 and across.now >= 0
                else -1
            )
            heat[key].show(
                self.map,
                of.given,
                cells=self.cells,
                rows=across.texts,
                columns=along.texts,
                key=key,
                names=(across.name, along.name),
                now=here,
            )
        self._fill(key)

    def _fill(self, key: str) -> None:
        names = [self.swept[1]] if self.swept[2] is None else [self.swept[2], self.swept[1]]
        columns = [
            {"key": "at", "label": names[0].name, "align": "left"},
            *({"key": n.field, "label": n.name, "align": "left"} for n in names[1:]),
            {"key": "verdict", "label": label("verdict"), "align": "left"},
            {"key": key, "label": label(key)},
            {"key": "memory", "label": "Of usable memory"},
            {"key": "why", "label": "Why", "align": "left", "wrap": True},
        ]
        rows = []
        for i, found in enumerate(self.cells):
            word, mark = _KINDS[kind(found)]
            at = [
                cell(
                    a.texts[place],
                    a.values[place] if isinstance(a.values[place], (int, float)) else None,
                )
                for a, place in self._names(i)
            ]
            value = found.figures.get(key)
            rows.append(
                [
                    *at,
                    cell(word, mark=mark),
                    cell(show(key, value), value, key=key if value is not None else ""),
                    cell(
                        "—" if found.memory_share is None else share(found.memory_share),
                        found.memory_share,
                    ),
                    cell(found.why),
                ]
            )
        with self.table.hold_sync():
            self.table.columns = columns
            self.table.fill(rows, [c.figures for c in self.cells])

    def _pick(self, index: int) -> None:
        if self.swept is not None and 0 <= index < len(self.cells):
            self.choose(studies.fields_of(self.session, *self._names(index)))
