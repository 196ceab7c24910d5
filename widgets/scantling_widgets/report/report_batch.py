"""A batch of reports: workers, what is finished already, records on disk, the index."""

import logging
import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from json import dumps, loads
from os import W_OK, X_OK, access, cpu_count
from pathlib import Path
from shutil import disk_usage
from time import time
from typing import Any

from scantling.base.cells import spreadsheet_cell
from scantling.base.errors import DesignError, plain
from scantling.base.files import write_whole
from scantling.base.records import record
from scantling.base.show import count, days, seconds, share, size, usd
from scantling.base.workers import crew
from scantling.verdict.result import figure
from scantling.verdict.verdicts import VERDICTS

from ..chromium import chromium
from ..quantity_texts import plan_text
from .jobs import Done, Job, code_digest, job, make, today
from .page import templated
from .paper import print_pdf
from .view import HEADLINE, PLAN_COLUMNS

RESERVED = {"index", "summary", "comparison"}
ATTEMPTS = 3
LONGEST = 250  # characters of a name
ABANDONED_S = 600  # age at which a file that was never renamed belongs to nobody


@record
class Record:
    """One line of the batch, as it is kept beside the report."""

    name: str
    design: str
    digest: str
    status: str  # done, wrong, failed
    exit: int
    error: str
    headline: dict[str, Any]  # figures by name
    plan: dict[str, Any]
    reused: bool = False


def run(
    files: Iterable[str | Path],
    out: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    pdf: bool = False,
    force: bool = False,
    space: str = "default",
    full: bool = False,
    progress: Callable[[Record, int, int], None] | None = None,
) -> list[Record]:
    """Make the report of each design file into the folder `out`; return a record for each, in the
    order given.

    Finished reports whose design, template and code have not changed are kept. `progress(record,
    done, all)` is called after each.
    `workers` local processes (as many as there are cores when left out), or a running Dask cluster
    by the address of its `scheduler`.
    """
    folder = _folder(Path(out))
    paths = [Path(f) for f in files]
    names = _names(paths)
    browser = _browser() if pdf else None
    records: dict[str, Record] = {}

    def settle(record: Record) -> None:
        records[record.name] = record
        if progress:
            progress(record, len(records), len(paths))

    todo: dict[str, Job] = {}
    for path, name in zip(paths, names):
        try:
            todo[name] = job(path, name, space=space, full=full)
        except (DesignError, OSError) as e:
            wrong = Done(name=name, digest="", status="wrong", error=str(e).splitlines()[0])
            settle(_keep(folder, wrong, path))
            continue
        if not force and (record := _finished(folder, todo[name], pdf)):
            del todo[name]
            settle(record)
    sources = dict(zip(names, paths))
    with closing(
        _on_dask(todo, scheduler) if scheduler else _on_processes(todo, workers)
    ) as results:
        for done in results:
            record = _keep(folder, done, sources[done.name])
            if browser and record.status == "done":
                page = folder / f"{record.name}.html"
                try:
                    write(page.with_suffix(".pdf"), print_pdf(browser, page))
                except DesignError as e:
                    record = replace(record, status="failed", exit=1, error=str(e))
            settle(record)
    _index(folder)
    return [records[name] for name in names]


def _folder(out: Path) -> Path:
    """The folder of a batch, made where it is missing, without what a killed batch left half
    written. Raises DesignError where nothing can be written, before a report is made."""
    out.mkdir(parents=True, exist_ok=True)
    if not access(out, W_OK | X_OK):
        raise DesignError(
            "-o", str(out), "a folder that can be written", problem="cannot be written"
        )
    for left in out.glob(".*.part"):
        with suppress(OSError):  # another batch may be writing here
            if time() - left.stat().st_mtime > ABANDONED_S:
                left.unlink()
    return out


def read_records(out: str | Path) -> list[Record]:
    """The records kept in a folder of reports, by name."""
    return [*filter(None, map(_record, sorted(Path(out).glob("*.json"))))]


def _record(path: Path) -> Record | None:
    try:
        return Record(**loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError):
        return None


