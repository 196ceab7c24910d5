"""From a post-training design to its answer: the plans, the step, failures, days and dollars."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scantling.api import designed
from scantling.base.errors import DesignError
from scantling.base.records import Known, Lines
from scantling.base.units import DAY_S
from scantling.catalogue.load import of_rows
from scantling.catalogue.models.shape import parameters
from scantling.catalogue.stacks import GENERIC, stack
from scantling.catalogue.words import Method
from scantling.design.design import Design
from scantling.design.methods import is_posttraining, method_of
from scantling.design.resolved import Resolved
from scantling.design.unsettled import Unsettled
from scantling.endure.checkpoint import contents
from scantling.endure.cost import price
from scantling.endure.reliability import Endurance, endure
from scantling.physics.cases import FULL, ZERO3
from scantling.plans.evaluate import column_of
from scantling.plans.prepare import prepare
from scantling.verdict.verdicts import rank

from . import texts
from .constants import Constants, constants
from .fixes import Change, nearest, trials, tried
from .inputs import Notes, Rollout, Samples, adapters_of, rollout_of, samples_of, without_effect
from .layouts import Layout, layouts, trainer_on, varied
from .posttrained import EngineMemory, Fix, Other, Posttrained, RolloutRow, Varied
from .trainer import BATCH, Trainer, loader, trainer_of, tuning_of, twin
from .tuning import Held, held, spent, trained_parameters

JUDGED = ("deadline_days", "budget_usd", "max_oom_probability")  # constraints
NOTABLY = 1.02  # times the best step, from which a habit is said to lose


def posttrain(design: Design | str | Path | Mapping[str, Any]) -> Posttrained:
    """The answer to a design with `job.method` other than pretrain: plan of the trainer and, for
    a policy, of the rollout; step, memory, days, dollars, what was assumed and what has to be
    asked. Raises DesignError for a wrong design, Unsettled for words that nobody has settled."""
    full = designed(design)
    if full.unsettled:
        raise Unsettled(full.title, full.unsettled)
    if not is_posttraining(full):
        raise DesignError(
            "job.method",
            method_of(full).value,
            [method.value for method in Method if method is not Method.PRETRAIN],
            problem="trains from the start",
        )
    result = assessed(full)
    return replace(result, fixes=tuple(nearest(full, result, assessed)))


def assessed(design: Design) -> Posttrained:
    """The answer without what would change it."""
    k, notes = constants(), Notes()
    rollout = rollout_of(design, notes, k)
    if rollout is not None:
        return policy_answer(design, rollout, notes, k)
    return tuning_answer(design, notes, k)


def moves(result: Posttrained) -> tuple[int, Iterator[Fix | None]]:
    """(how many changes of a design that does are tried, each with what it saves: None where that
    is not a tenth of days or dollars, or where one before it comes to the same run)."""
    some = trials(result.design, result)
    runs: set[tuple[Known, ...]] = set()

    def saved(change: Change) -> Fix | None:
        fix = tried(change, result, assessed)
        if fix is None or (run := (fix.devices, fix.step_s, fix.days)) in runs:
            return None
        runs.add(run)
        return fix

    return len(some), map(saved, some)


class Interval(NamedTuple):
    """Seconds of a step, and both ends of its 80 % interval."""

    likely: float
    low: float
    high: float


class Run(NamedTuple):
    """How long a step takes, how many there are, and on what."""

    computed: Interval
    step: Interval  # computed, or measured
    steps: Known
    devices: int
    trained: float  # parameters


class Estimate(NamedTuple):
    """A figure of the run with both ends of its interval, None where the design names no end or
    nobody has priced it."""

    likely: Known = None
    low: Known = None
    high: Known = None


class Whole(NamedTuple):
    """The run with its failures, and what it costs."""

    endurance: Endurance
    goodput: float
    days: Estimate = Estimate()
    cost_usd: Estimate = Estimate()


def whole(design: Design, resolved: Resolved, run: Run, state_bytes: float) -> Whole:
    """The run on all devices of the design, with the failures and saves that pre-training has: what
    is saved is what was trained."""
    own = prepare_whole(design, resolved)
    size = contents(run.trained, ranks=run.devices).total
    lived = endure(
        own.cluster,
        own.reliability,
        saves=own.checkpoint,
        checkpoint_bytes=size,
        state_bytes_per_device=max(size / run.devices, min(state_bytes, size)),
        step_s=run.step.likely,
        devices=run.devices,
        recovers=stack(own.stack or GENERIC).recovers,
    )
    goodput = design.measured.goodput or float(np.ravel(lived.goodput)[0])
    if run.steps is None:
        return Whole(lived, goodput)
    days = [run.steps * step / goodput / DAY_S for step in run.step]
    spares = float(np.ravel(lived.spares)[0]) * own.cluster.devices_per_node
    costs = [
        price(
            own.cluster,
            own.prices,
            wall_s=each * DAY_S,
            devices_paid=own.cluster.devices + spares,
            goodput=goodput,
        )
        for each in days
    ]
    mid, low, high = costs
    cost_usd = Estimate(known(mid.cost_usd), known(low.cost_usd_low), known(high.cost_usd_high))
    return Whole(lived, goodput, Estimate(*days), cost_usd)


def prepare_whole(design: Design, trainer: Resolved) -> Resolved:
    """The trainer's resolved design on all devices of the design."""
    if trainer.cluster.devices == design.cluster.devices:
        return trainer
    phase = trainer.main_phase
    own = twin(design, design.cluster.devices, phase.seq_len, phase.global_batch, 0.0, None)
    return prepare(own)


