"""Many logs at once: files and folders read, each as one reading."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from ..base.errors import DesignError, plain
from .reading import Reading, reading
from .recognise import recognise

MOST_FILES = 2000
ENDINGS = (".yaml", ".yml", ".py", ".sh", ".png", ".md5", ".pdf", ".lock", ".bin", ".pt")


def read_log(path) -> Reading:
    """What one log says. Raises DesignError for a file that is no log of a known format."""
    path = Path(path)
    return reading(recognise(path).read(path), path.name)


def files_of(paths) -> Iterator:
    """(file, whether it was named itself) of paths and of the folders among them."""
    for path in map(Path, paths):
        if not path.is_dir():
            yield path, True
            continue
        found = sorted(
            Path(folder) / name
            for folder, folders, names in os.walk(path)
            for name in names
            if not name.startswith(".") and not name.endswith(ENDINGS)
        )
        yield from ((file, False) for file in islice(found, MOST_FILES))


def read_logs(paths, tell: Callable = len) -> list:
    """What every log says; files of a folder that are no logs are left out, and told in a line.

    Raises DesignError for a named file that is none, and where a folder holds none.
    """
    got = []
    for path, named in files_of(paths):
        try:
            got.append(read_log(path))
        except DesignError as error:
            if named:
                raise
            tell(f"{path} {error.problem.partition(':')[0]}")
    if not got:
        raise DesignError(
            plain(" ".join(map(str, paths)), 200),
            problem="holds no log of a known format",
            allowed="training logs, tables of metrics or traces",
        )
    return got


def learn(paths: str | Path | Iterable[str | Path]) -> list[dict]:
    """What training logs say: one mapping a log, as `learn --json` prints it.

    paths : a log, a folder of logs, or several of them. A figure that a log does not hold is None.
    Raises DesignError for a named file that is no log of a known format.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return [r.as_dict() for r in read_logs(several)]
