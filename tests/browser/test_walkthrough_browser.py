"""A walkthrough in a browser: the rendered page with the network off, and the notebook in
JupyterLab; one question wrong, then right."""

from __future__ import annotations

import re
import shutil

import pytest
import scantling_walkthroughs as learn
from scantling_widgets.pages import walkthroughs

from .browsing import PATIENCE_MS
from .test_desk_pictures import violations
from .test_report_browser import CONTRAST

pytestmark = pytest.mark.browser

NAME = "02_memory_wall"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("walk") / f"{NAME}.html"
    path.write_text(walkthroughs.rendered(walkthroughs.source("02")), encoding="utf-8")
    return path


@pytest.fixture
def opened(chrome, page_file):
    """The rendered page, opened with the network off; afterwards it has asked for nothing and
    complained of nothing."""
    contexts = []

    def open_page(scheme="light", width=1000):
        context = chrome.browser.new_context(
            offline=True, color_scheme=scheme, viewport={"width": width, "height": 900}
        )
        contexts.append((context, asked := [], said := []))
        page = context.new_page()
        page.on("request", lambda r: asked.append(r.url))
        page.on("console", lambda m: said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.goto(page_file.as_uri())
        return page

    yield open_page
    for context, asked, said in contexts:
        assert [u for u in asked if not u.startswith("file:")] == []
        assert said == []
        context.close()


def card(page, ident):
    return page.locator(".scl-card").filter(
        has=page.locator(".scl-head code", has_text=re.compile(f"^{ident}$"))
    )


def feedback(ident, slip):
    """The text of a slip as a reader sees it."""
    w = learn.walkthrough("02")
    return w.question(ident).slips[slip].says.replace("`", "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_telephone_all_of_it_is_read_without_scrolling_sideways(opened, scheme):
    page = opened(scheme, width=390)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    wide = page.locator(".scl:has(.scl-levels)").evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length"
    )
    assert wide == 0, "the rubric"
    assert violations(page, "body") == []


def test_the_rendered_page_checks_answers_offline(opened):
    page = opened()
    assert page.get_by_role("heading", level=1).inner_text() == "Beat the memory wall"
    q = card(page, "card")
    q.get_by_role("textbox").fill("80 GB")
    q.get_by_role("button", name="Check").click()
    assert feedback("card", 2) in q.get_by_role("status").inner_text()
    q.get_by_role("textbox").fill("85.5")
    q.get_by_role("textbox").press("Enter")
    said = " ".join(q.get_by_role("status").inner_text().split())
    assert "Right 85.5 GB." in said, "the word once, then the value"
    choice = card(page, "flight")
    choice.get_by_role("radio").nth(0).check()
    choice.get_by_role("button", name="Check").click()
    assert "twice as many are in flight" in choice.get_by_role("status").inner_text()
    choice.get_by_role("radio").nth(1).check()
    choice.get_by_role("button", name="Check").click()
    assert "Right" in choice.get_by_role("status").inner_text()
    text = card(page, "launch")
    text.get_by_role("textbox").fill("Fragmentation. We recompute a layer.")
    text.get_by_role("button", name="Check").click()
    assert "2 of 3" in text.get_by_role("status").inner_text()
    assert (
        page.locator(".scl-tally").inner_text()
        == f"2 of {len(learn.walkthrough('02').questions)} right"
    )


@pytest.mark.parametrize(
    ("plan", "status"),
    [
        ("tp 4, pp 8, dp 2", "right"),
        ("tp=16 pp=2 dp=2", "near"),  # a quarter slower than the best
        ("tp=16 pp=1 dp=4", "wrong"),
        ("tp 3, pp 8, dp 2", "wrong"),
        ("tp 8", "unreadable"),
        ("tp 1, pp 64, dp 1", "wrong"),  # it fits, and is far from the best
    ],
)
def test_the_page_judges_plans_by_what_the_search_found(opened, plan, status):
    box = card(opened(), "plan")
    box.get_by_role("textbox").fill(plan)
    box.get_by_role("button", name="Check").click()
    assert box.locator(".scl-verdict").get_attribute("class") == f"scl-verdict {status}"


def test_answers_and_hints_are_folded_until_they_are_opened(opened):
    page = opened()
    q = card(page, "state")
    assert page.locator("details[open]").count() == 0
    assert not q.get_by_text("Which bytes are divided").is_visible()
    assert not q.get_by_text("Worked answer").is_visible(), "a try or a hint comes first"
    q.get_by_role("button", name="Check").click()
    assert "Type an answer first" in q.get_by_role("status").inner_text()
    q.get_by_text("Hint 1").click()
    assert q.get_by_text("Which bytes are divided").is_visible()
    assert not q.get_by_text("N = ").is_visible()
    q.get_by_text("Worked answer").click()
    assert q.locator("details.scl-answer strong").is_visible()


def test_the_page_answers_as_the_kernel_does(opened):
    """The page's own check against the library's, over every number of the walkthrough and every
    slip."""
    page, w = opened(), learn.walkthrough("02")
    numbers = [q for q in w.questions if q.kind == "number"]
    assert numbers
    for q in numbers:
        given = [learn.right_answer(q)] + [s.value / q.scale for s in q.slips] + [123456.789]
        box = card(page, q.id)
        for value in given:
            box.get_by_role("textbox").fill(repr(float(value)))
            box.get_by_role("button", name="Check").click()
            kernel = learn.check(f"02.{q.id}", float(value))
            assert (
                box.locator(".scl-verdict").get_attribute("class") == f"scl-verdict {kernel.status}"
            ), (q.id, value)


TYPED = {
    "state": (
        "66.1 GB",
        "529 Gb",
        "61.6 GiB",
        "66144 MB",
        "66.1e9 bytes",
        "6.6E1",
        "70.55 * (6/8 + 12/64)",
        "(6/8 + 12/64) × 70.55 GB",
        "61.6",
        "529.2",
        "66144",
        "-66",
        "0",
        "7,9",
        "66,1 GB",
        "66.144,0 MB",
        "66'144 MB",
        "1.024.000 MB",
        "1,2,3",
        "66 apples",
        "five",
        "1e400",
    ),
    "scores": ("65.3%", "65 percent", "65.3 per cent", "0.653", "64/98*100", "64/(34+64)"),
    "offload": ("105 ms", "0.105 s", "0.105", "1.75e-3 min", "105e3 us"),
    "plan": (
        "tp 4, pp 8, dp 2",
        "TP=4 PP=8 DP=2",
        "tp4 pp8 dp2",
        "4 x 8 x 2",
        "eight",
        "tp 4, pp 8",
    ),
}


def test_the_page_reads_what_is_typed_as_the_kernel_does(opened):
    page = opened()
    for ident, typed in TYPED.items():
        for text in typed:
            box = card(page, ident)
            box.get_by_role("textbox").fill(text)
            box.get_by_role("button", name="Check").click()
            assert (
                box.locator(".scl-verdict").get_attribute("class")
                == f"scl-verdict {learn.check(f'02.{ident}', text).status}"
            ), (ident, text)


def test_the_scorecard_of_the_page_counts_as_a_session_does(opened):
    """Answers, tries and hints give the same points and the same things to do again as in the
    kernel."""
    page, session = opened(), learn.begin("02")
    board = page.locator(".scl-rubric")
    assert "Nothing is answered yet" in board.inner_text()
    assert board.locator("tr").count() == 10
    for ident, answers in {
        "card": ("80", "85.5"),
        "state": ("66.1",),
        "layer": ("5.74", "1.43", "2.87"),
        "scores": ("34.7",),
    }.items():
        for text in answers:
            card(page, ident).get_by_role("textbox").fill(text)
            card(page, ident).get_by_role("button", name="Check").click()
            session.check(ident, text)
    card(page, "flight").get_by_text("Hint 1").click()
    session.hint("flight")
    card(page, "flight").get_by_role("radio").nth(1).check()
    card(page, "flight").get_by_role("button", name="Check").click()
    session.check("flight", "b")
    card(page, "flight").get_by_text("Worked answer").click()  # after it was right: costs nothing
    session.answer("flight")
    theirs, ours = session.scorecard(), board.inner_text()
    assert f"{theirs.points:.1f} of {theirs.most:.0f} points: {theirs.level.name}" in ours
    for axis in theirs.axes:
        assert re.search(rf"{axis.axis.name}\s+{axis.points:.1f} of {axis.most:.0f}", ours), (
            axis,
            ours,
        )
        assert axis.shows in ours
    assert [q.id for q, _ in theirs.redo] == board.locator("li code").all_inner_texts()
    page.evaluate(
        "() => { window.print = () => { window.sheet = "
        "document.querySelector('.scl-sheet').textContent; }; }"
    )
    board.get_by_role("button", name="Print the score card").click()
    sheet = page.evaluate("window.sheet")
    assert (
        page.locator("h1").first.inner_text() in sheet
        and f"{theirs.points:.1f} of {theirs.most:.0f} points" in sheet
    )
    for axis in theirs.axes:
        assert axis.axis.name in sheet and axis.axis.mid in sheet and axis.axis.staff in sheet
    assert page.locator(".scl-sheet").count() == 0, "the page is as it was"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_reads_in_light_and_dark(opened, scheme):
    page = opened(scheme)
    page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true })")
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) > 600) == (scheme == "light")
    worst = page.evaluate(CONTRAST)
    assert worst[0][0] >= 4.5, worst


