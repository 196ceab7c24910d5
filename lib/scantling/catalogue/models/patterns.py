"""Patterns: which blocks the layers of a model have, in their order.

`n*x` repeats a layer, `n*(a,b)` a group, `,` follows; `mixer+ffn` is one layer, `|` side by side,
`>` before; `shared(attn+mlp)` runs one set of weights at several places. Nemotron's letters, a
layer each, are read too: M Mamba-2, * attention, - MLP, E experts.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import chain, cycle
from math import gcd
from typing import Any, Literal, Protocol

import numpy as np

from ...base.columns import Column
from ...base.errors import DesignError, closest
from ...base.records import Lines
from .dimensions import Names
from .pattern_words import ATTENDING, COUNTED_AS, LETTERS, SLIDING, WORDS

MOST_LAYERS = 10_000
MOST_NESTED = 100
Layers = tuple[Lines, ...]  # in order, each the blocks in it

# a repeat, weights that run at several places, a bracket, a comma, what joins blocks, or a block
_TOKEN = re.compile(r"\d+\*|shared\([^()]*\)|[(),+|>]|[^(),+|>]+")
_JOINS = ("+", "|", ">")


def wrong(
    pattern: str, problem: str, allowed: str | Sequence[str], nearest: Any = None
) -> DesignError:
    """The refusal of a pattern."""
    return DesignError("model.pattern", pattern, allowed, nearest, problem=problem)


class _Parser:
    """Layers of one pattern, by recursive descent:

    layers = repeat {"," repeat} [","]; repeat = [n "*"] layer;
    layer = part {("+" | "|" | ">") part}; part = block | "(" layers ")".
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.tokens: list[str] = _TOKEN.findall(re.sub(r"\s", "", pattern))
        self.depth = 0

    def parse(self) -> Layers:
        layers = self.layers()
        if self.tokens:
            raise self.unbalanced()
        return tuple(layers)

    def peek(self) -> str:
        """The next token; nothing at the end."""
        return self.tokens[0] if self.tokens else ""

    def next(self) -> str:
        return self.tokens.pop(0) if self.tokens else ""

    def unbalanced(self) -> DesignError:
        return wrong(self.pattern, "has brackets that do not match", "n*(a,b) groups")

    def layers(self) -> list[Lines]:
        """Layers up to a closing bracket or the end; a comma may stand behind the last."""
        layers = self.repeat(MOST_LAYERS)
        while self.peek() == ",":
            self.next()
            if not self.tokens:
                break
            layers += self.repeat(MOST_LAYERS - len(layers))
        return layers

    def repeat(self, room: int) -> list[Lines]:
        """A layer or a group, as often as its number says; for as many layers as there is room."""
        times = 1
        if self.peek().endswith("*"):
            times = int(self.next().removesuffix("*"))
            if times < 1:
                raise wrong(self.pattern, "repeats a layer 0 times", "n of at least 1 in n*", 1)
        layers = self.layer()
        if times * len(layers) > room:
            raise wrong(self.pattern, "has too many layers", f"at most {MOST_LAYERS:,}")
        return layers * times

    def layer(self) -> list[Lines]:
        """One layer of several parts, or a group of layers in brackets."""
        first = self.part()
        if self.peek() not in _JOINS:
            return first
        parts = [first]
        while self.peek() in _JOINS:
            self.next()
            parts.append(self.part())
        if any(len(layers) != 1 for layers in parts):
            raise self.unbalanced()
        return [tuple(chain.from_iterable(layer for (layer,) in parts))]

    def part(self) -> list[Lines]:
        """A block as a layer, or the layers in brackets."""
        if self.peek() == "(":
            self.next()
            self.depth += 1
            if self.depth > MOST_NESTED:
                raise self.unbalanced()
            layers = self.layers()
            if self.next() != ")":
                raise self.unbalanced()
            self.depth -= 1
            return layers
        return [(self.block(),)]

    def block(self) -> str:
        """The word of a block."""
        word = ""
        while self.peek() not in ("", ",", "(", ")", *_JOINS):
            word += self.next()
        if word.startswith("shared("):
            return "shared"
        if word in COUNTED_AS:
            return word
        if self.peek() in ("(", ")") and not word:
            raise self.unbalanced()
        problem = f"has no block named {word!r}" if word else "has an empty layer"
        raise wrong(self.pattern, problem, list(COUNTED_AS), closest(word, COUNTED_AS))


