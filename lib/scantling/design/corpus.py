"""How the fields that a design leaves out of `job.corpus` are filled in, each with the rule or the
source that did it."""

from math import prod

from .. import catalogue
from ..base.records import Derived
from ..catalogue.words import DEDUPS
from .fields import defaults
from .schema import CorpusSpec

# stage -> share of its bytes that it leaves; a core's rate in it is STAGE_mbytes_per_s_per_core
STAGES = {
    "extract": "extract_share",
    "exact": "exact_share",
    "near": "near_share",
    "filter": "keep_share",
    "tokenise": "",
}


def stages(corpus) -> dict:
    """Stages that the raw bytes run through, in order -> the share of its bytes that each
    leaves."""
    skipped = set(DEDUPS) - set(corpus["dedup"])
    return {name: corpus.get(field, 1.0) for name, field in STAGES.items() if name not in skipped}


def build_corpus(spec, tokens: float | None, cluster) -> Derived:
    """The corpus of a run of so many tokens (None: not named) with nothing left to look up.

    raw_bytes: what the tokens need, seen once: tokens / (tokens a byte x shares that the stages
    leave). Shards are read at the read rate of the cluster's store on its nodes; no limit (None)
    where nobody has published one.
    """
    new = Derived(spec.given() if spec else {}, "job.corpus")
    new.take("dedup", list(DEDUPS), "exact duplicates are taken out, then near ones")
    new.take_usual(defaults(CorpusSpec))
    kept = prod(stages(new.fields).values()) * new.fields["tokens_per_byte"]
    if "raw_bytes" not in new.given:  # what is used is not rounded (cluster.corpus)
        raw = tokens and float(f"{tokens / kept:.3g}")
        new.note("raw_bytes", raw, "what the tokens need, seen once")
        new.fields["raw_bytes"] = None
    rate = catalogue.storage(cluster.storage).read_bytes_per_s(cluster.nodes) / 1e9
    why = "the storage of the cluster on its nodes, as far as published"
    new.take("read_gbytes_per_s", rate if rate == rate else None, why)
    new.take("reads_per_s", None, "no limit: sequences are read in pieces of many")
    return new
