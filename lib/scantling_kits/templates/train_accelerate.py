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
    # sharded: weights are made shard by shard, never whole on a host or a device
    with torch.device("meta" if sharded else device):
        model = Transformer(settled(shape))
    if not sharded:
        begin(model, plan["seed"])
    prepare(model.blocks, plan, recompute=False)  # accelerate.yaml says what is repeated
    # it takes both or none; the one that steps is made of what came out
    model, _ = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
    if sharded:
        model.to_empty(device=device)
        begin(model, plan["seed"])
    if ranks != plan["dp"]:
        sys.exit(f"the plan is for {plan['dp']} ranks, this run has {ranks}")
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=plan["lr"], betas=(0.9, 0.95), weight_decay=0.1
    )
    train(model, optimizer, plan, rank, ranks, device, cast=accelerator.autocast)


if __name__ == "__main__":
    main()
