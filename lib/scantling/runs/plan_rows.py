"""The plan of an assessed design as rows of a table of runs: what `predict` reads, and predicts the
same from."""

from typing import Any

import numpy as np

from ..base.errors import DesignError
from ..base.units import DAY_S, HOUR_S
from ..catalogue import accelerators
from ..catalogue.stacks import GENERIC
from ..catalogue.words import Offload
from ..physics.cases import Cases
from ..physics.software import SWITCHES
from ..physics.wires import Link
from ..plans.plan_names import fields_of_plan
from ..verdict.assessment import Assessment, Chosen
from .links import link_of_chip
from .run_shapes import columns_of

# fields of a link that a row can state: column of the table
LINK = {
    "domain": "scale_up_domain",
    "pod_devices": "pod_devices",
    "oversubscription": "oversubscription",
    "sharp": "in_network_reduction",
    "rail_only": "rail_only",
}
# degrees and counts of a plan: column of the table
DEGREES = ("tp", "sp", "pp", "vpp", "cp", "ep", "etp", "dp", "micro_batch", "shard_group")
WORDS = ("sharding", "recompute", "schedule", "cp_type", "layer_split", "offload")


def plan_rows(assessment: Assessment) -> list[dict[str, Any]]:
    """A row of a table of runs for the plan of every phase of a design; `predict` gives its step,
    days and cost.

    Raises DesignError where a table has no words for the design: `inexpressible` says for what.
    """
    rows = []
    for i, chosen in enumerate(assessment.phases):
        lacks = inexpressible(assessment, chosen)
        if lacks:
            allowed = "a design that a row of a table can say: see scantling predict --template"
            raise DesignError("design", "; ".join(lacks), allowed)
        rows.append(plan_row(assessment, chosen, i))
    return rows


def plan_row(assessment: Assessment, chosen: Chosen, i: int) -> dict[str, Any]:
    """The row of the plan of phase i."""
    resolved, phase, case = assessment.resolved, chosen.phase, chosen.case
    cluster, software = resolved.cluster, vars(case.software)
    measured = cluster.measured
    row = columns_of(resolved.model) | {
        "id": f"{resolved.name} {phase.name or i + 1}" if i else resolved.name,
        "seq_len": phase.seq_len,
        "accelerator": cluster.accelerator.id,
        "n_devices": int(case.devices),
        "devices_per_node": cluster.devices_per_node,
        "scale_up_gbytes_per_s": cluster.scale_up_bytes_per_s / 1e9,
        "scale_out": cluster.scale_out,
        "scale_out_gbytes_per_s_per_device": cluster.scale_out_bytes_per_s / 1e9,
        "all_reduce_gbytes_per_s": measured.all_reduce / 1e9,
        "all_reduce_in_node_gbytes_per_s": measured.all_reduce_in_node / 1e9,
        "all_to_all_gbytes_per_s": measured.all_to_all / 1e9,
        "precision": phase.precision,
        "global_batch_seqs": phase.global_batch,
        "grad_accum": chosen.plan["grad_accum"],
        "recompute_share": float(case.plan.recompute_share),
        "half_states": 0,
        "optimizer": phase.optimizer,
        "read_gbytes_per_s": finite(case.job.read_bytes_per_s / 1e9),
        "reads_per_s": finite(case.job.reads_per_s),
        "stack": "" if case_stack(chosen) == GENERIC else case_stack(chosen),
        "tokens": phase.tokens,
    }
    row |= {column: vars(case.link)[field] for field, column in LINK.items()}
    row |= {name: vars(case.plan)[name] for name in DEGREES}
    row |= fields_of_plan(chosen.plan, WORDS)
    row |= {name: float(software[name]) for name in SWITCHES}
    row |= {"grad_bytes": float(np.ravel(case.job.grad_bytes)[0]), **prices(assessment)}
    return row


def prices(assessment: Assessment) -> dict[str, float]:
    """Productive share of the wall clock, and what an hour of the whole machine costs, spares
    included."""
    days, cost_usd = assessment.days, assessment.cost_usd
    row = {"goodput": float(assessment.goodput)}
    if days and cost_usd is not None:
        row["usd_per_hour"] = cost_usd / (days * DAY_S / HOUR_S)
    return row


def finite(value: Any) -> float:
    """A number; nan where there is no limit."""
    return float(value) if np.isfinite(value) else np.nan


def case_stack(chosen: Chosen) -> str:
    """The stack whose code runs."""
    return chosen.search.situation.stack.name


def inexpressible(assessment: Assessment, chosen: Chosen) -> list[str]:
    """What of a design no row of a table can say."""
    resolved, case = assessment.resolved, chosen.case
    cluster = resolved.cluster
    lacks = []
    chip = accelerators().get(cluster.accelerator.id)
    if chip != cluster.accelerator:
        lacks.append("an accelerator of its own")
    elif not same_links(case, link_of_chip(chip, cluster.scale_out)):
        lacks.append("links or a network of its own")
    if cluster.sites > 1:
        lacks.append(f"{cluster.sites} sites")
    if case.layout:
        lacks.append("plan.layout")
    if chosen.phase.offloaded_layers:
        lacks.append("plan.activation_offload")
    if any(chosen.phase.kept_16bit or ()):
        lacks.append("plan.keep_16bit")
    if case.shape.order and chosen.plan["layer_split"] == "balanced":
        lacks.append("a balanced cut of layers that are not alike")
    if resolved.calibration is not None:
        lacks.append("a calibration (predict --calibration)")
    if resolved.measured:
        lacks.append("measured figures")
    if chosen.plan["offload"] != Offload.NONE and cluster.nvme_bytes > 0:
        usual = chosen.search.situation.chip.host_bytes_per_s
        if case.chip.host_bytes_per_s != usual:
            lacks.append("state on NVMe")
    return lacks


def same_links(case: Cases, usual: Link) -> bool:
    """Whether the links of a case are those of its chip and network, but for what a row states."""
    rates = {"up_bytes_per_s", "out_bytes_per_s", "ring_reach", "exchange_reach", "mesh"}
    between_sites = {"site_bytes_per_s", "site_rtt_s"}
    stated = {*LINK, *rates, *between_sites}
    own, theirs = vars(case.link), vars(usual)
    names = own.keys() - stated
    return all(own[name] == theirs[name] or own[name] != own[name] for name in names)


def table_of_plans(assessment: Assessment) -> dict[str, list[Any]]:
    """The rows of a design's plans as columns."""
    rows = plan_rows(assessment)
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
