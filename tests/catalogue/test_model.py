"""Parameters and matrix products against published counts, papers' formulas and other people's
counters."""

from __future__ import annotations

import csv
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scantling.base.errors import DesignError
from scantling.catalogue.models.dimension_checks import check_model
from scantling.catalogue.models.dimensions import GATED
from scantling.catalogue.models.entries import build_model, entries, entry, model, models
from scantling.catalogue.models.hf import from_hf
from scantling.catalogue.models.shape import (
    Model,
    flops_per_token,
    make_shape,
    parameters,
    shape_of,
)

HF = Path(__file__).parents[1] / "published" / "hf"
PARTS = (
    "embedding",
    "lm_head",
    "attention",
    "mlp_dense",
    "shared_experts",
    "router",
    "routed_experts",
    "norms",
    "other",
)
FLOP_PARTS = (
    "attention_linear",
    "attention_scores",
    "mlp_dense",
    "shared_experts",
    "shared_gate",
    "router",
    "routed_experts",
    "lm_head",
)


def rows(name):
    with (HF / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("key", "count"),
    [
        # safetensors totals printed on the models' pages
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("mixtral-8x7b", 46_702_792_704),
        ("llama-2-70b", 68_976_648_192),
        ("qwen2.5-72b", 72_706_203_648),
        ("qwen3-235b-a22b", 235_093_634_560),
        ("gpt-oss-120b", 116_829_156_672),
        ("bloom-176b", 176_247_271_424),
    ],
)
def test_checkpoint_totals_are_met_to_the_last_parameter(key, count):
    assert parameters(model(key)).total == count


def test_deepseek_v3_with_and_without_what_is_not_a_parameter():
    m = model("deepseek-v3")
    p = parameters(m)
    assert p.total == 671_026_404_352  # transformers
    assert (
        p.total + m.router_buffers * m.experts * m.moe_layers == 671_026_419_200
    )  # the checkpoint's main model
    assert p.mtp == pytest.approx(
        11.5e9, rel=0.02
    )  # "11.5B unique parameters" in its notes on weights
    assert p.active == 37_552_282_624


@pytest.mark.parametrize("row", entries().values(), ids=lambda e: e.id)
def test_every_catalogue_row_meets_its_published_count(row):
    p = parameters(row.model)
    assert row.source
    assert row.date
    assert row.counted
    assert row.verified in ("text", "secondary", "memory", "derived")
    if row.params_tolerance == 0:
        assert p.total == row.published_params
    else:
        # 1 %, or half of the last printed digit where that is more ("1.7B")
        assert row.params_tolerance <= max(0.01, 0.05e9 / row.published_params * 1.01)
        assert p.total == pytest.approx(row.published_params, rel=row.params_tolerance)
    if row.published_active:
        assert p.active == pytest.approx(row.published_active, rel=row.active_tolerance or 1e-15)
    if row.model.is_moe:
        assert p.active < p.total


def test_the_catalogue_has_the_models_that_designs_name():
    assert len(models()) >= 60
    for key in (
        "gpt-3-175b",
        "megatron-22b",
        "megatron-1t",
        "palm-540b",
        "llama-3.1-70b",
        "mixtral-8x22b",
        "deepseek-v3",
        "qwen3-235b-a22b",
        "gpt-oss-120b",
        "nemotron-4-340b",
        "kimi-k2",
        "mt-nlg-530b",
        "llama-4-maverick",
    ):
        assert key in models()
    names = [a for e in entries().values() for a in (e.id, *e.aliases)]
    assert len(names) == len(set(names))
    assert all(n == n.lower() for n in names)
    assert model("Llama-3.1-405B ") is model("llama-3.1-405b") is model("llama3.1-405b")


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("lama-3.1-70b", "llama-3.1-70b"),
        ("deepseek-v3-670b", "deepseek-v3"),
        ("gpt3-175b", "gpt-3-175b"),
    ],
)
def test_a_misspelt_id_gets_the_nearest(word, near):
    with pytest.raises(DesignError) as error:
        entry(word)
    assert error.value.nearest == near
    assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_flops_equal_the_torch_counter_on_the_librarys_models():
    compared = 0
    for row in rows("flops.csv"):
        if row["grad_ckpt"] == "yes" or row["experts_impl"] == "grouped_mm":
            continue
        m, _, _ = from_hf(HF / "configs" / row["file"])
        cut = int(row["layers"])
        if cut < m.layers:
            m = replace(m, layers=cut, moe_layers=min(m.moe_layers, cut))
        f, tokens = flops_per_token(m, int(row["seq"])), int(row["tokens"])
        assert tokens * f.total == int(row["forward_backward"]), row["file"]
        for part, column in (
            ("attention_linear", "attn_linear"),
            ("attention_scores", "attn_scores"),
            ("mlp_dense", "mlp_dense"),
            ("shared_experts", "shared_experts"),
            ("shared_gate", "shared_expert_gate"),
            ("router", "router"),
            ("routed_experts", "routed_experts"),
            ("lm_head", "lm_head"),
        ):
            assert tokens * getattr(f, part) == 3 * int(row["fwd_" + column]), (row["file"], part)
        compared += 1
    assert compared == len([r for r in rows("flops.csv") if r["grad_ckpt"] == "no"]) - 2


