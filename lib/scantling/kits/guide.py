"""What a kit tells its reader: why each choice, what it takes, how to watch it, and what is likely
to go wrong here first."""

from __future__ import annotations

from .. import catalogue
from ..base.units import DAY_S
from .env import settled
from .frameworks.megatron import before_te
from .quote import md

ORDER = (
    "tp",
    "sp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "sharding",
    "micro_batch",
    "recompute",
    "offload",
    "precision",
)


def gb(x: float) -> str:
    """Bytes as GB."""
    return f"{x / 1e9:,.1f} GB"


def span(seconds: float) -> str:
    """Seconds in the unit that suits."""
    for size, unit in ((DAY_S, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.3g} s"


def many(n: int, one: str, more: str) -> str:
    """A count with its noun."""
    return f"{n:,} {one if n == 1 else more}"


def room(launch, words) -> str:
    """Storage that the kept copies take."""
    size, days = launch.figures["checkpoint_bytes"], launch.figures["days"]
    if "for good" in words.keep and days:
        copies = 2 + max(0, int(days))
        return (
            f"{copies * size / 1e12:,.1f} TB for {copies} copies: one a day over {days:.0f} "
            f"days, the last, and the one being written"
        )
    if "for good" in words.keep:
        return (
            f"{2 * size / 1e12:,.2f} TB for the last copy and the one being written, and "
            f"{size / 1e12:,.2f} TB for each day of the run"
        )
    return (
        f"{4 * size / 1e12:,.2f} TB for four copies: three kept and the one being written; "
        f"what is copied elsewhere besides"
    )


def justification(launch) -> list[tuple[str, str, str]]:
    """(choice, value, why) for every field of the plan, from the assessment's own reasons."""
    said = {row["axis"]: row["text"] for row in launch.why}
    p, memory = launch.plan, launch.memory
    bubble = launch.figures["bubble_fraction"]
    state = memory["weights"] + memory["gradients"] + memory["optimizer"]
    spread = {
        "none": "every rank holds all of it",
        "zero1": "optimizer states over the ranks",
        "zero2": "gradients and optimizer states over the ranks",
        "zero3": "weights, gradients and optimizer states over the ranks",
        "hsdp": f"all of it over groups of {p['shard_group']}",
    }[p["sharding"]]
    own = dict(
        sp=(
            "splits what lies outside the tensor-parallel blocks over the same ranks, at "
            "the same traffic"
        )
        if p["sp"]
        else "tensor parallelism is off"
        if p["tp"] == 1
        else "off by the plan",
        vpp=f"{p['vpp']} chunks a stage; bubble {bubble:.1%} of the step"
        if p["pp"] > 1
        else "no stages",
        etp="each rank holds whole experts"
        if p["etp"] == 1
        else "experts are split over tensor-parallel ranks",
        micro_batch=(
            f"{many(p['grad_accum'], 'micro-batch', 'micro-batches')} a step on each "
            f"replica; activations {gb(memory['activations'])} on the fullest device"
        ),
        recompute={
            "none": "what the backward pass needs fits as it is",
            "selective": "the attention core is computed again, the rest is kept",
            "full": (
                f"{p['recompute_layers']} layers a stage are computed again: a layer keeps "
                f"its input alone"
            ),
        }[p["recompute"]],
        offload="all state fits in device memory"
        if p["offload"] == "none"
        else "device memory is too small for the state",
        precision=(
            f"dense peak "
            f"{launch.cluster.accelerator.peak_flops(launch.phase.precision) / 1e12:,.0f} "
            f"TFLOP/s of {launch.cluster.accelerator.name}"
        ),
        sharding=f"{spread}: {gb(state)} of state on the fullest device",
        dp="the devices that the other axes leave",
    )
    rows = []
    for field in ORDER:
        if field in ("ep", "etp") and not launch.model.is_moe:
            continue
        text = said.get(field, "")
        bare = (
            text in ("", field, f"{field} {p[field]}", str(p[field]))
            or field == "sharding"
            and ":" not in text
        )
        rows.append(
            (
                field,
                str(p[field]),
                own.get(field, "as the search found it")
                if bare
                else f"{text}; {own[field]}"
                if field == "sharding"
                else text,
            )
        )
    return rows


def budget(launch, wall_s, words) -> list[tuple[str, str]]:
    """Devices, memory, hours, and what to ask a scheduler for."""
    f, m = launch.figures, launch.memory
    idle = launch.cluster.devices - launch.devices
    rows = [
        (
            "devices",
            (
                f"{launch.devices:,} "
                f"{md(launch.cluster.accelerator.name)}{f' ({idle:,} of the design stay idle)' if idle else ''} "
                f""
                f""
                f""
                f""
                f""
                f""
                f""
                f"on {many(launch.nodes, 'node', 'nodes')}, "
                f"{many(f['spares'], 'spare node', 'spare nodes')} (recommended "
                f"{f['spares_recommended']})"
            ),
        ),
        (
            "memory of the fullest device",
            f"{gb(m['total'])} of {gb(m['capacity'])}: "
            + ", ".join(
                f"{'fp32 weights and moments' if k == 'optimizer' else k} {gb(m[k])}"
                for k in ("weights", "gradients", "optimizer", "activations", "other")
                if m[k] > 5e7
            ),
        ),
        (
            "step",
            (
                f"{launch.step_s:.3g} s, MFU {f['mfu']:.1%} (80 % band {f['mfu_low']:.1%} to "
                f"{f['mfu_high']:.1%})"
            ),
        ),
    ]
    if wall_s:
        rows += [
            (
                "wall time",
                (
                    f"{span(wall_s)} ({span(f['days_low'] * DAY_S)} to "
                    f"{span(f['days_high'] * DAY_S)}), goodput {f['goodput']:.1%}"
                ),
            ),
            ("device hours", f"{launch.devices * wall_s / 3600:,.0f}"),
        ]
        rows += [("cost", f"${f['cost_usd']:,.0f}")] if f["cost_usd"] else []
    else:
        rows += [
            (
                "length",
                "the design names no tokens: set STEPS"
                if words.stop == "file"
                else (
                    "the design names no tokens: the configuration runs a million steps, "
                    "set your own"
                ),
            )
        ]
    rows += {
        "slurm": [
            (
                "Slurm request",
                (
                    f"--nodes={launch.nodes} --gpus-per-node={launch.per_node} --exclusive; "
                    f"a reservation of {launch.nodes + f['spares']} nodes leaves the spares "
                    f"at hand"
                ),
            )
        ],
        "kubernetes": [
            (
                "Kubernetes request",
                (
                    f"{launch.nodes} pods of {launch.per_node} devices, quota for "
                    f"{launch.nodes + f['spares']}"
                ),
            )
        ],
    }.get(launch.on, [])
    return rows + [
        (
            "checkpoints",
            (
                f"{gb(f['checkpoint_bytes'])} a copy, one every "
                f"{span(launch.save_steps * launch.step_s)}; kept: {words.keep}"
            ),
        )
    ]


def data_plan(launch, words) -> list[str]:
    """What the run reads, how fast and from where."""
    job = launch.phase
    rate = job.global_batch * job.seq_len / launch.step_s
    lines = [
        f"DATA: {words.data}.",
        (
            f"{rate:,.0f} tokens/s, {rate * 4 / 1e6:,.1f} MB/s as 4-byte token ids: little "
            f"beside checkpoints, but it must never stall; keep two batches ready a rank."
        ),
    ]
    if launch.to not in ("torchtitan", "maxtext"):
        lines.append(
            "Tokenise and shuffle once, ahead of the run; it reads by position, so that "
            "step N sees the same sequences after a resume."
        )
    if job.tokens:
        lines.append(
            (
                f"{job.tokens:,.3g} tokens are {job.tokens * 4 / 1e12:,.2f} TB of token ids; "
                f"put them on {md(launch.cluster.storage or 'the shared file system')}"
            )
            + (
                f" or on every node's NVMe ({launch.cluster.nvme_bytes / 1e12:.1f} TB)."
                if launch.cluster.nvme_bytes > 4 * job.tokens
                else (
                    f": the NVMe of a node ({launch.cluster.nvme_bytes / 1e12:.1f} TB) holds "
                    f"a cache of it."
                )
            )
        )
    lines.append(
        (
            "Without DATA the tokens are made up: good for the first hour on the machine, "
            "which is about speed and memory, not about loss."
        )
        if launch.to != "torchtitan"
        else (
            "For the first hour on the machine its c4_test needs no download: "
            'dataset="c4_test" in the configuration.'
        )
    )
    return lines


def observability(launch, words) -> list[str]:
    """What to watch, and where it is written."""
    f = launch.figures
    lines = [
        words.log + ".",
        f"Expect {f['tokens_per_s_per_device']:,.0f} tokens/s and "
        f"{f['model_tflops_per_device']:,.0f} TFLOP/s a device, MFU {f['mfu']:.1%} "
        f"(attention counted whole, not halved for the causal mask); "
        f"below {f['mfu_low']:.1%}, the low end of the band, look for the cause before going on.",
    ]
    if words.stop == "file":
        lines += [
            (
                "`heartbeat-N`: every rank's last step, time, its own seconds and MFU "
                "before it waited for the others; the one that lags by a step is the one "
                "that hangs."
            ),
            (
                "`state-N.json`: bytes of parameters, gradients and optimizer states of "
                "every rank, beside what the plan counts."
            ),
        ]
        lines.append(
            "The estimate is fitted to stacks with fused kernels. "
            + (
                "COMPILE=1 compiles each block (torch.compile): without it"
                if launch.to == "fsdp"
                else "These blocks run uncompiled:"
            )
            + " expect fewer tokens/s and more memory for activations."
        )
    lines.append("Profiler: " + words.profile + ".")
    if launch.devices > 1 and launch.to != "maxtext":
        lines.append(
            "Flight recorder: after a time-out, `RUN_DIR/flight-recorder-N`; "
            "`torchfrtrace RUN_DIR --prefix flight-recorder-` names the collective and "
            "the ranks that did not come."
        )
    lines.append(
        f"Run id, for a tracker that goes on in the same curve after a restart: `{launch.slug}`"
        + (" (WANDB_RUN_ID is set)." if launch.to != "maxtext" else ".")
    )
    return lines


def first_hour(launch, words) -> list[str]:
    """What to do before the long run, in order."""
    where = (
        "In the image: "
        if launch.on == "kubernetes"
        else "On a file system that every node sees, in the shell that submits: "
        if launch.on == "slurm"
        else "On every node: "
        if launch.nodes > 1
        else ""
    )
    out = [
        where
        + (
            f"`{line}`"
            if " # " not in line
            else "`{}` ({})".format(*(x.strip() for x in line.split(" # ", 1)))
        )
        for line in words.install
    ]
    if launch.chip == "amd":
        out.append(
            "torch"
            + (
                " and Transformer Engine are AMD's builds"
                if launch.to in ("megatron", "megatron-bridge")
                else " is the ROCm build"
            )
            + ", from AMD's image or index; the plain packages are for CUDA."
        )
    if before_te(launch) and launch.to == "megatron":
        out.append(
            "Transformer Engine is left out: it begins with Ampere (--transformer-impl local)."
        )
    if launch.to in ("fsdp", "ddp", "deepspeed", "accelerate"):
        out.append(
            "To fine-tune: INIT=the folder of the weights (config.json and safetensors, "
            "as Hugging Face writes them), and a learning rate of your own (LR); "
            "without it weights start from the seed."
        )
    out.append(
        "This folder and RUN_DIR on a file system that every node sees."
        if launch.nodes > 1
        else "RUN_DIR on a disk with room for the checkpoints."
    )
    if launch.nodes > 1 and launch.chip in ("nvidia", "amd"):
        k = launch.cluster
        network = catalogue.fabric(k.scale_out)
        if not settled(network):
            out.append(
                f"{network.name}: this kit sets nothing for it; take the collective library's "
                "plugin and variables from whoever runs the network."
            )
        inside, outside = (
            k.scale_up_bytes_per_s * k.scale_up_efficiency,
            k.scale_out_bytes_per_s
            * k.scale_out_efficiency
            * min(k.scale_up_domain, launch.devices),
        )
        test = "nccl-tests" if launch.chip == "nvidia" else "rccl-tests"
        out += [
            (
                f"{test}' all_reduce_perf, 1 GB and more, {where}: about {speed / 1e9:,.0f} "
                f"GB/s of bus bandwidth is what this plan counts on."
            )
            for where, speed in (
                (
                    (
                        f"over the {min(k.scale_up_domain, launch.devices)} devices that "
                        f"fast links join"
                    ),
                    inside,
                ),
                (f"over all {launch.nodes} nodes", min(inside, outside)),
            )
            if where.startswith("over all") or k.scale_up_domain > k.devices_per_node
        ]
    out.append(
        f"A rehearsal without DATA, in a RUN_DIR of its own that is deleted afterwards "
        f"(the run would go on from its checkpoint): 100 steps ({words.rehearse}); "
        f"compare seconds a step and peak memory with the budget."
    )
    out.append("Kill one process in it and watch it come back with the same loss (checkpoint.md).")
    return out


def network(launch) -> list[str]:
    """Exposed traffic by axis, and whether gradients are sent smaller."""
    rows = sorted(launch.communication, key=lambda r: -r["exposed_s"])
    out = [
        (
            f"{r['axis']} over {r['group']} devices, {r['tier']}: {r['what']}; "
            f"{gb(r['bytes'])} a device and step, {span(r['exposed_s'])} of "
            f"{span(r['time_s'])} exposed ({r['exposed_s'] / launch.step_s:.1%} of the "
            f"step)."
        )
        for r in rows
    ]
    share, tier = launch.dp_exposed
    if share > 0.1 and tier == "scale-out":
        out.append(
            {
                "fsdp": "The network is a limit: train_fsdp.py reduces gradients in bf16 (REDUCE).",
                "ddp": (
                    "The network is a limit: train_ddp.py registers bf16_compress_hook "
                    "(COMPRESS); PowerSGD's hook sends less again and changes the loss."
                ),
                "megatron": (
                    "The network is a limit. Not set, since it changes the sums: "
                    "--grad-reduce-in-bf16, with "
                    "--ddp-reduce-scatter-with-fp32-accumulation so that only what is sent "
                    "is short."
                ),
                "megatron-bridge": (
                    "The network is a limit. Not set, since it changes the sums: "
                    "ddp.grad_reduce_in_fp32=false."
                ),
                "deepspeed": (
                    "The network is a limit: gradients are sent in the 16-bit type of the "
                    "run already; zero_quantized_gradients goes to four bits under ZeRO-3 "
                    "and changes the loss."
                ),
                "accelerate": (
                    "The network is a limit; the YAML has no word for the type of the "
                    "reduction: use the fsdp kit, which sends bf16."
                ),
                "torchtitan": (
                    "The network is a limit; torchtitan reduces in fp32 always: use the "
                    "fsdp kit, which sends bf16, or a larger global batch."
                ),
                "maxtext": (
                    "The network is a limit. Not set, since it changes the sums: grad_dtype "
                    "bfloat16 sends half the bytes."
                ),
            }[launch.to]
        )
    return out


def troubles(launch, module) -> list[tuple[str, str]]:
    """(what, what to do), the likely first for this design."""
    p, f, memory, words = launch.plan, launch.figures, launch.memory, module.WORDS
    share, torch = memory["total"] / memory["capacity"], launch.to != "maxtext"
    comm = {row["axis"]: row["exposed_s"] for row in launch.communication}
    worst = max(comm, key=comm.get) if comm else None
    knobs = words.knobs
    steps = (
        [f"halve the micro-batch of {p['micro_batch']} ({knobs['micro_batch']})"]
        if p["micro_batch"] > 1
        else []
    )
    steps += ["COMPILE=1, if it is not set"] if launch.to == "fsdp" else []
    steps += (
        [f"recompute more ({knobs['recompute']}, {p['recompute']} now)"]
        if p["recompute"] != "full"
        else []
    )
    steps += [f"split further ({knobs['spill']})"] + (
        [f"shard more ({knobs['sharding']}, {p['sharding']} now)"]
        if p["sharding"] in ("none", "zero1", "zero2") and p["pp"] == 1
        else []
    )
    largest = max(("weights", "gradients", "optimizer", "activations"), key=lambda k: memory[k])
    crowded = (
        0.5 + 8 * max(0.0, share - 0.7) + (0.5 if launch.model.is_moe else 0.0)
    )  # experts' tokens come and go
    rows = [
        (
            crowded,
            "Out of memory",
            (
                f"The plan fills {share:.0%} of the usable memory, {largest} most of it "
                f"({gb(memory[largest])}). In this order: {'; '.join(steps)}; offload last "
                f"({knobs['offload']}): it costs time in every step. "
            )
            + (
                (
                    "In step 1 it is activations, in step 2 the optimizer's states, later "
                    "fragmentation (a growing gap between reserved and allocated in the "
                    "memory snapshot)."
                )
                if torch
                else (
                    "XLA names the largest buffers at compile time: the sizes in its "
                    "message are those to look at."
                )
            ),
        )
    ]
    if launch.nodes > 1:
        look = (
            (
                "The flight recorder names the first collective that some ranks did not "
                "enter: the rank that is missing there is the cause, the others only "
                "waited. Look at its last kernel, its host's log, its link."
            )
            if torch
            else (
                "Every host logs `barrier` or `heartbeat` time-outs: the host that logs "
                "nothing is the cause. Look at it first; a slice restarts as a whole."
            )
        )
        rows.append(
            (
                1.5 + min(launch.devices / 4096, 2),
                "Collective time-out",
                f"A failure every {span(f['mtbf_s'])} is expected on this many devices. {look}",
            )
        )
    if worst and comm[worst] > 0.05 * launch.step_s:
        check = (
            "the collectives' rows of an xprof trace"
            if launch.chip == "tpu"
            else "NCCL_DEBUG=INFO for one start: rings, NICs, GPUDirect"
            if launch.nodes > 1
            else "`nvidia-smi topo -m`: fast links between all pairs"
        )
        rows.append(
            (
                1.2 + 5 * comm[worst] / launch.step_s,
                f"Slow steps: {worst} traffic",
                (
                    f"{span(comm[worst])} of {span(launch.step_s)} is exposed {worst} "
                    f"communication already. If it is more, it left the tier that the plan "
                    f"counts on ({check})."
                ),
            )
        )
    rows.append(
        (
            1.1 + min(launch.nodes / 512, 1),
            "Stragglers",
            "One slow device slows all. "
            + (
                "Compare the ranks' own seconds (heartbeat-N)"
                if words.stop == "file"
                else "Compare the ranks' TFLOP/s (--log-straggler)"
                if launch.to == "megatron"
                else "Have nvrx_straggler name them"
                if launch.to == "megatron-bridge"
                else "Compare the hosts' step times in a trace"
            )
            + (
                "; a node that is slow twice is drained, not restarted. Heat and power caps "
                "come first, then a link at half its width."
            ),
        )
    )
    if launch.phase.precision == "fp16":
        rows.append(
            (
                2.6,
                "FP16 overflow",
                (
                    "The loss scale halves on every overflow and is kept in the checkpoint; "
                    "a few skipped steps at the start are normal. A scale below 1 means "
                    "that the gradients, not the scale, are wrong: lower the rate, clip, "
                    "look for a bad batch."
                ),
            )
        )
    elif launch.phase.precision.startswith(("fp8", "mxfp8", "nvfp4")):
        rows.append(
            (
                1.6,
                "Loss apart from 16 bit",
                (
                    "Run 1,000 steps in bf16 beside it. First and last layers in bf16 cure "
                    "most divergences; attention and the head stay in bf16 anyway."
                ),
            )
        )
    stall = launch.endurance.get("checkpoint_stall_s") or 0.0
    rows.append(
        (
            1.0 + 20 * stall / max(f["checkpoint_interval_s"], 1.0),
            "Slow saves",
            (
                f"A save should hold up training for {span(stall)} and be durable after "
                f"{span(launch.endurance.get('checkpoint_durable_s') or 0.0)}. Slower: count "
                f"the writers, "
            )
            + (
                "stripe the folder, "
                if launch.chip != "tpu"
                else "use a bucket in the slice's region, "
            )
            + (
                "look whether the save before it was still being written, and save less "
                "often before anything else."
            ),
        )
    )
    if launch.model.is_moe:
        rows.append(
            (
                1.4,
                "Uneven experts",
                (
                    "Watch the share of tokens by expert: above twice the mean, memory and "
                    "step time both grow. Raise the balancing loss before adding capacity."
                ),
            )
        )
    rows.append(
        (
            0.9,
            "Loss spikes",
            (
                f"Go back to the checkpoint before it and leave the batches in between out: "
                f"{words.skip}."
            ),
        )
    )
    return [(a, b) for _, a, b in sorted(rows, key=lambda r: -r[0])]
