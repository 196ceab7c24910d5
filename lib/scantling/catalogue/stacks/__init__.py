"""Software stacks: what each does unless a design or a published row says otherwise; one YAML file
a stack, named the way `published_runs.csv` names it.

The switches are facts about the code (its read-me, paper or defaults); the speeds that go with a
stack are fitted and live in catalogue/calibration.json.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from ...base.errors import CatalogueError, DesignError, closest, show_value
from ...base.extensions import files
from ...base.files import csv_rows, yaml_of
from ...base.records import Lines, record
from ..load import HERE
from ..words import (
    CP_TYPES,
    LAYER_SPLITS,
    MODULES,
    OFFLOADS,
    RECOMPUTES,
    RECOVERIES,
    SCHEDULES,
    SHARDINGS,
)

SHIPPED = HERE / "stacks"
GENERIC = "generic"  # the file of the stack that stands in where none, or an unknown one, is named
Word = str | float | bool  # what a field of a design says


@record
class Switch:
    """One thing that a stack does or does not: a row of software.csv."""

    name: str  # of the switch
    default: float  # what a stack does that does not say
    low: float
    high: float
    field: str  # dotted path of the field of a design that sets it
    where: str  # moe, low, sharded, packed: for which designs it decides anything; "": for all
    fitted: str  # the constant that holds where the switch goes without a number; "": none
    meaning: str
    # word of the field -> value of the switch (software_words.csv); empty: a number
    words: Mapping[str, float]

    def of(self, stated: Word) -> float:
        """The switch for what a field says."""
        return float(self.words.get(str(stated).lower(), stated))

    def word(self, value: float) -> Word | None:
        """What a field would say for a value of the switch, the first word of equals; None for a
        number that the switch goes without."""
        for word, code in self.words.items():
            if code == value:
                return {"true": True, "false": False}.get(word, word)
        return value or None


@cache
def software_switches() -> dict[str, Switch]:
    """The rows of catalogue/software.csv by name."""
    words: dict[str, dict[str, float]] = {}
    for row in csv_rows(HERE / "software_words.csv"):
        words.setdefault(row["switch"], {})[row["word"]] = float(row["value"])
    return {
        row["name"]: Switch(
            name=row["name"],
            default=float(row["default"]),
            low=float(row["low"]),
            high=float(row["high"]),
            field=row["field"],
            where=row["where"],
            fitted=row["fitted"],
            meaning=row["meaning"],
            words=words.get(row["name"], {}),
        )
        for row in csv_rows(HERE / "software.csv")
    }


class Recipe(NamedTuple):
    """How a stack's recipes set a switch."""

    since: float  # year
    value: float  # of the switch
    without: Lines  # kinds of block whose models' recipes do not


class Former(NamedTuple):
    """What a switch was in the releases before a year."""

    until: float  # year
    value: float  # of the switch
    eager: float  # the same where blocks are not compiled


@record
class Stack:
    """Defaults of one software stack; the fields of a YAML file, `name` being that of the file."""

    name: str
    title: str
    source: str
    names: Lines = ()  # by which a line of text means it, words apart by a blank or a hyphen
    flash: int = 2  # generation of flash attention, see cases.Software
    flash_modern: int = 2  # the same where the chip's family has modern attention kernels
    sequence_parallel: bool = False  # with tp > 1
    sharding: str = "zero1"
    schedule: str = ""  # pipeline schedule where none is printed
    recompute: str = "none"  # where none is printed
    cp_type: str = ""
    chunk_layers: int = 0  # layers of a virtual stage where vpp is not printed; 0: not interleaved
    interleaves: bool = False  # its recipes interleave as finely as layers divide
    other_grad_bytes: float = 8.0  # most of a gradient under other formats than bf16
    # a sharded pipeline is driven instruction by instruction: sends and reductions run between them
    pipeline_engine: bool = False
    # year since when stages are laid out so that loss and MTP take the place of three layers,
    # virtual stages or not
    mtp_layout_since: float = 1e9
    # switch of cases.Software -> how its recipes for experts in mxfp8 set it
    mxfp8_experts: Mapping[str, Recipe] = field(default_factory=dict)
    # weights, gradients and states keep the format that their checkpoint is loaded in: where
    # nothing is sharded (the sharding takes them to fp32), and where a loop may do so
    half_unsharded: bool = False
    half_possible: bool = False
    # what a collective may wait for a rank before the run is ended [s]: the process group's default
    # of torch.distributed over NCCL; inf: none
    collective_timeout_s: float = 600.0
    # sharded weights stay gathered from a pipeline's first forward to its last backward
    keeps_gathered: bool = False
    planned: Mapping[str, float] = field(default_factory=dict)  # switches of a run planned now
    # switch of cases.Software -> what it was in earlier releases, the earliest first
    formerly: Mapping[str, tuple[Former, ...]] = field(default_factory=dict)
    succeeded_by: str = ""  # the stack that its name stands for on chips with modern kernels
    software: Mapping[str, float] = field(default_factory=dict)  # switches, see cases.Software
    # facts of its code and of what its published figures count, see memory.constants
    memory: Mapping[str, float | str] = field(default_factory=dict)
    memory_source: str = ""
    # axis of a plan -> the values that it offers; an axis that is not there is open
    offers: Mapping[str, tuple[str | float, ...]] = field(default_factory=dict)
    offers_source: str = ""
    laws: Lines = ()  # that its code holds a plan to: functions of plans.stack_laws, by name
    # what keeps each process from reading the whole of a model's weights into its host's memory,
    # where it does so unless it is told otherwise
    loads_whole: str = ""
    chips: str = ""  # vendor stacks of families.csv on which anybody may run it, with a kit
    kit: str = ""  # framework whose launch kit starts it; "": none does
    # ways of going on after a failure that it, as its kit starts it, has: the best first
    recovers: Lines = ("in-place", "restart")
    waits_for_saves: bool = False  # training stands still until a checkpoint is whole
    unmeasured: str = ""  # what stands in because no published run supports constants of its own


