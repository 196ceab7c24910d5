"""Does a test notice a wrong word in a data file? `python tests/bench/data_mutants.py [FILE...]
[--sample N] [--seed N]`: each heading, name and number of the CSV, YAML and JSON files that ship is
changed, one at a time, against the tests that data_mutants.csv maps to its file.

A name or a heading gets one letter more, a number is a tenth larger, a truth value turns round.
Prose (notes, titles, sources) is no mutant: a test that notices it would only pin it.
Works on a copy of the tree in build/mutants/ (--folder names another). A fork for each mutant
starts with the libraries loaded and nothing of ours, so that it reads the changed file. A test that
fails is run once with nothing changed: one that fails then, too, judges nothing. What its tests do
not settle within --limit seconds is unsettled. Lines of its data_mutants.csv are kept, and a run
that was stopped, or that --minutes ended, goes on where it was. A sample takes files and columns
alike, then one of their cells: large tables do not drown small ones. Ends with 1 where a name or a
heading survives.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import click
import yaml
from mutants import COLUMNS, Judge, earlier, run, within, write

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PARTS = ("lib", "widgets", "tests", "gallery", "notebooks")
LIBRARIES = ("numpy", "pandas", "scipy", "pydantic", "yaml", "click", "rich", "jinja2", "altair")
# what other programs made, and what is emitted as it stands
APART = {"templates", "labextensions", "__pycache__", "jupyter"}
# columns for readers: no program reads them
PROSE = {
    *("notes", "note", "source", "source_url", "locator", "label", "title", "name", "meaning"),
    *("text", "what", "why", "date", "published", "verified", "verified_except", "family"),
    *("as_printed", "framework", "provider", "description", "explanation", "comment", "quantity"),
}
KINDS = ("heading", "name", "truth", "number")
NAME = re.compile(r"[\w.+/;:-]+", re.ASCII)


class Mutant(NamedTuple):
    """One changed place of a file: (row, column) of a table, or the path of a key."""

    file: str
    place: tuple[str | int, ...]
    kind: str  # heading, name, number, truth
    value: str  # what stands there now

    def __str__(self) -> str:
        return f"{self.file}:{'/'.join(map(str, self.place))}={self.value}"[:200]

    @property
    def column(self) -> tuple[str, ...]:
        """What a sample counts as one: a column and a kind, or a key at the top of nested data."""
        words = [part for part in self.place if isinstance(part, str)]
        return self.kind, *words[:1]


def kind_of(value: Any) -> str:
    """heading apart: name, number, truth, or nothing where it is prose or blank."""
    if isinstance(value, bool) or value in ("true", "false", "yes", "no"):
        return "truth"
    try:
        return "number" if float(value) and isfinite(float(value)) else ""
    except (TypeError, ValueError):
        return "name" if isinstance(value, str) and NAME.fullmatch(value) else ""


def changed(value: Any, kind: str) -> Any:
    """The wrong value, of the same type."""
    turned = {"true": "false", "false": "true", "yes": "no", "no": "yes"}
    if kind == "truth":
        return not value if isinstance(value, bool) else turned[value]
    if kind == "number":
        number = float(value)
        wrong = round(number * 1.1) if number.is_integer() else number * 1.1
        wrong = number + 1 if wrong == number else wrong
        wrong = int(wrong) if number.is_integer() else wrong
        return str(wrong) if isinstance(value, str) else wrong
    middle = (len(value) + 1) // 2
    return f"{value[:middle]}q{value[middle:]}"


def leaves(data: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple, str, Any]]:
    """(path, heading or value, what stands there) of each key and each value of nested data."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield (*place, str(key)), "heading", key
            yield from leaves(value, (*place, str(key)))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from leaves(value, (*place, index))
    else:
        yield place, "value", data


def of_table(file: str, rows: list[list[str]]) -> Iterator[Mutant]:
    header, *lines = rows
    for column in header:
        if column not in PROSE:
            yield Mutant(file, (column,), "heading", column)
    for number, line in enumerate(lines, 1):
        for column, value in zip(header, line, strict=False):
            if column not in PROSE and (kind := kind_of(value)):
                yield Mutant(file, (number, column), kind, value)


def of_mapping(file: str, data: Any) -> Iterator[Mutant]:
    for place, what, value in leaves(data):
        if PROSE & set(place):
            continue
        kind = "heading" if what == "heading" else kind_of(value)
        if kind:
            yield Mutant(file, place, kind, str(value))


def read(path: Path) -> Any:
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.reader(file))
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


def save(path: Path, data: Any) -> None:
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(data)
    elif path.suffix == ".json":
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    else:
        path.write_text(yaml.safe_dump(data, allow_unicode=True, sort_keys=False), encoding="utf-8")


def mutants(file: str) -> list[Mutant]:
    data = read(ROOT / file)
    return list(of_table(file, data) if file.endswith(".csv") else of_mapping(file, data))


def mutated(data: Any, mutant: Mutant) -> Any:
    """The data with the one place wrong; the data given is changed."""
    if mutant.file.endswith(".csv"):
        row, column = (0, *mutant.place)[-2:]
        at = data[0].index(column)
        data[row][at] = changed(data[row][at], "name" if row == 0 else mutant.kind)
        return data
    *above, last = mutant.place
    inside = data
    for step in above:
        inside = inside[step] if isinstance(inside, list) else inside[_key(inside, step)]
    if mutant.kind == "heading":
        entries = [(changed(str(k), "name") if str(k) == last else k, v) for k, v in inside.items()]
        inside.clear()
        inside.update(entries)
    else:
        at = last if isinstance(inside, list) else _key(inside, last)
        inside[at] = changed(inside[at], mutant.kind)
    return data


