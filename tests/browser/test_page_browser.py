"""The same desk as a page: no code, and a desk of his own for every visitor."""

from __future__ import annotations

import os
import time
import urllib.request
from pathlib import Path

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
    log.write_text("\n".join(line.format(i, i) for i in range(1, 40)), encoding="utf-8")
    before, marks = desk.note("step_s"), desk.marks(1)
    desk.tab("File and report")
    desk.page.get_by_label("Log", exact=True).fill(str(log))
    desk.page.keyboard.press("Enter")
    desk.settle()
    desk.press_button("Learn")
    said = desk.page.get_by_text("A step took 6.5").first
    said.wait_for(timeout=PATIENCE_MS)
    assert "was foretold" in said.inner_text()
    assert desk.note("step_s") != before and desk.marks(1) != marks
    assert "measured here" in desk.chart(1).inner_html()
    if pictures := os.environ.get("SCANTLING_PICTURES"):
        desk.picture(Path(pictures) / "learn-file.png")
    desk.page.get_by_label("Folder", exact=True).first.fill(str(tmp_path / "reports"))
    desk.work("Render the report")
    (written,) = (tmp_path / "reports").glob("*.html")
    page = written.read_text(encoding="utf-8")
    assert "Measured here" in page and "1 measured step" in page
    desk.tab("Evidence")
    assert "measured here on" in desk.page.locator(".sd-chart:visible").last.inner_html()
    if pictures:
        desk.picture(Path(pictures) / "learn-evidence.png")
    desk.press_button("Undo")
    assert desk.note("step_s") == before
    assert desk.errors == []
