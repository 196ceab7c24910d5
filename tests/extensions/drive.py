"""python drive.py DESIGN [FRAMEWORK]: a design through verdict, fixes, report and desk, as JSON;
and its kit. Run with SCANTLING_EXTENSIONS set."""

import json
import sys

import scantling
from scantling.base.json import clean
from scantling_kits import kits
from scantling_widgets.desk.desk import DeskPane
from scantling_widgets.desk.headline import inputs
from scantling_widgets.report import Report


def offered(desk) -> list[str]:
    """The frameworks that the desk offers a kit for."""
    panel = next(p for p in desk.panels if p.title == "File and report")
    desk.tabs.selected_index = desk.panels.index(panel)
    return list(panel.to.options)


design = scantling.Design.read(sys.argv[1])
result = scantling.assess(design)
desk = DeskPane(design)
page = Report(design, result)
out = {
    "json": page.data,
    "report": page.html(),
    "desk": {
        "groups": desk.controls.form.groups,
        "controls": [control.state for control in desk.controls.form.children],
        "strip": desk.headline.strip.items,
        "inputs": inputs(desk.session.now, desk.session.now.figures),
    },
    "frameworks_on_the_desk": offered(desk),
    "kit": kits(result, sys.argv[2]) if len(sys.argv) > 2 else {},
}
print(json.dumps(clean(out), default=str))
