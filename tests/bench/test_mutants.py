"""The tools that spoil data files and formulas: what they change, that they put things back, that a
heading which is misspelt is noticed by the tests of its file, and which tests judge nothing."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import data_mutants
import pytest
from data_mutants import changed, files, mutants, mutated, read

ROOT = data_mutants.ROOT


@pytest.mark.parametrize(
    ("value", "kind", "wrong"),
    [
        ("80", "number", "88"),
        ("0.25", "number", "0.275"),
        ("3", "number", "4"),
        (1.5, "number", 1.65),
        ("true", "truth", "false"),
        (False, "truth", True),
        ("h100-sxm", "name", "h100q-sxm"),
    ],
)
def test_a_wrong_value_is_of_the_same_type(value, kind, wrong):
    assert data_mutants.kind_of(value) == kind
    assert changed(value, kind) == wrong or changed(value, kind) == pytest.approx(wrong)


@pytest.mark.parametrize("value", ["", "two words", "What a reader reads.", "0", 0, "inf", None])
def test_prose_and_blanks_are_no_mutants(value):
    assert data_mutants.kind_of(value) == ""


@pytest.mark.parametrize("file", files())
def test_one_place_alone_is_changed(file):
    found = mutants(file)
    right = read(ROOT / file)
    for mutant in data_mutants.sample(found, 5, seed=1):
        wrong = mutated(copy.deepcopy(right), mutant)
        assert wrong != right
        if mutant.kind != "heading":
            before, after = list(data_mutants.leaves(right)), list(data_mutants.leaves(wrong))
            assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_every_file_has_tests():
    for file in files():
        for test in data_mutants.tests_of(file):
            assert (ROOT / test.partition("::")[0]).exists(), test


def test_a_file_that_cannot_be_imported_judges_nothing(tmp_path):
    """It fails with nothing changed, and is left out once: the others judge."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_broken.py").write_text("import no_such_module\n")
    (tmp_path / "test_sound.py").write_text("def test_sound():\n    assert True\n")
    script = """
from mutants import Judge, run, unchanged
judge = Judge(60.0)
result, by = run(unchanged, ["."], judge.unsound(), 60.0)
assert (by, judge.passes(by)) == ("test_broken.py", False), by
assert run(unchanged, ["."], judge.unsound(), 60.0)[1] == ""
"""
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests/bench")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("file", ["verdicts.csv", "plausible.csv", "optimizers.csv"])
def test_a_misspelt_heading_is_noticed(file, tmp_path):
    """A process of its own: a fork of this one has read the right file already."""
    words = [file, "--kind=heading", "--sample=2", f"--folder={tmp_path}"]
    ended = subprocess.run(
        [sys.executable, "tests/bench/data_mutants.py", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "heading: 0 of 2 survived" in ended.stdout
    assert (tmp_path / "tree" / "lib").is_dir()
