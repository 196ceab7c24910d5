"""One report: what it is made from, and making it. Runs in this process, in a worker process or on
a Dask worker alike."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from scantling.base.errors import DesignError
from scantling.plans.prepare import prepare

# the last cell of the notebook hands the assessment over under this type
RESULT = "application/vnd.scantling.assessment+json"
_REFERENCES = (("model", "hf_config"), ("calibration",))
_CODE = (".py", ".csv", ".yaml", ".json", ".j2", ".css", ".ipynb")
EXIT = {"feasible": 0, "constraint-missed": 3, "impossible": 4}


@dataclass(frozen=True)
class Job:
    """A design and everything it refers to, ready to travel: text only, no path of this machine."""

    name: str
    design: str
    template: str
    digest: str
    date: str
    code: str = ""  # set where a job leaves this machine: the state of the kit that it may run on
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Done:
    """What came of a job. `status`: done, wrong (the design file) or failed (the making)."""

    name: str
    digest: str
    status: str
    error: str = ""
    html: str = ""
    notebook: str = ""
    assessment: dict = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def exit(self) -> int:
        return {"wrong": 2, "failed": 1}.get(self.status) or EXIT.get(
            self.assessment.get("verdict"), 1
        )


def job(path, name: str, template: str | None = None, date: str | None = None) -> Job:
    """The job of the design file at `path`; raises DesignError where the file is wrong."""
    from scantling.design.design import Design

    from ..resources import notebook

    design = Design.read(path)
    data, files = design.data(), []
    for where in _REFERENCES:
        inner = data
        for step in where:
            inner = inner.get(step) if isinstance(inner, dict) else None
        if isinstance(inner, str):
            source = design.folder / inner
            try:
                content = source.read_text(encoding="utf-8")
            except (OSError, ValueError) as e:
                raise DesignError(
                    ".".join(where),
                    inner,
                    "a readable text file",
                    problem=f"cannot be read ({type(e).__name__})",
                ) from None
            design = design.change({".".join(where): source.name})
            files.append((source.name, content))
    template = (
        template if template is not None else notebook("design_report").read_text(encoding="utf-8")
    )
    text, code = design.to_yaml(), code_digest()
    digest = hashlib.sha256(json.dumps([text, files, template, code]).encode()).hexdigest()
    return Job(
        name=name,
        design=text,
        template=template,
        digest=digest,
        date=date or today(),
        files=tuple(files),
    )


def today() -> str:
    """The date that a report carries; SOURCE_DATE_EPOCH fixes it for builds that must repeat."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return (
        datetime.fromtimestamp(int(epoch), UTC).date().isoformat()
        if epoch
        else datetime.now().astimezone().date().isoformat()
    )


@functools.cache
def code_digest() -> str:
    """A digest of the installed kit: when a formula, a catalogue row or a template changes, a
    report is made again."""
    import scantling

    import scantling_widgets

    total = hashlib.sha256(metadata.version("vl-convert-python").encode())
    for package in (scantling, scantling_widgets):
        root = Path(package.__file__).parent
        for path in sorted(
            p for p in root.rglob("*") if p.suffix in _CODE and "__pycache__" not in p.parts
        ):
            total.update(
                path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"
            )
    return total.hexdigest()


def make(job: Job) -> Done:
    """The report of one job. Never raises for what a design or the notebook does: the fault is in
    what it returns."""
    began = time.perf_counter()

    def done(status, **more):
        return Done(
            name=job.name,
            digest=job.digest,
            status=status,
            seconds=round(time.perf_counter() - began, 2),
            **more,
        )

    if job.code and job.code != code_digest():
        return done(
            "failed",
            error=(
                f"this worker has another state of scantling "
                f"({metadata.version('scantling')}) than the batch was started from"
            ),
        )
    with tempfile.TemporaryDirectory(prefix="scantling-report-") as scratch:
        folder = Path(scratch)
        for name, content in job.files:
            (folder / Path(name).name).write_text(content, encoding="utf-8")
        try:
            _check(job, folder)
            return done("done", **_execute(job, folder))
        except DesignError as e:
            return done("wrong", error=str(e))
        except NotebookFault as e:
            return done(
                "wrong" if e.ename == "DesignError" else "failed", error=str(e), notebook=e.notebook
            )
        except Exception as e:
            return done("failed", error=f"{type(e).__name__}: {e}".splitlines()[0][:400])


class NotebookFault(Exception):
    """A cell of the notebook failed."""

    def __init__(self, ename, evalue, notebook):
        super().__init__(evalue if ename == "DesignError" else f"{ename}: {evalue}")
        self.ename, self.notebook = ename, notebook


def _check(job: Job, folder: Path) -> None:
    """Refuse a wrong design before a kernel is started for it."""
    from scantling.design.design import Design

    prepare(Design.from_text(job.design, folder))


def _execute(job: Job, folder: Path) -> dict:
    import logging

    import nbformat
    import papermill

    from .page import page

    logging.getLogger("papermill").setLevel(logging.ERROR)
    source, result = folder / "template.ipynb", folder / "result.ipynb"
    source.write_text(job.template, encoding="utf-8")
    try:
        notebook = papermill.execute_notebook(
            str(source),
            str(result),
            parameters={"design": job.design},
            progress_bar=False,
            log_output=False,
            request_save_on_cell_execute=False,
            start_timeout=120,
            execution_timeout=600,
            cwd=str(folder),
            kernel_name="python3",
            extra_arguments=["--log-level=50"],
        )
    except papermill.PapermillExecutionError as e:
        raise NotebookFault(
            e.ename, e.evalue, result.read_text(encoding="utf-8") if result.exists() else ""
        ) from None
    notebook.metadata.pop("widgets", None)
    assessment = _assessment(notebook)
    html = page(
        notebook,
        title=assessment.get("name", job.name),
        date=job.date,
        footer=f"scantling {metadata.version('scantling')}",
    )
    return {"html": html, "notebook": nbformat.writes(notebook) + "\n", "assessment": assessment}


def _assessment(notebook) -> dict:
    for cell in reversed(notebook.cells):
        for output in cell.get("outputs", []):
            if found := output.get("data", {}).get(RESULT):
                return found
    raise ValueError("the notebook hands no assessment over in its last cell")
