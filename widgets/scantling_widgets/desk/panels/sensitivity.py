"""What the result hangs on: each input a step down and up, and sweeps along one or two inputs with
the edge of what is feasible."""

from collections.abc import Iterator, Sequence

from scantling.advise.sensitivity import Swing
from scantling.advise.sweeps import Cell as SweepCell, comparable
from scantling.base.quantities.quantity import show
from scantling.base.records import at
from scantling.base.show import percent, share
from scantling.verdict.result import bases_differ

from ...charts.page_parts import Drop, Part
from ...charts.plans import tornado
from ...charts.sweeps import heat, kind, line, titled_axes
from ...quantity_texts import label, titled
from .. import boxes, headline, panel_tables, studies
from ..background import Job
from ..page_table import Cell, Row, cell
from ..session import Moment
from ..studies import Along
from .base import Panel

# what a cell of a sweep is: its name, and the colour of its mark
_KINDS = {
    "feasible": ("feasible", "good"),
    "missed": ("constraint violated", "warn"),
    "over": ("does not fit", "bad"),
    "impossible": ("impossible", "bad"),
    "refused": ("not legal", ""),
}
_SEARCHED = "The plan is searched again for every variation unless it is pinned."
_SWEPT = (
    "Any input of the desk; the plan is searched again in every cell unless it is pinned. A click "
    "on a point or cell puts it on the desk."
)
_CAUSAL = " MFU counts attention as causal masks leave it."
_EDGE = (
    "Red: the edge of what is feasible; !: violates a constraint; hatched: does not fit or is not "
    "legal."
)


