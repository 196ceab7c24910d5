"""What the result hangs on: each input a step down and up, and sweeps along one or two inputs with
the edge of what is feasible."""

from scantling.base.files import table

from ...charts.plans import tornado
from ...charts.sweeps import heat, kind, line, titled_axes
from ...words import label, share, show, titled
from .. import headline, studies, theme
from ..background import Job
from ..table import cell
from .base import Panel

_KINDS = table(__file__, "found")


_SEARCHED = "The plan is searched again for every variation unless it is pinned."
_SWEPT = (
    "Any input of the desk; the plan is searched again in every cell unless it is pinned. A click "
    "on a point or cell puts it on the desk."
)
_EDGE = (
    "Red: the edge of what is feasible; !: violates a constraint; hatched: does not fit or is not "
    "legal."
)


class Sensitivity(Panel):
    title = "Sensitivity"

    options = {
        "what": [(label(key), key) for key in tornado],
        "along": [("", "")],
        "across": [("", "")],
    }

    def begin(self):
        self.rows, self.cells = [], []
        self.of = self.key = self.swept = None
        self.what.value = next(key for key in tornado if self.given.get(key) is not None)
        self.job = Job("Vary the inputs", self._start, self._step, self.ended)
        self.sweep_job = Job("Sweep", self._sweep_start, self._sweep_step, self.ended)
        self.chart = tornado[self.what.value].live()
        self.map = line[self.what.value].live(legend=True)
        self.map.on_pick(self._pick)
        self._offer()
        self.what.on("index", lambda _: self._shown())

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
        self.of, self.key, self.rows = self.now, self.what.value, []
        return studies.vary(self.of.result, self.key)

    def _step(self, rows) -> None:
        self.rows = sorted([*self.rows, *rows], key=lambda row: -row["swing"])
        self._show()

    def _show(self) -> None:
        key, now = self.what.value, self.now
        mine = self.rows if self.key == key else []
        old = "Drawn for an earlier design; vary again. " if mine and self.of is not now else ""
        if now.given.get(key) is None:
            lacks = headline.lacking(now.given).removeprefix("a ")
            old = f"This design has no {label(key).lower()}: it names no {lacks}. "
        self.note.value = theme.dim(old + _SEARCHED)
        self.chart.spec = tornado[key].spec()
        tornado[key].show(self.chart, self.of.given if mine else now.given, rows=mine, key=key)

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
                kept = box.value or first
                box.options = options
                box.value = kept if kept in dict(map(reversed, options)) else first

    def _sweep_start(self):
        along, across = self._alongs[self.along.value], self._alongs.get(self.across.value)
        across = None if across is along else across
        if across is not None:
            along, across = studies.narrowed(along, 9), studies.narrowed(across)
        self.cells, self.swept = [], (self.now, along, across)
        self._show_sweep()
        return studies.sweep(self.session, along, across)

    def _sweep_step(self, found) -> None:
        self.cells.append(found)
        if self.swept[2] is None or len(self.cells) % len(self.swept[1].values) == 0:
            self._show_sweep()

    def _names(self, i: int) -> list:
        """(input, place) of the inputs of a cell."""
        _, along, across = self.swept
        r, c = divmod(i, len(along.values))
        return [(along, c)] if across is None else [(across, r), (along, c)]

    def _show_sweep(self) -> None:
        key = self.what.value
        if self.swept is None:
            line[key].show(self.map, self.given, key=key)
            self.sweep_note.value = theme.dim(_SWEPT)
            return
        of, along, across = self.swept
        old = "" if of is self.now else "Swept for an earlier design; sweep again. "
        names = f"{along.name} across" + (f", {across.name} down" if across else "")
        self.sweep_note.value = theme.dim(
            f"{old}{theme.escape(titled(key))}: {theme.escape(names)}; a click puts a cell on the "
            f"desk. {_EDGE if across else ''}"
        )
        figure, titles = line[key], {"x": along.name}
        if across is None:
            more = {"texts": along.texts, "name": along.name, "now": along.now}
        else:
            figure, titles = heat[key], {"x": along.name, "y": across.name}
            here = across.now * len(along.values) + along.now
            more = {
                "rows": across.texts,
                "columns": along.texts,
                "now": here if min(along.now, across.now) >= 0 else -1,
                "names": (across.name, along.name),
            }
        self.map.spec = titled_axes(figure.spec(True), titles)
        figure.show(self.map, of.given, cells=self.cells, key=key, **more)
        self._fill(key)

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
        for i, found in enumerate(self.cells):
            word, mark = _KINDS[kind(found)]
            value, memory = found.figures.get(key), found.memory_share
            opens = key if value is not None else ""
            rows.append(
                [
                    *(_input(along, place) for along, place in self._names(i)),
                    cell(word, mark=mark),
                    cell(show(key, value), value, key=opens),
                    cell("—" if memory is None else share(memory), memory),
                    cell(found.why),
                ]
            )
        self.table.fill(rows, [found.figures for found in self.cells])

    def _pick(self, index: int) -> None:
        if 0 <= index < len(self.cells):
            self.choose(studies.fields_of(self.session.now, *self._names(index)))


def _input(along, place: int) -> dict:
    value = along.values[place]
    return cell(along.texts[place], value if isinstance(value, (int, float)) else None)