@pytest.mark.parametrize(
    "key",
    [
        "megatron-22b",
        "megatron-175b",
        "megatron-530b",
        "megatron-1t",
        "megatron-145b",
        "gpt-3-175b",
    ],
)
def test_megatrons_formula(key):
    # Narayanan et al. 2021, equation 3, without the recomputed forward: 72 B s l h^2 (1 + s/6h +
    # V/12lh) per iteration
    m, s = model(key), 2048
    paper = (
        72
        * m.layers
        * m.hidden**2
        * (1 + s / (6 * m.hidden) + m.vocab / (12 * m.layers * m.hidden))
    )
    assert flops_per_token(m, s).total == pytest.approx(paper, rel=1e-12)


def test_megatrons_parameter_formula():
    # Narayanan et al. 2021, equation 2: P = 12 l h^2 (1 + 13/12h + (V + s)/12lh), which leaves the
    # final norm out
    for key in ("megatron-22b", "megatron-175b", "megatron-530b", "megatron-1t"):
        m = model(key)
        paper = (
            12
            * m.layers
            * m.hidden**2
            * (1 + 13 / (12 * m.hidden) + (m.vocab + 2048) / (12 * m.layers * m.hidden))
        )
        assert parameters(m).total - 2 * m.hidden == pytest.approx(paper, rel=1e-12)


@pytest.mark.parametrize("key", ["palm-8b", "palm-62b", "palm-540b"])
def test_palms_formula(key):
    # Chowdhery et al. 2022, appendix B: 6 N + 12 L H Q T; the tied table is the output head's
    # product, norms are no product
    m, s = model(key), 2048
    p = parameters(m)
    paper = 6 * (p.total - p.norms) + 12 * m.layers * m.heads * m.head_dim * s
    assert flops_per_token(m, s).total == paper


def test_llama_3_405b_flops_as_its_paper_totals_them():
    # Grattafiori et al. 2024: 3.8e25 FLOP on 15.6T tokens, at 8,192 tokens a sequence and causal
    # scores
    f = flops_per_token(model("llama-3.1-405b"), 8192)
    assert (f.total - f.attention_scores / 2) * 15.6e12 == pytest.approx(3.8e25, rel=0.05)


numbers = st.integers(1, 64)


@st.composite
def any_model(draw):
    head_dim, kv, group = (
        draw(st.sampled_from([32, 64, 96, 128])),
        draw(st.integers(1, 8)),
        draw(st.integers(1, 8)),
    )
    heads, layers, experts = (
        kv * group,
        draw(st.integers(1, 120)),
        draw(st.sampled_from([0, 0, 4, 16, 256])),
    )
    mla = draw(st.booleans())
    flags = {f.name: draw(st.booleans()) for f in fields(Model) if f.type == "bool"}
    return check_model(
        Model(
            name="any",
            layers=layers,
            hidden=64 * draw(numbers),
            ffn_hidden=64 * draw(numbers),
            heads=heads,
            kv_heads=kv,
            head_dim=head_dim,
            vocab=draw(st.integers(1, 300_000)),
            mlp=draw(st.sampled_from(["gelu", "swiglu", "geglu", "squared-relu"])),
            attention="mla" if mla else "gqa",
            experts=experts,
            top_k=min(experts, draw(st.integers(1, 8))),
            expert_ffn_hidden=64 * draw(numbers) if experts else 0,
            shared_ffn_hidden=64 * draw(st.integers(0, 8)) if experts else 0,
            moe_layers=draw(st.integers(1, layers)) if experts else 0,
            mtp_layers=draw(st.integers(0, 2)),
            q_lora=draw(st.sampled_from([0, 256])),
            kv_lora=512,
            qk_nope=128,
            qk_rope=64,
            v_head_dim=128,
            qk_norm=draw(st.sampled_from(["", "head", "width"])),
            norms_per_layer=draw(st.integers(0, 4)),
            position_rows=draw(st.sampled_from([0, 2048])),
            **flags,
        )
    )


