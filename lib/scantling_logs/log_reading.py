"""What a log says of its run: figures with one unit and one convention, null where it is silent."""

import math
from dataclasses import field
from typing import TypedDict

from scantling.base.errors import plain
from scantling.base.records import Known, Record, record
from scantling.catalogue.setting_names import Setting

from .contents import Collective, Column, Contents, number
from .run import (
    RunPlan,
    batch_of,
    median_of,
    model_of,
    plan_of,
    precision_of,
    rate_of,
    recompute_layers_of,
    recompute_of,
    shape_of,
    sharding_of,
    switch_of,
    with_totals,
)
from .steady import Steady, steady

Count = int | None  # None: the log does not say
Word = str | None

# how to give what a log does not say
HOW = {
    "step_s": "log each step with its time, or write measured: {step_s: SECONDS} into a design",
    "devices": "--devices N; the launcher's --nnodes and --nproc_per_node",
    "model": "--design FILE with model: NAME",
    "seq_len": "--design FILE with job.seq_len; the framework's sequence length",
    "global_batch": "--design FILE with job.global_batch; the framework's global batch size",
    "accelerator": "--design FILE with cluster.accelerator; nvidia-smi -L names the device",
    "precision": "--design FILE with job.precision; the argument dump of the job",
    "plan": "--design FILE with plan: {tp, pp, cp, ep, micro_batch}; the argument dump of the job",
}


class Planned(TypedDict, total=False):
    """What the design behind a log plans."""

    goodput: float
    badput: dict[str, float]  # shares of the wall clock by cause


class Believed(TypedDict, total=False):
    """The step that published runs make possible [s], its 80 % range for a strange site, and the
    seconds of its parts."""

    step_s: float
    low_s: float
    high_s: float
    unexplained_s: float
    parts_s: dict[str, float]


class Nearby(TypedDict):
    """A published run near to a log's: its MFU over that, measured and foretold, what differs, and
    the shares of the foretold ratio that the parts of the step explain."""

    id: str
    source: str
    differs: str
    distance: float
    ratio: float
    factors: dict[str, float]
    ratio_foretold: float
    explains: dict[str, float]


@record
class Reading(Record):
    """What one log says of its run; None where it does not say. Seconds, tokens/s of one device,
    TFLOP/s of one device as printed, GiB."""

    file: str
    format: str
    framework: str
    steps: Count = None
    step_s: Known = None
    step_s_p10: Known = None
    step_s_p90: Known = None
    tokens_per_s_per_device: Known = None
    tflops_per_device: Known = None
    peak_memory_gb: Known = None
    accelerator: Word = None
    devices: Count = None
    nodes: Count = None
    model: Word = None
    seq_len: Count = None
    global_batch: Count = None
    micro_batch: Count = None
    tp: Count = None
    pp: Count = None
    vpp: Count = None
    cp: Count = None
    ep: Count = None
    dp: Count = None
    sp: bool | None = None
    recompute: Word = None
    recompute_layers: Count = None  # of a stage; None: all, or none is recomputed
    sharding: Word = None
    precision: Word = None
    release: Word = None
    restarts: Count = None
    goodput: Known = None
    badput: dict[str, float] = field(default_factory=dict)  # shares of the wall clock by cause
    planned: Planned = field(default_factory=Planned)  # the same of the design
    oom: bool = False
    shape: dict[str, int | str] = field(default_factory=dict)  # dimensions of the model
    collectives: tuple[Collective, ...] = ()
    kernels: dict[str, float] = field(default_factory=dict)  # of a trace: seconds by class
    assumed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    how: dict[str, str] = field(default_factory=dict)
    believed: Believed = field(default_factory=Believed)  # of a step whose plan is known
    published: tuple[Nearby, ...] = ()


def figure(value: float | None) -> Known:
    """A number with 7 digits, None for nan."""
    return float(f"{value:.7g}") if value is not None and math.isfinite(value) else None


def reading(log: Contents, file: str) -> Reading:
    """What a log holds, as figures."""
    steps = steady(log)
    plan = with_totals(plan_of(log), log, steps)
    batch = batch_of(plan, log, steps)
    rate = rate_of(plan, steps, batch)
    step_s = step_of(log, steps, plan, batch, rate)
    shape = shape_of(log)
    model = model_of(log, shape)
    accelerator = plain(log.word(Setting.ACCELERATOR) or "", 80) or None
    precision = precision_of(log)
    known = {
        "step_s": figure(step_s),
        "devices": plan.devices,
        "model": model,
        "seq_len": plan.seq_len,
        "global_batch": batch,
        "accelerator": accelerator,
        "precision": precision,
        "plan": plan.micro_batch if plan.tp else None,
    }
    how = {name: text for name, text in HOW.items() if known[name] is None}
    return Reading(
        file=plain(file, 200),
        format=log.format,
        framework=log.framework,
        steps=steps.steps or None,
        step_s=figure(step_s),
        step_s_p10=figure(steps.p10_s),
        step_s_p90=figure(steps.p90_s),
        tokens_per_s_per_device=figure(rate),
        tflops_per_device=figure(median_of(steps, Column.TFLOPS_PER_DEVICE)),
        peak_memory_gb=figure(log.memory_gib or None),
        accelerator=accelerator,
        devices=plan.devices,
        nodes=plan.nodes,
        model=model,
        seq_len=plan.seq_len,
        global_batch=batch,
        micro_batch=plan.micro_batch,
        tp=plan.tp,
        pp=plan.pp,
        vpp=plan.vpp,
        cp=plan.cp,
        ep=plan.ep,
        dp=plan.dp,
        sp=switch_of(log, Setting.SP),
        recompute=recompute_of(log),
        recompute_layers=recompute_layers_of(log, plan),
        sharding=sharding_of(log),
        precision=precision,
        release=log.word(Setting.RELEASE),
        restarts=steps.restarts,
        goodput=figure(steps.goodput),
        badput=steps.badput,
        oom=log.oom,
        shape=shape,
        collectives=tuple(log.collectives),
        kernels=log.kernels,
        assumed=tuple(notes_of(log, steps)),
        missing=tuple(how),
        how=how,
    )


def step_of(log: Contents, steps: Steady, plan: RunPlan, batch: Count, rate: float) -> float:
    """Seconds of a step: the steady ones, else the mean of the run, else from the printed rate of
    one device; notes which."""
    if steps.step_s > 0:
        return steps.step_s
    per_second = number(log.word(Setting.STEPS_PER_SECOND))
    if per_second > 0:
        log.notes.append("step_s: mean over the whole run, evaluation included")
        return 1 / per_second
    if rate > 0 and batch and plan.seq_len and plan.devices:
        log.notes.append("step_s: tokens of a step / printed tokens per second")
        return batch * plan.seq_len / rate / plan.devices
    return steps.step_s


def notes_of(log: Contents, steps: Steady) -> list[str]:
    """What a reader has to know of how the figures came about."""
    notes = list(dict.fromkeys(log.notes))
    if log.coarse_mean:
        notes.append("step_s: mean from a clock of whole seconds, long pauses left out")
    if steps.pauses:
        notes.append(f"step_s: {steps.pauses} steps longer than 3 medians are pauses, left out")
    if log.memory_gib:
        notes.append("peak_memory_gb: GiB (2^30 bytes) of one device, as frameworks print it")
    if log.oom:
        notes.append("oom: the log has an out-of-memory error; a step line does not show a fit")
    return notes
