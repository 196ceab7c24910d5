"""Software stacks: what each does unless a design or a published row says otherwise; one YAML file
a stack, named the way `published_runs.csv` names it.

The switches are facts about the code (its read-me, paper or defaults); the speeds that go with a
stack are fitted and live in catalogue/calibration.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache

from ...base.extensions import found
from ...base.files import csv_rows
from ...base.records import record
from ...base.words import yaml_of
from ..load import HERE

GENERIC = "generic"  # the file of the stack that stands in where none, or an unknown one, is named


@record
class Switch:
    """One thing that a stack does or does not: a row of software.csv."""

    name: str  # of the switch
    default: float  # what a stack does that does not say
    low: float
    high: float
    field: str  # dotted path of the field of a design that sets it
    where: str  # moe, low, sharded, packed: for which designs it decides anything; "": for all
    words: Mapping[str, float]  # word of the field -> value of the switch; empty: a number
    fitted: str  # the constant that holds where the switch goes without a number; "": none
    meaning: str

    def of(self, given) -> float:
        """The switch for what a field says."""
        return float(self.words.get(str(given).lower(), given))

    def word(self, value: float):
        """What a field would say for a value of the switch, the first word of equals; None for a
        number that the switch goes without."""
        said = next((w for w, v in self.words.items() if v == value), value or None)
        return {"true": True, "false": False}.get(said, said)


@cache
def switches() -> dict[str, Switch]:
    """The rows of catalogue/software.csv by name."""

    def switch(row):
        words = dict(each.split() for each in row["words"].split("; ") if each)
        read = {name: float(row[name]) for name in ("default", "low", "high")}
        return Switch(**row | read | {"words": {w: float(v) for w, v in words.items()}})

    return {row["name"]: switch(row) for row in csv_rows(HERE / "software.csv")}


@record
class Stack:
    """Defaults of one software stack; the fields of a YAML file, `name` being that of the file."""

    name: str
    title: str
    source: str
    brief: str = ""  # regular expression of its names in a line of text
    flash: float = 2.0  # generation of flash attention, see cases.Software
    flash_modern: float = 2.0  # the same where the chip's family has modern attention kernels
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
    # switch of cases.Software -> year since when its recipes for experts in mxfp8 set it, how, and
    # the kinds of block whose models' recipes do not
    mxfp8_experts: Mapping[str, tuple[float, float, tuple[str, ...]]] = field(default_factory=dict)
    # sharded weights stay gathered from a pipeline's first forward to its last backward
    keeps_gathered: bool = False
    planned: Mapping[str, float] = field(default_factory=dict)  # switches of a run planned now
    succeeded_by: str = ""  # the stack that its name stands for on chips with modern kernels
    software: Mapping[str, float] = field(default_factory=dict)  # switches, see cases.Software
    # facts of its code and of what its published figures count, see memory.constants
    memory: Mapping[str, float | str] = field(default_factory=dict)
    memory_source: str = ""
    # axis of a plan -> the values that it offers; an axis that is not there is open
    offers: Mapping[str, tuple] = field(default_factory=dict)
    offers_source: str = ""
    chips: str = ""  # vendor stacks of families.csv on which anybody may run it, with a kit
    unmeasured: str = ""  # what stands in because no published run supports constants of its own


def _read(path) -> Stack:
    data = yaml_of(path)
    offers = {axis: tuple(values) for axis, values in data.pop("offers", {}).items()}
    return Stack(name=path.stem, offers=offers, **data)


@cache
def _all() -> dict[str, Stack]:
    return {s.name: s for s in map(_read, found(HERE, "stacks/*.yaml"))}


def stacks() -> dict[str, Stack]:
    """All named stacks, by name."""
    return {name: s for name, s in _all().items() if name != GENERIC}


def stack(name: str | None) -> Stack:
    """The stack of that name; the generic one where it is unknown or None."""
    return _all().get(name or GENERIC, _all()[GENERIC])


def canonical(name: str | None, modern: bool) -> str | None:
    """The stack whose code runs: on chips with modern kernels the old Megatron-LM, which predates
    them, stands for Megatron-Core."""
    return (modern and stack(name).succeeded_by) or name
