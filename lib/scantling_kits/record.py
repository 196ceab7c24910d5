"""What a launch kit is made from: one phase of an assessment as plain values, and the files that
come of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from math import ceil, gcd, nan

from scantling import catalogue
from scantling.advise.recovery import between_sites
from scantling.advise.why import why
from scantling.base.records import record
from scantling.base.words import table
from scantling.catalogue.families import Family, family
from scantling.endure.spares import Segments, segments
from scantling.physics.cases import devices as devices_of
from scantling.physics.communication import communication
from scantling.physics.layout import runs
from scantling.verdict.limits import limits
from scantling_site.placement import leaf_nodes
from scantling_site.rollout.watch import hang_timeout_s
from scantling_site.scheduler.request import stop_lead_s
from scantling_site.storage import copies_kept

from .framework import Framework
from .quote import slug

LAYOUTS = ("torchrun", "slurm", "kubernetes")


@dataclass(frozen=True)
class Gap:
    """One thing of the plan that a framework cannot express: the field, its value, why, and what
    stands there instead."""

    field: str
    value: object
    why: str
    instead: object = None
    cost: str = ""


MEMORY = ("weights", "gradients", "optimizer", "activations", "other", "total", "capacity")
SEED = 1234


def rotary_base(model) -> int:
    """Base of the rotary positions: the model's own, where it is not known Llama 3's, and
    DeepSeek's under latent attention."""
    return round(model.rope_base) or (10_000 if model.attention == "mla" else 500_000)


def norm_epsilon(model) -> float:
    """What the norms add to the variance: the model's own, where it is not known the usual."""
    return model.norm_epsilon or 1e-5


def picked(file: str, **root) -> dict:
    """A table of values.yaml filled: {key: the value at its path in `root`}."""

    def value(path):
        if isinstance(path, dict):
            return {key: value(inner) for key, inner in path.items()}
        if not isinstance(path, str):
            return path
        found = root
        for name in path.split("."):
            found = found[name] if isinstance(found, Mapping) else getattr(found, name)
        return found

    return value(table(__file__, "values")[file])


