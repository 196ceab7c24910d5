"""A JupyterLab on the design desk, a page of it, and a browser, each started once for all browser
tests."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from . import browsing

ROOT = Path(__file__).parents[2]
DESIGN = ROOT / "gallery" / "designs" / "llama-3.1-405b.yaml"


@pytest.fixture(scope="session")
def chrome():
    with browsing.browser() as context:
        yield context


@contextmanager
def isolated(folder: Path):
    """No settings, workspaces or history of whoever runs the tests; the page of the lab may be
    asked about itself."""
    names = (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "JUPYTERLAB_SETTINGS_DIR",
        "JUPYTERLAB_WORKSPACES_DIR",
        "IPYTHONDIR",
        "XDG_CACHE_HOME",
    )
    env = {name: str(folder / name.lower()) for name in names}
    for place in env.values():
        Path(place).mkdir()
    asked = {"LabApp": {"expose_app_in_browser": True}}
    config = Path(env["JUPYTER_CONFIG_DIR"]) / "jupyter_lab_config.json"
    config.write_text(json.dumps(asked), encoding="utf-8")
    with mock.patch.dict(os.environ, env):
        yield env


@pytest.fixture(scope="session")
def ports(worker_id):
    """The first port of this worker's servers: two that start at once would both find it free."""
    return 9310 + 100 * int(worker_id.removeprefix("gw").replace("master", "0"))


@pytest.fixture(scope="session")
def lab(tmp_path_factory, ports):
    from scantling_widgets.pages import servers

    folder, work = tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("work")
    with isolated(folder), servers.jupyter_lab(DESIGN, work, port=ports) as server:
        yield SimpleNamespace(**vars(server), work=work)


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


def kept(desk, request) -> None:
    """A picture of the page in build/ when the test failed."""
    if request.node.stash.get(FAILED, False):
        desk.picture(ROOT / "build" / f"{request.node.name}.png")


@pytest.fixture(scope="session")
def opened(lab, chrome):
    """The desk in JupyterLab, opened and drawn once."""
    yield browsing.DeskPage(chrome.new_page()).open(lab.url)
    assert chrome.refused == [], "something asked for more than loopback"


@pytest.fixture
def desk(opened, request):
    """The desk on the example design, as it opens; afterwards without an error in the console."""
    opened.afresh()
    yield opened
    kept(opened, request)
    assert opened.errors == []
    assert not opened.page.locator(".sd-error").is_visible()


@pytest.fixture
def visitor(chrome, request):
    """Opens further pages and closes them."""
    pages: list[browsing.DeskPage] = []

    def open_page(url: str) -> browsing.DeskPage:
        pages.append(browsing.DeskPage(chrome.new_page()))
        return pages[-1].open(url)

    yield open_page
    for number, found in enumerate(pages):
        if request.node.stash.get(FAILED, False):
            found.picture(ROOT / "build" / f"{request.node.name}-{number}.png")
        found.page.close()


FAULTY = "sgd"  # the optimizer at which the kit of the page has a bug, as it might
_BUG = f"""
import scantling
sound = scantling.assess

def assess(design, **more):
    if design.job.optimizer == "{FAULTY}":
        raise RuntimeError("put in by the tests")
    return sound(design, **more)
scantling.assess = assess
"""


@pytest.fixture(scope="session")
def voila(tmp_path_factory, ports):
    from scantling_widgets.pages import servers

    folder = tmp_path_factory.mktemp("page")
    with isolated(folder) as env:
        startup = Path(env["IPYTHONDIR"]) / "profile_default" / "startup"
        startup.mkdir(parents=True)
        (startup / "bug.py").write_text(_BUG, encoding="utf-8")
        with servers.voila_page(DESIGN, port=ports + 20) as server:
            yield server
