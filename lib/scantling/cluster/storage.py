"""Storage around the job: burst tier, parallel file system and object store sized from saves,
restarts and ingest, and what the market has for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import catalogue
from ..base.records import Record
from ..base.show import several
from ..base.units import DAY_S
from ..endure import goodput, storage
from ..endure.checkpoint import COMMIT_S, LOAD_S, WIRE_SHARE, per_writer
from .site import Run, run_of, site_of

READ_SHARE = 0.1  # of a recovery that the transfer of the state may add
SPREAD = 3  # copies kept at the file system at least: newest, the one before, one in flight
MILESTONE_S = DAY_S  # one copy a day goes to the object store for evaluation and far rewinds
TIB = 2.0**40
MONTH_DAYS = 365.25 / 12


@dataclass(frozen=True)
class Need(Record):
    """What one tier must carry, what the design has of it, and the ratio (above one: it does not
    carry it; None: nobody has published it)."""

    tier: str  # burst | file system | object store
    what: str
    needed: float
    has: float | None
    unit: str
    load: float | None
    why: str


@dataclass(frozen=True)
class Candidate(Record):
    """One store of the catalogue against the needs of the file system or the object store."""

    id: str
    name: str
    kind: str
    tier: str
    # a cloud (beside its own machines), makers (to anyone), empty: built by its operator, for
    # comparison
    sold_by: str
    within_reach: (
        bool  # sold to this cluster: by its own cloud where the design names one, else by anyone
    )
    pieces: float | None  # to buy where it is sold by the piece, else None
    piece: str
    write_bytes_per_s: float | None
    read_bytes_per_s: float | None
    capacity_bytes: float | None
    meets: bool
    misses: tuple[dict, ...]  # {what, needed, has, short_by: needed / has}
    unknown: tuple[str, ...]  # figures that nobody has published: not counted as misses
    usd_per_month: float | None
    usd_per_run: float | None
    source: str
    verified: str  # text, secondary, derived or memory: how the catalogue had the rates


@dataclass(frozen=True)
class Stores(Record):
    """The storage architecture of a design."""

    run: Run
    checkpoint_bytes: float
    period_s: float
    bytes_per_node: float
    writers: int
    file_bytes: float
    files_per_s: float  # created while a save is written
    restart_read_bytes: float
    written_bytes_per_day: float
    burst_drive_writes_per_day: float | None
    ingest_bytes_per_s: float
    corpus_bytes: float
    retention: int
    milestones: int
    needs: tuple[Need, ...]
    bottleneck: str
    bottleneck_load: float | None
    candidates: tuple[Candidate, ...]
    chosen: str  # the store that the design names or assumes
    worth_of_twice_the_rate: dict
    lines: tuple[str, ...]

    def need(self, what: str) -> Need:
        """The need of that name. Raises KeyError for an unknown one."""
        for one in self.needs:
            if one.what == what:
                return one
        raise KeyError(what)


def stores(assessment) -> Stores:
    """Size the three tiers of a design's storage and judge the catalogue's stores against them.

    File system: written B / (interval + stall), so that a save is durable before the next begins;
    read at a restart V / (READ_SHARE x
    (detection + restart)), V = B where optimizer states are sharded and B x dp where every replica
    reads its own copy; ingest = global
    batch tokens x bytes / step; room = `storage.capacity` with the retention of
    `checkpoint.retention`. Burst tier: the node's share of a
    copy, its own and a peer's, one whole and one in flight. Object store: one copy a day, the raw
    and the tokenised corpus.
    Candidates: first those that this cluster can have (`within_reach`). Stores sold by the piece
    are counted in pieces until every need is met; others stand as published. Prices per GB and
    month are the
    catalogue's; appliances have none. A figure that nobody has published is named, not guessed.
    """
    assessment = site_of(assessment).a
    r, e, plan = assessment.resolved, assessment.endurance, assessment.chosen.plan
    cluster, run = r.cluster, run_of(assessment)
    size, used = float(e.checkpoint_bytes), int(assessment.figures["devices_used"])
    period, nodes = (
        float(e.checkpoint_interval_s + e.checkpoint_stall_s),
        -(-used // int(cluster.devices_per_node)),
    )
    per_node = size / nodes
    wrote = per_writer(
        size,
        tp=plan["tp"],
        pp=plan["pp"],
        cp=plan["cp"],
        dp=plan["dp"],
        parallel=plan["sharding"] != "none",
    )
    volume = size * (plan["dp"] if plan["sharding"] == "none" else 1)
    tokens = sum(c.phase.tokens or 0.0 for c in assessment.phases) or None
    phase = assessment.chosen.phase
    batch = phase.global_batch * phase.seq_len
    text = storage.corpus(
        tokens or batch * run.days * DAY_S / assessment.figures["step_s"],
        r.model.vocab,
        step_s=assessment.figures["step_s"],
        global_batch_tokens=batch,
        readers=plan["dp"],
    )
    keep = max(int(np.max(e.retention)), SPREAD)
    milestones = int(np.ceil(run.days * DAY_S / MILESTONE_S))
    room = storage.capacity(size, text.bytes, recent=keep, milestones=milestones)
    has = storage.rates(cluster, nodes)
    write, recovery = size / period, float(e.detect_s + e.restart_s)
    read = volume / (READ_SHARE * recovery) if recovery > 0 else 0.0
    nic = cluster.scale_out_bytes_per_s * cluster.devices_per_node
    object_bytes = room["object_store"] + text.raw_bytes + text.bytes
    needs = (
        _need(
            "burst",
            "memory of a node",
            2 * 2 * per_node,
            _ok(cluster.host_memory_bytes) and cluster.host_memory_bytes / 2,
            "bytes",
            (
                "own and a peer's share of a copy, one whole and one in flight, in half of "
                "the host memory"
            ),
        ),
        _need(
            "burst",
            "disks of a node",
            2 * 2 * per_node,
            _ok(cluster.nvme_bytes),
            "bytes",
            "the same on the node's own disks",
        ),
        _need(
            "burst",
            "wire to the peer",
            per_node / period,
            nic * WIRE_SHARE,
            "bytes/s",
            f"a node's share every {period:,.0f} s over {WIRE_SHARE:.0%} of its cards",
        ),
        _need(
            "file system",
            "write",
            write,
            float(has.write_bytes_per_s),
            "bytes/s",
            f"{size / 1e12:.2f} TB durable within {period:,.0f} s, before the next save begins",
        ),
        _need(
            "file system",
            "write per node",
            write / nodes,
            _ok(has.node_write_bytes_per_s),
            "bytes/s",
            "the same from each node",
        ),
        _need(
            "file system",
            "read at restart",
            read,
            float(has.read_bytes_per_s),
            "bytes/s",
            (
                f"{volume / 1e12:.2f} TB adding no more than {READ_SHARE:.0%} to a recovery "
                f"of {recovery:,.0f} s"
            ),
        ),
        _need(
            "file system",
            "ingest",
            text.read_bytes_per_s,
            float(has.read_bytes_per_s),
            "bytes/s",
            f"{batch:,} tokens a step",
        ),
        _need(
            "file system",
            "capacity",
            room["provisioned"],
            _ok(has.capacity_bytes),
            "bytes",
            f"{keep} copies, tokenised corpus and logs, 80 % full",
        ),
        _need(
            "object store",
            "capacity",
            object_bytes,
            None,
            "bytes",
            f"{milestones} daily copies, raw and tokenised corpus",
        ),
        _need(
            "object store",
            "write",
            size / MILESTONE_S + size / (0.1 * MILESTONE_S),
            None,
            "bytes/s",
            "one copy a day, over in a tenth of it",
        ),
    )
    worst = max((n for n in needs if n.load is not None), key=lambda n: n.load)
    found = tuple(
        sorted(
            (
                c
                for s in catalogue.storages().values()
                if (
                    c := _candidate(
                        s, needs, run, room["provisioned"], object_bytes, provider_of(cluster)
                    )
                )
                is not None
            ),
            key=lambda c: (
                c.tier,
                not c.within_reach,
                not c.meets,
                len(c.unknown),
                c.usd_per_month if c.usd_per_month is not None else np.inf,
            ),
        )
    )
    wear = (
        2 * size / nodes * DAY_S / period / cluster.nvme_bytes if _ok(cluster.nvme_bytes) else None
    )
    twice = _twice(e, run, size, volume, has, nodes)
    return Stores(
        run,
        size,
        period,
        per_node,
        int(wrote["writers"]),
        float(wrote["bytes_per_writer"]),
        float(wrote["writers"]) / max(float(e.checkpoint_durable_s), COMMIT_S),
        volume,
        size * DAY_S / period,
        wear,
        text.read_bytes_per_s,
        text.bytes,
        keep,
        milestones,
        needs,
        f"{worst.tier}: {worst.what}",
        worst.load,
        found,
        has.what,
        twice,
        _lines(needs, worst, found, twice, provider_of(cluster)),
    )


def _ok(value) -> float | None:
    return float(value) if value is not None and value == value and value > 0 else None


def _need(tier, what, needed, has, unit, why) -> Need:
    has = has or None
    return Need(
        tier, what, float(needed), has, unit, None if has is None else float(needed / has), why
    )


def provider_of(cluster) -> str:
    """The cloud whose machines or fabric a design names (AWS, GCP, Azure, OCI); empty where it
    names none."""
    node = catalogue.nodes().get(cluster.node)
    if node is not None and node.provider in ("AWS", "GCP", "Azure", "OCI"):
        return node.provider
    return catalogue.fabric(cluster.scale_out).provider


def _candidate(
    s, needs, run: Run, provisioned: float, object_bytes: float, provider: str
) -> Candidate | None:
    if s.kind in ("local", "requirement", "block ro"):
        return None
    tier = "object store" if s.kind == "object" else "file system"
    want = {
        "write": next(n.needed for n in needs if n.tier == tier and n.what == "write"),
        "capacity": object_bytes if tier == "object store" else provisioned,
    }
    if tier == "file system":
        want["read"] = max(n.needed for n in needs if n.what in ("read at restart", "ingest"))
    unit = {
        "write": s.total_write_bytes_per_s,
        "read": s.total_read_bytes_per_s,
        "capacity": TIB if s.scope == "TiB" else s.capacity_bytes,
    }
    known = {k: _ok(unit[k]) for k in want}
    if s.scope == "TiB" and known["write"] is None:
        known["write"] = known["read"] if "read" in known else _ok(s.total_read_bytes_per_s)
    unknown = tuple(
        k
        for k, v in known.items()
        if v is None and not (k == "capacity" and s.kind in ("object", "cloud parallel fs"))
    )
    pieces, piece = None, ""
    if s.scope in ("appliance", "TiB"):
        rated = [want[k] / v for k, v in known.items() if v]
        pieces, piece = (float(np.ceil(max(rated))), s.scope) if rated else (None, s.scope)
        have = {k: None if v is None or pieces is None else v * pieces for k, v in known.items()}
    else:
        have = known
    misses = tuple(
        dict(what=k, needed=want[k], has=have[k], short_by=want[k] / have[k])
        for k in want
        if have[k] is not None and have[k] < want[k] * (1 - 1e-9)
    )
    held = pieces * TIB if s.scope == "TiB" and pieces else want["capacity"]
    month = held / 1e9 * s.usd_per_gb_month if _ok(s.usd_per_gb_month) else None
    rates_known = (
        any(k in ("write", "read") and v for k, v in known.items()) or tier == "object store"
    )
    if not rates_known:
        return None
    reach = s.sold_by == provider if provider in ("AWS", "GCP", "Azure") else bool(s.sold_by)
    return Candidate(
        s.id,
        s.name,
        s.kind,
        tier,
        s.sold_by,
        reach,
        pieces,
        piece,
        have.get("write"),
        have.get("read"),
        have.get("capacity"),
        not misses and (tier == "object store" or not {"write", "read"} & set(unknown)),
        misses,
        unknown,
        month,
        None if month is None else month * run.days / MONTH_DAYS,
        s.source,
        s.verified,
    )


def _twice(e, run: Run, size, volume, has, nodes) -> dict:
    """What twice the store's rate is worth: shorter until durable, shorter loads; goodput gained,
    dollars a month. The interval stays."""
    write = min(float(has.write_bytes_per_s), nodes * float(has.node_write_bytes_per_s))
    read = min(float(has.read_bytes_per_s), nodes * float(has.node_read_bytes_per_s))
    moved, loaded = size / write / 2, volume / read / 2
    at = lambda d, r: float(
        goodput.ettr(
            e.mtbf_s,
            e.checkpoint_stall_s,
            e.checkpoint_interval_s,
            durable_s=d,
            restart_s=r,
            down_s=e.detect_s,
        )
    )  # noqa: E731
    now = at(e.checkpoint_durable_s, e.restart_s)
    then = at(
        max(float(e.checkpoint_durable_s) - moved, 0.0), max(float(e.restart_s) - loaded, 0.0)
    )
    gain = float(e.goodput) * (then / now - 1) if now > 0 else 0.0
    return dict(
        goodput_gain=gain,
        days_gained=run.days * gain,
        usd_per_month=run.usd(MONTH_DAYS * gain),
        durable_s=float(e.checkpoint_durable_s) - moved,
        fixed_s=COMMIT_S + LOAD_S,
    )


def _many(c: Candidate) -> str:
    return (
        ""
        if not c.pieces
        else f" ({c.pieces:,.0f} TiB)"
        if c.piece == "TiB"
        else f" ({several(int(c.pieces), c.piece)})"
    )


def _lines(needs, worst, found, twice, provider: str) -> tuple[str, ...]:
    over = {
        "read at restart": (
            f"a restart's transfer takes {READ_SHARE * worst.load:.0%} of a recovery instead "
            f"of {READ_SHARE:.0%}"
        ),
        "memory of a node": "copies go to disks or the file system instead",
        "disks of a node": "copies stay in memory or go to the file system",
        "wire to the peer": "the peer's copy is late",
    }
    out = [
        (
            f"{worst.tier}, {worst.what}: {worst.load:.0%} of what the design has; "
            f"{over.get(worst.what, 'it does not carry the job') if worst.load > 1 else 'it binds first'}"
        )
    ]
    for tier in ("file system", "object store"):
        good = [c for c in found if c.tier == tier and c.meets and c.within_reach]
        rented = [c for c in good if c.usd_per_month is not None and c.sold_by != "makers"]
        if rented:
            first = min(rented, key=lambda c: c.usd_per_month)
            out.append(
                (
                    f"{tier}: {first.name} is the cheapest priced one that meets every need, "
                    f"{first.usd_per_month:,.0f} USD a month{_many(first)}"
                )
                + ("" if provider else f", beside machines of {first.sold_by}")
            )
        bought = next((c for c in good if c.sold_by == "makers"), None)
        if bought is not None:
            out.append(
                (
                    f"{tier}: to buy, {bought.name} meets every need whose figure is "
                    f"published{_many(bought)}; makers publish no price"
                )
                + (
                    "; its rates are from recall, ask for them in writing"
                    if bought.verified == "memory"
                    else ""
                )
            )
        elif good and not rented:
            out.append(
                f"{tier}: {good[0].name} meets every need{_many(good[0])}; no price is published"
            )
    if twice["usd_per_month"] is not None:
        out.append(
            f"twice the store's rate is worth {twice['goodput_gain']:.2%} of goodput, "
            f"{twice['usd_per_month']:,.0f} USD a month of this cluster"
        )
    return tuple(out)
