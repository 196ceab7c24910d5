"""Storage around the job: burst tier, parallel file system and object store sized from saves,
restarts and ingest, and what the market has for them."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scantling import catalogue
from scantling.advise.recovery import corpus_of
from scantling.base.records import Known, Lines, Record, Rows, record
from scantling.base.show import several
from scantling.base.units import DAY_S, HOUR_S
from scantling.endure import storage
from scantling.endure.checkpoint import COMMIT_S, LOAD_S, WIRE_SHARE, per_writer

from .corpus import Pipeline, pipeline
from .site import Run, Site, ettr
from .texts import columns, constant, fill, lines, rows, texts

TIB = 2.0**40
MONTH_DAYS = 365.25 / 12
SAME = ("id", "name", "kind", "sold_by", "source", "verified")  # of the catalogue's row
CLOUDS = ("AWS", "GCP", "Azure", "OCI")


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
class Candidate(Record):
    """One store of the catalogue against the needs of the file system or the object store."""

    id: str
    name: str
    kind: str
    tier: str
    # a cloud (beside its own machines), makers (to anyone), empty: built by its operator, for
    # comparison
    sold_by: str
    # sold to this cluster: by its own cloud where the design names one, else by anyone
    within_reach: bool
    pieces: Known  # to buy where it is sold by the piece, else None
    piece: str
    write_bytes_per_s: Known
    read_bytes_per_s: Known
    capacity_bytes: Known
    meets: bool
    misses: Rows  # {what, needed, has, short_by: needed / has}
    unknown: Lines  # figures that nobody has published: not counted as misses
    usd_per_month: Known
    usd_per_run: Known
    source: str
    verified: str  # text, secondary, derived or memory: how the catalogue had the rates

    @property
    def many(self) -> str:
        """How many pieces have to be bought, in brackets."""
        plural = "TiB" if self.piece == "TiB" else ""
        return f" ({several(int(self.pieces), self.piece, plural)})" if self.piece else ""


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
    worth_of_twice_the_rate: dict
    lines: Lines


def copies_kept(e) -> int:
    """Copies on the file system: those that a corruption found late needs, at least three."""
    return max(int(np.max(e.retention)), int(constant("copies_kept")))


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
    e, plan, cluster, size, nodes = s.e, s.plan, s.cluster, s.e.checkpoint_bytes, s.used_nodes
    wrote = per_writer(
        size,
        **{axis: plan[axis] for axis in ("tp", "pp", "cp", "dp")},
        parallel=plan["sharding"] != "none",
    )
    volume = size * s.most(lambda one: one.copies_read).copies_read
    reads = s.most(lambda one: one.read_bytes_per_s)
    text = corpus(reads)
    made = pipeline(s, text.tokens)
    keep = copies_kept(e)
    milestones = int(np.ceil(s.run.days * DAY_S / constant("milestone_s")))
    room = storage.capacity(size, text.bytes, recent=keep, milestones=milestones)
    has = storage.rates(cluster, nodes)
    needs = needed(
        s,
        size=size,
        volume=volume,
        text=text,
        reads=reads,
        has=has,
        keep=keep,
        milestones=milestones,
        provisioned=room["provisioned"],
        object_bytes=room["object_store"] + made.stages[0].bytes_in + text.bytes,
    )
    worst = max((n for n in needs if n.load is not None), key=lambda n: n.load)
    found = candidates(s, needs)
    nvme = _ok(cluster.nvme_bytes)
    twice = _twice(s, size, volume, has)
    return Stores(
        run=s.run,
        phase=reads.phase.name,
        checkpoint_bytes=size,
        period_s=s.period_s,
        bytes_per_node=size / nodes,
        writers=wrote["writers"],
        file_bytes=wrote["bytes_per_writer"],
        files_per_s=wrote["writers"] / max(e.checkpoint_durable_s, COMMIT_S),
        restart_read_bytes=volume,
        written_bytes_per_day=size * DAY_S / s.period_s,
        burst_drive_writes_per_day=nvme and 2 * size / nodes * DAY_S / s.period_s / nvme,
        ingest_bytes_per_s=text.read_bytes_per_s,
        corpus_bytes=text.bytes,
        corpus=made,
        retention=keep,
        milestones=milestones,
        needs=needs,
        bottleneck=f"{worst.tier}: {worst.what}",
        bottleneck_load=worst.load,
        candidates=tuple(found),
        chosen=has.what,
        worth_of_twice_the_rate=twice,
        lines=tuple(_lines(worst, found, provider_of(cluster)))
        + lines(
            texts("advice", "stores", "then"),
            **twice,
            priced=twice["usd_per_month"] is not None,
            corpus=made,
            reads=reads,
            cores=s.a.resolved.corpus.cores,
            each=reads.phase.global_batch / reads.plan["dp"],
            repeats=made.epochs > constant("epochs_worth"),
            shuffle_h=made.shuffle_bytes
            / 2
            / HOUR_S
            * (1 / has.write_bytes_per_s + 1 / has.read_bytes_per_s),
            waits=reads.chosen.step.data,
        ),
    )


def corpus(s: Site) -> storage.Corpus:
    """The corpus of the run; of so many days where the design names no tokens."""
    return corpus_of(s.chosen, s.tokens or s.batch_tokens * s.run.days * DAY_S / s.step_s)


def needed(s: Site, *, size: float, volume: float, **values) -> tuple:
    """What each tier must carry: rows of tables/needs.csv."""
    recovery = s.e.recovery_s
    node_bytes = size / s.used_nodes
    daily = constant("milestone_s")
    table = fill(
        rows("needs"),
        s,
        **values,
        size=size,
        volume=volume,
        recovery=recovery,
        node_bytes=node_bytes,
        peer=node_bytes / s.period_s,
        wire=s.cluster.scale_out_bytes_per_s * s.per_node * WIRE_SHARE,
        wire_share=WIRE_SHARE,
        write=size / s.period_s,
        read=volume / (constant("read_share") * recovery) if recovery > 0 else 0.0,
        daily_write=size / daily + size / (constant("milestone_time") * daily),
    )
    known = [{**row, "has": _ok(row["has"])} for row in table]
    return tuple(Need(**row, load=row["has"] and row["needed"] / row["has"]) for row in known)


def _ok(value) -> Known:
    return value if value is not None and value == value and value > 0 else None


def provider_of(cluster) -> str:
    """The cloud whose machines or fabric a design names (AWS, GCP, Azure, OCI); empty where it
    names none."""
    node = catalogue.nodes().get(cluster.node)
    if node is not None and node.provider in CLOUDS:
        return node.provider
    return catalogue.fabric(cluster.scale_out).provider


def candidates(s: Site, needs: tuple) -> list:
    """The catalogue's stores against the needs of one site, best first."""
    wants = {
        tier: {
            n.what: n.needed for n in needs if n.tier == tier and n.what in ("write", "capacity")
        }
        for tier in ("file system", "object store")
    }
    reads = [n.needed for n in needs if n.what in ("read at restart", "ingest")]
    wants["file system"]["read"] = max(reads)
    return sorted(
        filter(None, (_candidate(s, store, wants) for store in catalogue.storages().values())),
        key=lambda c: (
            c.tier,
            not c.within_reach,
            not c.meets,
            len(c.unknown),
            np.inf if c.usd_per_month is None else c.usd_per_month,
        ),
    )


