"""Megatron-Bridge 0.6: bridge.overrides (Hydra, one a line) on a plain recipe, and the script that
applies them."""

from dataclasses import replace

from ..render import render, source
from . import megatron
from .megatron import adjust as adjust, lacks as lacks


def builds(m):
    """As Megatron-LM, but the scan's chunk has a key."""
    return replace(megatron.builds(m), chunk=m.chunk)


def files(launch, kit):
    """bridge.overrides and pretrain_bridge.py."""
    return {
        "bridge.overrides": render("bridge.overrides.j2", **megatron.values(launch, kit)),
        "pretrain_bridge.py": source("pretrain_bridge.py"),
    }
