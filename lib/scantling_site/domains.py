"""What fails together: how many plan replicas each domain takes out, how often, what brings the job
back, at what cost in goodput. The domains stand in tables/domains.yaml."""

import numpy as np
from scantling.base.records import Known, Lines, Record, Rows, record
from scantling.base.show import several
from scantling.base.units import DAY_S, YEAR_S
from scantling.endure import elastic
from scantling.endure.cost import power_w
from scantling.physics.step import COMPUTE

from .network.build import built, slices_of
from .placement import blocks
from .site import Run, Site
from .texts import constant, fill, lines, number, source, texts

BUSY = (*COMPUTE, "logits", "recompute", "optimizer")  # parts of a step that compute
LLAMA3_DAYS = 54.0
LLAMA3_DEVICES = 16_384
SOURCES = {
    "table5": "Llama 3 Herd of Models, arXiv 2407.21783, Table 5",
    "silence": "no published rate; none among Llama 3's 419 interruptions in 54 days",
}


@record
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
    events_per_run: Known
    # where nothing is published: with none in Llama 3's 54 days, at most three (95 %), scaled by
    # device-days
    at_most_per_run: Known
    days_between: Known
    rate_source: str
    # nearest copy that outlives it: L0 host memory, L1 peer, L2 file system, L3 object store
    copy: str
    spares_cover: bool
    recovers: str
    loss_s: float  # detection, restart, work since the last durable copy
    wait_s: float  # for nodes that the spares do not cover, or its cost while shrunk
    goodput_cost: Known  # share of the wall time of the run
    days_lost: Known
    usd_lost: Known
    goodput_at_most: Known  # at_most_per_run x the loss of one, of the run
    one_percent_every_days: float  # how often it may happen before it costs one per cent of the run


@record
class Domains(Record):
    """All domains, smallest first; `order` is how ranks are laid over devices, `expert_span` the
    replicas that one expert group ties together."""

    run: Run
    phase: str  # the one in which the loss of a node stops most replicas: the rows are its own
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
    advice: Lines


