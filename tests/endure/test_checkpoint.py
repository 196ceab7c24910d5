"""Bytes of a checkpoint, its tiers, and what they have to carry."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scantling.base.errors import DesignError
from scantling.design.cluster_rules import build_cluster
from scantling.endure import checkpoint as c
from scantling.endure.tiers import tiers


def test_adamw_in_bf16_is_fourteen_bytes_a_parameter():
    """2 working, 4 master, 8 moments; GPT-3's 175e9 x 14 = 2.45 TB; 12 without the working copy
    (GEMINI's MT-NLG: 530B x 12)."""
    assert c.contents(175e9).total == pytest.approx(2.45e12, rel=1e-6)
    assert c.contents(530e9, weight_bytes=0).total == pytest.approx(6.36e12, rel=1e-6)
    assert c.contents(176e9, optimizer="adamw").total == pytest.approx(2.46e12, rel=0.01)


def test_bloom_checkpoint_on_disk():
    """BLOOM's 176B kept 2.3 TB per checkpoint: fp32 master and two moments, bf16 weights apart in
    0.33 TB (ml-engineering, storage)."""
    whole = c.contents(176.25e9)
    assert whole.master_weights + whole.moments == pytest.approx(2.1e12, rel=0.05)
    assert whole.total == pytest.approx(2.3e12, rel=0.1)
    assert whole.weights == pytest.approx(0.33e12, rel=0.1)


def test_exact_resume_needs_little_more():
    whole = c.contents(405e9, ranks=16_384, readers=128)
    assert 0 < whole.rng + whole.dataloader < 1e-4 * whole.total
    assert whole.total == pytest.approx(
        sum((whole.weights, whole.master_weights, whole.moments, whole.rng, whole.dataloader))
    )


def test_generator_state_sizes():
    """numpy's and Python's Mersenne twisters keep 624 and 625 words."""
    import random

    assert np.random.RandomState(0).get_state()[1].nbytes == 2496
    assert len(random.Random(0).getstate()[1]) * 4 == 2500


def test_unknown_optimizer_is_refused():
    with pytest.raises(DesignError, match="adamw"):
        c.contents(1e9, optimizer="adamww")


def test_tiers_go_from_near_and_fast_to_far_and_safe():
    cluster, _ = build_cluster({"accelerator": "h100-sxm", "devices": 16_384})
    rows = tiers(
        cluster,
        5.67e12,
        5.67e12 / 16_384,
        SimpleNamespace(write_bytes_per_s=2e12, read_bytes_per_s=2e12, capacity_bytes=240e15),
    )
    assert [t.id for t in rows] == ["L0", "L1", "L2", "L3"]
    assert [t.survives for t in rows] == ["process", "rack", "pod", "site"]
    assert list(np.diff([t.durable_s for t in rows]) > 0) == [True] * 3
    assert rows[1].restore_s < 1 < 60 < rows[2].restore_s
    assert rows[0].stall_s < 1
    assert rows[2].keeps() == pytest.approx(240e15 // 5.67e12)


def test_every_step_in_host_memory_costs_hundredths():
    """ByteRobust: 0.01-0.04 s of stall for a copy at every step; the copy alone, without planning,
    at half of PCIe 5."""
    per_device = 256e9 * 14 / 16_384
    assert 0.005 < per_device / (c.HOST_COPY_SHARE * 63e9) < 0.04


def test_retention_covers_what_is_found_late():
    """A corruption found after 8 h with a copy every 30 min needs 17 of them, 18 with one in
    flight."""
    assert c.retention(1800, detection_latency_s=8 * 3600) == 17
    assert c.retention(1800, detection_latency_s=8 * 3600, durable_s=60) == 18
    assert c.retention(1800) == 1


def test_write_rate_and_transfer_are_inverse():
    assert c.transfer_s(1e12, c.write_rate_needed(1e12, 55, 5)) == pytest.approx(60)
    assert c.transfer_s(1e12, 1e12, nodes=10, node_bytes_per_s=1e9) == pytest.approx(100)


def test_parallel_saves_spread_the_bytes():
    """405B, 14 bytes: 346 MB on each of 16,384 devices (Llama 3 says 1 MB to 4 GB), 44 GB on each
    of 128 when one replica writes."""
    spread = c.per_writer(405e9 * 14, tp=8, pp=16, dp=128)
    assert (spread["writers"], spread["bytes_per_writer"]) == pytest.approx(
        (16_384, 346e6), rel=1e-3
    )
    assert c.per_writer(405e9 * 14, tp=8, pp=16, dp=128, parallel=False)[
        "bytes_per_writer"
    ] == pytest.approx(44.3e9, rel=1e-3)
