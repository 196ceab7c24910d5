"""The words of patterns: which block each stands for, and what it asks of a model's dimensions."""

from collections.abc import Callable
from typing import TypedDict

from ...base.columns import Column
from ...base.records import Lines, record
from ...blocks.attention import Attention
from ...blocks.block import Block
from ...blocks.compressed import Compressed
from ...blocks.delta import GatedDelta, KimiDelta
from ...blocks.embedding import Embedding
from ...blocks.head import Head
from ...blocks.indexed import IndexedMla
from ...blocks.lightning import Lightning
from ...blocks.mamba1 import Mamba1
from ...blocks.mamba2 import Mamba2
from ...blocks.mla import Mla
from ...blocks.mlp import Bare, DenseMlpOfMoe, Mlp, Still
from ...blocks.mlstm import Mlstm
from ...blocks.moe import Moe
from ...blocks.residual import Stream
from ...blocks.rglru import RgLru
from ...blocks.rwkv4 import Rwkv4
from ...blocks.shared import SharedUse, SharedWeights
from ...blocks.shortconv import ShortConv
from ...blocks.window import Chunk, IndexedWindow, Window, WindowMla
from .dimensions import Dimensions

Build = Callable[[Dimensions, Column, Column], Block]  # of models, a count, and a layer's norms


class SoftmaxSizes(TypedDict):
    """What every attention with scores has."""

    count: Column
    hidden: Column
    norms: Column
    head_norm: Column
    width_norm: Column
    qkv_bias: Column
    out_bias: Column
    head_gate: Column
    width_gate: Column
    relative_positions: Column


class ScanSizes(TypedDict):
    """What every mixer with a state has."""

    count: Column
    hidden: Column
    conv: Column
    conv_bias: Column
    proj_bias: Column
    chunk: Column


class LatentSizes(TypedDict):
    """What every multi-head latent attention has."""

    heads: Column
    sinks: Column
    q_lora: Column
    kv_lora: Column
    qk_nope: Column
    qk_rope: Column
    v_head_dim: Column


def _softmax(m: Dimensions, count: Column, norms: Column) -> SoftmaxSizes:
    return SoftmaxSizes(
        count=count,
        hidden=m.hidden,
        norms=norms,
        head_norm=m.head_norm,
        width_norm=m.width_norm,
        qkv_bias=m.qkv_bias,
        out_bias=m.out_bias,
        head_gate=m.head_gate,
        width_gate=m.width_gate,
        relative_positions=m.relative_positions,
    )


def _scan(m: Dimensions, count: Column) -> ScanSizes:
    return ScanSizes(
        count=count,
        hidden=m.hidden,
        conv=m.conv,
        conv_bias=m.conv_bias,
        proj_bias=m.proj_bias,
        chunk=m.chunk,
    )


def _latent(m: Dimensions) -> LatentSizes:
    return LatentSizes(
        heads=m.heads,
        sinks=m.sinks,
        q_lora=m.q_lora,
        kv_lora=m.kv_lora,
        qk_nope=m.qk_nope,
        qk_rope=m.qk_rope,
        v_head_dim=m.v_head_dim,
    )


def attention(m: Dimensions, count: Column, norms: Column) -> Attention:
    return Attention(
        **_softmax(m, count, norms),
        heads=m.heads,
        kv_heads=m.kv_heads,
        head_dim=m.head_dim,
        v_dim=m.v_dim,
        sinks=m.sinks,
        shared_kv=m.shared_kv,
    )


def window(m: Dimensions, count: Column, norms: Column) -> Window:
    return Window(
        **_softmax(m, count, norms),
        heads=m.local_heads,
        kv_heads=m.local_kv_heads,
        head_dim=m.local_head_dim,
        v_dim=m.v_dim,
        sinks=m.local_sinks,
        window=m.window,
    )


def chunk(m: Dimensions, count: Column, norms: Column) -> Chunk:
    return Chunk(
        **_softmax(m, count, norms),
        heads=m.local_heads,
        kv_heads=m.local_kv_heads,
        head_dim=m.local_head_dim,
        v_dim=m.v_dim,
        sinks=m.local_sinks,
        window=m.window,
    )