def known(value: Any) -> Known:
    """A figure as a number; None where it is unknown."""
    return None if value is None else float(np.ravel(value)[0])


def judged(
    design: Design, trainer: Trainer, row: int, days: Known, high: Known, cost: Known
) -> tuple[str, list[str]]:
    """The verdict on memory, deadline and budget, and its lines."""
    asked = design.constraints
    missed, verdict = [], "feasible"
    if trainer.chance(row) > trainer.resolved.max_oom_probability:
        missed.append(texts.perhaps_out_of_memory(trainer, row))
        verdict = "feasible-at-risk"
    if asked.deadline_days is not None and days is not None:
        if days > asked.deadline_days:
            missed.append(texts.late(days, asked.deadline_days))
            verdict = "constraint-missed"
        elif high is not None and high > asked.deadline_days:
            missed.append(texts.perhaps_late(high, asked.deadline_days))
            verdict = "feasible-at-risk"
    if asked.budget_usd is not None and cost is not None and cost > asked.budget_usd:
        missed.append(texts.dear(cost, asked.budget_usd))
        verdict = "constraint-missed"
    unmet = [name for name in asked.stated() if name not in JUDGED]
    if unmet:
        missed.append(texts.not_judged(unmet))
        verdict = max(verdict, "not-checked", key=rank)
    return verdict, missed


def tuning_answer(design: Design, notes: Notes, k: Constants) -> Posttrained:
    """The answer for SFT, adapters and DPO."""
    method = method_of(design)
    devices = design.cluster.devices
    context = prepare(twin(design, devices, 1024, BATCH, 0.0, None)).model.seq_len or 4096
    samples = samples_of(design, context, notes, k)
    adapters = adapters_of(design, notes)
    pairs = 2 if method is Method.DPO else 1
    batch = batch_of(design, samples, pairs, notes)
    if adapters is not None and adapters.base_bits < 16:
        design = sharded_alone(design, notes)
    own = twin(design, devices, samples.slots, batch * pairs, samples.document, samples.tokens)
    stack_id = prepare(own).stack
    tuning = tuning_of(adapters, stack_id, pairs > 1)
    trainer = trainer_of(own, tuning, samples.longest, k)
    row = trainer.best
    if row is None:
        return impossible(design, trainer, notes, k)
    trained = known(trained_parameters(trainer.case(row), tuning)) or 0.0
    computed = interval(float(trainer.step_s[row]), 1 / k.high_speed, 1 / k.low_speed, notes, k)
    tokens = batch * pairs * samples.filled
    steps = None if samples.tokens is None else samples.tokens / tokens
    run = Run(computed, timed(design, computed, tokens), steps, devices, trained)
    return answer(
        design,
        trainer,
        row,
        run,
        notes,
        k,
        why=texts.why_tuned(trainer, row, adapters, samples, k),
        sensitivity=tuning_sensitivity(trainer, row, samples, k),
        others=tuning_others(trainer, row, k),
        phases={},
        rollout=None,
        tokens=tokens,
    )


def batch_of(design: Design, samples: Samples, pairs: int, notes: Notes) -> int:
    """Rows of a step, of DPO pairs of rows: as stated, or as many as hold the stated tokens."""
    job, field = design.job, "job.global_batch"
    if job.global_batch is None and job.global_batch_tokens is not None:
        rows = max(round(job.global_batch_tokens / (samples.slots * pairs)), 1)
        return notes.take(field, None, rows, "job.global_batch_tokens / tokens of a row")
    usual = max(BATCH, design.cluster.devices)
    return notes.take(field, job.global_batch, usual, "64 sequences, at least one a device")


