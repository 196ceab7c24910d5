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

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from ..base.errors import DesignError, closest
from ..base.units import GB
from .hardware import NAN, Accelerator, Fabric, Node
from .pricing import newest
from .records import (
    CollectiveFit,
    CollectiveSeries,
    Curve,
    Fact,
    FailurePreset,
    GemmPoint,
    Price,
    Storage,
)

HERE = Path(__file__).parent
VERIFIED = ("text", "secondary", "memory", "derived")
_TERA = 1e12


class CatalogueError(ValueError):
    """A data file that breaks the rules of the catalogue."""


def read(path, key: str | None = "id") -> list[dict[str, str]]:
    """Rows of one data file, checked: source, date and a known `verified` in each, `key` unique."""
    path = Path(path)
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    seen = set()
    for line, row in enumerate(rows, 2):
        where = f"{path.name} line {line}" + (f" ({row[key]})" if key and row.get(key) else "")
        if None in row or None in row.values():
            raise CatalogueError(f"{where}: not as many cells as the header has")
        for column in ("source", "date", "verified"):
            if not row.get(column, "").strip():
                raise CatalogueError(f"{where}: no {column}")
        if row["verified"] not in VERIFIED:
            raise CatalogueError(
                f"{where}: verified is {row['verified']!r}, not one of {', '.join(VERIFIED)}"
            )
        if key:
            if not row.get(key) or row[key] in seen:
                raise CatalogueError(f"{where}: {key} is empty or not unique")
            seen.add(row[key])
    return rows


@cache
def _rows(name: str, key: str | None = "id") -> tuple[dict[str, str], ...]:
    return tuple(read(HERE / f"{name}.csv", key))


def _n(row, column, factor=1.0) -> float:
    text = row[column]
    return float(text) * factor if text else NAN


def _i(row, column, default=0) -> int:
    return int(float(row[column])) if row[column] else default


def _find(table: dict, word, field: str, kind: str):
    if isinstance(word, str):
        found = table.get(word) or table.get(word.strip().lower())
        if found is not None:
            return found
        raise DesignError(
            field,
            word,
            list(_by_id(table)),
            problem=f"is not {kind} of the catalogue",
            nearest=_nearest(word, table),
        )
    raise DesignError(field, word, f"the id of {kind}")


def _by_id(table: dict) -> dict:
    return {word: r for word, r in table.items() if word == r.id}


def _nearest(word: str, table) -> str | None:
    """The id whose own name or alias is spelt most like the word."""
    near = closest(word, table)
    return table[near].id if near else None


def _indexed(records) -> dict:
    table = {r.id: r for r in records}
    for r in records:
        for alias in getattr(r, "aliases", ()):
            if alias in table:
                raise CatalogueError(f"alias {alias} of {r.id} is taken by {table[alias].id}")
            table[alias] = r
    return table


@cache
def _accelerators() -> dict[str, Accelerator]:
    return _indexed(
        [
            Accelerator(
                id=r["id"],
                name=r["name"],
                vendor=r["vendor"],
                year=_i(r, "year"),
                family=r["family"],
                status=r["status"],
                hbm_bytes=_n(r, "hbm_gb", GB),
                hbm_usable_bytes=_n(r, "hbm_usable_bytes"),
                hbm_bytes_per_s=_n(r, "hbm_gbytes_per_s", GB),
                bf16_flops=_n(r, "bf16_tflops", _TERA),
                fp16_flops=_n(r, "fp16_tflops", _TERA),
                fp8_flops=_n(r, "fp8_tflops", _TERA),
                fp4_flops=_n(r, "fp4_tflops", _TERA),
                fp32_flops=_n(r, "fp32_tflops", _TERA),
                tf32_flops=_n(r, "tf32_tflops", _TERA),
                tdp_w=_n(r, "tdp_w"),
                link=r["link"],
                link_bytes_per_s=_n(r, "link_gbytes_per_s", GB),
                p2p_bytes_per_s=_n(r, "p2p_gbytes_per_s", GB),
                scale_up=r["scale_up"],
                scale_up_domain=_i(r, "scale_up_domain", 1),
                scale_up_domain_max=_i(r, "scale_up_domain_max", 1),
                host_link_bytes_per_s=_n(r, "host_link_gbytes_per_s", GB),
                l2_bytes=_n(r, "l2_mb", 1e6),
                sms=_n(r, "sms"),
                node=r["node"],
                source=r["source"],
                verified=r["verified"],
                date=r["date"],
                notes=r["notes"],
                aliases=tuple(r["aliases"].split()),
                die=r["die"] or r["id"],
            )
            for r in _rows("accelerators")
        ]
    )


