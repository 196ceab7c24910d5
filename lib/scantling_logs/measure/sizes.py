"""What `measure` times, by kind of device."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from scantling.base.records import record
from scantling.catalogue.models.shape import Model

SMALLER = 32  # a side of a product of a model, on a processor


class Product(NamedTuple):
    """A matrix product of m x k by k x n."""

    m: int
    n: int
    k: int


class Attention(NamedTuple):
    """A forward pass of causal attention."""

    batch: int
    seq_len: int
    heads: int
    head_dim: int


class Block(NamedTuple):
    """A transformer layer and the tokens that pass it."""

    batch: int
    seq_len: int
    hidden: int
    heads: int


@record
class Sizes:
    """Sizes of all measurements on one kind of device."""

    precisions: tuple[str, ...]
    cubes: tuple[int, ...]  # m = n = k
    layers: tuple[Product, ...]  # the products of a model
    copies: tuple[int, ...]  # log2 of bytes
    attention: tuple[Attention, ...]
    backends: tuple[str, ...]  # of attention
    host: tuple[int, ...]  # log2 of bytes
    collectives: tuple[int, ...]  # log2 of bytes
    blocks: tuple[Block, ...]  # layers, forward and backward
    saves: tuple[int, ...]  # log2 of bytes

    @property
    def products(self) -> list[Product]:
        """All matrix products."""
        return [*(Product(n, n, n) for n in self.cubes), *self.layers]


CUDA = Sizes(
    precisions=("bf16", "fp16", "fp8"),
    cubes=(256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384),
    layers=(
        Product(2048, 1280, 8192),
        Product(2048, 8192, 1024),
        Product(2048, 7168, 8192),
        Product(2048, 8192, 3584),
        Product(2048, 32064, 8192),
        Product(8192, 1280, 8192),
        Product(8192, 8192, 1024),
        Product(8192, 7168, 8192),
        Product(8192, 8192, 3584),
        Product(8192, 32064, 8192),
    ),
    copies=(22, 24, 26, 28, 30, 32),
    attention=(
        Attention(8, 1024, 32, 128),
        Attention(4, 2048, 32, 128),
        Attention(2, 4096, 32, 128),
        Attention(1, 8192, 32, 128),
        Attention(1, 16384, 32, 128),
        Attention(4, 2048, 8, 128),
        Attention(4, 2048, 64, 64),
    ),
    backends=("flash", "cudnn"),
    host=(20, 24, 28, 30),
    collectives=(15, 17, 20, 22, 24, 26, 28, 30),
    blocks=(Block(1, 2048, 2048, 16), Block(1, 4096, 4096, 32), Block(1, 4096, 8192, 64)),
    saves=(30, 33),
)
CUDA_QUICK = replace(
    CUDA,
    cubes=(512, 1024, 2048, 4096, 8192),
    layers=(Product(8192, 8192, 1024), Product(8192, 3584, 8192)),
    copies=(26, 29),
    attention=(Attention(4, 2048, 32, 128), Attention(1, 8192, 32, 128)),
    host=(28,),
    collectives=(15, 20, 25, 28),
    blocks=(Block(1, 4096, 4096, 32),),
    saves=(30,),
)
CPU = Sizes(
    precisions=("bf16", "fp32"),
    cubes=(64, 96, 128, 192, 256, 384, 512, 768, 1024),
    layers=(Product(512, 256, 128),),
    copies=(20, 22, 24, 26, 27),
    attention=(
        Attention(1, 256, 2, 64),
        Attention(1, 512, 2, 64),
        Attention(1, 1024, 2, 64),
        Attention(1, 2048, 2, 64),
    ),
    backends=("flash",),
    host=(),
    collectives=(15, 18, 20, 22, 25),
    blocks=(Block(1, 128, 256, 4), Block(1, 512, 256, 4)),
    saves=(20, 24),
)
CPU_QUICK = replace(
    CPU,
    cubes=(64, 128, 256, 512),
    copies=(22, 26),
    attention=(Attention(1, 256, 2, 64), Attention(1, 1024, 2, 64)),
    collectives=(15, 20, 25),
    blocks=(Block(1, 128, 256, 4),),
    saves=(20,),
)


def sizes_of(cuda: bool, quick: bool) -> Sizes:
    """What is timed on a GPU or a CPU, all of it or in a minute."""
    if cuda:
        return CUDA_QUICK if quick else CUDA
    return CPU_QUICK if quick else CPU


def of_model(model: Model, tokens: float, tp: int) -> tuple[Product, ...]:
    """The products of a model's layers and head on one rank of tp, for the tokens of a micro-batch;
    of attention with compressed keys, and of experts, which are grouped, none."""
    gated = 2 if model.mlp in ("swiglu", "geglu") else 1
    t = max(int(tokens), 1)
    heads = model.heads * model.head_dim
    products = []
    if model.attention != "mla":
        keys = 2 * model.kv_heads * model.head_dim
        products.append(Product(t, (heads + keys) // tp, model.hidden))
        products.append(Product(t, model.hidden, heads // tp))
    if model.ffn_hidden:
        products.append(Product(t, gated * model.ffn_hidden // tp, model.hidden))
        products.append(Product(t, model.hidden, model.ffn_hidden // tp))
    products.append(Product(t, model.vocab // tp, model.hidden))
    return tuple(products)


def small(products: Sequence[Product]) -> tuple[Product, ...]:
    """Products of the same proportions that a processor makes in a blink: SMALLER a side."""
    return tuple(Product(*(max(side // SMALLER, 16) for side in p)) for p in products)
