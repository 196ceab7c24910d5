"""A kernel that is gone, a page that is loaded again, a link that a colleague opens, and screens
from a telephone to a wall."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from scantling_widgets.desk import link

from .conftest import ROOT
from .test_desk_pictures import violations

pytestmark = pytest.mark.browser
SIZES = (420, 768, 1024, 1440, 2560)
# what lies beyond the desk's right edge and in no box that scrolls, and text that its own box cuts
CUT = """() => {
  const out = [], desk = document.querySelector('.sd-desk'), right = desk.getBoundingClientRect().right + 1;
  const scrolls = e => { for (let p = e.parentElement; p && p !== desk; p = p.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX)) return true; return false; };
  for (const e of desk.querySelectorAll('button, input, select, .sd-kpi, .sd-card, .sd-title, .sd-line, .sd-story')) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > right && !scrolls(e)) out.push('beyond: ' + e.className + ' ' + e.textContent.slice(0, 30));
  }
  for (const e of desk.querySelectorAll('.sd-kpi-value, .sd-kpi-note, .sd-kpi-label, .sd-line, .sd-tab, .sd-card-title, .sd-moves .sd-button'))
    if (e.clientWidth && e.scrollWidth > e.clientWidth + 1) out.push('cut: ' + e.className + ' ' + e.textContent);
  return out;
}"""  # noqa: E501


def kernels(server) -> dict[int, int]:
    """Processor time that each kernel below a server has used so far [ticks]."""
    spent = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = status.read_text().rsplit(")", 1)
        except OSError:
            continue
        fields = rest.split()
        if int(fields[1]) == server.process.pid:
            spent[int(name.split(" ", 1)[0])] = int(fields[11]) + int(fields[12])
    return spent


def at_rest(server, seconds: float = 120) -> dict[int, int]:
    """The same once no kernel works: one that waits for the next visitor may still be starting."""
    spent, until = kernels(server), time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(1)
        before, spent = spent, kernels(server)
        if before.keys() == spent.keys() and all(spent[pid] - before[pid] < 5 for pid in spent):
            break
    return spent


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="finds the kernels in /proc")
def test_a_dead_kernel_is_said_and_the_address_opens_the_design_again(voila, visitor):
    desk = visitor(voila.url)
    before = at_rest(voila)
    desk.press("cluster.devices", "ArrowLeft", 2)
    after = kernels(voila)
    ours = max(before, key=lambda pid: after.get(pid, 0) - before[pid])
    there = desk.readout("cluster.devices"), desk.kpi("likely.days")
    address, drawn = desk.page.url, desk.marks(1)
    assert "#design=1." in desk.page.url
    assert link.read(desk.page.url).cluster.devices == int(there[0].replace(",", ""))
    os.kill(ours, signal.SIGKILL)
    desk.control("cluster.devices").focus()
    desk.page.keyboard.press("ArrowLeft")
    banner = desk.page.get_by_role("alert").filter(has_text="No answer")
    banner.wait_for(timeout=60_000)
    grey = desk.page.locator(".sd-desk").evaluate("e => getComputedStyle(e).filter")
    assert "grayscale" in grey
    assert desk.readout("cluster.devices") == there[0], "no control runs ahead of the picture"
    assert desk.marks(1) == drawn and desk.page.url == address, "the last picture and link stay"
    elsewhere = visitor(address)  # the address alone opens it, in a browser that has seen nothing
    assert (elsewhere.readout("cluster.devices"), elsewhere.kpi("likely.days")) == there
    desk.picture(ROOT / "build" / "pictures" / "lost.png")
    desk.errors.clear()
    with desk.page.expect_navigation():
        banner.get_by_role("button", name="Open this design again").click()
    desk.page.wait_for_function(
        "said => document.querySelector(\"[data-field='cluster.devices'] output\")?.textContent === said",  # noqa: E501
        arg=there[0],
        timeout=120_000,
    )
    desk.settle()
    assert desk.kpi("likely.days") == there[1]
    assert not banner.is_visible()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="finds the kernels in /proc")
def test_a_paused_server_is_not_called_gone_and_the_page_goes_on(voila, visitor):
    desk = visitor(voila.url)
    os.kill(voila.process.pid, signal.SIGSTOP)
    try:
        desk.control("cluster.devices").focus()
        desk.page.keyboard.press("ArrowLeft")
        banner = desk.page.get_by_role("alert").filter(has_text="No answer")
        banner.wait_for(timeout=60_000)
        assert "busy, paused or gone" in banner.inner_text()
        assert desk.page.locator(".sd-spoken").inner_text() == "computing"
    finally:
        os.kill(voila.process.pid, signal.SIGCONT)
    banner.wait_for(state="hidden", timeout=60_000)
    desk.settle()
    assert desk.page.locator(".sd-spoken").inner_text() == "finished"
    assert desk.readout("cluster.devices") == "14,336"
    assert desk.errors == []


def test_a_colleague_opens_the_link(voila, visitor):
    from scantling.design.design import Design

    from .conftest import DESIGN

    design = Design.read(DESIGN).change({"cluster.devices": 4096, "notes": "for the review"})
    desk = visitor(f"{voila.url}#{link.write(design)}")
    desk.page.wait_for_function(
        "() => document.querySelector(\"[data-field='cluster.devices'] output\").textContent === '4,096'"  # noqa: E501
    )
    bad = visitor(f"{voila.url}#design=1.AAAA")
    bad.page.get_by_text("cut short or changed").first.wait_for()
    assert bad.readout("cluster.devices") == "16,384"


def test_the_size_slider_moves_at_every_press(desk):
    for key, presses in (("ArrowRight", 4), ("ArrowLeft", 8)):
        seen = [desk.readout("model.size")]
        for _ in range(presses):
            desk.press("model.size", key)
            seen.append(desk.readout("model.size"))
        assert len(set(seen)) == len(seen), seen


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_cut_on_any_screen(voila, visitor, theme):
    desk = visitor(voila.url + f"&theme={theme}")
    desk.page.locator(".sd-moves .sd-button").first.wait_for(timeout=60_000)
    for width in SIZES:
        desk.page.set_viewport_size({"width": width, "height": 900})
        desk.page.wait_for_timeout(600)
        desk.settle()
        desk.picture(ROOT / "build" / "pictures" / f"page-{theme}-{width}.png")
        assert desk.page.evaluate(CUT) == [], width
        assert desk.page.evaluate("() => document.documentElement.scrollWidth") <= width
        if width in (420, 1440):
            assert violations(desk.page, ".sd-desk") == [], width
