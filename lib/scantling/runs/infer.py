"""What a run leaves blank, inferred: each rule fills a blank and says what it chose and why.

None of the measured columns is read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import catalogue
from ..base.columns import Array, Column
from ..catalogue.families import Family, family
from ..catalogue.hardware import Accelerator
from ..catalogue.models.dimensions import GATED
from ..catalogue.models.shape import parameters
from ..catalogue.stacks import Stack, canonical, stack, stacks
from .run_shapes import shape_of
from .run_table import Table, among, filled, is_blank

MOE = ("moe_experts", "moe_topk", "moe_ffn_hidden", "moe_shared_ffn_hidden")
GATHERED = ("zero3", "hsdp")  # shardings that gather weights for every micro-batch
USUAL = "the stack's default"
UNSHARDED_PARAMETERS = 20e9  # above, an unsharded model is split
BYTES_A_PARAMETER = 18.0  # of an unsharded model with its gradients and states
FILLED = 0.6  # of the memory, by these
BATCH_TOKENS = 4e6
MICRO_BATCH_TOKENS = 8192.0  # on a device of
MICRO_BATCH_MEMORY = 80e9  # bytes; larger ones take more of them
# of packed documents whose lengths are not printed: conversations and instructions have some
# hundred to some thousand (judgement)
DOCUMENT_TOKENS = 1024.0


class Gaps:
    """A table whose blanks rules fill; what each chose stands in `notes`, a list a row."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.notes: list[list[str]] = [[] for _ in range(len(table))]

    def __getitem__(self, name: str) -> Array:
        return self.table[name]

    def put(self, name: str, column: Array) -> None:
        """Replace a column; nothing is noted."""
        self.table = self.table.replace({name: column})

    def fill(self, name: str, value: Any, rule: str, at: Array | None = None) -> None:
        """Replace the blanks of a column (or the rows in `at`), each noted in the place of what was
        noted of the column before."""
        column = self[name]
        number = column.dtype.kind == "f"
        blank = is_blank(column) if at is None else at
        value = np.broadcast_to(np.asarray(value, dtype=float if number else object), len(column))
        for i in np.flatnonzero(blank):
            cell = f"{value[i]:g}" if number else value[i]
            others = [note for note in self.notes[i] if not note.startswith(f"{name}=")]
            self.notes[i] = [*others, f"{name}={cell} ({rule})"]
        self.put(name, np.where(blank, value, column))


def infer(gaps: Gaps, chips: Sequence[Accelerator]) -> None:
    """Fill the blanks of a table."""
    kinds = [family(chip.family) for chip in chips]
    same = [canonical(name, kind.modern) for name, kind in zip(gaps["stack"], kinds)]
    gaps.fill("stack", same, "Megatron-LM since Hopper", at=gaps["stack"] != np.array(same, object))
    software = [stack(name) for name in gaps["stack"]]
    infer_shape(gaps)
    infer_layout(gaps, chips, kinds, software)
    infer_batch(gaps, chips)
    unsaid = (gaps["packed"] > 0) & np.isnan(gaps["document_tokens"])
    gaps.fill("document_tokens", DOCUMENT_TOKENS, "packed, their lengths not printed", at=unsaid)
    parallel = np.array([float(s.sequence_parallel) for s in software])
    gaps.fill("sp", parallel, USUAL, at=np.isnan(gaps["sp"]) & (gaps["tp"] > 1))
    gaps.put("sp", filled(gaps["sp"], 0.0))
    sharding = [kind.zero_unsaid or s.sharding for kind, s in zip(kinds, software)]
    gaps.fill("sharding", sharding, USUAL)
    gaps.fill("recompute", [s.recompute for s in software], USUAL)
    half = ["fp16" if np.isnan(chip.bf16_flops) else "bf16" for chip in chips]
    gaps.fill("precision", half, "bf16, fp16 where the chip lacks it")
    loaded = among(gaps["sharding"], ("none",)) & among(gaps["precision"], ("bf16",))
    loaded &= np.array([s.half_unsharded for s in software])
    in_half(gaps, loaded, "unsharded weights keep the format they are loaded in")
    for notes, kind, name in zip(gaps.notes, kinds, gaps["stack"]):
        notes += borrowed(kind, name)


