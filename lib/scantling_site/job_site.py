"""One design at its site: what every part reads of it, as plain numbers; the run's length and
price."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from scantling.base.records import Known, Record, record
from scantling.base.units import DAY_S
from scantling.catalogue.families import family
from scantling.catalogue.models.shape import Model
from scantling.catalogue.words import Sharding
from scantling.design.cluster import Cluster
from scantling.design.resolved import Phase, Resolved
from scantling.endure import goodput
from scantling.endure.cost import Cost, price
from scantling.endure.life import Life
from scantling.endure.reliability import Endurance
from scantling.endure.spares import Segments, segments
from scantling.physics.cases import Cases
from scantling.physics.communication import communication
from scantling.physics.step import step_time
from scantling.physics.wires import Link
from scantling.plans.plan_names import PlanRow
from scantling.verdict.assessment import Assessment, Chosen
from scantling.verdict.gangs import tied

# stands for the run where the design names no tokens, and where the run hardly advances:
HORIZON_DAYS = 30.0
STANDSTILL = 0.05  # goodput below which it does not


@record
class Run(Record):
    """Length and price of the run that shares and losses are counted on."""

    days: float  # of the run, else HORIZON_DAYS
    of_the_run: bool  # False where the design names no tokens
    usd_per_day: Known
    devices_paid: int
    nodes: int

    @property
    def seconds(self) -> float:
        return self.days * DAY_S

    def usd(self, days: Known) -> Known:
        """Dollars of so many days of the whole allocation; None without a price."""
        return None if self.usd_per_day is None or days is None else self.usd_per_day * days


@record
class Traffic:
    """Traffic of one axis in one step (`physics.communication`)."""

    axis: str
    what: str
    group: int  # ranks
    tier: str  # the slowest that a group spans: scale-up | scale-out
    bytes: float  # that each device sends
    calls: int
    time_s: float  # on the wire
    exposed_s: float


@record
class SiteEndurance:
    """How the run of one design lives with failures (`endure.reliability.Endurance`), as plain
    numbers: seconds, bytes, shares of the wall time."""

    failures_per_1000_node_days: float
    mtbf_s: float
    failures_per_day: dict[str, float]  # by cause
    planned_per_day: float
    checkpoint_interval_s: float
    checkpoint_bytes: float
    checkpoint_stall_s: float
    checkpoint_durable_s: float
    restart_s: float
    detect_s: float
    repair_s: float
    recovery_s: float
    first_step_s: dict[str, float]  # by part of a start
    lost_work_s: float
    goodput: float
    badput: dict[str, float]  # by cause
    spares: int  # nodes
    spares_recommended: int
    spares_for: dict[str, int]  # nodes that cover so large a share of the time
    write_bytes_per_s_needed: float
    retention: int  # copies
    check_every_s: float  # between two checks for silent corruption
    evictions_per_s: float  # failures that take a node out of the job
    corruptions_per_s: float  # of the state, that nobody sees
    life: Life
    segments: Segments


@record
class Site:
    """One phase of an assessed design on its cluster: the main one, or one of `by_phase`."""

    a: Assessment
    e: SiteEndurance
    cost: Cost | None
    run: Run
    phases: tuple[Chosen, ...]
    cluster: Cluster
    model: Model
    chosen: Chosen

    @property
    def case(self) -> Cases:
        return self.chosen.case

    @property
    def plan(self) -> PlanRow:
        """Degrees and switches of the plan, in the keys of `design --json`."""
        return self.chosen.plan

    @property
    def phase(self) -> Phase:
        return self.chosen.phase

    @property
    def by_phase(self) -> "tuple[Site, ...]":
        """The site in each phase of the run."""
        return tuple(replace(self, chosen=one) for one in self.phases)

    def most(self, demand: "Callable[[Site], float]") -> "Site":
        """The site in the phase that demands most of it; the main one of equals."""
        return max((self, *self.by_phase), key=demand)

    @property
    def step_s(self) -> float:
        """Seconds of a step, the measured one where the design has it."""
        return float(self.chosen.step_s)

    @property
    def model_step_s(self) -> float:
        """Seconds of a step by the step model."""
        return float(self.chosen.step.total)

    @property
    def used(self) -> int:
        """Devices that the plan uses."""
        dp: int = self.plan["dp"]
        return self.replica * dp

    @property
    def per_node(self) -> int:
        return self.cluster.devices_per_node

    @property
    def nodes(self) -> int:
        return self.cluster.nodes

    @property
    def used_nodes(self) -> int:
        return -(-self.used // self.per_node)

    @property
    def sites(self) -> int:
        return self.cluster.sites

    @property
    def torus(self) -> bool:
        return is_torus(self.cluster)

    @property
    def wired(self) -> bool:
        """Whether cards and switches join its nodes."""
        return self.nodes > 1 and not self.torus

    @property
    def racks_join(self) -> bool:
        """Whether a scale-up domain joins several nodes behind switches."""
        return self.cluster.scale_up_domain > self.per_node and not self.torus

    @property
    def domain_devices(self) -> int:
        """Devices of a scale-up domain that the job works on: of a rack whose nodes it joins those
        of a segment, beside which the others stand by."""
        domain = self.cluster.scale_up_domain
        nodes = int(segments(self.cluster, self.used_nodes).size) if self.racks_join else 1
        return nodes * self.per_node if nodes > 1 else domain

    @property
    def pods(self) -> int:
        return pods_of(self.cluster, self.cluster.devices)

    @property
    def replica(self) -> int:
        """Devices of one data-parallel replica."""
        devices: int = self.plan["tp"] * self.plan["cp"] * self.plan["pp"]
        return devices

    @property
    def batch_tokens(self) -> float:
        """Of one step."""
        return self.phase.global_batch * self.phase.seq_len

    @property
    def read_bytes_per_s(self) -> float:
        """Tokens that a step reads."""
        return self.batch_tokens * float(self.case.job.token_bytes) / self.step_s

    @property
    def copies_read(self) -> int:
        """Copies of the state that a restart reads: one a replica where nothing is sharded."""
        dp: int = self.plan["dp"]
        return dp if self.plan["sharding"] == Sharding.NONE else 1

    @property
    def network_share(self) -> float:
        """Share of the step that waits for traffic between scale-up domains."""
        rows = (row for row in self.traffic if row.tier == "scale-out")
        return sum(row.exposed_s for row in rows) / self.model_step_s

    @property
    def useful_s(self) -> float:
        """Seconds of the run that train."""
        return self.run.days * DAY_S * self.e.goodput

    @property
    def evictions_per_s(self) -> float:
        """Failures that take a node out of the job."""
        return self.e.evictions_per_s

    @property
    def in_repair(self) -> float:
        """Nodes in repair on average."""
        return self.evictions_per_s * self.e.repair_s

    @property
    def failure_s(self) -> float:
        """What one failure costs: detection, restart, the work since the last durable copy."""
        return self.e.recovery_s + self.e.checkpoint_durable_s + self.period_s / 2

    @property
    def tokens(self) -> float:
        """Of all phases, as far as they name any."""
        return sum(c.phase.tokens or 0.0 for c in self.phases)

    @property
    def save_s(self) -> float:
        """From the start of a save until it is durable."""
        return self.e.checkpoint_stall_s + self.e.checkpoint_durable_s

    @property
    def idle_nodes(self) -> int:
        """Whole nodes of the cluster that the plan does not use: they stand in for spares."""
        return (self.cluster.devices - self.used) // self.per_node

    @property
    def spares(self) -> int:
        return self.e.spares

    @property
    def standbys(self) -> int:
        """Nodes that can take the place of a lost one: spares and those left idle."""
        return self.spares + self.idle_nodes

    @property
    def period_s(self) -> float:
        """From one save to the next."""
        return self.e.checkpoint_interval_s + self.e.checkpoint_stall_s

    @property
    def failures_per_day(self) -> float:
        return sum(self.e.failures_per_day.values())

    @property
    def micro_batches(self) -> int:
        """Of one replica in one step."""
        return round(float(self.case.micro_batches))

    @property
    def tied_replicas(self) -> int:
        """Those that a replica's loss stops, itself among them."""
        return tied(self.plan)

    @property
    def stalled_share(self) -> float:
        """Share of the replicas that the loss of a node stops."""
        apart = max(self.per_node // int(self.plan["tp"] * self.plan["cp"]), 1)
        return min(apart * self.tied_replicas / int(self.plan["dp"]), 1.0)

    @property
    def shared_step(self) -> float:
        """Share of a save that one step carries: a step over the checkpoint interval."""
        return self.step_s / max(self.e.checkpoint_interval_s, self.step_s)

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """Traffic of one step by axis."""
        return tuple(Traffic(**row) for row in communication(self.case, self.chosen.step))

    def step_ratio(self, changed: Cases) -> float:
        """Step of the case with something changed over the step as it is."""
        return float(step_time(changed).total) / self.model_step_s

    def link_ratio(self, link: Link) -> float:
        """Step with other links over the step as it is."""
        return self.step_ratio(replace(self.case, link=link))


def site_of(a: Assessment | Site) -> Site:
    """The site of an assessment that has a plan."""
    if isinstance(a, Site):
        return a
    e = plain_endurance(a.endurance)
    return Site(
        a=a,
        e=e,
        cost=a.cost,
        run=_run(a.resolved, e, a.days),
        phases=a.phases,
        cluster=a.resolved.cluster,
        model=a.resolved.model,
        chosen=a.chosen,
    )


def plain_endurance(e: Endurance) -> SiteEndurance:
    """The endurance of one design as plain numbers: its columns have one element."""
    return SiteEndurance(
        failures_per_1000_node_days=_number(e.failures_per_1000_node_days),
        mtbf_s=_number(e.mtbf_s),
        failures_per_day=_numbers(e.failures_per_day),
        planned_per_day=_number(e.planned_per_day),
        checkpoint_interval_s=_number(e.checkpoint_interval_s),
        checkpoint_bytes=_number(e.checkpoint_bytes),
        checkpoint_stall_s=_number(e.checkpoint_stall_s),
        checkpoint_durable_s=_number(e.checkpoint_durable_s),
        restart_s=_number(e.restart_s),
        detect_s=_number(e.detect_s),
        repair_s=_number(e.repair_s),
        recovery_s=_number(e.recovery_s),
        first_step_s=_numbers(e.first_step_s),
        lost_work_s=_number(e.lost_work_s),
        goodput=_number(e.goodput),
        badput=_numbers(e.badput),
        spares=_number(e.spares),
        spares_recommended=_number(e.spares_recommended),
        spares_for=_numbers(e.spares_for),
        write_bytes_per_s_needed=_number(e.write_bytes_per_s_needed),
        retention=_number(e.retention),
        check_every_s=_number(e.check_every_s),
        evictions_per_s=_number(e.evictions_per_s),
        corruptions_per_s=_number(e.corruptions_per_s),
        life=e.life,
        segments=e.segments,
    )


def _number(value: Any) -> Any:
    """The one element of a column as a Python number; a plain number as it is."""
    return value.item() if hasattr(value, "item") else value


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _number(value) for name, value in values.items()}


