"""Environment variables for this fabric and chip, each with the reason it is set, and those that
only the site can fill in.

Defaults of the libraries that already suit are left alone: a variable that restates one is a thing
to debug later.
Sources: NCCL user guide (environment variables), PyTorch notes on the CUDA allocator and the flight
recorder, AMD's MI300X tuning guide, libfabric's EFA provider notes, MaxText's flag sets.
"""

from typing import NamedTuple

from scantling.catalogue.hardware import Fabric
from scantling.catalogue.words import Sharding

from .frameworks import megatron_core as core
from .record import LaunchPlan
from .values import Var

JAX_MEMORY = 0.92  # share of the device memory that JAX takes at the start
CLOUD_PLUGINS = {"tcpx": "GPUDirectTCPX_v7", "tcpxo": "FasTrak"}  # transport -> NCCL_NET
TIGHT_FOR_NVLS = 0.85  # share of the memory above which NVLink's reduction has no room


class SiteVariable(NamedTuple):
    """A variable that no plan can know."""

    name: str
    where: str  # how to find its value
    wrong: str  # what a wrong one looks like


class Flag(NamedTuple):
    """A flag of libtpu or XLA."""

    flag: str
    why: str


def environment(launch: LaunchPlan) -> tuple[Var, ...]:
    """All variables of a kit: threads, allocator, collectives of the chip, the fabric, then what
    the framework itself asks for."""
    if launch.framework.runtime == "jax":
        return tuple(of_jax(launch))
    return (
        *of_torch(launch),
        *flight_recorder(launch),
        *of_chip(launch),
        *between_nodes(launch),
        *tracker(launch),
        *of_megatron(launch),
    )


def of_jax(launch: LaunchPlan) -> list[Var]:
    """Flags of the compiler, memory, and the network of GPUs."""
    joined = " ".join(flag.flag for flag in flags(launch))
    if launch.chip == "tpu":
        why = "collectives beside compute; each flag's reason is in README.md"
        return [Var("LIBTPU_INIT_ARGS", joined, why)]
    out = [
        Var(
            "XLA_FLAGS",
            joined,
            "collectives beside compute, in pieces that suit the network; each flag's reason is in "
            "README.md",
        ),
        Var(
            "XLA_PYTHON_CLIENT_MEM_FRACTION",
            str(JAX_MEMORY),
            "JAX takes its memory at the start: the rest is for NCCL and cuDNN",
        ),
    ]
    if launch.gpu:
        out.append(Var("NCCL_DEBUG", "WARN", "INFO for the first start only"))
    return out + between_nodes(launch)


def of_torch(launch: LaunchPlan) -> list[Var]:
    """Threads, allocator and messages of NCCL."""
    out = [
        Var(
            "OMP_NUM_THREADS",
            "8",
            f"{launch.per_node} processes share a host: without it each would take every core",
        )
    ]
    if not launch.gpu:
        return out
    allocator = "expandable_segments:True"
    if launch.framework.ordered_launch and core.graphs(launch) == "whole":
        allocator += ",graph_capture_record_stream_reuse:True"
    return [
        *out,
        Var(
            "PYTORCH_ALLOC_CONF",
            allocator,
            "segments grow in place of new ones: less fragmentation at "
            f"{launch.memory.fill:.0%} of the memory",
        ),
        Var(
            "NCCL_DEBUG",
            "WARN",
            "INFO for the first start only, to see which network and which rings are used",
        ),
    ]


