"""One report: what it is made from, and making it. Runs in this process, in a worker process or on
a Dask worker alike."""

import functools
import hashlib
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from importlib import metadata
from json import dumps
from os import environ
from pathlib import Path
from shutil import disk_usage
from typing import Any, TypedDict

from scantling.base.errors import DesignError, plain
from scantling.base.files import read_text
from scantling.base.records import at, record
from scantling.base.show import size
from scantling.design.design import Design
from scantling.design.methods import untuned
from scantling.plans.prepare import prepare
from scantling.verdict.result import Result
from scantling.verdict.verdicts import EXIT

from ..charts.pictures import RESULT
from ..shipped_files import notebook, packages
from .page import page

LONGEST_S = {"default": 600, "wide": 7200}  # of one cell of a report, by the space that is searched
REFERENCES = ("model.hf_config", "calibration")
MOST_BYTES = 4_000_000  # of a file that a design names
SCRATCH_BYTES = 5_000_000  # of temporary files: the notebook, 0.9 MB for 405B, and what it reads
_CODE = (".py", ".csv", ".yaml", ".json", ".j2", ".css", ".ipynb")


@record
class Job:
    """A design and everything it refers to, ready to travel: text only, no path of this machine."""

    name: str
    design: str
    template: str
    digest: str
    date: str
    code: str = ""  # set where a job leaves this machine: the state of the kit that it may run on
    files: dict[str, str] = field(default_factory=dict)
    space: str = "default"
    full: bool = False


@record
class Done:
    """What came of a job. `status`: done, wrong (the design file) or failed (the making)."""

    name: str
    digest: str
    status: str
    error: str = ""
    html: str = ""
    notebook: str = ""
    assessment: Result = field(default_factory=Result)

    @property
    def exit(self) -> int:
        """The exit code of the command: 2 a wrong file, 1 no report, else the verdict's."""
        if self.status in ("wrong", "failed"):
            return 2 if self.status == "wrong" else 1
        return EXIT.get(self.assessment.get("verdict", ""), 1)


def files_of(design: Design) -> dict[str, str]:
    """{field: the file that a design names there}."""
    named = {field: at(design.data(), field) for field in REFERENCES}
    return {field: file for field, file in named.items() if isinstance(file, str)}


def job(
    path: str | Path, name: str, date: str | None = None, space: str = "default", full: bool = False
) -> Job:
    """The job of the design file at `path`; raises DesignError where the file is wrong."""
    design = Design.read(path)
    files = {}
    for where, file in files_of(design).items():
        wrong = functools.partial(DesignError, where, file)
        source = design.folder / file
        files[source.name] = read_text(source, "a text file", MOST_BYTES, wrong)
        design = design.change({where: source.name})
    text, template = design.to_yaml(), notebook("design_report").read_text(encoding="utf-8")
    own = {"design": text, "files": files, "template": template, "space": space, "full": full}
    return Job(
        name=name,
        digest=hashlib.sha256(dumps([own, code_digest()]).encode()).hexdigest(),
        date=date or today(),
        design=text,
        files=files,
        template=template,
        space=space,
        full=full,
    )


def today() -> str:
    """The date that a report carries; SOURCE_DATE_EPOCH fixes it for builds that must repeat.
    Raises DesignError where that is no count of seconds."""
    epoch = environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        return datetime.now().astimezone().date().isoformat()
    try:
        return datetime.fromtimestamp(int(epoch), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        allowed = "seconds since 1970, a whole number"
        raise DesignError("SOURCE_DATE_EPOCH", epoch, allowed) from None


@functools.cache
def code_digest() -> str:
    """A digest of the installed kit: when a formula, a catalogue row or a template changes, a
    report is made again."""
    total = hashlib.sha256(metadata.version("vl-convert-python").encode())
    for root in packages():
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
    done = functools.partial(Done, name=job.name, digest=job.digest)
    if job.code and job.code != code_digest():
        state = f"another state of scantling ({metadata.version('scantling')})"
        error = f"this worker has {state} than the batch was started from"
        return done(status="failed", error=error)
    try:
        with tempfile.TemporaryDirectory(prefix="scantling-report-") as scratch:
            folder = Path(scratch)
            for name, content in job.files.items():
                (folder / Path(name).name).write_text(content, encoding="utf-8")
            # a wrong design is refused before a kernel is started for it
            prepare(untuned(Design.from_yaml(job.design, folder)))
            return done(status="done", **_execute(job, folder))
    except DesignError as e:
        return done(status="wrong", error=str(e))
    except NotebookFault as e:
        wrong = e.ename == "DesignError"
        return done(
            status="wrong" if wrong else "failed",
            error=str(e) if wrong else _with_room(str(e)),
            notebook=e.notebook,
        )
    except OSError as e:
        place = plain(e.filename or tempfile.gettempdir(), 200)
        why = f"{place}: cannot be read or written ({e.strerror or plain(e, 200)})"
        return done(status="failed", error=_with_room(why))
    except Exception as e:
        why = f"{type(e).__name__}: {e}".splitlines()[0][:400]
        return done(status="failed", error=_with_room(why))


def _with_room(why: str) -> str:
    """A fault, with the room that is left for temporary files where that is too little."""
    try:
        place = tempfile.gettempdir()
        free = disk_usage(place).free
    except OSError:  # there is no such folder
        return f"{why}; a report needs room for {size(SCRATCH_BYTES)} of temporary files"
    if free >= SCRATCH_BYTES:
        return why
    needs = f"a report needs {size(SCRATCH_BYTES)} of temporary files"
    return f"{why}; {needs}, and {size(free)} are free in {plain(place, 200)}"


class Executed(TypedDict):
    """What an executed notebook gives."""

    html: str
    notebook: str
    assessment: Result


class NotebookFault(Exception):
    """A cell of the notebook failed."""

    def __init__(self, ename: str, evalue: str, notebook: str) -> None:
        super().__init__(evalue if ename == "DesignError" else f"{ename}: {evalue}")
        self.ename, self.notebook = ename, notebook


def _execute(job: Job, folder: Path) -> Executed:
    import nbformat
    import papermill

    logging.getLogger("papermill").setLevel(logging.ERROR)
    source, result = folder / "template.ipynb", folder / "result.ipynb"
    source.write_text(job.template, encoding="utf-8")
    try:
        notebook = papermill.execute_notebook(
            str(source),
            str(result),
            parameters={"design": job.design, "space": job.space, "full": job.full},
            progress_bar=False,
            log_output=False,
            request_save_on_cell_execute=False,
            start_timeout=120,
            execution_timeout=LONGEST_S[job.space],
            cwd=str(folder),
            kernel_name="python3",
            extra_arguments=["--log-level=50"],
        )
    except papermill.PapermillExecutionError as e:
        raise NotebookFault(
            e.ename, e.evalue, result.read_text(encoding="utf-8") if result.exists() else ""
        ) from None
    notebook.metadata.pop("widgets", None)
    assessment = assessment_in(notebook)
    return {
        "html": page(
            notebook,
            title=assessment.get("name", job.name),
            date=job.date,
            footer=f"scantling {metadata.version('scantling')}",
        ),
        "notebook": nbformat.writes(notebook) + "\n",
        "assessment": assessment,
    }


def assessment_in(notebook: Mapping[str, Any]) -> Result:
    """The assessment that an executed report notebook hands over in its last cell. Raises
    ValueError where it holds none."""
    for cell in reversed(notebook["cells"]):
        for output in cell.get("outputs", []):
            if assessment := output.get("data", {}).get(RESULT):
                result: Result = assessment
                return result
    raise ValueError("the notebook hands no assessment over in its last cell")
