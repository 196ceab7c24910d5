"""Environment variables for this fabric and chip, each with the reason it is set, and those that
only the site can fill in.

Defaults of the libraries that already suit are left alone: a variable that restates one is a thing
to debug later.
Sources: NCCL user guide (environment variables), PyTorch notes on the CUDA allocator and the flight
recorder, AMD's MI300X tuning guide,
libfabric's EFA provider notes, MaxText's flag sets.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import catalogue
from ..catalogue.families import family


class Var(NamedTuple):
    """One variable: name, value, why. A value that starts with $ is left for the shell to
    expand."""

    name: str
    value: str
    why: str


TPU_FLAGS = (
    (
        "--xla_tpu_enable_async_collective_fusion=true",
        "a collective is split and runs beside the matrix products around it",
    ),
    (
        "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true",
        "the same for the gathers of sharded weights",
    ),
    (
        "--xla_tpu_enable_async_collective_fusion_multiple_steps=true",
        "one collective may hide under several products",
    ),
    (
        "--xla_tpu_overlap_compute_collective_tc=true",
        "collectives may share the tensor core's time",
    ),
    ("--xla_enable_async_all_gather=true", "gathers are started early and waited for late"),
)
TPU_LARGE = (
    "--xla_tpu_scoped_vmem_limit_kib=98304",
    "room in on-chip memory for larger product tiles, as MaxText sets it on this chip",
)
GPU_FLAGS = (
    ("--xla_gpu_enable_latency_hiding_scheduler=true", "collectives are scheduled beside compute"),
    (
        "--xla_gpu_all_reduce_combine_threshold_bytes=134217728",
        (
            "gradients go in pieces of 128 MB: large enough for the network, small enough "
            "to start early"
        ),
    ),
    ("--xla_gpu_all_gather_combine_threshold_bytes=134217728", "gathers of weights likewise"),
    ("--xla_gpu_reduce_scatter_combine_threshold_bytes=67108864", "reduce-scatters likewise"),
)


def environment(launch) -> tuple[Var, ...]:
    """All variables of a kit: threads, allocator, collectives of the chip, the fabric, then what
    the framework itself asks for."""
    own = list(launch.framework.environment(launch))
    if launch.framework.runtime == "jax":
        return tuple(_jax(launch) + own)
    out = [
        Var(
            "OMP_NUM_THREADS",
            "8",
            f"{launch.per_node} processes share a host: without it each would take every core",
        )
    ]
    if launch.chip in ("nvidia", "amd"):
        out += [
            Var(
                "PYTORCH_ALLOC_CONF",
                "expandable_segments:True",
                "segments grow in place of new ones: less fragmentation at "
                f"{launch.memory['total'] / launch.memory['capacity']:.0%} of the memory",
            ),
            Var(
                "NCCL_DEBUG",
                "WARN",
                "INFO for the first start only, to see which network and which rings are used",
            ),
        ]
    if launch.devices > 1:
        out += [
            Var(
                "TORCH_FR_BUFFER_SIZE",
                "20000",
                "flight recorder: the last 20,000 collectives of every rank",
            ),
            Var(
                "TORCH_NCCL_DUMP_ON_TIMEOUT",
                "1",
                "on a time-out every rank writes its flight recorder before it ends",
            ),
            Var(
                "TORCH_FR_DUMP_TEMP_FILE",
                "$RUN_DIR/flight-recorder-",
                "where it is written; the rank is appended",
            ),
        ]
    if launch.chip == "nvidia":
        out += _nvidia(launch)
    if launch.chip == "amd":
        out += [
            Var(
                "HSA_NO_SCRATCH_RECLAIM",
                "1",
                (
                    "ROCm otherwise gives scratch memory back between kernels and takes it "
                    "again in every step"
                ),
            )
        ]
        out += (
            [
                Var(
                    "NCCL_MIN_NCHANNELS",
                    "112",
                    "RCCL needs the channels to fill all Infinity Fabric links of a node of eight",
                )
            ]
            if launch.per_node == 8
            else []
        )
    out += _fabric(launch)
    out += [
        Var(
            "WANDB_RUN_ID",
            launch.slug,
            "a restart goes on in the same run of the tracker, where one is used",
        ),
        Var("WANDB_RESUME", "allow", "and starts a new one where there is none yet"),
    ]
    return tuple(out + own)


def _nvidia(launch):
    out, k = [], launch.cluster
    share = launch.memory["total"] / launch.memory["capacity"]
    if family(k.accelerator.family).nvls and k.scale_up_domain >= 4 and share > 0.85:
        out.append(
            Var(
                "NCCL_NVLS_ENABLE",
                "0",
                (
                    f"reduction in the NVLink switches keeps buffers in device memory, and "
                    f"the plan leaves {1 - share:.0%} of it; take this line out where it "
                    f"runs with room"
                ),
            )
        )
    if k.scale_up_domain > k.devices_per_node:
        out.append(
            Var(
                "NCCL_MNNVL_ENABLE",
                "1",
                (
                    f"NVLink joins {k.scale_up_domain} devices over several nodes: an error "
                    f"where its IMEX service is not up is better than a run that falls back "
                    f"to the network unseen"
                ),
            )
        )
    if k.in_network_reduction and launch.nodes > 1:
        out.append(
            Var(
                "NCCL_COLLNET_ENABLE",
                "1",
                (
                    "the switches of this network reduce (SHARP); it needs the SHARP plugin "
                    "on the library path and a running aggregation manager"
                ),
            )
        )
    return out


_CLOUD_NET = {"tcpx": "GPUDirectTCPX_v7", "tcpxo": "FasTrak"}  # value of NCCL_NET by transport


def settled(fabric) -> bool:
    """Whether `_fabric` knows what a network of this kind needs."""
    return fabric.transport in ("verbs", "srd", "tcp", "cxi", *_CLOUD_NET)


def _fabric(launch):
    """Between nodes: what the network of the design needs."""
    if launch.nodes == 1 or launch.chip not in ("nvidia", "amd"):
        return []
    k = launch.cluster
    fabric = catalogue.fabric(k.scale_out)
    patient = Var(
        "NCCL_IB_TIMEOUT",
        "22",
        (
            "4.096 µs x 2^22 = 17 s a try, seven tries: a flapping link heals before the "
            "run is given up"
        ),
    )
    if fabric.technology == "infiniband":
        rails = (
            [
                Var(
                    "NCCL_CROSS_NIC",
                    "0",
                    (
                        f"{k.nics_per_node} NICs for {k.devices_per_node} devices: each ring "
                        f"stays on its own rail and leaf switch"
                    ),
                )
            ]
            if k.nics_per_node >= k.devices_per_node
            else []
        )
        return [patient, *rails]
    if fabric.technology == "efa":
        return [
            Var("FI_PROVIDER", "efa", "libfabric over the cloud's adapter, not over TCP"),
            Var(
                "FI_EFA_USE_HUGE_PAGE",
                "0",
                "data loaders that fork run out of huge pages otherwise",
            ),
        ]
    if fabric.provider == "GCP" and fabric.transport == "verbs":
        return [
            Var(
                "NCCL_NET",
                "gIB",
                "the cloud's own transport over RoCE; source its set_nccl_env.sh before this file",
            )
        ]
    if fabric.transport == "tcp":
        return [
            Var(
                "NCCL_IB_DISABLE",
                "1",
                "no verbs on this network: sockets at once, not after a search",
            ),
            Var("NCCL_SOCKET_NTHREADS", "4", "one thread does not fill a fast Ethernet port"),
            Var("NCCL_NSOCKS_PERTHREAD", "4", "nor does one connection"),
        ]
    if fabric.transport in _CLOUD_NET:
        return [
            Var(
                "NCCL_NET",
                _CLOUD_NET[fabric.transport],
                "the cloud's own transport; source its nccl-env-profile.sh before this file",
            )
        ]
    if fabric.transport == "verbs":
        return [
            patient,
            Var(
                "NCCL_IB_QPS_PER_CONNECTION",
                "4",
                (
                    "Ethernet spreads by flow: four queue pairs for each pair of ranks "
                    "collide on a link less often"
                ),
            ),
        ]
    if fabric.technology == "slingshot":
        return [
            Var("FI_CXI_ATS", "0", "the adapter's address translation does not know device memory"),
            Var(
                "NCCL_NET",
                "AWS Libfabric",
                "through the OFI plugin; without it NCCL falls back to TCP",
            ),
        ]
    return []


def site(launch) -> list[tuple[str, str, str]]:
    """(variable, how to find its value, what a wrong one looks like): what no plan can know."""
    if launch.framework.runtime == "jax" and launch.chip == "tpu" or launch.nodes == 1:
        return []
    out = [
        (
            "NCCL_SOCKET_IFNAME",
            "`ip -br addr`: the host network that reaches every node, for instance `=bond0`",
            "the first collective hangs, or rendezvous works and NCCL does not",
        ),
        (
            "GLOO_SOCKET_IFNAME",
            "the same interface, without the `=`",
            "the first barrier over gloo hangs",
        ),
    ]
    fabric = catalogue.fabric(launch.cluster.scale_out)
    if fabric.transport == "verbs":
        out.append(
            (
                "NCCL_IB_HCA",
                (
                    f"`ibdev2netdev`: the {launch.cluster.nics_per_node} compute NICs, "
                    f"without those of storage, for instance `=mlx5_0,mlx5_1`"
                ),
                "half the bandwidth of nccl-tests, or a storage NIC in the ring",
            )
        )
    if fabric.transport == "verbs" and fabric.technology == "ethernet":
        out.append(
            (
                "NCCL_IB_TC",
                "the lossless traffic class, from whoever runs the switches (106 is DSCP 26)",
                "bandwidth falls under load: pauses and drops on the switch counters",
            )
        )
    if launch.framework.runtime == "jax":
        out = [row for row in out if not row[0].startswith("GLOO")]
    return out


def flags(launch) -> tuple[tuple[str, str], ...]:
    """(flag, why) of libtpu or XLA, where JAX runs the training."""
    if launch.framework.runtime != "jax":
        return ()
    if launch.chip == "tpu":
        return (*TPU_FLAGS, TPU_LARGE) if launch.cluster.accelerator.id == "tpu-v6e" else TPU_FLAGS
    return GPU_FLAGS


def _jax(launch):
    joined = " ".join(flag for flag, _ in flags(launch))
    if launch.chip == "tpu":
        return [
            Var(
                "LIBTPU_INIT_ARGS",
                joined,
                "collectives beside compute; each flag's reason is in README.md",
            )
        ]
    out = [
        Var(
            "XLA_FLAGS",
            joined,
            (
                "collectives beside compute, in pieces that suit the network; each flag's "
                "reason is in README.md"
            ),
        ),
        Var(
            "XLA_PYTHON_CLIENT_MEM_FRACTION",
            "0.92",
            "JAX takes its memory at the start: the rest is for NCCL and cuDNN",
        ),
    ]
    if launch.chip in ("nvidia", "amd"):
        out.append(Var("NCCL_DEBUG", "WARN", "INFO for the first start only"))
    return out + _fabric(launch)
