"""What each kind of kernel could reach and does, and whether the links could carry each axis of the
plan."""

from scantling.physics.roofline import roofline

from ...charts.palette import KERNELS
from ...charts.roofline import kernels, links
from ...words import share
from ..legend import Key, entry
from ..table import said
from .base import Panel


class Roofline(Panel):
    title = "Roofline"

    figures = {"kernels": kernels, "links": links}

    def begin(self):
        self.key = Key(self.explain)

    def draw(self):
        roof = roofline(self.now.result).as_dict()
        rows, axes = roof["kernels"], roof["axes"]
        for name in self.figures:
            self.picture(name, roof=roof)
        self.key.show([entry(KERNELS[k["kernel"]], k["label"], share(k["share"])) for k in rows])
        achieved, ridge = (said(f"roofline.{name}", roof) for name in ("achieved_flops", "ridge"))
        self.note.value = (
            f"<p>Executed {achieved} per device over the whole step; left of the ridge, {ridge}, "
            "memory binds. A point is as large as its share of the step.</p>"
        )
        self.table.show([k | {"kernel": k["label"]} for k in rows])
        self.axes.show([a | {"axis": a["axis"].upper()} for a in axes])
