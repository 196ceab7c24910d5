"""Trains the plan of plan.json under Accelerate; sharding and precision come from accelerate.yaml
alone, the batch from plan.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType, set_seed

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from handover import begin, settled  # noqa: E402
from model import Block, Transformer  # noqa: E402
from trainer import prepare, start, train  # noqa: E402


def main() -> None:
    spec = json.loads((HERE / "plan.json").read_text())
    plan, shape = spec["train"], spec["shape"]
    rank, ranks, device = start()
    accelerator = Accelerator()
    set_seed(plan["seed"])
    Transformer._no_split_modules = [Block.__name__]
    sharded = accelerator.distributed_type == DistributedType.FSDP
    # sharded: rank 0 has the weights and hands them out
    with torch.device("meta" if sharded and rank else device if not sharded else "cpu"):
        model = Transformer(settled(shape))
    if rank == 0 or not sharded:
        begin(model, plan["seed"])
    prepare(model.blocks, plan, recompute=False)  # accelerate.yaml says what is repeated
    # it takes both or none; the one that steps is made of what came out
    model, _ = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
    if ranks != plan["dp"]:
        sys.exit(f"the plan is for {plan['dp']} ranks, this run has {ranks}")
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=plan["lr"], betas=(0.9, 0.95), weight_decay=0.1
    )
    train(model, optimizer, plan, rank, ranks, device, cast=accelerator.autocast)


if __name__ == "__main__":
    main()
