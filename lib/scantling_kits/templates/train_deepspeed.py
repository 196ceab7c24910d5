"""Trains the plan of plan.json under DeepSpeed; batch, precision, sharding and offload come from
ds_config.json alone."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
import deepspeed  # noqa: E402

HERE = Path(__file__).parent
WHOLE = "whole"  # of a checkpoint: the file that is written last
sys.path.insert(0, str(HERE))
from handover import begin, settled  # noqa: E402
from model import Transformer  # noqa: E402
from trainer import Checkpoints, Data, Watch, prepare, rate, seen, size, start  # noqa: E402


def measure(engine: Any, stage: int, last: bool) -> tuple[int, int]:
    """(parameters, gradients) that this rank keeps after a backward pass. [bytes]"""
    optimizer, parameters = engine.optimizer, list(engine.module.parameters())
    kept = size(getattr(p, "ds_tensor", p) for p in parameters)
    if stage == 0 or not last:
        return kept, size(p.grad for p in parameters)
    averaged = [
        t
        for group in optimizer.averaged_gradients.values()
        if group
        for t in group
        if t is not None
    ]
    return kept, size(averaged) if stage == 3 else max(
        size(averaged), size(p.grad for p in parameters)
    )


def states(optimizer: Any) -> tuple[int, int]:
    """(fp32 master copy, moments) that this rank keeps. [bytes]"""
    inner = getattr(optimizer, "optimizer", optimizer)
    moments = size(
        v for s in inner.state.values() for k, v in s.items() if torch.is_tensor(v) and v.dim()
    )
    groups = getattr(optimizer, "single_partition_of_fp32_groups", None) or getattr(
        optimizer, "fp32_partitioned_groups_flat", None
    )
    return size(groups or sum(getattr(optimizer, "fp32_groups", []), [])), moments


def save(engine: Any, saves: Checkpoints, step: int, rank: int) -> None:
    """A checkpoint, which is named once all ranks have written: DeepSpeed's own `latest` names it
    when rank 0 has."""
    folder = saves.folder / f"step-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(saves.random_state(step), folder / f"rank-{rank}.pt")
    engine.save_checkpoint(
        str(saves.folder), tag=folder.name, client_state={"step": step}, save_latest=False
    )
    if rank == 0:
        (folder / saves.last).touch()
        new = saves.folder / "latest.new"  # what zero_to_fp32.py reads
        new.write_text(folder.name)
        new.replace(saves.folder / "latest")
    saves.thin()


def main() -> None:
    spec, config = (
        json.loads((HERE / "plan.json").read_text()),
        json.loads((HERE / "ds_config.json").read_text()),
    )
    plan, shape, run = spec["train"], spec["shape"], Path(os.environ["RUN_DIR"])
    if (
        not torch.cuda.is_available()
    ):  # plain gloo; the shared-memory op of CPUs would have to be compiled first
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed("nccl" if torch.cuda.is_available() else "gloo")
    rank, ranks, device = start()
    if ranks != plan["dp"]:
        sys.exit(f"the plan is for {plan['dp']} ranks, this run has {ranks}")
    stage, sharded = (
        config["zero_optimization"]["stage"],
        config["zero_optimization"]["stage"] == 3 and torch.cuda.is_available(),
    )
    with deepspeed.zero.Init(config_dict_or_path=config, enabled=sharded), torch.device(device):
        model = Transformer(settled(shape))
    begin(
        model,
        plan["seed"],
        gathered=lambda p: deepspeed.zero.GatheredParameters([p], modifier_rank=0, enabled=sharded),
    )
    prepare(model.blocks, plan)
    onto_host = "offload_optimizer" in config["zero_optimization"] and torch.cuda.is_available()
    if onto_host:  # vectorised for the host; it compiles itself at the first start
        from deepspeed.ops.adam import DeepSpeedCPUAdam as AdamW
    else:
        from torch.optim import AdamW
    optimizer = AdamW(model.parameters(), lr=plan["lr"], betas=(0.9, 0.95), weight_decay=0.1)
    engine, optimizer, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    folder = run / "checkpoints" / "deepspeed"
    data, saves, watch = (
        Data(plan["vocab"], plan["seq_len"], int(os.environ.get("SEED", 0))),
        Checkpoints(folder, plan["keep"], WHOLE),
        Watch(run, rank, plan),
    )
    steps = int(os.environ.get("STEPS", 0)) or plan["steps"] or 10**9
    every = int(os.environ.get("SAVE_STEPS") or plan["save_steps"])
    step, newest = 0, saves.latest()
    if newest:
        _, kept = engine.load_checkpoint(str(folder), tag=newest.name)
        step = kept["step"]
        saves.restore_random(newest)
    m, n, first, gradients = plan["micro_batch"], plan["grad_accum"], True, 0
    while step < steps:
        watch.before(step)
        for group in engine.optimizer.param_groups:
            group["lr"] = rate(
                step,
                float(os.environ.get("LR") or plan["lr"]),
                plan["steps"] or int(os.environ.get("STEPS", 0)),
            )
        total = 0.0
        for k in range(n):
            tokens, targets = data.micro_batch(
                data.place(step) * plan["global_batch"] + (rank * n + k) * m, m, engine.device
            )
            loss = engine(tokens, targets)
            engine.backward(loss)
            total += loss.item() / n
            # ZeRO-1 keeps whole gradients between micro-batches and its share of them at the step
            if first:
                kept, found = measure(engine, stage, k == n - 1)
                gradients = max(found, gradients)
            engine.step()
        if first:
            master, moments = states(engine.optimizer)
            watch.state(parameters=kept, gradients=gradients, master=master, moments=moments)
            first = False
        step += 1
        loss, stop = seen(total, run)
        watch.after(step, loss, float(engine.get_global_grad_norm() or 0.0), ranks)
        if step % every == 0 or stop or step == steps:
            save(engine, saves, step, rank)
        if stop:
            break
    saves.end()
    if step >= steps and rank == 0:
        (run / "done").write_text(f"{step}\n")


if __name__ == "__main__":
    main()