def of_a_layer(m) -> tuple[int, int]:
    """(parameters of a dense layer, of one with experts) by the blocks of the model's table."""
    s = shape_of(m)

    def held(blocks, parts, times=lambda b: b.count > 0):
        return sum(times(b) * b.parameters().get(part, 0) for b in blocks for part in parts)

    mixer = held(s.of("mixer"), ("attention", "norms"), lambda b: b.count) // s.layers
    dense = sum(b.parameters()["mlp_dense"] for b in s.blocks if b.kind == "mlp")
    moe = held(s.of("moe"), ("shared_experts", "other", "router", "routed_experts"))
    return mixer + dense, mixer + moe


@settings(max_examples=60, deadline=None)
@given(any_model(), st.integers(1, 131072))
def test_parts_sum_and_order(m, seq_len):
    p, f = parameters(m), flops_per_token(m, seq_len)
    dense_layer, moe_layer = of_a_layer(m)
    assert (
        sum(getattr(p, part) for part in PARTS)
        == p.total
        == p.embedding + p.lm_head + p.non_embedding
    )
    assert 0 < p.active <= p.total
    assert (
        p.total
        == p.embedding
        + p.lm_head
        + m.dense_layers * dense_layer
        + m.moe_layers * moe_layer
        + sum(b.norms for b in shape_of(m).of("end") if b.kind in ("embedding", "head"))
    )
    assert sum(getattr(f, part) for part in FLOP_PARTS) == f.total
    assert parameters(replace(m, layers=m.layers + 1)).total == p.total + dense_layer
    assert flops_per_token(m, seq_len + 1).total > f.total
    vectors = "qkv_bias out_bias mlp_bias expert_bias sinks relative_positions router_scales"
    if not any(getattr(m, name) for name in vectors.split()):
        weights = (
            p.attention
            + p.mlp_dense
            + p.shared_experts
            + p.other
            + m.moe_layers * (m.hidden * m.experts + m.top_k * p.expert)
        )
        assert f.total == 6 * weights + f.attention_scores + 6 * m.vocab * m.hidden


@settings(max_examples=25, deadline=None)
@given(
    st.lists(any_model(), min_size=2, max_size=6),
    st.lists(st.integers(1, 131072), min_size=6, max_size=6),
)
def test_columns_equal_scalars(some, seq_lens):
    names = [
        f.name for f in fields(Model) if f.name not in ("name", "source", "seq_len", "moe_layout")
    ]
    shape = make_shape(**{n: np.array([getattr(m, n) for m in some]) for n in names})
    columns, flops = parameters(shape), flops_per_token(shape, np.array(seq_lens[: len(some)]))
    for i, (m, s) in enumerate(zip(some, seq_lens)):
        one, f = parameters(m), flops_per_token(m, s)
        for part in fields(one):
            value = np.broadcast_to(getattr(columns, part.name), len(some))[i]
            assert value == getattr(one, part.name)
            assert isinstance(getattr(one, part.name), int)
        for part in fields(f):
            assert np.broadcast_to(getattr(flops, part.name), len(some))[i] == getattr(f, part.name)


def test_a_nan_width_of_no_layers_counts_as_nothing():
    m = model("mixtral-8x7b")
    shape = make_shape(
        layers=np.array([32.0]),
        hidden=4096,
        ffn_hidden=np.array([np.nan]),
        heads=32,
        kv_heads=8,
        head_dim=128,
        vocab=32000,
        experts=8,
        top_k=2,
        expert_ffn_hidden=14336,
        moe_layers=np.array([32.0]),
    )
    assert parameters(shape).total[0] == parameters(m).total


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (dict(kv_heads=7), "kv_heads"),
        (dict(top_k=9), "top_k"),
        (dict(top_k=0), "top_k"),
        (dict(moe_layers=33), "moe_layers"),
        (dict(moe_layers=0), "moe_layers"),
        (dict(mlp="silu"), "mlp"),
        (dict(attention="full"), "attention"),
        (dict(expert_ffn_hidden=0), "expert_ffn_hidden"),
        (dict(hidden=0), "hidden"),
        (dict(windowed_layers=40, window=4096), "windowed_layers"),
        (dict(moe_layers=30), "ffn_hidden"),
        (dict(attention="mla"), "kv_lora"),
        (dict(vocab=-1), "vocab"),
    ],
)
def test_what_cannot_be_is_refused_by_name(change, field):
    with pytest.raises(DesignError) as error:
        check_model(replace(model("mixtral-8x7b"), **change))
    assert error.value.field == field
    assert "\n" not in str(error.value)


