"""The desk as a person meets it: a real JupyterLab, a real browser, the mouse and the keyboard."""

from __future__ import annotations

import pytest
import scantling
from scantling.base.quantities.quantity import show
from scantling.base.records import at
from scantling.design.design import Design

from .browsing import PATIENCE_MS, DeskPage
from .conftest import DESIGN

pytestmark = pytest.mark.browser


def shows(desk: DeskPage, design: Design) -> None:
    """The headline on the page is what the library says of this design."""
    given = scantling.assess(design).as_dict()
    for key in (
        "mfu_shown",
        "step_s",
        "bubble_fraction",
        "likely.days",
        "likely.cost_usd",
        "goodput",
        "checkpoint_interval_s",
    ):
        assert desk.kpi(key).replace(" ", "") == show(key, at(given, key)).replace(" ", ""), key


def test_dragging_the_gpu_count_moves_numbers_and_charts_in_place(desk):
    before = {key: desk.kpi(key) for key in ("mfu_shown", "step_s", "likely.days")}
    embeds, memory, step = desk.embeds(), desk.marks(0), desk.marks(1)
    count = desk.readout("cluster.devices")

    desk.drag("cluster.devices", 0.35)
    assert desk.readout("cluster.devices") != count
    assert {key for key, value in before.items() if desk.kpi(key) != value} == set(before)
    assert desk.marks(0) != memory
    assert desk.marks(1) != step
    assert desk.embeds() == embeds, "the charts changed and are the same charts"

    devices = int(desk.readout("cluster.devices").replace(",", ""))
    assert devices % 8 == 0
    shows(desk, Design.read(DESIGN).change({"cluster.devices": devices}))


def test_the_keyboard_does_what_the_mouse_does(desk):
    start, mfu = desk.readout("cluster.devices"), desk.kpi("mfu_shown")
    desk.press("cluster.devices", "ArrowLeft", 3)
    there = int(desk.readout("cluster.devices").replace(",", ""))
    assert there < 16384
    assert desk.kpi("mfu_shown") != mfu
    shows(desk, Design.read(DESIGN).change({"cluster.devices": there}))
    desk.press("cluster.devices", "ArrowRight", 3)
    assert (desk.readout("cluster.devices"), desk.kpi("mfu_shown")) == (start, mfu)


def test_the_method_switches_and_rollout_and_trainer_are_two_bars_that_follow(desk):
    desk.choose("job.method", "GRPO")
    texts = "e => [...e.querySelectorAll('svg text')].map(t => t.textContent)"
    assert {"rollout", "trainer"} <= {*desk.chart(1).evaluate(texts)}
    step, drawn = desk.kpi("step_s"), desk.marks(1)
    tabs = desk.page.locator(".sd-desk [role=tab]:not([hidden])")
    shown = tabs.all_inner_texts()
    assert shown == ["Rollout and trainer", "File and report"]
    desk.press("job.rollout.max_response", "ArrowRight", 3)
    assert desk.kpi("step_s") != step and desk.marks(1) != drawn
    desk.choose("job.method", "pre-training")
    assert desk.kpi("mfu_shown") and tabs.count() > 5


def test_few_gpus_do_not_hold_the_model_and_the_desk_says_so(desk):
    fits = desk.kpi("verdict")
    assert fits == "Feasible"
    desk.press("cluster.devices", "Home")
    assert desk.kpi("verdict") != fits
    assert desk.page.locator("[data-kpi='verdict']").get_attribute("data-state") in ("bad", "warn")
    assert len(desk.page.locator(".sd-line").inner_text()) > 20
    desk.press_button("Undo")
    assert (desk.kpi("verdict"), desk.readout("cluster.devices")) == (fits, "16,384")


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("model.size", "ArrowLeft"),
        ("model.experts", "ArrowRight"),
        ("cluster.scale_out_gbytes_per_s_per_device", "Home"),
        ("job.seq_len", "ArrowRight"),
        ("job.global_batch", "ArrowLeft"),
    ],
)
def test_each_main_slider_moves_the_result(desk, field, key):
    step, said = desk.kpi("step_s"), desk.readout(field)
    desk.press(field, key, 2)
    assert desk.readout(field) != said
    assert desk.kpi("step_s") != step
    shows(desk, Design.from_yaml(desk.design_text()))


