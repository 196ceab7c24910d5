"""What a run leaves blank, inferred: each rule fills a blank and says what it chose and why.

None of the measured columns is read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import catalogue
from ..base.columns import Array, Column
from ..catalogue.families import Family, family
from ..catalogue.hardware import Accelerator
from ..catalogue.models.dimensions import GATED
from ..catalogue.models.shape import parameters
from ..catalogue.stacks import Stack, canonical, stack, stacks
from .run_shapes import shape_of

if TYPE_CHECKING:
    from pandas import DataFrame

MOE = ("moe_experts", "moe_topk", "moe_ffn_hidden", "moe_shared_ffn_hidden")
GATHERED = ("zero3", "hsdp")  # shardings that gather weights for every micro-batch
USUAL = "the stack's default"
UNSHARDED_PARAMETERS = 20e9  # above, an unsharded model is split
BYTES_A_PARAMETER = 18.0  # of an unsharded model with its gradients and states
FILLED = 0.6  # of the memory, by these
BATCH_TOKENS = 4e6
MICRO_BATCH_TOKENS = 8192.0


class Gaps:
    """A table whose blanks rules fill; what each chose stands in `notes`, a list a row."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame
        self.notes: list[list[str]] = [[] for _ in range(len(frame))]

    def fill(self, name: str, value: Any, rule: str, at: Any = None) -> None:
        """Replace the blanks of a column (or the rows in `at`), each noted in the place of what was
        noted of the column before."""
        column = self.frame[name]
        number = column.dtype.kind == "f"
        blank = at
        if blank is None:
            blank = column.isna() if number else column.eq("")
        value = np.broadcast_to(np.asarray(value, dtype=float if number else object), len(column))
        for i in np.flatnonzero(blank):
            text = f"{value[i]:g}" if number else value[i]
            others = [note for note in self.notes[i] if not note.startswith(f"{name}=")]
            self.notes[i] = [*others, f"{name}={text} ({rule})"]
        self.frame[name] = np.where(blank, value, column)


def infer(gaps: Gaps, chips: Sequence[Accelerator]) -> None:
    """Fill the blanks of a table."""
    f = gaps.frame
    kinds = [family(chip.family) for chip in chips]
    same = [canonical(name, kind.modern) for name, kind in zip(f["stack"], kinds)]
    gaps.fill("stack", same, "Megatron-LM since Hopper", at=f["stack"].ne(same))
    software = [stack(name) for name in f["stack"]]
    infer_shape(gaps)
    infer_layout(gaps, chips, kinds, software)
    infer_batch(gaps)
    parallel = np.array([s.sequence_parallel for s in software]) * 1
    gaps.fill("sp", parallel, USUAL, at=f.sp.isna() & (f.tp > 1))
    f["sp"] = f.sp.fillna(0)
    sharding = [kind.zero_unsaid or s.sharding for kind, s in zip(kinds, software)]
    gaps.fill("sharding", sharding, USUAL)
    gaps.fill("recompute", [s.recompute for s in software], USUAL)
    half = ["fp16" if np.isnan(chip.bf16_flops) else "bf16" for chip in chips]
    gaps.fill("precision", half, "bf16, fp16 where the chip lacks it")
    for notes, kind, name in zip(gaps.notes, kinds, f["stack"]):
        notes += borrowed(kind, name)


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
    f = gaps.frame
    gaps.fill("vocab", 51200, "the GPT-2 vocabulary, padded; only where the MLP is GPT's")
    gaps.fill("head_dim", f.hidden / f.heads, "hidden / heads")
    gaps.fill("kv_heads", f.heads, "as many as heads")
    moe = f.moe_experts > 0
    gated = np.round(8 * f.hidden / 3 / 256) * 256
    width = np.where(f.mlp.isin(GATED), gated, 4 * f.hidden)
    gaps.fill("ffn_hidden", width, "4 x hidden, 8/3 gated", at=f.ffn_hidden.isna() & ~moe)
    f["ffn_hidden"] = np.where(moe, f.dense_ffn_hidden_in_moe_model.fillna(0), f.ffn_hidden)
    f["moe_layers"] = f.moe_layers.fillna(f.layers) * moe
    for name in (*MOE, "mtp_layers", "tied_embeddings"):
        f[name] = f[name].fillna(0)
    nodes = [float(catalogue.devices_per_node(chip)) for chip in f.accelerator]
    gaps.fill("devices_per_node", nodes, "the accelerator's usual node")


