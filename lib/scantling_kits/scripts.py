"""launch.sh (what every node runs) and what a scheduler wraps around it: job.sbatch,
jobset.yaml."""

import re
from math import ceil, prod

from scantling import catalogue
from scantling.base.units import DAY_S
from scantling_site.scheduler.request import (
    BAD_START_S,
    LONGEST_JOB_S,
    early_failures,
    kill_after_s,
    restarts_allowed,
)
from scantling_site.site import HORIZON_DAYS

from .render import render


def wall_text(seconds: float) -> str:
    """D-HH:MM:SS."""
    minutes = max(1, ceil(seconds / 60))
    return f"{minutes // 1440}-{minutes // 60 % 24:02d}:{minutes % 60:02d}:00"


def scripts(launch, kit) -> dict:
    """env.sh and launch.sh, and the scheduler's own files."""
    whole_s = kit["wall_s"] or HORIZON_DAYS * DAY_S
    values = {
        "launch": launch,
        "environment": kit["environment"],
        "restarts": restarts_allowed(launch.figures["mtbf_s"], whole_s),
        "grace": kill_after_s(launch.step_s, launch.endurance["checkpoint_durable_s"]),
    }
    names = ["env.sh", "launch.sh"]
    if launch.on == "slurm":
        names += ["job.sbatch"]
        run_s = 1.1 * DAY_S * (launch.figures["days_high"] or launch.figures["days"] or 0.0)
        links = ceil(run_s / LONGEST_JOB_S)
        values |= {
            "wall": wall_text(min(run_s or LONGEST_JOB_S, LONGEST_JOB_S)),
            "switches": leaves(launch),
            "links": links,
            # the ends of the wall time, and the failures
            "requeues": links + values["restarts"] if links else 1000,
            "bad_start": BAD_START_S,
            "tries": early_failures(launch.figures["mtbf_s"], whole_s),
        }
    if launch.on == "kubernetes":
        names += ["computedomain.yaml"] if launch.joined else []
        names += ["jobset.yaml", "trainingruntime.yaml", "trainjob.yaml"]
        names += ["pytorchjob.yaml"] if launch.framework.launcher != "python" else []
        values["k"] = {
            "rdma": rdma(launch),
            "slice": tpu_slice(launch),
            "cores": host_cores(launch),
            "memory": host_gib(launch),
        }
    return {name: render(f"{name}.j2", **values) for name in names}


def leaves(launch) -> int:
    """Sets of leaf switches that the nodes fill at least; 0 where one node or NVLink domains make
    the question another."""
    return (
        0
        if launch.nodes == 1 or launch.joined or launch.kin.torus
        else ceil(launch.nodes / launch.leaf_nodes)
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


def rdma(launch) -> list:
    """(resource, count) of the network's device plugin: without it pods of several nodes talk over
    TCP."""
    if not launch.networked:
        return []
    fabric = launch.network
    ports = 1 if fabric.transport == "verbs" else int(launch.cluster.nics_per_node)
    return [(fabric.pod_resource, ports)] if fabric.pod_resource else []


def tpu_slice(launch) -> tuple[str, str] | None:
    """(accelerator label, topology) of the slice with as many chips, as even as it goes; None where
    the accelerator is not sold in slices or none has that many."""
    chip = launch.cluster.accelerator
    label = chip.slice_label
    if not label:
        return None
    chips = launch.devices // launch.slices
    sides = [2] * chip.slice_axes
    if chips == 4:
        return label, "2x2" if len(sides) == 2 else "2x2x1"
    while prod(sides) < chips:
        sides.sort()
        sides[0] *= 2
    if prod(sides) != chips:
        return None
    return label, "x".join(map(str, sorted(sides)))
