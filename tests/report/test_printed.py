"""Reports of the gallery on paper, read back from the PDF that Chromium prints: the decision on one
page, an appendix of at most eight, no letter below 8 points, no text over another or over the edge,
no label cut, no half-empty page, no more digits than mean something."""

from __future__ import annotations

import re
from functools import cache
from math import hypot

import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium
import pytest
from markupsafe import Markup
from scantling.design.design import Design
from scantling_widgets import report
from scantling_widgets.chromium import chromium
from scantling_widgets.pages import gallery
from scantling_widgets.report import paper
from scantling_widgets.report.page import document

OFTEN = ("llama-3.1-405b", "case-5-deepseek-v3", "case-2-1t-dense-8-v100", "case-3-500b-4096-h100")
NAMES = tuple(
    pytest.param(name, marks=pytest.mark.browser if name in OFTEN else pytest.mark.long)
    for name in gallery.designs()
)
EDGE = 8 / 25.4 * 72  # points that stay white on every side, but for the number of the page
TOUCH = 2.0  # points by which boxes of letters side by side may overlap


def printed(page: str, folder) -> pypdfium2.PdfDocument:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium")
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    return pypdfium2.PdfDocument(paper.print_pdf(program, file))


@cache
def page_of(name: str) -> str:
    design = Design.read(gallery.designs()[name])
    body = Markup(report.Report(design).html())
    return document(body, title=design.title, date="2026-11-23", footer="scantling")


@pytest.fixture(scope="module")
def pdf(tmp_path_factory):
    return cache(lambda name: printed(page_of(name), tmp_path_factory.mktemp(name)))


def texts(pages) -> list[str]:
    return [page.get_textpage().get_text_range() for page in pages]


def overprinted(page) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes cover each other by more than neighbours do."""
    read = page.get_textpage()
    boxes = sorted(read.get_rect(i) for i in range(read.count_rects()))
    found = []
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            if b[0] > a[2] - TOUCH:
                break
            tall = min(a[3] - a[1], b[3] - b[1])
            wide = min(a[2], b[2]) - b[0]
            if wide > TOUCH and min(a[3], b[3]) - max(a[1], b[1]) > 0.35 * tall:
                found.append((read.get_text_bounded(*a), read.get_text_bounded(*b)))
    return found


def ink(page) -> np.ndarray:
    """Where a page is not white, a pixel a point."""
    return (page.render(scale=1).to_numpy()[..., :3] < 245).any(axis=2)


def outside(page) -> int:
    """Pixels of ink in the edge; the number of the page stands in the lower one."""
    dark, edge = ink(page), int(EDGE)
    return int(dark[:, :edge].sum() + dark[:, -edge:].sum() + dark[:edge].sum())


def points(page) -> float:
    """The size of the smallest letter as it is printed."""
    read = page.get_textpage()
    sizes = []
    for i in range(read.count_chars()):
        if chr(pdfium.FPDFText_GetUnicode(read, i)).strip():
            matrix = pdfium.FS_MATRIX()
            pdfium.FPDFText_GetMatrix(read, i, matrix)
            sizes.append(pdfium.FPDFText_GetFontSize(read, i) * hypot(matrix.a, matrix.b))
    return min(sizes)


def loose_digits(text: str) -> list[str]:
    """Dollars of more than three digits and counts of more than four, where they are neither a
    price nor a whole number of 1,024 tokens."""
    found = []
    for number in re.findall(r"\d{1,3}(?:,\d{3})+", text):
        value = int(number.replace(",", ""))
        digits = len(str(value).rstrip("0"))
        dollars = f"${number}" in text and value >= 10_000 and digits > 3
        if dollars or (value >= 1e6 and digits > 4 and (value % 1024 or value >= 1e9)):
            found.append(number)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_one_page_decides_and_no_letter_is_below_eight_points(pdf, name):
    pages = [*pdf(name)]
    assert min(map(points, pages)) > 7.95
    said = texts(pages)
    if "No-go. Impossible" in said[0]:
        assert len(pages) <= 2
        return
    assert "Decided" in said[0] and "Appendix" in said[1].splitlines()[:2]
    assert len(pages) - 1 <= 8


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_printed_over_another_or_over_the_edge(pdf, name):
    for number, page in enumerate(pdf(name), 1):
        assert overprinted(page) == [], number
        assert outside(page) == 0, number


@pytest.mark.parametrize("name", NAMES)
def test_no_label_is_cut_and_no_number_has_more_digits_than_it_means(pdf, name):
    said = texts(pdf(name))
    assert len("".join(said)) > 1000
    for text in said:
        assert not re.findall(r"[^,\s]…", text)
        assert loose_digits(text) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_page_but_the_last_is_half_empty(pdf, name):
    """Ink reaches the lower half, the number of the page left out."""
    pages = [*pdf(name)]
    for page in pages[:-1] or pages:
        rows = np.flatnonzero(ink(page)[: -int(2 * EDGE)].any(axis=1))
        assert rows[-1] > 0.6 * page.get_height()


@pytest.mark.parametrize("name", NAMES)
def test_axis_and_figure_are_in_one_unit(pdf, name):
    said = texts(pdf(name))
    axis = re.search(r"(\w+) per device\b(?! of)", "".join(said[1:]))
    if "Recommended" in said[0]:
        tile = re.search(r"\nMemory\s[^\n]*?[\d.]+ (GB|TB)|\nMemory\s+[\d.]+ (GB|TB)", said[0])
        assert tile and axis and axis[1] in tile.groups()


BROKEN = (
    "<div style='position:relative;height:2cm;font-size:10px'><span style='position:absolute'>"
    "one label</span>"
    "<span style='position:absolute;left:9px'>another</span></div><p>costs $512,917 for "
    "999,294,426,112 parameters</p>"
)


@pytest.mark.browser
def test_the_checks_find_what_is_wrong(tmp_path):
    made = printed(
        f"<html><style>@page{{margin:3mm}}</style><body>{BROKEN}</body></html>", tmp_path
    )
    assert overprinted(made[0])
    assert points(made[0]) < 7.95
    assert outside(made[0])
    assert loose_digits(texts(made)[0]) == ["512,917", "999,294,426,112"]
