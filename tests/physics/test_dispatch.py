"""Memory of the dispatchers of experts, against the libraries' own sizes."""

from __future__ import annotations

import pytest
from scantling import Design, assess
from scantling.physics.memory.dispatch import deepep_bytes, hybridep_bytes


def nvl_hint(hidden_bytes, ranks, channels, tokens):
    """get_nvl_buffer_size_hint of DeepEP's config.hpp, line by line, but for its flags."""
    slots = channels * min(ranks, 8) * tokens
    return slots * hidden_bytes + slots * 8 + slots * 128 * 8 + slots * 128 * 4 + slots * 128 * 4


def rdma_hint(hidden_bytes, ranks, channels, tokens):
    """get_rdma_buffer_size_hint of the same."""
    slots = channels * (ranks // 8) * tokens
    token = hidden_bytes + 8 + 128 * 8 + 128 * 4 + 128 * 4
    return 2 * slots * token if ranks > 8 else 0


@pytest.mark.parametrize("ranks, tokens", [(8, 256), (16, 288), (64, 288), (96, 480), (144, 720)])
def test_deepep_keeps_what_its_configuration_asks(ranks, tokens):
    hidden = 7168
    asked = nvl_hint(2 * hidden, ranks, 10, tokens) + rdma_hint(2 * hidden, ranks, 10, 128)
    assert deepep_bytes(ranks, hidden) == pytest.approx(asked, rel=1e-9)


def test_hybridep_has_room_for_all_tokens_on_one_rank():
    """DeepSeek-V3 on 64 ranks of a rack, 4,096 tokens each: 3.76 GB for the worst case, 0.27 GB of
    probabilities; over 8 nodes of 8 the sends and sums of 7 others besides."""
    rack = float(hybridep_bytes(4096, 7168, 64, 1, 4))
    assert rack == pytest.approx(4096 * 64 * (2 * 7168 + 4 * 256 + 7168 / 32), rel=1e-9)
    assert rack / 1e9 == pytest.approx(4.1, abs=0.05)
    nodes = float(hybridep_bytes(4096, 7168, 8, 8, 4))
    assert nodes > 4096 * 64 * 2 * 7168 + 4096 * 7 * 3 * 2 * 7168


def test_dispatchers_stand_among_the_buffers_of_a_plan():
    text = (
        "model: deepseek-v3\\ncluster: {accelerator: gb200-nvl72, devices: 256}\\n"
        "job: {seq_len: 4096, global_batch: 2048}\\nplan: {tp: 1, pp: 4, ep: 64, micro_batch: 1, "
        "recompute: full, sharding: zero1, moe_dispatcher: %s}"
    ).replace("\\n", "\n")
    used = {
        kind: float(assess(Design.from_text(text % kind)).chosen.memory.buffers) / 1e9
        for kind in ("alltoall", "deepep", "hybridep")
    }
    assert used["alltoall"] < used["deepep"] < used["hybridep"]
    assert used["deepep"] - used["alltoall"] == pytest.approx(0.9, abs=0.5)
