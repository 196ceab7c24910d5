"""A design's lock: its verdict, plan and figures with their bands, and what they rest on, in a file
beside it that is reviewed like the design."""

from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, ValidationError
from scantling.base.errors import DesignError, plain
from scantling.base.files import json_object, read_text, write_text
from scantling.base.json import clean
from scantling.base.records import Known, record
from scantling.base.show import is_number
from scantling.design.design import Design
from scantling.verdict.verdicts import VERDICTS

from .answers import Answer, answered
from .provenance import Inputs, design_hash, digest, inputs, rounded
from .snapshot import KEYS, Figure, State, state
from .sources import GIT, named, of_revision

ENDING = ".lock"
VERSION: Literal[1] = 1
Number = Annotated[float, AllowInfNan(False)]
Hash = Annotated[str, Field(max_length=64)]
Name = Annotated[str, Field(max_length=300)]


class _Part(BaseModel):
    """A part of the file: nothing unknown, no text for a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class LockedFigure(_Part):
    """A figure with its 80 % band."""

    value: Number
    low: Number | None = None
    high: Number | None = None


class LockedInputs(_Part):
    """What the figures rest on."""

    hash: Hash
    rows: dict[Name, dict[str, Any]]
    constants: dict[Name, Number]
    tables: dict[Name, Hash]
    program: dict[Name, Name]


class LockFile(_Part):
    """The file as it is written."""

    scantling_lock: Literal[1] = VERSION
    name: str = ""
    design: Hash
    asked: dict[str, Any]
    verdict: str
    missed: list[str] = []
    plan: dict[str, Any] | None
    figures: dict[str, LockedFigure]
    inputs: LockedInputs


@record
class Lock:
    """What a lock holds: the state of a design when it was locked, the hash of the design, and what
    the figures rested on."""

    state: State
    design: str
    inputs: Inputs

    def to_text(self) -> str:
        """The lock as its file has it."""
        one = self.state
        data = {
            "scantling_lock": VERSION,
            "name": one.name,
            "design": self.design,
            "asked": one.design.data(),
            "verdict": one.verdict,
            "missed": list(one.missed),
            "plan": one.plan,
            "figures": {
                key: {"value": _nine(f.value), "low": _nine(f.low), "high": _nine(f.high)}
                for key, f in one.figures.items()
            },
            "inputs": {
                "hash": digest([clean(self.inputs.rows), clean(self.inputs.constants)]),
                "rows": self.inputs.rows,
                "constants": self.inputs.constants,
                "tables": self.inputs.tables,
                "program": self.inputs.program,
            },
        }
        return dumps(clean(data), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _nine(value: Known) -> Known:
    return None if value is None else rounded(value)


def lock(design: Design) -> Lock:
    """The lock of a design as it is now. Raises DesignError for a wrong design."""
    return lock_of(answered(design))


def lock_of(answer: Answer) -> Lock:
    """The lock of an answered design."""
    return Lock(state=state(answer), design=design_hash(answer.design), inputs=inputs(answer))


def lock_path(file: str | Path) -> Path:
    """Where the lock of a design file stands."""
    return Path(f"{file}{ENDING}")


def write_lock(file: str | Path, recorded: Lock) -> Path:
    """Write the lock of a design file beside it, over an older one."""
    path = lock_path(file)
    write_text(path, recorded.to_text(), force=True)
    return path


def read_lock(path: str | Path) -> Lock:
    """The lock in a file, or in git:REV:FILE. Raises DesignError for anything else."""
    start = plain(path, 200)
    allowed = "a lock that scantling lock wrote"
    if str(path).startswith(GIT):
        try:
            text, folder = of_revision(str(path))
        except DesignError as error:
            raise named(error, str(path)) from None
    else:
        text, folder = read_text(path, allowed), Path(path).parent

    def wrong(problem: str = "", allowed: str = allowed) -> DesignError:
        return DesignError(start, problem=problem, allowed=allowed)

    data = json_object(text, wrong)
    written = data.get("scantling_lock")
    if written is not None and is_number(written) and written > VERSION:
        problem = f"was written by a later release (format {written:g}, this one has {VERSION})"
        raise wrong(problem, "a release as new, or scantling lock once more")
    try:
        file = LockFile(**data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise wrong(f"{plain(where, 100)}: {plain(first['msg'], 100)}") from None
    except TypeError:
        raise wrong("has a field without a name") from None
    if file.verdict not in VERDICTS:
        raise DesignError(f"{start}: verdict", file.verdict, list(VERDICTS))
    if unknown := [key for key in file.figures if key not in KEYS]:
        raise DesignError(f"{start}: figures", unknown[0], list(KEYS))
    design = Design.from_data(file.asked, folder)
    figures = {
        key: Figure(value=f.value, low=f.low, high=f.high) for key, f in file.figures.items()
    }
    return Lock(
        state=State(
            name=file.name,
            design=design,
            verdict=file.verdict,
            plan=file.plan,
            figures=figures,
            missed=tuple(file.missed),
        ),
        design=file.design,
        inputs=Inputs(
            rows=file.inputs.rows,
            constants=file.inputs.constants,
            tables=file.inputs.tables,
            program=file.inputs.program,
        ),
    )
