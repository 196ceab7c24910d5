"""Every design of a repository recorded to its constraints and to its lock."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from os import cpu_count, walk
from os.path import lexists
from pathlib import Path
from typing import Any

from scantling.base.errors import DesignError, plain
from scantling.base.files import read_text
from scantling.base.quantities.quantity import show
from scantling.base.records import Known, record
from scantling.base.show import percent
from scantling.base.workers import crew
from scantling.design import file as design_yaml
from scantling.design.design import Design
from scantling.verdict.verdicts import VERDICTS, met

from .answers import Answer, answered, reasons
from .causes import Cause, between_states, of_inputs, with_interaction
from .diff import changes, said
from .lock import ENDING, Lock, lock_path, read_lock
from .provenance import Moved, design_hash, inputs, moved
from .snapshot import KEYS, label, same, state

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
    shares: tuple[tuple[str, float], ...] = ()  # of what moved a figure, of its change


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

    def as_dict(self) -> dict[str, Any]:
        """As plain data: a row of `check --json`."""
        return {
            "file": self.path,
            "verdict": self.verdict or None,
            "passed": self.passed,
            "locked": self.locked,
            "findings": [
                {
                    "kind": each.kind.value,
                    "field": each.field or None,
                    "text": each.text,
                    "shares": dict(each.shares),
                }
                for each in self.findings
            ],
        }


@record
class Rules:
    """How strict a check is. `tolerance`: share by which a figure may move; `locked`: whether
    every design needs a lock."""

    tolerance: float = 0.0
    locked: bool = False


def designs_under(paths: Iterable[str | Path]) -> list[Path]:
    """The design files among some paths: a file as it is, of a folder all YAML files below it that
    are designs, hidden folders left out. Raises DesignError for a folder that holds none."""
    files: dict[Path, None] = {}
    for path in map(Path, paths):
        found = list(_below(path)) if path.is_dir() else [path]
        if not found:
            raise DesignError(plain(path, 200), problem="holds no design", allowed="*.yaml files")
        files |= dict.fromkeys(found)
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
        named = dict.fromkeys(name.removesuffix(ENDING) for name in sorted(files))
        for path in (Path(place) / name for name in named):
            if path.suffix in ENDINGS and _is_design(path):
                yield path


def _is_design(path: Path) -> bool:
    """Whether a YAML file says that it is a design: by its lock, which may outlive it, by its
    version, or by its sections. What is no YAML, but has the version in a line of its own, is one
    that went wrong."""
    if _is_lock(lock_path(path)):
        return True
    try:
        text = design_yaml.read_text(path)
    except DesignError:
        return False
    try:
        data = design_yaml.load(text)
    except DesignError:
        return any(line.startswith("scantling:") for line in text.splitlines())
    return isinstance(data, dict) and ("scantling" in data or data.keys() >= SECTIONS)


def _is_lock(path: Path) -> bool:
    """Whether a file begins as a lock does."""
    try:
        return '"scantling_lock"' in read_text(path)[:100]
    except DesignError:
        return False


def check_one(path: str, rules: Rules) -> Checked:
    """One design recorded to its constraints and its lock."""
    lock_file = lock_path(path)
    locked = lexists(lock_file)
    try:
        design = Design.read(path)
        answer = answered(design)
    except DesignError as error:
        finding = Finding(kind=Kind.REFUSED, text=_short(error, path), field=error.field)
        return Checked(path=path, verdict="", findings=(finding,), locked=locked)
    now = state(answer)
    findings: list[Finding] = []
    if not met(now.verdict):
        findings.append(Finding(kind=Kind.CONSTRAINT, text=_verdict(answer)))
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
        asked = "; ".join(said(one) for one in changes(recorded.state.design, design))
        text = f"was changed since it was locked ({asked or 'a file that it names'})"
        findings.append(Finding(kind=Kind.STALE, text=text))
    else:
        findings += _moved(recorded, answer, rules.tolerance)
    return Checked(path=path, verdict=now.verdict, findings=tuple(findings), locked=True)


def _short(error: DesignError, path: str) -> str:
    """The message without the name of the file, which stands beside it."""
    return str(error).removeprefix(f"{plain(path, 200)}: ")


def _verdict(now: Answer) -> str:
    """The verdict with its reasons."""
    return f"{VERDICTS[now.verdict].name}: {_listed(reasons(now))}"


def _moved(recorded: Lock, answer: Answer, tolerance: float) -> Iterator[Finding]:
    """What is no longer as the lock has it, with what moved it and by how much of the whole."""
    before, now = recorded.state, state(answer)
    keys = [key for key in KEYS if not _same(before.value(key), now.value(key), tolerance)]
    if before.verdict == now.verdict and not keys:
        return
    what = moved(recorded.inputs, inputs(answer), answer.resolved.model)
    deltas = between_states(before, now)
    causes = with_interaction(before, deltas, of_inputs(before, answer, what))
    if before.verdict != now.verdict:
        text = f"verdict {VERDICTS[before.verdict].name} → {VERDICTS[now.verdict].name}"
        by = _listed([one.text for one in what])
        yield Finding(kind=Kind.MOVED, text=f"{text}; by {by}", field="verdict")
    for key in keys:
        one, other = before.value(key), now.value(key)
        step = f" ({percent(other / one - 1, 2, '+')})" if one and other is not None else ""
        text = f"{label(key)} {show(key, one)} → {show(key, other)}{step}"
        shares = _shares(key, deltas[key], causes)
        yield Finding(
            kind=Kind.MOVED,
            text=f"{text}; by {_because(what, shares)}",
            field=key,
            shares=tuple(shares.items()),
        )


def _same(one: Known, other: Known, tolerance: float) -> bool:
    if one is None or other is None:
        return one is other
    return same(one, other, tolerance)


def _shares(key: str, whole: Known, causes: Iterable[Cause]) -> dict[str, float]:
    """Of the change of a figure, by what moved it, the largest first."""
    shares = {one.name: one.share(key, whole) for one in causes}
    known = {name: share for name, share in shares.items() if share}
    return dict(sorted(known.items(), key=lambda item: -abs(item[1])))


def _because(what: Sequence[Moved], shares: Mapping[str, float]) -> str:
    """What moved a figure: with its share where that is known, else all that differs."""
    if not shares:
        return _listed([one.text for one in what])
    return _listed([f"{name} ({percent(share, 0)})" for name, share in shares.items()])


def _listed(texts: Sequence[str]) -> str:
    more = f"; {len(texts) - LINES} more" if len(texts) > LINES else ""
    return ("; ".join(texts[:LINES]) or "nothing that the lock records differs") + more


def check(
    paths: Iterable[str | Path],
    rules: Rules,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> list[Checked]:
    """Every design under some paths, in order; on so many processes, as many as there are cores
    where it is left out. Raises DesignError for paths without a design, and for a tolerance that is
    no share."""
    if not 0 <= rules.tolerance <= 1:
        raise DesignError("tolerance", rules.tolerance, "a share from 0 to 1")
    files = [str(path) for path in designs_under(paths)]
    workers = min(jobs or cpu_count() or 1, len(files))
    results: list[Checked] = []
    if workers <= 1 or len(files) < 4:
        for file in files:
            results.append(check_one(file, rules))
            if progress is not None:
                progress(len(results), len(files))
        return results
    with crew() as start:
        for one in start(workers).map(check_one, files, [rules] * len(files), chunksize=4):
            results.append(one)
            if progress is not None:
                progress(len(results), len(files))
    return results


def checked_rows(
    paths: Iterable[str | Path], *, tolerance: float = 0.0, locked: bool = False
) -> list[dict[str, Any]]:
    """The rows of `check --json`, in this process."""
    rules = Rules(tolerance=tolerance, locked=locked)
    return [one.as_dict() for one in check(paths, rules, jobs=1)]
