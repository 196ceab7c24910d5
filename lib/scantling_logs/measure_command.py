"""`scantling measure -o FILE`: times this machine's devices and writes a calibration override that
a design names as `calibration: FILE`."""

from importlib.util import find_spec
from os import environ
from pathlib import Path
from typing import Any

import click
from scantling import catalogue
from scantling.base.console import console
from scantling.base.errors import DesignError, plain
from scantling.base.files import write_text
from scantling.cli.common import check_new
from scantling.cli.tables import print_table
from scantling.design.file import dump

from . import texts
from .measure import bench as benches
from .measure.curves import result, run


@click.command()
@click.option(
    "-o", "--output", required=True, help="File to write; a design names it as `calibration: FILE`."
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
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def measure(
    output: str,
    quick: bool,
    accelerator: str | None,
    device: str | None,
    scale_out: float | None,
    force: bool,
) -> None:
    """Time this machine's devices and write a calibration override.

    Matrix products, attention, memory, launches and host copies on one device; under torchrun
    collectives as well:
    torchrun --nproc-per-node 8 -m scantling measure -o calibration.yaml. Ctrl-C keeps what was
    measured so far.
    """
    check(output, device, force)
    chip = catalogue.accelerator(accelerator, "--accelerator") if accelerator else None
    bench = benches.start(device, quick)
    first = int(environ.get("RANK", "0")) == 0
    measured = run(benches.steps(bench, quick), show=first)
    if first:
        rate = scale_out * 1e9 if scale_out else None
        data = result(measured, *benches.describe(bench), chip, quick, rate)
        name = output.rpartition("/")[2]
        head = f"# measured by `scantling measure`; a design uses it with `calibration: {name}`\n"
        write_text(output, head + dump(data), force)
        show(data)
        console().print(texts.done(output, bool(measured.stopped)))
    if measured.stopped:
        # without leaving the process group: the other ranks may wait in a collective
        raise click.exceptions.Exit(130)
    benches.finish(bench)


def check(output: str, device: str | None, force: bool) -> None:
    """Whether the file can be written and the device is there; raises DesignError."""
    if find_spec("torch") is None:
        raise DesignError(
            "measure",
            problem="needs PyTorch",
            allowed="pip install 'scantling[measure]', or a run where PyTorch is installed",
        )
    check_new(output, force)
    if not Path(output).absolute().parent.is_dir():
        raise DesignError(
            plain(output, 200),
            problem="is in a folder that does not exist",
            allowed="a file in an existing folder",
        )
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise DesignError(
                "--device",
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
