"""Figures of the trade, each with unit, kind, source and date: chips, fabrics, nodes, storage,
prices, rates, failures.

The data are the CSV files beside this module; `columns.csv` says for every column what it holds, in
which unit, and in which range a value is plausible. A row without source, date or `verified` does
not load, nor does a column that its record has not. `verified` says how the row was had: text (read
in the source), secondary (read in a text that quotes it), memory (from recall), derived (computed
or assumed); `verified_except` lists the columns where it differs.
"""

from functools import cache
from typing import Any

from ..base.errors import DesignError
from ..base.files import csv_rows
from ..base.records import Rows
from ..base.units import GB
from .families import families, family
from .hardware import Accelerator, Fabric, Node
from .load import HERE as HERE, by_id, filled, find, indexed, of_rows, read as read, rows
from .pricing import newest
from .rows import CollectiveSeries, Fact, FailurePreset, GemmPoint, Optimizer, Price, Storage
from .words import Precision

# columns that are for readers and tests
_OF_ACCELERATORS = ("verified_except", "hbm_usable_basis")
_OF_FABRICS = (
    "verified_except",
    "latency_basis",
    "efficiency_basis",
    "allgather_efficiency",
    "alltoall_efficiency",
    "p2p_efficiency",
    "allreduce_busbw_max_gbytes_per_s",
    "allreduce_half_size_bytes",
    "switch_latency_us",
)


@cache
def _accelerators() -> dict[str, Accelerator]:
    """By id and by alias, as those below. Raises DesignError for a chip whose family has no row:
    the constants of another family would stand in for it unseen."""
    chips = filled(Accelerator, rows("accelerators"), _OF_ACCELERATORS)
    for chip in chips:
        if chip.family not in families():
            raise DesignError(f"accelerators.csv: {chip.id}.family", chip.family, list(families()))
    return indexed(chips)


@cache
def _fabrics() -> dict[str, Fabric]:
    return indexed(filled(Fabric, rows("fabrics"), _OF_FABRICS))


@cache
def _nodes() -> dict[str, Node]:
    besides = ("verified_except", "frontend_gbits_per_s")
    return indexed(filled(Node, rows("nodes"), besides))


@cache
def _storages() -> dict[str, Storage]:
    return indexed(filled(Storage, rows("storage"), ("verified_except", "unit_rate")))


@cache
def _optimizers() -> dict[str, Optimizer]:
    return indexed(filled(Optimizer, rows("optimizers"), ("date", "verified")))


def accelerator(id: str, field: str = "cluster.accelerator") -> Accelerator:
    """The accelerator of this id or alias; DesignError (with the nearest id) where there is
    none."""
    return find(_accelerators(), id, field, "an accelerator")


def accelerators() -> dict[str, Accelerator]:
    """All accelerators by id, in the order of the file."""
    return by_id(_accelerators())


def fabric(id: str, field: str = "cluster.scale_out") -> Fabric:
    """The fabric of this id or alias."""
    return find(_fabrics(), id, field, "a fabric")


def fabrics(kind: str | None = None) -> dict[str, Fabric]:
    """All fabrics by id, or those of one kind: scale-up, scale-out, host, wan."""
    return {id: f for id, f in by_id(_fabrics()).items() if kind in (None, f.kind)}


def node(id: str, field: str = "cluster.node") -> Node:
    """The node product of this id."""
    return find(_nodes(), id, field, "a node")


def eight_bit(chip: Accelerator) -> tuple[Precision, ...]:
    """Precisions of 8 bit in which a chip multiplies: with one scale for a tensor, and with one for
    each block of 32 values where its matrix units take block scales (OCP MX)."""
    if not chip.fp8_flops > 0:
        return ()
    scaled = family(chip.family).block_scales
    return (Precision.FP8, Precision.MXFP8) if scaled else (Precision.FP8,)


def fabrics_sold_with(chip: Accelerator, now: str) -> list[Fabric]:
    """Fabrics that may join nodes of this chip in the place of the fabric `now`: of the
    technologies that its family is sold with. A cloud's own network comes with its nodes: it is
    among them where `now` is one of that cloud, and then nothing else is."""
    networks, provider = family(chip.family).networks, fabric(now).provider
    held = {node.scale_out for node in nodes().values() if node.accelerator == chip.id}
    return [
        row
        for row in fabrics("scale-out").values()
        if row.provider == provider
        and (not networks or row.technology in networks)
        and (not provider or row.id in held)
    ]


