"""Tools for this run, and the figures that they should show here."""

from collections.abc import Iterator

from scantling.base import show
from scantling.base.show import gigabytes, span

from .launch_plan import LaunchPlan, known
from .run_guide import WORTH_COMPRESSING

SOCKET_BYTES_PER_S = 1e9  # of a device over TCP


def tools(launch: LaunchPlan) -> list[str]:
    """Lines of README.md, a tool or a manoeuvre each."""
    return [
        *utilisation(launch),
        *memory(launch),
        *nsight(launch),
        *hanging_collectives(launch),
        *without_rdma(launch),
        *compression(launch),
        *slow_saves(launch),
        resume(launch),
        *shrink(launch),
    ]


def utilisation(launch: LaunchPlan) -> Iterator[str]:
    """The monitor of the vendor."""
    f = launch.figures
    total = launch.memory.total
    busy = f"{100 * (1 - known(f.bubble_fraction)):.0f} %"
    if launch.chip == "nvidia":
        yield (
            f"Utilisation: `nvidia-smi dmon -s pucm -d 5` on a node: `sm` near {busy} (kernels of "
            f"any kind run; the pipeline's bubble is the rest), `fb` near {total / 2**20:,.0f} MB "
            "on the fullest device, power near the cap. `sm` says nothing of speed: `dcgmi dmon -e "
            f"1004` (tensor cores active) should show about {100 * known(f.hfu):.0f} %."
        )
    if launch.chip == "amd":
        yield (
            f"Utilisation: `amd-smi monitor -putm` on a node: GFX near {busy}, VRAM near "
            f"{total / 2**20:,.0f} MB on the fullest device; tokens/s tell speed, not GFX."
        )
    if launch.chip == "tpu":
        yield (
            f"Utilisation: `tpu-info` on a host: duty cycle near {busy}, HBM near "
            f"{total / 2**30:,.1f} GiB on the fullest chip."
        )


def memory(launch: LaunchPlan) -> Iterator[str]:
    """PyTorch's own figures of the memory."""
    if launch.framework.runtime != "torch":
        return
    snapshot = launch.framework.profile.partition("Memory: ")[2]
    snapshot = snapshot or "enable_memory_snapshot=True, opened at pytorch.org/memory_viz"
    yield (
        'Memory: `torch.cuda.memory_stats()["allocated_bytes.all.peak"]` near '
        f"{gigabytes(launch.memory.total)} from step 2 on; `reserved_bytes` more than a tenth "
        "above it is fragmentation. A snapshot names the line that took each block: "
        f"{snapshot}."
    )


def nsight(launch: LaunchPlan) -> Iterator[str]:
    """A trace of kernels, and what of a step it should show."""
    if launch.framework.runtime != "torch" or launch.chip != "nvidia":
        return
    step_s = launch.step_s
    if launch.framework.id == "megatron":
        command = (
            "`nsys profile -t cuda,nvtx -o RUN_DIR/nsys --capture-range=cudaProfilerApi "
            "--capture-range-end=stop` before torchrun on one node, with --profile --nvtx-ranges "
            "--profile-step-start 20 --profile-step-end 22"
        )
    else:
        seconds = max(30, round(3 * step_s))
        command = (
            f"`nsys profile -t cuda,nvtx -o RUN_DIR/nsys -y 120 -d {seconds}` before the launcher "
            "on one node"
        )
    exposed_s = sum(row["exposed_s"] for row in launch.communication)
    compute = 1 - known(launch.figures.bubble_fraction) - exposed_s / step_s
    waits = "".join(
        f", {100 * row['exposed_s'] / step_s:.0f} % waiting for {row['axis']}"
        for row in launch.communication
        if row["exposed_s"] > 0.01 * step_s
    )
    yield (
        f"Nsight: {command}. Of a step of {span(step_s)} expect {100 * compute:.0f} % under "
        f"compute kernels{waits}."
    )


def hanging_collectives(launch: LaunchPlan) -> Iterator[str]:
    """How long NCCL waits, and what it says."""
    if not launch.gpu or launch.devices == 1:
        return
    torch = launch.framework.runtime == "torch"
    library_limit = ""
    if not torch or launch.framework.has_trainer:
        library_limit = "; the library's own limit is ten minutes"
    recorder = "; then the flight recorder (Watch)" if torch else ""
    yield (
        f"NCCL that hangs: a collective is given up after {launch.hang_s} s of silence (twice a "
        f"step and a save's stall){library_limit}; raise it where saves stall longer. "
        "NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,NET and "
        "NCCL_DEBUG_FILE=RUN_DIR/nccl-%h-%p for one start: rings, NICs, GPUDirect"
        f"{recorder}."
    )


