"""A part of `make hostile`: hostile files, arguments and designs, and what came of each."""

from __future__ import annotations

import os

import pytest
from hostile import BOUNDS, Bench, hostile, mutated, valid
from scantling.design.design import json_schema

SEED = 21


@pytest.fixture
def bench(tmp_path):
    here = os.getcwd()
    os.chdir(tmp_path)
    yield Bench(tmp_path)
    os.chdir(here)


@pytest.mark.slow
def test_hostile_files_and_arguments_break_nothing(bench):
    hostile(bench, SEED, range(60))
    assert bench.bad == [], f"seed {SEED}"
    assert set(bench.codes) >= {0, 2}
    assert not list(bench.out.rglob("CANARY*"))


@pytest.mark.slow
def test_designs_at_random_print_finite_numbers(bench):
    valid(bench, range(5, 11), through=0)
    assert bench.bad == []


def test_every_number_of_the_published_schema_has_both_bounds():
    """Draft 2020-12, 6.2: minimum and maximum."""

    def walk(node, path):
        if isinstance(node, dict):
            if node.get("type") in ("number", "integer"):
                yield path, node
            for key, below in node.items():
                yield from walk(below, (*path, key))
        elif isinstance(node, list):
            for below in node:
                yield from walk(below, path)

    schema = json_schema()
    numbers = [path for path, _ in walk(schema, ())]
    without = []
    for path in numbers:
        field = schema
        for step in path[: path.index("anyOf")] if "anyOf" in path else path:
            field = field[step]
        if "const" not in field and not {"minimum", "maximum"} <= field.keys():
            without.append(path)
    assert numbers and without == []
    assert all(low < high for low, high in BOUNDS.values())


@pytest.mark.slow
def test_real_files_restructured_break_nothing(bench):
    mutated(bench, SEED, range(150))
    assert bench.bad == [], f"seed {SEED}"
    assert set(bench.codes) >= {0, 2}
