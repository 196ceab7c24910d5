"""Megatron-Bridge 0.6: bridge.overrides (Hydra, one a line) on a plain GPT recipe, and the script
that applies them."""

from __future__ import annotations

from ..framework import framework
from ..record import NORM_EPSILON, rotary_base
from ..render import render, source
from . import megatron

PRECISION = {
    "bf16": "bf16_mixed",
    "fp16": "fp16_mixed",
    "fp8": "bf16_with_fp8_delayed_scaling_mixed",
    "fp8-current": "bf16_with_fp8_current_scaling_mixed",
    "fp8-block": "bf16_with_fp8_subchannel_scaling_mixed",
    "mxfp8": "bf16_with_mxfp8_mixed",
    "nvfp4": "bf16_with_nvfp4_mixed",
}


def files(launch, kit):
    """bridge.overrides and pretrain_bridge.py."""
    values = megatron.values(launch, kit)
    precision = PRECISION[launch.phase.precision]
    lines = render("bridge.overrides.j2", **values, mixed_precision=precision)
    return {"bridge.overrides": lines, "pretrain_bridge.py": source("pretrain_bridge.py")}


def command(launch) -> str:
    """What torchrun starts."""
    return (
        '"$HERE/pretrain_bridge.py" "checkpoint.save=$RUN_DIR/checkpoints" '
        '"checkpoint.load=$RUN_DIR/checkpoints" '
        '"logger.tensorboard_dir=$RUN_DIR/tensorboard" "${DATA_ARGS[@]}"'
    )


def prepare(launch) -> str:
    """Shell lines before the command."""
    return (
        "DATA_ARGS=()     # made-up tokens until DATA is set\n"
        'if [ -n "${DATA:-}" ]; then DATA_ARGS=("dataset.data_path=\'$DATA\'" '
        "\"dataset.path_to_cache='$RUN_DIR/data-cache'\"); fi"
    )


def notes(launch) -> list[str]:
    """What no field of the plan says and the overrides had to choose."""
    m = launch.model
    out = [
        (
            f"Rotary positions have base {rotary_base(m):,} and norms "
            f"{NORM_EPSILON:g}, in every kit: set the model's own, or start from "
            f"its recipe in megatron.bridge.recipes."
        )
    ]
    if m.is_moe and m.router_buffers:
        out.append(
            "The router scores by sigmoid and balances by a bias on each expert, as the "
            "model's files have it; model.moe_router_num_groups, "
            "model.moe_router_group_topk and model.moe_router_topk_scaling_factor are "
            "not in the design."
        )
    elif m.is_moe:
        out.append("The router is softmax with an auxiliary loss of 1e-3: set the model's own.")
    return out


FRAMEWORK = framework(
    "bridge",
    files=files,
    command=command,
    prepare=prepare,
    notes=notes,
    gaps=megatron.gaps,
    adjust=megatron.adjust,
    environment=megatron.environment,
)
