"""The same desk as a page: no code, and a desk of his own for every visitor."""

from __future__ import annotations

import time
import urllib.request

import pytest
from scantling.design.design import Design

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
        ("cluster.scale_out", 0.3),
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
