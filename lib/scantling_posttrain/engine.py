"""A rollout engine of a model on a chip, from the core's blocks and catalogue."""

import numpy as np
from scantling.base.columns import Column
from scantling.blocks.attention import Softmax
from scantling.blocks.block_table import Shape
from scantling.blocks.head import Head
from scantling.blocks.mla import Mla
from scantling.blocks.moe import Moe
from scantling.catalogue.models.shape import as_floats, flops_per_token, parameters
from scantling.physics.cases import Chip

from .rollout import WIDTH, Engine

# of a device's memory that the engine fills: recipes of verl and NeMo-RL
COLOCATED = 0.6  # beside a trainer
ON_ITS_OWN = 0.8
RUNNING = 1024.0  # samples at once: max_num_seqs of the engines' batch mode on 80 GB and more


def kv_bytes_of(shape: Shape) -> Column:
    """Keys and values of a token, all layers: 2 x kv width, or the latent and the shared key of
    latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1.3). [bytes]"""
    total: Column = 0.0
    for block in shape.of(Softmax):
        width: Column = 2 * block.kv_width
        if isinstance(block, Mla):
            width = block.kv_lora + block.qk_rope
        total = total + block.count * width
    return WIDTH * total


def engine_of(
    shape: Shape,
    chip: Chip,
    *,
    devices: Column,
    domain: Column,
    narrow: Column,
    fraction: Column,
    flops: Column,
) -> Engine:
    """A replica on `devices` devices. `narrow`: bytes of a weight of the blocks; `fraction` of a
    device's memory is the engine's; `flops`: peak of its products."""
    n = as_floats(parameters(shape))
    experts = shape.of(Moe)
    layers = shape.moe_layers
    routed = n.routed_experts
    count: Column = sum((b.count > 0) * b.experts for b in experts)
    visited: Column = sum((b.count > 0) * b.top_k for b in experts)
    ends = 2.0 * (n.embedding + n.lm_head)
    dense = narrow * (n.total - routed - n.embedding - n.lm_head) + 2.0 * np.where(
        n.lm_head > 0, n.lm_head, n.embedding
    )
    flop = flops_per_token(shape, 1.0)
    return Engine(
        weight_bytes=ends + narrow * (n.total - n.embedding - n.lm_head),
        dense_bytes=dense,
        expert_bytes=narrow * routed / np.maximum(count, 1.0),
        experts=count,
        top_k=visited,
        active_flops=flop.total / 3,
        kv_bytes=kv_bytes_of(shape),
        layers=shape.layers,
        moe_layers=layers,
        vocab=sum(head.vocab for head in shape.of(Head)),
        devices=devices,
        inside=1.0 * (devices <= domain),
        hbm_bytes_per_s=chip.hbm_bytes_per_s,
        flops=flops,
        memory_bytes=fraction * chip.usable_bytes,
        running=RUNNING,
    )
