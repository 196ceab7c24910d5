"""What a kit tells its reader: why each choice, what it takes, how to watch it, and what is likely to go wrong here first."""
from __future__ import annotations

from .quote import md

ORDER = ("tp", "sp", "cp", "pp", "vpp", "dp", "ep", "etp", "sharding", "micro_batch", "recompute", "offload", "precision")


def gb(x: float) -> str:
    """Bytes as GB."""
    return f"{x / 1e9:,.1f} GB"


def span(seconds: float) -> str:
    """Seconds in the unit that suits."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.0f} s"


def justification(launch) -> list[tuple[str, str, str]]:
    """(choice, value, why) for every field of the plan, from the assessment's own reasons."""
    said = {row["axis"]: row["text"] for row in launch.why}
    p, memory = launch.plan, launch.memory
    own = dict(
        sp="splits what lies outside the tensor-parallel blocks over the same ranks, at the same traffic" if p["sp"] else "tensor parallelism is off" if p["tp"] == 1 else "off by the plan",
        vpp=f"{p['vpp']} chunks a stage; bubble {launch.figures['bubble_fraction']:.1%} of the step",
        etp="each rank holds whole experts" if p["etp"] == 1 else "experts are split over tensor-parallel ranks",
        micro_batch=f"{p['grad_accum']} micro-batches a step on each replica; activations {gb(memory['activations'])} on the fullest device",
        recompute={"none": "what the backward pass needs fits as it is", "selective": "the attention core is computed again, the rest is kept",
                   "full": f"{p['recompute_layers']} layers a stage are computed again"}[p["recompute"]],
        offload="all state fits in device memory" if p["offload"] == "none" else "device memory is too small for the state",
        precision=f"dense peak {launch.cluster.accelerator.peak_flops(launch.phase.precision) / 1e12:,.0f} TFLOP/s of {launch.cluster.accelerator.name}",
        dp="", sharding="")
    rows = []
    for field in ORDER:
        if field in ("ep", "etp") and not launch.model.is_moe:
            continue
        rows.append((field, str(p[field]), said.get(field) or own.get(field) or "as the search found it"))
    return rows


def budget(launch, wall_s) -> list[tuple[str, str]]:
    """Devices, memory, hours, and what to ask a scheduler for."""
    f = launch.figures
    rows = [("devices", f"{launch.devices:,} {md(launch.cluster.accelerator.name)} on {launch.nodes:,} nodes, {f['spares']} spare nodes (recommended {f['spares_recommended']})"),
            ("memory of the fullest device", f"{gb(launch.memory['total'])} of {gb(launch.memory['capacity'])}: " + ", ".join(
                f"{k} {gb(launch.memory[k])}" for k in ("weights", "gradients", "optimizer", "activations", "other"))),
            ("step", f"{launch.step_s:.3g} s, MFU {f['mfu']:.1%} (80 % band {f['mfu_low']:.1%} to {f['mfu_high']:.1%})")]
    if wall_s:
        rows += [("wall time", f"{span(wall_s)} ({f['days_low']:.1f} to {f['days_high']:.1f} days), goodput {f['goodput']:.1%}"),
                 ("device hours", f"{launch.devices * wall_s / 3600:,.0f}")]
        rows += [("cost", f"${f['cost_usd']:,.0f}")] if f["cost_usd"] else []
    rows += [("Slurm request", f"--nodes={launch.nodes} --gpus-per-node={launch.per_node} --exclusive"),
             ("checkpoints", f"{gb(f['checkpoint_bytes'])} a copy, three kept; one every {span(f['checkpoint_interval_s'])}")]
    return rows


def data_plan(launch) -> list[str]:
    """What the run reads, how fast and from where."""
    job = launch.phase
    rate = job.global_batch * job.seq_len / launch.step_s
    lines = [f"{rate:,.0f} tokens/s, {rate * 4 / 1e6:,.1f} MB/s as 4-byte token ids: little beside checkpoints, but it must never stall; keep two batches ready a rank.",
             "Tokenise and shuffle once, ahead of the run, into flat binary files; read by position, so that step N sees the same sequences after a resume and under another layout."]
    if job.tokens:
        lines.append(f"{job.tokens:,.3g} tokens are {job.tokens * 4 / 1e12:,.2f} TB of token ids; put them on {md(launch.cluster.storage or 'the shared file system')} or on every node's NVMe.")
    lines.append("DATA unset means made-up tokens: good for the first hour on the machine, which is about speed and memory, not about loss.")
    return lines