_FIELDS = frozenset(f.name for f in fields(Stack)) - {"name"}


# fields that say a word, or hold a plan's axis to some, and the words that they know
_WORDS: Mapping[str, Lines] = {
    "sharding": SHARDINGS,
    "schedule": SCHEDULES,
    "recompute": RECOMPUTES,
    "cp_type": CP_TYPES,
    "layer_split": LAYER_SPLITS,
    "offload": OFFLOADS,
    "recompute_modules": MODULES,
}
_BY_SWITCH = ("software", "planned", "mxfp8_experts", "formerly")  # fields that name switches


def _words(values: Mapping[str, Any]) -> Iterator[tuple[str, str, Iterable[str]]]:
    """(field, word or name that stands in it, those that it knows) of a file."""
    for name, known in _WORDS.items():
        if name in values:
            yield name, values[name], known
        for word in values.get("offers", {}).get(name, ()):
            yield "offers", word, known
    for name in _BY_SWITCH:
        for switch in values.get(name, ()):
            yield name, switch, software_switches()
    for way in values.get("recovers", ()):
        yield "recovers", way, RECOVERIES


def _beyond(values: Mapping[str, Any]) -> Iterator[str]:
    """What of a file lies beyond the bounds of its switch, with what is allowed."""
    known = software_switches()
    last = int(known["flash"].high)
    for name in ("flash", "flash_modern"):
        if values.get(name, last) not in range(last + 1):
            yield f"{name}: {values[name]}; allowed: a generation from 0 to {last}"
    stated = [item for name in ("software", "planned") for item in values.get(name, {}).items()]
    stated += [(name, each["value"]) for name, each in values.get("mxfp8_experts", {}).items()]
    former = [(name, each) for name, rows in values.get("formerly", {}).items() for each in rows]
    stated += [(name, each[of]) for name, each in former for of in ("value", "eager")]
    for name, value in stated:
        low, high = known[name].low, known[name].high
        if not isinstance(value, (int, float)) or not low <= value <= high:
            yield f"{name}: {value}; allowed: a number from {low:g} to {high:g}"


def _misfits(path: Path, values: object) -> dict[str, bool]:
    """What is of another kind in a user's file than its field, and whether a number is wanted."""
    stated = {"name": path.stem, **values} if isinstance(values, dict) else values
    try:
        TypeAdapter(Stack).validate_python(stated)
    except ValidationError as e:
        found = {}
        for each in e.errors():
            where = ".".join(map(str, each["loc"])) or "a stack"
            problem = f"{where}: {show_value(each['input'])} ({each['msg']})"
            found[problem] = each["type"].startswith(("int", "float"))
        return found
    return {}


def _read(path: Path) -> Stack:
    """The stack of a file. Raises CatalogueError for a field that no stack has, a value of another
    kind than its field's, a word that its field does not know, and a number beyond the bounds of
    its switch."""
    values: dict[str, Any] = yaml_of(path)
    misfits = {} if path.parent == SHIPPED else _misfits(path, values)
    for problem, of_number in misfits.items():
        if not of_number:  # of those there are rules
            raise CatalogueError(f"{path}: {problem}")
    for name in values:
        if name not in _FIELDS:
            raise CatalogueError(f"{path.name}: a stack has no field {name}")
    for name, word, known in _words(values):
        if word not in known:
            nearest = closest(word, known) or ", ".join(known)
            raise CatalogueError(f"{path.name}: {name} knows no {word}; nearest: {nearest}")
    for problem in _beyond(values):
        raise CatalogueError(f"{path.name}: {problem}")
    for problem in misfits:
        raise CatalogueError(f"{path}: {problem}")
    recipes = values.get("mxfp8_experts", {}).items()
    return Stack(
        name=path.stem,
        **values
        | {
            "names": tuple(values.get("names", ())),
            "laws": tuple(values.get("laws", ())),
            "offers": {axis: tuple(among) for axis, among in values.get("offers", {}).items()},
            "mxfp8_experts": {
                switch: Recipe(each["since"], each["value"], tuple(each["without"]))
                for switch, each in recipes
            },
            "formerly": {
                switch: tuple(Former(**each) for each in rows)
                for switch, rows in values.get("formerly", {}).items()
            },
        },
    )


@cache
def every_stack() -> dict[str, Stack]:
    """All stacks, the generic one among them."""
    return {stack.name: stack for stack in map(_read, files(HERE, "stacks/*.yaml"))}


def stacks() -> dict[str, Stack]:
    """All named stacks, by name."""
    return {name: stack for name, stack in every_stack().items() if name != GENERIC}


def named_stack(name: str, field: str = "stack") -> Stack:
    """The stack of that name. Raises DesignError with the nearest where there is none."""
    known = stacks()
    if name not in known:
        nearest = closest(name, known)
        raise DesignError(
            field, name, list(known), nearest, problem="is not a stack of the catalogue"
        )
    return known[name]


def stack(name: str | None) -> Stack:
    """The stack of that name; the generic one where it is unknown or None."""
    return every_stack().get(name or GENERIC, every_stack()[GENERIC])


def canonical(name: str | None, modern: bool) -> str | None:
    """The stack whose code runs: on chips with modern kernels the old Megatron-LM, which predates
    them, stands for Megatron-Core."""
    return (modern and stack(name).succeeded_by) or name
