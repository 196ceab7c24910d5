"""MaxText 0.2: maxtext.yml on top of its base.yml. Mesh axes are spent inside a slice
(`ici_`); data-parallel ranks cross slices (`dcn_`)."""

from dataclasses import replace

from ..render import render
from ..schedule import schedule
from .fsdp import LEFT_OUT
from .megatron import BIASES
from .torchtitan import gated


def lacks(launch, m, *, tp, pp, vpp, ep, etp, cp, sp, sharding, shard_group, **plan) -> dict:
    """Where MaxText's mesh and its pipeline differ."""
    full = plan["recompute"] == "full"
    mixed = m.moe_layers < m.layers
    routed = m.moe_layout != "dense-first" or (
        m.attention != "mla" and (m.shared_ffn_hidden or mixed)
    )
    return {
        "experts_by_tensor": m.is_moe and etp != tp,
        "experts_by_data": m.is_moe and launch.shards % ep,
        "mixed_stages": m.is_moe and pp > 1 and mixed,
        "rounds": pp > 1 and plan["grad_accum"] % pp,
        "even_stages": pp > 1 and m.layers % (pp * vpp),
        "repeats": pp > 1 and vpp > 1 and sharding != "zero1" and m.layers < pp * vpp,
        "width": tp > 1 and not sp,
        "tokens": launch.phase.seq_len * plan["micro_batch"] % (tp * cp),
        "spread": launch.sync and sharding == "zero1",
        "fragments": launch.sync and launch.cluster.sync.overlap and "true",
        "bits": launch.sync and 0 < launch.cluster.sync.exchange_bytes < 4 and "below 32",
        "outer_stages": launch.sync == "local-steps" and pp > 1,
        "groups": sharding == "hsdp" and shard_group % cp,
        "recomputes": plan["recompute"] == "none",
        "partial": full and plan["recompute_layers"] < -(-m.layers // pp),
        "squared": m.mlp == "squared-relu",
        "window": m.window and m.windowed_layers,
        "blocks": builds(m) != replace(m, window=0, windowed_layers=0),
        "layout": m.is_moe and routed,
    }


def builds(m):
    """The model of the named decoder blocks: RMSNorm, rotary positions, no biases, whole
    sequences; experts of three matrices each."""
    return replace(
        m,
        **(gated(m) if m.is_moe else {}),
        **dict.fromkeys((*LEFT_OUT, *BIASES), False),
        qk_norm="head" if m.qk_norm else "",
        norms_per_layer=2,
        **dict.fromkeys(("window", "windowed_layers", "position_rows"), 0),
    )


def adjust(pins, own, outside):
    """Pins of a nearest plan: experts without tensor parallelism, or no stages, where that is what
    stands in the way."""
    fixed, free = {}, set()
    if "etp" in outside or "ep" in outside and own.model.is_moe:
        fixed, free = {"tp": 1, "etp": 1}, {"sp", "ep"}
    if "pp" in outside:
        fixed["pp"] = 1
        free |= {"vpp", "schedule"}
    if "cp_type" in outside and pins.get("cp", 1) > 1:
        fixed["cp_type"] = "all-gather"
    return {k: v for k, v in pins.items() if k not in free} | fixed


def files(launch, kit):
    """maxtext.yml."""
    inside = launch.shards // launch.plan["ep"]  # the expert axis is taken from those that share
    sharded = launch.plan["sharding"] in ("zero3", "hsdp")
    alone = launch.cluster.sites if launch.sync == "local-steps" else 1
    slices = launch.slices // alone if launch.kin.torus else 1
    replicas = launch.plan["dp"] // launch.plan["ep"] // (inside if sharded else 1) // alone
    values = schedule(launch, kit) | {
        "inside": inside,
        "sharded": sharded,
        "replicas": replicas,
        "alone": alone,
        "slices": slices,
        "across": replicas % slices > 0,  # shards lie over the network between slices
    }
    return {"maxtext.yml": render("maxtext.yml.j2", **values)}
