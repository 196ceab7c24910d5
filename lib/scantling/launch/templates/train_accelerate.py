"""Trains the plan of plan.json under Accelerate; sharding and precision come from accelerate.yaml alone, the batch from plan.json."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from handover import begin, settled  # noqa: E402
from model import Block, Transformer  # noqa: E402
from trainer import start, train  # noqa: E402


def main():
    spec = json.loads((HERE / "plan.json").read_text())
    plan, shape = spec["train"], spec["shape"]
    rank, ranks, device = start()
    accelerator = Accelerator()
    set_seed(plan["seed"])
    Transformer._no_split_modules = [Block.__name__]
    model = begin(Transformer(settled(shape)), plan["seed"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=plan["lr"], betas=(0.9, 0.95), weight_decay=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    train(model, optimizer.optimizer, plan, rank, ranks, device, clip=lambda: accelerator.clip_grad_norm_(model.parameters(), 1.0), cast=accelerator.autocast)


if __name__ == "__main__":
    main()