def infer_layout(
    gaps: Gaps, chips: Sequence[Accelerator], kinds: Sequence[Family], software: Sequence[Stack]
) -> None:
    """Ways to split the model and the devices."""
    f = gaps.frame
    n = f.n_devices.fillna(f[["tp", "pp", "cp", "dp"]].fillna(1).prod(axis=1))
    f["n_devices"] = n
    count = parameters(shape_of(f)).total
    torus = np.array([kind.torus for kind in kinds])
    whole = ~f.sharding.isin(GATHERED) & ~torus & (count > UNSHARDED_PARAMETERS)
    split = f.tp.isna() & f.pp.isna() & whole
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
    gaps.fill("cp", f.ulysses_sp.fillna(1), "none printed")
    f["cp"] = np.maximum(f.cp, 1)
    replicas = np.maximum(np.floor(n / (f.tp * f.pp * f.cp)), 1)
    gaps.fill("dp", replicas, "devices / (tp pp cp)", at=f.dp.isna() | (f.dp <= 0))
    gaps.fill(
        "ep",
        np.minimum(np.minimum(f.moe_experts, 8), f.dp * f.cp * f.tp),
        "8 where experts and ranks allow",
        at=f.ep.isna() & (f.moe_experts > 0),
    )
    f["ep"] = f.ep.fillna(1)
    f["etp"] = f.etp.fillna(f.tp.where((f.moe_experts > 0) & (f.ep == 1), 1))
    gaps.fill(
        "vpp",
        chunks(f, software),
        "the stack's chunks where it has some, a layer each under an interleaving "
        "recipe, 2 where the text says interleaved, else 1",
        at=f.vpp.isna() & (f.pp > 1),
    )
    f["vpp"] = f.vpp.fillna(1)


def least_stages(count: Column, usable_bytes: Array) -> Array:
    """The smallest power of two of pipeline stages of 8 devices each that hold a model of `count`
    parameters at 18 bytes a parameter in 60 % of their memory."""
    stages = count * BYTES_A_PARAMETER / (8 * FILLED * usable_bytes)
    return np.asarray(2 ** np.ceil(np.log2(np.maximum(stages, 1))))


def chunks(f: DataFrame, software: Sequence[Stack]) -> Array:
    """Chunks per device where none are printed: the stack's own layout; or, where neither
    micro-batch nor options are printed and the stack's recipes interleave, as many as divide the
    stage's layers, 8 at most."""
    layers = np.array([s.chunk_layers for s in software])
    interleaves = np.array([s.interleaves for s in software])
    per_stage = np.round(f.layers / f.pp)
    divisor = np.max([(per_stage % v == 0) * v for v in range(1, 9)], axis=0)
    unprinted = f.micro_batch.isna() | ~(f.options_printed > 0)
    return np.select(
        [layers > 0, interleaves & unprinted & (f.layers % f.pp == 0)],
        [np.floor((f.layers + 2) / (f.pp * np.maximum(layers, 1))), divisor],
        1 + ((f.interleaved > 0) & (f.pp > 1)),
    )


def infer_batch(gaps: Gaps) -> None:
    """Batch and micro-batch."""
    f = gaps.frame
    batch = np.maximum(np.round(BATCH_TOKENS / f.seq_len / f.dp), 1) * f.dp
    gaps.fill("global_batch_seqs", batch, "4M tokens")
    # weights that are gathered for every micro-batch want it large, experts or not
    small = (f.pp > 1) | ((f.moe_experts > 0) & ~f.sharding.isin(GATHERED))
    usual = np.where(small, 1, np.maximum(np.round(MICRO_BATCH_TOKENS / f.seq_len), 1))
    share = np.maximum(f.global_batch_seqs / f.dp, 1)
    accumulated = np.maximum(share / f.grad_accum.fillna(1), 1)
    gaps.fill(
        "micro_batch",
        np.where(f.grad_accum > 0, accumulated, np.minimum(usual, share)),
        "from grad_accum, else 1 under pp or whole experts, else 8,192 tokens",
    )
