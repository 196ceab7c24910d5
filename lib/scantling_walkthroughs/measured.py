"""What was measured, for comparisons at the end of a piece of work: published runs with their
predictions, and published totals."""

from functools import cache
from math import nan
from pathlib import Path
from typing import Any

from scantling import catalogue
from scantling.base.files import table_rows
from scantling.base.records import record
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs

from .comparison_table import Row
from .published_figures.recreate import recreate


@record
class Total:
    """One published figure: what, value, the manner in which it is shown, source with its place in
    it."""

    what: str
    value: float
    kind: str
    source: str

    def against(self, ours: float, what: str = "") -> Row:
        """Our value beside it, for a table; `what` in other words than the catalogue's."""
        return Row(what or self.what, ours, self.value, self.kind, self.source)


@record
class Run:
    """A published run of the catalogue beside its prediction by the kit: tokens/s per device, peak
    memory [bytes] (nan where none was measured), MFU (PaLM count); source with its place in it."""

    id: str
    model: str
    devices: int
    mfu: float
    tokens_per_s: float
    tokens_per_s_measured: float
    memory_bytes: float
    memory_bytes_measured: float
    source: str

    @property
    def mfu_measured(self) -> float:
        return self.mfu * self.tokens_per_s_measured / self.tokens_per_s


def published(ident: str) -> Total:
    """A published total by id. Raises KeyError naming what there is."""
    totals = {row["id"]: row for row in table_rows(__file__, "published")}
    if ident not in totals:
        raise KeyError(f"no published total {ident!r}; there are: {', '.join(totals)}")
    row = totals[ident]
    return Total(
        what=row["what"],
        value=float(row["value"]),
        kind=row["kind"],
        source=f"{row['source']}, {row['locator']}",
    )


def value(ident: str) -> float:
    """The figure alone of a published total."""
    return published(ident).value


@cache
def published_runs(name: str = "published_runs") -> Any:
    """A table of published runs of the catalogue, a row a run."""
    return read_runs(Path(catalogue.__file__).with_name(f"{name}.csv"))


def recreation_of(figure: str, column: str, row: str) -> tuple[Any, Any]:
    """(ours, printed) where a column of a published figure that the kit recreates says `row`."""
    match = recreate(figure).table().set_index(column).loc[row]
    return match.ours, match.published


def rate(ident: str) -> float:
    """Measured tokens/s per device of a published run. Raises KeyError for an id that is not in the
    catalogue."""
    return float(published_runs().set_index("id").measured_tokens_per_s_per_device[ident])


@cache
def runs(*idents: str, table: str = "published_runs") -> tuple[Run, ...]:
    """Rows of a table of published runs by id, in that order, each predicted with its printed plan.
    Raises KeyError for an id that is not in the catalogue."""
    every = published_runs(table)
    known = every.set_index(every.id.str.lower())
    ids = [ident.lower() for ident in idents]
    if missing := set(ids) - set(known.index):
        raise KeyError(f"no published run {', '.join(sorted(missing))}")
    rows = known.loc[ids].reset_index(drop=True)
    return tuple(
        Run(
            id=row.id,
            model=row.model,
            devices=int(row.n_devices),
            mfu=float(prediction.mfu),
            tokens_per_s=float(prediction.tokens_per_s_per_device),
            tokens_per_s_measured=float(row.get("measured_tokens_per_s_per_device", nan)),
            memory_bytes=float(prediction.memory_bytes),
            memory_bytes_measured=float(row.measured_peak_memory_gb) * 1e9,
            source=f"{row.source}, {row.locator}",
        )
        for (_, row), (_, prediction) in zip(rows.iterrows(), predict_frame(rows).iterrows())
    )


def peaks(*idents: str) -> tuple[Run, ...]:
    """Runs by id whose peak memory was published. Raises KeyError as `runs`."""
    return runs(*idents, table="published_memory")
