"""torchtitan 0.3: a Python module whose `plan()` returns the run's Trainer.Config."""

from dataclasses import replace

from scantling.catalogue.stacks import stack

from ..render import render
from ..schedule import schedule
from .fsdp import LEFT_OUT
from .megatron import BIASES

FORM = (*BIASES, *LEFT_OUT, *("mlp", "ffn_hidden", "position_rows", "norms_per_layer", "qk_norm"))


def lacks(launch, m, *, tp, pp, cp, ep, sharding, shard_group, recompute, **plan) -> dict:
    """What the model builders lack."""
    return {
        "form": any(getattr(builds(m), k) != getattr(m, k) for k in FORM),
        "further_tokens": m.mtp_layers,
        "window": m.window and m.windowed_layers,
        "tied": m.tied_embeddings,
        "partial": recompute == "full" and plan["recompute_layers"] < -(-m.layers // pp),
        "selective": recompute == "selective" and not stack(launch.stack).memory.get("per_op"),
        "groups": sharding == "hsdp" and shard_group % cp,
        "replicas": sharding == "none" and cp > 1,
        "expert_ranks": ep > 1 and (dp_shard(launch) * cp * tp) % ep,
        "few_micro_batches": 1 < pp > plan["grad_accum"],
        "stages_first": launch.sync and pp > 1,
    }


def gated(m) -> dict:
    """SwiGLU of two thirds the width where the layers have two matrices (2 x h x f = 3 x h x 2f/3);
    what has three stays."""
    if m.mlp in ("swiglu", "geglu"):
        return {}
    widths = ("ffn_hidden", "expert_ffn_hidden", "shared_ffn_hidden")
    return {"mlp": "swiglu"} | {k: 64 * round(getattr(m, k) / 96) for k in widths}


def builds(m):
    """The model of the library's builders: SwiGLU, RMSNorm, rotary positions, no biases, a head of
    its own, whole sequences."""
    return replace(
        m,
        **{"mlp": "swiglu"} | gated(m),
        **dict.fromkeys((*LEFT_OUT, *BIASES), False),
        qk_norm="" if m.qk_norm == "width" else m.qk_norm,
        norms_per_layer=2,
        tied_embeddings=False,
        **dict.fromkeys(("mtp_layers", "window", "windowed_layers", "position_rows"), 0),
    )


def adjust(pins, own, outside):
    """Pins of a nearest plan: pipelines of sharded state do not interleave, and context parallelism
    gathers."""
    staged = "sharding" in outside and pins.get("pp", 1) > 1
    whole = {"vpp": 1, "schedule": "1f1b"} if staged else {}
    shared = "cp_type" in outside and own.plan["cp"] > 1 and "cp" in pins
    return pins | whole | ({"cp_type": "all-gather"} if shared else {})


def dp_shard(launch) -> int:
    """Data-parallel ranks that share one copy."""
    return 1 if launch.plan["sharding"] == "none" else launch.shards


def files(launch, kit):
    """torchtitan_config.py."""
    values = schedule(launch, kit) | {"shards": dp_shard(launch)}
    return {"torchtitan_config.py": render("torchtitan_config.py.j2", shape=kit["shape"], **values)}