@pytest.mark.parametrize("width", [380, 800])
def test_nothing_is_wider_than_the_window(opened, width):
    page = opened(width=width)
    page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_in_jupyterlab_a_wrong_answer_is_told_why_and_a_right_one_counts(lab, chrome):
    shutil.copy(walkthroughs.source("02"), lab.work / f"{NAME}.ipynb")
    page = chrome.new_page()
    page.goto(
        f"{lab.base}/doc/tree/{NAME}.ipynb?token={lab.token}",
        wait_until="domcontentloaded",
        timeout=2 * PATIENCE_MS,
    )
    page.wait_for_function(
        (
            "() => "
            "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status "
            "=== 'idle'"
        ),
        timeout=2 * PATIENCE_MS,
    )
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    q = (
        page.locator(".jp-OutputArea")
        .filter(has=page.locator(".scl-head code", has_text=re.compile("^card$")))
        .last
    )
    entry = q.get_by_role("textbox")
    entry.wait_for(timeout=2 * PATIENCE_MS)
    entry.fill("80")
    entry.press("Enter")
    told = q.locator(".scl-verdict")
    told.filter(has_text=feedback("card", 2)).wait_for(timeout=PATIENCE_MS)
    q.get_by_text("Hint 1").click()
    q.get_by_text("MiB are powers of two").wait_for(timeout=PATIENCE_MS)
    entry.fill("85.5 GB")
    entry.press("Enter")
    q.get_by_role("button", name="Check").click()
    told.filter(has_text=re.compile(r"Right\s*Your answer: 85\.5 GB\s*85\.5 GB")).wait_for(
        timeout=PATIENCE_MS
    )
    page.get_by_text(re.compile(r"of \d+ points: mid")).wait_for(
        timeout=PATIENCE_MS
    )  # the scorecard at the end has followed
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:close', {}).catch(() => 0)")
    page.close()
