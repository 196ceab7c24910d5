"""The laws that a plan must keep, each with its reason. What a pipeline schedule asks for stands in
physics.pipeline.RULES."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base.records import record
from ..base.words import table
from ..catalogue.models.patterns import widths
from ..physics.cases import HSDP, ULYSSES, ZERO3


@record
class Law:
    """One law: the axis after which it can be told, the field it concerns, what it says, whose it
    is."""

    stage: str
    field: str
    text: str
    source: str
    kept: Callable  # function(columns, model, phase, cluster) -> bool column


def _divides(a, b):
    return (b % np.maximum(a, 1)) == 0


KEPT = {
    "heads": lambda c, m, j, k: _divides(c["tp"], m.heads),
    "kv_heads": lambda c, m, j, k: (
        _divides(c["tp"], m.kv_heads) | (c["tp"] % max(m.kv_heads, 1) == 0)
        if m.attention != "mla"
        else c["tp"] > 0
    ),
    "state": lambda c, m, j, k: _divides(c["tp"], widths(m, "split")),
    "scan": lambda c, m, j, k: (c["cp"] == 1) | _divides(c["tp"] * c["cp"], widths(m, "swapped")),
    "width": lambda c, m, j, k: (
        _divides(c["tp"], m.ffn_hidden) & _divides(c["tp"], m.shared_ffn_hidden)
    ),
    "sequence": lambda c, m, j, k: (c["cp"] == 1) | _divides(2 * c["cp"], j.seq_len),
    "stage": lambda c, m, j, k: c["pp"] <= m.layers,
    "devices": lambda c, m, j, k: c["tp"] * c["cp"] * c["pp"] <= min(k.by_site),
    "sites": lambda c, m, j, k: c["dp"] >= k.sites,
    "batch": lambda c, m, j, k: _divides(c["dp"] * c["micro_batch"], j.global_batch),
    "experts": lambda c, m, j, k: _divides(c["ep"], max(m.experts, 1)),
    "expert_ranks": lambda c, m, j, k: _divides(c["ep"] * c["etp"], c["dp"] * c["cp"] * c["tp"]),
    "expert_site": lambda c, m, j, k: (
        c["ep"] * c["etp"] <= c["dp"] * min(k.by_site) // k.devices * c["cp"] * c["tp"]
    ),
    "expert_width": lambda c, m, j, k: (
        _divides(c["etp"], max(m.expert_ffn_hidden, 1)) | (c["etp"] == 1)
    ),
    "chunks": lambda c, m, j, k: (
        (c["sp"] == 0)
        | _divides(
            c["tp"]
            * np.where(
                c["cp"] > 1,
                2 * c["cp"],
                1,
            ),
            j.seq_len,
        )
    ),
    "interleaved": lambda c, m, j, k: (c["sharding"] < ZERO3) | (c["vpp"] == 1),
    "exchange": lambda c, m, j, k: (
        (c["cp_type"] != ULYSSES)
        | (c["cp"] == 1)
        | (
            _divides(c["tp"] * c["cp"], m.heads)
            & ((m.attention == "mla") | _divides(c["tp"] * c["cp"], m.kv_heads))
        )
    ),
    "expert_groups": lambda c, m, j, k: (
        (c["sharding"] != HSDP)
        | (c["ep"] == 1)
        | _divides(c["ep"] * c["etp"], c["shard_group"] * c["tp"])
    ),
}
LAWS = tuple(
    Law(
        **row,
        kept=KEPT[id],
    )
    for id, row in table(__file__, "laws").items()
)


def of(stage: str) -> tuple[Law, ...]:
    """The laws that can be told once an axis is laid out."""
    return tuple(law for law in LAWS if law.stage == stage)