def _key(mapping: dict, text: str) -> Any:
    """The key that is written so: YAML has keys that are numbers or truth values."""
    return next(key for key in mapping if str(key) == text)


def files() -> list[str]:
    paths = (p for part in ("lib", "widgets") for p in (ROOT / part).rglob("*"))
    shipped = (p.relative_to(ROOT) for p in paths if p.suffix in (".csv", ".yaml", ".json"))
    return sorted(str(p) for p in shipped if not APART & set(p.parts))


def tests_of(file: str) -> list[str]:
    """The tests of the longest path of data_mutants.csv that begins the file's."""
    with (HERE / "data_mutants.csv").open(newline="", encoding="utf-8") as table:
        rooms = {row["path"]: row["tests"].split() for row in csv.DictReader(table)}
    longest = max((path for path in rooms if file.startswith(path)), key=len)
    return rooms[longest]


def sample(found: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """At most `size` mutants: files in turn, then their columns in turn, then one of the cells."""
    dice = random.Random(seed)
    cells: dict[str, dict[tuple[str, ...], list[Mutant]]] = {}
    for mutant in found:
        cells.setdefault(mutant.file, {}).setdefault(mutant.column, []).append(mutant)
    drawn: list[Mutant] = []
    queues = [dice.sample(sorted(columns), len(columns)) for columns in cells.values()]
    places = list(cells.values())
    while len(drawn) < size and any(queues):
        for columns, queue in zip(places, queues, strict=True):
            if queue and len(drawn) < size:
                drawn.append(dice.choice(columns[queue.pop()]))
    return drawn


def go_into(tree: Path, reached: list[str]) -> None:
    """Go into the copy of the tree: what is imported from here on is the copy's."""
    os.chdir(tree)
    sys.path[:0] = [str(tree / part) for part in ("lib", "widgets", "tests", "tests/bench")]
    reached.append("")


def copy_tree(tree: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)
    for part in PARTS:
        apart = shutil.ignore_patterns("__pycache__", "*.egg-info", ".hypothesis")
        shutil.copytree(ROOT / part, tree / part, ignore=apart)
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile"):
        shutil.copy(ROOT / name, tree / name)


def judged(tree: Path, judge: Judge, mutant: Mutant, tests: list[str]) -> tuple[str, str]:
    """(result, first test that failed) with one place of the copy wrong, by tests that pass
    without it."""
    path = tree / mutant.file
    right = path.read_bytes()
    while True:
        try:
            save(path, mutated(read(path), mutant))
            result, by = run(partial(go_into, tree), tests, judge.unsound(), judge.limit_s)
        finally:
            path.write_bytes(right)
        if not by or judge.passes(by):
            return result, by


@click.command()
@click.argument("wanted", nargs=-1)
@click.option("--sample", "size", type=int, help="At most so many, drawn column by column.")
@click.option("--seed", type=int, default=1)
@click.option("--kind", type=click.Choice(KINDS), help="Of one kind alone.")
@click.option("--folder", type=click.Path(path_type=Path), default=ROOT / "build" / "mutants")
@click.option("--minutes", type=float, default=1e9, help="Begin no mutant after so many.")
@click.option("--limit", type=float, default=600.0, help="Seconds that the tests of one may take.")
@click.option("--list", "listed", is_flag=True, help="Count them and stop.")
def main(
    wanted: tuple[str, ...],
    size: int | None,
    seed: int,
    kind: str,
    folder: Path,
    minutes: float,
    limit: float,
    listed: bool,
) -> None:
    """Change each place of the data files that ship, one at a time, and run their tests."""
    of = [file for file in files() if not wanted or any(word in file for word in wanted)]
    found = [m for file in of for m in mutants(file) if kind in (None, m.kind)]
    print(f"{len(found)} places of {len(of)} files")
    if listed:
        return
    if size:
        found = sample(found, size, seed)
    for name in LIBRARIES:
        import_module(name)
    assert not any(name.startswith("scantling") for name in sys.modules)
    tree, out = folder / "tree", folder / "data_mutants.csv"
    copy_tree(tree)
    done = earlier(out)
    judge = Judge(limit, partial(go_into, tree))
    for how_far, mutant in within(minutes, [m for m in found if str(m) not in done]):
        began = time.monotonic()
        result, by = judged(tree, judge, mutant, tests_of(mutant.file))
        values = (str(mutant), result, by, f"{time.monotonic() - began:.1f}")
        done[str(mutant)] = dict(zip(COLUMNS, values, strict=True))
        print(how_far, *values, flush=True)
        write(out, done.values())
    tried = [m for m in found if str(m) in done]
    unsettled = [m for m in tried if done[str(m)]["result"] == "unsettled"]
    survived = [m for m in tried if done[str(m)]["result"] == "survived"]
    for each in KINDS:
        mine = [m for m in survived if m.kind == each]
        of_kind = sum(m.kind == each for m in tried)
        print(f"{each}: {len(mine)} of {of_kind} survived", *mine, sep="\n  ")
    print(f"{len(unsettled)} of {len(tried)} unsettled after {limit:g} s", *unsettled, sep="\n  ")
    sys.exit(any(m.kind in ("heading", "name") for m in survived))


if __name__ == "__main__":
    main()