@pytest.mark.parametrize(
    ("field", "share"),
    [
        ("model.size", 0.3),
        ("model.experts", 0.4),
        ("cluster.scale_out_gbytes_per_s_per_device", 0.2),
        ("cluster.devices", 0.3),
    ],
)
def test_the_four_main_sliders_follow_the_mouse(desk, field, share):
    embeds, memory, step = desk.embeds(), desk.marks(0), desk.marks(1)
    said = desk.readout(field)
    desk.drag(field, share)
    assert desk.readout(field) != said
    assert desk.marks(1) != step
    assert (
        desk.marks(0) != memory or field == "cluster.scale_out_gbytes_per_s_per_device"
    )  # the network changes no memory but by another plan
    assert desk.embeds() == embeds
    shows(desk, Design.from_yaml(desk.design_text()))


def test_a_list_in_groups_gives_what_it_names(desk):
    names = desk.control("cluster.accelerator").evaluate(
        "e => [...e.options].map(o => o.textContent)"
    )
    for name in (
        names[-1],
        next(n for n in names if n.startswith("MI300X")),
        next(n for n in names if n.startswith("H100 96GB")),
    ):
        desk.choose("cluster.accelerator", name)
        title = desk.page.locator(".sd-title").inner_text().replace("\n", " ")
        assert f"× {name} changed from" in title.replace("changed", " changed").replace("  ", " ")
        assert (
            desk.control("cluster.accelerator").evaluate("e => e.selectedOptions[0].textContent")
            == name
        )


def test_inputs_and_headline_stay_in_sight_while_a_tab_is_read(desk):
    desk.tab("Network")
    desk.bring_up()
    for what in (".sd-row[data-field='cluster.devices']", ".sd-strip"):
        box = desk.page.locator(what).bounding_box()
        assert 0 <= box["y"] < 900 - box["height"], what
    step = desk.kpi("step_s")
    desk.drag("cluster.devices", 0.4)
    assert desk.kpi("step_s") != step


def test_a_number_in_a_table_opens_and_closes_by_the_keyboard(desk):
    cell = desk.cell(
        "Best plans, fastest first", show("mfu", scantling.assess(Design.read(DESIGN)).mfu)
    )
    cell.focus()
    desk.page.keyboard.press("Enter")
    sheet = desk.page.get_by_role("dialog")
    sheet.wait_for()
    assert "flops_per_token" in sheet.inner_text()
    desk.page.keyboard.press("Escape")
    sheet.wait_for(state="hidden")
    assert desk.page.evaluate("() => document.activeElement.className") == "sd-open"


@pytest.mark.parametrize(
    ("kind", "ending", "start"),
    [
        ("Download this chart as a picture", ".svg", b"<svg"),
        ("Download this chart as pixels", ".png", b"\x89PNG"),
        ("Download the data of this chart", ".csv", b"# "),
    ],
)
def test_a_picture_downloads(desk, kind, ending, start):
    desk.page.locator(".sd-chart").first.hover()
    with desk.page.expect_download() as waiting:
        desk.page.get_by_role("button", name=kind).first.click()
    assert waiting.value.suggested_filename.endswith(ending)
    assert waiting.value.path().read_bytes().startswith(start)


def test_a_table_downloads_what_it_shows(desk):
    with desk.page.expect_download() as waiting:
        desk.page.get_by_role("button", name="Download as CSV: Best plans").click()
    lines = waiting.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("rank,step_s,mfu_shown,memory_bytes,tp")
    assert len(lines) == 1 + int(
        desk.page.locator(".sd-table-host").first.get_attribute("data-rows")
    )


def test_an_error_in_a_callback_is_shown_and_the_desk_goes_on(desk):
    """A fault put into the kernel from the notebook's own cell, as a bug of the kit would be."""
    desk.run("desk.session.judge = None")
    try:
        desk.press("cluster.devices", "ArrowLeft")
        fault = desk.page.locator(".sd-error")
        fault.wait_for()
        assert "TypeError" in fault.inner_text()
    finally:
        desk.run("import scantling_widgets.desk.session as s; desk.session.judge = s.assess")
    desk.press("cluster.devices", "ArrowLeft")
    assert desk.kpi("verdict").startswith("Feasible")
    desk.page.get_by_role("button", name="Dismiss").click()
    desk.page.locator(".sd-error").wait_for(state="hidden")


