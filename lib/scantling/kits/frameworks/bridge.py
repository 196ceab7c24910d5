"""Megatron-Bridge 0.6: bridge.overrides (Hydra, one a line) on a plain GPT recipe, and the script
that applies them."""

from __future__ import annotations

from ..framework import framework
from ..render import render, source
from . import megatron


def files(launch, kit):
    """bridge.overrides and pretrain_bridge.py."""
    return {
        "bridge.overrides": render("bridge.overrides.j2", **megatron.values(launch, kit)),
        "pretrain_bridge.py": source("pretrain_bridge.py"),
    }


FRAMEWORK = framework(
    "bridge",
    files=files,
    lacks=megatron.lacks,
    adjust=megatron.adjust,
    builds=megatron.builds,
)