@cache
def _fabrics() -> dict[str, Fabric]:
    return _indexed(
        [
            Fabric(
                id=r["id"],
                name=r["name"],
                kind=r["kind"],
                year=_i(r, "year"),
                port_bytes_per_s=_n(r, "port_gbits_per_s", GB / 8),
                device_bytes_per_s=_n(r, "device_gbytes_per_s", GB),
                p2p_bytes_per_s=_n(r, "p2p_gbytes_per_s", GB),
                node_bytes_per_s=_n(r, "node_gbytes_per_s", GB),
                domain_devices=_i(r, "domain_devices"),
                nics_per_device=_n(r, "nics_per_device"),
                nics_per_node=_n(r, "nics_per_node"),
                latency_s=_n(r, "latency_us", 1e-6),
                efficiency=_n(r, "efficiency"),
                allgather_efficiency=_n(r, "allgather_efficiency"),
                alltoall_efficiency=_n(r, "alltoall_efficiency"),
                p2p_efficiency=_n(r, "p2p_efficiency"),
                allreduce_half_size_bytes=_n(r, "allreduce_half_size_bytes"),
                in_network_reduction=r["in_network_reduction"] != "none",
                in_network_gain=_n(r, "in_network_gain"),
                source=r["source"],
                verified=r["verified"],
                date=r["date"],
                notes=r["notes"],
                aliases=tuple(r["aliases"].split()),
                technology=r["technology"],
                transport=r["transport"],
                provider=r["provider"],
                topology_open=r["topology_open"] != "0",
                judged_on=r["judged_on"],
            )
            for r in _rows("fabrics")
        ]
    )


@cache
def _nodes() -> dict[str, Node]:
    return _indexed(
        [
            Node(
                id=r["id"],
                name=r["name"],
                provider=r["provider"],
                accelerator=r["accelerator"],
                devices=_i(r, "devices"),
                scale_up_domain=_i(r, "scale_up_domain"),
                scale_out=r["scale_out"],
                nics=_i(r, "nics"),
                nic_bytes_per_s=_n(r, "nic_gbits_per_s", GB / 8),
                node_bytes_per_s=_n(r, "node_gbytes_per_s", GB),
                host_memory_bytes=_n(r, "host_memory_gb", GB),
                nvme_bytes=_n(r, "nvme_gb", GB),
                power_w=_n(r, "power_kw", 1e3),
                nodes_per_rack=_n(r, "nodes_per_rack"),
                cpu=r["cpu"],
                source=r["source"],
                verified=r["verified"],
                date=r["date"],
                notes=r["notes"],
            )
            for r in _rows("nodes")
        ]
    )


@cache
def _storages() -> dict[str, Storage]:
    return _indexed(
        [
            Storage(
                id=r["id"],
                name=r["name"],
                kind=r["kind"],
                scope=r["scope"],
                client_read_bytes_per_s=_n(r, "client_read_gbytes_per_s", GB),
                client_write_bytes_per_s=_n(r, "client_write_gbytes_per_s", GB),
                total_read_bytes_per_s=_n(r, "total_read_gbytes_per_s", GB),
                total_write_bytes_per_s=_n(r, "total_write_gbytes_per_s", GB),
                capacity_bytes=_n(r, "capacity_gb", GB),
                latency_s=_n(r, "latency_ms", 1e-3),
                usd_per_gb_month=_n(r, "usd_per_gb_month"),
                source=r["source"],
                verified=r["verified"],
                date=r["date"],
                notes=r["notes"],
                aliases=tuple(r["aliases"].split()),
                sold_by=r["sold_by"],
            )
            for r in _rows("storage")
        ]
    )


def accelerator(id: str, field: str = "cluster.accelerator") -> Accelerator:
    """The accelerator of this id or alias; DesignError (with the nearest id) where there is
    none."""
    return _find(_accelerators(), id, field, "an accelerator")


def accelerators() -> dict[str, Accelerator]:
    """All accelerators by id, in the order of the file."""
    return _by_id(_accelerators())


