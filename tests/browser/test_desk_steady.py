"""What comes after the first answer, moves to try and advice, finds its room kept: nothing below it
moves."""

from __future__ import annotations

import pytest
from scantling.design.design import Design
from scantling_widgets.desk import link

from .browsing import PATIENCE_MS
from .conftest import DESIGN

pytestmark = pytest.mark.browser
MANY_PLANS = {
    "cluster.devices": 10240,
    "model": {"size": 406e9, "moe": True, "experts": 16, "top_k": 2},
}
# the tops of the pictures and of the controls, each time that one of them has moved
WATCH = """() => {
  window.__tops = [];
  const of = e => Math.round(e.getBoundingClientRect().top + scrollY);
  const look = () => {
    const tops = [...document.querySelectorAll('.sd-pair .sd-chart, .sd-form, .sd-tabs')].map(of);
    if (JSON.stringify(tops) !== JSON.stringify(window.__tops.at(-1))) window.__tops.push(tops);
  };
  new MutationObserver(look).observe(document.body,
    { subtree: true, childList: true, attributes: true, characterData: true });
  new ResizeObserver(look).observe(document.querySelector('.sd-desk'));
  look();
}"""
COME = """() => document.querySelectorAll('.sd-moves .sd-button').length
  && !document.querySelector('.sd-line').textContent.includes('worked out')"""


@pytest.mark.parametrize("width", [1440, 1024, 420])
@pytest.mark.parametrize("fields", [{}, MANY_PLANS], ids=["dense", "experts"])
def test_moves_and_advice_that_come_late_push_nothing(voila, visitor, chrome, width, fields):
    """The same of a design whose advice takes a dozen searches of many plans each."""
    design = Design.read(DESIGN).change(fields)
    desk = visitor(f"{voila.url}#{link.write(design)}" if fields else voila.url)
    desk.page.set_viewport_size({"width": width, "height": 900})
    desk.press("job.seq_len", "ArrowLeft")
    desk.page.evaluate(WATCH)
    waits = desk.page.locator(".sd-waits")
    assert "being tried" in waits.inner_text(), "nothing has come yet"
    assert "worked out" in desk.page.locator(".sd-line").inner_text()
    desk.page.wait_for_function(COME, timeout=2 * PATIENCE_MS)
    desk.page.wait_for_timeout(300)
    assert len(desk.page.evaluate("() => window.__tops")) == 1
    moves = desk.page.locator(".sd-moves .sd-button")
    assert all(
        cut == 0
        for cut in moves.evaluate_all(
            "all => all.map(e => Math.max(0, e.scrollHeight - e.clientHeight))"
        )
    )
