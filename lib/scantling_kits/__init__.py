"""The launch kit: from an assessed plan to the files that a framework and a scheduler start from.

`kits(assessment, to, on)` gives the files as text; `write` puts them into a folder in one step. A
framework is one module here (what it can express, its files, its command) and one judge in the
tests, which is the framework's own parser.
"""

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from json import loads
from pathlib import Path

from scantling.base.errors import DesignError, plain
from scantling.base.files import read_text
from scantling.verdict.assessment import Assessment

from .expressible import express
from .frameworks import FRAMEWORKS
from .ladder import climb
from .launch_plan import LAYOUTS, Framework, Gap, LaunchPlan
from .launched import launch_plan
from .misfits import Inexpressible
from .pages import json_text, kit, programs
from .smoke import readme as smoke_readme, smoke_assessment

ON = LAYOUTS
IDENTITY = ("name", "framework")  # keys of plan.json by which a kit is told from others
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
    out["plan.json"] = json_text({**loads(out["plan.json"]), "files": sorted(out)})
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

    Files of an earlier writing of the same kit are replaced, and go where the kit no longer has
    them; others, such as a run's folder, stay untouched. Scripts are executable. Raises DesignError
    where the folder holds another kit, or cannot be written.
    """
    folder = Path(folder)
    stale = {*earlier_files(folder, files)} - {*files}
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
                _replace(files, stale, whole, folder, Path(scratch) / "before")
            else:
                whole.chmod(0o755)
                os.rename(whole, folder)
    except OSError as e:
        raise DesignError(
            str(folder),
            problem=f"cannot be written ({e.strerror or e})",
            allowed="a folder for the kit",
        ) from None


def earlier_files(folder: Path, files: Mapping[str, str]) -> list[str]:
    """The files of the kit that a folder holds, which has to be an earlier writing of `files`: of
    one name and framework. Raises DesignError."""
    try:
        earlier = loads(read_text(folder / "plan.json"))
        named = [str(earlier[key]) for key in IDENTITY]
        listed = [name for name in earlier.get("files", ()) if (folder / name).is_file()]
    except (DesignError, OSError, ValueError, TypeError, KeyError):
        return []  # no kit, or none of ours
    new = loads(files["plan.json"])
    if named != [new[key] for key in IDENTITY]:
        name, to = named
        raise DesignError(
            plain(folder, 200),
            problem=plain(f"holds the kit of {name!r} for {to}", 300),
            allowed="another folder, or this one once that kit is removed",
        )
    inside = folder.resolve()
    return [name for name in listed if (folder / name).resolve().is_relative_to(inside)]


def _replace(
    names: Iterable[str], stale: Iterable[str], new: Path, folder: Path, before: Path
) -> None:
    """Move every file of `new` to its place in `folder`, and those that are stale out of it; where
    one does not go, put back what stood there."""
    with ExitStack() as undo:
        for name in stale:
            _put_away(folder / name, before / name, undo)
        for name in names:
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                _put_away(place, before / name, undo)
            else:
                undo.callback(place.unlink, missing_ok=True)
            os.rename(new / name, place)
        undo.pop_all()
    for parent in {(folder / name).parent for name in stale} - {folder}:
        with suppress(OSError):  # something else is in it
            parent.rmdir()


def _put_away(place: Path, old: Path, undo: ExitStack) -> None:
    old.parent.mkdir(parents=True, exist_ok=True)
    os.rename(place, old)
    undo.callback(os.replace, old, place)
