"""The trainer of a post-training design: its own pre-training design of the same model, devices and
tokens (the twin), whose plans the core lays out; and the plans that suit the method, from one pass
over all of them."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from scantling.base.columns import Array
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.catalogue.stacks import stacks
from scantling.design.design import Design
from scantling.design.resolved import Resolved
from scantling.physics.cases import Cases
from scantling.physics.gather import Situation, situation
from scantling.physics.memory.chance import most_bytes, oom_probability, spread
from scantling.physics.memory.peak import capacity
from scantling.plans.evaluate import column_of, legal, ranked
from scantling.plans.fit import host_of, through_disks
from scantling.plans.plan_names import as_dict, plan_at, short
from scantling.plans.prepare import prepare
from scantling.plans.space import offered, space_of

from .adapters import Targets
from .constants import Constants
from .inputs import Adapters
from .tuning import Held, Spent, held, offloaded, spent
from .tuning_columns import Tuning, fp32_base

OWN = ("method", "adapter", "data", "rollout", "tokens")  # of a job, that the twin has otherwise
MANY = 64  # devices
BATCH = 64  # sequences of a step, at least one a device


@record
class Trainer:
    """All plans of a trainer, and the best of those that fit."""

    resolved: Resolved
    situation: Situation
    step_s: Array  # of every legal plan
    total_bytes: Array
    capacity: float  # bytes
    away_bytes: Array  # in the host's memory and NVMe, of every legal plan
    host_bytes: float  # of them that a device may take
    order: Array  # rows that fit, best first
    cases: Cases
    tuning: Tuning
    legal: int

    @property
    def best(self) -> int | None:
        """Row of the best plan; None where none fits."""
        return int(self.order[0]) if len(self.order) else None

    def case(self, row: int) -> Cases:
        """One plan alone."""
        case = self.situation.cases(plan_at(self.cases.plan, row))
        rate = np.broadcast_to(self.cases.chip.host_bytes_per_s, self.legal)[row]
        return replace(case, chip=replace(case.chip, host_bytes_per_s=float(rate)))

    def plan(self, row: int) -> dict[str, object]:
        """One plan as plain values, in the keys of `design --json`."""
        return dict(as_dict(self.cases.plan, row, self.resolved.model, self.situation.phase))

    def words(self, row: int) -> str:
        """One plan in a few words."""
        return short(as_dict(self.cases.plan, row, self.resolved.model, self.situation.phase))

    def chance(self, row: int) -> float:
        """Chance that the peak of a plan exceeds what a program can have."""
        peak = float(self.total_bytes[row])
        return float(oom_probability(peak, self.capacity, spread()))

    def spent(self, row: int, k: Constants) -> Spent:
        """The step of one plan by what it goes to. [s]"""
        return spent(self.case(row), self.tuning, k)

    def held(self, row: int, k: Constants) -> Held:
        """The memory of one plan by what holds it. [bytes]"""
        return held(self.case(row), self.tuning, k)


def twin(
    design: Design, devices: int, seq_len: int, batch: int, document: float, tokens: float | None
) -> Design:
    """The trainer's design: the same model, machine and software, without what is not its own."""
    if design.cluster.sites is not None and not isinstance(design.cluster.sites, int):
        raise DesignError("cluster.sites", allowed="one site", problem="is not planned for tuning")
    data = dict(design.data())
    job = {name: value for name, value in data.get("job", {}).items() if name not in OWN}
    job.pop("global_batch_tokens", None)
    job |= {"seq_len": seq_len, "global_batch": batch, "from_checkpoint": True}
    if document:
        job["document_tokens"] = document
    if tokens:
        job["tokens"] = max(tokens, 1.0)
    data["job"] = job
    data["cluster"] = {**data["cluster"], "devices": devices}
    allowed = data.pop("constraints", {}).get("max_oom_probability")
    if allowed is not None:
        data["constraints"] = {"max_oom_probability": allowed}
    data.pop("measured", None)
    return type(design).from_data(data, design.folder)


