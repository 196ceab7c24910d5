"""What each kind of kernel could reach and does, and whether the links could carry each axis of the
plan."""

from __future__ import annotations

from scantling.physics.roofline import roofline

from .. import theme
from ..charts_roofline import kernels, links
from ..legend import Key, entry
from ..palette import KERNELS
from ..table import cell
from ..words import share, show
from .base import Panel


class Roofline(Panel):
    title = "Roofline"

    figures = {
        "kernels": kernels,
        "links": links,
    }

    def begin(self):
        self.key = Key(self.explain)

    def draw(self):
        roof = roofline(self.session.now.result).as_dict()
        rows, axes = roof["kernels"], roof["axes"]
        for name in self.figures:
            self.picture(name, roof=roof)
        self.key.show(
            [
                entry(
                    KERNELS[k["kernel"]],
                    k["label"],
                    share(k["share"]),
                )
                for k in rows
            ]
        )
        achieved, ridge = (
            theme.escape(show(f"roofline.{name}", roof[name]))
            for name in ("achieved_flops", "ridge")
        )
        self.note.value = (
            f"<p>Executed {achieved} per device over the whole step; left of the ridge, {ridge}, "
            "memory binds. A point is as large as its share of the step.</p>"
        )
        names = self.table.names[1:]
        self.table.fill([[cell(k["label"]), *self.table.cells(k, names)] for k in rows], rows)
        self.axes.fill([self._axis(a) for a in axes], axes)

    def _axis(self, row) -> list[dict]:
        figures = self.axes.cells(row, self.axes.names[2:])
        return [
            cell(row["axis"].upper()),
            cell(row["tier"]),
            *figures,
        ]
