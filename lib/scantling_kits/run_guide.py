"""What a kit tells its reader of the run: before it, its data, how to watch it, its network, its
sites, and what a manifest leaves to the reader. Lists are lines of README.md."""

from typing import NamedTuple

from scantling.base import show
from scantling.base.show import gigabytes, span
from scantling.catalogue.words import Sharding
from scantling_site.rollout.burn_in import all_reduce_rates

from .launch_plan import LaunchPlan
from .quote import md
from .values import SiteExchange

TOKEN_BYTES = 4  # of a token id
WORTH_COMPRESSING = 0.1  # share of the step for which data-parallel traffic is exposed
KNOWN_TRANSPORTS = ("verbs", "srd", "tcp", "cxi", "tcpx", "tcpxo")  # env.py has words for them


class BusRate(NamedTuple):
    """What nccl-tests should show before the run."""

    over: str  # which devices, in words
    bytes_per_s: float  # bus bandwidth


def all_reduce(launch: LaunchPlan, devices: int) -> float:
    """Bus bandwidth of an all-reduce of 16 GB over so many devices, at most those of a site, that
    nccl-tests should show [bytes/s]."""
    k = launch.cluster
    rates = all_reduce_rates(k, min(devices, k.by_site[0]), k.scale_up_domain)
    return float(rates[-1]["busbw_bytes_per_s"])


def bus_rates(launch: LaunchPlan) -> list[BusRate]:
    """What nccl-tests should show: over fast links that leave the node, and over all nodes."""
    k = launch.cluster
    if not launch.networked:
        return []
    site = " of a site" if launch.sync else ""
    out = []
    if k.scale_up_domain > k.devices_per_node:
        joined = min(k.scale_up_domain, launch.devices)
        over = f"the {joined} devices that fast links join"
        out.append(BusRate(over, all_reduce(launch, joined)))
    over = f"all {launch.nodes // k.sites} nodes{site}"
    return [*out, BusRate(over, all_reduce(launch, launch.devices))]


def first(launch: LaunchPlan) -> list[str]:
    """Before the run: what to install, to set, to measure and to rehearse."""
    return [*to_install(launch), *to_measure(launch), *to_rehearse(launch)]


def install_place(launch: LaunchPlan, command: str) -> str:
    """Where a shell line that installs or sets something is run."""
    if launch.on == "kubernetes":
        own = command.startswith("export ")  # apply.sh takes it to the pods
        return "In the shell that calls apply.sh: " if own else "In the image: "
    if launch.on == "slurm":
        return "On a file system that every node sees, in the shell that submits: "
    return "On every node: " if launch.nodes > 1 else ""


def to_install(launch: LaunchPlan) -> list[str]:
    """Packages, the weights to start from, and the folder of the run."""
    framework = launch.framework
    out = []
    for command, remark, _ in framework.installs(launch.chip):
        where = install_place(launch, command)
        out.append(f"{where}`{command}`" + (f" ({remark})" if remark else ""))
    if launch.chip == "amd":
        builds = " is the ROCm build"
        if framework.transformer_engine:
            builds = " and Transformer Engine are AMD's builds"
        name = "jax" if framework.runtime == "jax" else "torch"
        out.append(f"{name}{builds}, from AMD's image or index; the plain packages are for CUDA.")
    if framework.without_transformer_engine and not launch.kin.transformer_engine:
        out.append(framework.without_transformer_engine)
    if launch.routes_at_random:
        out.append(
            f"{framework.file} sends tokens to experts at random, evenly "
            f"({framework.forces_even_routing}: job.routing is forced): that measures a step and "
            "trains no router. To train, leave the line out, and expect longer steps."
        )
    if framework.has_trainer:
        out.append(
            f"To fine-tune: INIT={framework.saves.begin}, and a learning rate of your own (LR); "
            "without it weights start from the seed."
        )
    elif launch.begins and framework.saves.begin:
        out.append(
            f"INIT={framework.saves.begin}: the weights that this run begins with, where its "
            "RUN_DIR has no checkpoint; without it they start from the seed."
        )
        if not launch.model.position_rows:
            out.append(
                "Where the config.json of those weights has `rope_scaling` (Llama 3.1's does), the "
                "framework's own scaling of rotary positions has to be set too: this kit sets "
                "their base alone."
            )
    if launch.nodes > 1:
        out.append("This folder and RUN_DIR on a file system that every node sees.")
    else:
        out.append("RUN_DIR on a disk with room for the checkpoints.")
    return out


