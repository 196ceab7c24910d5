"""What the figures of a design rest on beside the design itself: rows of the catalogue, calibrated
constants, the data files whole, and the program."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from json import dumps
from pathlib import Path
from typing import Any

from scantling import catalogue
from scantling.base.extensions import folders
from scantling.base.json import clean
from scantling.base.plugins import FUNCTIONS, entries
from scantling.base.records import record
from scantling.base.show import is_number
from scantling.catalogue.families import family
from scantling.catalogue.models.hf import config_file
from scantling.catalogue.models.shape import Model
from scantling.catalogue.stacks import stack
from scantling.catalogue.words import RENTS
from scantling.design.design import Design
from scantling.design.methods import PLANNER
from scantling.design.resolved import Resolved
from scantling.physics.constants import OF_MEMORY, Constants
from scantling.physics.gather import stack_of
from scantling.verdict.assessment import Assessment

from .answers import Answer
from .sources import companions

DATA = (".csv", ".json", ".yaml")
# of rows, for readers
ABOUT = ("source", "notes", "date", "verified", "verified_except", "aliases")
FAR = 10.0
SHOWN = 6  # fields of a row that are named
Values = dict[str, Any]  # field of a row -> its value, as JSON has it
MODEL = "models/"  # in front of the name of the model's row


@record
class Inputs:
    """What a design's figures rest on.

    rows : `accelerators/h100-sxm` -> the fields of that row of the catalogue.
    constants : name -> value, as the plan's case has it.
    tables : data file -> hash. program : version and hash of the code.
    """

    rows: Mapping[str, Values]
    constants: Mapping[str, float]
    tables: Mapping[str, str]
    program: Mapping[str, str]


def digest(data: Any) -> str:
    """Hash of plain data."""
    return sha256(dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def design_hash(design: Design) -> str:
    """Hash of a design and of the files that it names; its name and notes decide nothing."""
    data = {k: v for k, v in design.data().items() if k not in ("name", "notes")}
    files = {}
    for dotted, name in companions(data).items():
        path = config_file(design.folder / name)
        files[dotted] = sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return digest([clean(data), files])


def inputs(answer: Answer) -> Inputs:
    """The inputs of an answered design; constants where a plan holds the model."""
    if isinstance(answer, Assessment):
        constants, package = _constants(answer), {}
    else:
        constants = _plain_numbers(answer.core_constants, answer.constants)
        package = {PLANNER: _code(entries(FUNCTIONS)[PLANNER].module.partition(".")[0])}
    return Inputs(
        rows=dict(_rows(answer.resolved)),
        constants=constants,
        tables=_tables(),
        program=_program() | package,
    )


def _rows(resolved: Resolved) -> Iterator[tuple[str, Values]]:
    """The rows of the catalogue that a design names, or that stand in where it names none."""
    cluster = resolved.cluster
    chip = cluster.accelerator
    spec = resolved.design.model
    model = spec if isinstance(spec, str) else spec.like or "own"
    yield f"{MODEL}{model}", _row(resolved.model)
    named: list[tuple[str, str, Mapping[str, Any]]] = [
        ("accelerators", chip.id, catalogue.accelerators()),
        ("nodes", cluster.node, catalogue.nodes()),
        ("fabrics", cluster.scale_up, catalogue.fabrics()),
        ("fabrics", cluster.scale_out, catalogue.fabrics()),
        ("storage", cluster.storage, catalogue.storages()),
        ("failure_presets", resolved.reliability.preset or "typical", catalogue.failure_presets()),
    ]
    for table, id, known in named:
        if id in known:
            yield f"{table}/{id}", _row(known[id])
    for phase in resolved.phases:
        if phase.optimizer in catalogue.optimizers():
            yield f"optimizers/{phase.optimizer}", _row(catalogue.optimizers()[phase.optimizer])
    yield f"families/{chip.family}", _row(family(chip.family))
    software = stack_of(resolved)
    if software is not None:
        yield f"stacks/{software}", _row(stack(software))
    if chip.id in catalogue.accelerators():
        for kind in RENTS:
            price = catalogue.price(chip.id, kind)
            if price is not None:
                yield f"prices/{chip.id}/{kind}", _row(price)


def _row(row: Any) -> Values:
    """The fields of a record as plain data, without what is for readers."""
    return {k: _plain(v) for k, v in vars(row).items() if k not in ABOUT and not k.startswith("_")}


def _plain(value: Any) -> Any:
    """Plain JSON data of whatever a row holds; what has no plain form as its text."""
    if hasattr(value, "__dataclass_fields__"):
        return _row(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    value = clean(value)
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _constants(assessment: Assessment) -> dict[str, float]:
    """The constants of the main phase's plan."""
    if not assessment.phases:
        return {}
    return _plain_numbers(assessment.chosen.case.constants, {})