def test_a_kernel_restart_brings_back_the_last_design(desk):
    desk.press("cluster.devices", "ArrowLeft", 2)
    there = desk.readout("cluster.devices"), desk.kpi("mfu_shown")
    assert there[0] != "16,384"
    desk.page.evaluate(
        "() => { document.querySelector('.sd-desk').dataset.old = 1; "
        "window.jupyterapp.commands.execute('notebook:restart-run-all'); }"
    )
    desk.page.locator(".jp-Dialog button.jp-mod-accept").click()
    desk.page.wait_for_function(
        (
            "() => { const d = document.querySelector('.sd-desk'); return d && "
            "!d.dataset.old && d.querySelectorAll('.sd-chart[data-revision] svg').length >= "
            "2; }"
        ),
        timeout=2 * PATIENCE_MS,
    )
    desk.settle()
    assert (desk.readout("cluster.devices"), desk.kpi("mfu_shown")) == there
    desk.press("cluster.devices", "ArrowRight", 2)
    desk.run(
        "desk.session.first = desk.session.now; desk.session.notify()"
    )  # where the next tests begin
    assert desk.readout("cluster.devices") == "16,384"


def test_the_keyboard_goes_through_the_desk_as_the_eye_does(desk):
    here = (
        "() => { const e = document.activeElement; return "
        "e.closest('[data-field]')?.dataset.field ?? e.dataset.kpi ?? "
        "(e.getAttribute('role') === 'tab' ? 'tab' : e.textContent); }"
    )
    desk.control("example").focus()
    seen = []
    while not seen or (seen[-1] != "tab" and len(seen) < 90):
        seen.append(desk.page.evaluate(here))
        desk.page.keyboard.press("Tab")
    order = [
        "example",
        "model",
        "cluster.devices",
        "job.global_batch",
        "plan.tp",
        "plan.recompute",
        "Job",
        "verdict",
        "checkpoint_interval_s",
        "tab",
    ]
    assert [seen.index(name) for name in order] == sorted(seen.index(name) for name in order)
    desk.page.get_by_role("tab", name="Plans").focus()
    desk.page.keyboard.press("ArrowRight")
    desk.page.keyboard.press("Enter")
    desk.page.wait_for_function(
        "() => document.querySelector('.sd-tab[aria-selected=true]').textContent === 'Schedule'"
    )
    desk.settle()


def test_a_pin_that_cannot_be_is_marked_and_the_picture_stays(desk):
    desk.control("plan.micro_batch").select_option(
        label="1"
    )  # another design: nobody has opened its list of DP, which would grey the 3
    desk.settle()
    mfu = desk.kpi("mfu_shown")
    said = desk.page.locator(".sd-row[data-field='plan.dp'] .sd-fault")
    desk.control("plan.dp").select_option(
        label="3"
    )  # 2,048 sequences do not fall into three equal parts
    desk.settle()
    assert "3" in said.inner_text()
    assert desk.control("plan.dp").get_attribute("aria-invalid") == "true"
    assert desk.kpi("mfu_shown") == mfu
    desk.control("plan.dp").select_option(label="64")
    desk.settle()
    assert not said.inner_text()
    shows(desk, Design.read(DESIGN).change({"plan.micro_batch": 1, "plan.dp": 64}))


def test_pin_compare_and_undo(desk):
    desk.press_button("Set reference")
    desk.press("cluster.devices", "ArrowLeft")
    assert desk.page.locator("[data-kpi='step_s'] .sd-kpi-delta").inner_text().startswith("+")
    assert "reference" in desk.chart(1).locator("svg").text_content()
    desk.tab("Compare")
    differs = desk.page.get_by_role("region", name="Fields in which the designs differ")
    assert "cluster.devices" in differs.inner_text()
    desk.press_button("Undo")
    assert desk.page.locator("[data-kpi='step_s'] .sd-kpi-delta").inner_text() == "= reference"


def test_a_number_opens_to_its_formula_by_the_keyboard(desk):
    desk.page.locator("[data-kpi='mfu_shown']").focus()
    desk.page.keyboard.press("Enter")
    sheet = desk.page.get_by_role("dialog")
    sheet.wait_for()
    assert "flops_per_token" in sheet.inner_text()
    assert "arXiv 2204.02311" in sheet.inner_text()
    desk.page.keyboard.press("Escape")
    sheet.wait_for(state="hidden")
    assert desk.page.evaluate("() => document.activeElement.dataset.kpi") == "mfu_shown"