def sharded_alone(design: Design, notes: Notes) -> Design:
    """A design with a quantised base on the software that has such, which shards its weights and
    splits them no other way (bitsandbytes under PyTorch FSDP, transformers
    quantizers/bitsandbytes)."""
    why = "packed weights are sharded, and split no other way (bitsandbytes under FSDP)"
    pins = {
        axis: notes.take(f"plan.{axis}", None, 1, why)
        for axis in ("tp", "pp", "cp", "ep")
        if vars(design.plan)[axis] is None
    }
    changes: dict[str, Any] = {f"plan.{axis}": value for axis, value in pins.items()}
    if design.stack is None:
        changes["stack"] = notes.take("stack", None, loader(), "what loads packed weights")
    return design.change(changes)


def interval(step: float, low: float, high: float, notes: Notes, k: Constants) -> Interval:
    """A computed step, its interval wider where a length was guessed. [s]"""
    power = k.assumed_wider if notes.guessed else 1.0
    return Interval(step, step * low**power, step * high**power)


def timed(design: Design, computed: Interval, tokens: float) -> Interval:
    """The step of `tokens`: as measured, without width; of a variation of a measured design as many
    times what is computed as there; else as computed. [s]"""
    measured = design.measured
    if design.measured_at is not None:
        ratio = step_ratio(design.measured_at)
        return Interval(*(ratio * step for step in computed))
    step = measured.step_s
    if measured.tokens_per_s_per_device is not None:
        step = tokens / (measured.tokens_per_s_per_device * design.cluster.devices)
    return computed if step is None else Interval(step, step, step)


@of_rows
@lru_cache(maxsize=64)
def step_ratio(design: Design) -> float:
    """Measured over computed step of a design, for what varies it; 1 where no plan fits."""
    result = assessed(design)
    return (result.step_s or 1.0) / (result.computed_step_s or 1.0)


def tuning_sensitivity(
    trainer: Trainer, row: int, samples: Samples, k: Constants
) -> tuple[Varied, ...]:
    """The step of the same plan with packed rows of other lengths, as many tokens in a micro-batch
    and a step as before, and with samples of another one where these are padded."""
    case = trainer.case(row)
    base = trainer.spent(row, k).total
    changes = []
    for factor in (0.5, 2.0):
        slots = samples.slots * factor
        longer = replace(case, job=replace(case.job, seq_len=slots))
        if samples.packed:
            rows = case.job.global_batch / factor
            plan = replace(case.plan, micro_batch=np.maximum(case.plan.micro_batch / factor, 1.0))
            if np.any(rows < plan.dp * plan.micro_batch):
                continue
            longer = replace(longer, plan=plan, job=replace(longer.job, global_batch=rows))
        if float(np.ravel(held(longer, trainer.tuning, k).total)[0]) > trainer.capacity:
            continue
        step = known(spent(longer, trainer.tuning, k).total) or 0.0
        if samples.packed:
            change = texts.rows_of(slots, factor)
        else:
            change = texts.change_of("padded sample", slots)
        changes.append(Varied(change=change, step_s=step, share=step / (known(base) or 1.0) - 1))
    return tuple(changes)


def tuning_others(trainer: Trainer, row: int, k: Constants) -> tuple[Other, ...]:
    """Habits that lose here: the best plan that fits with each, where it takes notably longer."""
    best = float(trainer.step_s[row])
    plan = trainer.cases.plan
    habits = (
        column_of(plan, "tp") > 1,
        column_of(plan, "pp") > 1,
        column_of(plan, "sharding") >= ZERO3,
        column_of(plan, "recompute") == FULL,
    )
    rows = [trainer.order[habit[trainer.order]][:1] for habit in habits]
    slower = [int(i[0]) for i in rows if len(i) and trainer.step_s[i[0]] > NOTABLY * best]
    return tuple(
        Other(
            what=trainer.words(i),
            step_s=float(trainer.step_s[i]),
            why=texts.slower_plan(trainer, row, i, k),
            cost=texts.longer(float(trainer.step_s[i]) / best - 1),
        )
        for i in dict.fromkeys(slower)
    )