def _plain_numbers(core: Constants | None, own: Mapping[str, float]) -> dict[str, float]:
    """The constants of a plan, and those of tuning behind the name of what plans it; none where no
    plan holds the model."""
    if core is None:
        return {}
    tuning = {f"{PLANNER}.{name}": value for name, value in own.items()}
    found = {**by_name(core), **tuning}
    return {k: rounded(float(v)) for k, v in found.items() if is_number(clean(v))}


def by_name(constants: Constants) -> dict[str, Any]:
    """Each constant of a case by its name, as `standing_in` takes them."""
    memory = {f"{OF_MEMORY}{k}": v for k, v in vars(constants.memory).items()}
    return {**vars(constants), **memory}


def rounded(value: float) -> float:
    """A number to nine digits, which is the same on every machine."""
    return float(f"{value:.9g}")


@cache
def _tables() -> dict[str, str]:
    """Hash of each data file of the catalogue, with what a user's folders add to it."""
    files: dict[str, str] = {}
    for place in (catalogue.HERE, *folders()):
        for path in sorted(place.rglob("*")):
            if path.suffix in DATA and path.is_file():
                name = path.relative_to(place).as_posix()
                content = files.get(name, "").encode() + path.read_bytes()
                files[name] = sha256(content).hexdigest()[:16]
    return files


@cache
def _program() -> dict[str, str]:
    """Version of the package and a hash of its code."""
    return {"version": version("scantling"), "code": _code("scantling")}


@cache
def _code(package: str) -> str:
    """Hash of the code of a package."""
    code = sha256()
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None, "an installed package has its files"
    here = Path(spec.origin).parent
    for path in sorted(here.rglob("*.py")):
        code.update(path.relative_to(here).as_posix().encode() + path.read_bytes())
    return code.hexdigest()[:16]


def inputs_hash() -> str:
    """Hash of all data files and of the program."""
    return digest([_tables(), _program()])


@record
class Moved:
    """An input that differs between two sets of them, in words, with what it was.

    name : of a row. fields : those of the row that differ. constants : {name: value}. record : what
    a model's row came to.
    """

    text: str
    name: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)
    record: Any = None


def moved(before: Inputs, after: Inputs, model: Model) -> list[Moved]:
    """What differs between two sets of inputs: rows, constants, and where none of these does the
    data files and the program. `model`: the design's, now."""
    rows = [*_moved_rows(before, after, model), *_moved_constants(before, after)]
    if rows:
        return rows
    names = dict.fromkeys([*before.tables, *after.tables])
    tables = [name for name in names if before.tables.get(name) != after.tables.get(name)]
    files = [Moved(text=f"data file {name}") for name in tables]
    if before.program != after.program:
        versions = [one.program.get("version", "") for one in (before, after)]
        text = " → ".join(versions) if versions[0] != versions[1] else f"{versions[0]}, other code"
        files.append(Moved(text=f"program {text}"))
    return files


def near(old: float, now: float) -> bool:
    """Whether a number may have been what another is now: none is taken for one that moved further
    than FAR times."""
    return old == 0 or now == 0 or 1 / FAR <= old / now <= FAR


def _moved_rows(before: Inputs, after: Inputs, model: Model) -> Iterator[Moved]:
    for name in dict.fromkeys([*before.rows, *after.rows]):
        one, other = before.rows.get(name), after.rows.get(name)
        if one == other:
            continue
        if one is None or other is None:
            what = "is new" if one is None else "is no longer used"
            yield Moved(text=f"catalogue row {name} {what}")
            continue
        fields = [f for f in dict.fromkeys([*one, *other]) if one.get(f) != other.get(f)]
        texts = [f"{f} {_said(one.get(f))} → {_said(other.get(f))}" for f in fields[:SHOWN]]
        yield Moved(
            text=f"catalogue row {name}: {', '.join(texts)}",
            name=name,
            fields={f: one[f] for f in fields if f in one and f in other},
            record=model if name.startswith(MODEL) else None,
        )


def _moved_constants(before: Inputs, after: Inputs) -> Iterator[Moved]:
    for name in dict.fromkeys([*before.constants, *after.constants]):
        one, other = before.constants.get(name), after.constants.get(name)
        if one != other:
            known = {} if one is None or other is None or not near(one, other) else {name: one}
            yield Moved(text=f"constant {name} {_said(one)} → {_said(other)}", constants=known)


def _said(value: Any) -> str:
    if is_number(value):
        return format(value, ",.6g").replace("e+", "e")
    return "none" if value is None else str(value)[:60]
