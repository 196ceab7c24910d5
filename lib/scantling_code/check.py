"""Every design of a repository recorded to its constraints and to its lock."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from enum import StrEnum
from multiprocessing import get_context
from os import cpu_count, walk
from pathlib import Path

from scantling.base.errors import DesignError, plain
from scantling.base.quantities.quantity import show
from scantling.base.records import record
from scantling.base.show import percent
from scantling.design import file as design_yaml
from scantling.design.design import Design
from scantling.verdict.assess import assess
from scantling.verdict.verdicts import VERDICTS, met

from .diff import changes
from .lock import ENDING, Lock, lock_path, read_lock
from .provenance import design_hash, inputs, moved
from .snapshot import KEYS, State, label, same, state

ENDINGS = (".yaml", ".yml")
SECTIONS = {"model", "cluster", "job"}  # that every design has
LINES = 12  # about what moved, at most


class Kind(StrEnum):
    """What may be wrong with a design."""

    REFUSED = "refused"
    CONSTRAINT = "constraint"
    MOVED = "moved"
    STALE = "stale-lock"
    UNLOCKED = "no-lock"


MEANS = {
    Kind.REFUSED: "The design file or its lock is wrong.",
    Kind.CONSTRAINT: "The design does not meet what it asks for.",
    Kind.MOVED: "The verdict or a figure is no longer that of the lock.",
    Kind.STALE: "The design was changed since it was locked.",
    Kind.UNLOCKED: "The design has no lock.",
}


@record
class Finding:
    """Something that is wrong with a design, in words; the field that it concerns, if one."""

    kind: Kind
    text: str
    field: str = ""


@record
class Checked:
    """One design: its verdict (empty where it was refused), what is wrong with it, seconds."""

    path: str
    verdict: str
    findings: tuple[Finding, ...]
    locked: bool

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


@record
class Rules:
    """How strict a check is. `tolerance`: share by which a figure may move; `locked`: whether
    every design needs a lock."""

    tolerance: float = 0.0
    locked: bool = False


def designs_under(paths: Iterable[str | Path]) -> list[Path]:
    """The design files among some paths: a file as it is, of a folder all YAML files below it that
    are designs, hidden folders left out. Raises DesignError where there is none."""
    files: dict[Path, None] = {}
    names = [Path(path) for path in paths]
    for path in names:
        if path.is_dir():
            files |= dict.fromkeys(_below(path))
        else:
            files[path] = None
    if not files:
        named = ", ".join(map(str, names))
        raise DesignError(plain(named, 200), problem="holds no design", allowed="*.yaml files")
    return list(files)


def changed_designs(paths: Iterable[str | Path]) -> list[Path]:
    """The designs among files that changed, in their order: a lock stands for its design, and what
    is no design, or there no longer, is left out."""
    files: dict[Path, None] = {}
    for name in paths:
        path = Path(str(name).removesuffix(ENDING))
        if path.suffix in ENDINGS and path.is_file() and _is_design(path):
            files[path] = None
    return list(files)


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place) / name
            if path.suffix in ENDINGS and _is_design(path):
                yield path


def _is_design(path: Path) -> bool:
    """Whether a YAML file says that it is a design: by its version, or by its sections. What is no
    YAML, but has the version in a line of its own, is one that went wrong."""
    try:
        text = design_yaml.read_text(path)
    except DesignError:
        return False
    try:
        data = design_yaml.load(text)
    except DesignError:
        return any(line.startswith("scantling:") for line in text.splitlines())
    return isinstance(data, dict) and ("scantling" in data or data.keys() >= SECTIONS)


def check_one(path: str, rules: Rules) -> Checked:
    """One design recorded to its constraints and its lock."""
    lock_file = lock_path(path)
    locked = lock_file.is_file()
    try:
        design = Design.read(path)
        assessment = assess(design)
    except DesignError as error:
        finding = Finding(kind=Kind.REFUSED, text=_short(error, path), field=error.field)
        return Checked(path=path, verdict="", findings=(finding,), locked=locked)
    now = state(assessment)
    findings: list[Finding] = []
    if not met(now.verdict):
        findings.append(Finding(kind=Kind.CONSTRAINT, text=_verdict(now)))
    if not locked:
        if rules.locked:
            text = f"has no lock; scantling lock {plain(path, 200)} writes one"
            findings.append(Finding(kind=Kind.UNLOCKED, text=text))
        return Checked(path=path, verdict=now.verdict, findings=tuple(findings), locked=False)
    try:
        recorded = read_lock(lock_file)
    except DesignError as error:
        findings.append(Finding(kind=Kind.REFUSED, text=str(error)))
        return Checked(path=path, verdict=now.verdict, findings=tuple(findings), locked=True)
    if recorded.design != design_hash(design):
        asked = "; ".join(one.text() for one in changes(recorded.state.design, design))
        text = f"was changed since it was locked ({asked or 'a file that it names'})"
        findings.append(Finding(kind=Kind.STALE, text=text))
    else:
        why = moved(recorded.inputs, inputs(assessment))
        findings += _moved(recorded, now, rules.tolerance, why)
    return Checked(path=path, verdict=now.verdict, findings=tuple(findings), locked=True)


def _short(error: DesignError, path: str) -> str:
    """The message without the name of the file, which stands beside it."""
    return str(error).removeprefix(f"{plain(path, 200)}: ")


def _verdict(now: State) -> str:
    lines = now.missed or (VERDICTS[now.verdict].means,)
    return f"{VERDICTS[now.verdict].name}: {'; '.join(lines[:LINES])}"


def _moved(recorded: Lock, now: State, tolerance: float, why: Sequence[str]) -> Iterator[Finding]:
    """What is no longer as the lock has it, with what it rests on that differs."""
    before = recorded.state
    because = "; ".join(why[:LINES]) or "nothing that the lock records differs"
    if len(why) > LINES:
        because += f"; {len(why) - LINES} more"
    if before.verdict != now.verdict:
        text = f"verdict {VERDICTS[before.verdict].name} → {VERDICTS[now.verdict].name}"
        yield Finding(kind=Kind.MOVED, text=f"{text}; by {because}", field="verdict")
    for key in KEYS:
        one, other = before.value(key), now.value(key)
        if one is None and other is None:
            continue
        if one is not None and other is not None:
            if same(one, other, tolerance):
                continue
            by = f" ({percent(other / one - 1, 2, '+')})" if one else ""
        else:
            by = ""
        text = f"{label(key)} {show(key, one)} → {show(key, other)}{by}"
        yield Finding(kind=Kind.MOVED, text=f"{text}; by {because}", field=key)


def check(
    paths: Iterable[str | Path],
    rules: Rules,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> list[Checked]:
    """Every design under some paths, in order; on so many processes, as many as there are cores
    where it is left out."""
    files = [str(path) for path in designs_under(paths)]
    workers = min(jobs or cpu_count() or 1, len(files))
    results: list[Checked] = []
    if workers == 1 or len(files) < 4:
        for file in files:
            results.append(check_one(file, rules))
            if progress is not None:
                progress(len(results), len(files))
        return results
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for one in pool.map(check_one, files, [rules] * len(files), chunksize=4):
            results.append(one)
            if progress is not None:
                progress(len(results), len(files))
    return results
