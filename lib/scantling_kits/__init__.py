"""The launch kit: from an assessed plan to the files that a framework and a scheduler start from.

`kits(assessment, to, on)` gives the files as text; `write` puts them into a folder in one step. A
framework is one module here (what it can express, its files, its command) and one judge in the
tests, which is the framework's own parser.
"""

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from scantling.base.errors import DesignError
from scantling.verdict.assessment import Assessment

from .expressible import express
from .frameworks import FRAMEWORKS
from .ladder import climb
from .launch_plan import LAYOUTS, Framework, Gap, LaunchPlan
from .launched import launch_plan
from .misfits import Inexpressible
from .pages import kit, programs
from .smoke import readme as smoke_readme, smoke_assessment

ON = LAYOUTS
__all__ = [
    "FRAMEWORKS",
    "ON",
    "Gap",
    "Inexpressible",
    "LaunchPlan",
    "kits",
    "launch_plan",
    "smoke_kit",
    "write",
    "programs",
]


def framework(to: str, on: str = "torchrun") -> Framework:
    """The framework of that id, to be started by `on`. Raises DesignError where either is not
    there."""
    for option, value, allowed in (("--to", to, FRAMEWORKS), ("--on", on, ON)):
        if value not in allowed:
            raise DesignError(option, value, allowed)
    return FRAMEWORKS[to]


def kits(assessment: Assessment, to: str, on: str = "torchrun") -> dict[str, str]:
    """The files of a launch kit, relative path to text, ready for `write`, an archive or a
    download.

    Parameters
    ----------
    assessment : what `scantling.assess` returns.
    to : a key of FRAMEWORKS.
    on : one of ON: what starts the processes.

    The main phase's kit is at the top, that of phase n of several in `phase-n/`. `plan.json` holds
    the plan that is launched, the one that was assessed and, under `not_expressed`, what of it the
    framework has no words for and what that costs. The same assessment gives the same text. Takes
    some 20 ms, or a second or two where a nearest plan has to be searched.

    Raises DesignError for a framework or scheduler that is not there, Inexpressible where the
    framework has no plan that fits and keeps the constraints, ValueError for an impossible design.
    """
    chosen = framework(to, on)
    if not assessment.phases:
        raise ValueError("an impossible design has no plan to launch")
    out: dict[str, str] = {}
    folders = [f"phase-{i + 1}/" for i in range(len(assessment.phases))]
    folders[assessment.resolved.main] = ""
    for i, folder in enumerate(folders):
        launch = express(assessment, i, chosen, on)
        rungs = climb(launch) if not folder and launch.nodes > 1 else []
        files = kit(launch, rungs)
        out |= {folder + name: text for name, text in files.items()}
        for name, rung in rungs[:-1]:
            out |= {f"ladder/{name}/{k}": v for k, v in programs(rung).items()}
    if len(folders) > 1:
        order = ", then ".join(f"`{folder}`" if folder else "this folder" for folder in folders)
        out["README.md"] += (
            f"\n## Phases\nThe design has {len(folders)} phases, each with its "
            f"own plan: start {order}, each in a RUN_DIR of its own. A phase begins with the "
            "weights that the one before it left, which INIT names, and with steps, learning rate "
            f"and optimizer states of its own. INIT: {chosen.saves.begin or 'a checkpoint'}.\n"
        )
    return out


def smoke_kit(assessment: Assessment, to: str) -> dict[str, str]:
    """The files of a smoke test of a design's kit: the same framework for a model of a few layers
    on two ranks of one machine, from its README.md alone.

    Raises DesignError for a framework that is not there, ValueError for an impossible design.
    """
    chosen = framework(to)
    if not assessment.phases:
        raise ValueError("an impossible design has no plan to launch")
    files = kits(smoke_assessment(assessment, chosen), to)
    return files | {"README.md": smoke_readme(assessment, chosen)}


def write(files: Mapping[str, str], folder: str | Path) -> None:
    """Write a kit into `folder` (made where it is not there): all files or, if anything fails,
    none.

    Files of an earlier kit are replaced; others, such as a run's folder, stay untouched. Scripts
    are executable. Raises DesignError where the folder cannot be written.
    """
    folder = Path(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder if folder.exists() else folder.parent, prefix=".launch-"
        ) as scratch:
            whole = Path(scratch) / "kit"
            for name, text in files.items():
                path = whole / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="\n")
                path.chmod(0o755 if name.endswith((".sh", ".sbatch")) else 0o644)
            if folder.exists():
                _replace(files, whole, folder, Path(scratch) / "before")
            else:
                whole.chmod(0o755)
                os.rename(whole, folder)
    except OSError as e:
        raise DesignError(
            str(folder),
            problem=f"cannot be written ({e.strerror or e})",
            allowed="a folder for the kit",
        ) from None


def _replace(names: Iterable[str], new: Path, folder: Path, before: Path) -> None:
    """Move every file of `new` to its place in `folder`; where one does not go, put back what stood
    there."""
    with ExitStack() as undo:
        for name in names:
            place = folder / name
            old = before / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                old.parent.mkdir(parents=True, exist_ok=True)
                os.rename(place, old)
                undo.callback(os.replace, old, place)
            else:
                undo.callback(place.unlink, missing_ok=True)
            os.rename(new / name, place)
        undo.pop_all()
