"""Calibration overrides: constants measured on somebody's own devices, as `scantling measure` and
`scantling learn` write them and a design names them.

A measured constant takes the place of what published runs say about it.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import date
from functools import cached_property
from math import log
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AllowInfNan, BaseModel, Field, ValidationError

from .. import catalogue
from ..base.columns import Column
from ..base.errors import DesignError
from ..base.records import record
from ..catalogue.hardware import Accelerator
from ..design import file as design_yaml
from .cases import Cases
from .constants import PRIORS, Constants, calibration, gather
from .memory.chance import NORMAL
from .named import Names, Offsets
from .step import PARTS, step_time

VERSION = 2  # shares of links count from what the model of collectives gives them
MEMORY = "memory_"
# Constants that it may state, and how far from what the kit has (a sourced prior; of the memory
# model what it has for the stack) a measurement may lie, either way. First those of single kernels,
# copies and collectives; the exposed and overlapped shares are of the step, as the kernels of a
# trace show them.
SPEAKS = {
    "gemm": 4,
    "gemm_fp8": 4,
    "gemm_launch_s": 20,
    "hbm_share": 3,
    "attention": 4,
    "scale_up_share": 10,
    "scale_out_share": 10,
    "ep_up_share": 10,
    "tp_exposed": 4,
    "tp_overlapped": 4,
    "pp_exposed": 8,
    "ep_overlapped": 8,
    "memory_activation": 2,
    "memory_logit_bytes": 4,
    "memory_framework_bytes": 10,
    "memory_step_bytes": 4,
    "memory_fragmentation": 10,
}
# shares of what a collective alone reaches, 0.75 of the line and more: no more than the line
RELATIVE, RELATIVE_MOST = ("scale_up_share", "scale_out_share", "ep_up_share"), 1.35
# how fast a measured step stops telling of steps made of other parts: over 160 groups of published
# rows alike in source, model, chip and precision 4 gives a 90th percentile of 15 %, 0 of 18.5 %
UNLIKE = 4.0
# what a measured step tells of the same model, chip and precision under another stack: over 85
# published rows beside one of another stack a half gives a median of 5.7 % and a 90th percentile of
# 19 %; nothing 6.2 and 23, the whole 6.5 and 19 (tests.bench.validation.strangers)
OTHER_STACK = 0.5
OTHER_MODEL = 0.05  # difference of ln active parameters of two models; judgement
Number = Annotated[float, AllowInfNan(False)]
Share = Annotated[Number, Field(ge=0, le=1)]
Name = Annotated[str, Field(max_length=60)]
Stated = Mapping[str, Any]  # a section of the file, checked


@record
class Override:
    """Measured constants of one accelerator: {name: value in the unit of constants.PRIORS}, when
    and on what."""

    path: str
    date: str
    accelerator: str
    device: str
    constants: Mapping[str, float]
    steps: Stated = field(default_factory=dict)  # of measured steps: what they hold for, the band
    peaks: Stated = field(default_factory=dict)  # the same of measured peaks of memory
    goodput: Stated = field(default_factory=dict)  # of logs: useful and lost wall clock
    others: Mapping[str, float] = field(default_factory=dict)  # that hold for every model
    tells: Column = 1.0  # of the stack that runs: 1, or OTHER_STACK

    def elsewhere(self) -> "Override | None":
        """What it says of models whose steps it has not: constants of tables, traces and peaks;
        None where it has none."""
        return replace(self, constants=self.others, steps={}) if self.others else None

    @cached_property
    def offsets(self) -> Offsets:
        """The shipped offsets, but for what was measured."""
        chip = catalogue.accelerator(self.accelerator)
        measured = {n: {"global": log(v / prior_of(n, chip))} for n, v in self.constants.items()}
        return {**calibration()["offsets"], **measured}

    def holds(self, active: float, precision: str) -> bool:
        """Whether it holds for a model with so many active parameters in a precision: constants of
        benchmarks always do, those of measured steps for their own model alone."""
        if not self.steps:
            return True
        return _alike(active, self.steps) and bool(precision == self.steps["precision"])

    def under(self, stack: Names | None) -> "Override":
        """What it tells of runs under a stack, a name or an array of them ("", None: unknown)."""
        stack_measured = self.steps.get("stack")
        if not stack_measured:
            return replace(self, tells=1.0)
        alike = np.array((stack_measured, "", None), object)
        other = 1 - np.isin(np.asarray(stack, object), alike)
        return replace(self, tells=OTHER_STACK**other)

    def near(self, case: Cases) -> Column:
        """How far a measured step tells of the steps of a case: `tells` x exp(-UNLIKE x half the
        sum of the differences of their parts' shares), `tells` where the file has no shares."""
        shares = self.steps.get("shares")
        if not shares:
            return self.tells
        step = step_time(case)
        seconds, total = vars(step), step.total
        apart = sum(abs(seconds[n] / total - shares.get(n, 0.0)) for n in PARTS)
        near: Column = self.tells * np.exp(-UNLIKE * apart / 2)
        return near

    def applied(self, case: Cases, constants: Constants) -> Cases:
        """A case with constants fitted for it, as far as they hold for it."""
        near, usual, measured = self.near(case), vars(case.constants), vars(constants)
        moved = {
            n: self.others.get(n, usual[n]) ** (1 - near) * measured[n] ** near
            for n in self.constants
            if n in PRIORS
        }
        memory = {n: v for n, v in self.constants.items() if n.startswith(MEMORY)}
        return times(replace(case, constants=replace(constants, **moved)), memory)

    def spread(self, usual: float, active: float) -> float:
        """Spread of ln(peak / estimate): no more than peaks measured of that model leave open."""
        if not self.peaks or not _alike(active, self.peaks):
            return usual
        low, high = self.peaks["band"]
        return float(min(usual, log(high / low) / 2 / NORMAL.inv_cdf(0.9)))

    def narrowed(self, low: Column, high: Column, case: Cases) -> tuple[Column, Column]:
        """A band of factors on the step where it holds: the narrower end of what published runs and
        what measured steps leave open, as far as they tell of a case; as it was where the constants
        come from benchmarks."""
        if not self.steps:
            return low, high
        own_low, own_high = self.steps["band"]
        near = self.near(case)
        return (
            low * np.maximum(own_low / low, 1.0) ** near,
            high * np.minimum(own_high / high, 1.0) ** near,
        )

    def as_json(self) -> dict[str, Any]:
        """What was measured, as a report tells it: when, on what and with which release, the steps
        one by one, and each constant beside what published runs say of it."""
        chip = catalogue.accelerator(self.accelerator)
        usual = vars(gather(chip.family, chip.id, ""))
        return {
            "made": self.date,
            "device": self.device,
            "steps": self.steps,
            "peaks": self.peaks,
            "goodput": self.goodput,
            "constants": [
                {"name": name, "value": value, "was": float(usual.get(name, 1.0))}
                for name, value in self.constants.items()
            ],
        }

    def says(self) -> str:
        """What was measured, against what published runs say, in one line."""
        if self.steps:
            half = "; measured under another stack, they count half" if self.tells < 1 else ""
            low, high = self.steps["band"]
            return (
                f"{self.steps['runs']} measured steps of {self.date} on {self.device}: steps take"
                f" {self.steps['factor']:.3g} times what published runs say, the band is {low:.3g}"
                f" to {high:.3g}{half}"
            )
        constants = "; ".join(
            f"{c['name']} {c['value']:.3g} instead of {c['was']:.3g}"
            for c in self.as_json()["constants"]
        )
        what = constants or "nothing that a constant rests on"
        return f"measured {self.date} on {self.device}: {what}"

    def check(self, chip: Accelerator, option: str = "calibration") -> None:
        """Raises DesignError where it was measured on another accelerator than `chip`."""
        if chip.id != self.accelerator:
            raise DesignError(
                option,
                self.path,
                f"a file measured on {chip.id}",
                problem=f"was measured on {self.accelerator}, not on {chip.id}",
            )


def _alike(active: float, measured: Stated) -> bool:
    """Whether a model has as many active parameters as the one that was measured."""
    return abs(log(active / measured["active_parameters"])) < OTHER_MODEL


def times(case: Cases, factors: Mapping[str, Column]) -> Cases:
    """A case with constants multiplied: {name: factor}, those of its memory "memory_" + name."""
    usual = case.constants
    of_step, of_memory = vars(usual), vars(usual.memory)
    step: dict[str, Any] = {}
    memory: dict[str, Column] = {}
    for name, factor in factors.items():
        if name.startswith(MEMORY):
            short = name.removeprefix(MEMORY)
            memory[short] = of_memory[short] * factor
        else:
            step[name] = of_step[name] * factor
    step = {**of_step, **step, "memory": replace(usual.memory, **memory)}
    return replace(case, constants=Constants(**step))


def prior_of(name: str, chip: Accelerator) -> float:
    """The sourced prior of a constant on a chip, before any fit; 1 for what is told as times."""
    return float(vars(gather(chip.family, chip.id, "", {})).get(name, 1.0))


def headed(chip: Accelerator | None, **device: Any) -> dict[str, Any]:
    """What every calibration file begins with: version, date, accelerator (None where unknown)."""
    device = {"accelerator": chip and chip.id} | device
    return {"scantling_calibration": VERSION, "made": date.today().isoformat(), "device": device}


def read(
    source: str | Path | Stated, option: str = "calibration", folder: Path = Path()
) -> Override:
    """The override in the YAML file at a path, relative to a folder, or in what a file holds.
    Raises DesignError, one line, for anything that is not one."""
    if isinstance(source, Mapping):
        data, path = source, "in the design"
    else:
        data = design_yaml.load(design_yaml.read_text(folder / source))
        path = Path(source).name
    if not isinstance(data, Mapping) or data.get("scantling_calibration") != VERSION:
        raise DesignError(
            option,
            path,
            f"a file with scantling_calibration: {VERSION}, as scantling measure writes it",
            problem="is not a calibration",
        )
    device = data.get("device")
    if not isinstance(device, Mapping):
        device = {}
    accelerator = device.get("accelerator")
    if not isinstance(accelerator, str):
        raise DesignError(
            f"{option}.device.accelerator",
            allowed=(
                "the catalogue's id of the device; scantling measure --accelerator ID writes it"
            ),
            problem="is missing",
        )
    chip = catalogue.accelerator(accelerator, f"{option}.device.accelerator")
    entries = data.get("constants") or {}
    if not isinstance(entries, Mapping):
        raise DesignError(
            f"{option}.constants", entries, "a mapping of constants", problem="is not a mapping"
        )
    values = {name: _value(name, entry, chip, option) for name, entry in entries.items()}
    rows = [(n, entry) for n, entry in entries.items() if isinstance(entry, Mapping)]
    elsewhere = {n: entry["elsewhere"] for n, entry in rows if "elsewhere" in entry}
    steps = _steps(data.get("steps"), f"{option}.steps")
    return Override(
        path=path,
        date=str(data.get("made", "at an unknown date")),
        accelerator=chip.id,
        device=str(device.get("name", chip.name)),
        constants=values,
        steps=steps,
        peaks=_steps(data.get("peaks"), f"{option}.peaks"),
        goodput=_goodput(data.get("goodput"), f"{option}.goodput"),
        others={n: _value(n, v, chip, option) for n, v in elsewhere.items()} if steps else values,
    )


class _Point(BaseModel, strict=True, defer_build=True):
    """One measured step, as charts show it."""

    devices: Annotated[int, Field(ge=1)]
    step_s: Annotated[Number, Field(gt=0)]
    mfu: Annotated[Number, Field(gt=0, lt=2)]


class _Steps(BaseModel, strict=True, defer_build=True):
    """What a file says of measured steps, or of peaks of memory."""

    runs: Annotated[Number, Field(ge=1)]
    factor: Annotated[Number, Field(ge=0.1)]
    active_parameters: Annotated[Number, Field(ge=1)]
    band: list[Annotated[Number, Field(ge=0.2, lt=5)]] = Field(min_length=2, max_length=2)
    precision: str
    shares: dict[Any, Annotated[Number, Field(ge=0)]] = {}
    points: list[_Point] = []
    release: Name = ""
    stack: Name = ""


def _steps(section: Any, option: str) -> Stated:
    """What a file says of measured steps or peaks; empty where it has none."""
    if section is None:
        return {}
    try:
        low, high = _Steps.model_validate(section).band
    except ValidationError:
        low, high = 1, 0
    if low > high:
        raise DesignError(
            option,
            allowed="runs, factor, band: [low, high], active_parameters, precision, shares",
            problem="is not what scantling learn -o writes",
        )
    return dict(section)


class _Goodput(BaseModel, strict=True, defer_build=True):
    """What a file says of the wall clock of logs: shares."""

    logs: Annotated[int, Field(ge=1)]
    goodput: Share
    badput: dict[Annotated[str, Field(max_length=20)], Share]


def _goodput(section: Any, option: str) -> Stated:
    """Useful and lost shares of a wall clock; empty where a file has none."""
    try:
        return {} if section is None else _Goodput.model_validate(section).model_dump()
    except ValidationError:
        raise DesignError(
            option,
            allowed="logs, goodput, badput: {cause: share}",
            problem="is not what scantling learn -o writes",
        ) from None


def _value(name: str, entry: Any, chip: Accelerator, option: str) -> float:
    """The measured value of a constant. Raises DesignError where it cannot be one of the chip."""
    at = f"{option}.constants.{name}"
    if name not in SPEAKS:
        raise DesignError(at, name, list(SPEAKS), problem="is not a constant that can be measured")
    value = entry.get("value") if isinstance(entry, Mapping) else entry
    unit = PRIORS[name].unit if name in PRIORS else "times"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e300:
        allowed = f"a number above 0 [{unit}]"
        raise DesignError(at, value, allowed, problem="is not a measured value")
    problem = implausible(name, value, chip)
    if problem:
        allowed = f"a value near {prior_of(name, chip):.3g} [{unit}]"
        raise DesignError(at, value, allowed, problem=problem)
    return float(value)


def implausible(name: str, value: float, chip: Accelerator) -> str:
    """Why a measured value cannot be this chip's, "" where it can: a share above the peak, or too
    far from the sourced prior."""
    prior = prior_of(name, chip)
    if (
        name in PRIORS
        and not name.endswith("_s")
        and value > (RELATIVE_MOST if name in RELATIVE else 1.02)
    ):
        return f"is above the {'peak' if name.startswith(('gemm', 'att')) else 'rate'} of {chip.id}"
    if not prior / SPEAKS[name] <= value <= prior * SPEAKS[name]:
        return (
            f"is {value / prior:.2g} times what is known of {chip.id}: another device, or "
            f"one that was busy"
        )
    return ""
