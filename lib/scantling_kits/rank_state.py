"""Bytes that one rank keeps between steps under a framework's own layout: parameters, gradients,
fp32 master copy, moments.

The sums equal the 2 + 2 + 12 bytes a parameter of Rajbhandari et al. 2020 wherever gradients are
kept in 16 bit; how they split over the tensors differs: FSDP2 keeps fp32 shards that are parameter
and master copy in one.
"""

from scantling import catalogue
from scantling.catalogue.words import Precision, Sharding

# how many of moments, master copy, gradients and parameters, in that order, the ranks share
SHARED: dict[str, int] = {
    Sharding.NONE: 0,
    Sharding.ZERO1: 2,
    Sharding.ZERO2: 3,
    Sharding.ZERO3: 4,
    Sharding.HSDP: 4,
}


def state_bytes(
    states: str,
    sharding: str,
    ranks: int,
    parameters: float,
    *,
    precision: str = "bf16",
    optimizer: str = "adamw",
) -> dict[str, float]:
    """Bytes per rank: {parameters, gradients, master, moments, total} of `parameters` weights
    replicated over or sharded by `ranks`.

    states: "fp32 shards" with fp32 gradients (FSDP2; plain replicas too, where autocast makes the
    16-bit copies), or "16-bit with master": 16-bit weights and gradients and an fp32 master copy.
    Padding to the number of ranks is left out.
    """
    wide = 2.0 if states == "16-bit with master" and precision != Precision.FP32 else 4.0
    kinds = {  # bytes a parameter
        "moments": catalogue.optimizer(optimizer).moment_bytes,
        "master": 4.0 if wide == 2 else 0.0,
        "gradients": wide,
        "parameters": wide,
    }
    together = states == "fp32 shards" and sharding == Sharding.ZERO2  # FSDP2 shards all or nothing
    shared = [*kinds][: len(kinds) if together else SHARED[sharding]]
    out = {k: v * parameters / (ranks if k in shared else 1) for k, v in kinds.items()}
    return out | {"total": sum(out.values())}
