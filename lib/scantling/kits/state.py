"""Bytes that one rank keeps between steps under a framework's own layout: parameters, gradients,
fp32 master copy, moments.

The sums equal the 2 + 2 + 12 bytes a parameter of Rajbhandari et al. 2020 wherever gradients are
kept in 16 bit; how they split over
the tensors differs: FSDP2 keeps fp32 shards that are parameter and master copy in one.
"""

from __future__ import annotations

from .. import catalogue


def state_bytes(
    states: str,
    sharding: str,
    ranks: int,
    parameters: float,
    *,
    precision: str = "bf16",
    optimizer: str = "adamw",
    shard_group: int = 0,
) -> dict:
    """Bytes per rank: {parameters, gradients, master, moments, total} of `parameters` weights
    replicated over or sharded by `ranks`.

    states: "fp32 shards" with fp32 gradients (FSDP2; plain replicas too, where autocast makes the
    16-bit copies), or "16-bit with master": 16-bit weights and gradients and an fp32 master copy.
    Padding to the number of ranks is left out.
    """
    moments = catalogue.optimizer(optimizer).moment_bytes
    low = precision != "fp32"
    if states == "fp32 shards":
        group = (
            1 if sharding in ("none", "zero1") else (shard_group if sharding == "hsdp" else ranks)
        )
        parts = dict(
            parameters=4.0 / group,
            gradients=4.0 / group,
            master=0.0,
            moments=moments / (ranks if sharding == "zero1" else group),
        )
    elif states == "16-bit with master":
        wide = 2.0 if low else 4.0
        g1, g2, g3 = (
            ranks if sharding in names else 1
            for names in (("zero1", "zero2", "zero3"), ("zero2", "zero3"), ("zero3",))
        )
        parts = dict(
            parameters=wide / g3,
            gradients=wide / g2,
            master=(4.0 if low else 0.0) / g1,
            moments=moments / g1,
        )
    else:
        raise ValueError(f"no layout of states is called {states!r}")
    out = {k: v * parameters for k, v in parts.items()}
    return {
        **out,
        "total": sum(out.values()),
    }
