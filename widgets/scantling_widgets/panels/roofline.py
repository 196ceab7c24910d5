"""What each kind of kernel could reach and does, and whether the links could carry each axis of the
plan."""

from __future__ import annotations

from scantling.physics.roofline import roofline

from .. import theme
from ..charts_roofline import kernels, links
from ..legend import Key, entry
from ..palette import KERNELS
from ..table import Table, cell
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
        self.key = Key(self.explain)
        self.note = theme.text()
        self.table = Table(
            "Kernels of one step, on the fullest stage",
            file_name="roofline",
            explain=self.explain,
            columns=[
                {"key": c, "label": label(f"roofline.{c}"), "align": "left" if c in _LEFT else ""}
                for c in _COLUMNS
            ],
        )
        self.axes = Table(
            "Axes of the plan against their links",
            file_name="roofline-links",
            explain=self.explain,
            empty="One device: nothing is sent.",
            columns=[
                {"key": c, "label": label(key), "align": "left" if c in _LEFT else ""}
                for c, key in _AXES.items()
            ],
        )
        return [
            self.note,
            theme.side_by_side(
                theme.card(kernels.title, self.kernels, self.key),
                theme.card(links.title, self.links),
                few=True,
            ),
            theme.card("Kernels of one step, on the fullest stage", self.table),
            theme.card("Axes of the plan against their links", self.axes),
        ]

    def draw(self):
        given = self.session.now.given
        roof = roofline(self.session.now.result).as_dict()
        kernels.show(self.kernels, given, roof=roof)
        links.show(self.links, given, roof=roof)
        self.key.show(
            [entry(KERNELS[k["kernel"]], k["label"], share(k["share"])) for k in roof["kernels"]]
        )
        self.note.value = (
            f"<p>Executed "
            f"{theme.escape(show('roofline.achieved_flops', roof['achieved_flops']))} "
            f"per device over the whole step; left of the ridge, "
            f"{theme.escape(show('roofline.ridge', roof['ridge']))}, memory binds. A "
            f"point is as large as its share of the step.</p>"
        )
        self.table.fill(
            [
                [
                    cell(k["label"]),
                    *(
                        cell(
                            show(f"roofline.{c}", k[c]),
                            k[c],
                            key="" if c in _LEFT else f"roofline.{c}",
                        )
                        for c in _COLUMNS[1:]
                    ),
                ]
                for k in roof["kernels"]
            ],
            roof["kernels"],
        )
        self.axes.fill(
            [
                [
                    cell(a["axis"].upper()),
                    cell(a["tier"]),
                    *(cell(show(key, a[c]), a[c], key=key) for c, key in list(_AXES.items())[2:]),
                ]
                for a in roof["axes"]
            ],
            roof["axes"],
        )
