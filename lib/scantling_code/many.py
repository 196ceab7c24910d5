"""Thousands of designs as a table: the files of a folder, the rows of a table or a grid of fields,
assessed here or over Dask, one row each with plan, figures, verdict and error.

What is done is kept beside the output as it comes, so that a run that was stopped goes on.
"""

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from json import dumps, loads
from pathlib import Path
from typing import Any

from scantling.api import DesignLike, designed
from scantling.base.cells import spreadsheet_cell
from scantling.base.errors import DesignError, plain
from scantling.base.files import (
    read_bytes,
    read_table_text,
    read_text,
    too_deep,
    utf8,
    write_text,
    write_whole,
)
from scantling.base.json import clean
from scantling.base.records import record
from scantling.catalogue.words import Axis
from scantling.design import file as design_yaml
from scantling.design.design import Design
from scantling.plans.remote import Progress, across
from scantling.plans.space import space_of

from .answers import answered
from .check import designs_under
from .provenance import design_hash, digest, inputs_hash
from .snapshot import KEYS, OF_ENGINE, state

CHUNK = 8  # designs that one task takes
MOST = 100_000  # designs of one table
MAX_TABLE_BYTES = 200_000_000
PARQUET, CSV = ".parquet", ".csv"
FILE = "design"  # column of a table that names a file of its own
PLAN = (
    *(axis.value for axis in Axis),
    "sharding",
    "schedule",
    "micro_batch",
    "grad_accum",
    "recompute",
    "offload",
    "precision",
)
REFUSED = "refused"  # verdict of a row that is no design
FAILED = "failed"  # of one that was not assessed
Row = dict[str, Any]  # column -> value


@record
class Job:
    """One design to assess: its place in the table, what it is called, its data, what was varied,
    the error that it began with, and the hash of the design with the files that it names."""

    number: int
    name: str
    data: Mapping[str, Any]
    folder: str
    varied: Mapping[str, Any]
    error: str = ""
    hash: str = ""

    @property
    def key(self) -> str:
        """Text that is equal for equal designs of a table."""
        data, varied = clean(self.data), clean(self.varied)
        return digest([self.number, self.name, data, varied, self.error, self.hash])


def jobs_of(source: str, base: DesignLike | None, over: Mapping[str, Iterable[Any]]) -> list[Job]:
    """The designs that a folder, a design file or a table names, each under every combination of
    the fields in `over`. Raises DesignError for a source that holds none."""
    path = Path(source)
    if path.suffix in (CSV, PARQUET):
        stated = _of_table(path, base)
    elif not path.is_dir():
        design = Design.read(path)
        stated = iter([_job(utf8(source).decode(), design, {})])
    else:
        stated = _of_files([str(p) for p in designs_under([path])])
    axes = {field: list(values) for field, values in over.items()}
    jobs: list[Job] = []
    for one in stated:
        for at in itertools.product(*axes.values()):
            jobs.append(
                Job(
                    number=len(jobs),
                    name=one.name,
                    data=one.data,
                    folder=one.folder,
                    varied=_as_in_a_file({**one.varied, **dict(zip(axes, at))}),
                    error=one.error,
                    hash=one.hash,
                )
            )
            if len(jobs) > MOST:
                problem = "names too many designs"
                raise DesignError(plain(source, 200), problem=problem, allowed=f"at most {MOST:,}")
    if not jobs:
        raise DesignError(plain(source, 200), problem="holds no design")
    return jobs


