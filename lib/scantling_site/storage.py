"""Storage around the job: burst tier, parallel file system and object store sized from saves,
restarts and ingest, and what the market has for them."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scantling.advise.recovery import corpus_of
from scantling.base import show
from scantling.base.columns import Column
from scantling.base.records import Known, Lines, Record, record
from scantling.base.show import params, usd
from scantling.base.units import DAY_S, HOUR_S
from scantling.catalogue.words import Sharding
from scantling.endure import storage
from scantling.endure.checkpoint import COMMIT_S, LOAD_S, WIRE_SHARE, per_writer
from scantling.endure.reliability import Endurance

from .constants import CONSTANTS
from .corpus_stages import Pipeline, pipeline
from .job_site import Run, Site, ettr
from .market import (
    FILE_SYSTEM,
    MONTH_DAYS,
    OBJECT_STORE,
    Candidate,
    candidates,
    known,
    offers,
    provider_of,
)

BURST = "burst"


@record
class Need(Record):
    """What one tier must carry, what the design has of it, and the ratio (above one: it does not
    carry it; None: nobody has published it)."""

    tier: str  # burst | file system | object store
    what: str
    needed: float
    has: Known
    unit: str
    load: Known
    why: str


@record
class TwiceTheRate(Record):
    """What a store of twice the rate is worth."""

    goodput_gain: float
    days_gained: float
    usd_per_month: Known
    durable_s: float
    fixed_s: float  # of a save and a load, whatever the rate


@record
class Stores(Record):
    """The storage architecture of a design."""

    run: Run
    phase: str  # the one that reads most: ingest and readers are its own
    checkpoint_bytes: float
    period_s: float
    bytes_per_node: float
    writers: int
    file_bytes: float
    files_per_s: float  # created while a save is written
    restart_read_bytes: float
    written_bytes_per_day: float
    burst_drive_writes_per_day: Known
    ingest_bytes_per_s: float
    corpus_bytes: float
    corpus: Pipeline
    retention: int
    milestones: int
    needs: tuple[Need, ...]
    bottleneck: str
    bottleneck_load: Known
    candidates: tuple[Candidate, ...]
    chosen: str  # the store that the design names or assumes
    worth_of_twice_the_rate: TwiceTheRate
    lines: Lines


def copies(e: Endurance) -> int:
    """Copies on the file system: those that a corruption found late needs, at least three."""
    return copies_on_file_system(e.retention)


def copies_on_file_system(retention: Column) -> int:
    """Copies on the file system, of so many that a corruption found late needs."""
    return max(int(np.max(retention)), int(CONSTANTS.copies))


def stores(s: Site) -> Stores:
    """Size the three tiers of a design's storage and judge the catalogue's stores against them.

    File system: written B / (interval + stall), so that a save is durable before the next begins;
    read at a restart V / (read_share x (detection + restart)), V = B where optimizer states are
    sharded and B x dp where every replica reads its own copy; ingest = global batch tokens x bytes
    / step; both of the phase that reads most; room = `storage.capacity` with the retention of
    `checkpoint.retention`. Burst tier: the node's share of a copy, its own and a peer's, one whole
    and one in flight. Object store: one copy a day, the raw and the tokenised corpus.
    Candidates: first those that this cluster can have (`within_reach`). Stores sold by the piece
    are counted in pieces until every need is met; others stand as published. Prices per GB and
    month are the catalogue's; appliances have none. A figure that nobody has published is named,
    not guessed.
    """
    e = s.e
    plan = s.plan
    size = e.checkpoint_bytes
    nodes = s.used_nodes
    reads = s.most(lambda one: one.read_bytes_per_s)
    tokens = corpus(reads)
    preparation = pipeline(s, tokens.tokens)
    needs = needed(s, tokens, preparation)
    worst = max((n for n in needs if n.load is not None), key=lambda n: n.load or 0.0)
    offered = candidates(s, demands(needs))
    disk = known(s.cluster.nvme_bytes)
    twice = twice_the_rate(s)
    wrote = per_writer(
        size,
        tp=plan["tp"],
        pp=plan["pp"],
        cp=plan["cp"],
        dp=plan["dp"],
        parallel=plan["sharding"] != Sharding.NONE,
    )
    return Stores(
        run=s.run,
        phase=reads.phase.name,
        checkpoint_bytes=size,
        period_s=s.period_s,
        bytes_per_node=size / nodes,
        writers=wrote["writers"],
        file_bytes=wrote["bytes_per_writer"],
        files_per_s=wrote["writers"] / max(s.save_s, COMMIT_S),
        restart_read_bytes=restart_bytes(s),
        written_bytes_per_day=size * DAY_S / s.period_s,
        burst_drive_writes_per_day=disk and 2 * size / nodes * DAY_S / s.period_s / disk,
        ingest_bytes_per_s=tokens.read_bytes_per_s,
        corpus_bytes=tokens.bytes,
        corpus=preparation,
        retention=copies_on_file_system(e.retention),
        milestones=milestones(s),
        needs=needs,
        bottleneck=f"{worst.tier}: {worst.what}",
        bottleneck_load=worst.load,
        candidates=tuple(offered),
        chosen=storage.rates(s.cluster, nodes).what,
        worth_of_twice_the_rate=twice,
        lines=(
            _binds_first(worst),
            *offers(offered, provider_of(s.cluster)),
            *_worth(twice),
            *_corpus_lines(s, reads, preparation),
        ),
    )


def restart_bytes(s: Site) -> float:
    """Bytes that a restart reads, in the phase that reads most copies."""
    return s.e.checkpoint_bytes * s.most(lambda one: one.copies_read).copies_read


def milestones(s: Site) -> int:
    """Copies that the object store gets over the run."""
    return int(np.ceil(s.run.days * DAY_S / CONSTANTS.milestone_s))


def corpus(s: Site) -> storage.Corpus:
    """The corpus of the run; of so many days where the design names no tokens."""
    return corpus_of(s.chosen, s.tokens or s.batch_tokens * s.run.days * DAY_S / s.step_s)


def need(tier: str, what: str, needed: float, has: Known, unit: str, why: str) -> Need:
    """One need with its load."""
    has = known(has)
    load = has and needed / has
    return Need(tier=tier, what=what, needed=needed, has=has, unit=unit, load=load, why=why)


def needed(s: Site, tokens: storage.Corpus, preparation: Pipeline) -> tuple[Need, ...]:
    """What each tier must carry."""
    return (
        *burst_needs(s),
        *file_system_needs(s, tokens),
        *object_store_needs(s, tokens, preparation),
    )


def burst_needs(s: Site) -> Iterator[Need]:
    """A node's share of a copy, its own and a peer's, one whole and one in flight."""
    share = s.e.checkpoint_bytes / s.used_nodes
    yield need(
        BURST,
        "memory of a node",
        4 * share,
        0.5 * s.cluster.host_memory_bytes,
        "bytes",
        "own and a peer's share of a copy, one whole and one in flight, in half of the host memory",
    )
    yield need(
        BURST,
        "disks of a node",
        4 * share,
        s.cluster.nvme_bytes,
        "bytes",
        "the same on the node's own disks",
    )
    yield need(
        BURST,
        "wire to the peer",
        share / s.period_s,
        s.cluster.scale_out_bytes_per_s * s.per_node * WIRE_SHARE,
        "bytes/s",
        f"a node's share every {s.period_s:,.0f} s over {WIRE_SHARE:.0%} of its cards",
    )


def file_system_needs(s: Site, tokens: storage.Corpus) -> Iterator[Need]:
    """Saves, restarts, ingest and room of the shared file system."""
    size = s.e.checkpoint_bytes
    has = storage.rates(s.cluster, s.used_nodes)
    yield need(
        FILE_SYSTEM,
        "write",
        size / s.period_s,
        float(has.write_bytes_per_s),
        "bytes/s",
        f"{show.size(size)} durable within {s.period_s:,.0f} s, before the next save begins",
    )
    yield need(
        FILE_SYSTEM,
        "write per node",
        size / s.used_nodes / s.period_s,
        float(has.node_write_bytes_per_s),
        "bytes/s",
        "the same from each node",
    )
    volume = restart_bytes(s)
    recovery = s.e.recovery_s
    yield need(
        FILE_SYSTEM,
        "read at restart",
        volume / (CONSTANTS.read_share * recovery) if recovery > 0 else 0.0,
        float(has.read_bytes_per_s),
        "bytes/s",
        f"{show.size(volume)} adding no more than {CONSTANTS.read_share:.0%} to a recovery of "
        f"{recovery:,.0f} s",
    )
    reads = s.most(lambda one: one.read_bytes_per_s)
    yield need(
        FILE_SYSTEM,
        "ingest",
        tokens.read_bytes_per_s,
        float(has.read_bytes_per_s),
        "bytes/s",
        f"{reads.batch_tokens:,} tokens every {show.seconds(reads.step_s)}",
    )
    yield need(
        FILE_SYSTEM,
        "capacity",
        room(s, tokens)["provisioned"],
        float(has.capacity_bytes),
        "bytes",
        f"{copies_on_file_system(s.e.retention)} copies, tokenised corpus and logs, 80 % full",
    )


def room(s: Site, tokens: storage.Corpus) -> storage.Room:
    """Room to provision [bytes] (`storage.capacity`)."""
    return storage.capacity(
        s.e.checkpoint_bytes,
        tokens.bytes,
        recent=copies_on_file_system(s.e.retention),
        milestones=milestones(s),
    )


def object_store_needs(s: Site, tokens: storage.Corpus, preparation: Pipeline) -> Iterator[Need]:
    """One copy a day, the raw and the tokenised corpus; nobody has published what a design's object
    store has."""
    size = s.e.checkpoint_bytes
    day = CONSTANTS.milestone_s
    yield need(
        OBJECT_STORE,
        "capacity",
        room(s, tokens)["object_store"] + preparation.stages[0].bytes_in + tokens.bytes,
        None,
        "bytes",
        f"{milestones(s)} daily copies, raw and tokenised corpus",
    )
    yield need(
        OBJECT_STORE,
        "write",
        size / day + size / (CONSTANTS.milestone_time * day),
        None,
        "bytes/s",
        "one copy a day, over in a tenth of it",
    )


def demands(needs: tuple[Need, ...]) -> dict[str, dict[str, float]]:
    """What the file system and the object store have to give, by tier: write, capacity, read."""
    of_tiers = {
        tier: {
            n.what: n.needed for n in needs if n.tier == tier and n.what in ("write", "capacity")
        }
        for tier in (FILE_SYSTEM, OBJECT_STORE)
    }
    reads = [n.needed for n in needs if n.what in ("read at restart", "ingest")]
    of_tiers[FILE_SYSTEM]["read"] = max(reads)
    return of_tiers


def twice_the_rate(s: Site) -> TwiceTheRate:
    """What twice the store's rate is worth: shorter until durable, shorter loads; goodput gained,
    dollars a month. The interval stays."""
    e = s.e
    has = storage.rates(s.cluster, s.used_nodes)
    write = float(min(has.write_bytes_per_s, s.used_nodes * has.node_write_bytes_per_s))
    read = float(min(has.read_bytes_per_s, s.used_nodes * has.node_read_bytes_per_s))
    sooner_s = e.checkpoint_bytes / write / 2
    waits = not e.checkpoint_durable_s  # training stands still for the whole save
    stall_s = max(e.checkpoint_stall_s - waits * sooner_s, 0.0)
    durable_s = e.checkpoint_durable_s - sooner_s
    now = ettr(e)
    faster = replace(
        e,
        checkpoint_stall_s=stall_s,
        checkpoint_durable_s=max(durable_s, 0.0),
        restart_s=max(e.restart_s - restart_bytes(s) / read / 2, 0.0),
    )
    gain = e.goodput * (ettr(faster) / now - 1) if now > 0 else 0.0
    return TwiceTheRate(
        goodput_gain=gain,
        days_gained=s.run.days * gain,
        usd_per_month=s.run.usd(MONTH_DAYS * gain),
        durable_s=stall_s if waits else durable_s,
        fixed_s=COMMIT_S + LOAD_S,
    )


def _binds_first(worst: Need) -> str:
    """The need that is nearest to what the design has, or farthest beyond it."""
    load = worst.load or 0.0
    then = "it binds first"
    if load > 1:
        then = _beyond(worst, load)
    return f"{worst.tier}, {worst.what}: {load:.0%} of what the design has; {then}"


def _beyond(worst: Need, load: float) -> str:
    """What follows where a need is not met."""
    if worst.what == "read at restart":
        share = CONSTANTS.read_share
        return f"a restart's transfer takes {share * load:.0%} of a recovery instead of {share:.0%}"
    if worst.what == "memory of a node":
        return "copies go to disks or the file system instead"
    if worst.what == "disks of a node":
        return "copies stay in memory or go to the file system"
    if worst.what == "wire to the peer":
        return "the peer's copy is late"
    return "it does not carry the job"


def _worth(twice: TwiceTheRate) -> Iterator[str]:
    """What a faster store is worth, where the cluster has a price."""
    if twice.usd_per_month is not None:
        yield (
            f"twice the store's rate is worth {twice.goodput_gain:.2%} of goodput, "
            f"{usd(twice.usd_per_month)} a month of this cluster"
        )


def _corpus_lines(s: Site, reads: Site, preparation: Pipeline) -> Iterator[str]:
    """The corpus: what making it takes, how often it is seen, how it is shuffled and dealt."""
    yield (
        f"corpus: {params(preparation.core_hours)} core-hours, {usd(preparation.usd)}, "
        f"{preparation.days:.1f} days on {s.a.resolved.corpus.cores:,} cores beside "
        f"{preparation.fetch_days:.1f} days of fetching; {preparation.tokens / 1e12:.3g} T tokens, "
        f"seen {preparation.epochs:.2g} times"
    )
    if preparation.epochs > CONSTANTS.epochs_worth:
        yield (
            "tokens seen more than four times teach little more than four do (Muennighoff et al. "
            "2023, arXiv 2305.16264): fetch more, or train on fewer"
        )
    has = storage.rates(s.cluster, s.used_nodes)
    inverse = 1 / float(has.write_bytes_per_s) + 1 / float(has.read_bytes_per_s)
    hours = preparation.shuffle_bytes / 2 / HOUR_S * inverse
    yield (
        f"shuffled once over all shards: {show.size(preparation.shuffle_bytes)} read and "
        f"written, {hours:.2g} h at the rates of the store"
    )
    batch = reads.phase.global_batch
    dp = reads.plan["dp"]
    yield (
        f"dealt by (epoch, seed, dp rank): of the {batch:,} sequences of a step each of {dp} "
        f"readers takes {batch / dp:,.0f}, in the order of the epoch's shuffle; a copy holds "
        "epoch, seed and position, so that a resume reads the very next sequence, with other "
        "readers too"
    )
    waits = float(reads.chosen.step.data)
    if waits:
        yield f"training waits {waits:.3g} s of each step for its data"
