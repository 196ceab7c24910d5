"""The same desk as a page: no code, and a desk of his own for every visitor."""

from __future__ import annotations

import os
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from scantling.design.design import Design

from .browsing import PATIENCE_MS
from .conftest import FAULTY
from .test_desk_browser import shows
from .test_desk_pictures import violations

pytestmark = pytest.mark.browser


def test_a_page_without_code_and_a_desk_for_each_visitor(voila, visitor, chrome):
    first = visitor(voila.url)
    second = visitor(voila.url)
    start = first.readout("cluster.devices")
    assert second.readout("cluster.devices") == start

    step, embeds = first.kpi("step_s"), first.embeds()
    first.page.bring_to_front()
    first.drag("cluster.devices", 0.4)
    first.press("cluster.devices", "ArrowLeft")
    assert first.kpi("step_s") != step
    assert first.embeds() == embeds
    for field, share in (
        ("model.size", 0.35),
        ("model.experts", 0.4),
        ("cluster.scale_out_gbytes_per_s_per_device", 0.3),
    ):  # with the GPU count the four main sliders
        said, marks = first.readout(field), first.marks(1)
        first.drag(field, share)
        dragged = first.readout(field)
        assert dragged != said
        first.press(field, "ArrowRight")
        assert first.readout(field) != dragged
        assert first.marks(1) != marks
    assert first.embeds() == embeds
    shows(first, Design.from_yaml(first.design_text()))
    second.page.bring_to_front()
    assert (second.kpi("step_s"), second.readout("cluster.devices")) == (step, start), (
        "the other visitor's desk is as it was"
    )
    assert violations(second.page, ".sd-desk") == []
    with second.page.expect_download() as waiting:
        second.page.get_by_role("button", name="Download as CSV: Plans refused").click()
    assert waiting.value.suggested_filename == "plans-refused.csv"

    assert first.page.locator(".jp-InputArea:visible").count() == 0
    assert first.errors == second.errors == []
    assert chrome.refused == []


def test_a_dark_page_reads_and_says_an_error_in_a_callback(voila, visitor):
    desk = visitor(voila.url + "&theme=dark")
    assert desk.page.evaluate("() => document.body.dataset.jpThemeLight") == "false"
    assert violations(desk.page, ".sd-desk") == []
    desk.unfold("Job")
    assert not desk.page.locator(".sd-error").is_visible()
    desk.choose("job.optimizer", FAULTY)
    fault = desk.page.get_by_role("alert").filter(has_text="RuntimeError: put in by the tests")
    fault.wait_for()
    desk.press("cluster.devices", "ArrowLeft")  # the desk goes on
    shows(desk, Design.from_yaml(desk.design_text()))
    desk.page.get_by_role("button", name="Dismiss").click()
    fault.wait_for(state="hidden")
    assert desk.errors == []


@pytest.mark.parametrize("path", ["/", "/api/kernels"])
def test_without_the_token_there_is_only_the_login(voila, path):
    with urllib.request.urlopen(voila.base + path, timeout=10) as answer:
        assert "/login" in answer.url


def test_the_first_picture_is_there_after_a_warm_start(voila, visitor, capsys):
    visitor(voila.url)  # whoever came first pays for the caches
    begin = time.monotonic()
    page = visitor(voila.url)
    with capsys.disabled():  # some 5 s on a machine that does nothing else
        print(f"\n  page to both pictures: {time.monotonic() - begin:.1f} s")
    assert page.errors == []


def test_a_log_moves_the_desk_to_what_was_measured(voila, visitor, tmp_path):
    """A log of this design: the band narrows, the measured step stands on both pictures of the
    prediction, the report has a section of it; Undo takes it back."""
    desk = visitor(voila.url)
    log = tmp_path / "job.out"
    line = (
        " [2026-01-01 10:{:02d}:00] iteration {:8d}/ 50 | elapsed time per iteration (ms): 6500.0 |"
    )
    said = ["  world_size ...................................... 16384"]
    log.write_text("\n".join(said + [line.format(i, i) for i in range(1, 40)]), encoding="utf-8")
    before, marks = desk.note("step_s"), desk.marks(1)
    desk.tab("File and report")
    with desk.page.expect_download() as waiting:
        desk.page.get_by_label("Log", exact=True).set_input_files(log)
    assert waiting.value.suggested_filename == "calibration.yaml"
    said = desk.page.get_by_text("A step took 6.5").first
    said.wait_for(timeout=PATIENCE_MS)
    assert "was predicted" in said.inner_text()
    assert desk.note("step_s") != before and desk.marks(1) != marks
    assert "measured here" in desk.chart(1).inner_html()
    if pictures := os.environ.get("SCANTLING_PICTURES"):
        desk.picture(Path(pictures) / "learn-file.png")
    with desk.page.expect_download(timeout=2 * PATIENCE_MS) as waiting:
        desk.work("Render the report")
    page = waiting.value.path().read_text(encoding="utf-8")
    assert "Measured here" in page and "1 measured step" in page
    desk.tab("Evidence")
    assert "measured here on" in desk.page.locator(".sd-chart:visible").last.inner_html()
    if pictures:
        desk.picture(Path(pictures) / "learn-evidence.png")
    desk.press_button("Undo")
    assert desk.note("step_s") == before
    assert desk.errors == []


