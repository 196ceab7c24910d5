"""What fails together: how many plan replicas each domain takes out, how often, what brings the job
back, at what cost in goodput."""

from collections.abc import Iterator, Sequence
from math import lcm

import numpy as np
from scantling.base.records import Known, Lines, Record, record
from scantling.base.show import seconds, several
from scantling.base.units import DAY_S, HOUR_S, YEAR_S
from scantling.endure import elastic
from scantling.endure.cost import power_w
from scantling.endure.reliability import GOES_ON

from .constants import CONSTANTS
from .fabric.build import built, slices_of
from .fabric.topology import Topology
from .facts import number, source
from .job_site import Run, Site
from .placement import Blocks, blocks_of

LLAMA3_DAYS = 54.0
LLAMA3_DEVICES = 16_384
TABLE5 = "Llama 3 Herd of Models, arXiv 2407.21783, Table 5"
SILENCE = "no published rate; none among Llama 3's 419 interruptions in 54 days"
WIDE = ("rack", "leaf", "pod-maintenance", "row", "cube")  # domains of several nodes
NEAR = ("node", "rack", "leaf")  # domains that spares are held for


@record
class Domain:
    """One failure domain of a job, before its loss is worked out."""

    id: str
    what: str
    devices: int  # that stop together
    rate: Known  # events a day; None where nobody has published one
    rate_source: str
    copy: str  # nearest copy that outlives it
    back: str = ""  # what brings the job back; else a spare, a repair or fewer nodes
    evicts: bool = True  # whether nodes are lost
    scattered: bool = False  # one device in each of the nodes
    whole_nodes: bool = False  # a device takes its node along
    planned: bool = False  # saves first
    apart: bool = False  # not among the losses that the closed form of goodput counts
    repair_s: Known = None  # until it is back; None: as a node
    late_s: float = 0.0  # training that is thrown away beside what any failure loses


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
    # what one loss costs the run, waiting included: times events it is the days lost; None where
    # nothing is published
    each_s: Known
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
    # sum over rows without waits; equals detection + restart + lost work + sdc of the endurance
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
    each of another replica until all are hit; from lcm(size, block) on they repeat.
    """
    starts = np.arange(0, min(devices, lcm(size, block)), size)
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
    work, a corruption's with the steps since it and the checks for it (first-order sums overstate
    it at short times between failures). Waiting for nodes beyond the spares is the smaller of one
    repair and shrinking.
    """
    s = s.most(lambda one: one.stalled_share)
    known = known_domains(s)
    counted = [d for d in known if not d.planned and not d.apart]
    first_order = sum((d.rate or 0.0) / DAY_S * s.failure_s for d in counted)
    bad = s.e.badput
    exact = bad["detection"] + bad["restart"] + bad["lost work"]
    factor = exact / first_order if first_order > 0 else 1.0
    rows = tuple(_loss(s, d, 1.0 if d.apart else factor) for d in known)
    waits = {x.id: (x.events_per_run or 0.0) * x.wait_s / DAY_S / s.run.days for x in rows}
    inside = {d.id for d in counted}
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
        advice=tuple(_advice(s, rows)),
    )


def known_domains(s: Site) -> tuple[Domain, ...]:
    """The failure domains that this site has, small to large."""
    topology = built(s.cluster).topology
    network = blocks_of(s.cluster, topology)
    return (
        *_device_domains(s),
        *_node_domains(s, network),
        *_circuit_domains(s, topology),
        *_switch_domains(s, network),
        *_site_domains(s, network),
    )


def _device_domains(s: Site) -> Iterator[Domain]:
    """A process, a device that computes wrongly, a device that fails."""
    often = s.e.failures_per_day
    yield Domain(
        id="process",
        what="one process dies and its node is healthy",
        devices=1,
        rate=often["software"],
        rate_source=TABLE5,
        copy="L0",
        evicts=False,
        back="restart in place from host memory",
    )
    yield Domain(
        id="corruption",
        what="a device computes wrongly; found late, every copy since is suspect",
        devices=1,
        rate=often["sdc"],
        rate_source=TABLE5,
        copy="L2",
        back="rewind to a copy from before it, after the device is found",
        late_s=max(s.e.check_every_s / 2 - s.e.checkpoint_durable_s, 0.0),
    )
    yield Domain(
        id="device",
        what="device, its memory or its links: the node is drained",
        devices=1,
        rate=often["gpu"],
        rate_source=TABLE5,
        copy="L1",
        whole_nodes=True,
    )


