"""Pictures of every tab, light and dark, and the axe engine on each of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .browsing import PATIENCE_MS
from .conftest import ROOT

pytestmark = pytest.mark.browser
TABS_AT = ROOT / "build" / "pictures"
PICTURES = Path(
    os.environ.get("SCANTLING_PICTURES") or TABS_AT
)  # where the picture of the read-me goes
TABS = (
    "Plans",
    "Schedule",
    "Network",
    "Roofline",
    "Reliability",
    "Cost",
    "Sensitivity",
    "Compare",
    "Evidence",
    "File and report",
)
MOVES = "() => document.querySelectorAll('.sd-moves .sd-button').length"  # that are offered
WORKS = {"Cost": "Sweep device counts", "Sensitivity": "Vary the inputs"}


def violations(page, inside: str, only: tuple[str, ...] = ()) -> list[str]:
    """Serious and critical findings of axe-core below an element, by all its rules or some."""
    from axe_playwright_python.sync_playwright import Axe

    found = (
        Axe()
        .run(page, context=inside, options={"runOnly": list(only)} if only else None)
        .response["violations"]
    )
    return [
        f"{v['id']} ({v['impact']}): {node['html'][:120]}"
        for v in found
        if v["impact"] in ("serious", "critical")
        for node in v["nodes"]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_of_every_tab_and_no_serious_finding_of_axe(desk, theme):
    desk.press_button(
        "Set reference"
    )  # so that Compare and the two main pictures have something to compare
    desk.press("cluster.devices", "ArrowLeft")
    desk.press_button("Undo")
    desk.press_button("Clear reference")
    only = (
        () if theme == "light" else ("color-contrast",)
    )  # what else axe looks at does not change with the colours
    (desk.dark if theme == "dark" else desk.light)()
    try:
        desk.page.wait_for_function(MOVES, timeout=2 * PATIENCE_MS)
        desk.picture(PICTURES / f"desk-{theme}.png")
        assert violations(desk.page, ".sd-desk", only) == []
        for number, name in enumerate(TABS, 1):
            if name == "Compare":
                desk.go_up()
                desk.press_button("Set reference")
                desk.press("cluster.devices", "ArrowLeft", 2)
            desk.tab(name)
            if name in WORKS:
                desk.ended(WORKS[name])
            if name == "Sensitivity":
                desk.page.get_by_label("and against").select_option(label="Global batch")
                desk.work("Sweep")
            desk.bring_up()
            assert not [
                text for text in desk.page.locator(".sd-chart-fault").all_inner_texts() if text
            ]
            assert (
                desk.page.locator(".sd-desk .sd-card:visible").evaluate_all(
                    "cards => cards.filter(c => c.scrollWidth > c.clientWidth + "
                    "1).map(c => c.textContent.slice(0, 40))"
                )
                == []
            )
            room = desk.page.locator(".sd-desk").evaluate(
                "e => [e.clientWidth, e.closest('.jp-Cell-outputWrapper').clientWidth]"
            )
            assert room[0] <= room[1], f"{name} is wider than the page"
            assert violations(desk.page, ".sd-desk .sd-panel:not([hidden])", only) == [], name
            desk.picture(TABS_AT / f"tab-{number:02d}-{name.lower().replace(' ', '-')}-{theme}.png")
            if name == "Compare":
                desk.go_up()
                desk.press_button("Clear reference")
    finally:
        desk.go_up()
        desk.light()
