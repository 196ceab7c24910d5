"""Tables that the command line prints: short, in the units of the field, dense peaks and one
direction."""

from math import isfinite
from typing import Any

from ..base.errors import DesignError
from ..base.units import GB, GBIT, TERA
from . import accelerators, fabrics, nodes, price, storages
from .hardware import Accelerator, Fabric, Node
from .models.entries import Entry, entries
from .models.shape import parameters
from .rows import Price, Storage
from .stacks import Stack, stacks

Row = dict[str, Any]  # by column, as JSON has it
KINDS = ("accelerators", "fabrics", "models", "stacks", "nodes", "storage", "prices")


def listing(kind: str) -> list[Row]:
    """Rows of `scantling catalogue KIND` as plain dictionaries; KIND is one of KINDS."""
    blank = "" if kind == "stacks" else None
    return [
        {column: blank if value == "" else _clean(value) for column, value in row.items()}
        for row in _rows(kind)
    ]


def _rows(kind: str) -> list[Row]:
    if kind == "accelerators":
        return [_accelerator(chip) for chip in accelerators().values()]
    if kind == "fabrics":
        return [_fabric(fabric) for fabric in fabrics().values()]
    if kind == "models":
        return [_model(entry) for entry in entries().values()]
    if kind == "stacks":
        return [_stack(stack) for stack in stacks().values()]
    if kind == "nodes":
        return [_node(node) for node in nodes().values()]
    if kind == "storage":
        return [_storage(storage) for storage in storages().values()]
    if kind == "prices":
        prices = {id: price(id) for id in accelerators()}
        return [_price(id, rent) for id, rent in prices.items() if rent]
    raise DesignError("catalogue", kind, KINDS)


def _clean(value: Any) -> Any:
    """What is unknown or without end (nan, inf) becomes None, so that the JSON is valid; whole
    numbers print whole."""
    if isinstance(value, float):
        if not isfinite(value):
            return None
        value = float(f"{value:.6g}")
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    return list(value) if isinstance(value, tuple) else value


def _accelerator(chip: Accelerator) -> Row:
    return {
        "id": chip.id,
        "name": chip.name,
        "vendor": chip.vendor,
        "year": chip.year,
        "status": chip.status,
        "hbm_gb": chip.hbm_bytes / GB,
        "hbm_usable_gb": chip.hbm_usable_bytes / GB,
        "hbm_gbytes_per_s": chip.hbm_bytes_per_s / GB,
        "bf16_tflops_dense": chip.bf16_flops / TERA,
        "fp16_tflops_dense": chip.fp16_flops / TERA,
        "fp8_tflops_dense": chip.fp8_flops / TERA,
        "fp4_tflops_dense": chip.fp4_flops / TERA,
        "tdp_w": chip.tdp_w,
        "scale_up": chip.scale_up,
        "link_gbytes_per_s_one_way": chip.link_bytes_per_s / GB,
        "scale_up_domain": chip.scale_up_domain,
        "node": chip.node,
        "aliases": chip.aliases,
        "notes": chip.notes,
        "source": chip.source,
        "date": chip.date,
        "verified": chip.verified,
    }


def _fabric(fabric: Fabric) -> Row:
    return {
        "id": fabric.id,
        "name": fabric.name,
        "kind": fabric.kind,
        "year": fabric.year,
        "gbytes_per_s_per_device_one_way": fabric.device_bytes_per_s / GB,
        "port_gbits_per_s": fabric.port_bytes_per_s / GBIT,
        "latency_us": fabric.latency_s * 1e6,
        "efficiency": fabric.efficiency,
        "in_network_reduction": fabric.in_network_reduction,
        "aliases": fabric.aliases,
        "source": fabric.source,
        "date": fabric.date,
        "verified": fabric.verified,
    }


def _model(entry: Entry) -> Row:
    model = entry.model
    count = parameters(model)
    return {
        "id": entry.id,
        "name": model.name,
        "publisher": entry.publisher,
        "params": int(count.total),
        "active_params": int(count.active),
        "layers": model.layers,
        "hidden": model.hidden,
        "experts": model.experts,
        "top_k": model.top_k,
        "seq_len": model.seq_len,
        "vocab": model.vocab,
        "mlp": model.mlp,
        "attention": model.attention,
        "aliases": entry.aliases,
        "source": entry.source,
        "date": entry.date,
        "verified": entry.verified,
    }


def _stack(stack: Stack) -> Row:
    return {"id": stack.name} | {name: v for name, v in vars(stack).items() if name != "name"}


def _node(node: Node) -> Row:
    return {
        "id": node.id,
        "provider": node.provider,
        "accelerator": node.accelerator,
        "devices": node.devices,
        "scale_up_domain": node.scale_up_domain,
        "scale_out": node.scale_out,
        "nics": node.nics,
        "nic_gbits_per_s": node.nic_bytes_per_s / GBIT,
        "host_memory_gb": node.host_memory_bytes / GB,
        "nvme_gb": node.nvme_bytes / GB,
        "power_kw": node.power_w / 1e3,
        "source": node.source,
        "date": node.date,
        "verified": node.verified,
    }


def _storage(storage: Storage) -> Row:
    return {
        "id": storage.id,
        "name": storage.name,
        "kind": storage.kind,
        "scope": storage.scope,
        "client_read_gbytes_per_s": storage.client_read_bytes_per_s / GB,
        "client_write_gbytes_per_s": storage.client_write_bytes_per_s / GB,
        "total_read_gbytes_per_s": storage.total_read_bytes_per_s / GB,
        "total_write_gbytes_per_s": storage.total_write_bytes_per_s / GB,
        "usd_per_gb_month": storage.usd_per_gb_month,
        "source": storage.source,
        "date": storage.date,
        "verified": storage.verified,
    }


def _price(id: str, rent: Price) -> Row:
    return {
        "id": id,
        "usd_per_device_hour": rent.value,
        "low": rent.low,
        "high": rent.high,
        "date": rent.date,
        "provider": rent.provider,
        "source": rent.source,
        "verified": rent.verified,
    }