def without_rdma(launch: LaunchPlan) -> Iterator[str]:
    """A start over sockets, which tells a fault of RDMA from any other."""
    if not launch.gpu or launch.nodes == 1:
        return
    crossing = sum(r["bytes"] for r in launch.communication if r["tier"] == "scale-out")
    rdma_s = crossing / launch.cluster.scale_out_bytes_per_s
    yield (
        "NCCL_IB_DISABLE=1 tells a fault of RDMA from any other, for a start of ten steps: "
        f"{gigabytes(crossing)} a device and step cross the network here, over sockets at 1 GB/s a "
        f"device {span(crossing / SOCKET_BYTES_PER_S)} where RDMA takes {span(rdma_s)}. Never "
        "leave it set."
    )


def compression(launch: LaunchPlan) -> Iterator[str]:
    """Whether shorter gradients pay."""
    if launch.devices == 1:
        return
    if launch.does.grad_bytes <= 2:
        advice = (
            "the step counts on gradients in 16 bit: watch the loss against fp32 for 1,000 steps."
        )
    elif launch.dp_exposed > WORTH_COMPRESSING:
        advice = f"worth trying: {launch.framework.network_limit}"
    else:
        advice = "below a tenth it gains less than it risks. Leave gradients as they are."
    yield (
        f"Gradient compression: {100 * launch.dp_exposed:.0f} % of the step waits for "
        f"data-parallel traffic; {advice}"
    )


def slow_saves(launch: LaunchPlan) -> Iterator[str]:
    """Saves to the node's disk first, where the file system is slow."""
    whole_s = launch.survival.whole_s
    if not whole_s:
        return
    if launch.framework.id == "megatron":
        how = (
            ": --non-persistent-ckpt-type local --non-persistent-local-ckpt-dir /nvme/run "
            f"--non-persistent-save-interval {launch.save_steps}, and --save-interval ten times "
            "that"
        )
    else:
        how = (
            ": RUN_DIR on the NVMe, and `rsync -a` of each whole checkpoint, one at a time; a lost "
            "node then costs the way back to the last copy"
        )
    a_node = known(launch.figures.checkpoint_bytes) / launch.nodes
    yield (
        f"Slow saves: {gigabytes(a_node)} a node, {span(whole_s)} until durable of "
        f"{span(launch.save_s)} between saves. Where the file system is slower: save to the node's "
        f"NVMe first ({show.size(launch.cluster.nvme_bytes)}) and copy to shared storage behind "
        f"the training{how}."
    )


def resume(launch: LaunchPlan) -> str:
    """Who starts the run again, and from what."""
    again = ""
    if launch.on == "slurm":
        queue = "in place or from the queue."
        if launch.by_queue:
            queue = "from the queue."
        again = f" Slurm does so by itself, {queue}"
    if launch.on == "kubernetes":
        again = " The JobSet does so by itself."
    return f"Resume: {launch.framework.saves.resume}.{again}"


def smaller(launch: LaunchPlan) -> tuple[int, int] | None:
    """(data-parallel ranks, devices) of the next smaller run whose replicas share the global batch
    evenly and hold whole expert groups; None where there is none."""
    p = launch.plan
    batch = launch.phase.global_batch
    for dp in range(p.dp - 1, 0, -1):
        whole = dp * p.tp * p.cp % (p.ep * p.etp) == 0
        if whole and batch % (dp * p.micro_batch) == 0:
            return dp, dp * p.tp * p.cp * p.pp
    return None


def shrink(launch: LaunchPlan) -> Iterator[str]:
    """How to go on with fewer devices."""
    next_smaller = smaller(launch)
    if next_smaller is None:
        return
    p = launch.plan
    dp, devices = next_smaller
    under = "is read under the new layout"
    if launch.framework.id == "deepspeed":
        under = "goes through ds_to_universal.py first"
    yield (
        f"Shrink: a replica is {p.tp * p.cp * p.pp} devices. The next smaller run that the batch "
        f"of {launch.phase.global_batch} allows has {dp} data-parallel ranks on {devices:,} "
        f"devices, about {span(launch.step_s * p.dp / dp)} a step: set cluster.devices to that, "
        "pin tp, pp and cp, and write a kit again; the checkpoint "
        f"({launch.framework.saves.format}) {under}."
    )
