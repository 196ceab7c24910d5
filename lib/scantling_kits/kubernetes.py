"""What the pods of a run ask for, and what a manifest leaves to its reader."""

import re
from math import prod
from typing import NamedTuple

from scantling import catalogue
from scantling.base.records import record

from .launch_plan import LaunchPlan

USED = 0.9  # share of a node's cores and memory that a pod asks for
CORES = r"(\d+)(?:c\b| vCPU| Grace)"  # in the words of a node's row
SELECTORS = {  # labels that the vendors' operators give nodes
    "nvidia": "nvidia.com/gpu.present",
    "amd": "feature.node.kubernetes.io/amd-gpu",
}
ALIVE_PERIOD_S, ALIVE_LIMIT_S, ALIVE_FAILURES = 60, 30, 3  # of a probe: judgement
GRACE_S = 60  # beside what the scheduler gives the ranks to save


@record
class Resource:
    """A resource of a device plugin."""

    name: str
    count: int


class TpuSlice(NamedTuple):
    """A slice of TPUs in the words of GKE."""

    accelerator: str
    topology: str


@record
class Pod:
    """What one pod asks for and how it is started."""

    device_plugin: str
    devices: int
    cores: str  # of the host
    memory_gib: int  # 0 where not known
    shm_gib: int
    rdma: Resource | None
    slice: TpuSlice | None
    joined: bool  # NVLink joins the pods
    pins_memory: bool  # RDMA
    topology: str  # annotations: where Kueue puts the pods
    run_dir: str
    kit: str  # config map
    channel: str  # claim of NVLink between pods
    settings: str  # config map of DATA and whatever else the run reads
    selector: str  # label of the nodes with such devices; "": none is asked for
    grace_s: int  # that the ranks have to save
    termination_s: int  # before the pod is killed
    stop_file: bool  # a file in RUN_DIR ends the run after a checkpoint
    alive: str  # a command that fails where devices no longer answer; "": none is asked
    alive_period_s: int
    alive_limit_s: int
    alive_failures: int  # in a row, before the pod is started again


def pod(launch: LaunchPlan, grace_s: int) -> Pod:
    """The pod of a launch plan; `grace_s`: seconds that the ranks have to save."""
    memory = host_gib(launch)
    return Pod(
        device_plugin=launch.kin.device_plugin,
        devices=launch.per_node,
        cores=str(host_cores(launch)),
        memory_gib=memory,
        shm_gib=memory // 8,
        rdma=rdma(launch),
        slice=tpu_slice(launch),
        joined=launch.joined,
        pins_memory=launch.nodes > 1 and launch.gpu,
        topology=topology(launch),
        run_dir=f"/runs/{launch.slug}",
        kit=f"{launch.slug}-kit",
        channel=f"{launch.slug}-channel",
        settings=f"{launch.slug}-settings",
        selector=SELECTORS.get(launch.chip, ""),
        grace_s=grace_s,
        termination_s=grace_s + GRACE_S,
        stop_file=launch.framework.stop == "file",
        alive=alive(launch),
        alive_period_s=ALIVE_PERIOD_S,
        alive_limit_s=ALIVE_LIMIT_S,
        alive_failures=ALIVE_FAILURES,
    )


def alive(launch: LaunchPlan) -> str:
    """A command that fails where the node's devices no longer answer: one that fell off its bus
    ends the pod before the collectives' own limit does. An image without the vendor's command is
    not asked."""
    if launch.chip == "nvidia":
        count = "nvidia-smi -L | grep -c '^GPU'"
        least = min(launch.last_node, launch.per_node)
        return f'! command -v nvidia-smi >/dev/null || [ "$({count})" -ge {least} ]'
    if launch.chip == "amd":
        return "! command -v rocm-smi >/dev/null || rocm-smi >/dev/null"
    return ""


def topology(launch: LaunchPlan) -> str:
    """Annotations by which Kueue puts the pods close together, and the nodes that NVLink joins into
    one domain."""
    block = "cloud.provider.com/topology-block"
    if launch.chip == "tpu":
        block = "cloud.google.com/gce-topology-block"
    out = f'kueue.x-k8s.io/podset-preferred-topology: "{block}"'
    if launch.segment_nodes > 1:
        out += (
            ', kueue.x-k8s.io/podset-slice-required-topology: "cloud.provider.com/topology-rack"'
            f', kueue.x-k8s.io/podset-slice-size: "{launch.segment_nodes}"'
        )
    return out


def host_cores(launch: LaunchPlan) -> int:
    """Cores that a pod asks for: nine tenths of the node's, eight a device where its row names
    none."""
    node = catalogue.nodes().get(launch.cluster.node)
    match = re.search(CORES, node.cpu if node else "")
    return int(USED * int(match[1])) if match else 8 * launch.per_node


def host_gib(launch: LaunchPlan) -> int:
    """Host memory that a pod asks for: nine tenths of the node's [GiB]; 0 where it is not known."""
    size = launch.cluster.host_memory_bytes
    return int(USED * size / 2**30) if size > 0 else 0


def rdma(launch: LaunchPlan) -> Resource | None:
    """The network's device plugin: without it pods of several nodes talk over TCP."""
    fabric = launch.network
    if fabric is None or not launch.networked or not fabric.pod_resource:
        return None
    ports = 1 if fabric.transport == "verbs" else int(launch.cluster.nics_per_node)
    return Resource(name=fabric.pod_resource, count=ports)


def tpu_slice(launch: LaunchPlan) -> TpuSlice | None:
    """The slice with as many chips, as even as it goes; None where the accelerator is not sold in
    slices or none has that many."""
    chip = launch.cluster.accelerator
    if not chip.slice_label:
        return None
    chips = launch.devices // launch.slices
    sides = [2] * chip.slice_axes
    if chips == 4:
        return TpuSlice(chip.slice_label, "2x2" if len(sides) == 2 else "2x2x1")
    while prod(sides) < chips:
        sides.sort()
        sides[0] *= 2
    if prod(sides) != chips:
        return None
    return TpuSlice(chip.slice_label, "x".join(map(str, sorted(sides))))


def remarks(launch: LaunchPlan) -> list[str]:
    """What the reader of a manifest has to look after."""
    out = []
    plugin = rdma(launch)
    if plugin:
        out.append(
            f"{plugin.name}: as the network's device plugin of your cluster names it "
            "(RDMA_RESOURCE); without it NCCL falls back to TCP."
        )
    if launch.joined:
        out.append(
            f"NVLink joins {launch.cluster.scale_up_domain} devices over several nodes: "
            "computedomain.yaml first, or the pods wait for their claim."
        )
    if launch.last_node != launch.per_node:
        out.append(f"The last pod uses {launch.last_node} of its {launch.per_node} devices.")
    if tpu_slice(launch):
        out.append(
            f"Each node pool is one slice of this topology, {launch.slices} in all; a lost host "
            "restarts its whole slice."
        )
    elif launch.chip == "tpu":
        out.append(f"No slice has {launch.devices} chips: use several slices, or another number.")
    return out