def _candidate(s: Site, store, wants: dict) -> Candidate | None:
    """One store judged; None for what is no store of a tier, or has no published rate."""
    if store.kind in ("local", "requirement", "block ro"):
        return None
    tier = "object store" if store.kind == "object" else "file system"
    want = wants[tier]
    published = _published(store)
    if tier == "file system" and not (published["write"] or published["read"]):
        return None
    known = {k: published[k] for k in want}
    elastic = store.kind in ("object", "cloud parallel fs")  # of a capacity that nobody states
    missing = [k for k in known if known[k] is None and not (k == "capacity" and elastic)]
    sold = store.scope in ("appliance", "TiB")
    pieces = None
    if sold:
        pieces = np.ceil(max(want[k] / v for k, v in known.items() if v))
        known = {k: v and v * pieces for k, v in known.items()}
    short = [k for k, v in known.items() if v and v < want[k] * (1 - 1e-9)]
    misses = columns(
        what=short,
        needed=[want[k] for k in short],
        has=[known[k] for k in short],
        short_by=[want[k] / known[k] for k in short],
    )
    held = pieces * TIB if store.scope == "TiB" else want["capacity"]
    price = _ok(store.usd_per_gb_month)
    month = price and held / 1e9 * price
    provider = provider_of(s.cluster)
    own = provider in ("AWS", "GCP", "Azure")
    rated = tier == "object store" or not {"write", "read"} & set(missing)
    return Candidate(
        **{k: getattr(store, k) for k in SAME},
        tier=tier,
        within_reach=store.sold_by == provider if own else bool(store.sold_by),
        pieces=pieces,
        piece=store.scope if sold else "",
        write_bytes_per_s=known.get("write"),
        read_bytes_per_s=known.get("read"),
        capacity_bytes=known.get("capacity"),
        meets=not misses and rated,
        misses=misses,
        unknown=tuple(missing),
        usd_per_month=month,
        usd_per_run=month and month * s.run.days / MONTH_DAYS,
    )


