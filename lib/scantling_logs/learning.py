"""Many logs at once: files and folders read, each as one reading."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from scantling.base.errors import DesignError, plain

from .launches import runs_of
from .log_reading import Reading, reading
from .recognise import contents_of

MOST_FILES = 2000
# endings of files that a scan of a folder leaves alone
NO_LOGS = (".yaml", ".yml", ".py", ".sh", ".png", ".md5", ".pdf", ".lock", ".bin", ".pt")


def read_runs(path: str | Path) -> list[Reading]:
    """What one log says of each of its runs: one, unless it was launched again with other settings.
    Raises DesignError for a file that is no log of a known format."""
    path = Path(path)
    runs = runs_of(contents_of(path))
    return [reading(run, ", ".join(filter(None, (path.name, run.name)))) for run in runs]


def read_log(path: str | Path) -> Reading:
    """What one log says of its last run. Raises DesignError as `read_runs` does."""
    return read_runs(path)[-1]


def files_of(folder: Path) -> list[Path]:
    """The files of a folder that may be logs, those of its folders too."""
    logs = (p for p in folder.rglob("*") if p.name[0] != "." and p.suffix not in NO_LOGS)
    return sorted(p for p in logs if p.is_file())[:MOST_FILES]


def untold(text: str) -> None:
    """A line that nobody reads."""


def read_logs(paths: Iterable[str | Path], tell: Callable[[str], None] = untold) -> list[Reading]:
    """What every log says; files of a folder that are no logs are left out, and told in a line.

    Raises DesignError for a named file that is none, and where a folder holds none.
    """
    named = [Path(path) for path in paths]
    readings = []
    for path in named:
        for file in files_of(path) if path.is_dir() else (path,):
            try:
                readings.extend(read_runs(file))
            except DesignError as error:
                if file == path:
                    raise
                tell(f"{file} {error.problem.partition(':')[0]}")
    if not readings:
        raise DesignError(
            plain(" ".join(map(str, named)), 200),
            problem="holds no log of a known format",
            allowed="training logs, tables of metrics or traces",
        )
    return readings


def learn(paths: str | Path | Iterable[str | Path]) -> list[dict[str, Any]]:
    """What training logs say: one mapping a run, as `learn --json` prints it; a log holds several
    where it was launched again with other settings.

    paths : a log, a folder of logs, or several of them. A figure that a log does not hold is None.
    Raises DesignError for a named file that is no log of a known format.
    """
    several = [paths] if isinstance(paths, (str, Path)) else list(paths)
    return [log.as_dict() for log in read_logs(several)]