def test_every_control_has_a_name_for_a_screen_reader(desk):
    session = desk.page.context.new_cdp_session(desk.page)
    nodes = {n["nodeId"]: n for n in session.send("Accessibility.getFullAXTree")["nodes"]}
    nameless, found = [], 0
    for node in nodes.values():
        role = node.get("role", {}).get("value")
        if role in (
            "slider",
            "combobox",
            "textbox",
            "button",
            "tab",
            "spinbutton",
            "img",
        ) and not node.get("ignored"):
            found += 1
            if not node.get("name", {}).get("value", "").strip():
                nameless.append((role, node.get("backendDOMNodeId")))
    inside = [
        n
        for n in nameless
        if session.send("DOM.resolveNode", {"backendNodeId": n[1]}) and _in_desk(session, n[1])
    ]
    assert found > 40
    assert inside == []


def _in_desk(session, backend: int) -> bool:
    thing = session.send("DOM.resolveNode", {"backendNodeId": backend})["object"]["objectId"]
    answer = session.send(
        "Runtime.callFunctionOn",
        {
            "objectId": thing,
            "functionDeclaration": "function () { return Boolean(this.closest && this.closest('.sd-desk')) }",  # noqa: E501
            "returnByValue": True,
        },
    )
    return answer["result"]["value"]


def test_one_screen_holds_the_inputs_the_headline_and_both_pictures(desk):
    for what in (".sd-form", ".sd-strip", ".sd-line"):
        box = desk.page.locator(what).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 1440
        assert box["y"] + box["height"] <= 900, what
    for i in (0, 1):
        box = desk.chart(i).bounding_box()
        assert box["y"] + box["height"] <= 900
    wide = desk.page.evaluate(
        "() => [...document.querySelectorAll('.sd-desk, .sd-desk .sd-card')].filter(e "
        "=> e.scrollWidth > e.clientWidth + 1).length"
    )
    assert wide == 0, "nothing scrolls sideways"


def test_a_number_is_typed_beside_its_slider(desk):
    """What no step of the slider has: the box takes it, the slider and the figures follow."""
    box = desk.page.locator(".sd-row[data-field='cluster.devices'] .sd-typed")
    box.click()
    box.fill("2,000")
    desk.page.keyboard.press("Enter")
    desk.settle()
    assert box.input_value() == "2,000" == desk.readout("cluster.devices")
    shows(desk, Design.from_yaml(desk.design_text()))
    box.click()
    box.fill("a few")
    desk.page.keyboard.press("Enter")
    fault = desk.page.locator(".sd-row[data-field='cluster.devices'] .sd-fault")
    fault.filter(has_text="is not a number").wait_for()
    assert box.input_value() == "a few" and desk.readout("cluster.devices") == "2,000"


def test_figures_of_an_earlier_design_are_grey_until_the_answer_is_drawn(desk):
    """The kernel is held up by another cell, as one that computes is."""
    desk.run("import time; sound = desk.session.judge")
    desk.run("desk.session.judge = lambda *a: (time.sleep(3), sound(*a))[1]")
    try:
        desk.control("cluster.devices").focus()
        desk.page.keyboard.press("ArrowLeft")
        desk.page.wait_for_function(
            "() => getComputedStyle(document.querySelector('.sd-strip')).filter !== 'none'"
        )
        desk.page.locator(".sd-busy span").wait_for()
        assert not desk.page.locator(".sd-lost").is_visible()
        desk.settle()
        desk.page.wait_for_function("() => !document.querySelector('.sd-computing')")
        assert not desk.page.locator(".sd-busy span").is_visible()
    finally:
        desk.run("desk.session.judge = sound")


def test_a_method_shows_its_own_numbers_alone_under_titles_of_their_own(desk):
    """No number of the design before it stays behind."""
    shown = lambda: desk.page.locator(".sd-kpi").evaluate_all("e => e.map(x => x.dataset.kpi)")
    titles = desk.page.locator(".sd-pair .sd-card-title")
    before, heads = shown(), titles.all_inner_texts()
    assert "mfu_shown" in before
    desk.choose("job.method", "GRPO")
    assert not {"mfu_shown", "bubble_fraction"} & {*shown()}
    assert shown()[1] == "tokens_per_s_per_device"
    assert not {*heads} & {*titles.all_inner_texts()}
    assert desk.page.locator(".sd-pair .sd-fold").count() == 0
    desk.press_button("Undo")
    assert shown() == before and titles.all_inner_texts() == heads
