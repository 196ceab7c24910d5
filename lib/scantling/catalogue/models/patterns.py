"""Patterns: which blocks the layers of a model have, in their order.

`n*x` repeats a layer, `n*(a,b)` a group, `,` follows; `mixer+ffn` is one layer, `|` side by side,
`>` before; `shared(attn+mlp)` runs one set of weights at several places. Nemotron's letters, a
layer each, are read too: M Mamba-2, * attention, - MLP, E experts.
"""

import re
from collections import Counter
from functools import cache
from itertools import chain, cycle
from math import gcd

import numpy as np

from ...base.errors import DesignError, closest
from ...base.records import Lines
from .kinds import attending, words, words_that

MOST_LAYERS = 10_000
WORDS = {w: row.get("as", w) for w, row in words().items() if "inside" not in row}
SLIDING = tuple(words_that("slides"))
LETTERS = {letter: word for word, letter in words_that("letter").items()}
_SHARED = re.compile(r"shared\([^()]*\)")


_GROUP = re.compile(r"(?<![^,(])(?:(\d+)\*)?\(([^()]*)\)(?![^,)])")


def wrong(pattern, problem: str, allowed, nearest=None):
    """The refusal of a pattern."""
    return DesignError("model.pattern", pattern, allowed, nearest, problem=problem)


@cache
def layers_of(pattern: str) -> tuple:
    """The layers of a pattern in order, each the blocks in it. Raises DesignError."""
    if not re.search("[a-z0-9(,]", pattern):
        for letter in sorted({*pattern} - {*LETTERS}):
            raise wrong(pattern, f"has no block with the letter {letter}", list(LETTERS))
        return tuple((LETTERS[letter],) for letter in pattern)
    text = _SHARED.sub("shared", re.sub(r"\s", "", pattern))
    text = re.sub(r"\(([^(),]*)\)", r"\1", text)

    def repeated(times, of, room=MOST_LAYERS):
        if times and int(times) < 1:
            raise wrong(pattern, "repeats a layer 0 times", "n of at least 1 in n*", 1)
        if int(times or 1) * len(of) > room:
            raise wrong(pattern, "has too many layers", f"at most {MOST_LAYERS:,}")
        return of * int(times or 1)

    groups = 1
    while groups:
        text, groups = _GROUP.subn(lambda m: ",".join(repeated(m[1], m[2].split(","))), text)
    if set(text) & set("()"):
        raise wrong(pattern, "has brackets that do not match", "n*(a,b) groups")
    found = []
    for layer in text.removesuffix(",").split(","):
        times, word = re.match(r"(?:(\d+)\*)?(.*)", layer).groups()
        found += repeated(times, [_layer(word, pattern)], MOST_LAYERS - len(found))
    return tuple(found)


def _layer(word: str, pattern: str) -> Lines:
    blocks = tuple(re.split(r"[+|>]", word))
    for block in blocks:
        if block not in WORDS:
            problem = f"has no block named {block!r}" if block else "has an empty layer"
            raise wrong(pattern, problem, list(WORDS), closest(block, WORDS))
    return blocks


def counts(pattern) -> dict:
    """How often a model, or each of a column, has each block of its pattern."""
    if isinstance(pattern, str):
        return _counts(pattern)
    names, rows = np.unique(np.asarray(pattern, dtype=str), return_inverse=True)
    each = [_counts(str(name)) for name in names]
    every = dict.fromkeys(key for one in each for key in one)
    return {key: np.array([one.get(key, 0) for one in each])[rows] for key in every}


def _mixers(pattern: str) -> tuple:
    """How many layers have each word that mixes tokens: those that attend to everything, and the
    others, each in the order in which they stand."""
    whole = Counter()
    others = Counter()
    everything = attending() - {*SLIDING}
    for word in chain(*layers_of(pattern)):
        if WORDS[word] not in ("mlp", "moe"):
            (whole if WORDS[word] in everything else others)[word] += 1
    return whole, others


def attention_every(pattern: str) -> int:
    """Of so many layers that mix tokens one attends to everything; 0 where all do, none does, or a
    layer mixes twice."""
    whole, others = (found.total() for found in _mixers(pattern))
    once = whole + others <= len(layers_of(pattern))
    return round(1 + others / whole) if whole and others and once else 0


def attending_every(pattern: str, every: int) -> str:
    """The layers of a pattern with attention to everything in the last of every so many that mix
    tokens, in the others what most of them have. Raises DesignError."""
    if not attention_every(pattern):
        allowed = "a model some of whose layers have another mixer than attention"
        raise DesignError("attention_every", every, allowed)
    whole, others = _mixers(pattern)
    (full, _), (usual, _) = (found.most_common(1)[0] for found in (whole, others))
    laid = cycle([usual] * (every - 1) + [full])
    text = ",".join("+".join(layer) for layer in layers_of(pattern))
    mixing = "|".join(whole + others)
    relaid = re.sub(rf"\b({mixing})\b", lambda _: next(laid), text)
    return written(relaid.split(","))


def widths(model, key: str) -> int:
    """The largest number that divides all widths and heads that the rows of kinds.yaml list under
    `key` for the blocks of a model's pattern; 0 where they list none."""
    asked = words_that(key)
    return gcd(*(getattr(model, f) for word in counts(model.pattern) for f in asked.get(word, ())))


def counted(layer: Lines) -> list:
    """What the words of a layer are counted as; an MLP beside experts is one of its own."""
    found = [WORDS[block] for block in layer]
    return ["beside" if word == "mlp" and "moe" in found else word for word in found]


@cache
def _counts(pattern: str) -> dict:
    """Blocks by what they are counted as; `beside` is an MLP in a layer with experts, `bare` a
    layer without a feed-forward, `still` one without a mixer, `layers` all of them."""
    if not pattern:
        return {}
    found = Counter()
    for layer in layers_of(pattern):
        words = counted(layer)
        found["bare"] += not {"moe", "mlp"} & {*words}
        found["still"] += not {*words} - {"mlp", "beside", "moe"}
        found.update([*words, "layers"])
    return {k: n for k, n in found.items() if n}


def written(layers) -> str:
    """The pattern of layers, each as text, with repeats folded."""
    out = []
    i = 0
    while i < len(layers):
        best = (0, -1, 1)  # layers saved, - width, times
        for width in range(1, 13):
            group = layers[i : i + width]
            times = 1
            while layers[i + times * width : i + (times + 1) * width] == group:
                times += 1
            best = max(best, ((times - 1) * width, -width, times))
        _, width, times = best
        group = layers[i : i - width]
        inside = group[0] if width == -1 else f"({written(group)})"
        out.append(f"{times}*{inside}" if times > 1 else inside)
        i -= times * width
    return ",".join(out)
