"""What a launch kit is made from: one phase of an assessment as plain values, and the files that
come of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..advise.why import why
from ..catalogue.families import family
from ..cluster.placement import leaf_nodes
from ..physics.cases import devices as devices_of
from ..physics.communication import communication
from ..physics.memory.peak import memory_by_stage
from ..verdict.limits import limits
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


MEMORY = "weights gradients optimizer activations other total capacity".split()
NORM_EPSILON, SEED = 1e-5, 1234


def rotary_base(model) -> int:
    """Base of the rotary positions in every kit: Llama 3's, and DeepSeek's under latent attention;
    the design does not state it."""
    return 10_000 if model.attention == "mla" else 500_000


@dataclass(
    frozen=True,
    kw_only=True,
)
class LaunchPlan:
    """One phase of a design with its plan, as a framework's module needs it. Bytes, seconds."""

    name: str
    slug: str
    framework: Framework
    on: str
    model: object  # model.Model
    params: object  # model.Params
    cluster: object  # cluster.Cluster
    phase: object  # design.Phase
    plan: Mapping  # the contract's keys
    devices: int
    stages: tuple[int, ...]  # layers of each pipeline stage
    memory: Mapping
    step_s: float
    figures: Mapping  # the scalar keys of `design --json`, of the plan that is launched
    endurance: Mapping
    why: tuple = ()
    communication: tuple = ()
    limits: tuple = ()
    assumed: tuple = ()
    gaps: tuple[Gap, ...] = ()
    asked: Mapping = field(default_factory=dict)  # the assessment's own plan
    asked_step_s: float = math.nan
    stack: str | None = None
    leaf_nodes: int = 1  # nodes below one set of leaf switches of the network
    # (plan, step_s) of what the framework runs clearly faster once the design's own pins may move
    faster: tuple = ()

    @property
    def to(self) -> str:
        """The framework's id."""
        return self.framework.id

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
        return max(1, math.ceil(job.tokens / (job.global_batch * job.seq_len)))

    @property
    def save_steps(self) -> int:
        """Steps between checkpoints: the interval of the assessment, at least one step."""
        steps = max(1, round(self.figures["checkpoint_interval_s"] / self.step_s))
        return steps if self.steps is None else min(steps, self.steps)

    @property
    def chip(self) -> str:
        """nvidia, amd, tpu or other: which collective library and device plugin the kit speaks
        to."""
        return family(self.cluster.accelerator.family).vendor_stack

    @property
    def transformer_engine(self) -> bool:
        """Whether the device is one that Transformer Engine runs on."""
        return family(self.cluster.accelerator.family).transformer_engine

    @property
    def lead_s(self) -> int:
        """Seconds between the signal to stop and the end: three steps, twice a whole save, two
        minutes; at least ten minutes."""
        saved = self.endurance.get("checkpoint_durable_s") or 0.0
        return max(600, 60 * math.ceil((3 * self.step_s + 2 * saved + 120) / 60))

    @property
    def dp_exposed(self) -> tuple[float, str]:
        """(share of the step for which data-parallel traffic is exposed, its tier)."""
        row = next((r for r in self.communication if r["axis"] == "dp"), None)
        return (row["exposed_s"] / self.step_s, row["tier"]) if row else (0.0, "")

    def __getitem__(self, key):
        return self.plan[key]


def launch_plan(
    assessment,
    framework: Framework,
    on: str,
    which: int,
    *,
    asked=None,
) -> LaunchPlan:
    """The record of phase `which` of an assessment."""
    chosen, r = assessment.phases[which], assessment.resolved
    endurance, cost = assessment.endurance, assessment.cost
    said = [*r.assumed, *endurance.assumed, *(cost.assumed if cost else ())]
    phase_name = f" {chosen.phase.name or which + 1}" if len(assessment.phases) > 1 else ""
    return LaunchPlan(
        name=r.name,
        slug=slug(r.name + phase_name),
        framework=framework,
        on=on,
        model=r.model,
        params=r.params,
        cluster=r.cluster,
        phase=chosen.phase,
        plan=dict(chosen.plan),
        devices=int(devices_of(chosen.case.plan)),
        stages=tuple(row["layers"] for row in memory_by_stage(chosen.case)),
        memory={k: float(getattr(chosen.memory, k)) for k in MEMORY},
        step_s=chosen.step_s,
        figures={
            k: v
            for k, v in assessment.headline().items()
            if isinstance(v, (int, float, type(None)))
        },
        endurance=endurance.as_dict(),
        why=tuple(why(assessment)) if which == r.main else (),
        communication=tuple(communication(chosen.case, chosen.step)),
        limits=tuple(limits(assessment)),
        assumed=tuple(
            dict(
                field=a.field,
                value=a.value,
                why=a.why,
            )
            for a in said
        ),
        asked=dict((asked or chosen).plan),
        asked_step_s=float((asked or chosen).step_s),
        stack=r.stack,
        leaf_nodes=leaf_nodes(r.cluster),
    )
