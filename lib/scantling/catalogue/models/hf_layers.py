"""The layers of hybrids in a Hugging Face config: which block each has, and the blocks' dimensions,
by the entries of architectures.yaml."""

from math import ceil

from .architectures import Architecture
from .kinds import LETTERS, WORDS
from .patterns import written

OF_LETTERS = {name: key for key, word in WORDS.items() for name in word.names}


def pattern_fields(r, arch: Architecture, layers: int, hidden: int, moe) -> dict:
    """Fields of `Model` of a hybrid: its pattern, and the dimensions of its blocks. Empty for what
    is no hybrid."""
    if not arch.mixer:
        return {}
    pattern = _pattern(r, arch, layers, moe)
    fields = {**arch.fixed, **{name: r.flag(flag) for name, flag in arch.switches.items()}}
    known = {"hidden": hidden}
    for name, names in arch.sizes.items():
        known[name] = r.size(arch, names, known, name, least=0)
    fields |= {k: v for k, v in known.items() if k in arch.sizes and not k.startswith("_")}
    return fields | pattern


def _pattern(r, arch, layers, moe) -> dict:
    mixers = _mixers(r, arch, layers)
    both = "mlp+moe" if arch.moe and arch.moe.beside else "moe"
    feeds = [f"+{both if i in moe else 'mlp'}" * arch.feed for i in range(len(mixers))]
    whole = [mixer + feed for mixer, feed in zip(mixers, feeds)]
    letters = r.get(*arch.mtp_letters)
    mtp = [whole[layers] if layers < len(whole) and arch.feed else whole[layers - 1]]
    if letters:
        mtp = _of_words(r, arch.mtp_letters[0], letters, LETTERS)
    return {"pattern": written(whole[:layers]), "mtp_pattern": ",".join(mtp)}


def _mixers(r, arch, layers) -> list:
    """The mixer of each layer, and of those that the file lists behind them, its MTP layers."""
    letters = r.get(*arch.letters)
    field = arch.word_lists[0]
    if letters:
        return _of_words(
            r, arch.letters[0], letters, LETTERS if isinstance(letters, str) else OF_LETTERS, layers
        )
    words = r.get(*arch.word_lists) if arch.words else None
    again = r.count("index_topk_freq") or 1  # layers that share a choice of keys
    if field == "indexer_types" and not words and again > 1:
        skipped = r.count("index_skip_topk_offset", least=0)
        ahead = (2 if skipped is None else skipped) - 1
        words = ["FS"[max(i - ahead, 0) % again > 0] for i in range(layers)]
    if words:
        words = words * (ceil(layers / len(words)) if field == "block_types" else 1)
        return _of_words(r, field, words, arch.words, layers)
    listed = [
        (name, i - arch.listed_from, b) for name, b in arch.listed.items() for i in r.numbers(name)
    ]
    if arch.words and not listed and not arch.every:
        raise r.error(field, allowed="the block of each layer; it is not guessed")
    found = [arch.mixer] * layers
    for name, i, block in listed:
        if not 0 <= i < layers:
            raise r.error(name, i + arch.listed_from, allowed=f"layers up to {layers}")
        found[i] = block
    if arch.every and not listed:
        field, usual, start, block = arch.every
        period = r.count(field) or usual
        offset = r.count(start, least=0) if isinstance(start, str) else None
        first = period - 1 if offset is None else offset
        found[first::period] = [block] * len(found[first::period])
    return found


def _of_words(r, field, words, known, layers=0) -> list:
    """The blocks that a list of words, or a text of letters, names: for `layers` layers or more;
    letters for as many."""
    if len(words) < layers or (len(words) > layers > 0 and isinstance(words, str)):
        raise r.error(field, f"{len(words)} layers", allowed=f"{layers} layers")
    for word in words:
        if word not in known:
            raise r.error(
                field, word, allowed=list(known), problem="is a block that is not counted"
            )
    return [known[word] for word in words]
