"""python judge_deepspeed.py KIT...: DeepSpeed's own DeepSpeedConfig on ds_config.json, at the
plan's world size; keys that DeepSpeed would ignore are refused."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
os.environ["DS_ACCELERATOR"] = "cpu"
from deepspeed.runtime import config as C  # noqa: E402
from stand_ins import judge_all, trainer  # noqa: E402

SOURCES = (
    "constants",
    "config",
    "zero.config",
    "activation_checkpointing.config",
    "tensor_parallel.config",
    "precision_config",
    "swap_tensor.constants",
)
KNOWN = set()
for _name in SOURCES:
    try:
        KNOWN |= set(
            re.findall(
                r'["\']([a-z_0-9]+)["\']',
                inspect.getsource(importlib.import_module("deepspeed.runtime." + _name)),
            )
        )
    except ImportError:
        pass
ZERO = {0: "none", 1: "zero1", 2: "zero2", 3: "zero3"}


class Ranks:
    """What DeepSpeedConfig asks of a model-parallel unit."""

    def __init__(self, dp):
        self.dp = dp

    def get_data_parallel_world_size(self):
        return self.dp


def judge(kit):
    kit = Path(kit)
    spec = json.loads((kit / "plan.json").read_text())
    raw = json.loads(
        (kit / "ds_config.json").read_text(), object_pairs_hook=C.dict_raise_error_on_duplicate_keys
    )
    if set(raw) - KNOWN:
        raise KeyError(f"DeepSpeed would ignore {sorted(set(raw) - KNOWN)}")
    C.dist.get_rank, C.dist.get_world_size = (lambda *a: 0), (lambda *a, **k: spec["devices"])
    c = C.DeepSpeedConfig(str(kit / "ds_config.json"), mpu=Ranks(spec["devices"]))
    dp = c.train_batch_size // (c.train_micro_batch_size_per_gpu * c.gradient_accumulation_steps)
    z = c.zero_config
    return trainer(kit) | dict(
        dp=dp,
        sharding=ZERO[c.zero_optimization_stage],
        micro_batch=c.train_micro_batch_size_per_gpu,
        grad_accum=c.gradient_accumulation_steps,
        global_batch=c.train_batch_size,
        precision="bf16"
        if c.bfloat16_config.enabled
        else "fp16"
        if c.float16_config.enabled
        else "fp32",
        offload="none"
        if z.offload_optimizer is None
        else "optimizer"
        if z.offload_param is None
        else "optimizer+params",
    )


if __name__ == "__main__":
    judge_all(judge, sys.argv[1:])
