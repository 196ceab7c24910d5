"""From designs and from rows of run tables to cases: what chips, stacks and jobs bring, in columns.

Both take the same functions here. A design has one chip and one stack and the plan varies; a row of
a table has its own of each, and its words have been settled into columns (`said`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any

import numpy as np

from .. import catalogue
from ..base.columns import Column
from ..base.records import record
from ..catalogue.families import Family, family
from ..catalogue.hardware import Accelerator, known_link
from ..catalogue.models.shape import shape_of
from ..catalogue.stacks import GENERIC, Stack, canonical, stack
from . import ingest
from .cases import FULL, MXFP8, PRECISIONS, SAME_RATE, TILE, Cases, Chip, Job, Plan, code
from .constants import gather
from .pipeline import DUALPIPES
from .recompute import switches_of
from .software import SWITCHES, Software
from .wires import Link, link_of

FLASH_SINCE = 2022.8  # year of the first FlashAttention in training frameworks
NODE_LIMIT = 4.0  # nodes that a token may visit under latent attention (DeepSeek-V3, section 2.1.2)


def column(values: Sequence) -> Column:
    """One number where all rows have but one, else a column of floats."""
    values = [float(v) for v in values]
    return values[0] if len(values) == 1 else np.array(values)


def precision_code(name: str) -> int:
    """Code in PRECISIONS of a precision by name. Raises ValueError where it is unknown."""
    return code(PRECISIONS, SAME_RATE.get(name, name))


def chip_of(chips: Sequence[Accelerator], precisions: Sequence[str], domain: Column) -> Chip:
    """What each device can do at the precision of its job; `domain` devices to a scale-up domain.

    Raises DesignError where a chip has no unit of the precision.
    """

    def half(chip, precision):
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
        is_tpu=column([k.torus for k in kinds]) * (domain > 1),
        newer_flash=column([k.modern for k in kinds]),
        wave_outputs=column([0.0 if math.isnan(c.sms) else c.sms * TILE for c in chips]),
    )


def job_of(
    stacks: Sequence[Stack],
    precisions: Sequence[str],
    seq_len: Column,
    global_batch: Column,
    *,
    optimizer: str = "adamw",
    grad_bytes: Column = math.nan,
    half: Column = 0.0,
) -> Job:
    """What one step must do; `grad_bytes` where a row or a plan states them, nan: what the stack
    keeps. `half` is 1 where weights, gradients and states are all in 16 bit: half of the moments,
    and no fp32 copy."""
    kept_by = catalogue.optimizer(optimizer)
    codes = np.array([precision_code(p) for p in precisions])
    own = [
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
        optimizer_bytes=kept_by.moment_bytes * (1 - half / 2),
        newton_schulz=kept_by.newton_schulz,
        master_bytes=kept_by.master_bytes * (1 - half),
        grad_bytes=column(np.where(np.isnan(grad_bytes), own, grad_bytes)),
    )


def _flash(stacks, kinds: Sequence[Family], released):
    """Generation of flash attention: the stack's on such chips, none before the first."""
    best = [
        s.flash_modern if k.modern else min(s.flash, k.flash) or k.own_flash
        for s, k in zip(stacks, kinds)
    ]
    return np.where(released < FLASH_SINCE, 0.0, column(best))[()]