def replicas_hit(size: int, block: int, replicas: int, devices: int) -> int:
    """Most data-parallel replicas that have a rank among `size` neighbouring devices.

    size : devices of the domain, aligned to multiples of itself.  block : neighbouring ranks that
    belong to one replica (tp x cp in Megatron's order tp, cp, dp, pp; tp x cp x pp where stages
    stand side by side).  replicas : dp.  devices : ranks of the job.

    A block of ranks [a, b) touches floor((b - 1) / block) - floor(a / block) + 1 runs of ranks,
    each of another replica until all are hit.
    """
    starts = np.arange(0, devices, size)
    last = np.minimum(starts + size, devices) - 1
    return int(min((last // block - starts // block + 1).max(), replicas))


def domains(s: Site) -> Domains:
    """The failure domains of a design, from one process to the building.

    Rates: causes by the counts of Llama 3's Table 5 at the design's own rate; 1 % of all failures
    take a switch with 32 machines (ByteRobust, s8.2); a building's serious outage from Uptime
    Institute's survey (20 % in three years). Where nothing is published the row has the loss of one
    event, how often it may happen, and an upper bound: none of Llama 3's 419 interruptions was a
    rack, a row or more, so at most three in 54 days of 16,384 devices (rule of three, 95 %). Loss
    of one event = detection + restart + half a period + the durable time. goodput_cost = events x
    loss / run, scaled so that the rows sum to the exact closed form's detection, restart and lost
    work (first-order sums overstate it at short times between failures). Waiting for nodes beyond
    the spares is the smaller of one repair and shrinking.
    """
    s = s.most("stalled_share")
    table = known_domains(s)
    # a stop that is planned saves first; others are detected and lose half a period
    planned = s.save_s + s.e.restart_s
    losses = {d["id"]: planned if d.get("planned") else s.failure_s for d in table}
    counted = [d for d in table if not d.get("planned") and not d.get("apart")]
    first = sum((d["rate"] or 0.0) / DAY_S * losses[d["id"]] for d in counted)
    bad = s.e.badput
    exact = bad["detection"] + bad["restart"] + bad["lost work"]
    factor = exact / first if first > 0 else 1.0
    rows = tuple(_row(s, d, losses[d["id"]], 1.0 if d.get("apart") else factor) for d in table)
    waits = {x.id: (x.events_per_run or 0.0) * x.wait_s / DAY_S / s.run.days for x in rows}
    inside = {d["id"] for d in counted}
    costs = sum((x.goodput_cost or 0.0) - waits[x.id] for x in rows if x.id in inside)
    return Domains(
        run=s.run,
        phase=s.phase.name,
        order="tp, cp, dp, pp",
        compact_order="tp, cp, pp, dp",
        expert_span=s.tied_replicas,
        rows=rows,
        goodput=s.e.goodput,
        unplanned_cost=costs - waits["pod-maintenance"],
        waits_cost=sum(waits.values()),
        planned_cost=bad["planned stops"],
        advice=_advice(s, rows),
    )


def known_domains(s: Site) -> Rows:
    """Rows of tables/domains.yaml that this site has, with sizes and events a day."""
    cluster = s.cluster
    used = s.used
    often = s.e.failures_per_day
    domain = cluster.scale_up_domain
    switched = not s.torus
    unit, _, rack = blocks(cluster)
    leaf = unit // s.per_node
    rack = min(domain if s.racks_join else rack, used)
    slices, of_one, sharing = slices_of(cluster)
    circuits = built(cluster)[0].circuits // -(-slices // sharing)
    chips = int(constant("cube"))
    slice_ = min(of_one * sharing, used)
    leaves = used > leaf * s.per_node and switched
    share = {
        **often,
        "host": often["node"] + often["maintenance"] + often["storage"],
        "link": often["link"] + (0.0 if leaves else often["switch"]),
        "switch": often["switch"] if leaves else 0.0,
    }
    return fill(
        texts("domains"),
        s,
        **{f"of_{cause}": x for cause, x in share.items()},
        circuits=circuits,
        chips=chips,
        slice=slice_,
        optical=circuits * -(-used // slice_) * number("R096") / 100 if slice_ > chips else 0.0,
        leaf=leaf,
        wired=switched and used > s.per_node,
        several_nodes=used > s.per_node,
        rack=rack,
        link="a card, cable or transceiver: one rail of one node"
        if switched
        else "a link of the torus or its cable",
        rack_loss="NVLink rack: switch tray, busbar or leak"
        if s.racks_join
        else "rack: busbar, PDU or top-of-rack power",
        leaf_devices=min(leaf, s.used_nodes),
        pod=min(used, cluster.pod_devices or used),
        row=min(used, int(constant("row_racks")) * rack),
        site=-(-used // s.sites),
        outage=-np.log1p(-number("R147") / 100) / (3 * YEAR_S / DAY_S) * s.sites,
    )


def _row(s: Site, domain: dict, loss: float, factor: float) -> DomainLoss:
    used = s.used
    run = s.run
    rate = domain["rate"]
    dp = s.plan["dp"]
    block = s.plan["tp"] * s.plan["cp"]
    devices = min(domain["devices"], used)
    scattered = domain.get("scattered", False)
    # a rail has one device in each of its nodes
    nodes = devices if scattered else -(-devices // s.per_node)
    size = min(nodes * s.per_node, used) if scattered or domain.get("whole_nodes") else devices
    hit, compact = (replicas_hit(size, ranks, dp, used) for ranks in (block, s.replica))
    stalled = min(dp, -(-hit // s.tied_replicas) * s.tied_replicas)
    covered = (-(-size // s.per_node) if domain.get("evicts", True) else 0) <= s.standbys
    wait = 0.0 if covered else _wait_s(s, stalled)
    total = loss + wait
    events = cost = days = most = None
    if rate is None:
        most = constant("none_seen") / LLAMA3_DAYS * run.days * used / LLAMA3_DEVICES
    else:
        events = rate * run.days
        planned = domain.get("planned") and s.e.badput["planned stops"]
        cost = rate / DAY_S * (loss * factor + wait) if planned is None else planned
        days = cost * run.days
    back = "wait for repair" if dp <= stalled else "shrink, or wait for repair"
    if covered:
        back = "a spare node, restored from its peer"
    known = domain["from"]
    return DomainLoss(
        **{k: domain[k] for k in ("id", "what", "copy")},
        devices=devices,
        nodes=nodes,
        count=-(-used // (size if scattered and nodes > 1 else devices)),
        replicas=hit,
        replicas_stalled=stalled,
        replicas_compact=compact,
        of_replicas=dp,
        events_per_run=events,
        at_most_per_run=most,
        days_between=1 / rate if rate else None,
        rate_source=SOURCES.get(known) or source(known),
        spares_cover=covered,
        recovers=domain.get("back", back),
        loss_s=loss,
        wait_s=wait,
        goodput_cost=cost,
        days_lost=days,
        usd_lost=run.usd(days),
        goodput_at_most=most and most * total / DAY_S / run.days,
        one_percent_every_days=total / DAY_S / 0.01,
    )


def _wait_s(s: Site, stalled: int) -> float:
    """Seconds that the job loses for nodes beyond the spares: one repair, or shrinking."""
    repair = s.e.repair_s
    dp = s.plan["dp"]
    if dp <= stalled:
        return repair
    shrunk = elastic.wait_or_shrink(repair, s.micro_batches, dp, lost=stalled)
    return min(repair, shrunk["shrink_loss_s"])


def _advice(s: Site, rows) -> Lines:
    """What the table says to do, each line only where it holds."""
    dp = s.plan["dp"]
    spares = s.standbys
    wide = [
        x
        for x in rows
        if x.replicas >= dp > 1
        and x.replicas_compact < dp
        and x.id in ("rack", "leaf", "pod-maintenance", "row", "cube")
    ]
    short = [x for x in rows if not x.spares_cover and x.id in ("node", "rack", "leaf")]
    least = min((x.replicas_stalled for x in short), default=dp)
    step, clock = s.a.chosen.step, constant("power_cap") ** (1 / 3)
    computes = sum(getattr(step, part) for part in BUSY) / step.total
    return lines(
        texts("advice", "domains"),
        s,
        swings=s.used >= constant("swing_devices") and s.cluster.node_power_w > 0,
        watts=power_w(s.cluster, s.used),
        waits=1 - computes,
        clock=clock,
        several=len(s.phases) > 1,
        capped_days=s.run.days * computes * (1 / clock - 1),
        span=s.tied_replicas,
        dp=dp,
        tied=s.tied_replicas > 1,
        held=f"spares of {several(spares, 'node')} do not cover" if spares else "no spare covers",
        most=several(max((x.nodes for x in short), default=0), "node"),
        worst=wide[-1].id.split("-")[0] if wide else "",
        compact=wide[-1].replicas_compact if wide else 0,
        short=", ".join(x.id for x in short),
        shrunk=" or continues with fewer nodes" if least < dp else "",
    )
