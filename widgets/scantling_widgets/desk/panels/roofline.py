"""What each kind of kernel could reach and does, and whether the links could carry each axis of the
plan."""

from collections.abc import Sequence

from scantling.base.show import share
from scantling.physics.roofline import roofline

from ...charts.page_parts import Part
from ...charts.palette import KERNELS
from ...charts.roofline import kernels, links
from .. import boxes, panel_tables
from ..legend import Key, entry
from ..page_table import record_text
from .base import Panel, table_card


class Roofline(Panel):
    title = "Roofline"

    charts = (kernels, links)

    def build(self) -> Sequence[Part]:
        self.note = boxes.text()
        self.table = self.list_of(panel_tables.ROOFLINE)
        self.axes = self.list_of(panel_tables.ROOFLINE_LINKS)
        self.kernels, self.links = kernels.live(), links.live()
        self.key = Key(self.explain)
        return [
            self.note,
            boxes.few_columns(
                boxes.card(
                    kernels.title,
                    self.kernels,
                    self.key,
                    see="Points under the slope wait for memory, those under the flat roof for "
                    "arithmetic: the large ones far below either are worth a kernel.",
                ),
                boxes.card(
                    links.title,
                    self.links,
                    see="Left of its link's corner an axis waits for the link; to the right of it "
                    "arithmetic can hide what is sent.",
                ),
            ),
            table_card(
                self.table, see="Where the time of the fullest stage goes, the longest first."
            ),
            table_card(self.axes, see="How much arithmetic each byte on a link pays for."),
        ]

    def draw(self) -> None:
        record = roofline(self.now.assessment)
        assert record is not None, "the tab is shown of designs with a plan"
        roof = record.as_dict()
        rows, axes = roof["kernels"], roof["axes"]
        kernels.show(self.kernels, self.figures, roof=roof)
        links.show(self.links, self.figures, roof=roof)
        self.key.show([entry(KERNELS[k["kernel"]], k["label"], share(k["share"])) for k in rows])
        achieved = record_text("roofline.achieved_flops", roof)
        ridge = record_text("roofline.ridge", roof)
        self.note.value = (
            f"<p>The fullest stage executes {achieved} a device over the whole step; left of the "
            f"ridge, {ridge}, memory binds. A point is as large as its share of the step.</p>"
        )
        self.table.show([k | {"kernel": k["label"]} for k in rows])
        self.axes.show([a | {"axis": a["axis"].upper()} for a in axes])
