"""Calibration overrides: constants measured on somebody's own devices, as `scantling measure` and
`scantling learn` write them and a design names them.

A measured constant takes the place of what published runs say about it. Measured steps move the
constants of the step as `learned.Learned` has it, for every run on the same accelerator as far as
it is like them.
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
from ..base.typed import DATES, is_date
from ..catalogue.hardware import Accelerator
from ..design import file as design_yaml
from .cases import Cases
from .constants import PRIORS, Constants, calibration, gather
from .learned import CODES, SIZES, Learned, Marks
from .memory.chance import NORMAL
from .named import Names, Offsets
from .step import PARTS

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
MOVED = 0.005  # of ln of a constant: measured steps that move it by less are not told
MOST_RUNS = 500  # measured steps of one file
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
    learned: Learned | None = None  # what measured steps tell

    @cached_property
    def offsets(self) -> Offsets:
        """The shipped offsets, but for what was measured."""
        chip = catalogue.accelerator(self.accelerator)
        measured = {n: {"global": log(v / prior_of(n, chip))} for n, v in self.constants.items()}
        return {**calibration()["offsets"], **measured}

    def under(self, stack: Names | None) -> "Override":
        """What it tells of runs under a stack, a name or an array of them ("", None: unknown)."""
        if self.learned is None:
            return self
        names = np.asarray("" if stack is None else stack, object)
        return replace(self, learned=replace(self.learned, stacks=names))

    def applied(self, case: Cases, constants: Constants) -> Cases:
        """A case with constants fitted for it, and with what measured steps tell of it."""
        fitted_here = vars(constants)
        moved = {n: fitted_here[n] for n in self.constants if n in PRIORS}
        factors: dict[str, Column] = {
            n: v for n, v in self.constants.items() if n.startswith(MEMORY)
        }
        here = replace(case, constants=replace(case.constants, **moved))
        if self.learned is not None:
            factors |= self.learned.factors
            alone = np.exp(self.learned.unexplained(case))
            factors["overall"] = factors.get("overall", 1.0) * alone
        return times(here, factors)

    def spread(self, usual: float, active: float) -> float:
        """Spread of ln(peak / estimate): no more than peaks measured of that model leave open."""
        if not self.peaks or not _alike(active, self.peaks):
            return usual
        low, high = self.peaks["band"]
        return float(min(usual, log(high / low) / 2 / NORMAL.inv_cdf(0.9)))

    def narrowed(self, low: Column, high: Column, case: Cases) -> tuple[Column, Column]:
        """A band of factors on the step, as wide as measured steps leave it for a case; as it was
        where the constants come from benchmarks."""
        if self.learned is None:
            return low, high
        width = self.learned.narrowing(case)
        return low**width, high**width

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
                for name, value in {**self.constants, **self._moved(usual)}.items()
            ],
        }

    def _moved(self, usual: Mapping[str, Any]) -> dict[str, float]:
        """Constants that measured steps have moved by more than MOVED, most first."""
        factors = self.learned.factors if self.learned else {}
        far = sorted(factors, key=lambda name: -abs(log(factors[name])))
        now = {n: self.constants.get(n, float(usual[n])) for n in far}
        return {n: now[n] * factors[n] for n in far if abs(log(factors[n])) > MOVED}

    def says(self) -> str:
        """What was measured, against what published runs say, in one line."""
        if self.steps:
            low, high = self.steps["band"]
            return (
                f"{self.steps['runs']} measured steps of {self.date} on {self.device}: steps take"
                f" {self.steps['factor']:.3g} times what published runs say, the band is {low:.3g}"
                f" to {high:.3g} where a run is like them{self._other_stack()}"
            )
        constants = "; ".join(
            f"{c['name']} {c['value']:.3g} instead of {c['was']:.3g}"
            for c in self.as_json()["constants"]
        )
        what = constants or "nothing that a constant rests on"
        return f"measured {self.date} on {self.device}: {what}"

    def _other_stack(self) -> str:
        """What is said where a design has a stack that none of the measured runs had."""
        if self.learned is None:
            return ""
        here = {str(name) for name in np.ravel(self.learned.stacks)} - {""}
        measured = {str(name) for name in self.learned.marks.stacks}
        if not here or here & measured or "" in measured:
            return ""
        return "; measured under another stack, they tell less"

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
    steps = _steps(data.get("steps"), f"{option}.steps")
    return Override(
        path=path,
        date=_made(data.get("made"), f"{option}.made"),
        accelerator=chip.id,
        device=str(device.get("name", chip.name)),
        constants=values,
        steps=steps,
        peaks=_steps(data.get("peaks"), f"{option}.peaks"),
        goodput=_goodput(data.get("goodput"), f"{option}.goodput"),
        learned=_learned(data.get("site"), bool(steps), f"{option}.site"),
    )


def _made(value: Any, option: str) -> str:
    """The day on which a file was made. Raises DesignError for a value that is none."""
    if value is None:
        return "at an unknown date"
    if not is_date(str(value)):
        raise DesignError(option, value, DATES, problem="is no date")
    return str(value)


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
            allowed="runs, factor, band: [low, high], active_parameters, precision",
            problem="is not what scantling learn -o writes",
        )
    return dict(section)


class _Run(BaseModel, strict=True, defer_build=True):
    """What a file keeps of a measured step: see `learned.Marks`."""

    ln_ratio: Annotated[Number, Field(ge=-4, le=4)]
    scatter: Annotated[Number, Field(gt=0, le=1e6)]
    slopes: list[Annotated[Number, Field(ge=-20, le=20)]]
    sizes: Annotated[
        list[Annotated[Number, Field(ge=-32, le=64)]],
        Field(min_length=len(SIZES), max_length=len(SIZES)),
    ]
    codes: Annotated[
        list[Annotated[Number, Field(ge=-9, le=99)]],
        Field(min_length=len(CODES) - 2, max_length=len(CODES) - 2),
    ]
    shares: Annotated[
        list[Annotated[Number, Field(ge=-0.01, le=1.01)]],
        Field(min_length=len(PARTS), max_length=len(PARTS)),
    ]
    stack: Name = ""


class _Site(BaseModel, strict=True, defer_build=True):
    """What a file keeps of a site: how far each constant was open, and the measured runs."""

    spread: Annotated[Number, Field(ge=0.1, le=10)]
    constants: Annotated[list[Name], Field(min_length=1)]
    open: list[Annotated[Number, Field(gt=0, le=3)]]  # sd of ln of each
    runs: Annotated[list[_Run], Field(min_length=1, max_length=MOST_RUNS)]


def _is_whole(site: _Site) -> bool:
    """Whether the constants of a site are known, each named once, with a spread and a slope of each
    run."""
    names = site.constants
    lengths = {len(site.open), *(len(run.slopes) for run in site.runs)}
    return set(names) <= set(PRIORS) and len(set(names)) == len(names) and lengths == {len(names)}


def _learned(section: Any, steps: bool, option: str) -> Learned | None:
    """What the measured steps of a file tell; None where it has none."""
    if section is None:
        if steps:
            raise DesignError(
                option,
                allowed="scantling learn of the same logs again, with -o",
                problem="is missing: an earlier release wrote the file",
            )
        return None
    try:
        site = _Site.model_validate(section)
    except ValidationError:
        site = None
    if site is None or not _is_whole(site):
        raise DesignError(
            option,
            allowed="spread, constants, open, runs",
            problem="is not what scantling learn -o writes",
        )
    return Learned(
        names=tuple(site.constants),
        sd=np.array(site.open),
        spread=site.spread,
        marks=Marks(
            slopes=np.array([run.slopes for run in site.runs]).reshape(len(site.runs), -1),
            sizes=np.array([run.sizes for run in site.runs]),
            codes=np.array([run.codes for run in site.runs]),
            shares=np.array([run.shares for run in site.runs]),
            stacks=np.array([run.stack for run in site.runs], object),
        ),
        ln_ratio=np.array([run.ln_ratio for run in site.runs]),
        scatter=np.array([run.scatter for run in site.runs]),
    )


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
