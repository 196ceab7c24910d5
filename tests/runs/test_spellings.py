"""Words of run tables as trainers and papers write them, and the chips by every name they have."""

from __future__ import annotations

import pytest
from scantling.runs.predict import predicted_columns
from scantling.runs.run_table import table_of_cells
from scantling.runs.spellings import spelt

ROW = {
    "layers": 32,
    "hidden": 4096,
    "ffn_hidden": 11008,
    "heads": 32,
    "kv_heads": 32,
    "vocab": 32000,
    "mlp": "swiglu",
    "attention": "mha",
    "seq_len": 4096,
    "accelerator": "h100-sxm",
    "n_devices": 64,
    "global_batch_seqs": 256,
    "micro_batch": 1,
    "precision": "bf16",
    "sharding": "zero3",
    "recompute": "none",
}


@pytest.mark.parametrize(
    ("column", "cell", "word"),
    [
        # torch.distributed.fsdp.ShardingStrategy
        ("sharding", "FULL_SHARD", "zero3"),
        ("sharding", "SHARD_GRAD_OP", "zero2"),
        ("sharding", "NO_SHARD", "none"),
        ("sharding", "HYBRID_SHARD", "hsdp"),
        # Megatron-LM: --use-distributed-optimizer; --data-parallel-sharding-strategy
        ("sharding", "distributed optimizer", "zero1"),
        ("sharding", "optim_grads_params", "zero3"),
        # DeepSpeed's zero_optimization.stage, as people write it
        ("sharding", "ZeRO 2", "zero2"),
        ("sharding", "stage 3", "zero3"),
        # Lightning's Trainer(precision=...)
        ("precision", "bf16-mixed", "bf16"),
        ("precision", "16-mixed", "fp16"),
        # Megatron-Bridge, scripts/performance: --compute_dtype
        ("precision", "fp8_cs", "fp8-current"),
        ("precision", "fp8_mx", "mxfp8"),
        # torchao's recipe names
        ("precision", "FP8_rowwise", "fp8-row"),
        # transformers: TrainingArguments.gradient_checkpointing, optim
        ("recompute", "True", "full"),
        ("optimizer", "adamw_torch_fused", "adamw"),
        ("optimizer", "Adam", "adamw"),
        # torch.distributed.pipelining
        ("schedule", "1F1B", "1f1b"),
        ("schedule", "Interleaved1F1B", "interleaved"),
        ("schedule", "ZBVZeroBubble", "zb-v"),
        ("schedule", "ZB-H1", "zb-1p"),
        # Transformer Engine: cp_comm_type
        ("cp_type", "p2p", "ring"),
        ("moe_dispatcher", "DeepEP", "deepep"),
        ("effort", "First week", "first-week"),
        ("stack", "Megatron-LM", "megatron-lm"),
        ("stack", "Megatron Core", "megatron-core"),
        ("accelerator", "H20", "h20-sxm"),
        ("accelerator", "rtx-4090", "rtx4090"),
        ("accelerator", "h77", "h77"),
    ],
)
def test_a_setting_is_known_by_the_names_that_trainers_give_it(column, cell, word):
    assert spelt(column, cell) == word


def predicted(**stated):
    """The columns of the prediction of ROW with some cells stated otherwise, of one cell each."""
    cells = {name: [str(cell)] for name, cell in (ROW | stated).items()}
    return {name: cell[0] for name, cell in predicted_columns(table_of_cells(cells)).items()}


def test_another_name_predicts_the_same():
    same = {"sharding": "FULL_SHARD", "accelerator": "H100", "precision": "BF16", "mlp": "SwiGLU"}
    one, other = predicted(), predicted(**same)
    assert one["tokens_per_s_per_device"] == other["tokens_per_s_per_device"] > 0
    assert one["memory_bytes"] == other["memory_bytes"]


def test_an_unknown_chip_is_named_with_the_nearest():
    error = predicted(accelerator="h200-nvl")["error"]
    assert "'h200-nvl'" in error and "nearest: h100-nvl" in error
