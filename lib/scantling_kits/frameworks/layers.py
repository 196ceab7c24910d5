"""Models with the layers that kits build: what of a model is left out or written another way."""

from dataclasses import replace

from scantling.catalogue.models.dimensions import GATED
from scantling.catalogue.models.shape import Model


def without_parts(m: Model) -> Model:
    """The model without the parts that no kit's own layers have."""
    return replace(
        m,
        relative_positions=False,
        embedding_norm=False,
        extras=0,
        extra_products=0,
        sinks=False,
        shared_gate=False,
        parallel_block=False,
        expert_bias=False,
        router_bias=False,
        norms_per_layer=2,
    )


def without_biases(m: Model) -> Model:
    """The model whose norms, attention, feed-forwards and head have weights alone."""
    return replace(
        m, norm_bias=False, qkv_bias=False, out_bias=False, mlp_bias=False, head_bias=False
    )


def gated(m: Model) -> Model:
    """SwiGLU of two thirds the width where the layers have two matrices (2 x h x f = 3 x h x 2f/3);
    what has three stays."""
    if m.mlp in GATED:
        return m
    return replace(
        m,
        mlp="swiglu",
        ffn_hidden=two_thirds(m.ffn_hidden),
        expert_ffn_hidden=two_thirds(m.expert_ffn_hidden),
        shared_ffn_hidden=two_thirds(m.shared_ffn_hidden),
    )


def two_thirds(width: int) -> int:
    """The multiple of 64 nearest to two thirds of a width."""
    return 64 * round(width / 96)
