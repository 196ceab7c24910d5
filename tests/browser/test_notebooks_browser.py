"""JupyterLite with the notebooks: they run in the page, and nothing leaves the origin."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import scantling

from . import browsing

ROOT = Path(__file__).parents[2]
BUILT = os.environ.get("NOTEBOOKS")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not BUILT, reason="no JupyterLite (make lite; NOTEBOOKS=DIR)"),
]
BOOKS = sorted(
    book.relative_to(ROOT / "notebooks").with_suffix("").as_posix()
    for book in (ROOT / "notebooks").rglob("*.ipynb")
    if book.stem != "thousand_designs"  # works in processes, which a page has none of
)
_ALWAYS = (
    "reference/02_pipeline_bubble",
    "walkthroughs/04_moe",
)  # the others: make test-site ALL=1
_BELOW = "some/where"  # the folder stands below the root of its server
_START_MS = 3 * browsing.PATIENCE_MS
# a kernel that has run nothing says "Unknown", one that has run all says "Idle"
_SAYS = "word => document.querySelector('#jp-main-statusbar')?.textContent.includes(word)"
_ERRORS = '.jp-RenderedText[data-mime-type="application/vnd.jupyter.error"]'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("site")
    (root / "some").mkdir()
    (root / _BELOW).symlink_to(Path(BUILT).resolve(), target_is_directory=True)
    with browsing.serving(root) as address:
        yield f"{address}/{_BELOW}/"


def run(context, url: str):
    """The page of a notebook whose cells have all run."""
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector(".jp-CodeCell", timeout=_START_MS)
    page.wait_for_function(_SAYS, arg="Unknown", timeout=_START_MS)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()
    page.wait_for_function(_SAYS, arg="Idle", timeout=_START_MS)
    return page


def test_the_front_page_lists_every_notebook(served):
    with browsing.browser() as context:
        page = context.new_page()
        page.goto(served)
        page.wait_for_selector(".jp-MarkdownViewer li a", timeout=_START_MS)
        there = {a.get_attribute("href") for a in page.locator(".jp-MarkdownViewer li a").all()}
        assert context.refused == []
    for name in BOOKS:
        assert any(f"{name.split('/')[-1]}.ipynb" in (link or "") for link in there), name


def test_a_telephone_opens_a_notebook_over_its_whole_width(served):
    """The front page lists them there too, each in a page without JupyterLab's panels."""
    with browsing.browser(420) as context:
        page = context.new_page()
        page.goto(served)
        links = [a.get_attribute("href") for a in page.locator("li a").all()]
        for name in BOOKS:
            assert any(link.endswith(f"{name}.ipynb") for link in links), name
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 420
        page.goto(served + next(link for link in links if "design_desk" in link))
        page.wait_for_selector(".jp-CodeCell", timeout=_START_MS)
        assert page.locator(".jp-NotebookPanel").bounding_box()["width"] > 400
        assert context.refused == []


def test_the_desk_runs_and_nothing_leaves_the_origin(served):
    """The same numbers as here, and pictures whose `sort: null` has arrived."""
    design = scantling.Design.from_yaml((ROOT / "gallery/designs/llama-3.1-405b.yaml").read_text())
    days = scantling.assess(design).days
    with browsing.browser() as context:
        asked = []
        context.on("request", lambda request: asked.append(request.url))
        page = run(context, f"{served}lab/index.html?path=design_desk.ipynb")
        page.wait_for_selector(".sd-chart[data-revision] svg", timeout=_START_MS)
        assert f"{days:.1f}" in page.inner_text(".jp-Notebook")
        stages = page.locator(".sd-chart svg").first.locator(".role-axis-label text")
        shown = [text for text in stages.all_text_contents() if text.isdigit()]
        assert shown[:16] == [*map(str, range(16))]
        assert page.locator(_ERRORS).count() == 0
        assert context.refused == []
        own = served.split("/some/")[0]
        assert [u for u in asked if not u.startswith((own, "data:", "blob:"))] == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in _ALWAYS else pytest.mark.long)
        for name in BOOKS
        if name != "design_desk"
    ],
)
def test_a_notebook_runs_without_an_error(served, name):
    with browsing.browser() as context:
        page = run(context, f"{served}lab/index.html?path={name}.ipynb")
        page.wait_for_timeout(2000)
        assert page.locator(_ERRORS).all_text_contents() == []
        assert context.refused == []


def test_every_package_is_held_to_its_hash():
    """What the kernel loads is in the folder, each file under the hash of the lock file."""
    from hashlib import sha256

    folder = Path(BUILT) / "static" / "pyodide"
    packages = json.loads((folder / "pyodide-lock.json").read_text())["packages"]
    assert {"scantling", "numpy", "altair", "anywidget"} <= packages.keys()
    for package in packages.values():
        data = (folder / package["file_name"]).read_bytes()
        assert sha256(data).hexdigest() == package["sha256"], package["name"]
        assert set(package["depends"]) <= packages.keys()