def block_sparse(m: Dimensions, count: Column, norms: Column) -> IndexedWindow:
    return IndexedWindow(
        **_softmax(m, count, norms),
        heads=m.heads,
        kv_heads=m.kv_heads,
        head_dim=m.head_dim,
        v_dim=m.v_dim,
        sinks=m.sinks,
        window=m.index_topk,
        index_heads=m.index_heads,
        index_dim=m.index_dim,
    )


def shared_use(m: Dimensions, count: Column, norms: Column) -> SharedUse:
    return SharedUse(
        **_softmax(m, count, norms),
        heads=m.heads,
        kv_heads=m.kv_heads,
        head_dim=m.head_dim,
        v_dim=m.v_dim,
        sinks=m.sinks,
        width=m.ffn_hidden,
        matrices=m.matrices,
        rank=m.adapter_rank,
        attention_adapter=m.attention_adapter,
    )


def mla(m: Dimensions, count: Column, norms: Column) -> Mla:
    return Mla(**_softmax(m, count, norms), **_latent(m))


def window_mla(m: Dimensions, count: Column, norms: Column) -> WindowMla:
    return WindowMla(**_softmax(m, count, norms), **_latent(m), window=m.window)


def indexed_mla(m: Dimensions, count: Column, norms: Column) -> IndexedMla:
    return IndexedMla(
        **_softmax(m, count, norms),
        **_latent(m),
        index_heads=m.index_heads,
        index_dim=m.index_dim,
        index_topk=m.index_topk,
    )


def indexed_mla_again(m: Dimensions, count: Column, norms: Column) -> IndexedMla:
    """Keys as an earlier layer chose them."""
    return IndexedMla(
        **_softmax(m, count, norms),
        **_latent(m),
        index_heads=m.index_heads,
        index_dim=m.index_dim,
        index_topk=m.index_topk,
        indexed=0,
    )


def _compressed(
    m: Dimensions, count: Column, norms: Column, ratio: Column, picked: Column
) -> Compressed:
    return Compressed(
        **_softmax(m, count, norms),
        heads=m.heads,
        head_dim=m.head_dim,
        sinks=m.sinks,
        q_lora=m.q_lora,
        o_lora=m.o_lora,
        o_groups=m.o_groups,
        window=m.window,
        ratio=ratio,
        picked=picked,
        index_heads=m.index_heads,
        index_dim=m.index_dim,
        index_topk=m.index_topk,
    )


def compressed_window(m: Dimensions, count: Column, norms: Column) -> Compressed:
    return _compressed(m, count, norms, ratio=0, picked=0)


def compressed_by_4(m: Dimensions, count: Column, norms: Column) -> Compressed:
    return _compressed(m, count, norms, ratio=4, picked=1)


def compressed_by_128(m: Dimensions, count: Column, norms: Column) -> Compressed:
    return _compressed(m, count, norms, ratio=128, picked=0)


def mamba1(m: Dimensions, count: Column, norms: Column) -> Mamba1:
    return Mamba1(
        **_scan(m, count),
        d_inner=m.d_inner,
        state_size=m.state_size,
        dt_rank=m.dt_rank,
        inner_norms=m.inner_norms,
    )


def mamba2(m: Dimensions, count: Column, norms: Column) -> Mamba2:
    return Mamba2(
        **_scan(m, count),
        heads=m.ssm_heads,
        head_dim=m.ssm_head_dim,
        state_size=m.state_size,
        groups=m.groups,
        gated_norm=m.gated_norm,
    )


def gated_delta(m: Dimensions, count: Column, norms: Column) -> GatedDelta:
    return GatedDelta(
        **_scan(m, count),
        k_heads=m.lin_k_heads,
        v_heads=m.lin_v_heads,
        k_dim=m.lin_k_dim,
        v_dim=m.lin_v_dim,
    )


def kimi_delta(m: Dimensions, count: Column, norms: Column) -> KimiDelta:
    return KimiDelta(
        **_scan(m, count),
        k_heads=m.lin_v_heads,
        v_heads=m.lin_v_heads,
        k_dim=m.lin_v_dim,
        v_dim=m.lin_v_dim,
        full_gates=m.full_gates,
        full_decay=m.full_decay,
    )


