"""Which function works each quantity out: what `explain` names, and where a reader goes on."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from .. import catalogue
from ..base.records import Lines
from ..catalogue import scaling_laws
from ..catalogue.models import shape
from ..design import resolve
from ..endure import (
    checkpoint,
    cost,
    elastic,
    failures,
    first_step,
    goodput,
    interval,
    reliability,
    scale,
    spares,
    storage,
)
from ..physics import (
    bands,
    cases,
    communication,
    compute,
    kinds,
    layout,
    pipeline,
    roofline,
    sites,
    step,
    traffic,
)
from ..physics.memory import chance, peak
from ..plans import enumerate, evaluate
from ..verdict import assess, constraints, likely, numbers
from ..verdict.result import FigureKey
from . import answers, batch, fixes, measure, recovery


class Source(NamedTuple):
    """A function and the keys of `design --json` that it works out: figures, and parts of what is
    nested."""

    function: Callable[..., Any]
    figures: tuple[FigureKey, ...] = ()
    parts: Lines = ()


_SOURCES = (
    Source(
        answers.to_loss,
        parts=("to_loss", "to_loss.target_loss", "to_loss.days_low", "to_loss.days_high"),
    ),
    Source(
        answers.largest_active,
        parts=(
            "largest_active",
            "largest_active.active_params",
            "largest_active.experts",
            "largest_active.top_k",
            "largest_active.days",
        ),
    ),
    Source(
        batch.batch_guide,
        parts=("batch", "batch.steps", "batch.dp", "batch.micro_batch", "batch.grad_accum"),
    ),
    Source(
        batch.reshapes_of,
        parts=(
            "batch.reshapes",
            "batch.reshapes.dp",
            "batch.reshapes.micro_batch",
            "batch.reshapes.grad_accum",
            "batch.reshapes.tp",
            "batch.reshapes.cp",
            "batch.reshapes.pp",
            "batch.reshapes.devices_used",
            "batch.reshapes.step_s",
            "batch.reshapes.memory_share",
            "batch.reshapes.step_ratio",
        ),
    ),
    Source(
        fixes.fixes,
        parts=(
            "nearest_fixes.mfu",
            "nearest_fixes.mfu_shown",
            "nearest_fixes.days",
            "nearest_fixes.cost_usd",
            "nearest_fixes.likely.days",
            "nearest_fixes.likely.days_low",
            "nearest_fixes.likely.days_high",
            "nearest_fixes.likely.cost_usd",
            "nearest_fixes.likely.cost_usd_low",
            "nearest_fixes.likely.cost_usd_high",
            "nearest_fixes.devices",
            "can_do.mfu",
            "can_do.mfu_shown",
            "can_do.days",
            "can_do.cost_usd",
            "can_do.likely.days",
            "can_do.likely.days_low",
            "can_do.likely.days_high",
            "can_do.likely.cost_usd",
            "can_do.likely.cost_usd_low",
            "can_do.likely.cost_usd_high",
            "can_do.devices",
        ),
    ),
    Source(
        fixes.tries,
        parts=(
            "not_tried",
            "tried",
            "tried.mfu",
            "tried.mfu_shown",
            "tried.days",
            "tried.cost_usd",
            "tried.devices",
        ),
    ),
    Source(
        measure.measure_first,
        parts=(
            "measure_first",
            "measure_first.narrows",
            "measure_first.days_low",
            "measure_first.days_high",
            "measure_first.cost_usd_low",
            "measure_first.cost_usd_high",
        ),
    ),
    Source(
        recovery.between_sites,
        parts=("sites", "sites.gbits_per_s", "sites.rtt_ms", "sites.outer_bytes"),
    ),
    Source(recovery.fewer, parts=("blueprint.recovery.lost", "blueprint.recovery.choice")),
    Source(
        catalogue.failure_preset,
        parts=(
            "endurance.preset",
            "endurance.failures_per_1000_node_days",
            "endurance.planned_per_day",
        ),
    ),
    Source(shape.parameters, figures=("params", "active_params", "mtp_params")),
    Source(shape.flops_per_token, figures=("flops_per_token",)),
    Source(scaling_laws.batch_advice, parts=("batch.extra_tokens",)),
    Source(scaling_laws.batch_size, parts=("batch.critical.tokens", "batch.optimal.tokens")),
    Source(
        scaling_laws.learning_rate_factor,
        parts=(
            "batch.learning_rate",
            "batch.learning_rate.if_batch",
            "batch.learning_rate.if_batch.times",
            "batch.learning_rate.if_batch.low",
            "batch.learning_rate.if_batch.high",
        ),
    ),
    Source(scaling_laws.learning_rate_advice, parts=("batch.learning_rate.start",)),
    Source(
        scaling_laws.peak_learning_rate,
        parts=("batch.learning_rate.peak", "batch.learning_rate.peak.value"),
    ),
    Source(
        resolve.resolve,
        parts=(
            "devices",
            "phases.tokens",
            "phases.seq_len",
            "phases.global_batch",
            "batch.sequences",
            "batch.tokens",
        ),
    ),
    Source(
        checkpoint.contents, figures=("checkpoint_bytes",), parts=("endurance.checkpoint_bytes",)
    ),
    Source(checkpoint.snapshot_stall_s, parts=("endurance.checkpoint_stall_s",)),
    Source(checkpoint.transfer_s, parts=("endurance.checkpoint_durable_s",)),
    Source(checkpoint.write_rate_needed, parts=("endurance.write_bytes_per_s_needed",)),
    Source(checkpoint.retention, parts=("endurance.retention",)),
    Source(
        cost.price,
        figures=("cost_usd", "energy_kwh", "cost.device_hours"),
        parts=(
            "cost.usd_per_device_hour",
            "cost.usd_per_device_hour_low",
            "cost.usd_per_device_hour_high",
            "cost.cost_usd",
            "cost.cost_usd_low",
            "cost.cost_usd_high",
            "cost.lost_usd",
            "cost.lost_device_hours",
            "cost.energy_kwh",
            "cost.energy_usd",
            "cost.pue",
            "cost.usd_per_kwh",
            "cost.carbon_kg",
            "cost",
        ),
    ),
    Source(cost.expected, figures=("cost_at_risk_usd",)),
    Source(
        cost.to_plan_for,
        parts=(
            "to_plan_for.run_usd",
            "to_plan_for.overrun_usd",
            "to_plan_for.around.share",
            "to_plan_for.around.usd",
            "to_plan_for.total_usd",
        ),
    ),
    Source(cost.power_w, parts=("cost.power_w",)),
    Source(elastic.cut_off, parts=("endurance.badput.sites",)),
    Source(
        elastic.wait_or_shrink,
        parts=(
            "blueprint.recovery.shrink_loss_s",
            "blueprint.recovery.wait_loss_s",
            "blueprint.recovery.break_even_s",
        ),
    ),
    Source(failures.job_mtbf_s, figures=("mtbf_s",), parts=("endurance.mtbf_s",)),
    Source(failures.stops, parts=("endurance.failures_per_day",)),
    Source(failures.pauses, parts=("endurance.badput.link flaps",)),
    Source(
        first_step.first_step,
        parts=(
            "endurance.restart_s",
            "endurance.first_step_s",
            "endurance.first_step_s.scheduler",
            "endurance.first_step_s.imports",
            "endurance.first_step_s.communicators",
            "endurance.first_step_s.compile",
            "endurance.first_step_s.load",
            "blueprint.recovery.devices",
            "blueprint.recovery.scheduler_s",
            "blueprint.recovery.imports_s",
            "blueprint.recovery.communicators_s",
            "blueprint.recovery.compile_s",
            "blueprint.recovery.load_s",
            "blueprint.recovery.total_s",
        ),
    ),
    Source(
        goodput.shares,
        parts=(
            "measured_here.planned",
            "endurance.badput",
            "endurance.badput.saves",
            "endurance.badput.lost work",
            "endurance.badput.detection",
            "endurance.badput.restart",
            "endurance.badput.spare shortage",
            "endurance.badput.planned stops",
            "endurance.badput.stragglers",
            "endurance.badput.sdc",
        ),
    ),
    Source(goodput.ettr, figures=("goodput",), parts=("endurance.goodput", "endurance.curve")),
    Source(
        goodput.optimum_interval,
        figures=("checkpoint_interval_s",),
        parts=("endurance.checkpoint_interval_s", "endurance.optimum_s"),
    ),
    Source(goodput.young, parts=("endurance.young_s",)),
    Source(goodput.daly, parts=("endurance.daly_s",)),
    Source(interval.check_every, parts=("endurance.check_every_s",)),
    Source(
        reliability.endure,
        figures=("checkpoint_overhead", "spares"),
        parts=(
            "endurance.devices",
            "endurance.checkpoint_overhead",
            "endurance.detect_s",
            "endurance.repair_s",
            "endurance.recovery_s",
            "endurance.lost_work_s",
            "endurance.spares",
            "endurance.domain_nodes",
            "endurance.alone",
            "endurance.keep_days",
            "endurance.curve.interval_s",
            "endurance.curve.goodput",
        ),
    ),
    Source(
        reliability.tiered,
        parts=("endurance.tiers.every_s", "endurance.tiers.write_s", "endurance.tiers.restores"),
    ),
    Source(
        scale.measures,
        parts=(
            "blueprint.recovery.measure",
            "blueprint.recovery.why",
            "blueprint.recovery.own",
            "blueprint.recovery.at_100k",
            "blueprint.recovery.at_300k",
            "blueprint.recovery.at_1m",
        ),
    ),
    Source(
        spares.cheapest, figures=("spares_recommended",), parts=("endurance.spares_recommended",)
    ),
    Source(spares.spares_for, parts=("endurance.spares_for",)),
    Source(storage.rates, parts=("endurance.write_bytes_per_s", "endurance.copies_survive")),
    Source(bands.band, figures=("step_s_low", "step_s_high")),
    Source(
        bands.without_single_source,
        parts=("without_single_source.step_s", "without_single_source.mfu"),
    ),
    Source(
        bands.nearest_runs,
        parts=(
            "nearest_runs.devices",
            "nearest_runs.mfu",
            "nearest_runs.mfu_predicted",
            "nearest_runs.distance",
        ),
    ),
    Source(cases.devices, figures=("devices_used",), parts=("candidates.devices_used",)),
    Source(
        communication.communication,
        parts=(
            "communication.group",
            "communication.bytes",
            "communication.calls",
            "communication.time_s",
            "communication.exposed_s",
        ),
    ),
    Source(
        compute.layer_time,
        parts=(
            "step_breakdown_s.gemm",
            "step_breakdown_s.attention",
            "step_breakdown_s.elementwise",
        ),
    ),
    Source(compute.logits_s, parts=("step_breakdown_s.logits",)),
    Source(
        kinds.by_kind,
        parts=(
            "blocks",
            "blocks.kind",
            "blocks.count",
            "blocks.parameters",
            "blocks.step_share",
            "blocks.memory_share",
            "blocks.context_share",
        ),
    ),
    Source(layout.runs, parts=("plan.layout", "phases.plan.layout")),
    Source(
        layout.stages_of,
        parts=(
            "stages",
            "stages.stage",
            "stages.first",
            "stages.last",
            "stages.layers",
            "stages.blocks",
            "stages.blocks.layer",
            "stages.share",
        ),
    ),
    Source(chance.oom_probability, figures=("oom_probability",)),
    Source(
        peak.memory,
        figures=("memory_bytes.total", "memory_bytes.capacity"),
        parts=(
            "memory_bytes.weights",
            "memory_bytes.gradients",
            "memory_bytes.optimizer",
            "memory_bytes.activations",
            "memory_bytes.other",
            "memory_bytes",
            "candidates.memory_bytes",
            "phases.memory_bytes",
        ),
    ),
    Source(
        peak.memory_by_stage,
        parts=(
            "memory_by_stage",
            "memory_by_stage.stage",
            "memory_by_stage.layers",
            "memory_by_stage.weights",
            "memory_by_stage.gradients",
            "memory_by_stage.optimizer",
            "memory_by_stage.activations",
            "memory_by_stage.other",
            "memory_by_stage.total",
        ),
    ),
    Source(pipeline.bubble_time, figures=("bubble_fraction",), parts=("step_breakdown_s.bubble",)),
    Source(
        roofline.roofline,
        parts=(
            "roofline.kernel",
            "roofline.flops",
            "roofline.bytes",
            "roofline.intensity",
            "roofline.achieved_flops",
            "roofline.attainable_flops",
            "roofline.peak_flops",
            "roofline.seconds",
            "roofline.share",
            "roofline.bound",
            "roofline.ridge",
        ),
    ),
    Source(
        sites.report,
        parts=(
            "endurance.sites",
            "sites.sites",
            "sites.share",
            "sites.needed_bytes_per_s",
            "sites.choices.local_steps",
            "sites.choices.share",
            "sites.extra_tokens.low",
            "sites.extra_tokens.high",
        ),
    ),
    Source(sites.local_steps, parts=("sites.local_steps",)),
    Source(sites.exchanged_bytes, parts=("sites.exchange_bytes",)),
    Source(sites.exchange_s, parts=("sites.exchange_s",)),
    Source(sites.waited_s, parts=("sites.waited_s",)),
    Source(
        step.step_time,
        figures=("step_s",),
        parts=(
            "step_breakdown_s",
            "step_breakdown_s.data",
            "hidden_s",
            "hidden_s.tp",
            "hidden_s.cp",
            "hidden_s.ep",
            "hidden_s.dp",
            "hidden_s.pp",
            "candidates.step_s",
            "phases.step_s",
        ),
    ),
    Source(
        step.rates,
        figures=("tokens_per_s_per_device", "model_tflops_per_device", "mfu"),
        parts=("candidates.mfu", "phases.mfu"),
    ),
    Source(step.hardware_share, figures=("hfu",)),
    Source(step.layer_parts, parts=("step_breakdown_s.recompute",)),
    Source(step.optimizer_s, parts=("step_breakdown_s.optimizer",)),
    Source(step.step_host_s, parts=("step_breakdown_s.host",)),
    Source(step.straggler_share, parts=("step_breakdown_s.straggler",)),
    Source(traffic.tensor_parallel, parts=("step_breakdown_s.tp",)),
    Source(traffic.context_parallel, parts=("step_breakdown_s.cp",)),
    Source(traffic.expert_parallel, parts=("step_breakdown_s.ep",)),
    Source(traffic.data_parallel, parts=("step_breakdown_s.dp",)),
    Source(traffic.pipeline_send, parts=("step_breakdown_s.pp",)),
    Source(
        enumerate.enumerate_plans,
        parts=(
            "plan.tp",
            "plan.cp",
            "plan.pp",
            "plan.vpp",
            "plan.dp",
            "plan.ep",
            "plan.etp",
            "plan.shard_group",
            "plan.micro_batch",
            "plan.grad_accum",
            "plan.recompute_modules",
            "plan.recompute_layers",
            "candidates.tp",
            "candidates.cp",
            "candidates.pp",
            "candidates.vpp",
            "candidates.dp",
            "candidates.ep",
            "candidates.etp",
            "candidates.shard_group",
            "candidates.micro_batch",
            "candidates.grad_accum",
            "candidates.recompute_layers",
            "candidates.recompute_share",
            "phases.plan.tp",
            "phases.plan.cp",
            "phases.plan.pp",
            "phases.plan.vpp",
            "phases.plan.dp",
            "phases.plan.ep",
            "phases.plan.etp",
            "phases.plan.shard_group",
            "phases.plan.micro_batch",
            "phases.plan.grad_accum",
            "phases.plan.recompute_layers",
        ),
    ),
    Source(evaluate.find, parts=("rejected", "legal", "evaluated", "search_seconds")),
    Source(assess.assess, parts=("fastest.step_s", "fastest.days", "fastest.cost_usd")),
    Source(constraints.asked, parts=("asked",)),
    Source(constraints.value_of, parts=("asked.value",)),
    Source(constraints.missed, parts=("missed.limit", "missed.value")),
    Source(constraints.chance_of, parts=("missed.chance",)),
    Source(
        likely.likely,
        parts=(
            "likely",
            "likely.days",
            "likely.days_low",
            "likely.days_high",
            "likely.cost_usd",
            "likely.cost_usd_low",
            "likely.cost_usd_high",
        ),
    ),
    Source(numbers.numbers, figures=("mfu_low", "mfu_high")),
    Source(numbers.utilisation, figures=("mfu_causal", "mfu_bf16_peak")),
    Source(numbers.shown_mfu, figures=("mfu_shown", "mfu_shown_low", "mfu_shown_high")),
    Source(
        numbers.tables,
        parts=(
            "measured_here.usual_s",
            "measured_here.goodput.logs",
            "measured_here.goodput.goodput",
            "measured_here.goodput.badput",
            "measured_here.constants.value",
            "measured_here.constants.was",
            "measured_here.peaks.runs",
            "measured_here.steps.runs",
            "measured_here.steps.factor",
            "measured_here.steps.points.devices",
            "measured_here.steps.points.step_s",
            "measured_here.steps.points.mfu",
        ),
    ),
    Source(numbers.days, figures=("days", "days_low", "days_high")),
    Source(numbers.cost_band, figures=("cost_usd_low", "cost_usd_high")),
    Source(
        numbers.reshaped,
        parts=(
            "blueprint.recovery.dp",
            "blueprint.recovery.micro_batches",
            "blueprint.recovery.ratio",
            "blueprint.recovery.memory_bytes",
        ),
    ),
)
# of the site, a package beside the core
_OF_THE_SITE = {
    "scantling_site.promise.promise": (
        "promise",
        "promise.days_mean",
        "promise.days_p10",
        "promise.days_p50",
        "promise.days_p90",
        "promise.cost_mean",
        "promise.cost_p10",
        "promise.cost_p50",
        "promise.cost_p90",
        "promise.deadline_kept",
        "promise.budget_kept",
        "promise.by.days",
        "promise.by.usd",
        "promise.draws",
        "promise.seed",
    ),
    "scantling_site.domains.domains": (
        "blueprint.domains.what",
        "blueprint.domains.devices",
        "blueprint.domains.replicas_stalled",
        "blueprint.domains.events_per_run",
        "blueprint.domains.days_between",
        "blueprint.domains.recovers",
        "blueprint.domains.loss_s",
        "blueprint.domains.days_lost",
        "blueprint.domains.usd_lost",
    ),
    "scantling_site.risks.register.risks": (
        "blueprint.risks.risk",
        "blueprint.risks.likelihood",
        "blueprint.risks.impact_days",
        "blueprint.risks.expected_usd",
        "blueprint.risks.mitigation",
        "blueprint.risks.left_after_days",
        "blueprint.risks.owner",
    ),
    "scantling_site.network.network.crossings": (
        "blueprint.crossings.edge",
        "blueprint.crossings.blocks",
        "blueprint.crossings.bytes",
        "blueprint.crossings.capacity_bytes_per_s",
        "blueprint.crossings.busy_s",
        "blueprint.crossings.busy_share",
    ),
    "scantling_site.network.alternatives.alternatives": (
        "blueprint.topologies.what",
        "blueprint.topologies.switches",
        "blueprint.topologies.all_cables",
        "blueprint.topologies.bisection_bytes_per_s",
        "blueprint.topologies.usd",
        "blueprint.topologies.usd_per_device",
        "blueprint.topologies.step_change",
        "blueprint.topologies.run_usd",
    ),
}


@cache
def _paths() -> dict[str, str]:
    paths = {key: path for path, keys in _OF_THE_SITE.items() for key in keys}
    for source in _SOURCES:
        path = f"{source.function.__module__}.{source.function.__qualname__}"
        paths |= dict.fromkeys((*source.figures, *source.parts), path)
    return paths


def computed_by(key: str) -> str:
    """The dotted path of the function that computes a quantity; nothing for what none computes."""
    return _paths().get(key, "")
