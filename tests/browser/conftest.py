"""A JupyterLab on the design desk, a page of it, and a browser, each started once for all browser tests."""
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from . import browsing

ROOT = Path(__file__).parents[2]
DESIGN = ROOT / "gallery" / "designs" / "llama-3.1-405b.yaml"


@pytest.fixture(scope="session")
def chrome():
    with browsing.browser() as context:
        yield context


def isolated(folder: Path) -> dict[str, str]:
    """No settings, workspaces or history of whoever runs the tests."""
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR", "XDG_CACHE_HOME")
    for name in names:
        (folder / name.lower()).mkdir()
    return {name: str(folder / name.lower()) for name in names}


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    from scantling_widgets import servers

    folder, work = tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("work")
    with open(folder / "lab.log", "wb") as log, servers.jupyter_lab(
            DESIGN, work, port=9310, extra=("--LabApp.expose_app_in_browser=True",), env=isolated(folder), log=log) as server:
        server.work = work
        yield server


@pytest.fixture
def page(chrome, request):
    """A fresh page; leaves a picture in build/ when its test fails."""
    found = browsing.DeskPage(chrome.new_page())
    yield found
    if request.node.stash.get(FAILED, False):
        found.page.screenshot(path=ROOT / "build" / f"{request.node.name}.png")
    found.page.close()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture
def desk(lab, page, chrome):
    """The desk, run and drawn, in JupyterLab; afterwards its kernel is gone and nothing has left loopback."""
    shutil.rmtree(lab.work / ".scantling", ignore_errors=True)          # what the desk of the test before has kept
    yield page.open(lab.url)
    page.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    assert chrome.refused == []
