"""A batch of reports: workers, what is finished already, records on disk, the index."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from scantling.base.errors import DesignError

from ..words import at
from .jobs import Done, Job, code_digest, job, make
from .overview import overview
from .paper import chromium, print_pdf

RESERVED = {"index", "summary", "comparison"}
HEADLINE = (
    "verdict",
    "params",
    "devices_used",
    "step_s",
    "step_s_low",
    "step_s_high",
    "mfu",
    "mfu_low",
    "mfu_high",
    "tokens_per_s_per_device",
    "bubble_fraction",
    "memory_bytes.total",
    "memory_bytes.capacity",
    "days",
    "days_low",
    "days_high",
    "goodput",
    "mtbf_s",
    "checkpoint_interval_s",
    "cost_usd",
    "energy_kwh",
)
ATTEMPTS = 3


@dataclass(
    frozen=True,
    kw_only=True,
)
class Record:
    """One line of the batch, as it is kept beside the report."""

    name: str
    design: str
    digest: str
    status: str  # done, wrong, failed
    exit: int
    error: str
    headline: dict
    plan: dict
    reused: bool = False

    def kept(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k != "reused"}


def run(
    files: Iterable,
    out,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    pdf: bool = False,
    force: bool = False,
    told: Callable[[Record, int, int], None] | None = None,
) -> list[Record]:
    """Make the report of each design file into the folder `out`; return a record for each, in the
    order given.

    Finished reports whose design, template and code have not changed are kept. `told(record, done,
    all)` is called after each.
    `workers` local processes (as many as there are cores when left out), or a running Dask cluster
    by the address of its `scheduler`.
    """
    out = Path(out)
    out.mkdir(
        parents=True,
        exist_ok=True,
    )
    files = [Path(f) for f in files]
    names = _names(files)
    browser = _browser() if pdf else None
    records = {}

    def settle(record: Record):
        records[record.name] = record
        if told:
            told(record, len(records), len(files))

    todo = {}
    for path, name in zip(files, names):
        try:
            todo[name] = job(path, name)
        except (DesignError, OSError) as e:
            wrong = Done(
                name=name,
                digest="",
                status="wrong",
                error=str(e).splitlines()[0],
            )
            settle(_keep(out, wrong, path))
            continue
        if not force and (record := _finished(out, todo[name], pdf)):
            del todo[name]
            settle(record)
    sources = dict(zip(names, files))
    with contextlib.closing(
        _on_dask(todo, scheduler) if scheduler else _on_processes(todo, workers)
    ) as results:
        for done in results:
            record = _keep(out, done, sources[done.name])
            if browser and record.status == "done":
                write(out / f"{record.name}.pdf", print_pdf(browser, out / f"{record.name}.html"))
            settle(record)
    _index(out)
    return [records[name] for name in names]


def read_records(out) -> list[Record]:
    """The records kept in a folder of reports, by name."""
    found = []
    for path in sorted(Path(out).glob("*.json")):
        try:
            found.append(Record(**json.loads(path.read_text(encoding="utf-8"))))
        except (TypeError, ValueError):
            continue
    return found


def _names(files: list[Path]) -> list[str]:
    """A name for each report: the file's own, numbered where two files share it."""
    names, taken = [], {}
    for path in files:
        stem = f"{path.stem}-design" if path.stem.lower() in RESERVED else path.stem
        taken[stem] = taken.get(stem, 0) + 1
        names.append(stem if taken[stem] == 1 else f"{stem}-{taken[stem]}")
    return names


