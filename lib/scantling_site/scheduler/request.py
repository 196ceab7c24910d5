"""What the job asks of its scheduler, as data: gang, topology, resources, time, spares."""

from math import ceil, expm1
from typing import Any, NotRequired, TypedDict

from scantling.base.records import Known
from scantling.base.units import DAY_S
from scantling.catalogue.words import Sharding
from scantling.endure.spares import segments

from ..job_site import Site, pods_of
from ..placement import leaf_nodes

LONGEST_JOB_S = 7 * DAY_S  # what clusters let one job run: judgement
BAD_START_S = 900  # a start that fails sooner has not begun to train: judgement


def stop_lead_s(step_s: float, save_s: float) -> int:
    """Seconds between the signal to stop and the end: three steps, twice a whole save, two minutes;
    at least ten minutes, whole ones."""
    return max(600, 60 * ceil((3 * step_s + 2 * save_s + 120) / 60))


def kill_after_s(step_s: float, save_s: float) -> int:
    """Seconds between SIGTERM and SIGKILL: a step and two whole saves, one to nine minutes."""
    return int(min(540, max(60, step_s + 2 * save_s)))


def early_failures(mtbf_s: float, run_s: float) -> int:
    """Failures in a row within BAD_START_S of a start that faults alone hardly explain.

    The least n with 2 x run_s / mtbf_s starts x p^n < 1 %, p = 1 - exp(-BAD_START_S / mtbf_s) the
    chance of a failure so early (failures without memory); 3 to 20.
    """
    p = -expm1(-BAD_START_S / mtbf_s)
    return next((n for n in range(3, 20) if 2 * run_s / mtbf_s * p**n < 0.01), 20)


def restarts_allowed(mtbf_s: float, run_s: float) -> int:
    """Restarts after failures that a job is allowed: twice those expected, 3 to 1,000."""
    return min(1000, max(3, ceil(2 * run_s / max(mtbf_s, 1.0))))


class Gang(TypedDict):
    """Ranks that start together or not at all."""

    nodes: int
    tasks_per_node: int
    ranks: int
    all_or_nothing: bool
    spare_nodes: int
    least_ranks: int  # with which the job can go on


class Adjacency(TypedDict):
    """Which nodes have to stand together."""

    unit: str  # node | leaf | block | slice
    segment_nodes: int
    segments: int
    block_nodes: int | None  # of the fast domain, where segments leave trays of it
    spare_trays: NotRequired[int]  # of a block
    required: str
    preferred: str
    pods: int
    leaves: int | None
    why: str


class Resources(TypedDict):
    """What a node of the job has."""

    device: str
    devices_per_node: int
    cards_per_node: int
    host_memory_bytes: Known
    exclusive: bool
    shared_memory: str
    locked_memory: str
    cores: str


class Limits(TypedDict):
    """How long the job may run, and how it ends."""

    limit_s: Known
    signal_before_end_s: int
    requeue: bool
    append_output: bool


class Licences(TypedDict):
    """What is shared with other jobs and counted."""

    file_system_write_bytes_per_s: float
    file_system: str


class RankOrder(TypedDict):
    """In which order ranks are laid over the nodes."""

    ranks: str
    replica_nodes: int
    why: str


class Request(TypedDict):
    """What one job asks for; `fields` has it in the words of the chosen scheduler."""

    gang: Gang
    topology: Adjacency
    resources: Resources
    time: Limits
    licences: Licences
    order: RankOrder
    fields: dict[str, Any]


def gang(s: Site) -> Gang:
    """All ranks, and with how many the job can go on."""
    return Gang(
        nodes=s.used_nodes,
        tasks_per_node=s.per_node,
        ranks=s.used,
        all_or_nothing=True,
        spare_nodes=s.spares,
        least_ranks=s.used if s.plan["dp"] < 2 else s.used - s.replica,
    )


def resources(s: Site) -> Resources:
    """Whole nodes."""
    memory = s.cluster.host_memory_bytes
    return Resources(
        device=s.cluster.accelerator.id,
        devices_per_node=s.per_node,
        cards_per_node=s.cluster.nics_per_node,
        host_memory_bytes=memory if memory > 0 else None,
        exclusive=True,
        shared_memory="all of it",
        locked_memory="unlimited",
        cores="all",
    )


def time_limit_s(s: Site) -> Known:
    """A tenth more than the run may take; None where the design names no tokens."""
    days = s.a.days_high or s.a.days
    return days * DAY_S * 1.1 if days else days


def limits(s: Site) -> Limits:
    """Time limit, and the signal before it."""
    return Limits(
        limit_s=time_limit_s(s),
        signal_before_end_s=stop_lead_s(s.step_s, s.save_s),
        requeue=True,
        append_output=True,
    )


def licences(s: Site) -> Licences:
    """The share of the file system."""
    return Licences(
        file_system_write_bytes_per_s=s.e.write_bytes_per_s_needed,
        file_system=s.cluster.storage or "superpod-better",
    )