def policy_answer(design: Design, r: Rollout, notes: Notes, k: Constants) -> Posttrained:
    """The answer for GRPO and PPO."""
    first = prepare(twin(design, design.cluster.devices, 1024, BATCH, 0.0, None))
    ranked = layouts(design, r, first.cluster.devices_per_node, k)
    if not ranked:
        trainer, _ = trainer_on(design, r, design.cluster.devices, k)
        return impossible(design, trainer, notes, k)
    best = ranked[0]
    computed = interval(best.step_s, k.low_policy, k.high_policy, notes, k)
    tokens = r.drawn * (r.prompt + r.response)
    trained = known(parameters(best.trainer.case(best.row).shape).total) or 0.0
    step = timed(design, computed, tokens)
    run = Run(computed, step, r.steps, design.cluster.devices, trained * (1 + r.critic))
    return answer(
        design,
        best.trainer,
        best.row,
        run,
        notes,
        k,
        why=texts.why_layout(best, ranked, r),
        sensitivity=policy_sensitivity(best, r, k),
        others=others_of(ranked),
        phases=phases_of(best),
        rollout=rollout_row(best, r),
        tokens=tokens,
    )


def phases_of(layout: Layout) -> dict[str, float]:
    """Seconds of the phases of a step."""
    times = layout.phases
    return {
        "rollout_s": float(times.rollout),
        "logprob_s": float(times.logprobs),
        "train_s": float(times.updates),
        "weight_sync_s": float(times.sync),
        "other_s": float(times.other),
    }


def rollout_row(layout: Layout, r: Rollout) -> RolloutRow:
    """The engine's plan as plain values."""
    return {
        "engine": r.engine,
        "colocated": layout.colocated,
        "train_devices": layout.train_devices,
        "devices": layout.rollout_devices,
        "tp": layout.tp,
        "dp": layout.replicas,
        "lag": layout.lag,
        "weight_sync": layout.sync.value,
        "kv_fraction": layout.kv_fraction,
        "running": layout.running,
        "states_leave_the_device": layout.away,
        "memory_bytes": engine_memory(layout),
        "prefill_s": known(layout.generated.prefill_s) or 0.0,
        "decode_s": known(layout.generated.decode_s) or 0.0,
        "tail_share": layout.tail_share,
        "prompts": r.prompts,
        "samples": r.samples,
        "mean_response": r.response,
        "max_response": r.longest,
        "updates": r.updates,
    }


def engine_memory(layout: Layout) -> EngineMemory:
    """What a device of the engine holds. [bytes]"""
    e, d = layout.engine, layout.drawn
    tokens = layout.running * (d.prompt + d.response)
    return {
        "weights": known(e.weight_bytes / e.devices) or 0.0,
        "keys_values": known(tokens * e.kv_bytes / e.devices) or 0.0,
        "engine": known(e.memory_bytes) or 0.0,
        "capacity": layout.trainer.capacity,
    }


def policy_sensitivity(layout: Layout, r: Rollout, k: Constants) -> tuple[Varied, ...]:
    """The step of the same layout under other lengths."""
    base = layout.step_s
    changes = (
        (texts.change_of("mean response", r.response / 2), {"response": r.response / 2}),
        (
            texts.change_of("mean response", min(2 * r.response, r.longest)),
            {"response": min(2 * r.response, r.longest)},
        ),
        (texts.change_of("longest response", 2 * r.longest), {"longest": 2 * r.longest}),
        (texts.tail_of(r.spread + 0.3), {"spread": r.spread + 0.3}),
    )
    steps = [(text, varied(layout, k, **lengths)) for text, lengths in changes]
    return tuple(Varied(change=text, step_s=s, share=s / base - 1) for text, s in steps)


def others_of(ranked: list[Layout]) -> tuple[Other, ...]:
    """The best layout of the other kind, and the next of the same."""
    best = ranked[0]
    other = [one for one in ranked[1:] if one.colocated != best.colocated][:1]
    same = [one for one in ranked[1:] if one.colocated == best.colocated][:1]
    return tuple(
        Other(
            what=texts.layout_words(one),
            step_s=one.step_s,
            why=texts.slower_layout(best, one),
            cost=texts.longer(one.step_s / best.step_s - 1),
        )
        for one in (*other, *same)
    )