def in_half(gaps: Gaps, rows: Array, rule: str) -> None:
    """Weights, gradients and states in 16 bit on some rows, where these leave it blank."""
    rows = rows & np.isnan(gaps["half_states"])
    gaps.fill("grad_bytes", 2.0, rule, at=rows & np.isnan(gaps["grad_bytes"]))
    gaps.fill("half_states", 1.0, rule, at=rows)


def borrowed(kind: Family, name: str) -> list[str]:
    """Whose constants stand in for a family or a stack without published runs."""
    notes = []
    if not kind.measured:
        notes.append(f"constants={kind.constants_of}'s (no published run on {kind.id})")
    if name not in stacks() or stack(name).unmeasured:
        notes.append(f"constants=those of all stacks (none of {name or 'an unnamed stack'})")
    return notes


def infer_shape(gaps: Gaps) -> None:
    """Dimensions that follow from others."""
    hidden = gaps["hidden"]
    gaps.fill(
        "vocab",
        gaps["known_vocab"],
        "that of the catalogue's model of this name",
        at=np.isnan(gaps["vocab"]) & (gaps["known_vocab"] > 0),
    )
    gaps.fill("vocab", 51200, "the GPT-2 vocabulary, padded; only where the MLP is GPT's")
    gaps.fill("head_dim", hidden / gaps["heads"], "hidden / heads")
    gaps.fill("kv_heads", gaps["heads"], "as many as heads")
    moe = gaps["moe_experts"] > 0
    gated = np.round(8 * hidden / 3 / 256) * 256
    width = np.where(among(gaps["mlp"], GATED), gated, 4 * hidden)
    unstated = np.isnan(gaps["ffn_hidden"]) & ~moe
    gaps.fill("ffn_hidden", width, "4 x hidden, 8/3 gated", at=unstated)
    dense = filled(gaps["dense_ffn_hidden_in_moe_model"], 0.0)
    gaps.put("ffn_hidden", np.where(moe, dense, gaps["ffn_hidden"]))
    gaps.put("moe_layers", filled(gaps["moe_layers"], gaps["layers"]) * moe)
    for name in (*MOE, "mtp_layers", "tied_embeddings"):
        gaps.put(name, filled(gaps[name], 0.0))
    nodes = [float(catalogue.devices_per_node(chip)) for chip in gaps["accelerator"]]
    gaps.fill("devices_per_node", nodes, "the accelerator's usual node")


def infer_layout(
    gaps: Gaps, chips: Sequence[Accelerator], kinds: Sequence[Family], software: Sequence[Stack]
) -> None:
    """Ways to split the model and the devices."""
    infer_devices(gaps, chips, kinds)
    experts = gaps["moe_experts"]
    gaps.fill(
        "ep",
        np.minimum(np.minimum(experts, 8), gaps["dp"] * gaps["cp"] * gaps["tp"]),
        "8 where experts and ranks allow",
        at=np.isnan(gaps["ep"]) & (experts > 0),
    )
    gaps.put("ep", filled(gaps["ep"], 1.0))
    whole = (experts > 0) & (gaps["ep"] == 1)
    gaps.put("etp", filled(gaps["etp"], np.where(whole, gaps["tp"], 1.0)))
    gaps.fill(
        "vpp",
        chunks(gaps.table, software),
        "the stack's chunks where it has some, a layer each under an interleaving "
        "recipe, 2 where the text says interleaved, else 1",
        at=np.isnan(gaps["vpp"]) & (gaps["pp"] > 1),
    )
    gaps.put("vpp", filled(gaps["vpp"], 1.0))


