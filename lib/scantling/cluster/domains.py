"""What fails together: how many plan replicas each domain takes out, how often, what brings the job
back, at what cost in goodput."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.records import Record
from ..base.show import several
from ..base.units import DAY_S, YEAR_S
from ..endure import elastic, failures
from ..physics.cases import micro_batches
from .network.build import built
from .placement import blocks
from .site import Run, is_torus, run_of, site_of
from .texts import number, source

SWITCH_SHARE = (
    0.01  # of all failures take a switch and the machines on it, 32 there (R074, ByteRobust s8.2)
)
PSU_SHARE = 3 / 419  # Llama 3, Table 5
ROW_RACKS = 8  # racks on one coolant distribution unit or busway, at the low end of 8-16
NONE_SEEN = 3.0  # rule of three: none in so many trials is at most three, with 95 % confidence
LLAMA3_DAYS, LLAMA3_DEVICES = 54.0, 16_384
CUBE = 64  # chips that one optical-switch port group moves as a whole (TPU v4, v5p, v7x)
_NONE = "no published rate; none among Llama 3's 419 interruptions in 54 days"
_LLAMA3 = "Llama 3 Herd of Models, arXiv 2407.21783, Table 5"


@dataclass(frozen=True)
class DomainLoss(Record):
    """One failure domain of the job and what one loss of it means. Seconds, days, dollars; None
    where nothing is published or priced."""

    id: str
    what: str
    devices: int  # that stop together
    nodes: int
    count: int  # of such domains under the job
    replicas: int  # data-parallel replicas that lose a rank, at most
    replicas_stalled: int  # those and the ones that share an expert-parallel group with them
    replicas_compact: int  # replicas lost where each replica's stages stand side by side
    of_replicas: int
    events_per_run: float | None
    at_most_per_run: (
        float | None
        # where nothing is published: with none in Llama 3's 54 days, at most three (95 %), scaled
        # by
        # device-days
    )
    days_between: float | None
    rate_source: str
    # nearest copy that outlives it: L0 host memory, L1 peer, L2 file system, L3 object store
    copy: str
    spares_cover: bool
    recovers: str
    loss_s: float  # detection, restart, work since the last durable copy
    wait_s: float  # for nodes that the spares do not cover, or its cost while shrunk
    goodput_cost: float | None  # share of the wall time of the run
    days_lost: float | None
    usd_lost: float | None
    goodput_at_most: float | None  # at_most_per_run x the loss of one, of the run
    one_percent_every_days: float  # how often it may happen before it costs one per cent of the run


@dataclass(frozen=True)
class Domains(Record):
    """All domains, smallest first; `order` is how ranks are laid over devices, `expert_span` the
    replicas that one expert group ties together."""

    run: Run
    order: str
    compact_order: str
    expert_span: int
    rows: tuple[DomainLoss, ...]
    goodput: float
    # sum over rows without waits; equals detection + restart + lost work of the endurance
    unplanned_cost: float
    # waiting for whole domains that the spares do not cover; on top of the headline goodput
    waits_cost: float
    planned_cost: float
    advice: tuple[str, ...]

    def row(self, id: str) -> DomainLoss:
        """The row of one domain. Raises KeyError for an unknown one."""
        for one in self.rows:
            if one.id == id:
                return one
        raise KeyError(id)


def replicas_hit(size: int, block: int, replicas: int, devices: int) -> int:
    """Most data-parallel replicas that have a rank among `size` neighbouring devices.

    size : devices of the domain, aligned to multiples of itself.  block : neighbouring ranks that
    belong to one replica (tp x cp in
    Megatron's order tp, cp, dp, pp; tp x cp x pp where stages stand side by side).  replicas : dp.
    devices : ranks of the job.

    A block of ranks [a, b) touches floor((b - 1) / block) - floor(a / block) + 1 runs of ranks,
    each of another replica until all are hit.
    """
    starts = np.arange(0, devices, size)
    ends = np.minimum(starts + size, devices)
    hit = (ends - 1) // block - starts // block + 1
    return int(min(hit.max(), replicas))


def domains(assessment) -> Domains:
    """The failure domains of a design, from one process to the building.

    Rates: causes by the counts of Llama 3's Table 5 at the design's own rate; 1 % of all failures
    take a switch with 32 machines
    (ByteRobust, s8.2); a building's serious outage from Uptime Institute's survey (20 % in three
    years). Where nothing is published the
    row has the loss of one event, how often it may happen, and an upper bound: none of Llama 3's
    419 interruptions was a rack, a row or
    more, so at most three in 54 days of 16,384 devices (rule of three, 95 %). Loss of one event =
    detection + restart + half a period + the durable time.
    goodput_cost = events x loss / run, scaled so that the rows sum to the exact closed form's
    detection, restart and lost work (first-order
    sums overstate it at short times between failures). Waiting for nodes beyond the spares is the
    smaller of one repair and shrinking.
    """
    site = site_of(assessment)
    assessment = site.a
    r, e, plan = assessment.resolved, assessment.endurance, assessment.chosen.plan
    cluster, run = r.cluster, run_of(assessment)
    used, per_node = int(assessment.figures["devices_used"]), int(cluster.devices_per_node)
    tp_cp, dp = plan["tp"] * plan["cp"], plan["dp"]
    span = min(dp, max(1, -(-plan["ep"] * plan["etp"] // tp_cp)))
    m = float(micro_batches(assessment.chosen.case.job, assessment.chosen.case.plan))
    period = float(e.checkpoint_interval_s + e.checkpoint_stall_s)
    base = float(e.detect_s + e.restart_s + e.checkpoint_durable_s) + period / 2
    spares, repair = int(e.spares) + site.idle_nodes, float(e.repair_s)
    per_day = sum(float(x) for x in e.failures_per_day.values())
    raw = []
    for id, what, devices, rate_per_day, where, copy, scattered in _domains(
        assessment, used, per_day, float(e.planned_per_day)
    ):
        devices = min(devices, used)
        nodes = (
            devices if scattered else -(-devices // per_node)
        )  # a rail has one device in each of its nodes
        size = (
            min(nodes * per_node, used)
            if scattered or id in ("device", "power-supply")
            else devices
        )
        hit = replicas_hit(size, tp_cp, dp, used)
        stalled = min(dp, -(-hit // span) * span)
        compact = replicas_hit(size, tp_cp * plan["pp"], dp, used)
        evicted = (
            0
            if id in ("process", "link", "optical-switch", "pod-maintenance")
            else -(-size // per_node)
        )
        covered = evicted <= spares
        wait = 0.0
        if not covered:
            wait = repair
            if dp > stalled:
                wait = min(
                    wait,
                    float(elastic.wait_or_shrink(repair, m, dp, lost=stalled)["shrink_loss_s"]),
                )
        planned = id == "pod-maintenance"
        loss = (
            float(e.checkpoint_stall_s + e.checkpoint_durable_s + e.restart_s) if planned else base
        )
        raw.append(
            (
                id,
                what,
                devices,
                nodes,
                max(1, -(-used // (size if scattered and nodes > 1 else devices))),
                hit,
                stalled,
                compact,
                rate_per_day,
                where,
                copy,
                covered,
                loss,
                wait,
                planned,
            )
        )
    first = sum(
        (x[8] or 0.0) / DAY_S * x[12] for x in raw if not x[14] and x[0] not in ("row", "building")
    )
    exact = float(e.badput["detection"] + e.badput["restart"] + e.badput["lost work"])
    factor = exact / first if first > 0 else 1.0
    rows = tuple(_row(x, run, factor, dp, float(e.badput["planned stops"]), used) for x in raw)
    waits = sum((x.events_per_run or 0.0) * x.wait_s / DAY_S / run.days for x in rows)
    unplanned = sum(
        x.goodput_cost or 0.0 for x in rows if x.id not in ("pod-maintenance", "row", "building")
    ) - sum(
        (x.events_per_run or 0.0) * x.wait_s / DAY_S / run.days
        for x in rows
        if x.id not in ("row", "building")
    )
    return Domains(
        run,
        "tp, cp, dp, pp",
        "tp, cp, pp, dp",
        int(span),
        rows,
        float(e.goodput),
        unplanned,
        waits,
        float(e.badput["planned stops"]),
        _advice(rows, span, dp, spares, repair),
    )


def _domains(assessment, used: int, per_day: float, planned_per_day: float):
    """(id, what, devices, events a day or None, source, nearest copy, one device in each node) from
    small to large."""
    share = {c.id: c.share for c in failures.CAUSES}
    cluster = assessment.resolved.cluster
    per_node, torus = int(cluster.devices_per_node), is_torus(cluster)
    unit, _, rack = blocks(cluster)
    leaf, rack = (
        unit // per_node,
        min(
            cluster.scale_up_domain if per_node < cluster.scale_up_domain and not torus else rack,
            used,
        ),
    )
    alone = used <= per_node  # one node: nothing above it can take more
    yield (
        "process",
        "a rank dies, its node is well",
        1,
        per_day * share["software"],
        _LLAMA3,
        "L0",
        False,
    )
    yield (
        "corruption",
        "a device computes wrongly; found late, every copy since is suspect",
        1,
        per_day * share["sdc"],
        _LLAMA3,
        "L2",
        False,
    )
    yield (
        "device",
        "device, its memory or its links: the node is drained",
        1,
        per_day * share["accelerator"],
        _LLAMA3,
        "L1",
        False,
    )
    yield (
        "node",
        "host, board, disk or unplanned maintenance of one node",
        per_node,
        per_day * (share["host"] - PSU_SHARE + share["maintenance"]),
        _LLAMA3,
        "L1",
        False,
    )
    yield (
        "power-supply",
        "more supplies lost than are redundant (two of six ride through)",
        per_node,
        per_day * PSU_SHARE,
        _LLAMA3,
        "L1",
        False,
    )
    switch = SWITCH_SHARE if used > leaf * per_node and not torus else 0.0
    link = (
        "a link of the torus or its cable"
        if torus
        else "a card, cable or transceiver: one rail of one node"
    )
    yield "link", link, 1, per_day * (share["network"] - switch), _LLAMA3, "L1", True
    circuits = built(cluster)[0].circuits
    if circuits:
        yield (
            "cube",
            f"{CUBE} chips behind one set of optical ports: a spare cube is patched in",
            CUBE,
            None,
            _NONE,
            "L1",
            False,
        )
        pod = min(int(cluster.scale_up_domain), used)
        switches = circuits * -(-used // pod)
        yield (
            "optical-switch",
            f"one of a pod's {circuits} optical switches: cubes lose a link",
            pod,
            switches * number("R096") / 100 if pod > CUBE else 0.0,
            source("R096"),
            "L2",
            False,
        )
    if not torus and not alone:
        yield (
            "leaf",
            (
                f"a leaf switch (rail or top of rack) with its {leaf} nodes; dual-homed "
                f"cards ride through"
            ),
            min(leaf, -(-used // per_node)),
            per_day * switch if switch else 0.0,
            source("R074"),
            "L1",
            True,
        )
    wide = int(cluster.scale_up_domain) > per_node and not torus
    if not torus and not alone:
        yield (
            "rack",
            (
                "NVLink rack: switch tray, busbar or leak"
                if wide
                else "rack: busbar, PDU or top-of-rack power"
            ),
            rack,
            None,
            _NONE,
            "L1",
            False,
        )
    pod = int(min(used, cluster.pod_devices or used))
    yield (
        "pod-maintenance",
        "planned stop: drain of a pod, firmware, configuration",
        pod,
        planned_per_day,
        source("R020"),
        "L2",
        False,
    )
    if not alone:
        yield (
            "row",
            f"row: {ROW_RACKS} racks on one cooling loop or busway",
            min(used, ROW_RACKS * rack),
            None,
            _NONE,
            "L2",
            False,
        )
    site = -(-used // max(1, int(cluster.sites)))
    outage = -np.log1p(-number("R147") / 100) / (3 * YEAR_S / DAY_S) * max(1, int(cluster.sites))
    yield (
        "building",
        "building: power feed or cooling plant",
        site,
        float(outage),
        source("R147"),
        "L3",
        False,
    )


_BACK = {
    "process": "restart in place from host memory",
    "corruption": "rewind to a copy from before it, after the device is found",
    "link": "reroute or swap the node",
    "leaf": "reroute over the other plane, else wait for the switch",
    "pod-maintenance": "save, drain, restart on the other nodes",
    "optical-switch": "re-patch around it",
    "cube": "patch a spare cube in",
    "building": "restore elsewhere from the object store",
}


def _row(x, run: Run, factor: float, dp: int, planned_share: float, used: int) -> DomainLoss:
    (
        id,
        what,
        devices,
        nodes,
        count,
        hit,
        stalled,
        compact,
        rate,
        where,
        copy,
        covered,
        loss,
        wait,
        planned,
    ) = x
    if planned:
        cost = planned_share
    elif rate is None:
        cost = None
    else:
        cost = rate / DAY_S * (loss * (factor if id not in ("row", "building") else 1.0) + wait)
    back = _BACK.get(id) or (
        "a spare node, restored from its peer"
        if covered
        else "wait for repair"
        if dp <= stalled
        else "shrink, or wait for repair"
    )
    total = loss + wait
    most = None if rate is not None else NONE_SEEN / LLAMA3_DAYS * run.days * used / LLAMA3_DEVICES
    return DomainLoss(
        id,
        what,
        int(devices),
        int(nodes),
        int(count),
        hit,
        stalled,
        compact,
        dp,
        None if rate is None else rate * run.days,
        most,
        1 / rate if rate else None,
        where,
        copy,
        bool(covered),
        back,
        loss,
        wait,
        cost,
        None if cost is None else cost * run.days,
        None if cost is None else run.usd(cost * run.days),
        None if most is None else most * total / DAY_S / run.days,
        total / DAY_S / 0.01,
    )


def _advice(rows, span: int, dp: int, spares: int, repair: float) -> tuple[str, ...]:
    """What the table says to do, each line only where it holds."""
    out = []
    if span > 1:
        out.append(
            f"expert groups tie {span} of {dp} replicas together: one lost device stalls all {span}"
        )
    worst = next(
        (
            x
            for x in reversed(rows)
            if x.replicas >= dp > 1
            and x.replicas_compact < dp
            and x.id in ("rack", "leaf", "pod-maintenance", "row", "cube")
        ),
        None,
    )
    if worst is not None:
        out.append(
            f"losing a {worst.id.split('-')[0]} touches all {dp} replicas; with each "
            f"replica's stages side by side it touches {worst.replicas_compact}, at the "
            f"price of longer gradient rings"
        )
    short = [x for x in rows if not x.spares_cover and x.id in ("node", "rack", "leaf")]
    if short:
        held = f"spares of {several(spares, 'node')} do not cover" if spares else "no spare covers"
        out.append(
            (
                f"{held} {', '.join(x.id for x in short)} "
                f"({several(max(x.nodes for x in short), 'node')}): each such loss waits up "
                f"to {repair / 3600:.1f} h"
            )
            + (" or runs on shrunk" if min(x.replicas_stalled for x in short) < dp else "")
        )
    return tuple(out)
