"""Calibration overrides: constants measured on somebody's own devices, as `scantling measure`
writes them and a design names them.

A measured constant takes the place of what published runs say about the chip. What they say about a
software stack stays: no benchmark of single kernels sees it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import catalogue
from ..base.errors import DesignError
from ..design import file as design_yaml
from .constants import PRIORS, calibration, gather

VERSION = 2  # shares of links count from what the model of collectives gives them
# constants that single kernels, copies and collectives show, and how far from the sourced prior a
# measurement may lie
SPEAKS = {
    "gemm": 4,
    "gemm_fp8": 4,
    "gemm_launch_s": 20,
    "hbm_share": 3,
    "attention": 4,
    "scale_up_share": 10,
    "scale_out_share": 10,
    "ep_up_share": 10,
}
# shares of what a collective alone reaches, 0.75 of the line and more: no more than the line
RELATIVE, RELATIVE_MOST = ("scale_up_share", "scale_out_share", "ep_up_share"), 1.35
SOFTWARE_LEVELS = ("stack", "pair")


@dataclass(
    frozen=True,
    kw_only=True,
)
class Override:
    """Measured constants of one accelerator: {name: value in the unit of constants.PRIORS}, when
    and on what, and the offsets that come of them."""

    path: str
    made: str
    accelerator: str
    device: str
    constants: Mapping
    offsets: dict

    def says(self) -> str:
        """What was measured, against what published runs say, in one line."""
        chip = catalogue.accelerator(self.accelerator)
        usual = gather(chip.family, chip.id, "")
        said = "; ".join(
            f"{name} {value:.3g} instead of {getattr(usual, name):.3g}"
            for name, value in self.constants.items()
        )
        return (
            f"measured {self.made} on {self.device}: {said or 'nothing that a constant rests on'}"
        )

    def check(
        self,
        chip,
        where: str = "calibration",
    ) -> None:
        """Raises DesignError where it was measured on another accelerator than `chip`."""
        if chip.id != self.accelerator:
            raise DesignError(
                where,
                self.path,
                f"a file measured on {chip.id}",
                problem=f"was measured on {self.accelerator}, not on {chip.id}",
            )


def prior_of(name: str, chip) -> float:
    """The sourced prior of a constant on a chip, before any fit."""
    return float(
        getattr(
            gather(
                chip.family,
                chip.id,
                "",
                {},
            ),
            name,
        )
    )


def read(path, where: str = "calibration") -> Override:
    """The override in the YAML file at `path`. Raises DesignError, one line, for anything that is
    not one."""
    shown = str(path)
    data = design_yaml.load(design_yaml.read_text(path))
    if not isinstance(data, Mapping) or data.get("scantling_calibration") != VERSION:
        raise DesignError(
            where,
            shown,
            f"a file with scantling_calibration: {VERSION}, as scantling measure writes it",
            problem="is not a calibration",
        )
    device = data.get("device") if isinstance(data.get("device"), Mapping) else {}
    accelerator = device.get("accelerator")
    if not isinstance(accelerator, str):
        raise DesignError(
            f"{where}.device.accelerator",
            allowed=(
                "the catalogue's id of the device; scantling measure --accelerator ID writes it"
            ),
            problem="is missing",
        )
    chip = catalogue.accelerator(accelerator, f"{where}.device.accelerator")
    given = data.get("constants") or {}
    if not isinstance(given, Mapping):
        raise DesignError(
            f"{where}.constants",
            given,
            "a mapping of constants",
            problem="is not a mapping",
        )
    values = {
        name: _value(
            name,
            entry,
            chip,
            where,
        )
        for name, entry in given.items()
    }
    return Override(
        path=Path(path).name,
        made=str(data.get("made", "at an unknown date")),
        accelerator=chip.id,
        device=str(device.get("name", chip.name)),
        constants=values,
        offsets=calibration()["offsets"]
        | {name: _offset(name, value, chip) for name, value in values.items()},
    )


def _offset(
    name: str,
    value: float,
    chip,
) -> dict:
    """ln(measured / sourced prior) in place of the chip's part of a constant; what published runs
    say about software stays."""
    shipped = calibration()["offsets"].get(name, {})
    software = {level: shipped[level] for level in SOFTWARE_LEVELS if level in shipped}
    return {"global": math.log(value / prior_of(name, chip))} | software


def _value(
    name,
    entry,
    chip,
    where,
):
    at = f"{where}.constants.{name}"
    if name not in SPEAKS:
        raise DesignError(
            at,
            name,
            list(SPEAKS),
            problem="is not a constant that can be measured",
        )
    value = entry.get("value") if isinstance(entry, Mapping) else entry
    allowed, problem = "a number above 0", "is not a measured value"
    if type(value) in (int, float) and 0 < value < math.inf:
        allowed = f"a value near {prior_of(name, chip):.3g}"
        problem = implausible(name, value, chip)
    if problem:
        raise DesignError(
            at,
            value,
            f"{allowed} [{PRIORS[name].unit}]",
            problem=problem,
        )
    return float(value)


def implausible(
    name: str,
    value: float,
    chip,
) -> str:
    """Why a measured value cannot be this chip's, "" where it can: a share above the peak, or too
    far from the sourced prior."""
    prior = prior_of(name, chip)
    most = RELATIVE_MOST if name in RELATIVE else 1.02
    if not name.endswith("_s") and value > most:
        return f"is above the {'peak' if name.startswith(('gemm', 'att')) else 'rate'} of {chip.id}"
    if not prior / SPEAKS[name] <= value <= prior * SPEAKS[name]:
        return (
            f"is {value / prior:.2g} times what is known of {chip.id}: another device, or "
            f"one that was busy"
        )
    return ""
