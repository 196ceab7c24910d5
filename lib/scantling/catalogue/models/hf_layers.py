"""The layers of hybrids in a Hugging Face config: which block each has, and the
blocks' dimensions."""

from collections.abc import Hashable, Mapping, Sequence
from math import ceil
from typing import Any

from .architectures import Architecture
from .hf_reader import Reader
from .pattern_words import LETTERS, WORDS
from .patterns import written

OF_LETTERS = {name: key for key, word in WORDS.items() for name in word.names}


def pattern_fields(
    r: Reader, arch: Architecture, layers: int, hidden: int, moe: frozenset[int]
) -> dict[str, Any]:
    """Fields of `Model` of a hybrid: its pattern, and the dimensions of its blocks. Empty for what
    is no hybrid."""
    if not arch.mixer:
        return {}
    pattern, mtp = _patterns(r, arch, layers, moe)
    return {**arch.dimensions(r, hidden), "pattern": pattern, "mtp_pattern": mtp}


def _patterns(r: Reader, arch: Architecture, layers: int, moe: frozenset[int]) -> tuple[str, str]:
    """The pattern of the layers, and of an MTP module."""
    whole = _mixers(r, arch, layers)
    if arch.feed:
        both = "mlp+moe" if arch.experts and arch.experts.parallel_mlp else "moe"
        feeds = (both if i in moe else "mlp" for i in range(len(whole)))
        whole = [f"{mixer}+{feed}" for mixer, feed in zip(whole, feeds)]
    letters = r.get(*arch.mtp_letters)
    mtp = [whole[layers] if layers < len(whole) and arch.feed else whole[layers - 1]]
    if letters:
        known = LETTERS if isinstance(letters, str) else OF_LETTERS
        mtp = _of_words(r, arch.mtp_letters[0], letters, known)
    return written(whole[:layers]), ",".join(mtp)


def _mixers(r: Reader, arch: Architecture, layers: int) -> list[str]:
    """The mixer of each layer, and of those that the file lists behind them, its MTP layers."""
    letters = r.get(*arch.letters)
    if letters:
        known = LETTERS if isinstance(letters, str) else OF_LETTERS
        return _of_words(r, arch.letters[0], letters, known, layers)
    field = arch.word_lists[0]
    words = r.get(*arch.word_lists) if arch.words else None
    again = r.count("index_topk_freq") or 1  # layers that share a choice of keys
    if field == "indexer_types" and not words and again > 1:
        skipped = r.count("index_skip_topk_offset", least=0)
        ahead = (2 if skipped is None else skipped) - 1
        words = ["S" if max(i - ahead, 0) % again > 0 else "F" for i in range(layers)]
    if words:
        if field == "block_types":
            words = words * ceil(layers / len(words))
        return _of_words(r, field, words, arch.words, layers)
    return _listed(r, arch, layers)


def _listed(r: Reader, arch: Architecture, layers: int) -> list[str]:
    """The mixer of each layer by the lists of layer numbers, else by the architecture's period."""
    blocks = [arch.mixer] * layers
    listed = [(name, i, b) for name, b in arch.listed.items() for i in r.numbers(name)]
    for name, number, block in listed:
        if not 0 <= number - arch.listed_from < layers:
            raise r.wrong(name, number, f"layers up to {layers}")
        blocks[number - arch.listed_from] = block
    none_listed = any(r.config.get(name, 0) is None for name in arch.listed)
    if listed or none_listed:
        return blocks
    if arch.every:
        period = r.count(arch.every.field) or arch.every.period
        first = r.count(arch.every.offset, least=0)
        if first is None:
            first = period - 1
        for i in range(first, layers, period):
            blocks[i] = arch.every.block
    elif arch.words:
        allowed = "the block of each layer; it is not guessed"
        raise r.missing(arch.word_lists[0], allowed)
    return blocks


def _of_words(
    r: Reader, field: str, words: Sequence[Any], known: Mapping[Any, str], layers: int = 0
) -> list[str]:
    """The blocks that a list of words, or a text of letters, names: for `layers` layers or more;
    letters for as many."""
    if not isinstance(words, (str, list, tuple)):
        raise r.wrong(field, words, "a list, a block a layer")
    if len(words) < layers or (len(words) > layers > 0 and isinstance(words, str)):
        raise r.wrong(field, f"{len(words)} layers", f"{layers} layers")
    for word in words:
        if not isinstance(word, Hashable) or word not in known:
            raise r.wrong(field, word, list(known), "is a block that is not counted")
    return [known[word] for word in words]
