"""Hugging Face Accelerate 1.15: accelerate.yaml (FSDP2 and parallelism_config, or MULTI_GPU) and a
short trainer."""

from __future__ import annotations

import yaml

from ..record import Gap
from .fsdp import DATA_PARALLEL, SAVES, notes, own, source  # noqa: F401
from .fsdp import WORDS as WORDS_FSDP
from .fsdp import gaps as model_gaps

PACKAGE, VERSION, FILE = "accelerate", "1.15.0", "accelerate.yaml"
LAUNCHER = "accelerate"
SPACE = {"recompute_share": (1.0,)}
DOMAIN = DATA_PARALLEL | {
    "sharding": (
        ("zero3", "zero2", "hsdp", "none"),
        (
            "FSDP2 shards all state together; optimizer states alone need the DeepSpeed or "
            "Megatron plug-in"
        ),
    ),
    "recompute": (("none", "full"), "fsdp_activation_checkpointing is on or off"),
    "offload": (("none",), "offload is not written into this kit"),
    "precision": (
        ("bf16", "fp16", "fp32"),
        "fp8 wants a backend of its own and its own model code",
    ),
    "optimizer": (("adamw",), "the trainer steps AdamW with fp32 moments"),
}

WORDS = WORDS_FSDP._replace(
    install=(
        (
            "pip install torch==2.13.0 accelerate==1.15.0 numpy safetensors     # wandb or "
            "tensorboard for a tracker"
        ),
    ),
    knobs=WORDS_FSDP.knobs
    | dict(
        recompute="fsdp_activation_checkpointing",
        offload="fsdp_offload_params",
        sharding="parallelism_config_dp_shard_size",
    ),
)


def gaps(launch):
    """Partial recompute."""
    p, out = launch.plan, list(model_gaps(launch))
    if p["recompute"] == "full" and p["recompute_layers"] < launch.model.layers:
        out.append(Gap("recompute_layers", p["recompute_layers"], "all layers recompute or none"))
    if p["recompute"] == "full" and p["sharding"] == "none":
        out.append(Gap("recompute", "full", "only the FSDP plug-in recomputes"))
    return out


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
        FILE: yaml.safe_dump(config(launch), sort_keys=False),
        "train_accelerate.py": source("train_accelerate.py"),
        **own(),
    }


def command(launch) -> str:
    """What accelerate starts."""
    return '"$HERE/train_accelerate.py"'
