"""`scantling measure -o FILE`: times this machine's devices and writes a calibration override that
a design names as `calibration: FILE`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import date
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import click

from ... import catalogue
from ...base.console import console
from ...base.errors import DesignError, plain
from ...base.files import write_text
from ...design.file import dump
from ...physics.calibration_file import VERSION
from . import bench as measure_bench
from .fit import constants_of, match, rounded, saturation


@click.command()
@click.option(
    "-o",
    "--output",
    required=True,
    help="File to write; a design names it as `calibration: FILE`.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Fewer sizes: under a minute on one device.",
)
@click.option(
    "--accelerator",
    metavar="ID",
    help="What the device is in the catalogue, where its name does not tell.",
)
@click.option(
    "--device",
    type=click.Choice(["cuda", "cpu"]),
    help="What to time; the GPU where there is one.",
)
@click.option(
    "--scale-out",
    "scale_out",
    type=float,
    metavar="GB/S",
    help="Network rate of one device, one direction, for runs across nodes.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Replace the file if it exists.",
)
def command(
    output,
    quick,
    accelerator,
    device,
    scale_out,
    force,
):
    """Time this machine's devices and write a calibration override.

    Matrix products, attention, memory, launches and host copies on one device; under torchrun
    collectives as well:
    torchrun --nproc-per-node 8 -m scantling measure -o calibration.yaml. Ctrl-C keeps what was
    measured so far.
    """
    if find_spec("torch") is None:
        raise DesignError(
            "measure",
            problem="needs PyTorch",
            allowed="pip install 'scantling[measure]', or a run where PyTorch is installed",
        )
    if Path(output).exists() and not force:
        raise DesignError(
            plain(output, 200),
            problem="exists already",
            allowed="a new file name, or --force to replace it",
        )
    if not (Path(output).absolute().parent).is_dir():
        raise DesignError(
            plain(output, 200),
            problem="is in a folder that does not exist",
            allowed="a file in an existing folder",
        )
    chip = catalogue.accelerator(accelerator, "--accelerator") if accelerator else None
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise DesignError(
                "--device",
                "cuda",
                "cpu, or a machine with a GPU that PyTorch sees",
                problem="is not there",
            )
    bench = measure_bench.start(device, quick)
    first = int(os.environ.get("RANK", "0")) == 0
    curves, skipped, stopped = run(measure_bench.steps(bench, quick), show=first)
    if first:
        about = measure_bench.describe(bench)
        rate = scale_out * 1e9 if scale_out else None
        data = result(
            curves,
            *about,
            chip,
            quick,
            skipped,
            stopped,
            rate,
        )
        head = "# measured by `scantling measure`; a design uses it with `calibration: {}`\n"
        write_text(output, head.format(output.rpartition("/")[2]) + dump(data), force)
        _tell(data, output, stopped)
    if stopped:
        # without leaving the process group: the other ranks may wait in a collective
        raise click.exceptions.Exit(130)
    measure_bench.finish(bench)


def run(steps, show: bool = True):
    """(curves, [{step, why}] that failed, [step] not reached because of Ctrl-C) of a list of
    measurements, progress on stderr where `show`."""
    curves: dict = {}
    skipped, stopped = [], []
    with _progress(len(steps), show) as advance:
        for i, step in enumerate(steps):
            advance(step.says)
            try:
                point = step.run()
            except KeyboardInterrupt:
                stopped = [s.says for s in steps[i:]]
                break
            # out of memory, or a kernel that this device lacks
            except (RuntimeError, AttributeError, ValueError) as e:
                why, *_ = str(e).strip().splitlines() or [type(e).__name__]
                skipped.append(
                    {
                        "step": step.says,
                        "why": plain(why, 160),
                    }
                )
                continue
            section, _, kind = step.section.partition(".")
            if kind:
                into = curves.setdefault(section, {}).setdefault(kind, [])
            else:
                into = curves.setdefault(section, [])
            into.append({k: rounded(v) if isinstance(v, float) else v for k, v in point.items()})
    return curves, skipped, stopped


def result(
    curves,
    device,
    software,
    chip,
    quick,
    skipped,
    stopped,
    scale_out_bytes_per_s=None,
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
    more = {
        "left_out": left,
        "skipped": skipped,
        "stopped_before": stopped,
    }
    return {
        "scantling_calibration": VERSION,
        "made": date.today().isoformat(),
        "device": {
            "accelerator": chip and chip.id,
            **device,
        },
        "software": software,
        "quick": quick,
        "constants": constants,
        "fitted": fitted,
        **{name: rows for name, rows in more.items() if rows},
        "curves": curves,
    }


def _tell(
    data,
    output,
    stopped,
):
    from rich.table import Table

    out = console()
    if data["constants"]:
        grid = Table(
            box=None,
            pad_edge=False,
            header_style="dim",
        )
        sides = {
            "constant": "left",
            "measured": "right",
            "prior": "right",
            "unit": "left",
        }
        for name, side in (sides | {"from": "left"}).items():
            grid.add_column(
                name,
                justify=side,
                overflow="fold",
            )
        for name, c in data["constants"].items():
            numbers = (f"{c[k]:.4g}" for k in ("value", "prior"))
            grid.add_row(
                name,
                *numbers,
                c["unit"],
                c["from"],
            )
        out.print(grid)
    for row in data.get("left_out", []):
        out.print(f"{row['constant']} {row['value']:.4g} left out: {row['why']}")
    if data["device"]["accelerator"] is None:
        out.print(
            f"{plain(data['device']['name'], 80)} is not in the catalogue: curves only, "
            f"no constant. --accelerator ID says what it is."
        )
    for row in data.get("skipped", []):
        out.print(f"skipped {row['step']}: {row['why']}")
    done = "Stopped; what was measured so far is in" if stopped else "Wrote"
    out.print(f"{done} {plain(output, 200)}")


@contextmanager
def _progress(total, show):
    """A context whose value advances a progress bar on stderr, or prints nothing."""
    if not show:
        yield lambda text: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        MofNCompleteColumn(),
        BarColumn(24),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console(stderr=True),
        transient=True,
    ) as progress:
        task, done = progress.add_task("", total=total), count()
        yield lambda text: progress.update(
            task,
            description=text,
            completed=next(done),
        )