def full_tuning() -> Tuning:
    """A step that trains all weights."""
    return Tuning(
        adapters=0.0,
        rank=0.0,
        targets=Targets(0.0, 0.0, 0.0, 0.0),
        ends_trained=0.0,
        base_bits=16.0,
        blockwise=1.0,
        adapter_bytes=4.0,
        fused_lora=0.0,
        forwards=0.0,
        critics=0.0,
        pairs=0.0,
        eager_loss=0.0,
        logits_spared=0.0,
        eager_chains=0.0,
        norm_kernel=0.0,
        fp32_stream=0.0,
        any_model=0.0,
        policy_loss=0.0,
        file_sync=0.0,
        looped=0.0,
        engine=0.0,
        fp32_base=0.0,
        context=0.0,
        reserved=0.0,
        backward_update=0.0,
        moment_bytes=0.0,
        eager_peft=0.0,
    )


def loader() -> str:
    """The stack that keeps weights in the format that they are loaded in: it runs the modules of
    the transformers library as they are, and packed weights too."""
    return next(name for name, row in stacks().items() if row.half_unsharded)


def tuning_of(adapters: Adapters | None, stack_id: str | None, pairs: bool) -> Tuning:
    """What a design's step does beside its plan."""
    eager = stack_id == loader()
    plain = replace(
        full_tuning(),
        pairs=float(pairs),
        forwards=float(pairs),
        any_model=float(eager),
        eager_loss=float(eager),
        eager_chains=float(eager),
    )
    if adapters is None:
        return plain
    return replace(
        plain,
        adapters=1.0,
        rank=float(adapters.rank),
        targets=adapters.targets,
        base_bits=adapters.base_bits,
        fp32_base=float(fp32_base(stack_id, loaded=eager)),
        fp32_stream=float(eager and adapters.base_bits < 16),
        eager_peft=float(eager),
    )


def devices_many(resolved: Resolved) -> bool:
    """Whether the default space of a mixture of experts has so many plans that each of several
    layouts would take seconds."""
    return resolved.cluster.devices > MANY


@lru_cache(maxsize=64)
def trainer_of(twin_design: Design, tuning: Tuning, longest: int, k: Constants) -> Trainer:
    """Every legal plan of a trainer through memory and step, `longest` tokens in the longest
    sequence."""
    resolved = prepare(twin_design)
    usual = situation(resolved, resolved.main_phase)
    name = "coarse" if resolved.model.is_moe and devices_many(resolved) else "default"
    plan = legal(usual, offered(space_of(name), resolved))
    cases = usual.cases(plan)
    n = np.size(plan.tp)
    long = cases
    if longest != usual.phase.seq_len:
        long = replace(cases, job=replace(cases.job, seq_len=float(longest)))
    total = np.broadcast_to(np.asarray(held(long, tuning, k).total, float), n)
    host, away = host_of(resolved.cluster), np.zeros(n)
    if np.any(column_of(plan, "offload")):
        states = offloaded(long, tuning, k)
        away = np.broadcast_to(np.asarray(states.host, float), n)
        cases = through_disks(host, cases, states)
    step = np.broadcast_to(np.asarray(spent(cases, tuning, k).total, float), n)
    most = float(capacity(usual.cases(plan_at(plan, 0))))
    roomy = most_bytes(most, resolved.max_oom_probability, spread())
    inside = column_of(plan, "tp") <= usual.link.domain
    fits = (total <= most) & (away <= host.all_bytes)
    rows = ranked(plan, step, np.flatnonzero(fits & (total <= roomy) & inside))
    if not len(rows):  # the least chance of going out of memory first
        tight = np.flatnonzero(fits)
        rows = tight[np.lexsort((step[tight], total[tight]))]
    return Trainer(
        resolved=resolved,
        situation=usual,
        step_s=step,
        total_bytes=total,
        capacity=most,
        away_bytes=away,
        host_bytes=float(host.all_bytes),
        order=rows,
        cases=cases,
        tuning=tuning,
        legal=n,
    )
