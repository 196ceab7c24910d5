"""671B for the price of 37B? A sparse model on 2,048 devices: what the experts save, what they
send, and what the saving costs."""

from __future__ import annotations

import math

from scantling.catalogue.models.shape import flops_per_token
from scantling.physics import pipeline
from scantling.physics.memory.peak import memory_by_stage

from .base import swept


def _stage_weights(assessment):
    """Weights on a device in the middle of the pipeline. [bytes]"""
    stages = memory_by_stage(assessment.chosen.case)
    return stages[len(stages) // 2]["weights"]


# ---- memory


def held(
    parts,
    total,
    pp,
    /,
    ep,
    bytes_per_param=6,
):
    """Weights and fp32 gradients on a device of an average stage."""
    routed = parts.routed_experts
    return ((total - routed) / pp + routed / pp / ep) * bytes_per_param


def least_ep(
    held,
    half,
    /,
    bytes_per_param=6,
):
    return next(ep for ep in (1, 2, 4, 8, 16, 32, 64, 128, 256) if held(ep, bytes_per_param) < half)


# ---- all-to-all


def kit_ratio(plain):
    """Compute of the layers over their all-to-all, at the rates that the kit believes."""
    s = plain.step_breakdown_s
    return sum(s[k] for k in ("gemm", "attention", "elementwise")) / next(
        r["time_s"] for r in plain.as_dict()["communication"] if r["axis"] == "ep"
    )


# ---- schedule


def dualpipe_answer():
    return "b" if pipeline.weight_copies("dualpipe") == 2 else "a"


def run_weights(run):
    return _stage_weights(run)


def plain_weights(plain):
    return _stage_weights(plain)


# ---- load


def expert_share(model, seq_len):
    flops = flops_per_token(model, seq_len)
    return flops.routed_experts / flops.total


# ---- the rack-scale machine


def by_ep(node_bf16, rack_bf16):
    """{machine: {ep: assessment}}, bf16 on both so that the chips' formats play no part."""
    machines = {
        "h800-sxm": node_bf16,
        "gb200-nvl72": rack_bf16,
    }
    return {
        name: swept(
            design,
            "ep",
            8,
            16,
            32,
            64,
        )
        for name, design in machines.items()
    }


def best_ep(by_ep, /, name):
    return min(
        by_ep[name],
        key=lambda ep: by_ep[name][ep].step_s if by_ep[name][ep].chosen.fits else math.inf,
    )


def node_share(by_ep):
    a = by_ep["h800-sxm"][64]
    return a.step_breakdown_s["ep"] / a.step_s


def rack_share(by_ep):
    a = by_ep["gb200-nvl72"][64]
    return a.step_breakdown_s["ep"] / a.step_s


def rack_answer(rack_share, node_share):
    return "a" if rack_share < 0.9 * node_share else "b"
