"""Every word on the desk and in the report has a line in the glossary, or is everyday English; and
forms that readers stumbled over stay out of the documents."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from scantling.base.quantities.quantity import table
from scantling_widgets.desk import controls, headline, panel_tables, panels
from scantling_widgets.report import view
from scantling_widgets.report.sections import summary

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = (ROOT / "lib" / "GLOSSARY.md").read_text(encoding="utf-8")
SECTIONS = ROOT / "widgets" / "scantling_widgets" / "report" / "sections"
# everyday words, which mean on a screen what they mean elsewhere
PLAIN = set(
    """a after against all alternatives and any as at avoid away axes back because behind below best
    better between break busy by calls cells checked choice client comes compare compared compiled
    copies cores could count day days decide desk detail differ differences do each every exact
    example expected fastest fetched first for found four from full fullest further given held here
    hit how impact in inputs is it least left less lines list lose loses losses lost many maxtext
    measurement measurements memory micro-b ml most moves name nearest next none not notes notice
    now number of off on one or other others out over overlap per planned predicted quantity raw
    read reading reason refused removes removed replaced result rest running safe same say says
    searched settings several size takes text than that the their then these they this time to
    times total two until use used value version wall what where which who why with without words
    written year flight sent quantities conventions formulas sized crosses shared make through
    breaks generate mean length each wait judged""".split()
)
BANNED = (
    r"page of one's own",
    r"\bsaid\b",
    r"\bbeside\b",
    r"\bforetold\b",
    r"\bAll three together:",
)
DOCUMENTS = ("README.md", "CHANGELOG.md", "lib/GLOSSARY.md")


def labels() -> set[str]:
    """Whatever stands above a number, a box, a table, a tab or a section."""
    found = [group.title for group in controls.GROUPS]
    found += [control.label for group in controls.GROUPS for control in group.controls]
    found += [card.name for card in headline.CARDS] + [*view.TILES.values()]
    for spec in vars(panel_tables).values():
        if isinstance(spec, panel_tables.TableSpec):
            found.append(spec.label)
            quantities = table()
            for name in spec.names:
                quantity = quantities.get(spec.quantity(name))
                found.append(spec.labels.get(name) or (quantity.label if quantity else ""))
    for module in pkgutil.iter_modules(panels.__path__):
        tab = importlib.import_module(f"{panels.__name__}.{module.name}")
        titles = (getattr(kind, "title", None) for kind in vars(tab).values())
        found += [title for title in titles if isinstance(title, str)]
    for file in SECTIONS.glob("*.py"):
        found += re.findall(r'Heading\(text="([^"]+)"', file.read_text(encoding="utf-8"))
    return {label for label in found if label}


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z][a-z-]+", text.lower()))


def forms(word: str) -> set[str]:
    """A word, and its singular, plural and stem."""
    return {
        word,
        f"{word}s",
        word.removesuffix("s"),
        word.removesuffix("d"),
        re.sub(r"ies$", "y", word),
        re.sub(r"(es|ing|ed|d)$", "", word),
    }


def unexplained(text: str) -> set[str]:
    """The words of a text that neither the glossary nor everyday English has."""
    known = words(GLOSSARY)
    return {word for word in words(text) - PLAIN if not forms(word) & known}


def test_every_word_of_the_screens_has_a_line():
    shown = labels()
    assert len(shown) > 300
    assert {label: unexplained(label) for label in shown if unexplained(label)} == {}


def test_a_word_that_has_none_is_found():
    assert unexplained("Frobnication of the network") == {"frobnication"}


@pytest.mark.parametrize("word", ["likely", "promise", "at risk", "new site", "undisturbed"])
def test_the_words_of_the_headline_are_explained(word):
    assert re.search(rf"^\| [^|]*\b{word}\b[^|]*\| [^|]{{20,}}\|", GLOSSARY, re.M)


def test_what_page_one_decides_is_explained():
    line = re.search(r"^\| change, go, no-go \|", GLOSSARY, re.M)
    assert line and {summary.decision({"verdict": "feasible"})} <= {"Go", "Change", "No-go"}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_keep_to_the_words_that_readers_know(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    assert [form for form in BANNED if re.search(form, text, re.IGNORECASE)] == []


def test_the_labels_keep_to_them_too():
    found = [label for label in labels() for form in BANNED if re.search(form, label, re.I)]
    assert found == []


def test_the_read_me_is_short_and_begins_with_what_it_is():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    first = " ".join(lines[2:4])
    assert first.startswith("Plan a large LLM training run") and "for the engineers" in first
