"""What each kind of block takes of a step, of memory and of what goes over cp."""

from __future__ import annotations

from pathlib import Path

import pytest
from scantling import Design, assess
from scantling.physics.block_kinds import by_kind

CONFIGS = Path(__file__).parents[1] / "published" / "hf-hybrid" / "configs"
SUPER = "nemotron-3-super-120b-a12b"


def kinds(model, seq_len=8192, devices=512, **plan):
    """(rows by kind, headline) of a design with this plan."""
    design = {
        "model": model,
        "cluster": {"accelerator": "h100-sxm", "devices": devices, "devices_per_node": 8},
        "job": {"seq_len": seq_len, "global_batch": 512},
        "plan": {"tp": 1, "pp": 1, "cp": 1, "sharding": "zero1", "micro_batch": 1} | plan,
        "stack": "megatron-core",
    }
    found = assess(Design.from_data(design), space="coarse")
    return {row["kind"]: row for row in by_kind(found.chosen.case)}, found.headline()


def test_kinds_are_those_of_the_published_pattern_and_sum_to_the_model():
    """nvidia/NVIDIA-Nemotron-3-Super-120B-A12B, config.json: 40 M, 40 E, 8 *, one MTP module
    "*E"."""
    rows, said = kinds(SUPER, ep=32)
    assert [rows[k]["count"] for k in ("mamba2", "moe", "attention", "mtp")] == [40, 40, 8, 1]
    assert sum(row["parameters"] for row in rows.values()) == said["params"] + said["mtp_params"]
    for share in ("step_share", "memory_share"):
        assert sum(row[share] for row in rows.values()) == pytest.approx(1)
    assert all(row["context_share"] == 0 for row in rows.values())  # cp 1
    # experts are 95 % of the weights; 32 ways ep leaves them a smaller part of a device
    assert 0.2 < rows["moe"]["memory_share"] < rows["moe"]["parameters"] / said["params"]


def test_attention_pays_for_a_long_context_and_scans_do_not():
    """Scores grow with the square of the sequence, a scan with its length (Dao & Gu 2024, arXiv
    2405.21060, section 6): of a step at 512k tokens the attention of 8 layers takes what 40 of
    Mamba-2 took at 8k."""
    near, _ = kinds(SUPER, ep=32)
    far, _ = kinds(SUPER, 524_288, cp=32, ep=32, sharding="zero3", recompute="full")
    shares = [[rows[k]["step_share"] for k in ("attention", "mamba2")] for rows in (near, far)]
    assert shares[0][0] < 0.1 < shares[0][1]
    assert shares[1][0] > 3 * shares[1][1]


def test_scans_swap_and_attention_sends_its_keys_round():
    """Megatron-LM, ssm/mamba_context_parallel.py: an all-to-all, (cp - 1) / cp of
    2 (2 d + 2 G N + H) bytes a token in and 2 d back, G no fewer than cp groups; ring
    attention: (cp - 1) / cp of keys and values of the whole sequence (Liu et al. 2023, arXiv
    2310.01889)."""
    cp, inner, groups, state, heads = 8, 8192, 8, 128, 128
    rows, _ = kinds(
        SUPER, 131_072, cp=cp, ep=32, sharding="zero3", recompute="full", cp_type="ring"
    )
    swapped = 40 * (3 * inner + 2 * max(groups, cp) * state + heads)
    ring = 8 * 2 * (2 * 128) * cp  # two heads of keys and values of 128
    got = rows["mamba2"]["context_share"] / rows["attention"]["context_share"]
    assert got == pytest.approx(swapped / ring, rel=0.01)


def test_mtp_modules_without_experts_hold_none():
    """stepfun-ai/Step-3.5-Flash: 45 layers, 42 with 288 experts; three MTP layers with a dense MLP,
    0.844e9 parameters in all (tests/published/hf-hybrid/params.csv)."""
    rows, said = kinds({"hf_config": str(CONFIGS / "step-3.5-flash.json")}, pp=2, ep=32)
    assert rows["mtp"]["parameters"] == said["mtp_params"] == 844_296_960
    assert rows["mtp"]["memory_share"] > 0
    assert said["step_s"] > 0
