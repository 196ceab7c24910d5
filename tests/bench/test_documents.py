"""README.md and CONTRIBUTING.md: short, and what they show of the code is what the code is."""

from __future__ import annotations

import re

import documents

ROOT = documents.ROOT


def test_the_read_me_is_short_and_shows_what_the_command_prints():
    text = documents.README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert documents.with_example(text) == text, "python tests/bench/documents.py"
    first = text.split("\n## ")[0]
    assert "pip install" in first and documents.BEGIN in first


def test_the_map_of_the_house_is_drawn_from_its_imports():
    assert documents.MAP.read_text(encoding="utf-8") == documents.picture()
    assert "gallery/pictures/house.svg" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = {one["name"]: one for one in documents.rooms()}
    folders = {p.parent for p in (ROOT / "lib" / "scantling").glob("*/__init__.py")}
    assert set(rooms) == {p.name for p in folders} | set(documents.ABOVE)
    assert all(one["answers"] and one["modules"] for one in rooms.values())
    assert not rooms["base"]["from"] and "physics" in rooms["plans"]["from"]


def test_every_file_that_a_document_names_is_there():
    seen = 0
    for name in ("README.md", "CONTRIBUTING.md", "lib/GLOSSARY.md", "NOTICE"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(((?!https?:)[^)#]+)\)", text):
            assert (ROOT / target).exists(), (name, target)
            seen += 1
    assert seen > 10