def _published(store) -> dict:
    """Rates and size of a store, or of one piece of it; None where nobody has published one."""
    read = _ok(store.total_read_bytes_per_s)
    sized = store.scope == "TiB"
    return {
        "write": _ok(store.total_write_bytes_per_s) or (read if sized else None),
        "capacity": TIB if sized else _ok(store.capacity_bytes),
        "read": read,
    }


def _twice(s: Site, size: float, volume: float, has) -> dict:
    """What twice the store's rate is worth: shorter until durable, shorter loads; goodput gained,
    dollars a month. The interval stays."""
    e = s.e
    write = min(has.write_bytes_per_s, s.used_nodes * has.node_write_bytes_per_s)
    read = min(has.read_bytes_per_s, s.used_nodes * has.node_read_bytes_per_s)
    durable = e.checkpoint_durable_s - size / write / 2
    now = ettr(e)
    faster = replace(
        e,
        checkpoint_durable_s=max(durable, 0.0),
        restart_s=max(e.restart_s - volume / read / 2, 0.0),
    )
    gain = e.goodput * (ettr(faster) / now - 1) if now > 0 else 0.0
    return {
        "goodput_gain": gain,
        "days_gained": s.run.days * gain,
        "usd_per_month": s.run.usd(MONTH_DAYS * gain),
        "durable_s": durable,
        "fixed_s": COMMIT_S + LOAD_S,
    }


def _lines(worst: Need, found, provider: str) -> Iterator:
    """What binds first, and the first store to rent and to buy of each tier."""
    words = texts("advice", "stores")
    then = words["over"].get(worst.what, words["over else"]) if worst.load > 1 else words["first"]
    then = fill(then, taken=constant("read_share") * worst.load)
    yield fill(words["worst"], worst=worst, then=then)
    for tier in ("file system", "object store"):
        good = [c for c in found if c.tier == tier and c.meets and c.within_reach]
        bought = [c for c in good if c.sold_by == "makers"]
        rented = [c for c in good if c.usd_per_month is not None and c not in bought]
        first = min(rented, key=lambda c: c.usd_per_month, default=None)
        yield from lines(
            words["market"],
            rented=first,
            bought=bought and bought[0],
            unpriced=not (rented or bought) and good and good[0],
            beside="" if provider or not first else fill(words["beside"], c=first),
            recalled=bought and bought[0].verified == "memory" and words["recall"] or "",
        )
