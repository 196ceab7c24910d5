"""DeepSpeed 0.19: ds_config.json (ZeRO stage, buckets, offload, precision, batch) and a trainer
that takes everything else from plan.json."""

from __future__ import annotations

import json

from ..framework import framework
from ..render import source
from .fsdp import builds, lacks, own

STAGE = {
    "none": 0,
    "zero1": 1,
    "zero2": 2,
    "zero3": 3,
}


def config(launch) -> dict:
    """The JSON as a dict."""
    p, job, stage = launch.plan, launch.phase, STAGE[launch.plan["sharding"]]
    zero: dict = {
        "stage": stage,
        "overlap_comm": stage > 0,
        "contiguous_gradients": True,
        "reduce_bucket_size": 500_000_000,
    }
    if stage in (1, 2):
        zero["allgather_bucket_size"] = 500_000_000
    if stage == 3:
        layer = max(1, round(launch.params.total / max(launch.model.layers, 1)))
        zero |= {
            "stage3_prefetch_bucket_size": min(layer, 500_000_000),
            "stage3_param_persistence_threshold": 0,
            "stage3_max_live_parameters": max(2 * layer, 100_000_000),
            "stage3_gather_16bit_weights_on_model_save": False,
        }
    if p["offload"] != "none":
        zero["offload_optimizer"] = {
            "device": "cpu",
            "pin_memory": True,
        }
        if p["offload"] == "optimizer+params" and stage == 3:
            zero["offload_param"] = {
                "device": "cpu",
                "pin_memory": True,
            }
    out = {
        "train_batch_size": job.global_batch,
        "train_micro_batch_size_per_gpu": p["micro_batch"],
        "gradient_accumulation_steps": p["grad_accum"],
        "gradient_clipping": 1.0,
        "zero_optimization": zero,
        "steps_per_print": 10,
        "wall_clock_breakdown": False,
    }
    if job.precision == "bf16":
        out["bf16"] = {"enabled": True}
    if job.precision == "fp16":
        out["fp16"] = {
            "enabled": True,
            "initial_scale_power": 16,
            "loss_scale_window": 1000,
            "hysteresis": 2,
            "min_loss_scale": 1,
        }
    if p["offload"] != "none":
        out["zero_force_ds_cpu_optimizer"] = False
    return out


def files(launch, kit):
    """ds_config.json, train_deepspeed.py, model and trainer."""
    return {
        "ds_config.json": json.dumps(config(launch), indent=1) + "\n",
        "train_deepspeed.py": source("train_deepspeed.py"),
        **own(),
    }


FRAMEWORK = framework(
    "deepspeed",
    files=files,
    lacks=lacks,
    builds=builds,
)
