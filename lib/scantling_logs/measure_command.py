"""`scantling measure -o FILE`: times this machine's devices and writes a calibration override that
a design names as `calibration: FILE`."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from os import environ
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from scantling import catalogue
from scantling.base.console import console, print_json
from scantling.base.errors import DesignError, plain
from scantling.base.files import write_text
from scantling.cli.common import check_new
from scantling.cli.options import FOLDER, PATH
from scantling.cli.tables import print_table
from scantling.design.design import Design
from scantling.design.file import dump
from scantling.verdict.assess import assess

from . import texts
from .measure import bench as benches
from .measure.kit import write_kit
from .measure.measurements import Measured, result, run
from .measure.network_price import fabric_price, flap_price
from .measure.sizes import Product, of_model
from .measure.worth import worths

SECTIONS = ("gemm", "layer", "memory", "attention", "launch", "host", "save", "collectives")
SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(h|hours?|min|minutes?)")
PER_HOUR = {"h": 1, "hour": 1, "hours": 1, "min": 60, "minute": 60, "minutes": 60}
MOST_HOURS = 1000


@click.command()
@click.option(
    "-o",
    "--output",
    help="File to write; a design names it as `calibration: FILE`; with --plan the "
    "folder of the measurements.",
)
@click.option("--quick", is_flag=True, help="Fewer sizes: under a minute on one device.")
@click.option(
    "--accelerator",
    metavar="ID",
    help="What the device is in the catalogue, where its name does not tell.",
)
@click.option(
    "--device", type=click.Choice(["cuda", "cpu"]), help="What to time; the GPU where there is one."
)
@click.option(
    "--scale-out",
    "scale_out",
    type=float,
    metavar="GB/S",
    help="Network rate of one device, one direction, for runs across nodes.",
)
@click.option(
    "--only",
    type=click.Choice(SECTIONS),
    multiple=True,
    help="Time these alone; several times for several.",
)
@click.option(
    "--store", type=FOLDER, help="Folder of the store that a save is timed to; without it none is."
)
@click.option(
    "--design", type=PATH, metavar="FILE", help="Time the matrix products of its model and plan."
)
@click.option(
    "--plan", type=PATH, metavar="FILE", help="Say what to measure for this design, and write it."
)
@click.option(
    "--budget",
    default="2h",
    show_default=True,
    help="Of a kit for --plan, on two nodes: 90min, 2h.",
)
@click.option("--json", "as_json", is_flag=True, help="With --plan: print their order as JSON.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def measure(
    output: str | None,
    *,
    quick: bool,
    accelerator: str | None,
    device: str | None,
    scale_out: float | None,
    only: tuple[str, ...],
    store: str | None,
    design: str | None,
    plan: str | None,
    budget: str,
    as_json: bool,
    force: bool,
) -> None:
    """Time this machine's devices and write a calibration override; with --plan, write a folder of
    the short measurements that narrow the interval of a design most.

    Matrix products, attention, memory, launches and host copies on one device; under torchrun
    collectives as well:
    torchrun --nproc-per-node 8 -m scantling measure -o calibration.yaml. Ctrl-C keeps what was
    measured so far.
    """
    if plan is not None:
        tell_plan(output, plan, hours_of(budget), as_json, force)
        return
    if output is None:
        raise DesignError("-o", problem="is missing", allowed="the file to write")
    check(output, device, force)
    bench = benches.start(device, quick)
    first = int(environ.get("RANK", "0")) == 0
    asked = Asked(quick, accelerator, scale_out, only, store, design)
    measured, data = timed(bench, asked, show=first)
    if first:
        name = output.rpartition("/")[2]
        head = f"# measured by `scantling measure`; a design uses it with `calibration: {name}`\n"
        write_text(output, head + dump(data), force)
        show(data)
        console().print(texts.done(output, bool(measured.stopped)))
    if measured.stopped:
        # without leaving the process group: the other ranks may wait in a collective
        raise click.exceptions.Exit(130)
    benches.finish(bench)


class Asked(NamedTuple):
    """What is timed. `scale_out`: GB/s of one device, one direction; `only`: of SECTIONS, all where
    it is empty; `store`: the folder that a save is timed to; `design`: whose matrix products."""

    quick: bool = False
    accelerator: str | None = None
    scale_out: float | None = None
    only: Sequence[str] = ()
    store: str | Path | None = None
    design: str | Path | None = None


def timed(bench: benches.Bench, asked: Asked, show: bool) -> tuple[Measured, dict[str, Any]]:
    """What was timed on this machine, and the calibration that follows from it. `show`: a line of
    progress."""
    chip = catalogue.accelerator(asked.accelerator, "accelerator") if asked.accelerator else None
    folder = Path(asked.store) if asked.store else None
    products = products_of(asked.design) if asked.design else ()
    wanted = [
        step
        for step in benches.steps(bench, asked.quick, folder, products)
        if not asked.only or step.section.partition(".")[0] in asked.only
    ]
    if not wanted:
        raise DesignError(
            "only",
            " ".join(asked.only),
            "collectives under torchrun with two processes or more, save with a store",
            problem="leaves nothing to time here",
        )
    measured = run(wanted, show=show)
    rate = asked.scale_out * 1e9 if asked.scale_out else None
    return measured, result(measured, *benches.describe(bench), chip, asked.quick, rate)


def measure_here(
    quick: bool = False,
    accelerator: str | None = None,
    device: str | None = None,
    scale_out: float | None = None,
    only: Sequence[str] = (),
    store: str | Path | None = None,
    design: str | Path | None = None,
) -> dict[str, Any]:
    """The calibration of this machine, as `measure -o` writes it."""
    for section in only:
        if section not in SECTIONS:
            raise DesignError("only", section, SECTIONS)
    check_device(device)
    bench = benches.start(device, quick)
    _, data = timed(bench, Asked(quick, accelerator, scale_out, only, store, design), show=False)
    benches.finish(bench)
    return data


def hours_of(budget: str) -> float:
    """Hours of a budget. Raises DesignError for what is no span."""
    match = SPAN.fullmatch(budget.strip())
    hours = float(match[1]) / PER_HOUR[match[2]] if match else 0.0
    if not 0 < hours <= MOST_HOURS:
        raise DesignError("--budget", budget, "a span such as 90min or 2h", problem="is no span")
    return hours


def products_of(design: str | Path) -> tuple[Product, ...]:
    """The matrix products of a design's model under its plan."""
    assessment = assess(Design.read(design))
    if not assessment.phases:
        raise DesignError("design", design, "a design with a plan that fits", problem="has none")
    tokens = float(np.ravel(assessment.chosen.case.tokens)[0])
    return of_model(assessment.resolved.model, tokens, assessment.plan["tp"])


