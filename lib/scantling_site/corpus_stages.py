"""The corpus from raw bytes to shards: what each stage takes in and leaves, for how long and how
much."""

from scantling.base.records import Record, record
from scantling.base.units import DAY_S, HOUR_S

from .job_site import Site


@record
class Stage(Record):
    """One stage: bytes in and out, core-hours, days on the cores there are, dollars."""

    stage: str
    bytes_in: float
    bytes_out: float
    core_hours: float
    days: float
    usd: float


@record
class Pipeline(Record):
    """The stages in order; tokens that come out and how often the run goes through them."""

    stages: tuple[Stage, ...]
    tokens: float
    epochs: float
    fetch_days: float  # of the raw corpus, at the rate it comes in
    days: float  # the longest of fetching and of the stages one after the other
    core_hours: float
    usd: float
    shuffle_bytes: float  # moved once by a global shuffle of the tokens: read and written


def pipeline(s: Site, tokens: float) -> Pipeline:
    """Stages of the corpus of a run of so many tokens.

    Forward from `job.corpus.raw_bytes`, else back from the tokens, seen once: each stage leaves a
    share of its bytes, a core takes its bytes at a rate of its own (design.corpus). Stages run one
    after the other on all cores; fetching runs beside them.
    """
    corpus = s.a.resolved.corpus
    shares = [1.0]  # of the raw bytes that each stage takes in, and of what the last leaves
    for stage in corpus.stages:
        shares.append(shares[-1] * stage.share)
    yielded = shares[-1] * corpus.tokens_per_byte
    raw = corpus.raw_bytes or tokens / yielded
    tokens_out = raw * yielded
    token_bytes = tokens_out * float(s.case.job.token_bytes)
    sizes = [*(raw * share for share in shares[:-1]), token_bytes]
    stages = []
    for stage, before, after in zip(corpus.stages, sizes, sizes[1:]):
        hours = before / (stage.mbytes_per_s_per_core * 1e6) / HOUR_S
        stages.append(
            Stage(
                stage=stage.name,
                bytes_in=before,
                bytes_out=after,
                core_hours=hours,
                days=hours * HOUR_S / DAY_S / corpus.cores,
                usd=hours * corpus.usd_per_core_hour,
            )
        )
    fetch = raw / (corpus.fetch_gbytes_per_s * 1e9) / DAY_S
    return Pipeline(
        stages=tuple(stages),
        tokens=tokens_out,
        epochs=tokens / tokens_out,
        fetch_days=fetch,
        days=max(fetch, sum(stage.days for stage in stages)),
        core_hours=sum(stage.core_hours for stage in stages),
        usd=sum(stage.usd for stage in stages),
        shuffle_bytes=2 * token_bytes,
    )
