"""Hybrids read from their config: counts of the library, FLOPs of published counters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scantling as sc
from hypothesis import given, strategies as st
from scantling import catalogue
from scantling.advise.fixes import tries
from scantling.base.errors import DesignError
from scantling.base.files import csv_rows
from scantling.catalogue.models.entries import build_model
from scantling.catalogue.models.hf import from_hf
from scantling.catalogue.models.pattern_words import COUNTED_AS
from scantling.catalogue.models.patterns import layers_of, written
from scantling.catalogue.models.shape import (
    block_counts,
    causal_flops_per_token,
    flops_per_token,
    parameters,
    shape_of,
)

HERE = Path(__file__).parents[1] / "published/hf-hybrid"
COUNTED = csv_rows(HERE / "params.csv")
FLOPS = csv_rows(HERE / "flops.csv")
SHIPPED = sorted((catalogue.HERE / "hf").glob("*.json"))
# where the counter takes Mamba's inner width as 2 x hidden, or the gates of another model
OTHER_TERMS = ("nemotron-3-nano-30b-a3b", "nemotron-3.5-lightning-30b-a3b", "nemotron-h-4b")
OTHER_TERMS += ("kimi-linear-48b-a3b",)


def read(name, **changes):
    config = json.loads((HERE / f"configs/{name}.json").read_text())
    return from_hf(config | changes)[0]


@pytest.mark.parametrize("row", COUNTED, ids=[row["id"] for row in COUNTED])
def test_counts_equal_the_librarys(row):
    model = read(row["id"])
    count = parameters(model)
    assert count.total == int(row["total"])
    assert not row["active"] or count.active == int(row["active"])
    assert not (row["mtp"] and model.mtp_layers) or count.mtp == int(row["mtp"])


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_configs_of_measured_runs_are_those_that_are_counted(path):
    """Published runs name the files of the catalogue; the counts above hold these."""
    assert json.loads(path.read_text()) == json.loads((HERE / "configs" / path.name).read_text())


@pytest.mark.parametrize("row", FLOPS, ids=[f"{row['id']}-{row['seq_len']}" for row in FLOPS])
def test_causal_flops_are_within_one_percent_of_the_published_counter(row):
    if row["id"] in OTHER_TERMS:
        pytest.skip("the counter prices another width")
    counted = causal_flops_per_token(read(row["id"]), int(row["seq_len"]))
    assert counted == pytest.approx(float(row["flops"]), rel=0.01)


@pytest.mark.parametrize(
    ("name", "none", "two"),
    [
        ("nemotron-3-super-120b-a12b", 75_371_642_880, 84_727_037_952),
        ("nemotron-3-ultra-550b-a55b", 335_611_428_864, 358_914_981_888),
        ("nemotron-3.5-lightning-30b-a3b", 22_278_094_848, 28_147_236_864),
    ],
)
def test_each_depth_of_prediction_is_paid(name, none, two):
    """Megatron-Bridge's flop_utils.py at 8,192 tokens without MTP and with "/*E" twice; its recipes
    run one module for both depths. It halves the scores and leaves out router and 2h x h."""
    model = read(name)
    (mtp,) = shape_of(model).of("mtp")
    by_kind = {block.kind: block.flops(8192) for block in mtp.layer}
    left_out = by_kind["attention"]["attention_scores"] / 2 + by_kind["moe"]["router"]
    left_out += 12 * model.hidden**2
    paid = flops_per_token(model, 8192).mtp - 2 * left_out
    assert paid == pytest.approx(two - none, rel=1e-9)
    once = flops_per_token(replace(model, mtp_repeats=1), 8192).mtp
    assert flops_per_token(model, 8192).mtp == 2 * once
    assert parameters(model).mtp == parameters(replace(model, mtp_repeats=1)).mtp


def test_a_pattern_says_what_the_config_says():
    """Nemotron 3 Nano by its letters: 52 layers, 23 Mamba-2, 23 with experts, 6 attention."""
    config = read("nemotron-3-nano-30b-a3b")
    assert block_counts(config) == {"mamba2": 23, "moe": 23, "attn": 6}
    letters = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
    assert layers_of(letters) == layers_of(config.pattern)


def test_attention_stands_in_one_of_so_many_layers():
    """Qwen3-Next: full_attention_interval 4 of 48 layers; at 8 the same layers, half the attention,
    the same experts. Where all layers attend there is nothing to thin out."""
    hybrid = build_model("qwen3-next")[0]
    assert hybrid.attention_every == 4
    thinner, _ = build_model({"like": "qwen3-next", "attention_every": 8})
    assert layers_of(thinner.pattern) == layers_of("6*(7*(gdn+moe),attn+moe)")
    assert (thinner.layers, thinner.moe_layers, thinner.attention_every) == (48, 48, 8)
    assert build_model({"like": "qwen3-next", "attention_every": 4})[0].pattern == hybrid.pattern
    for model in ("llama-3.1-8b", "falcon-h1-7b"):  # falcon's heads stand side by side
        config = HERE / f"configs/{model}.json"
        start = {"hf_config": str(config)} if config.exists() else {"like": model}
        with pytest.raises(DesignError, match="attention_every: 8 .* another mixer"):
            build_model(start | {"attention_every": 8})


@pytest.mark.slow
def test_thinner_attention_is_tried_and_keeps_what_it_says():
    """Half the attention layers of a hybrid at 131,072 tokens, where a deadline is missed."""
    plan = {"tp": 2, "cp": 8, "pp": 1, "ep": 16, "micro_batch": 1}
    design = sc.Design.from_data(
        {
            "model": "qwen3-next",
            "cluster": {"accelerator": "h100-sxm", "devices": 256},
            "job": {"tokens": 2e12, "seq_len": 131072, "global_batch": 64},
            "plan": plan,
            "constraints": {"deadline_days": 37},
        }
    )
    missed = sc.assess(design)
    (found,) = (t for t in tries(missed) if "model.attention_every" in t.change.set)
    assert found.change.text.startswith("one attention layer in 8 in place of 4")
    assert found.after.days == sc.assess(design.change(found.change.set)).days < missed.days


def test_chunks_do_not_slide():
    """Llama 4 (transformers, create_chunked_causal_mask): a query sees the keys of its own chunk of
    8,192, on average (8,192 + 1) / 2; three of four layers of Scout. A window of as many would
    slide: w - w^2 / 2s."""
    scout = shape_of(read("llama-4-scout"))
    (chunk,) = (b for b in scout.blocks if b.kind == "chunk")
    assert (chunk.count, chunk.window) == (36, 8192)
    position = np.arange(65536)
    assert chunk.keys_seen(65536) == np.mean(position % 8192 + 1)
    assert shape_of(build_model("llama-4-maverick")[0]).count("chunk") == 36
    assert (
        shape_of(build_model({"like": "llama-4-scout", "chunks": False})[0]).count("window") == 36
    )


layer = st.sampled_from(["mamba2", "attn+mlp", "gdn+moe", "mamba2|attn+mlp"])


@given(st.lists(layer, min_size=1, max_size=40))
def test_a_written_pattern_reads_back(layers):
    assert layers_of(written(layers)) == layers_of(",".join(layers))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pattern": "3*(gdm+moe),attn+moe"}, "gdn"),
        ({"pattern": "3*(gdn+moe"}, "bracket"),
        ({"pattern": "2*gdn+moe", "layers": 48}, "layers"),
        ({"mtp_layers": 1, "mtp_pattern": "gdm+moe"}, "^model.mtp_pattern: .* nearest: gdn$"),
    ],
)
def test_a_wrong_pattern_gets_one_line(changes, said):
    spec = {"hf_config": str(HERE / "configs/qwen3-next-80b-a3b.json")} | changes
    with pytest.raises(DesignError, match=said) as error:
        build_model(spec)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("nemotron-3-nano-30b-a3b", {"ssm_state_size": 0}, "ssm_state_size: 0 .* nearest: 1$"),
        (
            "nemotron-3-nano-30b-a3b",
            {"n_groups": 7},
            "n_groups: 7 .*mamba_num_heads 64; nearest: 8$",
        ),
        ("nemotron-3-nano-30b-a3b", {"hybrid_override_pattern": "M-M*"}, "4 layers.* 52 layers"),
        (
            "qwen3-next-80b-a3b",
            {"linear_num_value_heads": 33},
            "linear_num_key_heads: 16 does not divide linear_num_value_heads 33.* nearest: 11$",
        ),
        ("gpt-oss-20b", {"sliding_window": 0}, "sliding_window: 0 .* at least 1"),
        ("lfm2-1.2b", {"conv_L_cache": 0}, "conv_L_cache: 0 .* nearest: 1$"),
    ],
)
def test_a_contradictory_config_gets_one_line_in_its_own_words(name, changes, said):
    with pytest.raises(DesignError, match=said) as error:
        read(name, **changes)
    assert "\n" not in str(error.value)


def test_letters_are_layers_and_an_unknown_one_is_named():
    """Nemotron-H (arXiv 2504.03624): M Mamba-2, - MLP, * attention, each a layer."""
    assert layers_of("M-M*") == (("mamba2",), ("mlp",), ("mamba2",), ("attn",))
    with pytest.raises(DesignError, match="no block with the letter Q"):
        layers_of("M-Q*")


def test_an_unknown_block_is_named():
    words = ["linear_attention", "retention"] * 24
    with pytest.raises(DesignError, match="retention.*not counted"):
        read("qwen3-next-80b-a3b", layer_types=words)
    assert "retention" not in COUNTED_AS


def test_windows_and_scans_make_long_sequences_cheap():
    """Per token at 131,072 against 8,192: the scan costs the same, full attention 16 times."""
    near, far = (causal_flops_per_token(read("mamba2-780m"), s) for s in (8192, 131072))
    assert near == far
    hybrid, plain = (read(name) for name in ("qwen3-next-80b-a3b", "glm-5"))
    assert flops_per_token(hybrid, 131072).total < 5 * flops_per_token(hybrid, 8192).total
    assert causal_flops_per_token(plain, 131072) < 1.2 * causal_flops_per_token(plain, 8192)


@pytest.mark.parametrize(
    ("plan", "law"),
    [
        ({"tp": 16}, "tp divides the heads and the groups"),  # 8 groups: mamba_mixer.py
        ({"tp": 8, "cp": 16}, "tp x cp divides the heads"),  # 64 heads: mamba_context_parallel.py
    ],
)
def test_groups_and_heads_of_a_scan_bound_the_plan(plan, law):
    """Megatron-LM asserts both of a hybrid's Mamba-2 layers."""
    design = {
        "model": "nemotron-3-nano-30b-a3b",
        "cluster": {"accelerator": "h100-sxm", "devices": 128},
        "job": {"tokens": 1e12, "seq_len": 8192, "global_batch": 512},
        "plan": plan,
    }
    with pytest.raises(DesignError) as error:
        sc.assess(design)
    assert law in str(error.value) and error.value.nearest == 8


def test_groups_of_a_pattern_may_stand_in_groups():
    """2 x (3 x (a, b), c) is written out by hand: six of a and of b, two of c."""
    nested = layers_of("2*(3*(mamba2,attn+mlp),moe)")
    assert nested == 2 * (3 * (("mamba2",), ("attn", "mlp")) + (("moe",),))
    assert layers_of("3*(2*attn)") == layers_of("6*attn")
    for pattern in ("2*(attn", "attn)", "(" * 200 + "attn" + ")" * 200, "(attn,mlp)+moe"):
        with pytest.raises(DesignError, match="brackets that do not match"):
            layers_of(pattern)