def _names(files: Iterable[Path]) -> list[str]:
    """A name for each report: the file's own, in letters that can be printed, numbered where two
    files share it."""
    names: list[str] = []
    taken: dict[str, int] = {}  # by name, how often
    for path in files:
        stem = plain(path.stem, LONGEST)
        stem = f"{stem}-design" if stem.lower() in RESERVED else stem
        taken[stem] = taken.get(stem, 0) + 1
        names.append(stem if taken[stem] == 1 else f"{stem}-{taken[stem]}")
    return names


def _finished(out: Path, job: Job, pdf: bool) -> Record | None:
    record = _record(out / f"{job.name}.json")
    ends = (".html", ".ipynb", ".pdf")[: 3 if pdf else 2]
    there = all((out / f"{job.name}{end}").is_file() for end in ends)
    if not there or record is None or record.status != "done" or record.digest != job.digest:
        return None
    return replace(record, reused=True)


def _keep(out: Path, done: Done, source: Path) -> Record:
    """Put the files of a finished job into `out`, each in one step, the record last: what has a
    record is whole. One that finds no room has failed, and the batch goes on."""
    try:
        return _written(out, done, source)
    except DesignError as e:
        fault = replace(done, status="failed", error=str(e), notebook="")
        for end in (".ipynb", ".html", ".json"):
            (out / f"{done.name}{end}").unlink(missing_ok=True)
    try:
        return _written(out, fault, source)
    except DesignError:  # not even the record of it
        return _record_of(fault, source)


def _record_of(done: Done, source: Path) -> Record:
    return Record(
        name=done.name,
        design=plain(source.name, LONGEST),
        digest=done.digest,
        status=done.status,
        exit=done.exit,
        error=done.error,
        headline={key: figure(done.assessment, key) for key in HEADLINE} if done.assessment else {},
        plan={**(done.assessment.get("plan") or {})},
    )


def _written(out: Path, done: Done, source: Path) -> Record:
    record = _record_of(done, source)
    faulty = out / f"{done.name}.error.ipynb"
    if done.status == "done":
        write(out / f"{done.name}.ipynb", done.notebook)
        write(out / f"{done.name}.html", done.html)
        faulty.unlink(missing_ok=True)
    elif done.notebook:
        write(faulty, done.notebook)
    text = dumps(
        {key: value for key, value in vars(record).items() if key != "reused"},
        indent=1,
        ensure_ascii=False,
    )
    write(out / f"{done.name}.json", text + "\n")
    return record


def write(path: Path, content: str | bytes) -> None:
    """Write a file in one step: a reader sees the old one or the new one. Raises DesignError, which
    says how much room it needs, and how much there is."""
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    try:
        write_whole(path, data)
    except OSError as e:
        free = disk_usage(path.parent).free
        raise DesignError(
            plain(path, 200),
            problem=f"cannot be written ({plain(e.strerror or str(e))})",
            allowed=f"room for {size(len(data))}; {size(free)} are free",
        ) from None


def _on_processes(todo: Mapping[str, Job], workers: int | None) -> Generator[Done]:
    workers = min(workers or cpu_count() or 1, len(todo))
    if workers <= 1:
        yield from map(make, todo.values())
        return
    waiting = deque(todo)
    deaths = Counter[str]()
    held: dict[Future[Done], tuple[str, ProcessPoolExecutor]] = {}  # one job a worker
    with crew(read_no_iris) as start:
        # of one process each: a death costs the report that it held
        idle = [start(1) for _ in range(workers)]
        while waiting or held:
            while waiting and idle:
                name, worker = waiting.popleft(), idle.pop()
                held[worker.submit(make, todo[name])] = (name, worker)
            for future in wait_for(held, return_when=FIRST_COMPLETED).done:
                name, worker = held.pop(future)
                try:
                    done = future.result()
                except BrokenProcessPool:
                    worker.shutdown(wait=False)
                    worker = start(1)
                    deaths[name] += 1
                    done = _failed(todo[name], "the worker process died")
                idle.append(worker)
                if 0 < deaths[name] < ATTEMPTS and done.status == "failed":
                    waiting.append(name)
                else:
                    yield done


