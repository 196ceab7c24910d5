"""How the library hangs together: a reader who follows the packages in their order never has to
look ahead."""

from __future__ import annotations

import ast
from pathlib import Path

import scantling

LIB = Path(scantling.__file__).parent
FLOW = (
    "",
    "describe",
    "catalogue",
    "physics",
    "endure",
    "decide",
    "evidence",
    "blueprint",
    "launch",
    "learn",
    "commands",
)
VIEW = ("scantling_widgets", "altair", "ipywidgets", "IPython", "anywidget")
FILES = sorted(p for p in LIB.rglob("*.py") if "templates" not in p.parts)
# each for a reason: rows of the catalogue are records of `describe`; a design needs the pace
# between sites, a step the link of its checkpoints, a verdict the plans
# that were published
AHEAD = {
    ("describe", "catalogue"),
    ("describe", "endure"),
    ("physics", "endure"),
    ("decide", "evidence"),
}


def imported(path: Path):
    """(module, package of `scantling` or None, at import time) of each import in a file."""
    tree, here = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(LIB).parts[:-1]
    later = {
        id(node) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for node in ast.walk(f)
    }
    for node in ast.walk(tree):
        names = (
            [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        )
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*here[: len(here) + 1 - node.level], *(node.module or "").split(".")]
            heads = [next((p for p in base if p), None)] if any(base) else names
            for head in heads:
                yield head, head if (LIB / head).is_dir() else "", id(node) not in later
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0], None, id(node) not in later
        else:
            for name in names:
                yield name.split(".")[0], None, id(node) not in later


def test_every_package_has_its_place_in_the_flow():
    assert {p.name for p in LIB.iterdir() if (p / "__init__.py").is_file()} == set(FLOW) - {""}


def test_no_package_needs_one_that_comes_after_it():
    found = set()
    for path in FILES:
        here = path.relative_to(LIB).parts[0] if path.parent != LIB else ""
        for _, package, now in imported(path):
            if package is not None and now and here and FLOW.index(package) > FLOW.index(here):
                found.add((here, package))
    assert found == AHEAD


def test_the_library_knows_no_widget_and_no_chart():
    assert not {
        (path.name, module) for path in FILES for module, _, _ in imported(path) if module in VIEW
    }
