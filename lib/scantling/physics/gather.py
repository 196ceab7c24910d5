"""From designs and from rows of run tables to cases: what chips, stacks and jobs bring, in columns.

Both take the same functions here. A design has one chip and one stack and the plan varies; a row of
a table has its own of each, and its words have been settled into columns (`stated`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from .. import catalogue
from ..base.columns import Column, Truth, among, some
from ..base.records import joined, record
from ..blocks.block_table import Shape
from ..catalogue.families import Family, family
from ..catalogue.hardware import Accelerator, known_link
from ..catalogue.models.shape import shape_of
from ..catalogue.stacks import GENERIC, Former, Stack, canonical, stack
from ..catalogue.words import PRECISIONS, Precision
from ..design.resolved import Phase, Resolved
from . import ingest
from .cases import FULL, MXFP8, TILE, TIMED_AS, Cases, Chip, Code, Job, Plan, code
from .collectives import links_of_machine
from .constants import gather, standing_in
from .memory.peak import capacity
from .named import Offsets
from .pipeline import DUALPIPES
from .recompute import budget_switches, remat_switches, switches_at, switches_of
from .software import SWITCHES, Software
from .wires import Link

GEN5_LINK = 63e9  # bytes/s, sixteen lanes of PCIe 5
HOST_AGES = 1.6  # how much faster than the link a host's memory for each rank has grown
NEVER = Former(until=-math.inf, value=0.0, eager=0.0)
FLASH_SINCE = 2022.8  # year of the first FlashAttention in training frameworks
NODE_LIMIT = 4.0  # nodes that a token may visit under latent attention (DeepSeek-V3, section 2.1.2)


def column(values: Iterable[float]) -> Column:
    """One number where all rows have but one, else a column of floats."""
    rows = [float(value) for value in values]
    return rows[0] if len(rows) == 1 else np.array(rows)


def precision_code(name: str) -> int:
    """Code in PRECISIONS of a precision by name. Raises ValueError where it is unknown."""
    at = code(PRECISIONS, name)
    precision = Precision(PRECISIONS[at])
    return PRECISIONS.index(TIMED_AS.get(precision, precision))


def chip_of(chips: Sequence[Accelerator], precisions: Sequence[str], domain: Column) -> Chip:
    """What each device can do at the precision of its job; `domain` devices to a scale-up domain.

    Raises DesignError where a chip has no unit of the precision.
    """

    def half(chip: Accelerator, precision: str) -> float:
        """Dense peak of what stays in 16 bit [FLOP/s]."""
        return chip.peak_flops(precision) if precision in ("fp16", "fp32") else chip.half_flops

    kinds = [family(c.family) for c in chips]
    jobs = list(zip(chips, precisions))
    return Chip(
        linear_flops=column([c.peak_flops(p) for c, p in jobs]),
        bf16_flops=column([half(c, p) for c, p in jobs]),
        hbm_bytes_per_s=column([c.hbm_bytes_per_s for c in chips]),
        usable_bytes=column([c.hbm_usable_bytes for c in chips]),
        host_bytes_per_s=column([known_link(c.host_link_bytes_per_s) for c in chips]),
        host_age=column([host_age(known_link(c.host_link_bytes_per_s)) for c in chips]),
        is_tpu=column([k.torus for k in kinds]) * (domain > 1),
        newer_flash=column([k.modern for k in kinds]),
        wave_outputs=column([0.0 if math.isnan(c.sms) else c.sms * TILE for c in chips]),
    )


def host_age(link_bytes_per_s: float) -> float:
    """What a rank gets of its host's memory, over what it gets on a host of the fifth generation of
    PCIe: min(1, link / 63 GB/s) ^ 1.6.

    Processors and their memory are as old as the link. Sixteen, 32 and 64 V100 that kept all states
    of 25, 52 and 97 B parameters on the host took 25, 50 and 91 s a step (BigScience, June 2021).
    """
    return float(min(1.0, link_bytes_per_s / GEN5_LINK) ** HOST_AGES)


def job_of(
    stacks: Sequence[Stack],
    precisions: Sequence[str],
    seq_len: Column,
    global_batch: Column,
    *,
    optimizers: Sequence[str] = ("adamw",),
    grad_bytes: Column = math.nan,
    half: Column = 0.0,
) -> Job:
    """What one step must do under the optimizer of each, or one for all; `grad_bytes` where a row
    or a plan states them, nan: what the stack keeps. `half` is 1 where weights, gradients and
    states are all in 16 bit: half of the moments, and no fp32 copy."""
    states = [catalogue.optimizer(name) for name in optimizers]
    codes = np.array([precision_code(p) for p in precisions])
    by_stack = [
        min(
            s.software.get("grad_bytes", SWITCHES["grad_bytes"]),
            8.0 if p == "bf16" else s.other_grad_bytes,
        )
        for s, p in zip(stacks, precisions)
    ]
    return Job(
        seq_len=seq_len,
        global_batch=global_batch,
        precision=codes if len(codes) > 1 else int(codes[0]),
        optimizer_bytes=column([one.moment_bytes for one in states]) * (1 - half / 2),
        newton_schulz=column([one.newton_schulz for one in states]),
        master_bytes=column([one.master_bytes for one in states]) * (1 - half),
        grad_bytes=column(np.ravel(np.where(np.isnan(grad_bytes), by_stack, grad_bytes))),
    )


def flash_generation(stacks: Sequence[Stack], kinds: Sequence[Family], released: Column) -> Column:
    """Generation of flash attention: the stack's on such chips, none before the first."""
    best = [
        s.flash_modern if k.modern else min(s.flash, k.flash) or k.own_flash
        for s, k in zip(stacks, kinds)
    ]
    return np.where(released < FLASH_SINCE, 0.0, column(best))[()]