def read_no_iris() -> None:
    """In a process of the command's own: let jsonschema, which checks notebooks, do without IRIs,
    whose grammar takes it a second to compile; no notebook has one."""
    modules: dict[str, Any] = sys.modules
    modules.setdefault("rfc3987_syntax", None)


def _failed(job: Job, why: str) -> Done:
    return Done(name=job.name, digest=job.digest, status="failed", error=why)


def _on_dask(todo: Mapping[str, Job], address: str) -> Generator[Done]:
    wrong = partial(DesignError, "--scheduler", address)
    try:
        import distributed
    except ImportError:
        raise wrong("pip install 'scantling[dask]'", problem="needs dask.distributed") from None
    try:
        client = distributed.Client(address, timeout="15s", set_as_default=False)
    except (OSError, ValueError) as e:
        raise wrong(
            "the address of a running Dask scheduler, such as tcp://host:8786",
            problem=f"does not answer ({type(e).__name__})",
        ) from None
    with _quiet(), client, client.as_current():
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
            try:
                if future.status == "error":
                    why = f"{type(future.exception()).__name__} on the cluster"
                    done = _failed(todo[name], why)
                else:
                    done = future.result()
            except (OSError, distributed.CancelledError):  # the scheduler went away, or let it go
                raise wrong(
                    "the same command goes on where it was",
                    problem="stopped answering; what was finished is kept",
                ) from None
            yield done
            future.release()


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside, what libraries log about a connection that is gone is not shown: it is said once."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _browser() -> str:
    """The browser that prints. Raises DesignError where there is none."""
    if browser := chromium():
        return browser
    raise DesignError(
        "--pdf",
        allowed="Chromium or Chrome on the path, or CHROMIUM=/path/to/chromium",
        problem="no browser found to print with",
    )


def table(records: Iterable[Record]) -> str:
    """The headline figures of a batch as CSV, one design a line, plain numbers in the units of the
    assessment."""
    return as_csv(
        {
            "name": record.name,
            "status": record.status,
            "error": record.error,
            **{key: record.headline.get(key) for key in HEADLINE},
            **{f"plan.{key}": record.plan.get(key) for key in PLAN_COLUMNS},
        }
        for record in records
    )


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows of the same columns as CSV, their heads on top; seven digits, so that a last bit that
    differs between machines does not show."""
    import pandas as pd

    cells = [
        {key: spreadsheet_cell(v) if isinstance(v, str) else v for key, v in row.items()}
        for row in rows
    ]
    table = pd.DataFrame(cells).convert_dtypes()
    return str(table.to_csv(index=False, lineterminator="\n", float_format="%.7g"))


@record
class IndexRow:
    """A report in the index: its figures, or the fault where it could not be made."""

    name: str
    status: str
    fault: str = ""
    plan: str = ""
    figures: tuple[str, ...] = ()  # devices, MFU, step, days, cost, memory, goodput


def _index_row(record: Record) -> IndexRow:
    h = record.headline
    if record.status != "done":
        return IndexRow(name=record.name, status=record.status, fault=record.error)
    verdict = VERDICTS[h["verdict"]].name
    if h["step_s"] is None:
        return IndexRow(name=record.name, status=verdict)
    return IndexRow(
        name=record.name,
        status=verdict,
        plan=plan_text(record.plan),
        figures=(
            count(h["devices_used"], ""),
            "" if h["mfu"] is None else share(h["mfu"]),
            seconds(h["step_s"]),
            "" if h.get("likely.days") is None else days(h["likely.days"]),
            "" if h.get("likely.cost_usd") is None else usd(h["likely.cost_usd"]),
            size(h["memory_bytes.total"]),
            share(h["goodput"]),
        ),
    )


def _index(out: Path) -> None:
    """The figures of all reports of a folder as a table and as a page: every design with its
    headline figures, what failed and why, with links to the reports beside it."""
    records = read_records(out)
    if len(records) > 1:
        write(out / "summary.csv", table(records))
        rows = [_index_row(record) for record in records]
        page = templated("overview", title="Design reports", date=today(), rows=rows)
        write(out / "index.html", page)
