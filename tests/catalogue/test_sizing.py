"""A shape from a size: near the size, near real models of that size, and nothing derived in
silence."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import example, given, settings, strategies as st
from scantling.base.errors import DesignError
from scantling.catalogue.models.entries import build_model, model
from scantling.catalogue.models.shape import Model, flops_per_token, parameters
from scantling.catalogue.models.sizing import from_size

SHAPE = (
    "layers",
    "hidden",
    "ffn_hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "vocab",
    "mlp",
    "attention",
    "tied_embeddings",
)
MOE = ("experts", "top_k", "expert_ffn_hidden", "moe_layers")
sizes = st.floats(8, 14).map(lambda e: 10**e)


def named(assumed):
    return {a.field.removeprefix("model.") for a in assumed}


@settings(max_examples=150, deadline=None)
@given(sizes, st.booleans())
def test_the_total_is_within_one_percent_and_every_derived_field_is_listed(size, moe):
    m, assumed = from_size(size, moe=moe)
    assert parameters(m).total == pytest.approx(size, rel=0.01)
    derived = set(SHAPE) - ({"ffn_hidden"} if moe else set()) | (set(MOE) if moe else set())
    assert named(assumed) == derived
    assert all(a.why for a in assumed)
    assert all(getattr(m, a.field.removeprefix("model.")) == a.value for a in assumed)
    assert m.hidden % 128 == 0
    assert m.heads * m.head_dim == m.hidden
    assert m.heads % m.kv_heads == 0
    if m.hidden >= 4096:  # tensor parallelism of 8 and pipelines of 4 come out even
        assert m.heads % 8 == 0
        assert m.layers % 4 == 0
    if moe:
        assert (m.experts, m.top_k, m.moe_layers) == (16, 2, m.layers)


@settings(max_examples=60, deadline=None)
@given(sizes, st.floats(1.03, 10), st.booleans())
def test_a_larger_size_is_a_larger_model(size, factor, moe):
    small, large = from_size(size, moe=moe)[0], from_size(size * factor, moe=moe)[0]
    assert parameters(large).total > parameters(small).total
    if factor > 1.5:
        assert parameters(large).active > parameters(small).active
        assert flops_per_token(large, 4096).total > flops_per_token(small, 4096).total


@settings(max_examples=80, deadline=None)
@given(st.floats(10, 13).map(lambda e: 10**e), st.floats(0.03, 0.5))
def test_a_given_active_count_is_met(size, share):
    m, assumed = from_size(size, active=share * size)
    p = parameters(m)
    assert p.total == pytest.approx(size, rel=0.01)
    assert p.active == pytest.approx(share * size, rel=0.02)
    assert {"experts", "top_k", "expert_ffn_hidden", "shared_ffn_hidden"} <= named(assumed)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([64, 80, 96, 120, 128]),
    st.floats(10.5, 12.5).map(lambda e: 10**e),
    st.booleans(),
)
def test_what_is_given_is_kept(layers, size, moe):
    m, assumed = from_size(size, layers=layers, moe=moe, vocab=50304)
    assert (m.layers, m.vocab) == (layers, 50304)
    assert not {"layers", "vocab"} & named(assumed)
    assert parameters(m).total == pytest.approx(size, rel=0.01)


def test_175b_moe_with_96_layers():
    m, assumed = build_model({"size": 175e9, "layers": 96, "moe": True})
    assert (m.layers, m.experts, m.top_k, m.moe_layers, m.shared_ffn_hidden) == (96, 16, 2, 96, 0)
    assert parameters(m).total == pytest.approx(175e9, rel=0.01)
    assert m.top_k * m.expert_ffn_hidden == pytest.approx(8 / 3 * m.hidden, rel=0.15)
    assert "layers" not in named(assumed)
    assert "hidden" in named(assumed)


@pytest.mark.parametrize(
    ("size", "real"),
    [
        (8.03e9, "llama-3.1-8b"),
        (70.55e9, "llama-3.1-70b"),
        (175e9, "gpt-3-175b"),
        (405.85e9, "llama-3.1-405b"),
    ],
)
def test_dense_shapes_are_like_the_published_ones(size, real):
    m, r = from_size(size)[0], model(real)
    assert m.layers == pytest.approx(r.layers, rel=0.2)
    assert m.hidden == pytest.approx(r.hidden, rel=0.2)
    assert flops_per_token(m, 8192).total == pytest.approx(flops_per_token(r, 8192).total, rel=0.05)


@pytest.mark.parametrize(
    ("size", "active", "real"),
    [(671e9, 37e9, "deepseek-v3"), (235e9, 22e9, "qwen3-235b-a22b"), (355e9, 32e9, "glm-4.5")],
)
def test_sparse_shapes_are_like_the_published_ones(size, active, real):
    m, r = from_size(size, active=active)[0], model(real)
    assert m.top_k == r.top_k
    assert 0.5 <= m.experts / r.experts <= 2
    assert 0.6 <= m.hidden / r.hidden <= 1.6
    assert 0.5 <= m.layers / r.layers <= 2
    assert flops_per_token(m, 4096).total == pytest.approx(flops_per_token(r, 4096).total, rel=0.25)


def test_any_one_sparse_field_makes_a_mixture():
    for given_fields in (
        {"experts": 64},
        {"top_k": 4},
        {"active": 13e9},
        {"moe": True},
        {"shared_ffn_hidden": 4096},
    ):
        m, _ = from_size(100e9, **given_fields)
        assert m.is_moe
        assert parameters(m).total == pytest.approx(100e9, rel=0.01)
    assert not from_size(100e9)[0].is_moe
    assert not from_size(100e9, active=100e9)[0].is_moe


def test_a_known_shape_is_found_again():
    m, assumed = from_size(70.55e9, layers=80, hidden=8192, heads=64, kv_heads=8, vocab=128256)
    assert m.ffn_hidden == 28672
    assert named(assumed) == {"head_dim", "ffn_hidden", "mlp", "attention", "tied_embeddings"}
    m, _ = from_size(
        671.03e9,
        active=37.55e9,
        layers=61,
        hidden=7168,
        experts=256,
        top_k=8,
        vocab=129280,
        attention="mla",
        heads=128,
    )
    assert m.kv_lora == 512
    assert m.expert_ffn_hidden == pytest.approx(2048, rel=0.06)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (dict(size=1e6), "size"),
        (dict(size=1e20), "size"),
        (dict(size=7e9, layers=96, hidden=12288), "size"),
        (dict(size=70e9, active=80e9), "active"),
        (dict(size=70e9, active=-1.0), "active"),
        (dict(size=100e9, active=5e9, experts=8), "active"),
        (dict(size=70e9, moe=False, experts=8), "experts"),
        (dict(size=70e9, experts=8, top_k=9), "top_k"),
        (dict(size=70e9, colour=1), "colour"),
        (dict(size=70e9, layers=80, hidden=8192, ffn_hidden=1024), "size"),
        (dict(size=70e9, moe_layers=999, layers=80), "moe_layers"),
        (dict(size=500e9, hidden=1), "layers"),
        (dict(size=70e9, mlp="silu"), "mlp"),
    ],
)
def test_contradictions_are_one_clear_refusal(spec, field):
    with pytest.raises(DesignError) as error:
        build_model(spec)
    assert error.value.field == field
    assert "\n" not in str(error.value)


def fields_of_a_spec(**more):
    choices = dict(
        layers=[1, 7, 96, 10000],
        hidden=[1, 1000, 4096, 10**6],
        ffn_hidden=[0, 4096],
        heads=[1, 3, 32, 10**5],
        kv_heads=[1, 8, 96],
        head_dim=[1, 128],
        vocab=[1, 128256, 10**8],
        mlp=["gelu", "swiglu"],
        attention=["mha", "gqa", "mqa", "mla"],
        tied_embeddings=[True, False],
        experts=[0, 1, 8, 10**5],
        top_k=[0, 1, 2, 300],
        expert_ffn_hidden=[0, 2048],
        shared_ffn_hidden=[0, 2048],
        moe_layers=[0, 1, 96],
        mtp_layers=[0, 1],
        kv_lora=[0, 512],
        windowed_layers=[0, 200],
        active=[1e3, 37e9],
        moe=[True, False],
    )
    whole = [f.name for f in dataclasses.fields(Model) if f.type == "int"]
    choices |= {name: [0, 1, 10**6] for name in whole if name not in choices}
    return st.fixed_dictionaries(
        more, optional={k: st.sampled_from(v) for k, v in choices.items() if k not in more}
    )


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(
        fields_of_a_spec(size=sizes),
        fields_of_a_spec(layers=st.just(32), hidden=st.just(4096), heads=st.just(32)),
        fields_of_a_spec(
            like=st.sampled_from(["llama-3.1-8b", "deepseek-v3", "gpt-oss-20b", "llama-4-maverick"])
        ),
    )
)
@example(dict(size=175e9, layers=96, moe=True, memory_blocks=10**6))
@example(dict(size=1e8, hidden=10**6, adapter_rank=0, memory_blocks=10**6))
@example(dict(size=1e13, ffn_hidden=0, hidden=1_000_000, moe_layers=96, active=1e3))
def test_any_mix_of_fields_is_a_model_or_one_line(spec):
    try:
        count = parameters(build_model(spec)[0]).total
    except DesignError as error:
        count, said = None, str(error)
    assert count is None or count > 0
    assert count is not None or ("\n" not in said and said.strip())
    if count is not None and "size" in spec:
        assert count == pytest.approx(spec["size"], rel=0.01)