def lightning(m: Dimensions, count: Column, norms: Column) -> Lightning:
    return Lightning(**_scan(m, count), heads=m.lin_v_heads, head_dim=m.lin_v_dim)


def rglru(m: Dimensions, count: Column, norms: Column) -> RgLru:
    return RgLru(**_scan(m, count), lru_width=m.lru_width, heads=m.heads)


def rwkv4(m: Dimensions, count: Column, norms: Column) -> Rwkv4:
    return Rwkv4(**_scan(m, count), width=m.lru_width)


def mlstm(m: Dimensions, count: Column, norms: Column) -> Mlstm:
    return Mlstm(**_scan(m, count), heads=m.lin_v_heads, k_dim=m.lin_k_dim, v_dim=m.lin_v_dim)


def shortconv(m: Dimensions, count: Column, norms: Column) -> ShortConv:
    return ShortConv(**_scan(m, count))


def mlp(m: Dimensions, count: Column, norms: Column) -> Mlp:
    return Mlp(
        count=count,
        hidden=m.hidden,
        width=m.ffn_hidden,
        matrices=m.matrices,
        bias=m.mlp_bias,
        parallel=m.parallel_block,
    )


def dense_of_moe(m: Dimensions, count: Column, norms: Column) -> DenseMlpOfMoe:
    return DenseMlpOfMoe(
        count=count,
        hidden=m.hidden,
        width=m.ffn_hidden,
        matrices=m.matrices,
        bias=m.mlp_bias,
        parallel=m.parallel_block,
    )


def moe(m: Dimensions, count: Column, norms: Column) -> Moe:
    return Moe(
        count=count,
        hidden=m.hidden,
        experts=m.experts,
        top_k=m.top_k,
        width=m.expert_ffn_hidden,
        shared_width=m.shared_ffn_hidden,
        matrices=m.matrices,
        shared_gate=m.shared_gate,
        expert_bias=m.expert_bias,
        shared_bias=m.mlp_bias,
        router_bias=m.router_bias,
        router_scales=m.router_scales,
        latent=m.latent,
        latent_norm=m.latent_norm,
        zero_experts=m.zero_experts,
        parallel=m.parallel_block,
    )


def still(m: Dimensions, count: Column, norms: Column) -> Still:
    return Still(count=count, hidden=m.hidden)


def bare(m: Dimensions, count: Column, norms: Column) -> Bare:
    return Bare(count=count, hidden=m.hidden)


def embedding(m: Dimensions) -> Embedding:
    return Embedding(
        count=1,
        hidden=m.hidden,
        vocab=m.vocab,
        positions=m.position_rows,
        norms=m.embedding_norms,
        extras=m.extras,
        extra_products=m.extra_products,
    )


def head(m: Dimensions) -> Head:
    return Head(
        count=1,
        hidden=m.hidden,
        vocab=m.vocab,
        tied=m.tied_embeddings,
        bias=m.head_bias,
        norms=m.final_norms,
    )


def stream(m: Dimensions, count: Column) -> Stream:
    """What stands in layers beside their blocks."""
    return Stream(
        count=count,
        hidden=m.hidden,
        norms=m.layer_norms,
        copies=m.hyper_connections,
        mixed=m.hyper_mixed,
    )


def gather(m: Dimensions) -> Stream:
    """What gathers the copies of the stream before the head."""
    return Stream(count=1, hidden=m.hidden, norms=0, copies=m.hyper_connections, ends=1)


def shared_weights(m: Dimensions) -> SharedWeights:
    return SharedWeights(
        count=m.memory_blocks, hidden=m.hidden, width=m.ffn_hidden, matrices=m.matrices
    )


@record
class Word:
    """One word: what builds its blocks, and what is asked of the fields of a model that has it."""

    build: Build
    attends: bool = False  # with scores of queries and keys
    slides: bool = False  # over a window
    in_patterns: bool = True  # false: no word that a pattern may use
    needs: Lines = ()  # fields without which it has no shape
    split: Lines = ()  # fields that tp has to divide
    swapped: Lines = ()  # fields that tp x cp has to, where the whole sequence passes a scan
    letter: str = ""  # Nemotron's
    names: Lines = ()  # what lists of layers in configs call it


