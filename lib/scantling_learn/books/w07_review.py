"""Review: a plan for a 70B run with three planted faults, and lines that only look wrong."""

from __future__ import annotations

from scantling.base.units import DAY_S
from scantling.catalogue.models.entries import models
from scantling.catalogue.models.shape import parameters
from scantling.catalogue.published import best_published
from scantling.endure import checkpoint
from scantling.evidence.published_figures.recreate import recreate


def params_elsewhere():
    """(ours, printed) parameters of the model."""
    row = recreate("parameters").table().set_index("x").loc["llama-3.1-70b"]
    return row.ours, row.published


# ---------------------------------------------------------------- compute and days


def days_of(
    flops,
    devices,
    /,
    peak,
    mfu,
):
    return flops / (devices * peak * mfu) / DAY_S


def record(seq_len):
    return best_published(
        "h100-sxm",
        "bf16",
        False,
        seq_len,
    )


# ---------------------------------------------------------------- tensor parallelism


def micro_batches_of(
    batch,
    pp,
    devices,
    micro_batch,
    /,
    tp,
):
    return batch * tp * pp // (devices * micro_batch)


def tp_bytes_of(
    activation_bytes,
    stage_layers,
    micro_batches_of,
    /,
    tp,
):
    return 4 * 2 * (tp - 1) / tp * activation_bytes * stage_layers * micro_batches_of(tp)


# ---------------------------------------------------------------- memory


def states_bytes(
    params,
    pp,
    dp_inside,
):
    """Weights, fp32 gradients, and Adam's states over the replicas, of one device at tensor 8,
    pipeline 4."""
    share = params / (8 * pp)
    return share * 6 + share * 12 / dp_inside


# ---------------------------------------------------------------- saves


def bloom_save_bytes():
    """The same sum for BLOOM 176B."""
    return checkpoint.contents(parameters(models()["bloom-176b"]).total).total
