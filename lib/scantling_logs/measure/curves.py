"""Measurements run one after the other, and the calibration override that they make."""

import sys
from contextlib import nullcontext

import click
from scantling import catalogue
from scantling.base.errors import plain
from scantling.physics.calibration_file import headed

from .fit import constants_of, match, rounded, saturation


def run(steps, show: bool = True):
    """(curves, [{step, why}] that failed, [step] not reached because of Ctrl-C) of a list of
    measurements, progress on stderr where `show`."""
    curves = {}
    skipped = []
    stopped = []
    bar = click.progressbar(steps, file=sys.stderr, item_show_func=lambda step: step and step.says)
    with bar if show else nullcontext(steps) as shown:
        for i, step in enumerate(shown):
            try:
                point = step.run()
            except KeyboardInterrupt:
                stopped = [s.says for s in steps[i:]]
                break
            # out of memory, or a kernel that this device lacks
            except (RuntimeError, AttributeError, ValueError) as e:
                why, *_ = str(e).strip().splitlines() or [type(e).__name__]
                skipped.append({"step": step.says, "why": plain(why, 160)})
                continue
            section, _, kind = step.section.partition(".")
            kinds, name = (curves.setdefault(section, {}), kind) if kind else (curves, section)
            kinds.setdefault(name, []).append(
                {k: rounded(v) if isinstance(v, float) else v for k, v in point.items()}
            )
    return curves, skipped, stopped


def result(
    curves, device, software, chip, quick, skipped, stopped, scale_out_bytes_per_s=None
) -> dict:
    """What the file holds: date, device, software, constants with the reason for each, and all
    curves.

    chip: accelerator of the catalogue, or None to go by the device's name; without one no share of
    a peak can be said.
    """
    if chip is None:
        found = match(device["name"], device["memory_bytes"])
        chip = catalogue.accelerator(found) if found else None
    constants, left = constants_of(curves, chip, scale_out_bytes_per_s) if chip else ({}, [])
    fitted = {
        f"gemm.{d}": {k: rounded(v) for k, v in saturation(points).items()}
        for d, points in curves.get("gemm", {}).items()
        if len(points) >= 3
    }
    more = {"left_out": left, "skipped": skipped, "stopped_before": stopped}
    return headed(chip, **device) | {
        "software": software,
        "quick": quick,
        "constants": constants,
        "fitted": fitted,
        **{name: rows for name, rows in more.items() if rows},
        "curves": curves,
    }