def flight_recorder(launch: LaunchPlan) -> list[Var]:
    """What every rank writes at a time-out."""
    if launch.devices == 1:
        return []
    return [
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


def of_chip(launch: LaunchPlan) -> list[Var]:
    """What the devices and the links inside a node or rack need."""
    if launch.chip == "nvidia":
        return of_nvidia(launch)
    return of_amd(launch) if launch.chip == "amd" else []


def of_nvidia(launch: LaunchPlan) -> list[Var]:
    """NVLink's switches, NVLink over nodes, and reduction in the network."""
    k = launch.cluster
    fill = launch.memory.fill
    out = []
    if launch.kin.nvls and k.scale_up_domain >= 4 and fill > TIGHT_FOR_NVLS:
        out.append(
            Var(
                "NCCL_NVLS_ENABLE",
                "0",
                "reduction in the NVLink switches keeps buffers in device memory, and the plan "
                f"leaves {1 - fill:.0%} of it; take this line out where it runs with room",
            )
        )
    if k.scale_up_domain > k.devices_per_node:
        out.append(
            Var(
                "NCCL_MNNVL_ENABLE",
                "1",
                f"NVLink joins {k.scale_up_domain} devices over several nodes: an error where its "
                "IMEX service is not up is better than a run that falls back to the network unseen",
            )
        )
    if k.in_network_reduction and launch.nodes > 1:
        out.append(
            Var(
                "NCCL_COLLNET_ENABLE",
                "1",
                "the switches of this network reduce (SHARP); it needs the SHARP plugin on the "
                "library path and a running aggregation manager",
            )
        )
    return out


def of_amd(launch: LaunchPlan) -> list[Var]:
    """Scratch memory, and the links of a whole node."""
    out = [
        Var(
            "HSA_NO_SCRATCH_RECLAIM",
            "1",
            "ROCm otherwise gives scratch memory back between kernels and takes it again in every "
            "step",
        )
    ]
    if launch.per_node == 8:
        out.append(
            Var(
                "NCCL_MIN_NCHANNELS",
                "112",
                "RCCL needs the channels to fill all Infinity Fabric links of a node of eight",
            )
        )
    return out


def between_nodes(launch: LaunchPlan) -> list[Var]:
    """What the network of the design needs."""
    fabric = launch.network
    if fabric is None or not launch.gpu:
        return []
    if fabric.technology == "infiniband":
        return over_infiniband(launch)
    if fabric.technology == "efa":
        return [
            Var("FI_PROVIDER", "efa", "libfabric over the cloud's adapter, not over TCP"),
            Var(
                "FI_EFA_USE_HUGE_PAGE",
                "0",
                "data loaders that fork run out of huge pages otherwise",
            ),
        ]
    return over_ethernet(fabric)


def over_infiniband(launch: LaunchPlan) -> list[Var]:
    """Patience with flapping links, and rings that stay on their rail."""
    k = launch.cluster
    if k.nics_per_node < k.devices_per_node:
        return [patience()]
    why = (
        f"{k.nics_per_node} NICs for {k.devices_per_node} devices: each ring stays on its own rail "
        "and leaf switch"
    )
    return [patience(), Var("NCCL_CROSS_NIC", "0", why)]


def over_ethernet(fabric: Fabric) -> list[Var]:
    """The clouds' own transports, sockets, RoCE and Slingshot."""
    if fabric.provider == "GCP" and fabric.transport == "verbs":
        why = "the cloud's own transport over RoCE; source its set_nccl_env.sh before this file"
        return [Var("NCCL_NET", "gIB", why)]
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
    if fabric.transport in CLOUD_PLUGINS:
        why = "the cloud's own transport; source its nccl-env-profile.sh before this file"
        return [Var("NCCL_NET", CLOUD_PLUGINS[fabric.transport], why)]
    if fabric.transport == "verbs":
        why = (
            "Ethernet spreads by flow: four queue pairs for each pair of ranks collide on a link "
            "less often"
        )
        return [patience(), Var("NCCL_IB_QPS_PER_CONNECTION", "4", why)]
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


def patience() -> Var:
    """The time-out of a queue pair."""
    return Var(
        "NCCL_IB_TIMEOUT",
        "22",
        "4.096 µs x 2^22 = 17 s a try, seven tries: a flapping link heals before the run is given "
        "up",
    )


def tracker(launch: LaunchPlan) -> list[Var]:
    """The run's name in a tracker."""
    return [
        Var(
            "WANDB_RUN_ID",
            launch.slug,
            "a restart goes on in the same run of the tracker, where one is used",
        ),
        Var("WANDB_RESUME", "allow", "and starts a new one where there is none yet"),
    ]


def of_megatron(launch: LaunchPlan) -> list[Var]:
    """What Megatron-Core asks for: the order of kernels, captured graphs, experts over NVLink."""
    p = launch.plan
    if not launch.framework.ordered_launch:
        return []
    out = []
    sharded = p.sharding in (Sharding.ZERO2, Sharding.ZERO3)
    if launch.kin.ordered_launch and not sharded and (p.tp > 1 or p.cp > 1):
        out.append(
            Var(
                "CUDA_DEVICE_MAX_CONNECTIONS",
                "1",
                "Megatron demands it below Blackwell when tp or cp is above one: collectives are "
                "issued before the products they hide under",
            )
        )
    elif core.overlaps_exchange(launch):
        out.append(
            Var(
                "CUDA_DEVICE_MAX_CONNECTIONS",
                "32",
                "queues for the exchange and for the products of two micro-batches that run beside "
                "each other",
            )
        )
    if core.graphs(launch):
        out.append(
            Var(
                "NCCL_GRAPH_REGISTER",
                "0",
                "captured graphs beside expandable segments end in illegal accesses with it; "
                "Megatron asks for it",
            )
        )
    if core.dispatcher(launch) == "hybridep":
        out += of_hybridep(launch)
    return out


def of_hybridep(launch: LaunchPlan) -> list[Var]:
    """What HybridEP reads where NVLink joins the nodes of an expert group."""
    k = launch.cluster
    domain = max(k.accelerator.scale_up_domain_max, k.scale_up_domain)
    out = [
        Var(
            "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN",
            str(min(launch.plan.ep * launch.plan.etp, k.scale_up_domain)),
            "ranks of an expert group that one NVLink domain holds, as HybridEP counts them",
        ),
        Var("NVLINK_DOMAIN_SIZE", str(domain), "devices that NVLink joins in a rack"),
        Var("USE_MNNVL", "1", "HybridEP's buffers reach over nodes"),
    ]
    if core.graphs(launch) == "whole":
        out.append(
            Var(
                "NVTE_CUTEDSL_FUSED_GROUPED_MLP",
                "1",
                "grouped products that apply and cast the activation themselves",
            )
        )
    return out


def site(launch: LaunchPlan) -> list[SiteVariable]:
    """What no plan can know of the network."""
    fabric = launch.network
    jax = launch.framework.runtime == "jax"
    if fabric is None or (jax and launch.chip == "tpu"):
        return []
    out = [
        SiteVariable(
            "NCCL_SOCKET_IFNAME",
            "`ip -br addr`: the host network that reaches every node, for instance `=bond0`",
            "the first collective hangs, or rendezvous works and NCCL does not",
        )
    ]
    if not jax:
        out.append(
            SiteVariable(
                "GLOO_SOCKET_IFNAME",
                "the same interface, without the `=`",
                "the first barrier over gloo hangs",
            )
        )
    if fabric.transport != "verbs":
        return out
    out.append(
        SiteVariable(
            "NCCL_IB_HCA",
            f"`ibdev2netdev`: the {launch.cluster.nics_per_node} compute NICs, without those of "
            "storage, for instance `=mlx5_0,mlx5_1`",
            "half the bandwidth of nccl-tests, or a storage NIC in the ring",
        )
    )
    if fabric.technology == "ethernet":
        out.append(
            SiteVariable(
                "NCCL_IB_TC",
                "the lossless traffic class, from whoever runs the switches (106 is DSCP 26)",
                "bandwidth falls under load: pauses and drops on the switch counters",
            )
        )
    return out


def flags(launch: LaunchPlan) -> list[Flag]:
    """Flags of libtpu or XLA, where JAX runs the training."""
    if launch.framework.runtime != "jax":
        return []
    return of_libtpu(launch) if launch.chip == "tpu" else of_xla_on_gpus()


def of_libtpu(launch: LaunchPlan) -> list[Flag]:
    """Collectives beside compute on TPUs."""
    fusion = "--xla_tpu_enable_async_collective_fusion"
    out = [
        Flag(
            f"{fusion}=true", "a collective is split and runs beside the matrix products around it"
        ),
        Flag(f"{fusion}_fuse_all_gather=true", "the same for the gathers of sharded weights"),
        Flag(f"{fusion}_multiple_steps=true", "one collective may hide under several products"),
        Flag(
            "--xla_tpu_overlap_compute_collective_tc=true",
            "collectives may share the tensor core's time",
        ),
        Flag("--xla_enable_async_all_gather=true", "gathers are started early and waited for late"),
    ]
    if launch.cluster.accelerator.id == "tpu-v6e":
        out.append(
            Flag(
                "--xla_tpu_scoped_vmem_limit_kib=98304",
                "room in on-chip memory for larger product tiles, as MaxText sets it on this chip",
            )
        )
    return out


def of_xla_on_gpus() -> list[Flag]:
    """Collectives beside compute on GPUs, in pieces that suit the network."""
    return [
        Flag(
            "--xla_gpu_enable_latency_hiding_scheduler=true",
            "collectives are scheduled beside compute",
        ),
        Flag(
            f"--xla_gpu_all_reduce_combine_threshold_bytes={128 * 2**20}",
            "gradients go in pieces of 128 MB: large enough for the network, small enough to start "
            "early",
        ),
        Flag(
            f"--xla_gpu_all_gather_combine_threshold_bytes={128 * 2**20}",
            "gathers of weights likewise",
        ),
        Flag(
            f"--xla_gpu_reduce_scatter_combine_threshold_bytes={64 * 2**20}",
            "reduce-scatters likewise",
        ),
    ]
