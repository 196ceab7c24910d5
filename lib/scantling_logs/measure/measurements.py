"""Measurements run one after the other, and the calibration override that they make."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import click
from scantling import catalogue
from scantling.base.errors import plain
from scantling.catalogue.hardware import Accelerator
from scantling.physics.calibration_file import headed

from .bench import Step
from .constants_fit import constants_of, match, rounded, saturation
from .points import Curves, LeftOut, Skipped


class Measured(NamedTuple):
    """Curves, what failed, and what Ctrl-C left out."""

    curves: Curves
    skipped: list[Skipped]
    stopped: list[str]


def run(steps: Sequence[Step], show: bool = True) -> Measured:
    """A list of measurements, progress on stderr where `show`."""
    points: dict[str, Any] = {}  # by section, those of matrix products by precision too
    skipped: list[Skipped] = []
    stopped: list[str] = []
    bar = click.progressbar(steps, file=sys.stderr, item_show_func=lambda step: step and step.says)
    with bar if show else nullcontext(steps) as progress:
        for i, step in enumerate(progress):
            try:
                point = step.run()
            except KeyboardInterrupt:
                stopped = [step.says for step in steps[i:]]
                break
            # out of memory, or a kernel that this device lacks
            except (RuntimeError, AttributeError, ValueError) as e:
                why, *_ = str(e).strip().splitlines() or [type(e).__name__]
                skipped.append(Skipped(step=step.says, why=plain(why, 160)))
                continue
            section, _, precision = step.section.partition(".")
            if precision:
                series = points.setdefault(section, {}).setdefault(precision, [])
            else:
                series = points.setdefault(section, [])
            series.append({k: rounded(v) if isinstance(v, float) else v for k, v in point.items()})
    curves: Any = points  # by section, as Curves has them
    return Measured(curves, skipped, stopped)


def result(
    measured: Measured,
    device: dict[str, Any],
    software: dict[str, str],
    chip: Accelerator | None,
    quick: bool,
    scale_out_bytes_per_s: float | None = None,
) -> dict[str, Any]:
    """What the file holds: date, device, software, constants with the reason for each, and all
    curves.

    chip: accelerator of the catalogue, or None to go by the device's name; without one no share of
    a peak can be said.
    """
    curves = measured.curves
    if chip is None:
        name = match(device["name"], device["memory_bytes"])
        chip = catalogue.accelerator(name) if name else None
    data = headed(chip, **device) | {"software": software, "quick": quick}
    left_out: list[LeftOut] = []
    data["constants"] = {}
    if chip is not None:
        data["constants"], left_out = constants_of(curves, chip, scale_out_bytes_per_s)
    fitted = {}
    for precision, products in curves.get("gemm", {}).items():
        if len(products) >= 3:
            curve = saturation(products)
            fitted[f"gemm.{precision}"] = {
                "flops_per_s": rounded(curve["flops_per_s"]),
                "half_flop": rounded(curve["half_flop"]),
                "rms_log_error": rounded(curve["rms_log_error"]),
            }
    data["fitted"] = fitted
    if left_out:
        data["left_out"] = left_out
    if measured.skipped:
        data["skipped"] = measured.skipped
    if measured.stopped:
        data["stopped_before"] = measured.stopped
    return data | {"curves": curves}
