"""Figures of the trade, each with unit, kind, source and date: chips, fabrics, nodes, storage,
prices, rates, failures.

The data are the CSV files beside this module; `columns.csv` says for every column what it holds, in
which unit, and in which
range a value is plausible. A row without source, date or `verified` does not load. `verified` says
how the row was had: text
(read in the source), secondary (read in a text that quotes it), memory (from recall), derived
(computed or assumed);
`verified_except` lists the columns where it differs.
"""

from functools import cache

from ..base.files import csv_rows
from ..base.records import Rows
from ..base.units import GB
from .hardware import Accelerator, Fabric, Node
from .load import HERE as HERE, by_id, filled, find, indexed, read as read, rows
from .pricing import newest
from .records import CollectiveSeries, Fact, FailurePreset, GemmPoint, Optimizer, Price, Storage

# file -> its records, and what one of them is called
_KINDS = {
    "accelerators": (Accelerator, "an accelerator"),
    "fabrics": (Fabric, "a fabric"),
    "nodes": (Node, "a node"),
    "storage": (Storage, "a storage system"),
    "failure_presets": (FailurePreset, "a failure preset"),
    "optimizers": (Optimizer, "an optimizer"),
}


@cache
def _table(file: str) -> dict:
    """Records of a file by id and by alias."""
    return indexed(filled(_KINDS[file][0], rows(file)))


def _find(file: str, word, field: str):
    return find(_table(file), word, field, _KINDS[file][1])


def accelerator(id: str, field: str = "cluster.accelerator") -> Accelerator:
    """The accelerator of this id or alias; DesignError (with the nearest id) where there is
    none."""
    return _find("accelerators", id, field)


def accelerators() -> dict[str, Accelerator]:
    """All accelerators by id, in the order of the file."""
    return by_id(_table("accelerators"))


def fabric(id: str, field: str = "cluster.scale_out") -> Fabric:
    """The fabric of this id or alias."""
    return _find("fabrics", id, field)


def fabrics(kind: str | None = None) -> dict[str, Fabric]:
    """All fabrics by id, or those of one kind: scale-up, scale-out, host, wan."""
    return {id: f for id, f in by_id(_table("fabrics")).items() if kind in (None, f.kind)}


def node(id: str, field: str = "cluster.node") -> Node:
    """The node product of this id."""
    return _find("nodes", id, field)


def nodes() -> dict[str, Node]:
    """All node products by id."""
    return by_id(_table("nodes"))


def node_for(accelerator_id: str, scale_out: str | None = None) -> Node | None:
    """The node that usually holds this accelerator; with `scale_out`, one that has this fabric if
    there is any."""
    chip = accelerator(accelerator_id)
    usual = [_table("nodes")[chip.node]] if chip.node else []
    holding = usual + [n for n in nodes().values() if n.accelerator == chip.id]
    return next(iter([n for n in holding if scale_out in (None, n.scale_out)] + holding), None)


def devices_per_node(accelerator_id: str) -> int:
    """Devices that the usual node of this accelerator holds; 8 where the catalogue has no such
    node."""
    found = node_for(accelerator_id)
    return found.devices if found else 8


def default_scale_out_bytes_per_s(accelerator_id: str) -> float:
    """Scale-out bytes/s per device, one direction, of the accelerator's usual node; 400 Gb/s where
    the catalogue has no such node."""
    found = node_for(accelerator_id)
    return found.nics * found.nic_bytes_per_s / found.devices if found else 50 * GB


def storage(id: str, field: str = "cluster.storage") -> Storage:
    """The storage system of this id or alias."""
    return _find("storage", id, field)


def storages() -> dict[str, Storage]:
    """All storage systems, services and guidance tiers by id."""
    return by_id(_table("storage"))


@cache
def prices(category: str | None = None) -> tuple[Price, ...]:
    """Dated price observations; those of one category (rent, capex, power, factor)."""
    found = filled(Price, rows("prices", None))
    return tuple(p for p in found if category in (None, p.category))


@cache
def price(accelerator_id: str, kind: str = "on-demand") -> Price | None:
    """The newest dated rental price of this accelerator in one kind of rent (on-demand, reserved,
    spot) [USD per device-hour], None where the catalogue has none; see `pricing.newest`."""
    return newest(accelerator(accelerator_id).id, prices(category="rent"), kind)


def failure_presets() -> dict[str, FailurePreset]:
    """Failure rates of published fleets, by the name that a design gives as
    `reliability.preset`."""
    return _table("failure_presets")


def failure_preset(name: str) -> FailurePreset:
    """The published fleet of that name. Raises DesignError naming the known ones."""
    return _find("failure_presets", name, "reliability.preset")


def optimizers() -> dict[str, Optimizer]:
    """All optimizers by id."""
    return by_id(_table("optimizers"))


def optimizer(id: str) -> Optimizer:
    """What the optimizer of this id or alias keeps for each parameter."""
    return _find("optimizers", id, "job.optimizer")


@cache
def reliability_facts() -> tuple[Fact, ...]:
    """Published failure, repair, restart and checkpoint figures, as printed (`value` is text:
    ranges and bounds occur)."""
    return tuple(filled(Fact, rows("reliability")))


@cache
def gemm_points() -> tuple[GemmPoint, ...]:
    """Published matrix-product, attention and memory points, fraction of the dense peak at the
    shape where it is given."""
    return tuple(filled(GemmPoint, rows("gemm_points", None)))


@cache
def collective_series() -> dict[str, CollectiveSeries]:
    """Published message size to bus bandwidth curves (nccl-tests convention), by series id."""
    points = {}
    for point in rows("collective_bench", None):
        points.setdefault(point["series"], []).append(point)
    measured = ("message_bytes", "busbw_gbytes_per_s")
    curves = (
        of[0] | {"id": id} | {k: " ".join(p[k] or "nan" for p in of) for k in measured}
        for id, of in points.items()
    )
    return indexed(filled(CollectiveSeries, curves))


def columns(file: str | None = None) -> Rows:
    """The data dictionary: file, column, unit, kind, low, high, description; of all files or of
    one."""
    return tuple(r for r in csv_rows(HERE / "columns.csv") if file in (None, r["file"]))