def fabric(id: str, field: str = "cluster.scale_out") -> Fabric:
    """The fabric of this id or alias."""
    return _find(_fabrics(), id, field, "a fabric")


def fabrics(kind: str | None = None) -> dict[str, Fabric]:
    """All fabrics by id, or those of one kind: scale-up, scale-out, host, wan."""
    return {id: f for id, f in _by_id(_fabrics()).items() if kind in (None, f.kind)}


def node(id: str, field: str = "cluster.node") -> Node:
    """The node product of this id."""
    return _find(_nodes(), id, field, "a node")


def nodes() -> dict[str, Node]:
    """All node products by id."""
    return dict(_nodes())


def node_for(accelerator_id: str, scale_out: str | None = None) -> Node | None:
    """The node that usually holds this accelerator; with `scale_out`, one that has this fabric if
    there is any."""
    chip = accelerator(accelerator_id)
    holding = [n for n in _nodes().values() if n.accelerator == chip.id]
    usual = [_nodes()[chip.node]] if chip.node else []
    for n in usual + holding:
        if scale_out in (None, n.scale_out):
            return n
    return (usual + holding or [None])[0]


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
    return _find(_storages(), id, field, "a storage system")


def storages() -> dict[str, Storage]:
    """All storage systems, services and guidance tiers by id."""
    return _by_id(_storages())


@cache
def prices(item: str | None = None, category: str | None = None) -> tuple[Price, ...]:
    """Dated price observations; of one item (an accelerator id for rents) or category (rent, capex,
    power, factor)."""
    records = (
        Price(
            item=r["item"],
            provider=r["provider"],
            category=r["category"],
            value=_n(r, "value"),
            unit=r["unit"],
            low=_n(r, "low"),
            high=_n(r, "high"),
            date=r["date"],
            term=r["term"],
            kind=r["kind"],
            notes=r["notes"],
            source=r["source"],
            verified=r["verified"],
        )
        for r in _rows("prices", None)
    )
    return tuple(p for p in records if item in (None, p.item) and category in (None, p.category))


@cache
def price(accelerator_id: str) -> Price | None:
    """The newest dated rental price of this accelerator [USD per device-hour], None where the
    catalogue has none.

    `value` is the median of the observations of the newest six months that hold any (a range counts
    by its middle): on-demand,
    index and one-year prices; capacity blocks and list prices where there are none of these; spot
    and serverless last. `low` and
    `high` are the extremes of what was looked at, `date` that of the newest, `source` lists them.
    """
    return newest(accelerator(accelerator_id).id, prices(category="rent"))


@cache
def failure_presets() -> dict[str, FailurePreset]:
    """Failure rates of published fleets, by the name that a design gives as
    `reliability.preset`."""
    return {
        r["id"]: FailurePreset(
            id=r["id"],
            per_1000_node_days=_n(r, "per_1000_node_days"),
            planned_per_day=_n(r, "planned_per_day"),
            source=r["source"],
            note=r["note"],
            verified=r["verified"],
        )
        for r in _rows("failure_presets")
    }


def failure_preset(name: str) -> FailurePreset:
    """The published fleet of that name. Raises DesignError naming the known ones."""
    found = failure_presets().get(str(name))
    if found is None:
        raise DesignError("reliability.preset", name, sorted(failure_presets()))
    return found


@cache
def reliability_facts() -> tuple[Fact, ...]:
    """Published failure, repair, restart and checkpoint figures, as printed (`value` is text:
    ranges and bounds occur)."""
    return tuple(Fact(**{k: r[k] for k in Fact.__dataclass_fields__}) for r in _rows("reliability"))


@cache
def gemm_points() -> tuple[GemmPoint, ...]:
    """Published matrix-product, attention and memory points, fraction of the dense peak at the
    shape where it is given."""
    return tuple(
        GemmPoint(
            accelerator=r["accelerator"],
            op=r["op"],
            dtype=r["dtype"],
            shape_class=r["shape_class"],
            m=_n(r, "m"),
            n=_n(r, "n"),
            k=_n(r, "k"),
            note=r["note"],
            achieved_flops=_n(r, "achieved_tflops", _TERA),
            peak_flops=_n(r, "peak_tflops", _TERA),
            fraction=_n(r, "fraction"),
            source=r["source"],
            date=r["date"],
            verified=r["verified"],
        )
        for r in _rows("gemm_points", None)
    )