def software_of(
    stacks: Sequence[Stack],
    chips: Sequence[Accelerator],
    shape: Shape,
    plan: Plan,
    stated: Mapping[str, Column],
    *,
    precision: Code = 0,
    planned: Truth = False,
) -> Software:
    """What each stack's kernels and runtime do under the plan's columns.

    `stated` holds switches of Software that a row states, nan where it does not; `precision`:
    codes. `planned`: where the run is to come, and has what the stack offers by now.
    """
    switches = usual_switches(stacks, chips, stated)
    if some(shape.moe_layers):
        switches = expert_switches(stacks, shape, plan, switches, stated, precision)
        if some(planned) and any(s.planned for s in stacks):
            switches |= planned_switches(stacks, chips, shape, plan, switches, stated, planned)
    keeps = column([s.keeps_gathered for s in stacks])
    reshard = np.where((keeps > 0) & (plan.pp > 1), 0.0, switches["reshard"])[()]
    switches["reshard"] = stated_or(stated, "reshard", reshard)
    switches |= engine_switches(stacks, plan, switches)
    switches |= switches_at(plan.modules, switches)
    switches["balanced_layout"] = balanced_layout(stacks, shape, plan, switches)
    return Software(**switches)


def stated_or(stated: Mapping[str, Column], switch: str, otherwise: Column) -> Column:
    """A switch where a row states it, else as a stack has it."""
    value = stated.get(switch)
    return otherwise if value is None else np.where(np.isnan(value), otherwise, value)


def usual_switches(
    stacks: Sequence[Stack], chips: Sequence[Accelerator], stated: Mapping[str, Column]
) -> dict[str, Column]:
    """The switches as stated, else those of the stacks' release, else those of software.csv."""
    released = stated_or(stated, "released", SWITCHES["released"])
    switches = {
        name: stated_or(stated, name, column([s.software.get(name, usual) for s in stacks]))
        for name, usual in SWITCHES.items()
    }
    for name in {n for s in stacks for n in s.formerly}:
        former = former_values(stacks, name, released, switches["fused_norm"], switches[name])
        switches[name] = stated_or(stated, name, former)
    flash = flash_generation(stacks, [family(c.family) for c in chips], released)
    return {**switches, "released": released, "flash": stated_or(stated, "flash", flash)}


def former_values(
    stacks: Sequence[Stack], name: str, released: Column, compiled: Column, today: Column
) -> Column:
    """A switch as the release of each row's stack has it: that of the earliest of its former values
    that the release comes before, `today` after them all."""
    value = today
    former = [s.formerly.get(name, ()) for s in stacks]
    for back in range(1, 1 + max(map(len, former))):  # from the latest to the earliest
        rows = [each[-back] if back <= len(each) else NEVER for each in former]
        until, usual, eager = (column(each) for each in zip(*rows))
        value = np.where(released < until, np.where(compiled > 0, usual, eager), value)[()]
    return value


