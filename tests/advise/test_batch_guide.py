"""The global batch joined into an assessment: the laws' own figures, shapes that keep it, and what
changes for the learning rate."""

from __future__ import annotations

import math

import pytest
from scantling import Design, assess
from scantling.advise.batch_size import batch_guide
from scantling.catalogue.scaling_laws import batch_size

TEXT = (
    "model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: 16384}\njob: {tokens: "
    "15.6e12, seq_len: 8192, global_batch: 2048}\n"
)


@pytest.fixture(scope="module")
def large():
    return assess(Design.from_text(TEXT))


def test_the_laws_at_the_runs_own_tokens(large):
    b = batch_guide(large)
    assert (
        b["tokens"] == 2048 * 8192
        and b["sequences"] == 2048
        and b["steps"] == pytest.approx(15.6e12 / (2048 * 8192))
    )
    assert {x["law"]: x["tokens"] for x in b["critical"]} == {
        k: pytest.approx(float(batch_size(15.6e12, k)))
        for k in ("zhang-2024", "bergsma-2025-critical")
    }
    # Llama 3 trained 405B at 16M tokens: below the critical batch by both laws, some tenth of the
    # tokens spent on it
    assert b["standing"] == "small" and 0.05 < b["extra_tokens"][0] <= b["extra_tokens"][1] < 0.2
    assert all(
        "arXiv" in x["source"] for x in (*b["critical"], *b["optimal"], *b["learning_rate"]["peak"])
    )
    # the published peak, 8e-5, lies within a factor of three of both laws
    assert all(1 / 3 < x["value"] / 8e-5 < 3 for x in b["learning_rate"]["peak"])


def test_shapes_keep_the_batch_and_are_plans_of_the_search(large):
    rows = batch_guide(large)["reshapes"]
    assert len(rows) >= 3
    for r in rows:
        assert (
            r["dp"] * r["micro_batch"] * r["grad_accum"] == 2048
            and r["tp"] * r["cp"] * r["pp"] * r["dp"] == r["devices_used"] <= 16384
        )
        pinned = assess(
            large.design.change(
                {f"plan.{k}": r[k] for k in ("dp", "micro_batch", "tp", "cp", "pp")}
            )
        )
        fastest = pinned.fastest["step_s"]  # a plainer plan may stand before it
        assert fastest == pytest.approx(r["step_s"])
        assert r["step_ratio"] == pytest.approx(fastest / large.step_s)
    assert [r["step_s"] for r in rows] == sorted(r["step_s"] for r in rows)


def test_the_learning_rate_follows_the_square_root_at_most(large):
    half, twice = batch_guide(large)["learning_rate"]["if_batch"]
    assert (half["low"], half["high"]) == (pytest.approx(math.sqrt(0.5)), 1.0)
    assert (twice["low"], twice["high"]) == (1.0, pytest.approx(math.sqrt(2)))
    assert any("ML specialist" in line for line in batch_guide(large)["lines"])


def test_what_is_not_known_is_left_out():
    a = assess(
        Design.from_text(
            "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: "
            "{seq_len: 8192}\n"
        )
    )
    b = batch_guide(a)
    assert b["critical"] == [] and b["standing"] is None and b["steps"] is None and b["reshapes"]
    assert any("was assumed" in line for line in b["lines"])
    refused = assess(
        Design.from_text(
            "model: llama-3.1-405b\ncluster: {accelerator: v100-16-sxm2, devices: 8, "
            "host_memory_gb: 64, nvme_gb: 0}\njob: {seq_len: 2048}\n"
        )
    )
    assert batch_guide(refused) == {} and "batch" not in refused.as_dict()