@record
class LaunchPlan:
    """One phase of a design with its plan, as a framework's module needs it. Bytes, seconds."""

    assessment: object  # that the phase is of
    name: str
    slug: str
    framework: Framework
    on: str
    model: object  # model.Model
    params: object  # model.Params
    cluster: object  # cluster.Cluster
    phase: object  # design.Phase
    does: object  # cases.Software: what the step counts on of the framework's options
    plan: Mapping  # the contract's keys
    devices: int
    runs: tuple[int, ...]  # layers of each virtual stage, in the order in which a token meets them
    memory: Mapping
    step_s: float
    figures: Mapping  # the scalar keys of `design --json`, of the plan that is launched
    endurance: Mapping
    reasons: Callable[[], Iterable[Mapping]] = tuple  # asked for by the page that prints them
    communication: tuple = ()
    limits: Callable[[], Iterable[str]] = tuple
    assumed: tuple = ()
    gaps: tuple[Gap, ...] = ()
    asked: Mapping = field(default_factory=dict)  # the assessment's own plan
    asked_step_s: float = nan
    stack: str | None = None
    keep: int = 3  # checkpoints that stay beside the one being written
    run_tokens: float = 0.0  # of all phases; 0 where a design names none
    leaf_nodes: int = 1  # nodes below one set of leaf switches of the network
    # (plan, step_s) of what the framework runs clearly faster once the design's own pins may move
    faster: tuple = ()

    @property
    def to(self) -> str:
        """The framework's id."""
        return self.framework.id

    @property
    def stages(self) -> list:
        """Layers of each pipeline stage."""
        pp = self.plan["pp"]
        return [sum(self.runs[i::pp]) for i in range(pp)]

    @property
    def per_node(self) -> int:
        """Devices of a full node that the run uses."""
        return min(self.cluster.devices_per_node, self.devices)

    @property
    def nodes(self) -> int:
        """Nodes of the run, spares not counted."""
        return -(-self.devices // self.per_node)

    @property
    def last_node(self) -> int:
        """Devices of the last node: fewer than `per_node` where the devices are no multiple of
        it."""
        return self.devices - (self.nodes - 1) * self.per_node

    @property
    def steps(self) -> int | None:
        """Optimizer steps of the phase; None without tokens."""
        job = self.phase
        if job.tokens is None:
            return None
        return max(1, ceil(job.tokens / (job.global_batch * job.seq_len)))

    @property
    def tiers(self):
        """Where copies live, nearest first; the last is the store that RUN_DIR is on."""
        return self.endurance["tiers"]

    @property
    def save_steps(self) -> int:
        """Steps between checkpoints in RUN_DIR: the interval of the assessment, at least one
        step."""
        steps = max(1, round(self.tiers[-1]["every_s"] / self.step_s))
        return steps if self.steps is None else min(steps, self.steps)

    @property
    def joined(self) -> bool:
        """Whether NVLink joins devices of several nodes of the run."""
        k = self.cluster
        return self.kin.imex and self.nodes > 1 and k.scale_up_domain > k.devices_per_node

    @property
    def stands(self) -> Segments:
        """How the nodes stand in racks that NVLink joins."""
        return segments(self.cluster, self.nodes)

    @property
    def covered(self) -> int:
        """Losses of a node at a time that the design's spares cover."""
        return int(self.assessment.endurance.segments.covered(self.figures["spares"]))

    @property
    def slices(self) -> int:
        """Slices of TPUs that the run takes: the fewest that hold it and share hosts and
        data-parallel ranks evenly; 1 elsewhere."""
        if not self.kin.torus:
            return 1
        sites = self.cluster.sites
        fewest = max(sites, -(-self.devices // self.cluster.accelerator.scale_up_domain_max))
        shared = gcd(self.nodes, self.plan["dp"])
        return next((n for n in range(fewest, self.nodes + 1) if shared % n == n % sites == 0), 1)

    @property
    def sync(self) -> str:
        """How several sites keep in step, synchronous or local-steps; "" on one site."""
        k = self.cluster
        return ("local-steps" if k.sync.apart else "synchronous") if k.sites > 1 else ""

    @property
    def between(self) -> dict | None:
        """What several sites exchange (`recovery.between_sites`); None on one site."""
        return between_sites(self.assessment)

    @property
    def shards(self) -> int:
        """Data-parallel ranks that share one copy of what is sharded: a shard group, else those of
        one site."""
        return self.plan["shard_group"] // self.plan["cp"]

    @property
    def spares(self) -> int:
        """Nodes held beside those that train: trays of the same racks, or whole segments."""
        return int(self.stands.nodes(self.covered))

    @property
    def chip(self) -> str:
        """The vendor whose words the templates speak: nvidia, amd, tpu or other."""
        return self.kin.vendor_stack

    @property
    def kin(self) -> Family:
        """The family of the accelerator."""
        return family(self.cluster.accelerator.family)

    @property
    def network(self):
        """The fabric between nodes; None on one node."""
        return catalogue.fabric(self.cluster.scale_out) if self.nodes > 1 else None

    @property
    def networked(self) -> bool:
        """Whether NCCL or RCCL talks between nodes."""
        return self.nodes > 1 and bool(self.kin.collectives)

    @property
    def lead_s(self) -> int:
        """Seconds between the signal to stop and the end, as the scheduler is asked for."""
        return stop_lead_s(self.step_s, self.endurance["checkpoint_durable_s"])

    @property
    def hang_s(self) -> int:
        """Seconds of silence in a collective after which the run is given up."""
        exchange = self.between["exchange_s"] if self.sync else 0.0
        return ceil(
            hang_timeout_s(self.step_s, max(self.endurance["checkpoint_stall_s"], exchange))
        )

    @property
    def dp_exposed(self) -> tuple:
        """(share of the step for which data-parallel traffic is exposed, its tier)."""
        row = next((r for r in self.communication if r["axis"] == "dp"), None)
        return (row["exposed_s"] / self.step_s, row["tier"]) if row else (0.0, "")


def launch_plan(assessment, framework: Framework, on: str, which: int) -> LaunchPlan:
    """The record of phase `which` of an assessment."""
    chosen = assessment.phases[which]
    r = assessment.resolved
    endurance = assessment.endurance
    phase_name = f" {chosen.phase.name or which + 1}" if len(assessment.phases) > 1 else ""
    return LaunchPlan(
        assessment=assessment,
        name=r.name,
        slug=slug(r.name + phase_name),
        framework=framework,
        on=on,
        model=r.model,
        params=r.params,
        cluster=r.cluster,
        phase=chosen.phase,
        does=chosen.case.software,
        plan=dict(chosen.plan),
        devices=int(devices_of(chosen.case.plan)),
        runs=tuple(end - first for first, end in pairwise(runs(chosen.case))),
        memory={k: float(getattr(chosen.memory, k)) for k in MEMORY},
        step_s=chosen.step_s,
        figures={
            k: v
            for k, v in assessment.headline().items()
            if isinstance(v, (int, float, type(None)))
        },
        endurance=endurance.as_dict(),
        reasons=partial(why, assessment) if which == r.main else tuple,
        communication=tuple(communication(chosen.case, chosen.step)),
        limits=partial(limits, assessment),
        assumed=tuple(map(asdict, assessment.assumed)),
        asked=dict(chosen.plan),
        asked_step_s=chosen.step_s,
        stack=r.stack,
        leaf_nodes=leaf_nodes(r.cluster),
        keep=copies_kept(endurance),
        run_tokens=sum(p.tokens or 0.0 for p in r.phases),
    )