_COMPRESSED = ("window", "q_lora", "o_lora", "o_groups")
_INDEXER = ("index_heads", "index_dim", "index_topk")
WORDS: dict[str, Word] = {
    "attn": Word(build=attention, attends=True, letter="*", names=("attention", "full_attention")),
    "mla": Word(build=mla, attends=True),
    "local": Word(build=window, attends=True, slides=True, needs=("window",)),
    "chunk": Word(build=chunk, attends=True, slides=True, needs=("window",)),
    "attn_blocksparse": Word(build=block_sparse, attends=True, needs=_INDEXER),
    "shared": Word(build=shared_use, attends=True, needs=("memory_blocks", "ffn_hidden")),
    "mamba1": Word(
        build=mamba1,
        needs=("state_size", "d_inner", "dt_rank", "conv"),
        split=("d_inner",),
        swapped=("d_inner",),
    ),
    "mamba2": Word(
        build=mamba2,
        needs=("state_size", "ssm_heads", "ssm_head_dim", "groups", "conv", "chunk"),
        split=("ssm_heads", "groups"),
        swapped=("ssm_heads",),
        letter="M",
        names=("mamba", "linear_attention"),
    ),
    "gdn": Word(
        build=gated_delta,
        needs=("lin_k_heads", "lin_v_heads", "lin_k_dim", "lin_v_dim", "conv", "chunk"),
        split=("lin_k_heads", "lin_v_heads"),
        swapped=("lin_k_heads", "lin_v_heads"),
    ),
    "kda": Word(
        build=kimi_delta,
        needs=("lin_v_heads", "lin_v_dim", "conv", "chunk"),
        split=("lin_v_heads",),
        swapped=("lin_v_heads",),
    ),
    "lightning": Word(
        build=lightning, needs=("lin_v_heads", "lin_v_dim", "chunk"), split=("lin_v_heads",)
    ),
    "rglru": Word(
        build=rglru, needs=("lru_width", "conv"), split=("lru_width",), swapped=("lru_width",)
    ),
    "rwkv4": Word(build=rwkv4, needs=("lru_width",), split=("lru_width",), swapped=("lru_width",)),
    "mlstm": Word(
        build=mlstm,
        needs=("lin_v_heads", "lin_k_dim", "lin_v_dim", "chunk"),
        split=("lin_v_heads",),
        swapped=("lin_v_heads",),
    ),
    "shortconv": Word(build=shortconv, needs=("conv",)),
    "mla_dsa": Word(build=indexed_mla, attends=True, needs=_INDEXER),
    "mla_dsa_shared": Word(build=indexed_mla_again, attends=True, needs=("index_topk",)),
    "win": Word(build=compressed_window, attends=True, slides=True, needs=_COMPRESSED),
    "csa4": Word(build=compressed_by_4, attends=True, needs=_COMPRESSED + _INDEXER),
    "hca128": Word(build=compressed_by_128, attends=True, needs=_COMPRESSED),
    "mlp": Word(build=mlp, letter="-", names=("mlp",)),
    "moe": Word(
        build=moe, needs=("experts", "top_k", "expert_ffn_hidden"), letter="E", names=("moe",)
    ),
    "local_mla": Word(build=window_mla, attends=True, in_patterns=False),
    # an MLP in a layer that has experts too, no mixer, no feed-forward
    "beside": Word(build=dense_of_moe, in_patterns=False),
    "still": Word(build=still, in_patterns=False),
    "bare": Word(build=bare, in_patterns=False),
}
ALIASES = {"attn_nope": "attn", "local96": "local", "hashmoe": "moe", "latentmoe": "moe"}
ATTENDING = frozenset(name for name, word in WORDS.items() if word.attends)
SLIDING = tuple(name for name, word in WORDS.items() if word.slides)
LETTERS = {word.letter: name for name, word in WORDS.items() if word.letter}
# what a pattern may use, and what it is counted as
COUNTED_AS = {name: name for name, word in WORDS.items() if word.in_patterns} | ALIASES
