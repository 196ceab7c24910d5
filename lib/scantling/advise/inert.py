"""Fields that a design states and that change nothing on it: each with the reason, found by giving
them every other value."""

from collections.abc import Iterator, Mapping
from math import isnan
from typing import Any

from .. import catalogue
from ..catalogue.stacks import software_switches
from ..catalogue.words import TOPOLOGIES, Schedule, Sharding
from ..plans.plan_names import fields_of_plan
from ..verdict.assess import changed
from ..verdict.assessment import Assessment
from ..verdict.result import FigureName

# fields of a plan that fix it: only what is looked at moves
PINS = (
    "tp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "sharding",
    "shard_group",
    "schedule",
    "micro_batch",
    "recompute",
    "recompute_modules",
    "recompute_layers",
    "cp_type",
    "offload",
)
FIGURES: tuple[FigureName, ...] = (
    "step_s",
    "mfu",
    "goodput",
    "days",
    "cost_usd",
    "memory_share",
    "mtbf_s",
    "spares",
    "spares_recommended",
)
ONE_SITE = "all devices stand at one site"
# fields that are tried against being left out, with the reason where nothing changes
ALONE = {
    "job.evaluation_hours": "days end with the last token; the calendar has the pause after it",
    "job.sync": ONE_SITE,
    "cluster.site_rtt_ms": ONE_SITE,
    "cluster.site_gbytes_per_s": ONE_SITE,
    "cluster.measured.all_to_all_gbytes_per_s": "this plan has no all-to-all that it bounds",
    "cluster.nvme_gb": "this plan keeps nothing there",
}
RELEASES = ("23.06", "24.12", "25.09", "26.04", "26.08", "26.11")
DUALPIPES = (Schedule.DUALPIPE, Schedule.DUALPIPE_V)


def inert(assessment: Assessment) -> list[str]:
    """A line for each stated field of network, software and plan whose other values would change
    no figure, with the reason. Empty where no plan fits."""
    if not assessment.fits:
        return []
    pins = {f"plan.{name}": value for name, value in fields_of_plan(assessment.plan, PINS).items()}
    before = assessment.figures("verdict", *FIGURES)
    lines = []
    for path, others in _watched(assessment):
        afters = (changed(assessment.design, {**pins, path: other}) for other in others)
        same = (
            _same(before, after.figures("verdict", *FIGURES))
            for after in afters
            if after and after.fits
        )
        if next(same, False) and all(same):  # the first that moves a figure is the last tried
            lines.append(f"{path}: no effect here, because {_reason(assessment, path)}")
    return lines


def _same(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the verdict is the same, and no figure differs beyond rounding."""
    return before["verdict"] == after["verdict"] and all(
        before[name] == after[name]
        or (before[name] and after[name] and abs(after[name] / before[name] - 1) < 1e-9)
        for name in FIGURES
    )


def _watched(assessment: Assessment) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Stated fields that may do nothing, each with its other values."""
    data = assessment.design.data()
    cluster = data.get("cluster", {})
    if isinstance(data.get("stack"), Mapping) and "release" in data["stack"]:
        yield "stack.release", RELEASES
    if "topology" in cluster:
        yield "cluster.topology", tuple(t for t in TOPOLOGIES if t != cluster["topology"])
    if "rails" in cluster:
        nics = assessment.resolved.cluster.nics_per_node
        yield "cluster.rails", tuple({1, nics} - {cluster["rails"]}) or (None,)
    for name in ("pod_devices", "leaf_devices"):
        if name in cluster:
            yield f"cluster.{name}", (assessment.resolved.cluster.devices_per_node, None)
    if cluster.get("oversubscription") not in (None, 1, 1.0):
        yield "cluster.oversubscription", (1.0,)
    yield from ((path, (None,)) for path in ALONE if _stated(data, path))
    if "storage" in cluster and unpublished(assessment.resolved.cluster.storage):
        yield "cluster.storage", (None,)
    for section in ("plan", "job"):
        stated = data.get(section, {})
        for switch in software_switches().values():
            section_name, _, name = switch.field.partition(".")
            if section_name == section and name in stated:
                others = [word for word in _words(switch.words) if word != stated[name]]
                yield switch.field, tuple(others or (None,))


def _stated(data: Mapping[str, Any], path: str) -> bool:
    """Whether a design's data hold the field at `path`."""
    *sections, name = path.split(".")
    for section in sections:
        data = data.get(section) or {}
    return name in data


def unpublished(store: str) -> bool:
    """Whether nobody has published a rate of a store."""
    found = catalogue.storage(store)
    total = (found.total_write_bytes_per_s, found.total_read_bytes_per_s)
    client = (found.client_write_bytes_per_s, found.client_read_bytes_per_s)
    return all(map(isnan, (*total, *client)))


def _words(words: Mapping[str, float]) -> list[Any]:
    """The words of a switch as a design holds them."""
    truth = {"true": True, "false": False}
    return [truth.get(word, word) for word in words]


def _reason(assessment: Assessment, path: str) -> str:
    """Why a field changes nothing on this design."""
    plan = assessment.plan
    section, _, name = path.partition(".")
    if path == "stack.release":
        return (
            "the switches of the stack that are dated (block-scaled experts, graphs, layouts of "
            "multi-token prediction) are none of this plan's"
        )
    if path == "cluster.oversubscription" and assessment.resolved.cluster.oversubscription <= 1:
        return "one switch joins all cards: nothing narrows"
    if path in ALONE:
        return ALONE[path]
    if path == "cluster.storage":
        return "nobody has published its rate: what a store of that size should reach is taken"
    if section == "cluster":
        return (
            "no exchange of this plan is limited by the links that it describes: rings stay on "
            "their rails and below what the uplinks carry; blueprint has what it does to switches "
            "and price"
        )
    if not assessment.resolved.model.is_moe and decides_for(path) == "moe":
        return "the model has no experts"
    if name == "moe_overlap" and plan["schedule"] in DUALPIPES:
        return f"{plan['schedule']} runs the experts' exchange beside the other direction anyway"
    if name == "expert_sharding" and plan["sharding"] not in (Sharding.ZERO3, Sharding.HSDP):
        return f"the plan is {plan['sharding']}: weights of experts are whole as all others"
    if decides_for(path) in ("moe", "sharded-experts") and plan["ep"] == 1:
        return "all experts stand on one rank: nothing is exchanged"
    if name == "tp_overlap" and plan["tp"] == 1:
        return "the plan has no tensor parallelism"
    return "this plan does nothing that it would change"


def decides_for(path: str) -> str:
    """For which designs the switch that a field sets decides anything: moe, low, sharded,
    sharded-experts, packed, or all ("")."""
    for switch in software_switches().values():
        if switch.field == path:
            return switch.where
    return ""