def answer(
    design: Design,
    trainer: Trainer,
    row: int,
    run: Run,
    notes: Notes,
    k: Constants,
    *,
    why: Lines,
    sensitivity: tuple[Varied, ...],
    others: tuple[Other, ...],
    phases: dict[str, float],
    rollout: RolloutRow | None,
    tokens: float,
) -> Posttrained:
    """The record of one plan."""
    memory, parts = trainer.held(row, k), trainer.spent(row, k)
    lived = whole(design, trainer.resolved, run, known(memory.trained) or 0.0)
    days, cost = lived.days, lived.cost_usd
    verdict, missed = judged(design, trainer, row, days.likely, days.high, cost.likely)
    notes.assumed += [one for one in trainer.resolved.assumed if not one.field.startswith(OF_TWIN)]
    end = lived.endurance
    return Posttrained(
        design=design,
        name=design.title,
        method=method_of(design).value,
        verdict=verdict,
        limits=tuple(missed),
        devices=design.cluster.devices,
        params=float(trainer.resolved.params.total),
        trained_params=run.trained,
        plan=trainer.plan(row),
        plan_words=trainer.words(row),
        step_s=run.step.likely,
        step_s_low=run.step.low,
        step_s_high=run.step.high,
        computed_step_s=run.computed.likely,
        step_parts_s={name: known(part) or 0.0 for name, part in parts._asdict().items()},
        phases_s=phases,
        rollout=rollout,
        tokens_per_s_per_device=tokens / run.step.likely / design.cluster.devices,
        memory_bytes=memory_parts(memory, known(memory.total) or 0.0, trainer.capacity),
        oom_probability=trainer.chance(row),
        steps=run.steps,
        days=days.likely,
        days_low=days.low,
        days_high=days.high,
        cost_usd=cost.likely,
        cost_usd_low=cost.low,
        cost_usd_high=cost.high,
        goodput=lived.goodput,
        mtbf_s=known(end.mtbf_s),
        checkpoint_interval_s=known(end.checkpoint_interval_s),
        checkpoint_bytes=known(end.checkpoint_bytes),
        checkpoint_overhead=known(end.checkpoint_overhead),
        spares=known(end.spares),
        legal_plans=trainer.legal,
        fitting_plans=len(trainer.order),
        why=(*texts.of_measured(design, run.computed.likely, run.step.likely), *why),
        others=others,
        sensitivity=sensitivity,
        asks=tuple(notes.asks),
        assumed=tuple(notes.assumed),
        no_effect=without_effect(design),
        resolved=trainer.resolved,
        core_constants=trainer.case(row).constants,
    )


def memory_parts(memory: Held, total: float, capacity: float) -> dict[str, float]:
    """Memory of a device by part, beside what it has. [bytes]"""
    return {
        "weights": known(memory.weights) or 0.0,
        "trained": known(memory.trained) or 0.0,
        "activations": known(memory.activations) or 0.0,
        "other": known(memory.other) or 0.0,
        "total": total,
        "capacity": capacity,
    }


# of the trainer's own design: what the whole design says or has no use for
OF_TWIN = (
    "job.optimizer",
    "job.evaluation_hours",
    "job.seq_len",
    "job.global_batch",
    "job.corpus.",
)


def impossible(design: Design, trainer: Trainer, notes: Notes, k: Constants) -> Posttrained:
    """The record of a design that no plan holds: what its leanest plan would need."""
    least = int(np.argmin(trainer.total_bytes)) if trainer.legal else 0
    need = float(trainer.total_bytes[least]) if trainer.legal else inf
    memory = trainer.held(least, k)
    limits = texts.too_large(need, trainer.capacity, trainer.words(least))
    if need <= trainer.capacity:
        limits = texts.too_much_away(trainer)
    if trainer.best is not None:
        limits = texts.NO_REPLICA
    return Posttrained(
        design=design,
        name=design.title,
        method=method_of(design).value,
        verdict="impossible",
        limits=(limits,),
        devices=design.cluster.devices,
        params=float(trainer.resolved.params.total),
        trained_params=0.0,
        plan=None,
        plan_words="",
        step_s=None,
        step_s_low=None,
        step_s_high=None,
        computed_step_s=None,
        step_parts_s={},
        phases_s={},
        rollout=None,
        tokens_per_s_per_device=None,
        memory_bytes=memory_parts(memory, need, trainer.capacity),
        oom_probability=1.0,
        steps=None,
        days=None,
        days_low=None,
        days_high=None,
        cost_usd=None,
        cost_usd_low=None,
        cost_usd_high=None,
        goodput=None,
        mtbf_s=None,
        checkpoint_interval_s=None,
        checkpoint_bytes=None,
        checkpoint_overhead=None,
        spares=None,
        legal_plans=trainer.legal,
        fitting_plans=0,
        why=(),
        others=(),
        sensitivity=(),
        asks=tuple(notes.asks),
        assumed=tuple(notes.assumed),
        no_effect=without_effect(design),
        resolved=trainer.resolved,
        core_constants=None,
    )
