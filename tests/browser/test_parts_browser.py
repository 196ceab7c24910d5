"""A desk that a reader builds of the parts, in JupyterLab: the reference notebook, run as it is."""

from __future__ import annotations

import nbformat
import pytest
from scantling_widgets import shipped_files

from .browsing import PATIENCE_MS
from .conftest import ROOT

pytestmark = pytest.mark.browser
BOOK = shipped_files.notebook("design_desk").parent / "reference" / "15_desk_of_your_own.ipynb"
STANDS = "() => document.querySelectorAll('.sd-part .sd-chart[data-revision] svg').length >= 2"


@pytest.fixture
def page(lab, chrome):
    notebook = nbformat.read(BOOK, as_version=4)
    notebook.metadata["scantling"]["run"] = True
    nbformat.write(notebook, lab.work / "own.ipynb")
    page = chrome.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(lab.url.replace("design_desk.ipynb", "own.ipynb"), wait_until="domcontentloaded")
    page.wait_for_function(STANDS, timeout=2 * PATIENCE_MS)
    page.wait_for_selector(".widget-interact td", timeout=2 * PATIENCE_MS)
    yield page
    page.screenshot(path=ROOT / "build" / "parts.png", full_page=True)
    page.close()
    assert errors == []


def devices(page) -> str:
    return page.locator(".sd-part .sd-row[data-field='cluster.devices'] output").inner_text()


def test_a_desk_of_ten_lines_follows_its_slider(page):
    assert page.locator(".jp-RenderedText[data-mime-type*='error']").count() == 0
    assert devices(page) == "1,024", "the later cell has moved the desk above"
    part = page.locator(".sd-part .sd-strip-host")
    step = part.locator("[data-kpi='step_s'] .sd-kpi-value")
    energy = page.locator(".widget-label", has_text="Energy of the run")
    before = step.inner_text(), energy.inner_text()
    widths = page.eval_on_selector_all(".sd-part .sd-chart", "all => all.map(e => e.clientWidth)")
    assert min(widths) > 200, "the parts share the room of the box that holds them"
    slider = page.locator(".sd-part .sd-row[data-field='cluster.devices'] input.sd-range")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        "text => document.querySelector(\"[data-kpi='step_s'] .sd-kpi-value\").innerText !== text",
        arg=before[0],
        timeout=PATIENCE_MS,
    )
    page.wait_for_function("() => !document.querySelector('.sd-computing')", timeout=PATIENCE_MS)
    assert devices(page) != "1,024"
    assert energy.inner_text() != before[1]