def software_of(
    stacks: Sequence[Stack],
    chips: Sequence[Accelerator],
    shape: Any,
    plan: Plan,
    said: Mapping[str, Column],
    *,
    precision: Column = 0,
    planned: bool = False,
) -> Software:
    """What each stack's kernels and runtime do under the plan's columns.

    `said` holds switches of Software that a row states, nan where it does not; `precision`: codes.
    `planned`: the run is to come, and has what the stack offers by now.
    """

    def of(name):
        return column([getattr(s, name) for s in stacks])

    def told(name, otherwise):
        value = said.get(name)
        return otherwise if value is None else np.where(np.isnan(value), otherwise, value)

    released = told("released", SWITCHES["released"])
    own = {n: told(n, column([s.software.get(n, d) for s in stacks])) for n, d in SWITCHES.items()}
    own |= {
        "released": released,
        "flash": told("flash", _flash(stacks, [family(c.family) for c in chips], released)),
    }
    if np.any(shape.moe_layers):
        own["ep_overlap"] = np.maximum(own["ep_overlap"], np.isin(plan.schedule, DUALPIPES))[()]
        for name in {n for s in stacks for n in s.mxfp8_experts}:
            rules = (s.mxfp8_experts.get(name, (np.inf, 0.0, ())) for s in stacks)
            since, value, others = zip(*rules)
            late = (precision == MXFP8) & (released >= column(since))
            late &= sum(shape.count(kind) for kind in {*chain(*others)}) == 0
            own[name] = told(name, np.where(late, column(value), own[name]))[()]
        own["even_routing"] = np.maximum(own["even_routing"], 2.0 * (own["capacity_factor"] > 0))[
            ()
        ]
        if planned and stacks[0].planned:
            able = family(chips[0].family).modern  # DeepEP and HybridEP: Hopper and later
            own |= {name: told(name, able * value) for name, value in stacks[0].planned.items()}
            # beside chunks of other micro-batches alone: Megatron-Core's transformer_config.py
            beside = np.isin(plan.schedule, DUALPIPES) | (
                ((plan.pp == 1) | (plan.vpp > 1)) & (plan.recompute != FULL)
            )
            own["ep_overlap"] = np.where(beside, own["ep_overlap"], 0.0)[()]
            own["group_limit"] = told(
                "group_limit", np.where(shape.count("mla") > 0, NODE_LIMIT, 0.0)[()]
            )
    own["reshard"] = told(
        "reshard", np.where((of("keeps_gathered") > 0) & (plan.pp > 1), 0.0, own["reshard"])[()]
    )
    driven = of("pipeline_engine") > 0
    if np.any(driven):  # it sends and reduces between its instructions
        engine = 1.0 * (driven & (plan.sharding > 0) & (plan.pp > 1))
        own |= {
            "step_engine": engine,
            "grad_all_reduce": np.maximum(own["grad_all_reduce"], engine),
            "dp_overlap": own["dp_overlap"] * (1 - engine),
            "p2p_overlap": own["p2p_overlap"] * (1 - engine),
        }
    if np.any(shape.mtp_layers):  # only virtual stages let loss and MTP be balanced before
        late = released >= of("mtp_layout_since")
        laid_out = late | (plan.vpp > 1) | (own["balanced_layout"] > 0)
        own["balanced_layout"] = 1.0 * (laid_out & (shape.mtp_layers > 0))
    else:
        own["balanced_layout"] = 0.0
    return Software(**own)


@record
class Situation:
    """One phase of a design without its plan."""

    resolved: Any
    phase: Any
    shape: Any
    job: Job
    chip: Chip
    link: Link
    stack: Stack  # the one whose code runs
    said: Mapping[str, Column] = field(default_factory=dict)  # switches that are not the stack's

    def cases(self, plan: Plan, offsets: dict | None = None) -> Cases:
        """Cases of this phase under the plan columns, with the constants of its chip and stack."""
        chip = self.resolved.cluster.accelerator
        override = self.resolved.calibration if offsets is None else None
        name = "" if self.stack.name == GENERIC else self.stack.name
        software = software_of(
            [self.stack],
            [chip],
            self.shape,
            plan,
            self.phase.software | self.said,
            precision=self.job.precision,
            planned=True,
        )
        levels, given = (chip.family, chip.id, name), self.phase.pins.get("layout", ())
        usual = Cases(
            shape=self.shape,
            job=self.job,
            chip=self.chip,
            link=self.link,
            plan=plan,
            software=software,
            constants=gather(*levels, offsets, software.tuned),
            layout=given and (0, *(end for _, end in given)),
        )
        if override is None:
            return usual
        return override.applied(usual, gather(*levels, override.offsets, software.tuned))


def stack_of(resolved) -> str | None:
    """The stack whose code a design runs on its chip."""
    return canonical(resolved.stack, family(resolved.cluster.accelerator.family).modern)


def situation(resolved, phase) -> Situation:
    """The columns that a phase of a resolved design fixes; the plan is what remains."""
    cluster, chip = resolved.cluster, resolved.cluster.accelerator
    software = stack(stack_of(resolved))
    sync = cluster.sync
    job = job_of(
        [software],
        [phase.precision],
        float(phase.seq_len),
        float(phase.global_batch),
        optimizer=phase.optimizer,
        grad_bytes=phase.software.get("grad_bytes", math.nan),
    )
    job = replace(job, **ingest.reads(resolved))
    modules = phase.pins.get("recompute_modules")
    said = switches_of(modules) if modules else {}
    if cluster.sites > 1:
        said["dp_outer"] = 1.0  # no replica stands on two sites
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
        shape=shape_of(resolved.model),
        job=job,
        chip=chip_of([chip], [phase.precision], float(cluster.scale_up_domain)),
        link=link_of(cluster),
        stack=software,
        said=said,
    )
