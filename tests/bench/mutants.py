"""Does a test notice? `python tests/bench/mutants.py [PART...]`: each constant of PRIORS x 1.1 and
each formula's result x 1.1, one at a time, against the tests that mutants.csv maps to its part.

One process loads everything, then forks for each mutant, so that a mutant costs its tests alone. A
test that fails is run once with nothing changed: one that fails then, too, judges nothing. What its
tests do not settle within --limit seconds is unsettled. Lines of build/mutants.csv are kept: a run
that was stopped, or that --minutes ended, goes on where it was, and `--again` tries the survivors
once more. Ends with 1 where a mutant survives that a test reaches.
"""

from __future__ import annotations

import csv
import inspect
import os
import pkgutil
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from select import select
from types import FunctionType
from typing import TypeVar

import click
import numpy as np
import pytest

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "build" / "mutants.csv"
FACTOR = 1.1
COLUMNS = ("mutant", "result", "by", "seconds")
QUICK = "not slow and not browser and not launch"
Mutant = TypeVar("Mutant")


def parts() -> dict[str, list[str]]:
    """Tests by part: `priors`, or a module below scantling."""
    with (HERE / "mutants.csv").open(newline="", encoding="utf-8") as file:
        return {row["part"]: row["tests"].split() for row in csv.DictReader(file)}


def mutants(part: str) -> list[str]:
    """Names of the mutants of a part: `priors:NAME`, `MODULE:FUNCTION` or `MODULE:CLASS.METHOD`."""
    if part == "priors":
        return [f"priors:{name}" for name in import_module("scantling.physics.constants").PRIORS]
    module = import_module(f"scantling.{part}")
    mine = {
        k: v for k, v in vars(module).items() if getattr(v, "__module__", "") == f"scantling.{part}"
    }
    found = dict(mine)
    for name, kind in mine.items():
        if inspect.isclass(kind):
            own = ((k, v) for k, v in vars(kind).items() if not k.startswith("__"))
            found |= {f"{name}.{k}": v for k, v in own}
    return [f"{part}:{name}" for name, value in found.items() if formula(value)]


def formula(found):
    """The plain function behind a function or a property, or None where there is none that can be
    changed in place."""
    found = found.fget if isinstance(found, property) else inspect.unwrap(found)
    return found if inspect.isfunction(found) and not found.__closure__ else None