def _leaf_nodes(s: Site, network: Blocks) -> int:
    return network.unit // s.per_node


def _beyond_a_leaf(s: Site, network: Blocks) -> bool:
    """Whether the job stands under several leaf switches, so that one can be told from a link."""
    return s.used > _leaf_nodes(s, network) * s.per_node and not s.torus


def _node_domains(s: Site, network: Blocks) -> Iterator[Domain]:
    """A host, its power supplies, one of its links."""
    often = s.e.failures_per_day
    yield Domain(
        id="node",
        what="host, board, disk or unplanned maintenance of one node",
        devices=s.per_node,
        rate=often["node"] + often["maintenance"] + often["storage"],
        rate_source=TABLE5,
        copy="L1",
    )
    yield Domain(
        id="power-supply",
        what="more power supplies of a node fail than it can lose (two of six)",
        devices=s.per_node,
        rate=often["power"],
        rate_source=TABLE5,
        copy="L1",
        whole_nodes=True,
    )
    link = "a card, cable or transceiver: one rail of one node"
    if s.torus:
        link = "a link of the torus or its cable"
    yield Domain(
        id="link",
        what=link,
        devices=1,
        rate=often["link"] + (0.0 if _beyond_a_leaf(s, network) else often["switch"]),
        rate_source=TABLE5,
        copy="L1",
        scattered=True,
        evicts=False,
        back="reroute or swap the node",
    )