def _as_in_a_file(value: Any) -> Any:
    """A value as a design file could have it: what has no such form (a date, bytes) as its text."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return {utf8(str(name)).decode(): _as_in_a_file(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_in_a_file(part) for part in value]
    if isinstance(value, Decimal):
        return float(value)
    if value is None or isinstance(value, (int, float)):
        return value
    return utf8(str(value)).decode()


def _of_files(files: Iterable[str]) -> Iterator[Job]:
    for file in files:
        yield _file_job(file, {})


def _file_job(file: str, varied: Mapping[str, Any]) -> Job:
    """The job of a design file; one that is wrong has its error."""
    name = utf8(file).decode()
    try:
        design = Design.read(file)
    except DesignError as error:
        return Job(number=0, name=name, data={}, folder=".", varied=varied, error=str(error))
    return _job(name, design, varied)


def _job(name: str, design: Design, varied: Mapping[str, Any]) -> Job:
    folder = str(design.folder)
    data, content = design.data(), design_hash(design)
    return Job(number=0, name=name, data=data, folder=folder, varied=varied, hash=content)


def _of_table(path: Path, base: DesignLike | None) -> Iterator[Job]:
    """The jobs of a table: columns are dotted paths of fields, `design` a file of the row's own,
    relative to the table."""
    rows = _read_parquet(path) if path.suffix == PARQUET else _read_csv(path)
    design = None if base is None else designed(base)
    for number, row in enumerate(rows, 1):
        fields = {k: v for k, v in row.items() if k != FILE and v is not None}
        file = row.get(FILE)
        if file:
            yield _file_job(str(path.parent / str(file)), fields)
        elif design is not None:
            yield _job(f"row {number}", design, fields)
        else:
            raise DesignError(
                "--base",
                problem=f"is not given, and row {number} of the table names no design",
                allowed=f"a design file that the rows change, or a column {FILE}",
            )


def _read_csv(path: Path) -> list[Row]:
    text = read_table_text(path, "a table with a column a field", MAX_TABLE_BYTES)
    rows: list[Row] = []
    try:
        head, *lines = csv.reader(io.StringIO(text))
    except ValueError:  # not even a head
        return []
    except csv.Error as error:
        raise DesignError(plain(path, 200), problem=f"is no CSV ({plain(error, 100)})") from None
    _different(path, head)
    for line in filter(None, lines):
        if len(line) > len(head):
            problem = f"row {len(rows) + 1} has more cells than the header"
            raise DesignError(plain(path, 200), problem=problem)
        rows.append(dict(zip(head, map(_cell, line))))
    return rows


def _different(path: Path, head: Sequence[str]) -> None:
    """Raises DesignError for two columns of one name, or one without a name."""
    for name in head:
        if not name.strip() or head.count(name) > 1:
            raise DesignError(
                plain(path, 200),
                problem=f"has a column {plain(name, 100)!r} {head.count(name)} times",
                allowed="columns with a name each, no two alike",
            )


def _cell(text: str) -> Any:
    """A cell as YAML has it, as text where it is no YAML; None where it is blank."""
    if not text.strip():
        return None
    try:
        return design_yaml.load(text)
    except DesignError:
        return text


def _arrow(what: str) -> tuple[Any, Any]:
    """pyarrow, and its part that reads and writes Parquet. Raises DesignError with the line that
    installs it."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise DesignError(
            what,
            problem="needs pyarrow, which is not installed",
            allowed="pip install 'scantling[many]', or a name that ends in .csv",
        ) from None
    return pyarrow, parquet


def _read_parquet(path: Path) -> list[Row]:
    content = read_bytes(path, "a Parquet table", MAX_TABLE_BYTES)
    _, parquet = _arrow(plain(path, 200))
    try:
        table = parquet.read_table(io.BytesIO(content))
    except (OSError, ValueError) as error:
        raise DesignError(
            plain(path, 200), problem=f"is no Parquet table ({plain(error, 100)})"
        ) from None
    _different(path, table.column_names)
    rows: list[Row] = table.to_pylist()
    return rows


def assess_job(job: Job, space: str) -> Row:
    """The row of one design. Whatever goes wrong with it stands in its row."""
    row = _begun(job, REFUSED, job.error)
    if job.error:
        return row
    try:
        design = Design.from_data(job.data, job.folder)
        if job.varied:
            design = design.change(job.varied)
        now = state(answered(design, space=space))
    except DesignError as error:
        return row | {"error": str(error)}
    except Exception as error:  # one design of thousands, whose row says so
        return row | {"verdict": FAILED, "error": f"{type(error).__name__}: {plain(error, 300)}"}
    plan = now.plan or {}
    row |= {"name": now.name, "verdict": now.verdict, "missed": "; ".join(now.missed) or None}
    row |= {f"plan.{x}": plan.get(x, job.varied.get(f"plan.{x}")) for x in PLAN}
    row |= {name: value for name, value in plan.items() if name.startswith(OF_ENGINE)}
    for key in KEYS:
        figure = now.figures.get(key)
        row[key] = None if figure is None else figure.value
        if figure is not None and figure.low is not None:
            row |= {f"{key}.low": figure.low, f"{key}.high": figure.high}
    cleaned: Row = clean(row)
    return cleaned


def _rows(jobs: Sequence[Job], space: str, kit: str) -> list[tuple[str, Row]]:
    """(key, row) of each of some jobs. Raises DesignError where the process has another state of
    the kit than the one that asks, of that hash."""
    if inputs_hash() != kit:
        raise DesignError(
            "--scheduler",
            problem="has workers with another state of the kit",
            allowed="the same release, data files and extensions on every machine",
        )
    return [(job.key, assess_job(job, space)) for job in jobs]


def _begun(job: Job, verdict: str, error: str) -> Row:
    """The columns that every row has, whatever those of a table are called."""
    first: Row = {"number": job.number, "design": job.name}
    return {**first, **job.varied, **first, "verdict": verdict, "error": error or None}


