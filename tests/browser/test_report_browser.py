"""The report in a real browser with the network off: nothing asked for, nothing in the console,
light, dark and on paper."""

from __future__ import annotations

import re

import pytest
import scantling
from markupsafe import Markup
from scantling.design.design import Design
from scantling_widgets import report
from scantling_widgets.chromium import chromium
from scantling_widgets.pages import gallery
from scantling_widgets.report import compare, paper
from scantling_widgets.report.page import document
from scantling_widgets.shipped_files import example

from .test_desk_pictures import violations

pytestmark = pytest.mark.browser

SIZES = {"A4": (210, 297), "Letter": (215.9, 279.4)}  # millimetres
MUCH = {
    "name": (
        "A mixture of experts on an awkward number of devices in two places, with a name of "
        "two lines and everything asked for at once"
    ),
    "model": "deepseek-v3",
    "cluster": {
        "accelerator": "h100-sxm",
        "devices": 3000,
        "scale_out": "rocev2-400",
        "oversubscription": 3.0,
        "sites": 2,
    },
    "job": {"tokens": 30e12, "seq_len": 8192, "global_batch": 3000, "precision": "fp8-block"},
    "constraints": {
        "deadline_days": 20,
        "budget_usd": 2e6,
        "min_mfu": 0.6,
        "max_checkpoint_overhead": 1e-4,
        "min_goodput": 0.999,
        "max_lost_work_s": 30,
        "max_recovery_s": 20,
        "max_checkpoint_stall_s": 0.01,
        "survive": "rack",
        "max_power_mw": 1,
    },
}

