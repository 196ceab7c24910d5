"""Megatron-Bridge 0.6: bridge.overrides (Hydra, one a line) on a plain GPT recipe, and the script
that applies them."""

from ..render import render, source
from .megatron import adjust as adjust
from .megatron import builds as builds
from .megatron import lacks as lacks
from .megatron import values


def files(launch, kit):
    """bridge.overrides and pretrain_bridge.py."""
    return {
        "bridge.overrides": render("bridge.overrides.j2", **values(launch, kit)),
        "pretrain_bridge.py": source("pretrain_bridge.py"),
    }