def _circuit_domains(s: Site, topology: Topology) -> Iterator[Domain]:
    """What optical circuit switches join: cubes, and the switches themselves."""
    slices = slices_of(s.cluster)
    circuits = topology.circuits // -(-slices.number // slices.sharing)
    if not circuits:
        return
    chips = int(CONSTANTS.cube)
    pod = min(slices.chips * slices.sharing, s.used)
    yield Domain(
        id="cube",
        what=f"{chips} chips behind one set of optical ports: a spare cube is patched in",
        devices=chips,
        rate=None,
        rate_source=SILENCE,
        copy="L1",
        back="patch a spare cube in",
    )
    yield Domain(
        id="optical-switch",
        what=f"one of a pod's {circuits} optical switches: cubes lose a link",
        devices=pod,
        rate=circuits * -(-s.used // pod) * number("R096") / 100 if pod > chips else 0.0,
        rate_source=source("R096"),
        copy="L2",
        evicts=False,
        back="re-patch around it",
    )


def _rack_devices(s: Site, network: Blocks) -> int:
    """Devices of a rack under the job."""
    rack = s.domain_devices if s.racks_join else network.rack
    return min(rack, s.used)


def _switch_domains(s: Site, network: Blocks) -> Iterator[Domain]:
    """A leaf switch and a rack, where switches join nodes."""
    if s.torus or s.used <= s.per_node:
        return
    leaf = _leaf_nodes(s, network)
    yield Domain(
        id="leaf",
        what=(
            f"a leaf switch (rail or top of rack) with its {leaf} nodes; dual-homed cards ride "
            "through"
        ),
        devices=min(leaf, s.used_nodes),
        rate=s.e.failures_per_day["switch"] if _beyond_a_leaf(s, network) else 0.0,
        rate_source=source("R074"),
        copy="L1",
        scattered=True,
        back="reroute over the other plane, else wait for the switch",
    )
    rack = "rack: busbar, PDU or top-of-rack power"
    if s.racks_join:
        rack = "NVLink rack: switch tray, busbar or leak"
    yield Domain(
        id="rack",
        what=rack,
        devices=_rack_devices(s, network),
        rate=None,
        rate_source=SILENCE,
        copy="L1",
    )


def _site_domains(s: Site, network: Blocks) -> Iterator[Domain]:
    """A pod that is drained, a row, the building."""
    yield Domain(
        id="pod-maintenance",
        what="planned stop: drain of a pod, firmware, configuration",
        devices=min(s.used, s.cluster.pod_devices or s.used),
        rate=s.e.planned_per_day,
        rate_source=source("R020"),
        copy="L2",
        evicts=False,
        planned=True,
        back="save, drain, restart on the other nodes",
    )
    if s.used > s.per_node:
        racks = CONSTANTS.row_racks
        yield Domain(
            id="row",
            what=f"row: {racks:.0f} racks on one cooling loop or busway",
            devices=min(s.used, int(racks) * _rack_devices(s, network)),
            rate=None,
            rate_source=SILENCE,
            copy="L2",
            apart=True,
            repair_s=CONSTANTS.row_repair_s,
        )
    in_three_years = -np.log1p(-number("R147") / 100)
    yield Domain(
        id="building",
        what="building: power feed or cooling plant",
        devices=-(-s.used // s.sites),
        rate=float(in_three_years / (3 * YEAR_S / DAY_S) * s.sites),
        rate_source=source("R147"),
        copy="L3",
        apart=True,
        repair_s=CONSTANTS.building_repair_s,
        back=_without_the_building(s),
    )


def _without_the_building(s: Site) -> str:
    """What brings the job back where a building is lost."""
    if s.sites > 1:
        return "the other sites go on, or restore from the object store"
    return "wait for the building, or restore on another machine from the object store"


def _loss(s: Site, d: Domain, factor: float) -> DomainLoss:
    """What one loss of a domain means; `factor` scales first-order losses to the exact ones."""
    used = s.used
    run = s.run
    dp: int = s.plan["dp"]
    devices = min(d.devices, used)
    # a rail has one device in each of its nodes
    nodes = devices if d.scattered else -(-devices // s.per_node)
    size = min(nodes * s.per_node, used) if d.scattered or d.whole_nodes else devices
    hit = replicas_hit(size, s.plan["tp"] * s.plan["cp"], dp, used)
    stalled = min(dp, -(-hit // s.tied_replicas) * s.tied_replicas)
    covered = not d.evicts or -(-size // s.per_node) <= s.standbys
    # a stop that is planned saves first; others are detected and lose half a period
    loss = s.save_s + s.e.restart_s if d.planned else s.failure_s + d.late_s
    wait = 0.0 if covered else _wait_s(s, stalled, d.repair_s)
    events = cost = days = most = None
    if d.rate is None:
        most = CONSTANTS.none_seen / LLAMA3_DAYS * run.days * used / LLAMA3_DEVICES
    else:
        events = d.rate * run.days
        cost = d.rate / DAY_S * ((loss - d.late_s) * factor + wait)
        if d.late_s:
            cost += s.e.badput["sdc"]
        if d.planned:
            cost = s.e.badput["planned stops"]
        days = cost * run.days
    return DomainLoss(
        id=d.id,
        what=d.what,
        copy=d.copy,
        devices=devices,
        nodes=nodes,
        count=-(-used // (size if d.scattered and nodes > 1 else devices)),
        replicas=hit,
        replicas_stalled=stalled,
        replicas_compact=replicas_hit(size, s.replica, dp, used),
        of_replicas=dp,
        events_per_run=events,
        at_most_per_run=most,
        days_between=1 / d.rate if d.rate else None,
        rate_source=d.rate_source,
        spares_cover=covered,
        recovers=d.back or _recovery(covered, stalled < dp and s.a.endurance.recovery in GOES_ON),
        each_s=days * DAY_S / events if events and days is not None else None,
        loss_s=loss,
        wait_s=wait,
        goodput_cost=cost,
        days_lost=days,
        usd_lost=run.usd(days),
        goodput_at_most=most and most * (loss + wait) / DAY_S / run.days,
        one_percent_every_days=(loss + wait) / DAY_S / 0.01,
    )


def _recovery(covered: bool, replicas_left: bool) -> str:
    """What brings the job back where a domain has no way of its own."""
    if covered:
        return "a spare node, restored from its peer"
    return "fewer replicas until the repair" if replicas_left else "wait for repair"


def _wait_s(s: Site, stalled: int, repair_s: Known) -> float:
    """Seconds that the job loses for nodes beyond the spares: one repair (of a node where the
    domain has none of its own), or shrinking where the run does."""
    repair = s.e.repair_s if repair_s is None else repair_s
    dp = s.plan["dp"]
    if dp <= stalled or s.a.endurance.recovery not in GOES_ON:
        return repair
    shrunk = elastic.wait_or_shrink(repair, s.micro_batches, dp, lost=stalled)
    return min(repair, float(shrunk["shrink_loss_s"]))


def _advice(s: Site, rows: Sequence[DomainLoss]) -> Iterator[str]:
    """What the table says to do, each line only where it holds."""
    dp = s.plan["dp"]
    tied = s.tied_replicas
    if len(s.phases) > 1:
        yield (
            f"judged by {s.phase.name}, in which the loss of a node stops the largest share of its "
            f"{dp} replicas"
        )
    if tied > 1:
        yield (
            f"expert groups tie {tied} of {dp} replicas together: one lost device stalls all {tied}"
        )
    wide = [x for x in rows if x.id in WIDE and x.replicas >= dp > 1 and x.replicas_compact < dp]
    if wide:
        yield (
            f"losing a {wide[-1].id.split('-')[0]} touches all {dp} replicas; with each replica's "
            f"stages side by side it touches {wide[-1].replicas_compact}, at the price of longer "
            "gradient rings"
        )
    yield from _beyond_spares(s, [x for x in rows if x.id in NEAR and not x.spares_cover])
    if s.used >= CONSTANTS.swing_devices and s.cluster.node_power_w > 0:
        yield from _swings(s)


def _beyond_spares(s: Site, short: Sequence[DomainLoss]) -> Iterator[str]:
    """Domains that the spares do not cover."""
    if not short:
        return
    spares = "no spare covers"
    if s.standbys:
        spares = f"spares of {several(s.standbys, 'node')} do not cover"
    most = several(max(x.nodes for x in short), "node")
    shrunk = ""
    goes_on = s.a.endurance.recovery in GOES_ON
    if goes_on and min(x.replicas_stalled for x in short) < s.plan["dp"]:
        shrunk = " or continues with fewer nodes"
    yield (
        f"{spares} {', '.join(x.id for x in short)} ({most}): after such a loss the job waits up "
        f"to {s.e.repair_s / HOUR_S:.1f} h{shrunk}"
    )


def _swings(s: Site) -> Iterator[str]:
    """Swings of power within a step, and what a cap of the power costs: clocks go with the cube
    root of the power."""
    step = s.a.chosen.step
    layers = step.gemm + step.attention + step.elementwise + step.recompute
    computes = float((layers + step.logits + step.optimizer) / step.total)
    clock = CONSTANTS.power_cap ** (1 / 3)
    yield (
        f"all {s.used:,} devices compute and wait together: their nodes' "
        f"{power_w(s.cluster, s.used) / 1e6:.0f} MW swing within each step of {seconds(s.step_s)}, "
        f"{1 - computes:.0%} of which waits (tens of megawatts at 16,384 H100: Llama 3, section "
        "3.3.4); agree ramp rates with the utility, hold a floor of power while waiting, or store "
        "energy in the power supplies (up to 30 % less peak: NVIDIA on GB300 NVL72)"
    )
    days = s.run.days * computes * (1 / clock - 1)
    yield (
        f"capped to {CONSTANTS.power_cap:.0%} of the power, clocks fall to about {clock:.0%} "
        f"(power goes with the cube of the clock) and the run takes {days:.1f} days longer; "
        "communication keeps its pace"
    )
