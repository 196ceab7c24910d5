"""launch.sh (what every node runs) and what a scheduler wraps around it: job.sbatch,
jobset.yaml."""

from __future__ import annotations

import math
import re

from .. import catalogue
from ..base.units import DAY_S
from ..cluster.scheduler.request import BAD_START_S, LONGEST_JOB_S, early_failures, kill_after_s
from ..cluster.site import HORIZON_DAYS
from .render import render, rows


def wall_text(seconds: float) -> str:
    """D-HH:MM:SS."""
    minutes = max(1, math.ceil(seconds / 60))
    return f"{minutes // 1440}-{minutes // 60 % 24:02d}:{minutes % 60:02d}:00"


def scripts(launch, kit) -> dict[str, str]:
    """env.sh and launch.sh, and the scheduler's own files."""
    framework, whole_s = launch.framework, kit["wall_s"] or HORIZON_DAYS * DAY_S
    restarts = max(3, math.ceil(whole_s / max(launch.figures["mtbf_s"], 1.0) * 2))
    values = {
        "launch": launch,
        "kit": kit,
        "launcher": framework.launcher,
        "command": framework.command,
        "restarts": min(restarts, 1000),
        "stop": framework.stop,
        "grace": kill_after_s(launch.step_s, launch.endurance.get("checkpoint_durable_s") or 0.0),
        "prepare": framework.prepare,
    }
    out = {
        "env.sh": render("env.sh.j2", **values),
        "launch.sh": render("launch.sh.j2", **values),
    }
    if launch.on == "slurm":
        run_s = 1.1 * DAY_S * (launch.figures["days_high"] or launch.figures["days"] or 0.0)
        limit = min(run_s or LONGEST_JOB_S, LONGEST_JOB_S)
        links = math.ceil(run_s / LONGEST_JOB_S)
        # the ends of the wall time, and the failures
        requeues = links + values["restarts"] if links else 1000
        out["job.sbatch"] = render(
            "job.sbatch.j2",
            **values,
            wall=wall_text(limit),
            switches=leaves(launch),
            links=links,
            requeues=requeues,
            whole=framework.whole,
            bad_start=BAD_START_S,
            tries=early_failures(launch.figures["mtbf_s"], whole_s),
        )
    if launch.on == "kubernetes":
        about = {
            "plugin": PLUGIN.get(launch.chip, "nvidia.com/gpu"),
            "rdma": rdma(launch),
            "slice": tpu_slice(launch),
            "imex": launch.joined,
            "remarks": remarks(launch),
            "cores": host_cores(launch),
            "memory": host_gib(launch),
            "yours": rows("guide", "yours", launch),
            "level": "cloud.google.com/gce-topology-block"
            if launch.chip == "tpu"
            else "cloud.provider.com/topology-block",
        }
        out |= (
            {"computedomain.yaml": render("computedomain.yaml.j2", **values)}
            if launch.joined
            else {}
        )
        out["jobset.yaml"] = render(
            "jobset.yaml.j2",
            **values,
            k=about,
        )
        for part in ("trainingruntime.yaml", "trainjob.yaml"):
            out[part] = render(
                f"{part}.j2",
                **values,
                k=about,
            )
        if framework.launcher != "python":
            out["pytorchjob.yaml"] = render(
                "pytorchjob.yaml.j2",
                **values,
                k=about,
                roles=[("Master", 1)]
                + ([("Worker", launch.nodes - 1)] if launch.nodes > 1 else []),
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


def leaves(launch) -> int:
    """Sets of leaf switches that the nodes fill at least; 0 where one node or NVLink domains make
    the question another."""
    return (
        0
        if launch.nodes == 1 or launch.joined or launch.chip == "tpu"
        else math.ceil(launch.nodes / launch.leaf_nodes)
    )


def host_cores(launch) -> int:
    """Cores that a pod asks for: nine tenths of the node's, eight a device where its row names
    none."""
    known = catalogue.nodes().get(launch.cluster.node)
    found = re.search(r"(\d+)(?:c\b| vCPU| Grace)", known.cpu if known else "")
    return int(0.9 * int(found[1])) if found else 8 * launch.per_node


def host_gib(launch) -> int:
    """Host memory that a pod asks for: nine tenths of the node's [GiB]; 0 where it is not known."""
    size = launch.cluster.host_memory_bytes
    return int(0.9 * size / 2**30) if size > 0 else 0


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
    chips, sides = launch.devices // launch.slices, [2] * axes
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
    if launch.joined:
        out.append(
            f"NVLink joins {launch.cluster.scale_up_domain} devices over several nodes: "
            f"computedomain.yaml first, or the pods wait for their claim."
        )
    if launch.last_node != launch.per_node:
        out.append(f"The last pod uses {launch.last_node} of its {launch.per_node} devices.")
    if launch.chip == "tpu":
        out.append(
            f"Each node pool is one slice of this topology, {launch.slices} in all; a lost host "
            f"restarts its whole slice."
            if tpu_slice(launch)
            else f"No slice has {launch.devices} chips: use several slices, or another number."
        )
    return out