def tell_plan(output: str | None, design: str, budget_h: float, as_json: bool, force: bool) -> None:
    """Say what to measure for a design and what each is worth; with a folder write it as a kit."""
    assessment = assess(Design.read(design))
    if not assessment.phases:
        raise DesignError("--plan", design, "a design with a plan that fits", problem="has none")
    if output is not None and Path(output).is_dir():
        check_new(str(Path(output) / "run.sh"), force)
    order = worths(assessment, budget_h)
    if not order:
        raise DesignError("--budget", problem="is too short", allowed="six minutes and more")
    if output is not None:
        write_kit(Path(output), assessment, order, force)
    if as_json:
        print_json([one.as_dict() for one in order])
        return
    out = console()
    print_table(out, texts.WORTH_HEADS, map(texts.worth_row, order))
    fabric, flaps = fabric_price(assessment), flap_price(assessment)
    if fabric is not None:
        out.print(texts.fabric_line(fabric))
    if flaps is not None:
        out.print(texts.flaps_line(flaps))
    if output is None:
        out.print("-o FOLDER writes them as a kit.")
    else:
        out.print(f"Wrote {plain(output, 200)}: smoke.sh, run.sh, learn.sh, README.md")


def check(output: str, device: str | None, force: bool) -> None:
    """Whether the file can be written and the device is there; raises DesignError."""
    need_torch()
    check_new(output, force)
    check_device(device)


def need_torch() -> None:
    """Raises DesignError where PyTorch is not installed."""
    if find_spec("torch") is None:
        raise DesignError(
            "measure",
            problem="needs PyTorch",
            allowed="pip install 'scantling[measure]', or a run where PyTorch is installed",
        )


def check_device(device: str | None) -> None:
    """Whether there is such a device; raises DesignError."""
    need_torch()
    if device not in (None, "cuda", "cpu"):
        raise DesignError("device", device, ("cuda", "cpu"))
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise DesignError(
                "device",
                "cuda",
                "cpu, or a machine with a GPU that PyTorch sees",
                problem="is not there",
            )


def show(data: dict[str, Any]) -> None:
    """The measured constants, and what is none."""
    out = console()
    rows = [texts.constant_row(name, entry) for name, entry in data["constants"].items()]
    if rows:
        print_table(out, texts.CONSTANT_HEADS, rows)
    for row in data.get("left_out", []):
        out.print(texts.left_out(row))
    if data["device"]["accelerator"] is None:
        out.print(texts.unknown_device(data["device"]["name"]))
    for row in data.get("skipped", []):
        out.print(texts.skipped(row))
