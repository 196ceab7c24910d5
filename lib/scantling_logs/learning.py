"""Many logs at once: files and folders read, each as one reading."""

from collections.abc import Callable, Iterable
from pathlib import Path

from scantling.base.errors import DesignError, plain

from .reading import Reading, reading
from .recognise import recognise
from .rows import spoken

MOST_FILES = 2000


def read_log(path) -> Reading:
    """What one log says. Raises DesignError for a file that is no log of a known format."""
    path = Path(path)
    return reading(recognise(path).read(path), path.name)


def files_of(folder: Path) -> list:
    """The files of a folder that may be logs, those of its folders too."""
    held = (
        p for p in folder.rglob("*") if p.name[0] != "." and p.suffix not in spoken()["no_logs"]
    )
    return sorted(p for p in held if p.is_file())[:MOST_FILES]


def read_logs(paths, tell: Callable = len) -> list:
    """What every log says; files of a folder that are no logs are left out, and told in a line.

    Raises DesignError for a named file that is none, and where a folder holds none.
    """
    got = []
    for path in map(Path, paths):
        for file in files_of(path) if path.is_dir() else (path,):
            try:
                got.append(read_log(file))
            except DesignError as error:
                if file == path:
                    raise
                tell(f"{file} {error.problem.partition(':')[0]}")
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
    several = [paths] if isinstance(paths, (str, Path)) else list(paths)
    return [r.as_dict() for r in read_logs(several)]
