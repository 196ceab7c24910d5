"""What was measured, for comparisons at the end of a piece of work: published runs with their
predictions, and published totals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scantling import catalogue
from scantling.base.words import table_rows
from scantling.evidence.predict import predict_frame
from scantling.evidence.runs import read_runs

from .comparison_table import Row


@dataclass(frozen=True)
class Total:
    """One published figure: what, value, the manner in which it is shown, source with its place in
    it."""

    what: str
    value: float
    kind: str
    source: str

    def against(
        self,
        ours: float,
        what: str = "",
    ) -> Row:
        """Our value beside it, for a table; `what` in other words than the catalogue's."""
        return Row(
            what or self.what,
            ours,
            self.value,
            self.kind,
            self.source,
        )


@dataclass(frozen=True)
class Run:
    """A published run of the catalogue beside its prediction by the kit: MFU (PaLM count), step
    [s], memory [bytes]; source with its place in it."""

    id: str
    model: str
    devices: int
    mfu: float
    mfu_measured: float
    tokens_per_s: float
    tokens_per_s_measured: float
    memory_bytes: float
    source: str


@cache
def _totals() -> dict[str, dict]:
    return {row["id"]: row for row in table_rows(__file__, "published")}


def published(ident: str) -> Total:
    """A published total by id. Raises KeyError naming what there is."""
    row = _totals().get(ident)
    if row is None:
        raise KeyError(f"no published total {ident!r}; there are: {', '.join(_totals())}")
    return Total(
        row["what"],
        float(row["value"]),
        row["kind"],
        f"{row['source']}, {row['locator']}",
    )


def value(ident: str) -> float:
    """The figure alone of a published total."""
    return published(ident).value


@cache
def published_runs(name: str = "published_runs"):
    """A table of published runs of the catalogue, a row a run."""
    return read_runs(Path(catalogue.__file__).with_name(f"{name}.csv"))


def rate(ident: str) -> float:
    """Measured tokens/s per device of a published run. Raises KeyError for an id that is not in the
    catalogue."""
    return float(published_runs().set_index("id").measured_tokens_per_s_per_device[ident])


def _table(name: str, idents):
    """(rows of a run table by id, their predictions), in the order of the ids."""
    table = published_runs(name)
    ids = [i.lower() for i in idents]
    missing = set(ids) - set(table.id.str.lower())
    if missing:
        raise KeyError(f"no published run {', '.join(sorted(missing))}")
    found = table[table.id.str.lower().isin(ids)].reset_index(drop=True)
    pairs = {
        row.id.lower(): (row, said)
        for row, said in zip(found.itertuples(), predict_frame(found).itertuples())
    }
    return [pairs[i] for i in ids]


@dataclass(frozen=True)
class Peak:
    """A measured memory peak of a published run beside the kit's prediction [bytes]."""

    id: str
    model: str
    devices: int
    memory_bytes: float
    memory_bytes_measured: float
    source: str


@cache
def peaks(*idents: str) -> tuple[Peak, ...]:
    """Measured memory peaks by id. Raises KeyError for an id that is not in the catalogue."""
    return tuple(
        Peak(
            row.id,
            row.model,
            int(row.n_devices),
            float(said.memory_bytes),
            float(row.measured_peak_memory_gb) * 1e9,
            row.source,
        )
        for row, said in _table("published_memory", idents)
    )


@cache
def runs(*idents: str) -> tuple[Run, ...]:
    """Published runs by id, in that order, each predicted with its printed plan. Raises KeyError
    for an id that is not in the catalogue."""
    out = []
    for row, said in _table("published_runs", idents):
        measured, ours = (
            float(row.measured_tokens_per_s_per_device),
            float(said.tokens_per_s_per_device),
        )
        out.append(
            Run(
                row.id,
                row.model,
                int(row.n_devices),
                float(said.mfu),
                float(said.mfu) * measured / ours,
                ours,
                measured,
                float(said.memory_bytes),
                f"{row.source}, {row.locator}",
            )
        )
    return tuple(out)