CONTRAST = """() => {
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const lum = c => { const [r, g, b] = rgb(c).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
  const seen = [];
  for (const e of document.querySelectorAll('main *, footer *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest('style, title, desc') || (e.closest('svg') && e.namespaceURI.includes('svg') && e.tagName !== 'text')) continue;
    const svg = e.closest('svg');
    const ink = svg ? getComputedStyle(e).fill : getComputedStyle(e).color;
    if (svg && /^#|rgb\\(17, 17, 17|rgb\\(255, 255, 255/.test(ink)) continue;   // labels on a bar choose black or white by the bar
    const [a, b] = [lum(ink), lum(ground(e))].sort((x, y) => y - x);
    seen.push([(a + 0.05) / (b + 0.05), e.tagName, e.textContent.trim().slice(0, 40), ink]);
  }
  return seen.sort((x, y) => x[0] - y[0]).slice(0, 5);
}"""  # noqa: E501


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A design, a refusal and a comparison, as files."""

    folder, made = tmp_path_factory.mktemp("reports"), {}
    named = {
        name: Design.read(example(name))
        for name in (
            "llama-3.1-405b",
            "case-5-deepseek-v3",
            "case-6-100k-gpus",
            "case-2-1t-dense-8-v100",
        )
    }
    for name, design in {**named, "much": Design.from_data({"scantling": 1, **MUCH})}.items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(
            document(
                Markup(report.Report(design).html()),
                title=design.title,
                date="2026-11-21",
                footer="scantling",
            ),
            encoding="utf-8",
        )
    made["comparison"] = folder / "comparison.html"
    results = [
        scantling.assess(Design.read(example(n))).as_dict()
        for n in ("llama-3.1-405b", "case-5-deepseek-v3")
    ]
    made["comparison"].write_text(compare.comparison(results, date="2026-11-21"), encoding="utf-8")
    return made


@pytest.fixture
def opened(chrome, pages):
    """Open a page from disk with the network off; afterwards it has asked for nothing and
    complained of nothing."""
    contexts = []

    def open_page(name, *, scheme="light", width=1100):
        context = chrome.browser.new_context(
            offline=True, color_scheme=scheme, viewport={"width": width, "height": 900}
        )
        contexts.append((context, asked := [], said := []))
        page = context.new_page()
        page.on("request", lambda r: asked.append(r.url))
        page.on("console", lambda m: said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.goto(pages[name].as_uri())
        return page

    yield open_page
    for context, asked, said in contexts:
        assert [u for u in asked if not u.startswith("file:")] == []
        assert len(asked) == 1
        assert said == []
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "name", ["llama-3.1-405b", "case-5-deepseek-v3", "case-2-1t-dense-8-v100", "comparison"]
)
def test_reads_in_light_and_dark(opened, name, scheme):
    page = opened(name, scheme=scheme)
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) > 600) == (scheme == "light")
    worst = page.evaluate(CONTRAST)
    assert worst[0][0] >= 4.5, worst


def test_pictures_are_drawn_and_named(opened):
    page = opened("llama-3.1-405b")
    pictures = page.get_by_role("img")
    assert pictures.count() >= 4
    for i in range(pictures.count()):
        box = pictures.nth(i).bounding_box()
        assert box["width"] > 400
        assert box["height"] > 60
        assert len(pictures.nth(i).get_attribute("aria-label")) > 20
    assert page.locator("figure svg path").count() > 30


@pytest.mark.parametrize("name", ["llama-3.1-405b", "case-6-100k-gpus", "much", "comparison"])
def test_no_label_leaves_its_picture(opened, name):
    """A picture clips what stands outside of it."""
    page = opened(name)
    cut = page.evaluate("""() => [...document.querySelectorAll('svg')].flatMap(svg => {
      const box = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('text')].filter(t => t.textContent.trim()).filter(t => {
        const at = t.getBoundingClientRect();
        return at.left < box.left - 1 || at.right > box.right + 1 || at.top < box.top - 1
          || at.bottom > box.bottom + 1; }).map(t => t.textContent); })""")
    assert page.locator("svg text").count() > 10
    assert cut == []


@pytest.mark.parametrize("width", [380, 800, 1600])
def test_nothing_is_wider_than_the_window(opened, width):
    page = opened("case-5-deepseek-v3", width=width)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert (
        page.locator(".alternatives :is(td, th)").evaluate_all(
            "cells => cells.filter(c => c.scrollWidth > c.clientWidth + 1).map(c => c.textContent)"
        )
        == []
    ), "no figure runs into the next"
    assert violations(page, "body") == []


@pytest.mark.parametrize("name", ["case-5-deepseek-v3", "much"])
def test_the_alternatives_are_read_whole_on_a_telephone(opened, name):
    page = opened(name, width=360)
    widths = page.locator(".table:has(.alternatives)").evaluate(
        "e => [e.scrollWidth, e.clientWidth]"
    )
    assert widths[0] <= widths[1]


def test_a_refusal_is_said_in_words(opened):
    page = opened("case-2-1t-dense-8-v100")
    said = page.locator("body").inner_text()
    assert "No-go" in said and "no plan can hold this model" in said
    assert page.locator("svg").count() == 0


@pytest.mark.parametrize(
    "name", ["llama-3.1-405b", "case-5-deepseek-v3", "case-6-100k-gpus", "much"]
)
def test_what_comes_before_the_appendix_is_one_page(chrome, pages, name):
    for width, height in SIZES.values():
        with chrome.browser.new_context(
            offline=True, viewport={"width": round((width - 26) * 96 / 25.4), "height": 900}
        ) as context:
            page = context.new_page()
            page.emulate_media(media="print")
            page.goto(pages[name].as_uri())
            ends, breaks, first = (
                page.evaluate("""() => { const plan = document.querySelector('#plan');
                return [plan.previousElementSibling.getBoundingClientRect().bottom, getComputedStyle(plan).breakBefore, plan.firstElementChild.textContent]; }""")  # noqa: E501
            )
            assert (breaks, first) == ("page", "Appendix")
            assert 300 < ends <= (height - 25) * 96 / 25.4, (
                "the margins of the sheet are 12 and 13 mm above and below"
            )


@pytest.mark.parametrize(("sheet", "width", "height"), [("A4", 595, 842), ("Letter", 612, 792)])
def test_prints(pages, sheet, width, height):
    pdf = paper.print_pdf(chromium(), pages["llama-3.1-405b"], sheet)
    assert pdf.startswith(b"%PDF")
    assert len(pdf) < 3_000_000
    boxes = {
        tuple(round(float(x)) for x in box.split())
        for box in re.findall(rb"/MediaBox \[([\d. ]+)\]", pdf)
    }
    assert boxes
    assert all(abs(w - width) <= 1 and abs(h - height) <= 1 for *_, w, h in boxes)
    assert 2 <= len(re.findall(rb"/Type /Page\b", pdf)) <= 14


def test_the_command_prints(tmp_path):
    from scantling.cli.app import main

    assert (
        main(["report", str(example("case-2-1t-dense-8-v100")), "-o", str(tmp_path), "--pdf"]) == 4
    )
    assert (tmp_path / "case-2-1t-dense-8-v100.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("width", [360, 1280])
def test_the_index_reads_on_a_phone(chrome, tmp_path, width):
    """One column that is not wider than the window, letters of 12 pixels and more; and a title, a
    heading and a description for a search engine."""
    file = tmp_path / "index.html"
    named = ("llama-3.1-405b", "case-5-deepseek-v3", "case-2-1t-dense-8-v100")
    made = {name: scantling.assess(example(name)).as_dict(advice=False) for name in named}
    entries = [gallery.entry(name, data) for name, data in made.items()]
    file.write_text(gallery.index(entries), encoding="utf-8")
    with chrome.browser.new_context(viewport={"width": width, "height": 800}) as context:
        shown = context.new_page()
        shown.goto(file.as_uri())
        assert shown.evaluate("() => document.documentElement.scrollWidth") <= width
        small = shown.evaluate(
            "() => [...document.querySelectorAll('main *')].filter(e => e.innerText"
            " && parseFloat(getComputedStyle(e).fontSize) < 12).length"
        )
        assert small == 0
        cards = shown.locator(".cards li")
        assert cards.count() == len(named)
        assert cards.first.bounding_box()["width"] > 250
        assert shown.locator("h1").count() == 1
        assert shown.title() and shown.locator("meta[name=description]").get_attribute("content")