def _finished(
    out: Path,
    job: Job,
    pdf: bool,
) -> Record | None:
    try:
        record = Record(**json.loads((out / f"{job.name}.json").read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError):
        return None
    ends = (".html", ".ipynb", ".pdf")[: 3 if pdf else 2]
    there = all((out / f"{job.name}{end}").is_file() for end in ends)
    whole = there and record.status == "done" and record.digest == job.digest
    return replace(record, reused=True) if whole else None


def _keep(
    out: Path,
    done: Done,
    source: Path,
) -> Record:
    """Put the files of a finished job into `out`, each in one step, the record last: what has a
    record is whole."""
    record = Record(
        name=done.name,
        design=source.name,
        digest=done.digest,
        status=done.status,
        exit=done.exit,
        error=done.error,
        headline={key: at(done.assessment, key) for key in HEADLINE} if done.assessment else {},
        plan=done.assessment.get("plan") or {},
    )
    faulty = out / f"{done.name}.error.ipynb"
    if done.status == "done":
        write(out / f"{done.name}.ipynb", done.notebook)
        write(out / f"{done.name}.html", done.html)
        faulty.unlink(missing_ok=True)
    elif done.notebook:
        write(faulty, done.notebook)
    kept = json.dumps(
        record.kept(),
        indent=1,
        ensure_ascii=False,
    )
    write(out / f"{done.name}.json", kept + "\n")
    return record


def write(path: Path, content: str | bytes) -> None:
    """Write a file in one step: a reader sees the old one or the new one."""
    handle, part = tempfile.mkstemp(
        dir=path.parent,
        prefix=".",
        suffix=".part",
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(part, 0o666 & ~umask)
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _on_processes(todo: dict[str, Job], workers: int | None) -> Iterator[Done]:
    workers = min(workers or os.cpu_count() or 1, len(todo))
    if workers <= 1:
        yield from map(make, todo.values())
        return
    waiting, tries = dict(todo), dict.fromkeys(todo, 0)
    while waiting:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            futures = {pool.submit(make, j): name for name, j in waiting.items()}
            try:
                for future in as_completed(futures):
                    name = futures[future]
                    try:
                        done = future.result()
                    # a worker died; which job it held is not known, so all that are left try again
                    except BrokenProcessPool:
                        tries[name] += 1
                        if tries[name] < ATTEMPTS:
                            continue
                        done = _failed(waiting[name], "the worker process died")
                    del waiting[name]
                    yield done
            except (GeneratorExit, KeyboardInterrupt):
                pool.shutdown(
                    wait=False,
                    cancel_futures=True,
                )
                raise


def _failed(job: Job, why: str) -> Done:
    return Done(
        name=job.name,
        digest=job.digest,
        status="failed",
        error=why,
    )


def _on_dask(todo: dict[str, Job], address: str) -> Iterator[Done]:
    try:
        import distributed
    except ImportError:
        raise DesignError(
            "--scheduler",
            address,
            "pip install 'scantling[dask]'",
            problem="needs dask.distributed",
        ) from None
    try:
        client = distributed.Client(
            address,
            timeout="15s",
            set_as_default=False,
        )
    except (OSError, ValueError) as e:
        raise DesignError(
            "--scheduler",
            address,
            "the address of a running Dask scheduler, such as tcp://host:8786",
            problem=f"does not answer ({type(e).__name__})",
        ) from None
    with client, client.as_current():
        futures = {
            client.submit(
                make,
                replace(j, code=code_digest()),
                key=f"scantling-report-{name}-{j.digest}",
                pure=True,
                retries=1,
            ): name
            for name, j in todo.items()
        }
        for future in distributed.as_completed(futures):
            name = futures[future]
            if future.status == "finished":
                yield future.result()
            else:
                yield _failed(todo[name], f"{type(future.exception()).__name__} on the cluster")
            future.release()


def _browser() -> str:
    """The browser that prints. Raises DesignError where there is none."""
    if found := chromium():
        return found
    raise DesignError(
        "--pdf",
        allowed="Chromium or Chrome on the path, or CHROMIUM=/path/to/chromium",
        problem="no browser found to print with",
    )


def table(records: Iterable[Record]) -> str:
    """The headline figures of a batch as CSV, one design a line, plain numbers in the units of the
    assessment."""
    text = io.StringIO()
    plan = ("tp", "pp", "vpp", "cp", "dp", "ep", "sharding", "micro_batch", "recompute")
    columns = [
        "name",
        "status",
        "error",
        *HEADLINE,
        *(f"plan.{p}" for p in plan),
    ]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for r in records:
        figures = (*map(r.headline.get, HEADLINE), *map(r.plan.get, plan))
        writer.writerow(
            [
                r.name,
                r.status,
                r.error,
                *figures,
            ]
        )
    return text.getvalue()


def _index(out: Path) -> None:
    records = read_records(out)
    if len(records) > 1:
        write(out / "summary.csv", table(records))
        write(out / "index.html", overview(records))
