"""The desk as a person meets it: a real JupyterLab, a real browser, the mouse and the keyboard."""
from __future__ import annotations

import json
import subprocess
import sys

import pytest
from scantling.design import Design

pytestmark = pytest.mark.browser


def said(design_text: str) -> dict:
    """What the command line says about a design."""
    done = subprocess.run([sys.executable, "-m", "scantling", "design", "-", "--json"], input=design_text, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3, 4), done.stderr
    return json.loads(done.stdout)


def joined(text: str) -> str:
    return text.replace(" ", "").replace("\u00a0", "")


def test_dragging_the_gpu_count_moves_numbers_and_charts_in_place(desk):
    before = {key: desk.kpi(key) for key in ("mfu", "step_s", "verdict", "days")}
    embeds, bars = desk.embeds(), desk.marks(1)
    count = desk.readout("cluster.devices")

    desk.drag("cluster.devices", 0.35)
    assert desk.readout("cluster.devices") != count
    assert desk.kpi("mfu") != before["mfu"] and desk.kpi("step_s") != before["step_s"] and desk.kpi("days") != before["days"]
    assert desk.marks(1) != bars and desk.embeds() == embeds, "the chart changed, and is the same chart"

    devices = int(desk.readout("cluster.devices").replace(",", ""))
    assert devices % 8 == 0
    design = Design.from_text(desk.design_text())
    assert design.cluster.devices == devices
    assert desk.errors == []


def test_the_keyboard_does_what_the_mouse_does(desk):
    mfu = desk.kpi("mfu")
    start = desk.readout("cluster.devices")
    desk.press("cluster.devices", "ArrowLeft", 3)
    there = desk.readout("cluster.devices")
    assert int(there.replace(",", "")) < int(start.replace(",", ""))
    assert desk.kpi("mfu") != mfu
    desk.press("cluster.devices", "ArrowRight", 3)
    assert (desk.readout("cluster.devices"), desk.kpi("mfu")) == (start, mfu)


def test_few_devices_do_not_fit_and_the_desk_says_so(desk):
    assert desk.kpi("verdict") == "Feasible"
    desk.press("cluster.devices", "Home")
    assert desk.kpi("verdict") != "Feasible"
    assert desk.page.locator("[data-kpi='verdict']").get_attribute("data-state") in ("bad", "warn")
    assert len(desk.page.locator(".sd-line").inner_text()) > 20