def larger(value):
    """A result x 1.1: numbers, also those in tuples, mappings and records."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        return value * FACTOR if value else value
    if isinstance(value, np.ndarray):
        return value * FACTOR if value.dtype.kind in "if" else value
    if isinstance(value, tuple):
        new = [larger(part) for part in value]
        return type(value)(*new) if hasattr(value, "_fields") else tuple(new)
    if isinstance(value, dict):
        return {key: larger(part) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        new = {f.name: larger(getattr(value, f.name)) for f in fields(value) if f.init}
        return replace(value, **new)
    return value


def apply(mutant: str, reached: list) -> None:
    """Change a constant, or a function in place; `reached` grows where its result is larger."""
    part, _, name = mutant.partition(":")
    if part == "priors":
        constants = import_module("scantling.physics.constants")
        prior = constants.PRIORS[name]
        families = larger(prior.families)
        constants.PRIORS[name] = replace(prior, value=prior.value * FACTOR, families=families)
        constants._shipped.cache_clear()
        reached.append(name)
        return
    found = import_module(f"scantling.{part}")
    for step in name.split("."):
        found = vars(found)[step]
    changed = formula(found)
    right = FunctionType(
        changed.__code__, changed.__globals__, name, changed.__defaults__, changed.__closure__
    )
    right.__kwdefaults__ = changed.__kwdefaults__

    def wrong(*args, **kwargs):
        value = right(*args, **kwargs)
        new = larger(value)
        if new is not value:
            reached.append(name)
        return new

    # the function itself is changed, so that tables which hold it are too
    changed.__globals__["_mutant"] = wrong
    changed.__code__ = _through.__code__
    changed.__defaults__ = changed.__kwdefaults__ = None
    if hasattr(found, "cache_clear"):
        found.cache_clear()


def _through(*args, **kwargs):
    return _mutant(*args, **kwargs)  # noqa: F821


class FirstFailure:
    """Remembers the first test that fails."""

    def __init__(self):
        self.by = ""

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.by:
            self.by = report.nodeid

    def pytest_collectreport(self, report):
        self.pytest_runtest_logreport(report)


def run(
    change: Callable[[list[str]], None], tests: list[str], left_out: set[str], limit_s: float
) -> tuple[str, str]:
    """(result, first test that failed) of the tests after a change, in a fork of this process:
    killed, survived, not reached, unsettled (the limit came first) or crashed.

    `change` appends to its list when something of it takes effect.
    """
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.setsid()  # what its tests start ends with it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        reached, noticed = [], FirstFailure()
        change(reached)
        words = [*tests, "-q", "-x", "-m", QUICK, "-p", "no:cacheprovider", "-p", "no:xdist"]
        words += [f"--{'deselect' if '::' in test else 'ignore'}={test}" for test in left_out]
        pytest.main(words, plugins=[noticed])
        result = "killed" if noticed.by else "survived" if reached else "not reached"
        os.write(writing, f"{result}\t{noticed.by}".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        ended, _, _ = select([said], [], [], limit_s)
        text = said.read().decode() if ended else "unsettled"
    if not ended:
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    result, _, by = text.partition("\t")
    return result or "crashed", by


def unchanged(reached: list[str]) -> None:
    """Nothing."""


class Judge:
    """Runs the tests of mutants, and knows which tests fail with nothing changed."""

    def __init__(self, limit_s: float, prepare: Callable[[list[str]], None] = unchanged) -> None:
        self.limit_s = limit_s
        self.prepare = prepare
        self.sound: dict[str, bool] = {}

    def passes(self, test: str) -> bool:
        """Whether a test passes with nothing changed."""
        if test not in self.sound:
            self.sound[test] = run(self.prepare, [test], set(), self.limit_s)[0] != "killed"
            if not self.sound[test]:
                print(f"left out, fails with nothing changed: {test}", flush=True)
        return self.sound[test]

    def unsound(self) -> set[str]:
        return {test for test, sound in self.sound.items() if not sound}


def within(minutes: float, found: Sequence[Mutant]) -> Iterator[tuple[str, Mutant]]:
    """(how far the run is, mutant) of each mutant that begins before so many minutes are over."""
    began = time.monotonic()
    for number, mutant in enumerate(found, 1):
        passed = (time.monotonic() - began) / 60
        if passed > minutes:
            print(f"{minutes:g} minutes are over: {len(found) - number + 1} were not tried")
            return
        yield f"{number} of {len(found)}, {passed:.1f} min:", mutant


def earlier(table: Path) -> dict[str, dict[str, str]]:
    """What a run before this one wrote, by mutant."""
    if not table.is_file():
        return {}
    with table.open(newline="", encoding="utf-8") as file:
        return {row["mutant"]: row for row in csv.DictReader(file)}


def write(table: Path, rows: Iterable[dict[str, str]]) -> None:
    table.parent.mkdir(parents=True, exist_ok=True)
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def load() -> None:
    """Import the library whole, so that a fork has nothing left to load."""
    os.chdir(HERE.parents[1])
    sys.path.insert(0, str(HERE))
    import scantling
    import scantling_widgets  # noqa: F401

    for module in pkgutil.walk_packages(scantling.__path__, "scantling."):
        if "templates" not in module.name and not module.name.endswith("__main__"):
            import_module(module.name)


def sample(of: Iterable[str], size: int, seed: int) -> list[str]:
    """At most `size` mutants of parts: one of each part in turn."""
    dice = random.Random(seed)
    queues = [dice.sample(names, len(names)) for names in map(mutants, of)]
    drawn: list[str] = []
    while len(drawn) < size and any(queues):
        drawn += [queue.pop() for queue in dice.sample(queues, len(queues)) if queue]
    return drawn[:size]


def judged(judge: Judge, name: str, tests: list[str]) -> tuple[str, str]:
    """(result, first test that failed) of a mutant, by tests that pass without it."""
    while True:
        result, by = run(partial(apply, name), tests, judge.unsound(), judge.limit_s)
        if not by or judge.passes(by):
            return result, by


@click.command()
@click.argument("wanted", nargs=-1)
@click.option("--sample", "size", type=int, help="At most so many, drawn part by part.")
@click.option("--seed", type=int, default=1)
@click.option("--minutes", type=float, default=1e9, help="Begin no mutant after so many.")
@click.option("--limit", type=float, default=600.0, help="Seconds that the tests of one may take.")
@click.option("--again", is_flag=True, help="Try those again that were not killed.")
def main(
    wanted: tuple[str, ...], size: int | None, seed: int, minutes: float, limit: float, again: bool
) -> None:
    """Change each constant and each formula, one at a time, and run their tests."""
    load()
    done = earlier(OUT)
    if again:
        done = {name: row for name, row in done.items() if row["result"] == "killed"}
    of = {p: t for p, t in parts().items() if not wanted or any(p.startswith(w) for w in wanted)}
    found = sample(of, size, seed) if size else [name for part in of for name in mutants(part)]
    judge = Judge(limit)
    for how_far, name in within(minutes, [name for name in found if name not in done]):
        began = time.monotonic()
        result, by = judged(judge, name, of[name.partition(":")[0]])
        values = (name, result, by, f"{time.monotonic() - began:.1f}")
        done[name] = dict(zip(COLUMNS, values))
        print(how_far, *values, flush=True)
        write(OUT, done.values())
    mine = [done[name] for name in found if name in done]
    for result in ("survived", "unsettled", "not reached"):
        names = [row["mutant"] for row in mine if row["result"] == result]
        print(f"{len(names)} of {len(mine)} {result}: {', '.join(names) or 'none'}")
    sys.exit(any(row["result"] == "survived" for row in mine))


if __name__ == "__main__":
    main()
