"""MaxText 0.2: maxtext.yml on top of its base.yml. Mesh axes are spent inside a slice
(`ici_`); data-parallel ranks cross slices (`dcn_`)."""

from dataclasses import replace

from ..render import render
from ..schedule import schedule
from .fsdp import LEFT_OUT
from .megatron import BIASES


def lacks(launch, m, *, tp, pp, vpp, ep, etp, cp, sp, sharding, shard_group, **plan) -> dict:
    """Where MaxText's mesh and its pipeline differ."""
    full = plan["recompute"] == "full"
    mixed = m.moe_layers < m.layers
    routed = m.moe_layout != "dense-first" or (
        m.attention != "mla" and (m.shared_ffn_hidden or mixed)
    )
    return {
        "experts_by_tensor": m.is_moe and etp != tp,
        "experts_by_data": m.is_moe and dp_axis(launch) % ep,
        "mixed_stages": m.is_moe and pp > 1 and mixed,
        "rounds": pp > 1 and plan["grad_accum"] % pp,
        "even_stages": pp > 1 and m.layers % (pp * vpp),
        "repeats": pp > 1 and vpp > 1 and sharding != "zero1" and m.layers < pp * vpp,
        "width": tp > 1 and not sp,
        "groups": sharding == "hsdp" and shard_group % cp,
        "recomputes": plan["recompute"] == "none",
        "partial": full and plan["recompute_layers"] < -(-m.layers // pp),
        "squared": m.mlp == "squared-relu",
        "window": m.window and m.windowed_layers,
        "blocks": builds(m)
        != replace(
            m,
            window=0,
            windowed_layers=0,
        ),
        "layout": m.is_moe and routed,
    }


def builds(m):
    """The model of the named decoder blocks: RMSNorm, rotary positions, no biases, whole
    sequences."""
    return replace(
        m,
        **dict.fromkeys((*LEFT_OUT, *BIASES), False),
        qk_norm="head" if m.qk_norm else "",
        norms_per_layer=2,
        **dict.fromkeys(("window", "windowed_layers", "position_rows"), 0),
    )


def adjust(
    pins,
    own,
    outside,
):
    """Pins of a nearest plan: experts without tensor parallelism, or no stages, where that is what
    stands in the way."""
    if "etp" in outside or "ep" in outside and own.model.is_moe:
        pins = {k: v for k, v in pins.items() if k not in ("sp", "ep")} | {
            "tp": 1,
            "etp": 1,
        }
    if "pp" in outside:
        pins = {k: v for k, v in pins.items() if k not in ("vpp", "schedule")} | {"pp": 1}
    if "cp_type" in outside and pins.get("cp", 1) > 1:
        pins = pins | {"cp_type": "all-gather"}
    return pins


def dp_axis(launch) -> int:
    """Ranks that the expert axis can be taken from: those that shard the batch in one group."""
    p = launch.plan
    return p["shard_group"] // p["cp"] if p["sharding"] == "hsdp" else p["dp"]


def files(launch, kit):
    """maxtext.yml."""
    inside = dp_axis(launch) // launch.plan["ep"]
    sharded = launch.plan["sharding"] in ("zero3", "hsdp")
    replicas = launch.plan["dp"] // launch.plan["ep"] // (inside if sharded else 1)
    values = schedule(launch, kit) | {
        "inside": inside,
        "sharded": sharded,
        "replicas": replicas,
        "across": replicas % launch.slices > 0,  # shards lie over the network between slices
    }
    return {"maxtext.yml": render("maxtext.yml.j2", **values)}