def assess_many(
    source: str,
    *,
    base: DesignLike | None = None,
    over: Mapping[str, Iterable[Any]] | None = None,
    space: str = "default",
    scheduler: Any = None,
    progress: Progress | None = None,
    partial: str | Path | None = None,
) -> list[Row]:
    """A row for each design of a folder, a design file or a table, in order.

    source : a folder of designs, one design, or a table (CSV, Parquet) whose columns are dotted
    paths of fields. base : the design that the rows of a table change. over : {dotted path:
    values}, every combination of each design. space : coarse, default or wide.
    scheduler : address of a Dask scheduler, or a distributed.Client; None works here, one after
    the other; a design that costs its workers their lives is a row that failed, and costs no
    other. progress : function(done, of), may return False to stop: the rows so far are returned.
    partial : file that keeps rows as they come, and from which a run goes on.
    Raises DesignError for a source that holds no design.
    """
    space_of(space)
    jobs = jobs_of(source, base, over or {})
    done = _read_partial(partial, space) if partial else {}
    left = [job for job in jobs if job.key not in done]
    before = len(jobs) - len(left)

    def arrived(rows: list[tuple[str, Row]]) -> None:
        done.update(rows)
        if partial:
            with open(partial, "a", encoding="utf-8") as file:
                for key, row in rows:  # a line of its own, whatever was cut off before
                    line = dumps([key, clean(row)], allow_nan=False, ensure_ascii=False)
                    file.write(f"\n{line}")

    stopped = False

    def moved_on(count: int, _: int) -> Any:
        nonlocal stopped
        stopped = progress is not None and progress(before + count, len(jobs)) is False
        return not stopped

    if partial and not Path(partial).exists():
        write_text(partial, dumps(_stamp(space)))
    kit = inputs_hash()
    tasks = [(left[i : i + CHUNK], space, kit) for i in range(0, len(left), CHUNK)]
    lost: list[tuple[Any, ...]] = []
    across(_rows, tasks, scheduler, moved_on, len(left), CHUNK, arrived, lost.append)
    for job in [job for task in lost for job in task[0]]:
        if stopped:
            break
        dead: list[tuple[Any, ...]] = []  # one after the other: it is the job's own doing
        across(_rows, [([job], space, kit)], scheduler, None, 1, 1, arrived, dead.append)
        if dead:
            done[job.key] = _begun(job, FAILED, "the workers that held it died: memory?")
    return [done[job.key] for job in jobs if job.key in done]


def _stamp(space: str) -> dict[str, str]:
    """What rows that are kept were worked out with."""
    return {"space": space, "inputs": inputs_hash()}


def _read_partial(path: str | Path, space: str) -> dict[str, Row]:
    """The rows that a stopped run kept, where the same program kept them; lines that were cut off
    are left out. Raises DesignError for a file that is something else."""
    if not Path(path).exists():
        return {}
    lines = read_text(path, "rows of a stopped run", MAX_TABLE_BYTES).splitlines()
    rows: dict[str, Row] = {}
    for number, line in enumerate(lines):
        try:
            data = None if too_deep(line) else loads(line)
        except ValueError:
            data = None
        if number == 0 and data != _stamp(space):
            raise DesignError(
                plain(path, 200),
                problem="was kept by another run (space, catalogue or program)",
                allowed="take it away, or name another output",
            )
        if isinstance(data, list) and len(data) == 2 and isinstance(data[1], dict):
            rows[str(data[0])] = data[1]
    return rows


def can_write(path: str) -> None:
    """Raises DesignError, before any work is done, where what writes a table of that ending is not
    installed."""
    if Path(path).suffix == PARQUET:
        _arrow(plain(path, 200))


def write_table(path: str, rows: Sequence[Row]) -> None:
    """Write rows as Parquet or CSV, by the ending of the name; columns in the order in which they
    first appear."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if Path(path).suffix == PARQUET:
        arrow, parquet = _arrow(plain(path, 200))
        data = {name: _column([row.get(name) for row in rows]) for name in columns}
        sink = io.BytesIO()
        parquet.write_table(arrow.table(data), sink)
        write_whole(Path(path), sink.getvalue())
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_text(row.get(name)) for name in columns])
    write_text(path, text.getvalue(), force=True)


def _column(values: list[Any]) -> list[Any]:
    """Values of one kind: numbers with their kind, words as text, the rest as JSON."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and kinds:
        return [None if v is None else float(v) for v in values] if float in kinds else values
    if len(kinds) <= 1 and kinds <= {str, bool}:
        return values
    return [None if v is None else _text(v) for v in values]


def _text(value: Any) -> str:
    """A value as a cell; text that a spreadsheet would take for a formula behind an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, str):
        return spreadsheet_cell(value)
    return str(value) if isinstance(value, (int, float)) else dumps(clean(value))
