"""What every test may rely on, and what happens when there is no browser."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

# jsonschema makes a grammar of IRIs whenever it is imported, a second in each process, for a format
# that nothing here checks
sys.modules.setdefault("rfc3987_syntax", None)
# a run in the background of a shell ignores Ctrl-C, and so would what its tests start and interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: more threads only wait

import pytest  # noqa: E402
from scantling_widgets.chromium import chromium  # noqa: E402

_left_out = pytest.StashKey[int]()
_share_of = pytest.StashKey[tuple[int, int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """An option, not a word of the environment: a pytest that a test starts runs its own tests."""
    parser.addoption("--share", default="0/1", help="One share of the test files: 2/13.")


def pytest_configure(config: pytest.Config) -> None:
    share = config.getoption("--share")
    if not re.fullmatch(r"\d+/[1-9]\d*", share):
        raise pytest.UsageError(f"--share: {share!r} is not k/n, as 2/13")
    config.stash[_share_of] = tuple(map(int, share.split("/")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = _share(items, *config.stash[_share_of])
    config.stash[_left_out] = 0
    if chromium():
        return
    browser = [item for item in items if item.get_closest_marker("browser")]
    if browser and os.environ.get("CI"):
        raise pytest.UsageError(
            "no Chromium, and in CI the browser tests are never left out: apt-get install chromium"
        )
    for item in browser:
        item.add_marker(pytest.mark.skip(reason="no Chromium"))
    config.stash[_left_out] = len(browser)


def _share(items: list[pytest.Item], k: int, n: int) -> list[pytest.Item]:
    """The k-th of n shares of the tests, k may be above n: the test files, in the order of their
    names, are dealt out one by one."""
    files = sorted(Path(__file__).parent.rglob("test_*.py"))[k % n :: n]
    return [item for item in items if item.path in files]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if left_out := config.stash.get(_left_out, 0):
        terminalreporter.section("not everything ran", yellow=True)
        terminalreporter.write_line(
            f"{left_out} browser tests were left out: no Chromium on this machine. "
            f"Install one (Debian and Ubuntu: "
            "apt-get install chromium fonts-dejavu-core), or set CHROMIUM=/path/to/chromium."
        )
