"""Folders of a user's own rows and files, read after those that ship.

The environment variable SCANTLING_EXTENSIONS names them, joined as in PATH. A folder may hold
tables with rows of their own under the name of a shipped table (`accelerators.csv`, `models.csv`,
`quantities.csv` ...), `stacks/ID.yaml`, and `templates/NAME.j2`. Code comes in packages, by entry
points (`plugins`).
"""

import csv
import warnings
from collections.abc import Iterable
from functools import cache
from os import environ, pathsep
from pathlib import Path

from .errors import CatalogueError, plain
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
    Raises CatalogueError for a column that the shipped table has not."""
    blank = dict.fromkeys(columns, "")
    added = []
    for folder in folders():
        path = folder / name
        if not path.exists():
            continue
        if not path.is_file():
            raise CatalogueError(f"{path}: is not a file")
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
        except (csv.Error, ValueError) as e:
            raise CatalogueError(f"{path}: {plain(e, 200)}") from None
        unknown = {column for row in rows for column in row} - blank.keys()
        if unknown:
            names = ", ".join(sorted(map(str, unknown)))
            raise CatalogueError(f"{path}: columns that the shipped table has not: {names}")
        added += [blank | row for row in rows]
    return tuple(added)


def files(shipped: Path, pattern: str) -> Iterable[Path]:
    """Files below the shipped folder and below each of the user's, by a pattern such as
    `stacks/*.yaml`."""
    for folder in (shipped, *folders()):
        yield from sorted(folder.glob(pattern))
