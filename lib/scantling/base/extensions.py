"""Folders of a user's own rows, files and functions, read after those that ship.

The environment variable SCANTLING_EXTENSIONS names them, joined as in PATH. A folder may hold
tables with rows of their own under the name of a shipped table (`accelerators.csv`, `models.csv`,
`quantities.csv` ...), `stacks/ID.yaml`, `templates/NAME.j2`, and Python files
that enter their functions into the tables of functions (`FORMULAS`, `FRAMEWORKS`, `KINDS`).
"""

import csv
import sys
import warnings
from collections.abc import Iterable
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from os import environ, pathsep
from pathlib import Path

from .records import Rows

VARIABLE = "SCANTLING_EXTENSIONS"


@cache
def folders() -> tuple[Path, ...]:
    """The folders that the environment names; warns of one that is not there."""
    named = [Path(name) for name in environ.get(VARIABLE, "").split(pathsep) if name]
    for folder in named:
        if not folder.is_dir():
            warnings.warn(f"{VARIABLE}: {folder} is not a folder", stacklevel=2)
    return tuple(folder.resolve() for folder in named if folder.is_dir())


def added(name: str, columns: Iterable[str]) -> Rows:
    """Rows that the folders add to the shipped table of that file name; a column left out is blank.
    Raises ValueError for a column that the shipped table has not."""
    blank = dict.fromkeys(columns, "")
    out = []
    for path in (folder / name for folder in folders()):
        rows = (
            list(csv.DictReader(path.open(newline="", encoding="utf-8"))) if path.is_file() else []
        )
        unknown = {column for row in rows for column in row} - blank.keys()
        if unknown:
            said = ", ".join(sorted(map(str, unknown)))
            raise ValueError(f"{path}: columns that the shipped table has not: {said}")
        out += [blank | row for row in rows]
    return tuple(out)


def found(shipped: Path, pattern: str) -> Iterable[Path]:
    """Files below the shipped folder and below each of the user's, by a pattern such as
    `stacks/*.yaml`."""
    for folder in (shipped, *folders()):
        yield from sorted(folder.glob(pattern))


def run_modules() -> None:
    """Run the Python files of the folders, each once, as modules of their own."""
    for folder in folders():
        for path in sorted(folder.glob("*.py")):
            name = f"scantling_extension_{path.stem}"
            spec = spec_from_file_location(name, path)
            sys.modules[name] = module = module_from_spec(spec)
            spec.loader.exec_module(module)
