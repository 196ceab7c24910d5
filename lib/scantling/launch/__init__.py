"""The launch kit: from an assessed plan to the files that a framework and a scheduler start from.

`kits(assessment, to, on)` gives the files as text; `write` puts them into a folder in one step. A framework is one module here (what it
can express, its files, its command) and one judge in the tests, which is the framework's own parser.
"""
from __future__ import annotations

import math
import os
import shutil
import tempfile
from importlib import import_module
from pathlib import Path

from ..errors import DesignError
from .express import Inexpressible, express
from .record import LAYOUTS, Gap, LaunchPlan, launch_plan

FRAMEWORKS = {"megatron": "megatron", "megatron-bridge": "bridge", "torchtitan": "torchtitan", "fsdp": "fsdp", "deepspeed": "deepspeed",
              "accelerate": "accelerate", "maxtext": "maxtext", "ddp": "ddp"}
ON = LAYOUTS
__all__ = ["FRAMEWORKS", "ON", "Gap", "Inexpressible", "LaunchPlan", "kits", "launch_plan", "write"]


def framework(to: str):
    """The module of a framework. Raises DesignError for one that is not there."""
    if to not in FRAMEWORKS:
        raise DesignError("--to", to, FRAMEWORKS)
    return import_module(f".{FRAMEWORKS[to]}", __package__)


def kits(assessment, to: str, on: str = "torchrun") -> dict[str, str]:
    """The files of a launch kit, relative path to text. The main phase's kit is at the top, that of phase n of several in `phase-n/`.

    Raises DesignError for a framework or scheduler that is not there, Inexpressible where the framework has no plan that fits and keeps
    the constraints, ValueError for an impossible design.
    """
    from .pages import kit

    module = framework(to)
    if on not in ON:
        raise DesignError("--on", on, ON)
    if not assessment.phases:
        raise ValueError("an impossible design has no plan to launch")
    out = {}
    for i in range(len(assessment.phases)):
        folder = "" if i == assessment.main else f"phase-{i + 1}/"
        files = kit(express(assessment, i, module, to, on), module)
        out |= {folder + name: text for name, text in files.items()}
    if len(assessment.phases) > 1:
        order = ", then ".join("this folder" if i == assessment.main else f"`phase-{i + 1}/`" for i in range(len(assessment.phases)))
        out["README.md"] += f"\n## Phases\nThe design has {len(assessment.phases)} phases, each with its own plan: start {order}; each resumes from the checkpoint before it.\n"
    return out


def write(files: dict[str, str], folder) -> None:
    """Write a kit into `folder` (made where it is not there) in one step: all files or, if anything fails, none.

    Files of an earlier kit are replaced; others stay. Raises DesignError where the folder cannot be written.
    """
    folder = Path(folder)
    try:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(20, "is not a folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".launch-") as scratch:
            whole = Path(scratch) / "kit"
            if folder.exists():
                shutil.copytree(folder, whole, symlinks=True)
            for name, text in files.items():
                path = whole / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="\n")
                path.chmod(0o755 if name.endswith((".sh", ".sbatch")) else 0o644)
            whole.chmod(0o755)
            if folder.exists():
                os.rename(folder, Path(scratch) / "before")
            os.rename(whole, folder)
    except OSError as e:
        raise DesignError(str(folder), problem=f"cannot be written ({e.strerror or e})", allowed="a folder for the kit") from None


def learning_rate(parameters: float) -> float:
    """Peak learning rate by size: Brown et al. 2020, table 2.1, interpolated in the logarithms; a start, not a result."""
    sizes, rates = (125e6, 350e6, 760e6, 1.3e9, 2.7e9, 6.7e9, 13e9, 175e9), (6e-4, 3e-4, 2.5e-4, 2e-4, 1.6e-4, 1.2e-4, 1e-4, 6e-5)
    x = min(max(parameters, sizes[0]), sizes[-1])
    i = max(k for k in range(len(sizes) - 1) if sizes[k] <= x)
    t = math.log(x / sizes[i]) / math.log(sizes[i + 1] / sizes[i])
    return float(f"{math.exp(math.log(rates[i]) * (1 - t) + math.log(rates[i + 1]) * t):.2g}")
