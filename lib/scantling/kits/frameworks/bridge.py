"""Megatron-Bridge 0.6: bridge.overrides (Hydra, one a line) on a plain GPT recipe, and the script
that applies them."""

from __future__ import annotations

from ..framework import framework
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
    lines = render(
        "bridge.overrides.j2",
        **megatron.values(launch, kit),
        mixed_precision=PRECISION[launch.phase.precision],
    )
    return {
        "bridge.overrides": lines,
        "pretrain_bridge.py": source("pretrain_bridge.py"),
    }


FRAMEWORK = framework(
    "bridge",
    files=files,
    lacks=megatron.lacks,
    adjust=megatron.adjust,
    builds=megatron.builds,
)
