"""Environment variables for this fabric and chip, each with the reason it is set, and those that
only the site can fill in.

Defaults of the libraries that already suit are left alone: a variable that restates one is a thing
to debug later.
Sources: NCCL user guide (environment variables), PyTorch notes on the CUDA allocator and the flight
recorder, AMD's MI300X tuning guide, libfabric's EFA provider notes, MaxText's flag sets.
"""

from typing import NamedTuple

from scantling.catalogue.hardware import Fabric

from .record import LaunchPlan
from .settings import chosen
from .values import Var
from .variables import VARIABLES
from .xla_flags import XLA_FLAGS

JAX_MEMORY = 0.92  # share of the device memory that JAX takes at the start
CLOUD_PLUGINS = {"tcpx": "GPUDirectTCPX_v7", "tcpxo": "FasTrak"}  # transport -> NCCL_NET


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
    rows = [Var(v.name, str(v.value), v.why) for v in chosen(VARIABLES, launch)]
    if launch.framework.runtime == "jax":
        return (*of_jax(launch), *rows)
    return (
        *of_torch(launch),
        *flight_recorder(launch),
        *of_chip(launch),
        *between_nodes(launch),
        *tracker(launch),
        *rows,
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
    return [
        *out,
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
    return of_nvidia(launch) if launch.chip == "nvidia" else []


def of_nvidia(launch: LaunchPlan) -> list[Var]:
    """NVLink's switches, NVLink over nodes, and reduction in the network."""
    k = launch.cluster
    out = []
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
    return [Flag(f"--{row.name}={row.value}", row.why) for row in chosen(XLA_FLAGS, launch)]