def expert_switches(
    stacks: Sequence[Stack],
    shape: Shape,
    plan: Plan,
    switches: Mapping[str, Column],
    stated: Mapping[str, Column],
    precision: Code,
) -> dict[str, Column]:
    """The switches of a stack for a model with experts: overlap under DualPipe, its recipes for
    experts in mxfp8, and even routing where tokens are capped."""
    switches = dict(switches)
    overlap = np.maximum(switches["ep_overlap"], among(plan.schedule, DUALPIPES))[()]
    switches["ep_overlap"] = overlap
    for name in {n for s in stacks for n in s.mxfp8_experts}:
        rules = (s.mxfp8_experts.get(name, (np.inf, 0.0, ())) for s in stacks)
        since, value, others = zip(*rules)
        late = (precision == MXFP8) & (switches["released"] >= column(since))
        late &= sum(shape.count(kind) for kind in {*chain(*others)}) == 0
        recipe = np.where(late, column(value), switches[name])[()]
        switches[name] = np.asarray(stated_or(stated, name, recipe))[()]
    capped = 2.0 * (switches["capacity_factor"] > 0)
    switches["even_routing"] = np.maximum(switches["even_routing"], capped)[()]
    return switches


def planned_switches(
    stacks: Sequence[Stack],
    chips: Sequence[Accelerator],
    shape: Shape,
    plan: Plan,
    switches: Mapping[str, Column],
    stated: Mapping[str, Column],
    planned: Truth,
) -> dict[str, Column]:
    """What runs that are to come have of what their stack offers by now."""
    able = column([family(c.family).modern for c in chips])  # DeepEP and HybridEP: Hopper and later
    offers = (column([bool(s.planned) for s in stacks]) > 0) & planned
    later = dict(switches)
    for name in {name for s in stacks for name in s.planned}:
        value = column([s.planned.get(name, math.nan) for s in stacks]) * able
        value = np.where(np.isnan(value), switches[name], value)
        later[name] = np.where(offers, stated_or(stated, name, value), switches[name])[()]
    # beside chunks of other micro-batches alone: Megatron-Core's transformer_config.py
    overlaps = among(plan.schedule, DUALPIPES) | (
        ((plan.pp == 1) | (plan.vpp > 1)) & (plan.recompute != FULL)
    )
    overlap = np.where(overlaps, later["ep_overlap"], 0.0)
    usual = np.where(shape.count("mla") > 0, NODE_LIMIT, 0.0)
    limit = stated_or(stated, "group_limit", usual)
    later["ep_overlap"] = np.where(offers, overlap, switches["ep_overlap"])[()]
    later["group_limit"] = np.where(offers, limit, switches["group_limit"])[()]
    return later


def engine_switches(
    stacks: Sequence[Stack], plan: Plan, switches: Mapping[str, Column]
) -> dict[str, Column]:
    """A sharded pipeline that is driven instruction by instruction sends and reduces between its
    instructions."""
    driven = column([s.pipeline_engine for s in stacks]) > 0
    if not some(driven):
        return {}
    engine = 1.0 * (driven & (plan.sharding > 0) & (plan.pp > 1))
    return {
        "step_engine": engine,
        "grad_all_reduce": np.maximum(switches["grad_all_reduce"], engine),
        "dp_overlap": switches["dp_overlap"] * (1 - engine),
        "p2p_overlap": switches["p2p_overlap"] * (1 - engine),
    }


def balanced_layout(
    stacks: Sequence[Stack], shape: Shape, plan: Plan, switches: Mapping[str, Column]
) -> Column:
    """1 where stages are laid out so that loss and MTP share the last one with fewer layers: before
    a stack's layout of its own, only virtual stages let them be balanced."""
    if not some(shape.mtp_layers):
        return 0.0
    late = switches["released"] >= column([s.mtp_layout_since for s in stacks])
    laid_out = late | (plan.vpp > 1) | (switches["balanced_layout"] > 0)
    return 1.0 * (laid_out & (shape.mtp_layers > 0))


