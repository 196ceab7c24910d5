"""What each kind of kernel could reach and does, and whether the links could carry each axis of the
plan."""

from __future__ import annotations

from scantling.physics.roofline import roofline

from .. import theme
from ..charts_roofline import kernels, links
from ..legend import Key, entry
from ..palette import KERNELS
from ..table import Table, cell, cells, columns
from ..words import label, share, show
from .base import Panel

_COLUMNS = (
    "kernel",
    "flops",
    "bytes",
    "intensity",
    "achieved_flops",
    "attainable_flops",
    "bound",
    "seconds",
    "share",
)
_AXES = {
    "axis": "communication.axis",
    "tier": "communication.tier",
    "bytes": "communication.bytes",
    "intensity": "roofline.intensity",
    "attainable_flops": "roofline.attainable_flops",
    "time_s": "communication.time_s",
    "exposed_s": "communication.exposed_s",
}
_LEFT = ("kernel", "bound", "axis", "tier")


class Roofline(Panel):
    title = "Roofline"

    def build(self):
        self.kernels, self.links = kernels.live(), links.live()
        self.key, self.note = Key(self.explain), theme.text()
        self.table = Table(
            "Kernels of one step, on the fullest stage",
            file_name="roofline",
            explain=self.explain,
            columns=columns(_COLUMNS, "roofline.", left=_LEFT),
        )
        labels = {name: label(key) for name, key in _AXES.items()}
        self.axes = Table(
            "Axes of the plan against their links",
            file_name="roofline-links",
            explain=self.explain,
            empty="One device: nothing is sent.",
            columns=columns(_AXES, left=_LEFT, labels=labels),
        )
        card = theme.card
        left, right = card(kernels.title, self.kernels, self.key), card(links.title, self.links)
        return [
            self.note,
            theme.side_by_side(left, right, few=True),
            card(self.table.label, self.table),
            card(self.axes.label, self.axes),
        ]

    def draw(self):
        roof = roofline(self.session.now.result).as_dict()
        rows, axes = roof["kernels"], roof["axes"]
        kernels.show(self.kernels, self.given, roof=roof)
        links.show(self.links, self.given, roof=roof)
        self.key.show([entry(KERNELS[k["kernel"]], k["label"], share(k["share"])) for k in rows])
        achieved, ridge = (
            theme.escape(show(f"roofline.{name}", roof[name]))
            for name in ("achieved_flops", "ridge")
        )
        self.note.value = (
            f"<p>Executed {achieved} per device over the whole step; left of the ridge, {ridge}, "
            "memory binds. A point is as large as its share of the step.</p>"
        )
        numbers = [name for name in _COLUMNS if name not in _LEFT]
        self.table.fill(
            [[cell(k["label"]), *cells(k, _COLUMNS[1:], "roofline.", opens=numbers)] for k in rows],
            rows,
        )
        self.axes.fill([_axis(a) for a in axes], axes)


def _axis(row) -> list[dict]:
    figures = [(key, row[name]) for name, key in _AXES.items() if name not in _LEFT]
    opened = (cell(show(key, value), value, key=key) for key, value in figures)
    return [cell(row["axis"].upper()), cell(row["tier"]), *opened]
