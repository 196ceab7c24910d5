"""From a resolved design to cases: everything but the plan, in columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..catalogue.families import family
from ..catalogue.hardware import known_link
from ..catalogue.models.shape import shape_of
from ..catalogue.stacks import canonical, stack
from .cases import PRECISIONS, TILE, Cases, Chip, Job, Link, Plan, Software, code
from .constants import gather
from .pipeline import DUALPIPES

# state per parameter: bytes of moments, bytes of a master copy (Rajbhandari et al. 2020, section
# 3.1; bitsandbytes; Shazeer & Stern 2018; Muon)
OPTIMIZER_BYTES = {
    "adamw": (8.0, 4.0),
    "adamw-bf16": (4.0, 4.0),
    "adamw-8bit": (2.0, 4.0),
    "adafactor": (0.1, 4.0),
    "lion": (4.0, 4.0),
    "muon": (4.0, 4.0),
    "sgd": (4.0, 4.0),
}
SAME_RATE = {"fp8-block": "fp8-current"}
WHOLE_POD = 1e9  # devices: no boundary


@dataclass(frozen=True)
class Situation:
    """One phase of a design without its plan."""

    resolved: object
    phase: object
    shape: object
    job: Job
    chip: Chip
    link: Link
    software: Software
    stack: object
    stack_name: str  # "" where none is named

    def cases(self, plan: Plan, offsets: dict | None = None) -> Cases:
        """Cases of this phase under the plan columns, with the constants of its chip and stack."""
        chip = self.resolved.cluster.accelerator
        software = self.software
        if np.any(self.shape.experts):
            software = replace(
                software,
                ep_overlap=np.where(np.isin(plan.schedule, DUALPIPES), 1.0, software.ep_overlap)[
                    ()
                ],
            )
        if self.stack.pipeline_engine:  # it sends and reduces between its instructions
            engine = np.where(
                (np.asarray(plan.sharding) > 0) & (np.asarray(plan.pp) > 1), 1.0, 0.0
            )[()]
            software = replace(
                software,
                step_engine=engine,
                grad_all_reduce=np.maximum(software.grad_all_reduce, engine),
                dp_overlap=software.dp_overlap * (1 - engine),
                p2p_overlap=1 - engine,
            )
        if (
            np.any(self.shape.mtp_layers) and software.released < self.stack.mtp_layout_since
        ):  # only virtual stages let loss and MTP be balanced
            software = replace(
                software, balanced_layout=np.where(np.asarray(plan.vpp) > 1, 1.0, 0.0)[()]
            )
        if offsets is None and self.resolved.calibration is not None:
            offsets = self.resolved.calibration.offsets
        return Cases(
            self.shape,
            self.job,
            self.chip,
            self.link,
            plan,
            software,
            gather(chip.family, chip.id, self.stack_name, offsets),
        )


def situation(resolved, phase) -> Situation:
    """The columns that a phase of a resolved design fixes; the plan is what remains."""
    cluster, chip = resolved.cluster, resolved.cluster.accelerator
    kind = family(chip.family)
    name = canonical(resolved.stack, kind.modern)
    names = stack(name)
    moments, master = OPTIMIZER_BYTES[phase.optimizer]
    precision = SAME_RATE.get(phase.precision, phase.precision)
    half = (
        next(x for x in (chip.bf16_flops, chip.fp16_flops, chip.fp32_flops) if not math.isnan(x))
        if precision not in ("fp16", "fp32")
        else chip.peak_flops(precision)
    )
    flash = names.flash_modern if kind.modern else names.flash or kind.own_flash
    moe = resolved.model.is_moe
    torus = kind.torus and cluster.scale_up_domain > 1
    own = {k: float(v) for k, v in names.software.items()} | dict(
        flash=float(min(flash, kind.flash and 4)),
        balanced_layout=1.0 if resolved.model.mtp_layers else 0.0,
    )
    if moe and names.dedup_planned:
        own |= dict(
            dedup_dispatch=1.0, group_limit=4.0 if resolved.model.attention == "mla" else 0.0
        )
    software = Software(**own)
    grads = (
        names.bf16_grad_bytes if names.bf16_grad_bytes and precision == "bf16" else names.grad_bytes
    )
    return Situation(
        resolved,
        phase,
        shape_of(resolved.model),
        Job(
            float(phase.seq_len),
            float(phase.global_batch),
            code(PRECISIONS, precision),
            moments,
            master,
            grads,
        ),
        Chip(
            chip.peak_flops(phase.precision),
            half,
            chip.hbm_bytes_per_s,
            chip.hbm_usable_bytes,
            known_link(chip.host_link_bytes_per_s),
            float(torus),
            float(kind.modern),
            0.0 if math.isnan(chip.sms) else chip.sms * TILE,
        ),
        Link(
            float(cluster.scale_up_domain),
            cluster.scale_up_bytes_per_s,
            cluster.scale_up_latency_s,
            cluster.scale_out_bytes_per_s,
            cluster.scale_out_latency_s,
            float(cluster.pod_devices or WHOLE_POD),
            cluster.oversubscription,
            float(chip.mesh and cluster.scale_up_domain == chip.scale_up_domain),
        ),
        software,
        names,
        name or "",
    )