def rank_order(s: Site) -> RankOrder:
    """The order of the kit."""
    return RankOrder(
        ranks="tp, cp, dp, pp",
        replica_nodes=-(-s.replica // s.per_node),
        why="neighbouring ranks share a node; see the placement",
    )


def talking_ranks(s: Site) -> int:
    """Ranks of the largest group that talks most: tp x cp, ep x etp, the shard group."""
    plan = s.plan
    shard_group = plan["shard_group"] if plan["sharding"] == Sharding.HSDP else 1
    return max(int(plan["tp"] * plan["cp"]), int(plan["ep"] * plan["etp"]), int(shard_group))


def adjacency(s: Site) -> Adjacency:
    """Which nodes have to stand together, by the kind of fabric.

    Segment: the ranks that talk most over the fast tier stay together. On an NVLink rack that is
    the domain's nodes (of a block of all its trays); on a torus the slice; else the nodes of the
    largest group among tp x cp, ep x etp and the shard group, at most those under one leaf
    (`placement.leaf_nodes`), that divides the job.
    """
    if s.torus:
        return _slices(s)
    if s.cluster.scale_up_domain > s.per_node:
        return _racks(s)
    if s.used_nodes == 1:
        return Adjacency(
            unit="node",
            segment_nodes=1,
            segments=1,
            block_nodes=None,
            required="node",
            preferred="node",
            pods=_pods(s),
            leaves=1,
            why="one node",
        )
    return _leaves(s)


def _pods(s: Site) -> int:
    return pods_of(s.cluster, s.used_nodes * s.per_node)


def _slices(s: Site) -> Adjacency:
    ranks = s.used_nodes * s.per_node
    domain = s.cluster.scale_up_domain
    return Adjacency(
        unit="slice",
        segment_nodes=min(s.used_nodes, -(-domain // s.per_node)),
        segments=-(-ranks // domain),
        block_nodes=None,
        required="slice",
        preferred="pod",
        pods=_pods(s),
        leaves=None,
        why=f"a slice of {min(domain, ranks):,} chips is wired when it is handed out",
    )


def _racks(s: Site) -> Adjacency:
    cluster = s.cluster
    trays = max(cluster.accelerator.scale_up_domain_max, cluster.scale_up_domain) // s.per_node
    segment = int(segments(cluster, s.used_nodes).size)
    return Adjacency(
        unit="block",
        segment_nodes=segment,
        segments=-(-s.used_nodes // segment),
        block_nodes=trays,
        spare_trays=trays - segment,
        required="rack",
        preferred="pod",
        pods=_pods(s),
        leaves=None,
        why=(
            f"groups of {talking_ranks(s)} ranks stay on NVLink; {segment} of {trays} trays are "
            "used"
        ),
    )


def _leaves(s: Site) -> Adjacency:
    nodes = s.used_nodes
    leaf = leaf_nodes(s.cluster)
    leaves = -(-nodes // leaf)
    pods = _pods(s)
    group = talking_ranks(s)
    want = min(-(-group // s.per_node), leaf)
    segment = next(n for n in range(want, nodes + 1) if nodes % n == 0)
    stands = f"{leaves} leaves of {leaf} nodes hold"
    if leaves == 1:
        stands = f"one leaf for {nodes} nodes holds"
    pods_note = f" in {pods} pods" if pods > 1 else ""
    return Adjacency(
        unit="leaf",
        segment_nodes=segment,
        segments=-(-nodes // segment),
        block_nodes=None,
        required="pod" if pods > 1 else "leaf",
        preferred="leaf",
        pods=pods,
        leaves=leaves,
        why=f"groups of {group} ranks keep together; {stands} the job{pods_note}",
    )


class SparesRequest(TypedDict):
    """How spares are kept."""

    nodes: int
    recommended: int
    where: str
    warm: str
    usd: Known
    in_repair_on_average: float
    for_99_percent: int
    used_by: str


def spares_request(s: Site) -> SparesRequest:
    """How the spares are kept: where, how warm, how they are used, what they cost."""
    n = s.spares
    return SparesRequest(
        nodes=n,
        recommended=s.e.spares_recommended,
        where=spare_places(s),
        warm=(
            "image pulled, container started, devices checked every five minutes, no communicator"
        ),
        usd=s.run.usd(s.run.days * n / (s.nodes + n)),
        in_repair_on_average=s.in_repair,
        for_99_percent=s.e.spares_for["0.99"],
        used_by="short preemptible jobs until called",
    )


def spare_places(s: Site) -> str:
    """Where the spares stand."""
    n = s.spares
    pods = s.pods
    if not n:
        return f"none are held: {s.a.endurance.without_spares}"
    if s.torus:
        return "in the reservation: a slice is made again around a lost host, none stands by in it"
    if s.racks_join:
        return (
            "as a tray of each of the job's racks where that takes fewer nodes, else as whole "
            "segments beside them"
        )
    if pods < 2:
        return "inside the allocation, under the job's own spines"
    if n < pods:
        return f"inside the allocation, one in each of {n} of {pods} pods"
    return f"inside the allocation, {-(-n // pods)} in each of {pods} pods"
