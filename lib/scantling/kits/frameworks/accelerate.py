"""Hugging Face Accelerate 1.15: accelerate.yaml (FSDP2 and parallelism_config, or MULTI_GPU) and a
short trainer."""

from __future__ import annotations

import yaml

from ..framework import framework
from ..render import source
from .fsdp import builds, own
from .fsdp import lacks as model_lacks


def lacks(launch, m, *, recompute, recompute_layers, sharding, **plan) -> dict:
    """Partial recompute too."""
    full = recompute == "full"
    return model_lacks(launch, m) | {
        "partial": full and recompute_layers < m.layers,
        "plain": full and sharding == "none",
    }


def config(launch) -> dict:
    """The YAML as a dict; how the nodes meet is on the launcher's line in launch.sh, since it takes
    no notice of the YAML's words for that."""
    p = launch.plan
    out = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "MULTI_GPU" if p["sharding"] == "none" else "FSDP",
        "mixed_precision": "no" if launch.phase.precision == "fp32" else launch.phase.precision,
        "num_machines": launch.nodes,
        "num_processes": launch.devices,
        "machine_rank": 0,
        "main_process_ip": "127.0.0.1",
        "main_process_port": 29500,
        "main_training_function": "main",
        "use_cpu": False,
    }
    if p["sharding"] != "none":
        group = p["shard_group"] if p["sharding"] == "hsdp" else p["dp"]
        out["fsdp_config"] = {
            "fsdp_version": 2,
            "fsdp_reshard_after_forward": p["sharding"] != "zero2",
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_transformer_layer_cls_to_wrap": "Block",
            "fsdp_state_dict_type": "SHARDED_STATE_DICT",
            "fsdp_activation_checkpointing": p["recompute"] == "full",
            "fsdp_cpu_ram_efficient_loading": True,
            "fsdp_offload_params": False,
        }
        out["parallelism_config"] = {
            "parallelism_config_dp_replicate_size": p["dp"] // group,
            "parallelism_config_dp_shard_size": group,
            "parallelism_config_tp_size": 1,
            "parallelism_config_cp_size": 1,
        }
    return out


def files(launch, kit):
    """accelerate.yaml, train_accelerate.py, model and trainer."""
    return {
        "accelerate.yaml": yaml.safe_dump(config(launch), sort_keys=False),
        "train_accelerate.py": source("train_accelerate.py"),
        **own(),
    }


FRAMEWORK = framework(
    "accelerate",
    files=files,
    lacks=lacks,
    builds=builds,
)
