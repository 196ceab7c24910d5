"""The Schedule tab in a browser: the passes that `scantling trace` writes, wide and narrow."""

from __future__ import annotations

import json
import re
from itertools import product

import pytest
from scantling.cli.app import main

from .conftest import DESIGN, ROOT

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width, theme", [*product((1440, 420), ("light", "dark"))])
def test_the_schedule_tab_draws_what_the_trace_has(desk, tmp_path, width, theme):
    """The idle share that the tab says is that of the file: of the time from the first pass to the
    last, what the mean rank spends in none."""
    out = tmp_path / "step.json"
    assert main(["trace", str(DESIGN), "-o", str(out)]) in (0, 3)
    events = json.loads(out.read_text())["traceEvents"]
    passes = [event for event in events if event.get("cat") == "pass"]
    ranks = len({event["pid"] for event in passes})
    busy = sum(event["dur"] for event in passes) / ranks
    ends = max(event["ts"] + event["dur"] for event in passes)
    idle = 1 - busy / (ends - min(event["ts"] for event in passes))
    (desk.dark if theme == "dark" else desk.light)()
    try:
        desk.page.set_viewport_size({"width": width, "height": 900})
        desk.tab("Schedule")
        desk.bring_up()
        desk.picture(ROOT / "build" / "pictures" / f"schedule-{width}-{theme}.png")
        panel = desk.page.locator(".sd-desk .sd-panel:not([hidden])")
        said = re.search(r"interleaved: (\d+) stages .* idle ([\d.]+) %", panel.inner_text())
        assert int(said[1]) == ranks
        assert float(said[2]) == pytest.approx(100 * idle, abs=0.01)
        room = desk.page.locator(".sd-desk").evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert room[0] <= room[1] + 1
    finally:
        desk.page.set_viewport_size({"width": 1440, "height": 900})
        desk.go_up()
        desk.light()