class TestTheModelField:
    def test_an_id(self):
        assert build_model("gpt-3-175b") == (model("gpt-3-175b"), ())

    def test_like_changes_what_follows(self):
        m, assumed = build_model({"like": "deepseek-v3", "layers": 30})
        assert (m.layers, m.moe_layers, m.experts) == (30, 27, 256)
        assert [(a.field, a.value) for a in assumed] == [("model.moe_layers", 27)]
        m, assumed = build_model({"like": "llama-3.1-70b", "layers": 96})
        p, base = parameters(m), parameters(model("llama-3.1-70b"))
        assert p.total == base.total + 16 * of_a_layer(model("llama-3.1-70b"))[0]
        assert not assumed
        m, assumed = build_model({"like": "llama-3.1-70b", "experts": 8})
        assert (m.experts, m.top_k, m.moe_layers, m.expert_ffn_hidden) == (8, 2, 80, 28672)
        assert len(assumed) == 3

    def test_a_config_beside_the_design(self):
        m, assumed = build_model({"hf_config": "configs/llama-3.1-8b.json"}, HF)
        assert parameters(m).total == 8_030_261_248
        m, _ = build_model({"hf_config": "configs/llama-3.1-8b.json", "layers": 16}, HF)
        assert m.layers == 16

    def test_a_shape_as_written_equals_the_row_it_spells(self):
        m, assumed = build_model(
            dict(
                layers=80,
                hidden=8192,
                ffn_hidden=28672,
                heads=64,
                kv_heads=8,
                head_dim=128,
                vocab=128256,
                mlp="swiglu",
                attention="gqa",
                tied_embeddings=False,
                experts=0,
                top_k=0,
                expert_ffn_hidden=0,
                shared_ffn_hidden=0,
                moe_layers=0,
                mtp_layers=0,
            )
        )
        assert parameters(m).total == 70_553_706_496
        assert not assumed

    def test_what_a_shape_leaves_out_is_listed(self):
        m, assumed = build_model(dict(layers=96, hidden=12288, heads=96, ffn_hidden=49152))
        assert (m.mlp, m.attention, m.kv_heads, m.head_dim, m.vocab) == (
            "gelu",
            "mha",
            96,
            128,
            128256,
        )
        assert {a.field for a in assumed} == {
            f"model.{f}"
            for f in ("head_dim", "kv_heads", "attention", "mlp", "vocab", "tied_embeddings")
        }
        m, assumed = build_model(
            dict(
                layers=61,
                hidden=7168,
                heads=128,
                ffn_hidden=18432,
                attention="mla",
                vocab=129280,
                mlp="swiglu",
                experts=256,
                top_k=8,
                expert_ffn_hidden=2048,
                shared_ffn_hidden=2048,
                moe_layers=58,
            )
        )
        assert parameters(m).total == 671_026_404_352
        assert {"model.q_lora", "model.kv_lora"} <= {a.field for a in assumed}

    @pytest.mark.parametrize(
        ("spec", "field"),
        [
            ({"layers": 2, "hidden": 100, "heads": 7}, "heads"),
            ({"hidden": 4096, "heads": 32}, "layers"),
            ({"like": "llama-3.1-8b", "size": 7e9}, "size"),
            ({"like": "llama-9"}, "like"),
            ({"like": "llama-3.1-8b", "heads": 30}, "kv_heads"),
            ({"layers": 2, "hidden": 128, "heads": 2, "active": 1e9}, "active"),
            ({"layers": 2, "hidden": 128, "heads": 2, "colour": 1}, "colour"),
            ({"hf_config": "nowhere.json"}, "hf_config"),
            (7, "model"),
            ({"layers": 2, "hidden": 128, "heads": 2, "attention": "gqa"}, "kv_heads"),
            (
                {
                    "layers": 4,
                    "hidden": 512,
                    "heads": 4,
                    "experts": 8,
                    "expert_ffn_hidden": 64,
                    "moe_layers": 9,
                },
                "moe_layers",
            ),
        ],
    )
    def test_refusals_name_the_field(self, spec, field):
        with pytest.raises(DesignError) as error:
            build_model(spec, HF)
        assert error.value.field == field
        assert "\n" not in str(error.value)


def test_gated_kinds_have_three_matrices():
    for kind in ("gelu", "squared-relu", "swiglu", "geglu"):
        m = replace(model("llama-3.1-8b"), mlp=kind)
        assert parameters(m).mlp_dense == 32 * (3 if kind in GATED else 2) * 4096 * 14336


def test_a_count_is_a_whole_number_of_python():
    """numpy's own have 32 bits in a browser (Pyodide), where 2^31 parameters are beyond them."""
    griffin = {"like": "llama-3.1-8b", "pattern": "16*(rglru+mlp,attn+mlp)", "lru_width": 4096}
    for spec in [*({"like": name} for name in models()), griffin]:
        counts = vars(parameters(build_model(spec)[0]))
        assert not [name for name, count in counts.items() if isinstance(count, np.generic)], spec
