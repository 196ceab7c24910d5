"""Environment variables for this fabric and chip, each with the reason it is set."""
from __future__ import annotations

from typing import NamedTuple


class Var(NamedTuple):
    """One variable: name, value, why. A value that starts with $ is left for the shell to expand."""

    name: str
    value: str
    why: str


def environment(launch, module) -> tuple[Var, ...]:
    """All variables of a kit: threads, allocator, collectives of the chip, the fabric, then what the framework itself asks for."""
    k = launch.cluster
    out = [Var("OMP_NUM_THREADS", "8", "one process a device: without it each would take every core of the node")]
    if launch.to == "maxtext":
        return tuple(out + _jax(launch) + list(getattr(module, "environment", lambda _: ())(launch)))
    out.append(Var("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", "a failed collective ends the process, so that the launcher can restart it"))
    if launch.chip in ("nvidia", "amd"):
        out += [Var("PYTORCH_ALLOC_CONF", "expandable_segments:True", "less fragmentation when activations change size; matters at "
                    f"{launch.memory['total'] / launch.memory['capacity']:.0%} of the memory"),
                Var("NCCL_DEBUG", "WARN", "INFO at the first start, to see which network and which rings are used"),
                Var("TORCH_FR_BUFFER_SIZE", "20000", "flight recorder: the last collectives of every rank"),
                Var("TORCH_NCCL_DUMP_ON_TIMEOUT", "1", "on a time-out every rank writes its flight recorder"),
                Var("TORCH_FR_DUMP_TEMP_FILE", "$RUN_DIR/flight-recorder-", "where it is written")]
    if launch.chip == "nvidia":
        out += _nvidia(launch)
    if launch.chip == "amd":
        out += [Var("HSA_NO_SCRATCH_RECLAIM", "1", "ROCm otherwise gives scratch back between kernels, which costs time in every step"),
                Var("NCCL_MIN_NCHANNELS", "112", "RCCL needs the channels to fill all Infinity Fabric links of an MI300-class node")]
    out += _fabric(k.scale_out, launch)
    return tuple(out + list(getattr(module, "environment", lambda _: ())(launch)))


def _nvidia(launch):
    out = []
    family = launch.cluster.accelerator.family
    if family in ("hopper", "blackwell", "rubin") and launch.cluster.scale_up_domain >= 4:
        out.append(Var("NCCL_NVLS_ENABLE", "1", "NVLink switches add up all-reduces of the scale-up domain; takes a little device memory: 0 where memory is short"))
    if launch.cluster.scale_up_domain > launch.cluster.devices_per_node:
        out.append(Var("NCCL_MNNVL_ENABLE", "1", f"NVLink reaches over nodes here: {launch.cluster.scale_up_domain} devices in one domain"))
    if launch.cluster.in_network_reduction:
        out.append(Var("NCCL_COLLNET_ENABLE", "1", "the switches of this network can reduce (SHARP)"))
    return out


def _fabric(name, launch):
    if launch.nodes == 1 or launch.chip not in ("nvidia", "amd"):
        return []
    name = str(name).lower()
    if name.startswith("ib"):
        return [Var("NCCL_IB_TIMEOUT", "22", "4 s a retry: a flapping link heals before the run is given up"),
                Var("NCCL_IB_QPS_PER_CONNECTION", "4", "more paths through the fat tree for each pair, against hash collisions"),
                Var("NCCL_CROSS_NIC", "0", "rails: each device keeps to its own NIC and leaf")]
    if "roce" in name or "ethernet" in name or "spectrum" in name:
        return [Var("NCCL_IB_GID_INDEX", "3", "RoCE v2 over IPv4 on most hosts (show_gids)"),
                Var("NCCL_IB_TC", "106", "the lossless traffic class of common RoCE set-ups; ask who runs the switches"),
                Var("NCCL_IB_QPS_PER_CONNECTION", "4", "Ethernet balances by flow: more queue pairs, fewer collisions"),
                Var("NCCL_IB_TIMEOUT", "22", "4 s a retry: a flapping link heals before the run is given up")]
    if "efa" in name:
        return [Var("FI_PROVIDER", "efa", "libfabric on this cloud's adapter"), Var("FI_EFA_USE_HUGE_PAGE", "0", "forked data loaders run out of huge pages")]
    return []


def _jax(launch):
    if launch.chip == "tpu":
        return [Var("LIBTPU_INIT_ARGS", "--xla_tpu_enable_async_collective_fusion=true --xla_tpu_enable_async_collective_fusion_fuse_all_gather=true "
                    "--xla_tpu_overlap_compute_collective_tc=true --xla_enable_async_all_gather=true", "gathers of weights run beside matrix products")]
    return [Var("XLA_FLAGS", "--xla_gpu_enable_latency_hiding_scheduler=true --xla_gpu_all_reduce_combine_threshold_bytes=134217728 "
                "--xla_gpu_all_gather_combine_threshold_bytes=134217728 --xla_gpu_reduce_scatter_combine_threshold_bytes=67108864",
                "collectives run beside compute, in pieces large enough for the network"),
            Var("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.92", "the rest is for NCCL and cuDNN"), Var("NCCL_DEBUG", "WARN", "INFO at the first start")]
