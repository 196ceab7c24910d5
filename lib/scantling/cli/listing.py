"""Tables that the command line prints: short, in the units of the field, dense peaks and one
direction."""

from __future__ import annotations

import math

from ..base.errors import DesignError
from ..catalogue import accelerators, fabrics, nodes, price, storages
from ..catalogue.models.entries import entries
from ..catalogue.models.shape import parameters
from ..catalogue.stacks import stacks

KINDS = ("accelerators", "fabrics", "models", "stacks", "nodes", "storage", "prices")


def _clean(row: dict) -> dict:
    """nan becomes None, so that the JSON is valid; whole numbers print whole."""
    out = {}
    for key, value in row.items():
        if isinstance(value, float):
            value = None if math.isnan(value) else float(f"{value:.6g}")
            if value is not None and value == int(value) and abs(value) < 1e15:
                value = int(value)
        out[key] = value
    return out


def listing(kind: str) -> list[dict]:
    """Rows of `scantling catalogue KIND` as plain dictionaries; KIND is one of KINDS."""
    if kind not in KINDS:
        raise DesignError("catalogue", kind, KINDS)
    return [_clean(r) for r in globals()[f"_{kind}"]()]


def _accelerators():

    for a in accelerators().values():
        yield {
            "id": a.id,
            "name": a.name,
            "vendor": a.vendor,
            "year": a.year,
            "status": a.status,
            "hbm_gb": a.hbm_bytes / 1e9,
            "hbm_usable_gb": a.hbm_usable_bytes / 1e9,
            "hbm_gbytes_per_s": a.hbm_bytes_per_s / 1e9,
            "bf16_tflops_dense": a.bf16_flops / 1e12,
            "fp16_tflops_dense": a.fp16_flops / 1e12,
            "fp8_tflops_dense": a.fp8_flops / 1e12,
            "fp4_tflops_dense": a.fp4_flops / 1e12,
            "tdp_w": a.tdp_w,
            "scale_up": a.scale_up,
            "link_gbytes_per_s_one_way": a.link_bytes_per_s / 1e9,
            "scale_up_domain": a.scale_up_domain,
            "node": a.node or None,
            "aliases": list(a.aliases),
            "source": a.source,
            "date": a.date,
            "verified": a.verified,
        }


def _fabrics():

    for f in fabrics().values():
        yield {
            "id": f.id,
            "name": f.name,
            "kind": f.kind,
            "year": f.year,
            "gbytes_per_s_per_device_one_way": f.device_bytes_per_s / 1e9,
            "port_gbits_per_s": f.port_bytes_per_s * 8 / 1e9,
            "latency_us": f.latency_s * 1e6,
            "efficiency": f.efficiency,
            "in_network_reduction": f.in_network_reduction,
            "aliases": list(f.aliases),
            "source": f.source,
            "date": f.date,
            "verified": f.verified,
        }


def _nodes():

    for n in nodes().values():
        yield {
            "id": n.id,
            "provider": n.provider,
            "accelerator": n.accelerator,
            "devices": n.devices,
            "scale_up_domain": n.scale_up_domain,
            "scale_out": n.scale_out,
            "nics": n.nics,
            "nic_gbits_per_s": n.nic_bytes_per_s * 8 / 1e9,
            "host_memory_gb": n.host_memory_bytes / 1e9,
            "nvme_gb": n.nvme_bytes / 1e9,
            "power_kw": n.power_w / 1e3,
            "source": n.source,
            "date": n.date,
            "verified": n.verified,
        }


def _storage():

    for s in storages().values():
        yield {
            "id": s.id,
            "name": s.name,
            "kind": s.kind,
            "scope": s.scope,
            "client_read_gbytes_per_s": s.client_read_bytes_per_s / 1e9,
            "client_write_gbytes_per_s": s.client_write_bytes_per_s / 1e9,
            "total_read_gbytes_per_s": s.total_read_bytes_per_s / 1e9,
            "total_write_gbytes_per_s": s.total_write_bytes_per_s / 1e9,
            "usd_per_gb_month": s.usd_per_gb_month,
            "source": s.source,
            "date": s.date,
            "verified": s.verified,
        }


def _prices():

    for a in accelerators().values():
        p = price(a.id)
        if p is not None:
            yield {
                "id": a.id,
                "usd_per_device_hour": p.value,
                "low": p.low,
                "high": p.high,
                "date": p.date,
                "provider": p.provider,
                "source": p.source,
                "verified": p.verified,
            }


def _models():
    """Rows of the model catalogue with their exact counts."""

    for e in entries().values():
        m, count = e.model, parameters(e.model)
        yield {
            "id": e.id,
            "name": m.name,
            "publisher": e.publisher,
            "params": int(count.total),
            "active_params": int(count.active),
            "layers": m.layers,
            "hidden": m.hidden,
            "experts": m.experts,
            "top_k": m.top_k,
            "seq_len": m.seq_len,
            "vocab": m.vocab,
            "mlp": m.mlp,
            "attention": m.attention,
            "aliases": list(e.aliases),
            "source": e.source,
            "date": e.date,
            "verified": e.verified,
        }


def _stacks():
    """Software stacks: the fields of their files."""
    for name, stack in stacks().items():
        yield {"id": name, **{k: v for k, v in vars(stack).items() if k != "name"}}