def to_measure(launch: LaunchPlan) -> list[str]:
    """What the network should show."""
    tests = "nccl-tests" if launch.chip == "nvidia" else "rccl-tests"
    out = [
        f"{tests}' all_reduce_perf of 16 GB over {over}: about {show.bytes_per_s(rate)} of bus "
        "bandwidth is what this plan counts on."
        for over, rate in bus_rates(launch)
    ]
    fabric = launch.network
    if launch.networked and fabric and fabric.transport not in KNOWN_TRANSPORTS:
        out.append(
            f"{fabric.name}: this kit sets nothing for it; take the collective library's plugin "
            "and variables from whoever runs the network."
        )
    return out


def to_rehearse(launch: LaunchPlan) -> list[str]:
    """A short run on made-up tokens."""
    return [
        "A rehearsal on made-up tokens (MOCK_DATA=1), in a RUN_DIR of its own that is deleted "
        "afterwards (the run would go on from its checkpoint): 100 steps "
        f"({launch.framework.rehearse}); compare seconds a step and peak memory with the budget.",
        "Kill one process in it and watch it come back with the same loss (checkpoint.md).",
    ]


def data(launch: LaunchPlan) -> list[str]:
    """What the run reads, how fast, and where it stands."""
    job = launch.phase
    framework = launch.framework
    tokens_per_s = job.global_batch * job.seq_len / launch.step_s
    out = [
        f"DATA: {framework.data}.",
        f"{tokens_per_s:,.0f} tokens/s, {show.bytes_per_s(tokens_per_s * TOKEN_BYTES)} as 4-byte "
        "token ids: little beside checkpoints, but it must never stall; keep two batches ready a "
        "rank.",
    ]
    if framework.reads_by_position:
        out.append(
            "Tokenise and shuffle once, ahead of the run; it reads by position, so that step N "
            "sees the same sequences after a resume."
        )
    if job.tokens:
        out.append(data_store(launch, job.tokens))
    return [*out, framework.mock_data]


def data_store(launch: LaunchPlan, tokens: float) -> str:
    """Where so many token ids stand."""
    nvme = launch.cluster.nvme_bytes
    size = tokens * TOKEN_BYTES
    store = md(launch.cluster.storage or "the shared file system")
    disk = f"({show.size(nvme)})"
    cache = f": the NVMe of a node {disk} holds a cache of it."
    if nvme > size:
        cache = f" or on every node's NVMe {disk}."
    return f"{tokens:,.3g} tokens are {show.size(size)} of token ids; put them on {store}{cache}"


def watch(launch: LaunchPlan) -> list[str]:
    """Logs, the figures to expect, profiles, and the run's name in a tracker."""
    f = launch.figures
    framework = launch.framework
    torch = framework.runtime == "torch"
    out = [
        f"{framework.log}.",
        f"Expect {f.tokens_per_s_per_device:,.0f} tokens/s and "
        f"{f.model_tflops_per_device:,.0f} TFLOP/s a device, MFU {f.mfu:.1%} (attention counted "
        f"whole, not halved for the causal mask); below {f.mfu_low:.1%}, the low end of the band, "
        "look for the cause before going on.",
    ]
    if framework.has_trainer:
        out += trainer_logs(launch)
    out.append(f"Profiler: {framework.profile}.")
    if launch.devices > 1 and torch:
        out.append(
            "Flight recorder: after a time-out, `RUN_DIR/flight-recorder-N`; `torchfrtrace RUN_DIR "
            "--prefix flight-recorder-` names the collective and the ranks that did not come."
        )
    set_already = " (WANDB_RUN_ID is set)" if torch else ""
    out.append(
        "Run id, for a tracker that goes on in the same curve after a restart: "
        f"`{launch.slug}`{set_already}."
    )
    return out


def trainer_logs(launch: LaunchPlan) -> list[str]:
    """What the kit's own trainers write beside their log, and how they run blocks."""
    blocks = (
        "Every block is compiled (torch.compile, which wants a C compiler on every node), as the "
        "step counts on: with COMPILE=0 expect fewer tokens/s and more memory for activations."
    )
    if launch.does.eager_tp > 0:
        blocks = (
            "Blocks run as PyTorch dispatches them, as the step counts: COMPILE=1 compiles each "
            "(torch.compile)."
        )
    return [
        "`heartbeat-N`: every rank's last step, time, its own seconds and MFU before it waited for "
        "the others; the one that lags by a step is the one that hangs.",
        "`state-N.json`: bytes of parameters, gradients and optimizer states of every rank, beside "
        "what the plan counts.",
        blocks,
    ]


