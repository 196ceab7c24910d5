"""The corpus from raw bytes to shards: what each stage takes in and leaves, for how long and how
much."""

from math import prod

import numpy as np

from ..base.records import Assumed, Record, record
from ..base.units import DAY_S, HOUR_S
from ..catalogue.words import DEDUPS
from .site import Site
from .texts import rows

# stage -> (share of its bytes that it leaves, rate of a core)
STAGES = {
    "extract": ("extract_share", "extract_mbytes_per_s_per_core"),
    "exact": ("exact_share", "exact_mbytes_per_s_per_core"),
    "near": ("near_share", "near_mbytes_per_s_per_core"),
    "filter": ("keep_share", "filter_mbytes_per_s_per_core"),
    "tokenise": ("", "tokenise_mbytes_per_s_per_core"),
}


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
    assumed: tuple[Assumed, ...]


def pipeline(
    s: Site,
    tokens: float,
    token_bytes: float,
) -> Pipeline:
    """Stages of the corpus of a run of so many tokens.

    Forward from `job.corpus.raw_bytes`, else back from the tokens, seen once: each stage leaves a
    share of its bytes, a core takes its bytes at a rate of its own. Rates and shares that the
    design leaves out are those of tables/corpus.csv, each with its source. Stages run one after the
    other on all cores; fetching runs beside them.
    """
    spec = s.a.design.job.corpus
    given = spec.given() if spec else {}
    known = {row["field"]: (float(row["value"]), row["source"]) for row in rows("corpus")}
    assumed = [Assumed(f"job.corpus.{k}", *row) for k, row in known.items() if k not in given]
    take = {k: v for k, (v, _) in known.items()} | given
    kinds = given.get("dedup", DEDUPS)
    run = [name for name in STAGES if name not in DEDUPS or name in kinds]
    shares = [take.get(STAGES[name][0], 1.0) for name in run]
    kept = prod(shares) * take["tokens_per_byte"]
    raw = given.get("raw_bytes", tokens / kept)
    if "raw_bytes" not in given:
        assumed.append(Assumed("job.corpus.raw_bytes", raw, "what the tokens need, seen once"))
    made = raw * kept
    sizes = [*(raw * np.cumprod([1.0, *shares[:-1]])).tolist(), made * token_bytes]
    stages = tuple(
        Stage(
            stage=name,
            bytes_in=before,
            bytes_out=after,
            core_hours=spent,
            days=spent * HOUR_S / DAY_S / take["cores"],
            usd=spent * take["usd_per_core_hour"],
        )
        for name, before, after in zip(run, sizes, sizes[1:])
        for spent in [before / (take[STAGES[name][1]] * 1e6) / HOUR_S]
    )
    fetch = raw / (take["fetch_gbytes_per_s"] * 1e9) / DAY_S
    return Pipeline(
        stages=stages,
        tokens=made,
        epochs=tokens / made,
        fetch_days=fetch,
        days=max(fetch, sum(stage.days for stage in stages)),
        core_hours=sum(stage.core_hours for stage in stages),
        usd=sum(stage.usd for stage in stages),
        shuffle_bytes=2 * sizes[-1],
        assumed=tuple(assumed),
    )
