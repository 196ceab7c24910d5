"""What failures make of a design: time between failures, checkpoint interval, goodput and where the
rest goes."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from ..base.columns import Array, Column
from ..base.json import clean
from ..base.records import Assumed, AssumedRow, Lines, Record, get, record, value_or
from ..base.show import several
from ..base.units import DAY_S
from ..design.cluster import Cluster
from . import checkpoint, elastic, failures, goodput, spares, storage
from .checkpoint import synchronous_save_s
from .copies import Level
from .first_step import LAZY_INIT_S, communicator_init_s, first_step
from .interval import check_every, chosen_interval, copies
from .life import Gang, Life, lived
from .simulate import of_life, simulate
from .spares import Segments
from .stated import Section
from .tiers import Tier, TierRow, by_tiers, tiers
from .times import SLOW_REPAIR_S, SLOW_REPAIRS, Times, times

# causes of lost wall clock that a log tells: those of BADPUT that each stands for; a plan holds no
# first start and no evaluation
LOGGED: Mapping[str, tuple[str, ...]] = {
    "start": (),
    "restart": ("detection", "restart", "spare shortage", "planned stops"),
    "lost work": ("lost work", "sdc"),
    "warm-up": (),
    "saves": ("saves",),
    "evaluation": (),
    "slow steps": ("stragglers", "link flaps"),
    "pauses": ("sites",),
}
MOST_SPARES = 4096  # spares that are looked at
RECOVERS = ("in-place", "restart")  # what every launch kit brings
GOES_ON = ("elastic", "replica")  # recoveries in which the others go on without a lost replica
COMMON_COPY = 2  # copies from here on are all replicas': their loss, or doubt of them, stops all

# what a collective may wait for a rank before a run is ended, where no stack says:
# torch.distributed over NCCL (constants.py, default_pg_nccl_timeout)
WATCHDOG_S = 600.0


@record
class Endurance(Record):
    """How a run lives with failures. Seconds, bytes and shares of the wall time; arrays where
    `devices` was an array.

    goodput + sum(badput.values()) = 1. goodput is useful time over all time, stalls included.
    """

    devices: Array
    preset: str
    failures_per_1000_node_days: Column
    mtbf_s: Column
    failures_per_day: dict[str, Column]
    planned_per_day: Column
    checkpoint_interval_s: Column
    checkpoint_bytes: Column
    checkpoint_stall_s: Column
    checkpoint_durable_s: Column
    synchronous_save_s: Column  # were training to wait for it
    watchdog_s: float  # that a collective may wait for a rank
    checkpoint_overhead: Column
    young_s: Column
    daly_s: Column
    optimum_s: Column
    restart_s: Column
    detect_s: Column
    repair_s: Column
    recovery_s: Column
    recovery: str
    first_step_s: dict[str, Column]
    lost_work_s: Column
    goodput: Column
    badput: dict[str, Column]
    spares: Column  # nodes
    spares_recommended: Column
    spares_for: dict[str, Column]
    write_bytes_per_s_needed: Column
    write_bytes_per_s: Column
    retention: Column
    keep_days: float
    check_every_s: Column
    tiers: tuple[TierRow, ...]
    domain_nodes: dict[str, Array]
    sites: int
    alone: int
    copies_survive: str
    interval_set_by: str
    without_spares: str
    assumed: tuple[Assumed, ...]
    # that the spares were chosen for too; the repair's own where the design states it
    slow_repair_s: Column = field(repr=False)
    life: Life = field(repr=False)
    segments: Segments = field(repr=False)

    @property
    def evictions_per_s(self) -> Column:
        """Failures that take a node out of the job."""
        return self.life.evictions_per_s

    @property
    def corruptions_per_s(self) -> Column:
        """Corruptions of the state that nobody sees."""
        return self.life.corruptions_per_s

    @property
    def curve(self) -> dict[str, Array]:
        """Goodput over the interval between saves, around the chosen one and the optimum; empty for
        many device counts at once, and for nested tiers."""
        if self.devices.ndim or len(self.life.levels) > 1:
            return {}
        low, high = sorted((self.life.interval_s, self.optimum_s))
        axis = np.geomspace(max(1.0, low / 20), high * 20, 81)
        good, _ = lived(replace(self.life, interval_s=axis))
        return {"interval_s": axis, "goodput": np.asarray(good)}


class EnduranceFigures(TypedDict):
    """How the run lives with failures: `Endurance` as plain data."""

    devices: float
    preset: str
    failures_per_1000_node_days: float
    mtbf_s: float
    failures_per_day: dict[str, float]
    planned_per_day: float
    checkpoint_interval_s: float
    checkpoint_bytes: float
    checkpoint_stall_s: float
    checkpoint_durable_s: float
    synchronous_save_s: float
    watchdog_s: float
    checkpoint_overhead: float
    young_s: float
    daly_s: float
    optimum_s: float
    restart_s: float
    detect_s: float
    repair_s: float
    recovery_s: float
    recovery: str
    first_step_s: dict[str, float]
    lost_work_s: float
    goodput: float
    badput: dict[str, float]
    spares: float  # nodes
    spares_recommended: float
    spares_for: dict[str, float]
    write_bytes_per_s_needed: float
    write_bytes_per_s: float
    retention: float
    keep_days: float
    check_every_s: float
    tiers: list[TierRow]
    domain_nodes: dict[str, float]
    sites: int
    alone: int
    copies_survive: str
    curve: dict[str, list[float]]
    interval_set_by: str
    without_spares: str
    assumed: list[AssumedRow]


def figures(endurance: Endurance) -> EnduranceFigures:
    """How a run lives with failures, in the keys of `design --json`."""
    e = endurance
    return {
        "devices": clean(e.devices),
        "preset": clean(e.preset),
        "failures_per_1000_node_days": clean(e.failures_per_1000_node_days),
        "mtbf_s": clean(e.mtbf_s),
        "failures_per_day": clean(e.failures_per_day),
        "planned_per_day": clean(e.planned_per_day),
        "checkpoint_interval_s": clean(e.checkpoint_interval_s),
        "checkpoint_bytes": clean(e.checkpoint_bytes),
        "checkpoint_stall_s": clean(e.checkpoint_stall_s),
        "checkpoint_durable_s": clean(e.checkpoint_durable_s),
        "synchronous_save_s": clean(e.synchronous_save_s),
        "watchdog_s": clean(e.watchdog_s),
        "checkpoint_overhead": clean(e.checkpoint_overhead),
        "young_s": clean(e.young_s),
        "daly_s": clean(e.daly_s),
        "optimum_s": clean(e.optimum_s),
        "restart_s": clean(e.restart_s),
        "detect_s": clean(e.detect_s),
        "repair_s": clean(e.repair_s),
        "recovery_s": clean(e.recovery_s),
        "recovery": clean(e.recovery),
        "first_step_s": clean(e.first_step_s),
        "lost_work_s": clean(e.lost_work_s),
        "goodput": clean(e.goodput),
        "badput": clean(e.badput),
        "spares": clean(e.spares),
        "spares_recommended": clean(e.spares_recommended),
        "spares_for": clean(e.spares_for),
        "write_bytes_per_s_needed": clean(e.write_bytes_per_s_needed),
        "write_bytes_per_s": clean(e.write_bytes_per_s),
        "retention": clean(e.retention),
        "keep_days": clean(e.keep_days),
        "check_every_s": clean(e.check_every_s),
        "tiers": clean(e.tiers),
        "domain_nodes": clean(e.domain_nodes),
        "sites": clean(e.sites),
        "alone": clean(e.alone),
        "copies_survive": clean(e.copies_survive),
        "curve": clean(e.curve),
        "interval_set_by": clean(e.interval_set_by),
        "without_spares": clean(e.without_spares),
        "assumed": clean(e.assumed),
    }


def as_logged(badput: Mapping[str, Column]) -> dict[str, float]:
    """Shares of the wall clock that a plan loses, by the causes that a log tells."""
    return {cause: float(sum(badput[n] for n in names)) for cause, names in LOGGED.items()}


class Inputs(NamedTuple):
    """What `endure` is asked about."""

    cluster: Cluster
    spec: Section  # the design's `reliability`
    saves: Section  # its `checkpoint`
    constraints: Section
    checkpoint_bytes: Column
    state_bytes_per_device: Column
    step_s: float
    devices: Array
    nodes: Array
    alone: int  # parts that stop and start by themselves
    store: storage.Rates
    idle_nodes: int  # beside the job's, that stand in as spares
    recovery: str  # a word of RECOVERIES
    waits_for_saves: bool
    assumed: list[Assumed]
    watchdog_s: float


def endure(
    cluster: Cluster,
    spec: Section = None,
    *,
    checkpoint_bytes: Column,
    state_bytes_per_device: Column,
    saves: Section = None,
    step_s: float | None = None,
    constraints: Section = None,
    devices: Column | None = None,
    gang: Gang | None = None,
    watchdog_s: float = WATCHDOG_S,
    idle_nodes: int = 0,
    recovers: Lines = RECOVERS,
    waits_for_saves: bool = False,
) -> Endurance:
    """Reliability of one job, or of the same job on many device counts at once.

    cluster : Cluster.  spec, saves : the design file's `reliability` and `checkpoint`, mappings or
    records; any field may be missing.
    checkpoint_bytes : one whole copy [bytes, scalar or (n,)].  state_bytes_per_device : what a
    device copies out in a save [bytes, ditto].
    step_s : step time; the interval is at least this, a check against corruption costs one.
    constraints : ceilings that move the interval (checkpoint overhead, lost work).
    devices : device counts instead of the cluster's own [(n,)].  gang : what the plan can drop.
    watchdog_s : what a collective may wait for a rank before the run is ended.
    idle_nodes : nodes of the cluster that the job does not use: they fail without stopping it, and
    stand in as spares that are paid for already.  recovers : ways that the software has of going
    on after a failure, the best first: the first of them where the design names none.
    waits_for_saves : the software trains on only when a save is whole.

    Sites that average after local steps fail, restart, slow down and save alone, each as so many
    devices do; a synchronous run stops whenever one of them is cut off (`elastic.cut_off`). What
    they exchange is in the step (physics.sites).

    M = 1 / sum of the rates by cause. Interval: as pinned, else the exact optimum of the stall,
    raised until a save is durable before the next begins and moved by ceilings. Goodput: `lived`.
    A simulation of the same Life bears it out (`finish`). Source of each default in `assumed`;
    formulas' sources in `goodput` and `spares`.
    """
    n = np.asarray(cluster.devices if devices is None else devices, float)
    nodes = np.ceil(n / cluster.devices_per_node)
    assumed: list[Assumed] = []
    recovery = value_or(
        spec,
        "reliability.recovery",
        recovers[0],
        f"what the software can do ({', '.join(recovers)}); going on without a lost replica "
        "(elastic, replica) loses less where it can",
        assumed,
    )
    alone = cluster.sites if cluster.sync.apart else 1
    if recovery == "parts" and gang is not None:
        alone = max(alone, min(elastic.PARTS, gang.replicas))
    inputs = Inputs(
        cluster=cluster,
        spec=spec,
        saves=saves,
        constraints=constraints,
        checkpoint_bytes=checkpoint_bytes,
        state_bytes_per_device=state_bytes_per_device,
        step_s=step_s or 1.0,
        devices=n,
        nodes=nodes,
        alone=alone,
        store=storage.rates(cluster, nodes),
        watchdog_s=watchdog_s,
        idle_nodes=idle_nodes,
        recovery=recovery,
        waits_for_saves=waits_for_saves,
        assumed=assumed,
    )
    failing = life_of(inputs, gang)
    saving = saved_as_often_as_pays(inputs, failing)
    standing_by = provisioned(inputs, saving.life)
    return endurance(inputs, failing, saving, standing_by)


class Failing(NamedTuple):
    """How often a job stops and how long each stop takes."""

    life: Life  # saved to one store, at no interval yet
    preset: str  # name of the fleet
    planned_per_day: Column
    times: Times
    check_every_s: Column  # against corruption


def life_of(inputs: Inputs, gang: Gang | None) -> Failing:
    """The stops and pauses of a job, by cause, and their times."""
    cluster, spec, assumed, alone = inputs.cluster, inputs.spec, inputs.assumed, inputs.alone
    rate, fleet, preset = failures.fleet_rate(spec, inputs.devices, assumed)
    took = times(
        cluster,
        spec,
        inputs.store,
        starting=inputs.devices / alone,
        nodes=inputs.nodes,
        checkpoint_bytes=inputs.checkpoint_bytes,
        state_bytes_per_device=inputs.state_bytes_per_device,
        waits_for_saves=inputs.waits_for_saves,
        assumed=assumed,
    )
    stops = failures.stops(spec, rate, inputs.devices, took.stop, assumed)
    life = Life(
        stops=stops,
        levels=(Level(stall_s=took.stall_s, durable_s=took.durable_s),),
        reach=(0,) * len(stops),
        gang=gang,
        shrinks=inputs.recovery in GOES_ON,
        cut_off=elastic.cut_off(cluster),
        alone=alone,
    )
    if inputs.recovery in GOES_ON and gang is not None and gang.replicas > 1:
        life = detached(life, inputs)
    every_s = check_every(spec, life.corruptions_per_s / alone, inputs.step_s, assumed)
    nodes = inputs.nodes / alone
    slow, flapping = failures.pauses(spec, nodes, nodes * cluster.nics_per_node, assumed)
    checks = failures.Pause(
        id="checks", per_s=(life.corruptions_per_s > 0) / every_s, seconds=inputs.step_s
    )
    planned = failures.planned_per_day(spec, fleet, inputs.nodes, cluster, assumed)
    life = replace(
        life, pauses=(slow, flapping, checks), latency_s=every_s / 2, planned_per_s=planned / DAY_S
    )
    return Failing(
        life=life, preset=preset, planned_per_day=planned, times=took, check_every_s=every_s
    )


def detached(life: Life, inputs: Inputs) -> Life:
    """The same life where the loss of a replica stops the others only until they go on without it:
    its state comes from its peers, so that no work is lost. Corruption and a lost store stop all.

    elastic: the number of replicas changes (`elastic.RESIZE_S`); replica: the others keep theirs
    and make communicators lazily.
    """
    alone = tuple(stop for stop in life.stops if stop.cause.copy < COMMON_COPY)
    whole = tuple(stop for stop in life.stops if stop.cause.copy >= COMMON_COPY)
    resize_s: Column = elastic.RESIZE_S
    if inputs.recovery == "replica":
        resize_s = np.minimum(communicator_init_s(inputs.devices), LAZY_INIT_S)
    return replace(life, stops=whole, detached=alone, resize_s=resize_s, reach=(0,) * len(whole))


class Saving(NamedTuple):
    """How often a job saves, and where to."""

    life: Life
    optimum_s: Column  # of the interval, ceilings apart
    set_by: str  # what set the interval
    tiers: tuple[TierRow, ...]


def saved_as_often_as_pays(inputs: Inputs, failing: Failing) -> Saving:
    """The life with its interval between saves and its tiers of copies."""
    life, took = failing.life, failing.times
    optimum_s = goodput.optimum_interval(life.stopping_s * life.alone, took.stall_s)
    interval_s, set_by = chosen_interval(
        optimum_s, took.stall_s, took.durable_s, inputs.constraints, inputs.saves, inputs.step_s
    )
    life, rows = by_tiers(
        inputs.cluster,
        replace(life, interval_s=interval_s),
        get(inputs.saves, "tiers"),
        inputs.store,
        checkpoint_bytes=inputs.checkpoint_bytes,
        state_bytes_per_device=inputs.state_bytes_per_device,
        launch_s=sum(s for part, s in took.first_step_s.items() if part != "load"),
    )
    if len(life.levels) > 1:
        set_by = "checkpoint.tiers"
    else:
        why = f"one tier, the shared store; set by the {set_by}"
        value_or(inputs.saves, "checkpoint.interval_s", interval_s, why, inputs.assumed)
    return Saving(life=life, optimum_s=optimum_s, set_by=set_by, tiers=rows)


class StandingBy(NamedTuple):
    """The spare nodes of a job and what it makes of losing more."""

    life: Life
    segments: Segments
    spares: Column  # nodes, paid for beside the cluster's
    recommended: Column  # nodes
    for_chance: dict[str, Column]  # nodes, by the chance that an eviction finds one
    domain_nodes: dict[str, Array]
    repairs: list[tuple[float, Column]]  # chance and seconds of the repair times that may come


def provisioned(inputs: Inputs, life: Life) -> StandingBy:
    """The life with its spare nodes: as given, else those that make a useful hour cheapest, over
    the `repairs` that may come."""
    nodes = inputs.nodes
    out = life.evictions_per_s / (1 + life.detect_s / life.mtbf_s)  # nodes a second
    may_come = repairs(inputs.spec, life)
    loads = [(chance, out * repair_s) for chance, repair_s in may_come]
    most = min(int(nodes.max()) + 2, MOST_SPARES)
    segments = spares.segments(inputs.cluster, nodes)
    domains = domain_nodes(inputs.cluster, nodes, segments)
    losses = np.maximum(
        spares.cheapest(loads, nodes / segments.nodes(1), limit=most),
        segments.covered(domains.get(domain_to_survive(inputs, domains), 0)),
    )
    recommended = np.maximum(segments.nodes(losses) - inputs.idle_nodes, 0)
    why = "cheapest useful hour (Erlang-B), at least the domain to survive"
    if len(loads) > 1:
        why += f"; repairs take a day with a chance of {SLOW_REPAIRS}"
    if inputs.idle_nodes:
        why += f"; less {inputs.idle_nodes} nodes that the plan leaves idle"
    stated = value_or(inputs.spec, "reliability.spares", recommended, why, inputs.assumed)
    standing_by = segments.nodes(segments.covered(stated + inputs.idle_nodes))
    life = replace(life, spares=segments.covered(stated + inputs.idle_nodes))
    return StandingBy(
        life=life,
        segments=segments,
        spares=np.maximum(standing_by - inputs.idle_nodes, stated),
        recommended=recommended,
        for_chance={
            str(chance): segments.nodes(spares.spares_for(out * life.repair_s, chance, limit=most))
            for chance in (0.9, 0.99, 0.999)
        },
        domain_nodes=domains,
        repairs=may_come,
    )


def repairs(spec: Section, life: Life) -> list[tuple[float, Column]]:
    """(chance, seconds) of the mean repair times that may come: the life's own where the design
    states it, else that and a day."""
    if get(spec, "repair_s") is not None:
        return [(1.0, life.repair_s)]
    return [
        (1 - SLOW_REPAIRS, life.repair_s),
        (SLOW_REPAIRS, np.maximum(life.repair_s, SLOW_REPAIR_S)),
    ]


def domain_to_survive(inputs: Inputs, domains: Mapping[str, Array]) -> str:
    """The domain whose loss the spares cover: the one that is asked for; a rack where it is a pod
    that holds the whole job, which no spares of a sensible number replace."""
    survive = str(get(inputs.constraints, "survive"))
    if survive == "pod" and np.all(domains["pod"] >= inputs.nodes):
        return "rack"
    return survive


def domain_nodes(cluster: Cluster, nodes: Array, segments: Segments) -> dict[str, Array]:
    """Nodes that one loss of each domain takes, and those of the job."""
    per_node = cluster.devices_per_node
    size = segments.size
    devices: dict[str, Column] = {
        "node": per_node,
        "rack": np.where(size > 1, size * per_node, failures.rack_devices(cluster)),
        "pod": cluster.pod_devices or cluster.devices,
        "job": nodes * per_node,
    }
    return {
        domain: np.minimum(-(-count // per_node), nodes).astype(int)
        for domain, count in devices.items()
    }


def without_spares(idle_nodes: int, recovery: str) -> str:
    """What a failure does where no spares are paid for."""
    if idle_nodes:
        return f"{several(idle_nodes, 'node')} that the plan leaves idle stand in"
    if recovery in GOES_ON:
        return "the run goes on with fewer replicas until the repair"
    return "a failure waits for its repair"


def endurance(
    inputs: Inputs, failing: Failing, saving: Saving, standing_by: StandingBy
) -> Endurance:
    """The record of a job whose life is settled."""
    life, took, store = standing_by.life, failing.times, inputs.store
    good, bad = lived(life)
    interval_s, stall_s, durable_s = life.interval_s, took.stall_s, took.durable_s
    mtbf_s, detect_s, restart_s = life.mtbf_s, life.detect_s, life.mean_restart_s
    m = life.stopping_s * life.alone
    spacing_s = interval_s * life.levels[-1].every  # of copies on the farthest tier
    retention = copies(
        inputs.saves,
        spacing_s + stall_s,
        failing.check_every_s,
        durable_s,
        inputs.step_s,
        inputs.assumed,
    )
    return Endurance(
        devices=inputs.devices.astype(int),
        preset=failing.preset,
        failures_per_1000_node_days=failures.rate_of_mtbf(mtbf_s, inputs.devices),
        mtbf_s=mtbf_s,
        failures_per_day={stop.cause.id: stop.per_s * DAY_S for stop in life.every_stop},
        planned_per_day=failing.planned_per_day,
        checkpoint_interval_s=interval_s,
        checkpoint_bytes=inputs.checkpoint_bytes,
        checkpoint_stall_s=stall_s,
        checkpoint_durable_s=durable_s,
        synchronous_save_s=synchronous_save_s(
            inputs.checkpoint_bytes,
            inputs.store.write_bytes_per_s,
            inputs.nodes,
            inputs.store.node_write_bytes_per_s,
        ),
        watchdog_s=inputs.watchdog_s,
        checkpoint_overhead=stall_s / (interval_s + stall_s),
        young_s=goodput.young(m, stall_s),
        daly_s=goodput.daly(m, stall_s),
        optimum_s=saving.optimum_s,
        restart_s=restart_s,
        detect_s=detect_s,
        repair_s=life.repair_s,
        recovery_s=detect_s + restart_s,
        recovery=inputs.recovery,
        first_step_s=first_step(inputs.devices / inputs.alone, took.first_step_s["load"]),
        lost_work_s=interval_s + stall_s + durable_s,
        goodput=np.clip(good, 1e-12, 1.0),
        badput=bad,
        spares=standing_by.spares,
        segments=standing_by.segments,
        spares_recommended=standing_by.recommended,
        spares_for=standing_by.for_chance,
        write_bytes_per_s_needed=checkpoint.write_rate_needed(
            inputs.checkpoint_bytes, spacing_s, stall_s
        ),
        write_bytes_per_s=store.write_bytes_per_s,
        retention=retention.versions,
        keep_days=retention.days,
        check_every_s=failing.check_every_s,
        tiers=saving.tiers,
        domain_nodes=standing_by.domain_nodes,
        sites=inputs.cluster.sites,
        alone=life.alone,
        copies_survive=store.survives,
        interval_set_by=saving.set_by,
        without_spares=without_spares(inputs.idle_nodes, inputs.recovery),
        assumed=tuple(inputs.assumed),
        slow_repair_s=standing_by.repairs[-1][1],
        life=life,
    )


class Tiered(TypedDict):
    """A job with copies at every tier, saved as often as pays."""

    tiers: tuple[Tier, ...]
    interval_s: Column
    every: list[int]  # saves from one copy on a tier to the next
    goodput: Column
    gain: Column  # over the job as it is
    life: Life


def tiered(cluster: Cluster, e: Endurance, *, state_bytes_per_device: float) -> Tiered:
    """The same job with copies at every tier.

    tiers as `tiers.tiers`; saves go to the host and a peer each time, to the store as often as it
    keeps up; the interval maximises `lived`.
    """
    store = storage.rates(cluster)
    plain = replace(e.life, levels=e.life.levels[-1:], reach=(0,) * len(e.life.stops))

    def saved_every(tau_s: float) -> Life:
        return by_tiers(
            cluster,
            plain,
            {"l0": {"every_s": tau_s}, "l1": {}, "l2": {}},
            store,
            checkpoint_bytes=e.checkpoint_bytes,
            state_bytes_per_device=state_bytes_per_device,
            launch_s=max(e.restart_s - e.first_step_s["load"], 0.0),
        )[0]

    low, high = max(e.optimum_s / 8, 1.0), max(e.optimum_s * 4, 1.0)
    life = max(map(saved_every, np.geomspace(low, high, 40)), key=lambda one: lived(one)[0])
    total = lived(life)[0]
    return {
        "tiers": tiers(
            cluster, e.checkpoint_bytes, state_bytes_per_device, store, e.checkpoint_stall_s
        ),
        "interval_s": life.interval_s,
        "every": [level.every for level in life.levels],
        "goodput": total,
        "gain": total - e.goodput,
        "life": life,
    }


def finish(
    e: Endurance, work_s: float, *, replicas: int = 1000, seed: int = 0, **features: Any
) -> dict[str, Any]:
    """Distribution of the finishing day by simulation: {goodput, badput, days_p10, days_p50,
    days_p90, replicas, seed, failures}.

    work_s : compute time of the run, failures apart [s].  features : fields of `simulate.Scenario`
    (spares, shrink, …).
    Sites that train alone: one of them is simulated. Synchronous ones: the work is stretched by
    what cuts between them cost.
    """
    life = replace(e.life, slower=e.life.slower / e.life.alone)
    scenario = of_life(life, work_s / (1 - life.cut_off), **features)
    return simulate(scenario, replicas, seed).as_dict()


class Waiting(TypedDict):
    """What each number of spare nodes leaves of waiting for a repair."""

    spares: list[int]
    repair_s: list[float]  # each repair time that the spares were chosen for
    shortage: list[list[float]]  # share of the wall time that the job stands still, as in badput
    wait_chance: list[list[float]]  # chance that one eviction finds no spare


def waiting(e: Endurance) -> Waiting:
    """What each number of spare nodes, from none to 12 or a few beyond those it has, leaves of
    waiting, for each repair time that they were chosen for."""
    recommended = int(e.segments.covered(e.spares_recommended))
    losses = np.arange(min(max(12, int(e.life.spares) + 2, recommended + 4), 60) + 1)
    out = e.evictions_per_s / (1 + e.detect_s / e.mtbf_s)  # nodes a second
    times_s = sorted({float(e.repair_s), float(e.slow_repair_s)})
    return {
        "spares": np.asarray(e.segments.nodes(losses)).tolist(),
        "repair_s": times_s,
        "shortage": [
            spares.shortage(losses, e.evictions_per_s, repair_s, e.detect_s).tolist()
            for repair_s in times_s
        ],
        "wait_chance": [
            spares.wait_chance(losses, out * repair_s).tolist() for repair_s in times_s
        ],
    }
