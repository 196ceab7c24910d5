"""Whatever a move makes the desk say, what stands below finds its place kept."""

from __future__ import annotations

import pytest

from .browsing import PATIENCE_MS

pytestmark = pytest.mark.browser
# sentences of one line and of four, with a button to press and without, and a longer title
MOVES = (
    ("cluster.devices", "ArrowLeft"),
    ("cluster.devices", "ArrowLeft"),
    ("cluster.devices", "Home"),
    ("job.global_batch", "ArrowLeft"),
    ("job.seq_len", "ArrowRight"),
)
LINE = 50  # letters of a line of the desk on a phone
ADVISED = "() => !document.querySelector('.sd-line').textContent.includes('worked out')"
HEIGHTS = """() => Object.fromEntries(
  ['.sd-head', '.sd-strip-host', '.sd-message', '.sd-tale'].map(
    name => [name, Math.round(document.querySelector(`.sd-desk ${name}`).offsetHeight)]))"""


@pytest.mark.parametrize("width", [1440, 1024, 420])
def test_a_move_of_a_slider_moves_nothing_below(voila, visitor, width):
    desk = visitor(voila.url)
    desk.page.set_viewport_size({"width": width, "height": 900})
    desk.page.wait_for_function(ADVISED, timeout=PATIENCE_MS)
    desk.page.wait_for_timeout(300)
    opened, line = desk.page.evaluate(HEIGHTS), desk.page.locator(".sd-line")
    lengths = [len(line.inner_text())]
    for field, key in MOVES:
        desk.press(field, key)
        assert desk.page.evaluate(HEIGHTS) == opened, (field, key)
        desk.page.wait_for_function(ADVISED, timeout=PATIENCE_MS)
        lengths.append(len(line.inner_text()))
        assert desk.page.evaluate(HEIGHTS) == opened, (field, key, "advised")
    assert max(lengths) > min(lengths) + LINE, "sentences of fewer lines and of more"


TABS = ("Schedule", "Network", "Roofline", "Reliability", "Cost", "Evidence")
# drawn texts that a picture cuts off: it shows nothing outside of its frame
CUT = """() => [...document.querySelectorAll('.sd-desk .sd-chart svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const at = text.getBoundingClientRect();
    return text.textContent.trim() && at.width && getComputedStyle(text).opacity !== '0'
      && (at.left < box.left - 1 || at.right > box.right + 1);
  }).map(text => text.textContent);
})"""


def test_no_title_or_label_of_a_picture_is_cut_on_a_telephone(voila, visitor):
    desk = visitor(voila.url)
    desk.page.set_viewport_size({"width": 390, "height": 844})
    for name in TABS:
        desk.tab(name)
        desk.page.wait_for_timeout(300)
        assert desk.page.evaluate(CUT) == [], name
    assert desk.page.evaluate("() => document.documentElement.scrollWidth") <= 390
