"""What planners come for, done by somebody new to the desk, and how many gestures each takes."""

from __future__ import annotations

import re

import pytest
import scantling
from scantling.base.quantities.quantity import show
from scantling.design.design import Design

from .conftest import DESIGN
from .test_desk_browser import shows

pytestmark = pytest.mark.browser


@pytest.fixture
def told(desk, record_property, capsys):
    """Print and record the gestures that a story took."""

    def tell(story: str, most: int):
        record_property("gestures", desk.actions)
        with capsys.disabled():
            print(f"\n  {desk.actions} gestures: {story}")
        assert 0 < desk.actions <= most

    return tell


def test_a_70b_model_on_512_gpus_for_15t_tokens(desk, told):
    """Fits? Days?"""
    desk.choose("model", "Llama 3.1 70B")
    desk.slide("cluster.devices", "512")
    desk.slide("job.tokens", "16.0 T")
    told("Llama 3.1 70B on 512 H100 for 16T tokens: does it fit, how many days", 14)
    assert desk.kpi("verdict") in ("Feasible", "Fits, tight", "Fits, offload")
    shows(
        desk,
        Design.read(DESIGN).change(
            {"model": "llama-3.1-70b", "cluster.devices": 512, "job.tokens": 16e12}
        ),
    )


def test_a_plan_that_does_not_fit_is_mended_by_the_offered_fix(desk, told):
    for field, value in (("plan.tp", "2"), ("plan.pp", "1"), ("plan.sharding", "none")):
        desk.choose(field, value)
    assert desk.kpi("verdict") == "Does not fit"
    line = desk.page.locator(".sd-line").inner_text()
    assert "memory" in line.lower()
    assert desk.chart(0).locator("svg").text_content()
    desk.press_button("Apply fix")
    told("a plan that does not fit: read why, apply the offered fix", 6)
    assert desk.kpi("verdict") in ("Feasible", "Fits, tight", "Fits, offload")


def test_1024_or_2048_gpus_then_the_launch_files(desk, told, lab):
    desk.slide("cluster.devices", "2,048")
    desk.tab("Cost")
    desk.ended("Sweep device counts")
    desk.work("Sweep device counts")
    desk.pick("Device counts", "Use this many devices: 1,024")
    design = Design.read(DESIGN).change({"cluster.devices": 1024})
    shows(desk, design)
    desk.tab("File and report")
    desk.work("Write the launch kit")
    told(
        "1,024 or 2,048 GPUs: days and dollars of both, take one, write its Megatron launch kit", 16
    )
    kit = lab.work / "launch"
    arguments = (kit / "megatron.args").read_text(encoding="utf-8")
    plan = scantling.assess(design).plan
    assert re.search(rf"--tensor-model-parallel-size\s+{plan['tp']}\b", arguments)
    assert re.search(rf"--pipeline-model-parallel-size\s+{plan['pp']}\b", arguments)


def test_failures_twice_as_often(desk, told):
    before = {key: desk.kpi(key) for key in ("goodput", "checkpoint_interval_s", "likely.cost_usd")}
    assert 3.5 < scantling.assess(Design.read(DESIGN)).endurance.failures_per_1000_node_days < 4
    desk.press_button("Set reference")
    desk.unfold("Failures, prices, measured")
    desk.slide("reliability.failures_per_1000_node_days", "8.00")
    desk.tab("Reliability")
    told("failures twice as often: new interval, new goodput, what it costs", 8)
    design = Design.read(DESIGN).change({"reliability.failures_per_1000_node_days": 8.0})
    shows(desk, design)
    assert {key for key, value in before.items() if desk.kpi(key) != value} == set(before)
    assert (
        desk.page.locator("[data-kpi='likely.cost_usd'] .sd-kpi-delta")
        .inner_text()
        .startswith("+$")
    )
    lost = scantling.assess(design).as_dict()["cost"]["lost_usd"]
    desk.tab("Cost")
    assert (
        show("cost.lost_usd", lost) in desk.page.get_by_role("region", name="The bill").inner_text()
    )


def test_a_measured_step_time_takes_over(desk, told):
    desk.unfold("Failures, prices, measured")
    desk.type("measured.step_s", "7.5")
    told("pin a measured step time", 2)
    assert desk.kpi("step_s").replace(" ", "") == "7.50s"
    shows(desk, Design.read(DESIGN).change({"measured.step_s": 7.5}))


def test_save_close_reopen_compare_and_report(desk, told, lab):
    desk.slide("cluster.devices", "8,192")
    desk.tab("File and report")
    desk.page.get_by_label("File", exact=True).fill("kept.yaml")
    desk.page.keyboard.press("Tab")
    desk.work("Save")
    desk.page.get_by_text("kept.yaml.").wait_for()
    assert Design.read(lab.work / "kept.yaml").cluster.devices == 8192
    desk.go_up()
    desk.press_button("Reset")
    desk.press_button("Set reference")
    desk.work("Load")
    desk.page.get_by_text("kept.yaml is on the desk").wait_for()
    assert desk.readout("cluster.devices") == "8,192"
    desk.tab("Compare")
    assert (
        "cluster.devices"
        in desk.page.get_by_role("region", name="Fields in which the designs differ").inner_text()
    )
    desk.tab("File and report")
    render = desk.page.get_by_role("button", name="Render the report")
    render.click()  # once to stop it …
    desk.actions += 2
    stop = desk.page.get_by_role("button", name="Cancel").locator("visible=true").first
    stop.click()
    desk.ended("Render the report")
    assert "Cancelled" in desk.page.locator(".sd-card", has=render).inner_text()
    assert (
        not list((lab.work / "reports").glob("*.html")) if (lab.work / "reports").exists() else True
    )
    desk.work("Render the report")  # … and once to the end
    told("save, reset, pin, load, compare, stop a report, render it", 24)
    (page,) = (lab.work / "reports").glob("*.html")
    assert page.stat().st_size > 50_000
    assert page.name in desk.page.locator(".sd-card", has=render).inner_text()