def infer_devices(gaps: Gaps, chips: Sequence[Accelerator], kinds: Sequence[Family]) -> None:
    """Devices, and their split over tensors, stages, sequences and replicas."""
    stated = [filled(gaps[name], 1.0) for name in ("tp", "pp", "cp", "dp")]
    n = filled(gaps["n_devices"], np.prod(stated, axis=0))
    gaps.put("n_devices", n)
    count = parameters(shape_of(gaps.table)).total
    torus = np.array([kind.torus for kind in kinds])
    whole = ~among(gaps["sharding"], GATHERED) & ~torus & (count > UNSHARDED_PARAMETERS)
    split = np.isnan(gaps["tp"]) & np.isnan(gaps["pp"]) & whole
    gaps.fill(
        "tp",
        np.where(split, np.minimum(8, n), 1),
        "8 for an unsharded model above 20 B parameters, else 1",
    )
    usable = np.array([chip.hbm_usable_bytes for chip in chips])
    stages = np.minimum(least_stages(count, usable), np.maximum(n // 8, 1))
    gaps.fill(
        "pp",
        np.where(split, stages, 1),
        "smallest power of two that holds 18 bytes a parameter in 60 % of memory",
    )
    gaps.fill("cp", filled(gaps["ulysses_sp"], 1.0), "none printed")
    gaps.put("cp", np.maximum(gaps["cp"], 1))
    replicas = np.maximum(np.floor(n / (gaps["tp"] * gaps["pp"] * gaps["cp"])), 1)
    unstated = np.isnan(gaps["dp"]) | (gaps["dp"] <= 0)
    gaps.fill("dp", replicas, "devices / (tp pp cp)", at=unstated)


def least_stages(count: Column, usable_bytes: Array) -> Array:
    """The smallest power of two of pipeline stages of 8 devices each that hold a model of `count`
    parameters at 18 bytes a parameter in 60 % of their memory."""
    stages = count * BYTES_A_PARAMETER / (8 * FILLED * usable_bytes)
    return np.asarray(2 ** np.ceil(np.log2(np.maximum(stages, 1))))


def chunks(f: Table, software: Sequence[Stack]) -> Array:
    """Chunks per device where none are printed: the stack's own layout; or, where neither
    micro-batch nor options are printed and the stack's recipes interleave, as many as divide the
    stage's layers, 8 at most."""
    own = np.array([s.chunk_layers for s in software])
    interleaves = np.array([s.interleaves for s in software])
    layers = f["layers"]
    pp = f["pp"]
    per_stage = np.round(layers / pp)
    divisor = np.max([(per_stage % v == 0) * v for v in range(1, 9)], axis=0)
    unprinted = np.isnan(f["micro_batch"]) | ~(f["options_printed"] > 0)
    return np.select(
        [own > 0, interleaves & unprinted & (layers % pp == 0)],
        [np.floor((layers + 2) / (pp * np.maximum(own, 1))), divisor],
        1 + ((f["interleaved"] > 0) & (pp > 1)),
    )


def infer_batch(gaps: Gaps, chips: Sequence[Accelerator]) -> None:
    """Batch and micro-batch. Published runs of dense models without pipeline take some 8,192 tokens
    on 80 GB and twice as many on 180 GB and more."""
    seq_len = gaps["seq_len"]
    dp = gaps["dp"]
    batch = np.maximum(np.round(BATCH_TOKENS / seq_len / dp), 1) * dp
    gaps.fill("global_batch_seqs", batch, "4M tokens")
    # weights that are gathered for every micro-batch want it large, experts or not
    gathered = among(gaps["sharding"], GATHERED)
    small = (gaps["pp"] > 1) | ((gaps["moe_experts"] > 0) & ~gathered)
    room = np.array([chip.hbm_usable_bytes for chip in chips]) / MICRO_BATCH_MEMORY
    tokens = MICRO_BATCH_TOKENS * 2.0 ** np.floor(np.log2(np.maximum(room, 1.0)))
    usual = np.where(small, 1, np.maximum(np.round(tokens / seq_len), 1))
    share = np.maximum(gaps["global_batch_seqs"] / dp, 1)
    accumulated = np.maximum(share / filled(gaps["grad_accum"], 1.0), 1)
    gaps.fill(
        "micro_batch",
        np.where(gaps["grad_accum"] > 0, accumulated, np.minimum(usual, share)),
        "from grad_accum, else 1 under pp or whole experts, else 8,192 tokens in 80 GB",
    )
