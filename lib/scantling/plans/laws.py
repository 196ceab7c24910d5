"""The laws that a plan must keep, each with its reason. What a pipeline schedule asks for stands in
physics.pipeline.RULES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..catalogue.words import CP_TYPES, SHARDINGS
from ..physics.cases import code

ULYSSES = code(CP_TYPES, "ulysses")
ZERO3, HSDP = code(SHARDINGS, "zero3"), code(SHARDINGS, "hsdp")


@dataclass(
    frozen=True,
    kw_only=True,
)
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


LAWS = (
    Law(
        stage="degrees",
        field="tp",
        text="tp divides the attention heads",
        source="Megatron-LM asserts num_attention_heads % tp == 0",
        kept=lambda c, m, j, k: _divides(c["tp"], m.heads),
    ),
    Law(
        stage="degrees",
        field="tp",
        text="tp divides the key-value heads or is a multiple of them",
        source="Megatron-LM replicates key-value heads only by whole copies",
        kept=lambda c, m, j, k: (
            _divides(c["tp"], m.kv_heads) | (c["tp"] % m.kv_heads == 0)
            if m.attention != "mla"
            else c["tp"] > 0
        ),
    ),
    Law(
        stage="degrees",
        field="tp",
        text="tp divides the width of the feed-forward layer",
        source="column-parallel linear layers split evenly (Megatron-LM, torchtitan)",
        kept=lambda c, m, j, k: (
            _divides(c["tp"], m.ffn_hidden) & _divides(c["tp"], m.shared_ffn_hidden)
        ),
    ),
    Law(
        stage="degrees",
        field="cp",
        text="2 x cp divides the sequence",
        source="causal load balance gives a rank two chunks (Megatron-Core, Llama 3 section 3.3.2)",
        kept=lambda c, m, j, k: (c["cp"] == 1) | (j.seq_len % (2 * c["cp"]) == 0),
    ),
    Law(
        stage="degrees",
        field="pp",
        text="every stage holds a layer",
        source="Megatron-LM and torchtitan refuse empty stages",
        kept=lambda c, m, j, k: c["pp"] <= m.layers,
    ),
    Law(
        stage="degrees",
        field="tp",
        text="tp x cp x pp is at most the devices",
        source="one rank a device",
        kept=lambda c, m, j, k: c["tp"] * c["cp"] * c["pp"] <= k.devices,
    ),
    Law(
        stage="batch",
        field="micro_batch",
        text="dp x micro_batch divides the global batch",
        source="every step must see the whole batch (convergence)",
        kept=lambda c, m, j, k: j.global_batch % (c["dp"] * c["micro_batch"]) == 0,
    ),
    Law(
        stage="experts",
        field="ep",
        text="ep divides the experts",
        source="each rank holds whole experts (Megatron-Core)",
        kept=lambda c, m, j, k: _divides(c["ep"], max(m.experts, 1)),
    ),
    Law(
        stage="experts",
        field="ep",
        text="ep x etp divides dp x cp x tp",
        source="expert groups fold into the other ranks (Liu et al. 2025)",
        kept=lambda c, m, j, k: (c["dp"] * c["cp"] * c["tp"]) % (c["ep"] * c["etp"]) == 0,
    ),
    Law(
        stage="experts",
        field="etp",
        text="etp divides the expert width",
        source="column-parallel experts",
        kept=lambda c, m, j, k: _divides(c["etp"], max(m.expert_ffn_hidden, 1)) | (c["etp"] == 1),
    ),
    Law(
        stage="sequence",
        field="sp",
        text="with sequence parallelism, tp (with cp: tp x 2 cp) divides the sequence",
        source="torchtitan's trainer asks for it; Megatron-Core splits a rank's tokens over tp",
        kept=lambda c, m, j, k: (
            (c["sp"] == 0) | (j.seq_len % (c["tp"] * np.where(c["cp"] > 1, 2 * c["cp"], 1)) == 0)
        ),
    ),
    Law(
        stage="sharding",
        field="sharding",
        text="zero3 and hsdp do not combine with interleaved chunks",
        source="weights would be gathered once per chunk; no framework offers it",
        kept=lambda c, m, j, k: (c["sharding"] < ZERO3) | (c["vpp"] == 1),
    ),
    Law(
        stage="exchange",
        field="cp",
        text="with ulysses, tp x cp divides the heads and the key-value heads",
        source=(
            "Transformer Engine asks both to be multiples of cp after tp (attention by all-to-all)"
        ),
        kept=lambda c, m, j, k: (
            (c["cp_type"] != ULYSSES)
            | (c["cp"] == 1)
            | (
                _divides(c["tp"] * c["cp"], m.heads)
                & ((m.attention == "mla") | _divides(c["tp"] * c["cp"], m.kv_heads))
            )
        ),
    ),
    Law(
        stage="shard_group",
        field="ep",
        text="under hsdp, ep x etp divides shard_group x tp",
        source="torchtitan folds expert ranks into one shard group's",
        kept=lambda c, m, j, k: (
            (c["sharding"] != HSDP)
            | (c["ep"] == 1)
            | ((c["shard_group"] * c["tp"]) % (c["ep"] * c["etp"]) == 0)
        ),
    ),
)


def of(stage: str) -> tuple[Law, ...]:
    """The laws that can be told once an axis is laid out."""
    return tuple(law for law in LAWS if law.stage == stage)
