"""The same desk as a page: no code, and a desk of his own for every visitor."""
from __future__ import annotations

import urllib.request

import pytest

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
    second.page.bring_to_front()
    assert (second.kpi("step_s"), second.readout("cluster.devices")) == (step, start), "the other visitor's desk is as it was"

    assert first.page.locator(".jp-InputArea:visible").count() == 0
    assert first.errors == second.errors == []
    assert chrome.refused == []


@pytest.mark.parametrize("path", ["/", "/api/kernels"])
def test_without_the_token_there_is_only_the_login(voila, path):
    with urllib.request.urlopen(voila.base + path, timeout=10) as answer:
        assert "/login" in answer.url
