"""The measurements that are worth most for a design, as a folder: a script that runs them in order,
a smoke version of it for a machine without accelerators, and what learns from what they print."""

from collections.abc import Sequence
from pathlib import Path

from scantling.base.files import write_text
from scantling.verdict.assessment import Assessment

from .. import texts
from .worth import Worth

HEAD = '#!/bin/sh\nset -e\ncd "$(dirname "$0")"\n'
NEEDS = (
    'FRAMEWORK=${FRAMEWORK:-megatron}\nSTORE=${STORE:-.}\nRENDEZVOUS="${RENDEZVOUS:---rdzv-backend'
    ' c10d --rdzv-endpoint ${HEAD_NODE:-localhost}:29500}"\n'
)


def script(lines: Sequence[str]) -> str:
    """A shell script of some commands."""
    return HEAD + NEEDS + "".join(f"{line}\n" for line in lines)


def write_kit(folder: Path, assessment: Assessment, worths: Sequence[Worth], force: bool) -> None:
    """Write the kit."""
    folder.mkdir(parents=True, exist_ok=True)
    for worth in worths:
        if worth.experiment.design is not None:
            (folder / worth.experiment.name).mkdir(exist_ok=True)
            design = folder / worth.experiment.name / "design.yaml"
            write_text(design, worth.experiment.design.to_yaml(), force)
    write_text(folder / "design.yaml", assessment.design.to_yaml(), force)
    runs = []
    smoke = ["mkdir -p smoke"]
    for worth in worths:
        runs += [f"# {worth.experiment.says}", worth.experiment.command]
        smoke += [f"# {worth.experiment.says}", worth.experiment.smoke]
    write_text(folder / "run.sh", script(runs), force)
    write_text(folder / "smoke.sh", script(smoke), force)
    write_text(folder / "learn.sh", script([learns(worths)]), force)
    write_text(folder / "README.md", texts.kit_page(assessment, worths), force)
    for name in ("run.sh", "smoke.sh", "learn.sh"):
        (folder / name).chmod(0o755)


def learns(worths: Sequence[Worth]) -> str:
    """The command that learns from what the measurements print: files of microbenchmarks, and the
    folders of steps, each with the design of its run and its logs."""
    files = [
        worth.experiment.name if worth.experiment.design else f"{worth.experiment.name}.yaml"
        for worth in worths
        if worth.experiment.name != "save"
    ]
    return f"scantling learn {' '.join(files)} -o site.yaml"
