"""The report and the launch kit of a design, made in the background: steps that are told as they
are done, and that can be stopped."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from json import dumps
from pathlib import Path
from re import sub
from time import sleep
from typing import Any

from markupsafe import Markup
from scantling.base.files import write_text
from scantling.base.json import clean
from scantling.design.design import Design
from scantling.verdict.assessment import Assessment
from scantling_kits import kits, write
from scantling_kits.writable import refusal
from scantling_logs.measure.kit import write_kit
from scantling_logs.measure.worth import Worth, worths
from scantling_posttrain.recipe import Recipe
from scantling_posttrain.recipes import FRAMEWORKS as RECIPES, script

from ..report import of as report_of
from ..report.jobs import files_of, today
from ..report.page import document
from ..shipped_files import in_a_page

_MEASURED_H = 2.0  # of a kit of measurements, on two nodes
_TICK_S, _USUAL_TICKS = 0.25, 60  # a report takes some ten to twenty seconds


Files = dict[str, str]  # name -> text
Drawing = Callable[[str], Coroutine[Any, Any, str]]  # of a report's HTML: it with its pictures

drawing: Drawing | None = None  # in a page


def tuning_kit(design: Design, to: str, folder: Path) -> tuple[int, Iterator[Files | Path]]:
    """(steps, steps): the script that starts a tuning run under a framework, then where it stands.
    Raises DesignError for what the framework has no words for."""
    recipe = RECIPES[to](design)
    files = {f"run-{to}.sh": script(recipe, to), "plan.json": _plan_json(recipe)}

    def steps() -> Iterator[Files | Path]:
        yield files
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_text(folder / name, content, force=True)
        yield folder

    return 2, steps()


def _plan_json(recipe: Recipe) -> str:
    """The plan of a recipe, and what its framework is not told."""
    result = recipe.result
    rows = {"plan": result.plan, "rollout": result.rollout, "gaps": list(recipe.gaps)}
    return dumps(clean(rows), indent=1, ensure_ascii=False) + "\n"


class Stopped(Exception):
    """The child that made the report ended without one."""


def slug(name: str) -> str:
    """A name as a file is called."""
    return sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:60] or "design"


def report(design: Design, folder: Path) -> tuple[int, Iterator[Path | None]]:
    """(steps, ticks): renders in a process of its own; yields None while it works and the path of
    the page at the end.

    Closing the iterator ends the process, its kernel with it; a report that was not finished leaves
    no file.
    """
    if in_a_page():
        return 1, _made_report(design, folder)
    return _USUAL_TICKS, _report(design, Path(os.path.abspath(folder)))


def _made_report(design: Design, folder: Path) -> Iterator[Path | None]:
    """Where there are no processes: the report without its notebook, drawn by the page."""
    html, title = report_of(design).html(), design.title
    assert drawing is not None, "a page draws its pictures"
    drawn = asyncio.ensure_future(drawing(html))
    while not drawn.done():
        yield None
    page = folder / f"{slug(title)}.html"
    page.write_text(document(Markup(drawn.result()), title=title, date=today()), "utf-8")
    yield page


def _report(design: Design, folder: Path) -> Iterator[Path | None]:
    name = slug(design.title)
    with tempfile.TemporaryDirectory(prefix="scantling-desk-") as scratch:
        file = Path(scratch) / f"{name}.yaml"
        named = {k: os.path.abspath(design.folder / v) for k, v in files_of(design).items()}
        design = design.change(named)
        design.write(file)
        argv = [
            sys.executable,
            "-m",
            "scantling",
            "report",
            str(file),
            "-o",
            str(folder),
            "--workers",
            "1",
        ]
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            while child.poll() is None:
                sleep(_TICK_S)
                yield None
            printed, complaint = child.communicate()
        finally:
            _end(child)
        page = folder / f"{name}.html"
        if child.returncode in (1, 2) or not page.is_file():
            lines = (complaint or printed).strip().splitlines()
            raise Stopped(lines[-1] if lines else f"the report ended with {child.returncode}")
        yield page


def _end(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, how)
                child.wait(5)
                break
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                break
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def measurements(
    assessment: Assessment, folder: Path
) -> tuple[int, Iterator[Sequence[Worth] | Path]]:
    """(steps, results): the measurements that narrow the interval of a design most for two hours on
    two nodes, then the folder that their kit was written to."""
    if not assessment.phases:
        raise Stopped("no plan holds the model: there is nothing to measure for")

    def run() -> Iterator[Sequence[Worth] | Path]:
        order = worths(assessment, _MEASURED_H)
        yield order
        path = Path(os.path.abspath(folder))
        write_kit(path, assessment, order, force=False)
        yield path

    return 2, run()


def launch_kit(
    assessment: Assessment, to: str, on: str, folder: Path
) -> tuple[int, Iterator[Files | Path]]:
    """(steps, results): the files of a kit as text, then the folder they were written to. Stopped
    after the first, nothing is written."""

    def run() -> Iterator[Files | Path]:
        if why := refusal(assessment):
            raise Stopped(f"nothing is written: {why}")
        files = kits(assessment, to, on)
        yield files
        path = Path(os.path.abspath(folder))
        write(files, path)
        yield path

    return 2, run()