def ettr(e: SiteEndurance) -> float:
    """Useful share of the time by the closed form of `goodput.ettr`."""
    return float(
        goodput.ettr(
            e.mtbf_s,
            e.checkpoint_stall_s,
            e.checkpoint_interval_s,
            durable_s=e.checkpoint_durable_s,
            restart_s=e.restart_s,
            down_s=e.detect_s,
        )
    )


def _run(resolved: Resolved, e: SiteEndurance, days: Known) -> Run:
    """Its days, or 30 where no tokens are named or hardly a step is kept; dollars a day of all
    devices that are paid."""
    cluster = resolved.cluster
    paid = cluster.devices + e.spares * cluster.devices_per_node
    usd = price(cluster, resolved.prices, wall_s=DAY_S, devices_paid=paid).cost_usd
    known = days is not None and e.goodput > STANDSTILL
    return Run(
        days=days if days is not None and known else HORIZON_DAYS,
        of_the_run=known,
        usd_per_day=None if usd is None else float(usd),
        devices_paid=paid,
        nodes=cluster.nodes,
    )


def pods_of(cluster: Cluster, devices: int) -> int:
    """Pods that so many devices of a cluster fill."""
    return -(-devices // (cluster.pod_devices or devices))


def is_torus(cluster: Cluster) -> bool:
    """True where the scale-up network is a torus of chips rather than a switch (TPU)."""
    return family(cluster.accelerator.family).torus and cluster.scale_up_domain > 1
