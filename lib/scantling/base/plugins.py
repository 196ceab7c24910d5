"""What packages beside the core bring: functions of the public face, commands, and rows of tables
of functions, found by the entry points of their distributions and loaded when first used."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import (
    EntryPoint,
    EntryPoints,
    PackageNotFoundError,
    distributions,
    requires,
    version,
)
from pathlib import Path
from typing import Any, TypeVar

from .errors import DesignError

GROUPS = "[scantling."  # how the line of each group begins
FUNCTIONS = "scantling.python"
COMMANDS = "scantling.commands"
Value = TypeVar("Value")


@cache
def _installed() -> tuple[EntryPoint, ...]:
    """The entry points of the distributions that name a group of this package, each distribution
    as it stands first on the path. What others name is not read: parsing it takes as long as all
    else."""
    first: dict[str, EntryPoints] = {}
    for distribution in distributions():
        if GROUPS in (distribution.read_text("entry_points.txt") or ""):
            first.setdefault(distribution.name, distribution.entry_points)
    return tuple(entry for entries_ in first.values() for entry in entries_)


@cache
def entries(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, sorted."""
    return {entry.name: entry for entry in sorted(_installed()) if entry.group == group}


def load(entry: EntryPoint) -> Any:
    """What an entry point names. Raises DesignError with the line that installs what it needs."""
    missing = [name for extra in entry.extras for name in _missing(extra)]
    try:
        if not missing:
            return entry.load()
    except ModuleNotFoundError as error:
        missing = [error.name or ""]
    extra = ",".join(entry.extras) or "all"
    raise DesignError(
        entry.name,
        problem=f"needs {missing[0]}, which is not installed",
        allowed=f"pip install 'scantling[{extra}]'",
    )


def _missing(extra: str) -> list[str]:
    """The packages of an extra that are not installed. (A requirement of the metadata reads
    `Jinja2>=3.1; extra == 'kits'`.)"""
    names = []
    for requirement in requires(__package__.partition(".")[0]) or ():
        package, _, condition = requirement.partition(";")
        if condition.split() == ["extra", "==", f"'{extra}'"]:
            name = re.split(r"[^\w.-]", package, maxsplit=1)[0]
            try:
                version(name)
            except PackageNotFoundError:
                names.append(name)
    return names


def function(name: str) -> Any:
    """The function of the public face that a package beside the core brings under this name."""
    if name not in entries(FUNCTIONS):
        raise DesignError(
            name,
            problem="is in no package that is installed",
            allowed="pip install 'scantling[all]'",
        )
    return load(entries(FUNCTIONS)[name])


def summary(entry: EntryPoint) -> str:
    """The first sentence of the docstring of what an entry point names, read from the source: no
    module is imported."""
    spec = _spec(entry.module)
    if spec is None or spec.origin is None:
        return f"From {entry.module}."
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry.attr:
            return first_sentence(ast.get_docstring(node) or "")
    return f"From {entry.module}."


def first_sentence(text: str) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def _spec(module: str) -> ModuleSpec | None:
    """Where a module stands, its packages not imported."""
    spec: ModuleSpec | None = None
    path: Iterable[str] | None = None
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:end]), None if path is None else list(path))
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return spec


class Table(Mapping[str, Value]):
    """What this package has by name, and behind it what installed packages add under a group of
    entry points, loaded when the table is first asked for."""

    def __init__(self, shipped: Mapping[str, Value], group: str) -> None:
        self.shipped = shipped
        self.group = group

    @cached_property
    def whole(self) -> dict[str, Value]:
        added: dict[str, Value] = {name: load(e) for name, e in entries(self.group).items()}
        return {**self.shipped, **added}

    def __getitem__(self, name: str) -> Value:
        return self.whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.whole)

    def __len__(self) -> int:
        return len(self.whole)
