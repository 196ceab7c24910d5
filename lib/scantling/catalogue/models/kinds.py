"""The block of each word of a pattern, from the fields of `Model`, by the rows of kinds.yaml."""

from dataclasses import fields

from ... import blocks
from ...base.words import table
from ...blocks.block import Block


def words() -> dict:
    """The rows of kinds.yaml by word."""
    return table(__file__, "kinds")


def words_that(key: str) -> dict:
    """{word: what its row says of a key} of the words that say something."""
    return {word: row[key] for word, row in words().items() if key in row}


def attending() -> set:
    """The words of attention with scores of queries and keys."""
    made = words_that("block").items()
    return {word for word, name in made if getattr(blocks, name).family == "softmax"}


def block_of(word: str, m, count, norms=0) -> Block:
    """`count` blocks of a word in models `m` (numbers or columns); attention has the layers'
    `norms`."""
    row = words()[word]
    kind = getattr(blocks, row["block"])
    renamed = row.get("from", {})
    sources = {f.name: renamed.get(f.name, f.name) for f in fields(kind)}
    taken = {name: getattr(m, of) for name, of in sources.items() if hasattr(m, of)}
    if kind.family == "softmax":
        taken["norms"] = norms
    return kind(count=count, **taken | row.get("fixed", {}))
