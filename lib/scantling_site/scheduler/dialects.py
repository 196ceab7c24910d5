"""The request in the words of each scheduler: field names of Slurm, of Kueue with JobSet, of
Volcano."""

from math import ceil
from typing import Any

from scantling.endure.spares import segments

from ..job_site import Site
from .request import (
    LONGEST_JOB_S,
    Adjacency,
    Request,
    adjacency,
    gang,
    licences,
    limits,
    rank_order,
    resources,
    restarts_allowed,
    time_limit_s,
)


def request(s: Site, scheduler: str) -> Request:
    """Gang, topology, resources and time of one job, and the same in the words of a scheduler (an
    id of catalogue/schedulers.csv)."""
    topology = adjacency(s)
    return Request(
        gang=gang(s),
        topology=topology,
        resources=resources(s),
        time=limits(s),
        licences=licences(s),
        order=rank_order(s),
        fields=fields_of(s, scheduler, topology),
    )


def fields_of(s: Site, scheduler: str, topology: Adjacency) -> dict[str, Any]:
    """What the job asks for under the names of a scheduler's own fields; nothing where it has no
    such fields. Slurm's bridge speaks Slurm, Ray on Kubernetes speaks Kueue."""
    if scheduler in ("slurm", "bridge"):
        return slurm_fields(s, topology)
    if scheduler in ("kueue", "ray"):
        return kueue_fields(s, topology)
    if scheduler == "volcano":
        return volcano_fields(s, topology)
    return {}


def quota_nodes(s: Site) -> int:
    """Nodes of the job with its spares as they are held (`spares.Segments`)."""
    return s.used_nodes + int(segments(s.cluster, s.used_nodes).nodes(s.e.life.spares))


def slurm_fields(s: Site, topology: Adjacency) -> dict[str, Any]:
    """Options of sbatch and of topology.conf."""
    fields: dict[str, Any] = {
        "nodes": quota_nodes(s),
        "ntasks-per-node": 1,  # one launcher, which starts a rank a device
        "gpus-per-node": s.per_node,
        "exclusive": True,
        "requeue": True,
        "open-mode": "append",
        "signal": f"USR1@{limits(s)['signal_before_end_s']}",
        "kill-on-bad-exit": 1,  # of the step: what is left starts again in the allocation,
        "no-kill": True,  # which outlives a lost node
        "licenses": licences(s)["file_system"],
    }
    limit = time_limit_s(s)
    if limit:
        fields["time-minutes"] = ceil(min(limit, LONGEST_JOB_S) / 60)
    if topology["unit"] == "block":
        stands = segments(s.cluster, s.used_nodes)
        fields["plugin"] = "topology/block"
        fields["segment"] = int(stands.group(s.e.life.spares))  # trays that stand by among them
        fields["BlockSizes"] = topology["block_nodes"]
    if topology["unit"] == "leaf":
        fields["plugin"] = "topology/tree"
        fields["switches"] = topology["leaves"]
    return fields


def kueue_fields(s: Site, topology: Adjacency) -> dict[str, Any]:
    """Fields of a JobSet and of its podsets' annotations."""
    fields: dict[str, Any] = {}
    if topology["unit"] == "slice":
        fields["parallelism of each"] = topology["segment_nodes"]
        fields["JobSet.replicatedJobs.replicas"] = topology["segments"]
        fields["devices from"] = "device plugin of the provider"
        fields["exclusive-topology"] = "slice"
    else:
        fields["JobSet.replicatedJobs.replicas"] = 1
        fields["parallelism of each"] = s.used_nodes
        fields["devices from"] = "device plugin"
    if topology["unit"] == "block":
        fields["podset-slice-required-topology"] = topology["required"]
        fields["podset-slice-size"] = topology["segment_nodes"]
        fields["devices from"] = (
            "DRA: a channel of the job's ComputeDomain, the devices by the plugin"
        )
        fields["ComputeDomain.numNodes"] = s.used_nodes
    return fields | {
        "podset-preferred-topology": topology["preferred"],
        "admission": "whole JobSet",
        "devices per pod": s.per_node,
        "failurePolicy.maxRestarts": restarts_allowed(s.e.mtbf_s, s.run.seconds),
        "quota nodes": quota_nodes(s),
        "priority": "highest",
    }


def volcano_fields(s: Site, topology: Adjacency) -> dict[str, Any]:
    """Fields of a Volcano job."""
    block = topology["unit"] == "block"
    return {
        "minAvailable": s.used_nodes,
        "devices per pod": s.per_node,
        "quota nodes": quota_nodes(s),
        "queue": "its own, not reclaimable",
        "networkTopology.mode": "hard" if block else "soft",
        "networkTopology.highestTierAllowed": 1 if block else 2,
    }
