"""Environment variables of threads, messages, the flight recorder, the links and the fabric: typed
rows, in the order in which a kit prints them. Those that makers' recipes carry beside them are in
variables.py.

Defaults of the libraries that already suit are left alone: a variable that restates one is a thing
to debug later.
"""

from scantling.base.records import Lines

from .launch_plan import LaunchPlan
from .recipe_settings import Setting, chosen
from .variables import TORCHES, of, on_gpus
from .xla_flags import XLA_FLAGS

JAX: Lines = ("maxtext",)
ALL: Lines = (*TORCHES, *JAX)
JAX_MEMORY = 0.92  # share of the device memory that JAX takes at the start
SLINGSHOT_SITES = "user guides of Isambard-AI (NCCL) and of CSCS's Alps (NCCL)"
CLOUD_PLUGINS = {"tcpx": "GPUDirectTCPX_v7", "tcpxo": "FasTrak"}  # transport -> NCCL_NET
NCCL_GUIDE = "NCCL user guide, environment variables"
RECORDER = "PyTorch, flight recorder (torch.distributed, ProcessGroupNCCL)"
XLA_WHY = (
    "collectives beside compute, in pieces that suit the network; each flag's reason is in plan.md"
)
SHARP_WHY = (
    "the switches of this network reduce (SHARP); it needs the SHARP plugin on the library path "
    "and a running aggregation manager"
)
PATIENCE_WHY = (
    "4.096 µs x 2^22 = 17 s a try, seven tries: a flapping link heals before the run is given up"
)
QUEUES_WHY = (
    "Ethernet spreads by flow: four queue pairs for each pair of ranks collide on a link less often"
)


def on_tpus(launch: LaunchPlan) -> bool:
    """TPUs."""
    return launch.chip == "tpu"


def off_tpus(launch: LaunchPlan) -> bool:
    """Anything but TPUs."""
    return launch.chip != "tpu"


def every(launch: LaunchPlan) -> bool:
    """On every plan."""
    return True


def several(launch: LaunchPlan) -> bool:
    """More than one device."""
    return launch.devices > 1


def flags_line(launch: LaunchPlan) -> str:
    """The flags of libtpu or XLA in one line."""
    return " ".join(f"--{row.name}={row.value}" for row in chosen(XLA_FLAGS, launch))


def threads_why(launch: LaunchPlan) -> str:
    """Why threads are counted."""
    return f"{launch.per_node} processes share a host: without it each would take every core"


def links_over_nodes(launch: LaunchPlan) -> bool:
    """NVLink joins devices of several nodes."""
    k = launch.cluster
    return launch.chip == "nvidia" and k.scale_up_domain > k.devices_per_node


def links_why(launch: LaunchPlan) -> str:
    """Why NVLink over nodes is demanded."""
    return (
        f"NVLink joins {launch.cluster.scale_up_domain} devices over several nodes: an error where "
        "its IMEX service is not up is better than a run that falls back to the network unseen"
    )


def switches_reduce(launch: LaunchPlan) -> bool:
    """CUDA devices on switches that reduce."""
    reduces = launch.cluster.in_network_reduction and launch.nodes > 1
    return launch.chip == "nvidia" and reduces


def technology(launch: LaunchPlan) -> str:
    """The kind of network between nodes of GPUs; "" for none."""
    fabric = launch.network
    return fabric.technology if fabric is not None and launch.gpu else ""


def on_infiniband(launch: LaunchPlan) -> bool:
    """InfiniBand."""
    return technology(launch) == "infiniband"


def on_efa(launch: LaunchPlan) -> bool:
    """The adapter of AWS."""
    return technology(launch) == "efa"


def on_rails(launch: LaunchPlan) -> bool:
    """InfiniBand with a card for every device."""
    k = launch.cluster
    return on_infiniband(launch) and k.nics_per_node >= k.devices_per_node


def rails_why(launch: LaunchPlan) -> str:
    """Why rings stay on their rail."""
    k = launch.cluster
    return (
        f"{k.nics_per_node} NICs for {k.devices_per_node} devices: each ring stays on its own rail "
        "and leaf switch"
    )


def transport(launch: LaunchPlan) -> str:
    """What Ethernet, Slingshot and their like carry; "" elsewhere and for a cloud's own RoCE."""
    fabric = launch.network
    if fabric is None or technology(launch) in ("", "infiniband", "efa"):
        return ""
    return "gib" if fabric.provider == "GCP" and fabric.transport == "verbs" else fabric.transport


def on_gib(launch: LaunchPlan) -> bool:
    """RoCE in Google's cloud."""
    return transport(launch) == "gib"


def on_sockets(launch: LaunchPlan) -> bool:
    """No verbs."""
    return transport(launch) == "tcp"


def on_plugins(launch: LaunchPlan) -> bool:
    """A cloud's own transport."""
    return transport(launch) in CLOUD_PLUGINS


def plugin(launch: LaunchPlan) -> str:
    """The plugin of a cloud's own transport."""
    return CLOUD_PLUGINS[transport(launch)]


def on_roce(launch: LaunchPlan) -> bool:
    """RoCE."""
    return transport(launch) == "verbs"


def retries(launch: LaunchPlan) -> bool:
    """Queue pairs that try again."""
    return on_infiniband(launch) or on_roce(launch)


def on_slingshot(launch: LaunchPlan) -> bool:
    """Slingshot, of no transport named above."""
    named = on_gib(launch) or on_sockets(launch) or on_plugins(launch) or on_roce(launch)
    return technology(launch) == "slingshot" and not named


def run_name(launch: LaunchPlan) -> str:
    """The run's name in a tracker."""
    return launch.slug