@cache
def efficiency_curves() -> tuple[Curve, ...]:
    """The points reduced to a G/(G + h), a s/(s + h) or a constant, per accelerator, kind and
    dtype."""
    return tuple(
        Curve(
            accelerator=r["accelerator"],
            kind=r["kind"],
            dtype=r["dtype"],
            form=r["form"],
            asymptote=_n(r, "asymptote_fraction"),
            half_size=_n(r, "half_size"),
            half_size_unit=r["half_size_unit"],
            low=_n(r, "range_min"),
            high=_n(r, "range_max"),
            basis=r["basis"],
            source=r["source"],
            date=r["date"],
            verified=r["verified"],
        )
        for r in _rows("efficiency_curves", None)
    )


@cache
def collective_series() -> dict[str, CollectiveSeries]:
    """Published message size to bus bandwidth curves (nccl-tests convention), by series id."""
    series: dict[str, list] = {}
    for r in _rows("collective_bench", None):
        series.setdefault(r["series"], []).append(r)
    return {
        name: CollectiveSeries(
            id=name,
            fabric=rows[0]["fabric"],
            accelerator=rows[0]["accelerator"],
            nvlink_domains=_i(rows[0], "nvlink_domains"),
            devices=_i(rows[0], "devices"),
            collective=rows[0]["collective"],
            link_bytes_per_s=_n(rows[0], "link_gbytes_per_s", GB),
            message_bytes=tuple(_n(r, "message_bytes") for r in rows),
            busbw_bytes_per_s=tuple(_n(r, "busbw_gbytes_per_s", GB) for r in rows),
            source=rows[0]["source"],
            date=rows[0]["date"],
            verified=rows[0]["verified"],
        )
        for name, rows in series.items()
    }


@cache
def collective_fits() -> dict[str, CollectiveFit]:
    """Each series as B/(1 + n_half/size), with the wire share under ring and hierarchical
    accounting."""
    return {
        r["series"]: CollectiveFit(
            id=r["series"],
            max_busbw_bytes_per_s=_n(r, "max_busbw_gbytes_per_s", GB),
            fit_bytes_per_s=_n(r, "fit_gbytes_per_s", GB),
            half_size_bytes=_n(r, "fit_half_size_bytes"),
            latency_s=_n(r, "implied_latency_us", 1e-6),
            efficiency_ring=_n(r, "efficiency_ring"),
            efficiency_hierarchical=_n(r, "efficiency_hierarchical"),
            rms_log_error=_n(r, "fit_rms_log_error"),
            source=r["source"],
            date=r["date"],
            verified=r["verified"],
        )
        for r in _rows("collective_fits", "series")
    }


def columns(file: str | None = None) -> tuple[dict[str, str], ...]:
    """The data dictionary: file, column, unit, kind, low, high, description; of all files or of
    one."""
    with open(HERE / "columns.csv", newline="", encoding="utf-8") as handle:
        return tuple(r for r in csv.DictReader(handle) if file in (None, r["file"]))


def provenance(file: str, id: str, column: str) -> dict[str, str]:
    """Where one figure comes from: value, source, date and how it was had (text, secondary, memory,
    derived)."""
    row = next((r for r in _rows(file) if r["id"] == id), None)
    if row is None or column not in row:
        raise DesignError(
            f"catalogue.{file}",
            f"{id}.{column}",
            [r["id"] for r in _rows(file)] if row is None else list(row),
        )
    exceptions = dict(e.split("=") for e in row.get("verified_except", "").split())
    return {
        "value": row[column],
        "source": row["source"],
        "date": row["date"],
        "verified": exceptions.get(column, row["verified"]),
    }


__all__ = [
    "CatalogueError",
    "accelerator",
    "accelerators",
    "collective_fits",
    "collective_series",
    "columns",
    "default_scale_out_bytes_per_s",
    "devices_per_node",
    "efficiency_curves",
    "fabric",
    "failure_preset",
    "failure_presets",
    "fabrics",
    "gemm_points",
    "node",
    "node_for",
    "nodes",
    "price",
    "prices",
    "provenance",
    "read",
    "reliability_facts",
    "storage",
    "storages",
]
