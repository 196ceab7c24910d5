"""Does a test notice? `python tests/bench/mutants.py [PART...]`: each constant of PRIORS x 1.1 and
each formula's result x 1.1, one at a time, against the tests that mutants.csv maps to its part.

One process loads everything, then forks for each mutant, so that a mutant costs its tests alone.
Lines of build/mutants.csv are kept: a run that was stopped goes on where it was, and `--again`
tries the survivors once more. Ends with 1 where a mutant survives that a test reaches.
"""

from __future__ import annotations

import csv
import inspect
import os
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "build" / "mutants.csv"
FACTOR = 1.1
COLUMNS = ("mutant", "result", "by", "seconds")
QUICK = "not slow and not browser and not launch"


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
    change: Callable[[list[str]], None], tests: list[str], left_out: set[str]
) -> tuple[str, str]:
    """(result, first test that failed) of the tests after a change, in a fork of this process.

    `change` appends to its list when something of it takes effect.
    """
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        reached, noticed = [], FirstFailure()
        change(reached)
        words = [*tests, "-q", "-x", "-m", QUICK, "-p", "no:cacheprovider", "-p", "no:xdist"]
        pytest.main(words + [f"--deselect={test}" for test in left_out], plugins=[noticed])
        result = "killed" if noticed.by else "survived" if reached else "not reached"
        os.write(writing, f"{result}\t{noticed.by}".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        result, _, by = said.read().decode().partition("\t")
    os.waitpid(child, 0)
    return result or "crashed", by


def failing(
    tests: list[str], prepare: Callable[[list[str]], None] = lambda reached: None
) -> set[str]:
    """Tests that fail with nothing changed; they judge no mutant."""
    found: set[str] = set()
    while True:
        result, by = run(prepare, tests, found)
        if result == "crashed" or by in found:
            raise RuntimeError(f"these tests do not run with nothing changed: {tests}")
        if not by:
            return found
        found.add(by)
        print(f"left out, fails with nothing changed: {by}", flush=True)


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


def main(words: list[str]) -> int:
    again, wanted = "--again" in words, [w for w in words if not w.startswith("-")]
    load()
    done = earlier(OUT)
    if again:
        done = {name: row for name, row in done.items() if row["result"] == "killed"}
    of = {p: t for p, t in parts().items() if not wanted or any(p.startswith(w) for w in wanted)}
    for part, tests in of.items():
        names = [name for name in mutants(part) if name not in done]
        left_out = failing(tests) if names else set()
        for name in names:
            began = time.monotonic()
            result, by = run(partial(apply, name), tests, left_out)
            values = (name, result, by, f"{time.monotonic() - began:.1f}")
            done[name] = dict(zip(COLUMNS, values))
            print(*values, flush=True)
            write(OUT, done.values())
    mine = [row for name, row in done.items() if name.partition(":")[0] in of]
    for result in ("survived", "not reached"):
        names = [row["mutant"] for row in mine if row["result"] == result]
        print(f"{len(names)} of {len(mine)} {result}: {', '.join(names) or 'none'}")
    return int(any(row["result"] == "survived" for row in mine))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
