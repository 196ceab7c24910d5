"""Encoders, and decoders of encoder-decoders, that a file makes decoders of their own
(is_decoder); as in `architectures_dense`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .architectures import Architecture, Extras, Refusal
from .hf_reader import Reader, Switch


def _second_bias(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """A head of its own has its bias twice: the layer's and one beside it."""
    return Extras(0 if shape["tied_embeddings"] else shape["vocab"])


def _bert_ends(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Rows of kinds of segments; a product, its bias and a norm before the head."""
    hidden = shape["hidden"]
    kinds = r.count("type_vocab_size", least=0) or 0
    tasks = r.count("task_type_vocab_size") if r.flag(Switch("use_task_id")) else 0
    ends = hidden * hidden + 3 * hidden + _second_bias(r, shape).weights
    return Extras((kinds + (tasks or 0)) * hidden + ends, hidden * hidden)


def _pooled_ends(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """BERT's, and a pooler of the first token that the next token does not need."""
    hidden = shape["hidden"]
    ends = _bert_ends(r, shape)
    return Extras(ends.weights + hidden * hidden + hidden, ends.products)


def _table_of_rotations(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """BERT's, and the rotations of positions, which the library keeps as a weight."""
    rows = r.size(("max_position_embeddings",))
    ends = _bert_ends(r, shape)
    return Extras(ends.weights + rows * shape["head_dim"], ends.products)


def _signs(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """BERT's, and tables of how a sign sounds and looks, brought to the stream's width together
    with its word (RoCBertEmbeddings)."""
    hidden = shape["hidden"]
    weights, products = _bert_ends(r, shape)
    width = hidden
    for switch, size, rows in (
        ("enable_pronunciation", "pronunciation_embed_dim", "pronunciation_vocab_size"),
        ("enable_shape", "shape_embed_dim", "shape_vocab_size"),
    ):
        weights += r.size((rows,)) * r.size((size,))
        if r.flag(Switch(switch, usual=True)):
            width += r.size((size,))
    if not r.flag(Switch("concat_input", usual=True)):
        return Extras(weights, products)
    return Extras(weights + width * hidden + hidden, products + width * hidden)


def _languages(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """BERT's, and in each layer a pair of products with biases for every language, one of which a
    token passes (XmodAdapter)."""
    hidden, layers = shape["hidden"], shape["layers"]
    ends = _bert_ends(r, shape)
    width = hidden // r.size(("adapter_reduction_factor",))
    norm = 2 * hidden if r.flag(Switch("adapter_layer_norm")) else 0
    languages = len(r.get("languages") or ())
    one = 2 * hidden * width
    weights = layers * (languages * (one + width + hidden) + norm)
    return Extras(ends.weights + weights, ends.products + layers * one)


# Vaswani et al. 2017 (arXiv 1706.03762) with learned positions: norms after each block, biases
# everywhere, a two-product MLP, the table of tokens as the head
AFTER_NORM = Architecture(
    model_type="after-norm",
    kv_heads=(),
    head_dim=(),
    tied=True,
    gated=False,
    activation_class="gelu",
    norm_bias=True,
    final_norm=False,
    embedding_norm=True,
    qkv_bias=True,
    out_bias=True,
    mlp_bias=True,
    positions=("max_position_embeddings",),
)
BERT = replace(AFTER_NORM, model_type="bert", head_bias=True, extras=_bert_ends)
MEGATRON_BERT = replace(BERT, model_type="megatron-bert", embedding_norm=False, final_norm=True)


def _idle_attention(r: Reader, shape: Mapping[str, Any]) -> Extras:
    """Attention to an encoder in each layer, with its norm: a decoder alone keeps its weights and
    never runs it."""
    hidden, biases = shape["hidden"], 4 if shape["qkv_bias"] else 0
    return Extras(shape["layers"] * hidden * (4 * hidden + biases + 2))


BART = replace(
    AFTER_NORM,
    model_type="bart",
    layers=("decoder_layers",),
    hidden=("d_model",),
    heads=("decoder_attention_heads",),
    ffn=("decoder_ffn_dim",),
    positions_extra=2,
    extras=_idle_attention,
)
BLENDERBOT = replace(
    BART, model_type="blenderbot", positions_extra=0, embedding_norm=False, final_norm=True
)
AS_DECODERS = {
    each.model_type: each
    for each in (
        BERT,
        replace(BERT, model_type="bert-generation", extras=_second_bias),
        replace(BERT, model_type="big_bird", extras=_pooled_ends),
        replace(BERT, model_type="camembert"),
        replace(BERT, model_type="data2vec-text"),
        replace(BERT, model_type="ernie"),
        MEGATRON_BERT,
        replace(BERT, model_type="roberta"),
        replace(BERT, model_type="roberta-prelayernorm", final_norm=True),
        replace(BERT, model_type="roc_bert", extras=_signs),
        replace(
            BERT,
            model_type="roformer",
            positions=(),
            extras=_table_of_rotations,
            refuse=(
                Refusal("embedding_size", (None,), "a projected embedding", same_as="hidden_size"),
            ),
        ),
        replace(BERT, model_type="xlm-roberta"),
        replace(MEGATRON_BERT, model_type="xlm-roberta-xl"),
        replace(BERT, model_type="xmod", extras=_languages),
        BART,
        BLENDERBOT,
        replace(
            BART,
            model_type="bigbird_pegasus",
            positions_extra=0,
            tie_heeded=False,
            qkv_bias=Switch("use_bias"),
            out_bias=Switch("use_bias"),
        ),
        replace(BART, model_type="blenderbot-small", positions_extra=0),
        replace(
            BART,
            model_type="marian",
            vocab=("decoder_vocab_size", "vocab_size"),
            positions_extra=0,
            embedding_norm=False,
        ),
        replace(BART, model_type="mbart", final_norm=True),
        replace(BART, model_type="mvp"),
        replace(BLENDERBOT, model_type="pegasus"),
        replace(BART, model_type="plbart"),
        replace(
            BART,
            model_type="trocr",
            refuse=(
                Refusal("layernorm_embedding", (True, None), "a table without its norm"),
                Refusal(
                    "use_learned_position_embeddings",
                    (True, None),
                    "sines of positions, which the library keeps otherwise",
                ),
            ),
        ),
    )
}