def test_the_readers_own_files_are_saved_and_opened(voila, visitor, tmp_path):
    """Nothing is written where the server is; what is saved is a download, what is opened a file
    that the reader chooses."""
    desk = visitor(voila.url)
    desk.press("cluster.devices", "ArrowLeft")
    design = Design.from_yaml(desk.design_text())
    with desk.page.expect_download() as waiting:
        desk.button("Save").click()
    saved = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(saved)
    assert saved.suffix == ".yaml" and Design.read(saved) == design
    desk.press_button("Undo")
    desk.page.get_by_label("File", exact=True).set_input_files(saved)
    desk.settle()
    desk.press_button("Load")
    assert Design.from_yaml(desk.design_text()) == design
    assert desk.errors == []


def test_a_link_holds_no_token_and_a_terminal_reads_it(voila, visitor, chrome):
    chrome.grant_permissions(["clipboard-read", "clipboard-write"])
    desk = visitor(voila.url)
    desk.press("cluster.devices", "ArrowLeft")
    desk.button("Copy link").click()
    desk.page.wait_for_timeout(500)
    copied = desk.page.evaluate("() => navigator.clipboard.readText()")
    assert "token" not in copied and "127.0.0.1" not in copied
    assert Design.read(copied) == Design.from_yaml(desk.design_text())


def test_the_page_is_dark_where_the_readers_system_is(voila, visitor):
    desk = visitor(voila.url)
    light = desk.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    desk.page.emulate_media(color_scheme="dark")
    desk.page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    desk.page.wait_for_timeout(1700)
    assert desk.page.evaluate("() => getComputedStyle(document.body).backgroundColor") != light
    assert violations(desk.page, ".sd-desk", ("color-contrast",)) == []


UNDER_THE_MOUSE = (
    ".sd-head button:has-text('Clear reference')",
    ".sd-head button:has-text('Undo')",
    ".sd-head button:has-text('Copy link')",
    ".sd-kpi",
    ".sd-tab[aria-selected=false]",
    ".sd-tab[aria-selected=true]",
    ".sd-panel .sd-button",
    ".sd-table td:nth-child(2)",
    ".sd-table .sd-link",
    ".sd-typed",
    ".sd-select",
    ".sd-fold",
    ".sd-group > summary",
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_pressed_or_under_the_mouse_reads(voila, visitor, theme):
    """WCAG 2.2, 1.4.3 for the states that a picture of the page at rest does not show."""
    desk = visitor(voila.url + f"&theme={theme}")
    desk.press_button("Set reference")
    desk.press("cluster.devices", "ArrowLeft")
    for name in ("Plans", "Compare"):
        desk.tab(name)
        for where in UNDER_THE_MOUSE:
            spot = desk.page.locator(f".sd-desk {where}").locator("visible=true").first
            if spot.count():
                spot.hover()
                desk.page.wait_for_timeout(50)
                assert violations(desk.page, ".sd-desk", ("color-contrast",)) == [], where


def _kernels(voila) -> int:
    children = psutil.Process(voila.process.pid).children(recursive=True)
    return sum(map(_is_kernel, children))


def _is_kernel(process: psutil.Process) -> bool:
    try:
        return "ipykernel" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it ended in between, a zombie too
        return False


def test_the_kernel_of_a_closed_page_ends_within_a_minute(voila, visitor):
    desk = visitor(voila.url)
    time.sleep(5)  # the next one is warmed up
    open_ = _kernels(voila)
    desk.page.goto("about:blank")
    until = time.monotonic() + 60
    while _kernels(voila) >= open_ and time.monotonic() < until:
        time.sleep(2)
    assert 1 <= _kernels(voila) < open_, "and the one that waits for the next visitor stays"
