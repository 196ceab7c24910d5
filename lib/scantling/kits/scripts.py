"""launch.sh (what every node runs) and what a scheduler wraps around it: job.sbatch,
jobset.yaml."""

from __future__ import annotations

import math

from .. import catalogue
from ..base.units import DAY_S
from .render import render


def wall_text(seconds: float) -> str:
    """D-HH:MM:SS."""
    minutes = max(1, math.ceil(seconds / 60))
    return f"{minutes // 1440}-{minutes // 60 % 24:02d}:{minutes % 60:02d}:00"


def scripts(launch, kit) -> dict[str, str]:
    """env.sh and launch.sh, and the scheduler's own files."""
    framework = launch.framework
    restarts = max(
        3, math.ceil((kit["wall_s"] or 30 * DAY_S) / max(launch.figures["mtbf_s"], 1.0) * 2)
    )
    values = dict(
        launch=launch,
        kit=kit,
        launcher=framework.launcher,
        command=framework.command,
        restarts=min(restarts, 1000),
        stop=framework.stop,
        grace=grace_s(launch),
        prepare=framework.prepare,
    )
    out = {
        "env.sh": render("env.sh.j2", **values),
        "launch.sh": render("launch.sh.j2", **values),
    }
    if launch.on == "slurm":
        limit = min((kit["wall_s"] or 7 * DAY_S) * 1.1, 7 * DAY_S)
        links = math.ceil((kit["wall_s"] or 0) * 1.1 / (7 * DAY_S))
        out["job.sbatch"] = render(
            "job.sbatch.j2",
            **values,
            wall=wall_text(limit),
            switches=leaves(launch),
            block=segment(launch),
            links=links,
            requeues=links + values["restarts"] if links else 1000,
        )  # the ends of the wall time, and the failures
    if launch.on == "kubernetes":
        about = dict(
            plugin=PLUGIN.get(launch.chip, "nvidia.com/gpu"),
            rdma=rdma(launch),
            slice=tpu_slice(launch),
            imex=joined(launch),
            remarks=remarks(launch),
            level="cloud.google.com/gce-topology-block"
            if launch.chip == "tpu"
            else "cloud.provider.com/topology-block",
        )
        out |= (
            {"computedomain.yaml": render("computedomain.yaml.j2", **values)}
            if joined(launch)
            else {}
        )
        out["jobset.yaml"] = render(
            "jobset.yaml.j2",
            **values,
            k=about,
        )
        if framework.launcher != "python":
            roles = [("Master", 1)] + ([("Worker", launch.nodes - 1)] if launch.nodes > 1 else [])
            out["pytorchjob.yaml"] = render(
                "pytorchjob.yaml.j2",
                **values,
                k=about,
                roles=roles,
            )
    return out


PLUGIN = {
    "nvidia": "nvidia.com/gpu",
    "amd": "amd.com/gpu",
    "tpu": "google.com/tpu",
}
SLICES = {
    "tpu-v4": ("tpu-v4-podslice", 3),
    "tpu-v5e": ("tpu-v5-lite-podslice", 2),
    "tpu-v5p": ("tpu-v5p-slice", 3),
    "tpu-v6e": ("tpu-v6e-slice", 2),
    "tpu-v7x": ("tpu7x", 3),
}


def grace_s(launch) -> int:
    """Seconds between SIGTERM and SIGKILL: a step and two whole saves, one to nine minutes."""
    return int(
        min(540, max(60, launch.step_s + 2 * (launch.endurance.get("checkpoint_durable_s") or 0.0)))
    )


def joined(launch) -> bool:
    """Whether NVLink joins devices of several nodes of the run."""
    return (
        launch.chip == "nvidia"
        and launch.nodes > 1
        and launch.cluster.scale_up_domain > launch.cluster.devices_per_node
    )


def leaves(launch) -> int:
    """Sets of leaf switches that the nodes fill at least; 0 where one node or NVLink domains make
    the question another."""
    return (
        0
        if launch.nodes == 1 or joined(launch) or launch.chip == "tpu"
        else math.ceil(launch.nodes / launch.leaf_nodes)
    )


def segment(launch) -> int:
    """Nodes of one NVLink domain that the job takes at a time: the most that divide it evenly; 0
    where a node is the domain, and on TPUs."""
    per = launch.cluster.scale_up_domain // launch.cluster.devices_per_node
    return next((n for n in range(per, 1, -1) if launch.nodes % n == 0), 0) if joined(launch) else 0


def rdma(launch) -> list[tuple[str, int]]:
    """(resource, count) of the network's device plugin: without it pods of several nodes talk over
    TCP."""
    if launch.nodes == 1 or launch.chip not in ("nvidia", "amd"):
        return []
    fabric = catalogue.fabric(launch.cluster.scale_out)
    if fabric.technology == "efa":
        return [("vpc.amazonaws.com/efa", int(launch.cluster.nics_per_node))]
    return [("rdma/rdma_shared_device_a", 1)] if fabric.transport == "verbs" else []


def tpu_slice(launch) -> tuple[str, str] | None:
    """(accelerator label, topology) of the slice with as many chips, as even as it goes; None off
    TPUs or where no slice has that many."""
    if launch.chip != "tpu" or launch.cluster.accelerator.id not in SLICES:
        return None
    label, axes = SLICES[launch.cluster.accelerator.id]
    chips, sides = launch.devices, [2] * axes
    if chips == 4:
        return label, "2x2" if axes == 2 else "2x2x1"
    while math.prod(sides) < chips:
        sides.sort()
        sides[0] *= 2
    if math.prod(sides) != chips:
        return None
    return label, "x".join(str(n) for n in sorted(sides))


def remarks(launch) -> list[str]:
    """What the reader of a manifest has to look after."""
    out = []
    if rdma(launch):
        out.append(
            f"{rdma(launch)[0][0]}: as the network's device plugin of your cluster names "
            f"it; without it NCCL falls back to TCP."
        )
    if joined(launch):
        out.append(
            f"NVLink joins {launch.cluster.scale_up_domain} devices over several nodes: "
            f"computedomain.yaml first, or the pods wait for their claim."
        )
    if launch.last_node != launch.per_node:
        out.append(f"The last pod uses {launch.last_node} of its {launch.per_node} devices.")
    if launch.chip == "tpu":
        out.append(
            "The node pool is one slice of this topology; a lost host restarts the whole slice."
            if tpu_slice(launch)
            else f"No slice has {launch.devices} chips: use several slices, or another number."
        )
    return out
