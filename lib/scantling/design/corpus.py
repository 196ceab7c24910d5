"""How the fields that a design leaves out of `job.corpus` are filled in, each with the rule or the
source that did it."""

from dataclasses import replace
from math import isnan, prod
from typing import NamedTuple

from .. import catalogue
from ..base.records import Assumed, Derived, Lines, record
from ..catalogue.words import DEDUPS
from .cluster import Cluster
from .fields import defaults
from .schema import CorpusSpec


class Stage(NamedTuple):
    """What a stage makes of the bytes that it takes in."""

    name: str
    share: float  # of its bytes that it leaves
    mbytes_per_s_per_core: float  # that one core takes in


@record
class Corpus:
    """The corpus of a run with nothing left to look up."""

    raw_bytes: float | None  # as it is fetched; None: worked back from the tokens
    dedup: Lines  # duplicates that are taken out: exact, near
    extract_share: float  # bytes of text over raw bytes
    exact_share: float  # bytes that exact duplicates leave
    near_share: float  # bytes that near duplicates leave
    keep_share: float  # bytes that the filters keep
    tokens_per_byte: float
    cores: int
    extract_mbytes_per_s_per_core: float
    exact_mbytes_per_s_per_core: float
    near_mbytes_per_s_per_core: float
    filter_mbytes_per_s_per_core: float
    tokenise_mbytes_per_s_per_core: float
    usd_per_core_hour: float
    fetch_gbytes_per_s: float  # at which the raw corpus comes in
    read_gbytes_per_s: float | None  # at which training can read the shards; None: no limit
    reads_per_s: float | None  # sequences that the store can hand out; None: no limit

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What the raw bytes run through, in order."""
        stages = (
            Stage("extract", self.extract_share, self.extract_mbytes_per_s_per_core),
            Stage("exact", self.exact_share, self.exact_mbytes_per_s_per_core),
            Stage("near", self.near_share, self.near_mbytes_per_s_per_core),
            Stage("filter", self.keep_share, self.filter_mbytes_per_s_per_core),
            Stage("tokenise", 1.0, self.tokenise_mbytes_per_s_per_core),
        )
        skipped = set(DEDUPS) - set(self.dedup)
        return tuple(stage for stage in stages if stage.name not in skipped)

    @property
    def tokens_per_raw_byte(self) -> float:
        """Tokens that a raw byte comes to after all stages."""
        return prod(stage.share for stage in self.stages) * self.tokens_per_byte


def build_corpus(
    spec: CorpusSpec | None, tokens: float | None, cluster: Cluster
) -> tuple[Corpus, list[Assumed]]:
    """The corpus of a run of so many tokens (None: not named) with nothing left to look up, and
    what had to be assumed.

    raw_bytes: what the tokens need, seen once: tokens / (tokens a byte x shares that the stages
    leave). Shards are read at the read rate of the cluster's store on its nodes; no limit (None)
    where nobody has published one.
    """
    new = Derived(spec.stated() if spec else {}, "job.corpus")
    new.take("dedup", list(DEDUPS), "exact duplicates are taken out, then near ones")
    new.take_usual(defaults(CorpusSpec))
    raw_bytes: float | None = new.stated.get("raw_bytes")
    rest = {name: value for name, value in new.fields.items() if name not in ("dedup", "raw_bytes")}
    rest = {"read_gbytes_per_s": None, "reads_per_s": None} | rest
    corpus = Corpus(raw_bytes=raw_bytes, dedup=tuple(new.fields["dedup"]), **rest)
    if raw_bytes is None:  # what is used is not rounded
        needed = float(f"{tokens / corpus.tokens_per_raw_byte:.3g}") if tokens else None
        new.note("raw_bytes", needed, "what the tokens need, seen once")
    rate = catalogue.storage(cluster.storage).read_bytes_per_s(cluster.nodes) / 1e9
    why = "the storage of the cluster on its nodes, as far as published"
    corpus = replace(
        corpus,
        read_gbytes_per_s=new.take("read_gbytes_per_s", None if isnan(rate) else rate, why),
        reads_per_s=new.take("reads_per_s", None, "no limit: sequences are read in pieces of many"),
    )
    return corpus, new.assumed