def network(launch: LaunchPlan) -> list[str]:
    """Traffic of a step by axis, what is exposed most first."""
    rows = sorted(launch.communication, key=lambda row: row["exposed_s"], reverse=True)
    out = [
        f"{r['axis']} over {r['group']} devices, {r['tier']}: {r['what']}; "
        f"{gigabytes(r['bytes'])} a device and step, {span(r['exposed_s'])} of "
        f"{span(r['time_s'])} exposed ({r['exposed_s'] / launch.step_s:.1%} of the step)."
        for r in rows
    ]
    limited = launch.dp_exposed > WORTH_COMPRESSING and launch.dp_tier == "scale-out"
    if limited and launch.does.grad_bytes > 2:
        out.append(launch.framework.network_limit)
    return out


def sites(launch: LaunchPlan) -> list[str]:
    """Several sites: ranks, layout, traffic, interfaces, delay and failures."""
    between = launch.between
    if between is None:
        return []
    stops = "step" if between.synchronous else "exchange"
    return [
        site_ranks(launch),
        f"Layout: {launch.framework.sites(launch)}.",
        site_traffic(launch, between),
        *site_interfaces(launch),
        site_delay(between),
        f"Failures: a site that is cut off stops the others at the next {stops}; a collective is "
        f"given up after {launch.hang_s} s.",
    ]


def site_ranks(launch: LaunchPlan) -> str:
    """Which nodes stand at which site."""
    k = launch.cluster
    per_site = launch.nodes // k.sites
    ranks = ", ".join(
        f"{site * per_site} to {(site + 1) * per_site - 1} at site {site + 1}"
        for site in range(k.sites)
    )
    return (
        f"Ranks: the nodes of a site have NODE_RANKs in a row: {ranks}. Each site has a scheduler "
        "of its own, which starts `launch.sh` on its nodes; MASTER_ADDR is node 0, whose "
        "MASTER_PORT every site has to reach, and RUN_DIR is a store that every site sees, or its "
        "checkpoints are at every site before a restart."
    )


def site_traffic(launch: LaunchPlan, between: SiteExchange) -> str:
    """What leaves a site, and how long that takes."""
    often = "in every step"
    if not between.synchronous:
        often = f"once in {between.local_steps} steps"
    ring = ""
    if launch.plan.sharding == Sharding.NONE and between.synchronous:
        times = between.sites / (between.sites - 1)
        ring = (
            f"One ring over all ranks sends {times:.1f} times as much across as one after the "
            "other, inside and between, which is assessed. "
        )
    return (
        f"Traffic: {gigabytes(between.exchange_bytes)} leave a site {often}, "
        f"{span(between.exchange_s)} at {between.gbits_per_s:,.0f} Gbit/s: "
        f"{100 * between.share:.1f} % of the time. {ring}Measure it first: an nccl-tests "
        "all_reduce_perf over one node of each site."
    )


def site_interfaces(launch: LaunchPlan) -> list[str]:
    """Interfaces that are routed between the sites."""
    fabric = launch.network
    if not launch.gpu or fabric is None:
        return []
    named = "NCCL_SOCKET_IFNAME names"
    if launch.framework.runtime == "torch":
        named = "NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME name"
    return [
        f"Interfaces: {named} an interface whose addresses are routed between the sites: where "
        "node names or addresses of one site mean nothing at the other, rendezvous works and the "
        "first collective hangs. NCCL takes one network for all pairs of nodes: where "
        f"{fabric.name} is not routed from site to site (range extenders, or RoCE over a wide "
        "network), the first collective hangs, and NCCL_IB_DISABLE=1 would put the traffic inside "
        "the sites on sockets with it."
    ]


def site_delay(between: SiteExchange) -> str:
    """What is on its way between the sites at a time."""
    return (
        f"Way: {between.rtt_ms:.3g} ms there and back at this rate hold "
        f"{gigabytes(between.bytes_in_flight)} in flight: socket buffers "
        "(net.core.rmem_max, net.ipv4.tcp_rmem and tcp_wmem) times connections "
        "(NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD) have to hold as much."
    )