class Sensitivity(Panel):
    title = "Sensitivity"

    charts = (*tornado.values(), *line.values(), *heat.values())

    def build(self) -> Sequence[Part]:
        self.rows: list[Swing] = []
        self.cells: list[SweepCell] = []
        self.of: Moment | None = None
        self.key = ""
        self.swept: tuple[Moment, Along, Along | None] | None = None
        self.note, self.sweep_note = boxes.text(), boxes.text()
        self.swings = self.list_of(panel_tables.SWINGS)
        self.table = self.choice_of(panel_tables.SWEEP, self._pick)
        self.what = Drop("What moves", [(label(key), key) for key in tornado])
        self.along, self.across = Drop("Along", [("", "")]), Drop("and against", [("", "")])
        self.what.value = next(key for key in tornado if at(self.figures, key) is not None)
        self.job = Job("Vary the inputs", self._start, self._step, self.ended)
        self.sweep_job = Job("Sweep", self._sweep_start, self._sweep_step, self.ended)
        self.chart = tornado[self.what.value].live()
        self.map = line[self.what.value].live(legend=True)
        self.map.on_pick(self._pick)
        self._offer()
        self.what.on("index", lambda _: self._shown())
        along = boxes.row(self.along, self.across, self.sweep_job)
        return [
            boxes.row(self.what, self.job),
            self.note,
            boxes.card(
                "Each input a step down and up",
                self.chart,
                self.swings,
                see="The widest bars are what the result hangs on; below them nothing is worth "
                "arguing about.",
            ),
            boxes.card(
                "Sweep",
                along,
                self.sweep_note,
                self.map,
                self.table,
                see="How the result moves along one input or two, and where the design stops being "
                "feasible.",
            ),
        ]

    def draw(self) -> None:
        self._offer()
        self._shown()

    def opened(self) -> None:
        self.job.run()

    def _shown(self) -> None:
        self._show()
        self._show_sweep()

    # ------------------------------------------------------------ one input at a time
    def _start(self) -> tuple[int, Iterator[list[Swing]]]:
        self.of, self.key, self.rows = self.now, self.what.value, []
        return studies.vary(self.now.assessment, self.key)

    def _step(self, rows: list[Swing]) -> None:
        self.rows = sorted([*self.rows, *rows], key=lambda row: -row["swing"])
        self._show()

    def _show(self) -> None:
        key, now = self.what.value, self.now
        mine = self.rows if self.key == key else []
        old = (
            "Drawn for an earlier design; vary again. " if mine and not _same(self.of, now) else ""
        )
        if at(now.figures, key) is None:
            lacks = headline.lacking(now.figures).removeprefix("a ")
            old = f"This design has no {label(key).lower()}: it names no {lacks}. "
        self.note.value = boxes.dim(old + _SEARCHED)
        self.chart.spec = tornado[key].spec()
        figures = self.of.figures if mine and self.of is not None else now.figures
        tornado[key].show(self.chart, figures, rows=mine, key=key)
        self._fill_swings(mine, key, at(figures, key))

    def _fill_swings(self, swings: Sequence[Swing], key: str, now: float | None) -> None:
        """The ends of the bars in figures: a telephone has no room for them beside the bars."""
        labels = {"what": "Input", "to": "Changed to", key: label(key), "swing": "Against now"}
        self.swings.columns = self.swings.headed(labels, labels)
        rows: list[Row] = []
        for swing in swings:
            ends = ((swing["low_says"], swing["low"]), (swing["high_says"], swing["high"]))
            for says, value in ends:
                if value is not None and now:
                    change = value / now - 1
                    rows.append(
                        [
                            swing["what"],
                            says,
                            cell(show(key, value), value),
                            cell(percent(change, 1, "+"), change),
                        ]
                    )
        self.swings.fill(rows)

    # ------------------------------------------------------------ sweeps
    def _offer(self) -> None:
        """The inputs that the design has now; what was chosen stays chosen."""
        self._alongs = {a.field: a for a in studies.alongs(self.session)}
        names = [(a.name, field) for field, a in self._alongs.items()]
        _offer(self.along, names, "cluster.devices")
        _offer(self.across, [("nothing else", ""), *names], "")

    def _sweep_start(self) -> tuple[int, Iterator[SweepCell]]:
        along, across = self._alongs[self.along.value], self._alongs.get(self.across.value)
        across = None if across is along else across
        if across is not None:
            along, across = studies.narrowed(along, 9), studies.narrowed(across)
        self.cells, self.swept = [], (self.now, along, across)
        self._show_sweep()
        return studies.sweep(self.session, along, across)

    def _sweep_step(self, cell: SweepCell) -> None:
        self.cells.append(cell)
        assert self.swept is not None, "a sweep was started"
        _, along, across = self.swept
        if across is None or len(self.cells) % len(along.values) == 0:
            self._show_sweep()

    def _names(self, i: int) -> list[tuple[Along, int]]:
        """(input, place) of the inputs of a cell."""
        assert self.swept is not None, "a sweep was started"
        _, along, across = self.swept
        r, c = divmod(i, len(along.values))
        return [(along, c)] if across is None else [(across, r), (along, c)]

    def _show_sweep(self) -> None:
        key = self.what.value
        if self.swept is None:
            line[key].show(self.map, self.figures, key=key)
            self.sweep_note.value = boxes.dim(_SWEPT)
            return
        of, along, across = self.swept
        old = "" if _same(of, self.now) else "Swept for an earlier design; sweep again. "
        mixed = key == "mfu_shown" and bases_differ(cell.figures for cell in self.cells)
        names = f"{along.name} across" + (f", {across.name} down" if across else "")
        self.sweep_note.value = boxes.dim(
            f"{old}{boxes.escape(titled(key))}: {boxes.escape(names)}; a click puts a cell on the "
            f"desk. {_EDGE if across else ''}{_CAUSAL if mixed else ''}"
        )
        if across is None:
            self._show_line(of, along, key)
        else:
            self._show_heat(of, along, across, key)
        self._fill(key)

    def _show_line(self, of: Moment, along: Along, key: str) -> None:
        self.map.spec = titled_axes(line[key].spec(True), {"x": along.name})
        line[key].show(
            self.map,
            of.figures,
            cells=comparable(self.cells),
            key=key,
            texts=along.texts,
            name=along.name,
            now=along.now,
        )

    def _show_heat(self, of: Moment, along: Along, across: Along, key: str) -> None:
        titles = {"x": along.name, "y": across.name}
        self.map.spec = titled_axes(heat[key].spec(True), titles)
        here = across.now * len(along.values) + along.now
        heat[key].show(
            self.map,
            of.figures,
            cells=comparable(self.cells),
            key=key,
            rows=across.texts,
            columns=along.texts,
            now=here if min(along.now, across.now) >= 0 else -1,
            names=(across.name, along.name),
        )

    def _fill(self, key: str) -> None:
        first, *more = (along for along, _ in self._names(0))
        labels = {
            "at": first.name,
            **{a.field: a.name for a in more},
            "verdict": label("verdict"),
            key: label(key),
            "memory": "Of usable memory",
            "why": "Why",
        }
        self.table.columns = self.table.headed(
            labels, labels, [name for name in labels if name not in (key, "memory")]
        )
        rows = []
        cells = comparable(self.cells)
        for i, one in enumerate(cells):
            word, mark = _KINDS[kind(one)]
            value, memory = at(one.figures, key), one.memory_share
            opens = key if value is not None else ""
            rows.append(
                [
                    *(_input(along, place) for along, place in self._names(i)),
                    cell(word, mark=mark),
                    cell(show(key, value), value, key=opens),
                    cell("—" if memory is None else share(memory), memory),
                    cell(one.why),
                ]
            )
        self.table.fill(rows, [one.figures for one in cells])

    def _pick(self, index: int) -> None:
        if 0 <= index < len(self.cells):
            self.choose(studies.fields_of(self.session.now, *self._names(index)))


def _same(of: Moment | None, now: Moment) -> bool:
    """Whether something was drawn for the design that is on the desk."""
    return of is not None and of.design == now.design


def _offer(box: Drop, options: list[tuple[str, str]], first: str) -> None:
    """Put options into a list; what was chosen stays chosen where there still is such a one."""
    if list(box.options) == options:
        return
    chosen = box.value or first
    box.options = options
    box.value = chosen if chosen in [value for _, value in options] else first


def _input(along: Along, place: int) -> Cell:
    value = along.values[place]
    return cell(along.texts[place], value if isinstance(value, (int, float)) else None)