@record
class Situation:
    """One phase of a design without its plan."""

    resolved: Resolved
    phase: Phase
    shape: Shape
    job: Job
    chip: Chip
    link: Link
    stack: Stack  # the one whose code runs
    stated: Mapping[str, Column] = field(default_factory=dict)  # switches that are not the stack's

    @cached_property
    def usable_bytes(self) -> float:
        """What a program can have of a device's memory, which no plan changes. [bytes]"""
        return float(capacity(self.cases(Plan())))

    @property
    def kind(self) -> tuple[Any, ...]:
        """What situations share whose plans may stand in one table of cases: what is no column, and
        what a cut of the layers goes by (`layout.weights`); machine and batch may differ."""
        return (
            self.shape,
            self.chip,
            self.stack,
            self.stated,
            self.phase.software,
            self.phase.offloaded_modules,
            self.phase.pins.get("layout"),
            (self.job.seq_len, self.job.precision, self.job.kept_16bit),
            self.resolved.calibration,
            self.resolved.constants,
        )

    def with_batch(self, batch: int) -> "Situation":
        """The same phase with so many sequences in a step."""
        return replace(
            self,
            phase=replace(self.phase, global_batch=batch),
            job=replace(self.job, global_batch=float(batch)),
        )

    def cases(self, plan: Plan, offsets: Offsets | None = None) -> Cases:
        """Cases of this phase under the plan columns, with the constants of its chip and stack."""
        chip = self.resolved.cluster.accelerator
        override = self.resolved.calibration if offsets is None else None
        name = "" if self.stack.name == GENERIC else self.stack.name
        software = software_of(
            [self.stack],
            [chip],
            self.shape,
            plan,
            {**self.phase.software, **self.stated},
            precision=self.job.precision,
            planned=True,
        )
        runs = self.phase.pins.get("layout", ())
        shipped = gather(chip.family, chip.id, name, offsets, software.tuned)
        usual = Cases(
            shape=self.shape,
            job=self.job,
            chip=self.chip,
            link=self.link,
            plan=plan,
            software=software,
            constants=shipped,
            layout=(0, *(end for _, end in runs)) if runs else (),
            offloaded_modules=self.phase.offloaded_modules,
        )
        if override is not None:
            measured = gather(chip.family, chip.id, name, override.offsets, software.tuned)
            usual = override.applied(usual, measured)
        if self.resolved.constants and offsets is None:
            constants = standing_in(usual.constants, self.resolved.constants)
            usual = replace(usual, constants=constants)
        return usual


def cases_together(asks: Sequence[tuple[Situation, Plan]], rows: Sequence[int]) -> Cases:
    """Cases of several situations of one kind, of so many plans each, one after the other."""
    return joined([situation.cases(plan) for situation, plan in asks], rows)


def stack_of(resolved: Resolved) -> str | None:
    """The stack whose code a design runs on its chip."""
    return canonical(resolved.stack, family(resolved.cluster.accelerator.family).modern)


def situation(resolved: Resolved, phase: Phase) -> Situation:
    """The columns that a phase of a resolved design fixes; the plan is what remains."""
    cluster, chip = resolved.cluster, resolved.cluster.accelerator
    software = stack(stack_of(resolved))
    sync = cluster.sync
    job = job_of(
        [software],
        [phase.precision],
        float(phase.seq_len),
        float(phase.global_batch),
        optimizers=[phase.optimizer],
        grad_bytes=phase.software.get("grad_bytes", math.nan),
    )
    shape = shape_of(resolved.model)
    kept = sum(phase.kept_16bit or ()) / resolved.model.layers
    job = replace(job, **ingest.reads(resolved), kept_16bit=kept)
    modules = phase.pins.get("recompute_modules")
    stated: dict[str, Column] = {**switches_of(modules)} if modules else {}
    if phase.remat:
        stated |= remat_switches(phase.remat, shape)
    if phase.memory_budget is not None:
        stated |= budget_switches(phase.memory_budget)
    if phase.offloaded_layers:
        stated["activation_offload"] = phase.offloaded_layers / shape.layers
    if cluster.sites > 1:
        stated["dp_outer"] = 1.0  # no replica stands on two sites
        job = replace(
            job,
            optimizer_bytes=job.optimizer_bytes + sync.outer_bytes,
            local_steps=sync.local_steps,
            exchange_bytes=sync.exchange_bytes,
            exchange_overlap=float(sync.overlap),
        )
    return Situation(
        resolved=resolved,
        phase=phase,
        shape=shape,
        job=job,
        chip=chip_of([chip], [phase.precision], float(cluster.scale_up_domain)),
        link=links_of_machine(cluster),
        stack=software,
        stated=stated,
    )