def observability(launch) -> list[str]:
    """What to watch, and where it is written."""
    f = launch.figures
    first = "`RUN_DIR/metrics.jsonl`: step, loss, gradient norm, seconds, tokens/s a device, MFU" if launch.to in ("fsdp", "ddp", "deepspeed", "accelerate") else \
        "loss, gradient norm and throughput in the framework's own log and TensorBoard, under RUN_DIR"
    own = launch.to in ("fsdp", "ddp", "deepspeed", "accelerate")
    lines = [first + "; give a run tracker the run id below, so that a restart goes on in the same curve.",
             f"Throughput to expect: {f['tokens_per_s_per_device']:,.0f} tokens/s a device, MFU {f['mfu']:.1%}; below {f['mfu_low']:.1%} something is wrong, not slow."]
    if own:
        lines += ["`heartbeat-N`: every rank's last step and time; a rank that lags the others by more than a step is the one that hangs.",
                  "`state-N.json`: bytes of parameters, gradients and optimizer states of every rank, beside what the plan counts.",
                  "Profiler: `PROFILE_STEP=20` writes `trace-N.json` of two steps; open in Perfetto. Memory: `MEMORY_SNAPSHOT=1` writes `memory-N.pickle` after step 3; open at pytorch.org/memory_viz."]
    elif launch.to in ("megatron", "megatron-bridge"):
        lines += ["Profiler: add --profile --use-pytorch-profiler --profile-step-start 20 --profile-step-end 22; traces in the TensorBoard folder. Memory: --record-memory-history.",
                  "Stragglers: --log-straggler prints the slowest and fastest ranks."]
    elif launch.to == "torchtitan":
        lines += ["Profiler: profiler.enable_profiling and profiler.enable_memory_snapshot in torchtitan_config.py; traces in the dump folder, for Perfetto and pytorch.org/memory_viz."]
    else:
        lines += ["Profiler: `profiler: xplane` in maxtext.yml; read with xprof in TensorBoard."]
    if launch.to != "maxtext":
        lines.append("Flight recorder: after a time-out, `RUN_DIR/flight-recorder-N`; torchfrtrace names the collective and the ranks that did not come.")
    return lines


def troubles(launch, module) -> list[tuple[str, str]]:
    """(what, what to do), the likely first for this design."""
    p, f, memory = launch.plan, launch.figures, launch.memory
    share = memory["total"] / memory["capacity"]
    comm = {row["axis"]: row["exposed_s"] for row in launch.communication}
    worst = max(comm, key=comm.get) if comm else None
    smaller = "set micro_batch 1" if p["micro_batch"] > 1 else "recompute is full and the micro-batch one already: shard more (zero3, a larger tp), or offload optimizer states, last" if p["recompute"] == "full" \
        else "recompute first (`recompute: selective`, then full)"
    rows = [(1.0 + 2 * share, "Out of memory", f"The plan fills {share:.0%} of the usable memory. In this order: {smaller}; expandable segments (set); offload only after recompute and "
             "micro-batch: it costs time in every step. An out-of-memory in step 2 and not in step 1 is the optimizer state; at a growing step, fragmentation; take a memory snapshot.")]
    if launch.nodes > 1:
        rows.append((1.5 + min(launch.devices / 4096, 2), "Collective time-out", f"One failure every {span(f['mtbf_s'])} is expected on this many devices. The flight recorder names the first collective that some ranks "
                     "did not enter: the rank that is missing there is the cause, the others only waited. Look at its last kernel, its host log, its link."))
    if worst and comm[worst] > 0.05 * launch.step_s:
        rows.append((1.2 + 5 * comm[worst] / launch.step_s, f"Slow steps: {worst} traffic", f"{comm[worst]:.2g} s of {launch.step_s:.3g} s is exposed {worst} communication. Check that it stays on the tier the plan counts on "
                     "(NCCL_DEBUG=INFO: rings, NICs) before changing the plan."))
    rows.append((1.1 + min(launch.nodes / 512, 1), "Stragglers", "One slow device slows all. Compare seconds per step by rank; a node that is slow twice is drained, not restarted. Heat and power caps come first."))
    if launch.phase.precision == "fp16":
        rows.append((2.6, "FP16 overflow", "The loss scale halves on every overflow and is kept in the checkpoint; a scale below 1 means that the gradients, not the scale, are wrong: lower the rate, clip, look for a bad batch."))
    elif launch.phase.precision.startswith(("fp8", "mxfp8", "nvfp4")):
        rows.append((1.6, "Loss apart from 16 bit", "Run 1,000 steps in bf16 beside it. First and last layers in bf16 cure most divergences; attention and the head stay in bf16 anyway."))
    stall = launch.endurance.get("checkpoint_stall_s") or 0.0
    rows.append((1.0 + 20 * stall / max(f["checkpoint_interval_s"], 1.0), "Slow saves", f"A save should hold up training for {stall:.2g} s and be durable after {span(launch.endurance.get('checkpoint_durable_s') or 0.0)}. Slower: count the writers, "
                 "stripe the folder, save asynchronously (set), and keep fewer small files."))
    if launch.model.is_moe:
        rows.append((1.4, "Uneven experts", "Watch the share of tokens by expert: above twice the mean, memory and step time both grow. Raise the balancing loss before adding capacity."))
    rows.append((0.9, "Loss spikes", "Go back to the checkpoint before it and skip the batches in between; positions are steps, so skipping is exact."))
    return [(a, b) for _, a, b in sorted(rows, key=lambda r: -r[0])]
