"""Where a Chromium is on this machine: for printing, for measuring the desk, and for the tests in a
browser."""

import shutil
from os import environ

_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
# no sandbox: containers and continuous integration run as root; no call home, and one colour
# profile
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
)


def chromium() -> str | None:
    """The program: $CHROMIUM, or the first of its usual names that is found; None where there is
    none."""
    return environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