@cache
def layers_of(pattern: str) -> Layers:
    """The layers of a pattern in order, each the blocks in it. Raises DesignError."""
    if re.search("[a-z0-9(,]", pattern):
        return _Parser(pattern).parse()
    for letter in sorted({*pattern} - {*LETTERS}):
        raise wrong(pattern, f"has no block with the letter {letter}", list(LETTERS))
    return tuple((LETTERS[letter],) for letter in pattern)


def counts(pattern: Names) -> dict[str, Column]:
    """How often a model, or each of a column, has each block of its pattern."""
    if isinstance(pattern, str):
        return {word: n for word, n in counts_of(pattern).items()}
    names, rows = np.unique(np.asarray(pattern, dtype=str), return_inverse=True)
    each = [counts_of(str(name)) for name in names]
    every = dict.fromkeys(key for one in each for key in one)
    return {key: np.array([one.get(key, 0) for one in each])[rows] for key in every}


@cache
def counts_of(pattern: str) -> dict[str, int]:
    """Blocks of one pattern by what they are counted as; `beside` is an MLP in a layer with
    experts, `bare` a layer without a feed-forward, `still` one without a mixer, `layers` all of
    them."""
    if not pattern:
        return {}
    number: Counter[str] = Counter()
    for layer in layers_of(pattern):
        words = counted(layer)
        number["bare"] += not {"moe", "mlp"} & {*words}
        number["still"] += not {*words} - {"mlp", "beside", "moe"}
        number.update([*words, "layers"])
    return {word: n for word, n in number.items() if n}


def counted(layer: Lines) -> list[str]:
    """What the words of a layer are counted as; an MLP beside experts is one of its own."""
    words = [COUNTED_AS[block] for block in layer]
    return ["beside" if word == "mlp" and "moe" in words else word for word in words]


def _mixers(pattern: str) -> tuple[Counter[str], Counter[str]]:
    """How many layers have each word that mixes tokens: those that attend to everything, and the
    others, each in the order in which they stand."""
    whole: Counter[str] = Counter()
    others: Counter[str] = Counter()
    everything = ATTENDING - {*SLIDING}
    for word in chain(*layers_of(pattern)):
        if COUNTED_AS[word] in everything:
            whole[word] += 1
        elif COUNTED_AS[word] not in ("mlp", "moe"):
            others[word] += 1
    return whole, others


def attention_every(pattern: str) -> int:
    """Of so many layers that mix tokens one attends to everything; 0 where all do, none does, or a
    layer mixes twice."""
    whole, others = (words.total() for words in _mixers(pattern))
    once = whole + others <= len(layers_of(pattern))
    return round(1 + others / whole) if whole and others and once else 0


def attending_every(pattern: str, every: int) -> str:
    """The layers of a pattern with attention to everything in the last of every so many that mix
    tokens, in the others what most of them have. Raises DesignError."""
    if not attention_every(pattern):
        allowed = "a model some of whose layers have another mixer than attention"
        raise DesignError("attention_every", every, allowed)
    whole, others = _mixers(pattern)
    (full, _), (usual, _) = (words.most_common(1)[0] for words in (whole, others))
    mixer = cycle([usual] * (every - 1) + [full])
    return written(
        [
            "+".join(next(mixer) if word in whole or word in others else word for word in layer)
            for layer in layers_of(pattern)
        ]
    )


class Patterned(Protocol):
    """A model: its fields, among them a pattern."""

    @property
    def pattern(self) -> str: ...


def widths(model: Patterned, which: Literal["split", "swapped"]) -> int:
    """The largest number that divides all widths and heads of a model's blocks that tp has to
    divide (split), or tp x cp (swapped); 0 where there are none."""
    fields = vars(model)
    words = [WORDS[name] for name in counts_of(model.pattern) if name in WORDS]
    asked = (word.split if which == "split" else word.swapped for word in words)
    return gcd(*(fields[field] for field in chain.from_iterable(asked)))


def written(layers: Sequence[str]) -> str:
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