def nodes() -> dict[str, Node]:
    """All node products by id."""
    return by_id(_nodes())


def node_for(accelerator_id: str, scale_out: str | None = None) -> Node | None:
    """The node that usually holds this accelerator; with `scale_out`, one that has this fabric if
    there is any."""
    chip = accelerator(accelerator_id)
    usual = [_nodes()[chip.node]] if chip.node else []
    holding = usual + [n for n in nodes().values() if n.accelerator == chip.id]
    asked = [n for n in holding if scale_out in (None, n.scale_out)]
    return next(iter(asked + holding), None)


def devices_per_node(accelerator_id: str) -> int:
    """Devices that the usual node of this accelerator holds; 8 where the catalogue has no such
    node."""
    usual = node_for(accelerator_id)
    return usual.devices if usual else 8


def default_scale_out_bytes_per_s(accelerator_id: str) -> float:
    """Scale-out bytes/s per device, one direction, of the accelerator's usual node; 400 Gb/s where
    the catalogue has no such node."""
    usual = node_for(accelerator_id)
    return usual.nics * usual.nic_bytes_per_s / usual.devices if usual else 50 * GB


def storage(id: str, field: str = "cluster.storage") -> Storage:
    """The storage system of this id or alias."""
    return find(_storages(), id, field, "a storage system")


def storages() -> dict[str, Storage]:
    """All storage systems, services and guidance tiers by id."""
    return by_id(_storages())


@cache
def prices(category: str | None = None) -> tuple[Price, ...]:
    """Dated price observations; those of one category (rent, capex, power, factor)."""
    observed = filled(Price, rows("prices", None))
    return tuple(p for p in observed if category in (None, p.category))


instead_of_prices: dict[tuple[str, str], Price] = {}  # by chip and kind, while replaced


@of_rows
@cache
def price(accelerator_id: str, kind: str = "on-demand") -> Price | None:
    """The newest dated rental price of this accelerator in one kind of rent (on-demand, reserved,
    spot) [USD per device-hour], None where the catalogue has none; see `pricing.newest`."""
    id = accelerator(accelerator_id).id
    if (id, kind) in instead_of_prices:
        return instead_of_prices[id, kind]
    return newest(id, prices(category="rent"), kind)


@cache
def failure_presets() -> dict[str, FailurePreset]:
    """Failure rates of published fleets, by the name that a design gives as
    `reliability.preset`."""
    return indexed(filled(FailurePreset, rows("failure_presets"), ("worked_out",)))


def failure_preset(name: str, field: str = "reliability.preset") -> FailurePreset:
    """The published fleet of that name. Raises DesignError naming the known ones."""
    return find(failure_presets(), name, field, "a failure preset")


def optimizers() -> dict[str, Optimizer]:
    """All optimizers by id."""
    return by_id(_optimizers())


def optimizer(id: str) -> Optimizer:
    """What the optimizer of this id or alias keeps for each parameter."""
    return find(_optimizers(), id, "job.optimizer", "an optimizer")


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
    points: dict[str, list[dict[str, Any]]] = {}
    for point in rows("collective_bench", None):
        points.setdefault(point["series"], []).append(point)
    curves = [_curve(id, measured) for id, measured in points.items()]
    return indexed(filled(CollectiveSeries, curves, ("series", "algorithm", "software")))


def _curve(id: str, points: list[dict[str, Any]]) -> dict[str, str]:
    """The rows of one series as one, its sizes and rates side by side."""
    return points[0] | {
        "id": id,
        "message_bytes": " ".join(p["message_bytes"] or "nan" for p in points),
        "busbw_gbytes_per_s": " ".join(p["busbw_gbytes_per_s"] or "nan" for p in points),
    }


def columns(file: str | None = None) -> Rows:
    """The data dictionary: file, column, unit, kind, low, high, description; of all files or of
    one."""
    return tuple(r for r in csv_rows(HERE / "columns.csv") if file in (None, r["file"]))