BASE_VARIABLES: tuple[Setting, ...] = (
    *of(
        JAX,
        on_tpus,
        "LIBTPU_INIT_ARGS",
        flags_line,
        "collectives beside compute; each flag's reason is in plan.md",
        "xla_flags.py",
    ),
    *of(JAX, off_tpus, "XLA_FLAGS", flags_line, XLA_WHY, "xla_flags.py"),
    *of(
        JAX,
        off_tpus,
        "XLA_PYTHON_CLIENT_MEM_FRACTION",
        str(JAX_MEMORY),
        "JAX takes its memory at the start: the rest is for NCCL and cuDNN",
        "JAX documentation, GPU memory allocation",
    ),
    *of(TORCHES, every, "OMP_NUM_THREADS", "8", threads_why, "PyTorch documentation, torchrun"),
    *of(
        TORCHES,
        on_gpus,
        "NCCL_DEBUG",
        "WARN",
        "INFO for the first start only, to see which network and which rings are used",
        NCCL_GUIDE,
    ),
    *of(JAX, on_gpus, "NCCL_DEBUG", "WARN", "INFO for the first start only", NCCL_GUIDE),
    *of(
        TORCHES,
        several,
        "TORCH_FR_BUFFER_SIZE",
        "20000",
        "flight recorder: the last 20,000 collectives of every rank",
        RECORDER,
    ),
    *of(
        TORCHES,
        several,
        "TORCH_NCCL_DUMP_ON_TIMEOUT",
        "1",
        "on a time-out every rank writes its flight recorder before it ends",
        RECORDER,
    ),
    *of(
        TORCHES,
        several,
        "TORCH_FR_DUMP_TEMP_FILE",
        "$RUN_DIR/flight-recorder-",
        "where it is written; the rank is appended",
        RECORDER,
    ),
    *of(TORCHES, links_over_nodes, "NCCL_MNNVL_ENABLE", "1", links_why, NCCL_GUIDE),
    *of(TORCHES, switches_reduce, "NCCL_COLLNET_ENABLE", "1", SHARP_WHY, NCCL_GUIDE),
    *of(ALL, retries, "NCCL_IB_TIMEOUT", "22", PATIENCE_WHY, NCCL_GUIDE),
    *of(ALL, on_rails, "NCCL_CROSS_NIC", "0", rails_why, NCCL_GUIDE),
    *of(
        ALL,
        on_efa,
        "FI_PROVIDER",
        "efa",
        "libfabric over the cloud's adapter, not over TCP",
        "libfabric, EFA provider",
    ),
    *of(
        ALL,
        on_efa,
        "FI_EFA_USE_HUGE_PAGE",
        "0",
        "data loaders that fork run out of huge pages otherwise",
        "libfabric, EFA provider; aws-ofi-nccl",
    ),
    *of(
        ALL,
        on_gib,
        "NCCL_NET",
        "gIB",
        "the cloud's own transport over RoCE; source its set_nccl_env.sh before this file",
        "Google Cloud, NCCL/gIB",
    ),
    *of(
        ALL,
        on_sockets,
        "NCCL_IB_DISABLE",
        "1",
        "no verbs on this network: sockets at once, not after a search",
        NCCL_GUIDE,
    ),
    *of(
        ALL,
        on_sockets,
        "NCCL_SOCKET_NTHREADS",
        "4",
        "one thread does not fill a fast Ethernet port",
        NCCL_GUIDE,
    ),
    *of(ALL, on_sockets, "NCCL_NSOCKS_PERTHREAD", "4", "nor does one connection", NCCL_GUIDE),
    *of(
        ALL,
        on_plugins,
        "NCCL_NET",
        plugin,
        "the cloud's own transport; source its nccl-env-profile.sh before this file",
        "Google Cloud, GPUDirect-TCPX and TCPXO",
    ),
    *of(ALL, on_roce, "NCCL_IB_QPS_PER_CONNECTION", "4", QUEUES_WHY, NCCL_GUIDE),
    *of(
        ALL,
        on_slingshot,
        "FI_CXI_ATS",
        "0",
        "the adapter's address translation does not know device memory",
        "libfabric, CXI provider",
    ),
    *of(
        ALL,
        on_slingshot,
        "NCCL_NET",
        "AWS Libfabric",
        "through the OFI plugin; without it NCCL falls back to TCP",
        "aws-ofi-nccl",
    ),
    *of(
        ALL,
        on_slingshot,
        "FI_MR_CACHE_MONITOR",
        "userfaultfd",
        "memory that is given back leaves the adapter's cache of registrations without the hooks "
        "that hang beside NCCL",
        SLINGSHOT_SITES,
    ),
    *of(
        ALL,
        on_slingshot,
        "FI_CXI_DISABLE_HOST_REGISTER",
        "1",
        "the adapter's own buffers are not registered with the device, which may wait for a kernel "
        "that waits for them",
        SLINGSHOT_SITES,
    ),
    *of(
        ALL,
        on_slingshot,
        "FI_CXI_DEFAULT_CQ_SIZE",
        "131072",
        "room for the completions of many ranks",
        SLINGSHOT_SITES,
    ),
    *of(
        ALL,
        on_slingshot,
        "NCCL_CROSS_NIC",
        "1",
        "rings may leave by one adapter and come in by another: they are on one network",
        SLINGSHOT_SITES,
    ),
    *of(
        TORCHES,
        every,
        "WANDB_RUN_ID",
        run_name,
        "a restart goes on in the same run of the tracker, where one is used",
        "Weights & Biases documentation, resuming runs",
    ),
    *of(
        TORCHES,
        every,
        "WANDB_RESUME",
        "allow",
        "and starts a new one where there is none yet",
        "Weights & Biases documentation, resuming runs",
    ),
)
