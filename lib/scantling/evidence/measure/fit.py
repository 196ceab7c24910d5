"""From measured seconds to constants: what GEMM, attention, copy and collective timings say about
the constants of the step model.

The laws are those of compute.py and collectives.py, solved for one constant at a time with the
others at their sourced priors.
"""

from __future__ import annotations

import math

import numpy as np

from ... import catalogue
from ...catalogue.families import family
from ...physics.calibration_file import implausible, prior_of
from ...physics.cases import Link
from ...physics.collectives import Wires, fastest
from ...physics.constants import PRIORS
from ..runs import link_facts

LARGE_BYTES = 32e6  # copies and collectives from here on show a rate
HALF = ("bf16", "fp16")


def gemm_law(points, bytes_per_s: float, passes: float):
    """(FLOP/s, seconds per kernel, root mean square log error) of 2mnk/R + passes x 2 (mk + kn +
    mn) / B + t0, fitted to log seconds.

    points: [{m, n, k, seconds}], two or more. At constant m = n = k without the middle term it is R
    G / (G + R t0), the a G / (G + h)
    of the catalogue.
    """
    m, n, k, seconds = (
        np.array([p[name] for p in points], float) for name in ("m", "n", "k", "seconds")
    )
    flops, extra = 2 * m * n * k, passes * 2 * (m * k + k * n + m * n) / bytes_per_s
    logs = np.log([np.max(flops / seconds) * 1.05, max(np.min(seconds) * 0.5, 1e-8)])
    low = np.log([np.max(flops / seconds) * 0.2, 1e-8])
    high = np.log([np.max(flops / seconds) * 3, np.max(seconds)])
    for _ in range(100):
        parts = np.stack([flops / np.exp(logs[0]), np.full_like(flops, np.exp(logs[1]))])
        total = parts.sum(axis=0) + extra
        error = np.log(total / seconds)
        jacobian = np.stack([-parts[0] / total, parts[1] / total], axis=1)
        step = np.linalg.solve(jacobian.T @ jacobian + 1e-6 * np.eye(2), -jacobian.T @ error)
        new = np.clip(logs + np.clip(step, -0.5, 0.5), low, high)
        if np.max(np.abs(new - logs)) < 1e-9:
            break
        logs = new
    return float(np.exp(logs[0])), float(np.exp(logs[1])), float(np.sqrt(np.mean(error**2)))


def saturation(points) -> dict:
    """The catalogue's form of a GEMM curve, rate = a G / (G + h): a [FLOP/s], h [FLOP] and the rms
    log error, from two points or more."""
    rate, start, rms = gemm_law(points, 1.0, 0.0)
    return {"flops_per_s": rate, "half_flop": rate * start, "rms_log_error": rms}


def attention_share(points, chip, launch_s: float) -> float:
    """Median share of the bf16 peak, as blocks.kernels.attention_core_s defines it, over causal
    forward
    timings of flash attention.

    points: [{batch, seq_len, heads, head_dim, backend, seconds}].
    """
    half, tiles_half, older = (
        prior_of(name, chip) for name in ("attention_half", "attention_tiles", "attention_fa2")
    )
    peak = next(x for x in (chip.bf16_flops, chip.fp16_flops) if x == x)
    shares = []
    for p in points:
        tokens, s, d = p["batch"] * p["seq_len"], p["seq_len"], p["head_dim"]
        flops = 2 * tokens * (s / 2) * p["heads"] * 2 * d
        law = (
            s
            / (s + half)
            * (0.8 if 2 * d <= 128 else 1.0)
            * (older if p["backend"] == "flash" and family(chip.family).modern else 1.0)
        )
        shares.append(
            flops
            / (peak * law)
            / 1.08
            * (1 + tiles_half / (p["heads"] * tokens / 128))
            / max(p["seconds"] - launch_s, 1e-9)
        )
    return float(np.median(shares))


def constants_of(curves: dict, chip, scale_out_bytes_per_s: float | None = None):
    """({constant: {value, unit, from}}, [{constant, value, why}]): what the curves say about a
    catalogue accelerator, and what was left out.

    curves: as measure writes them. scale_out_bytes_per_s: network rate per device, one direction;
    the accelerator's usual one if None.
    """
    found: dict = {}

    def say(name, value, origin):
        if value == value and value > 0:
            found[name] = (float(value), origin)

    memory = [
        p["bytes"] / p["seconds"] for p in curves.get("memory", []) if p["bytes"] >= LARGE_BYTES
    ]
    bytes_per_s = max(memory) if memory else chip.hbm_bytes_per_s * prior_of("hbm_share", chip)
    if memory:
        say(
            "hbm_share",
            bytes_per_s / chip.hbm_bytes_per_s,
            f"{len(memory)} copies, the fastest at {bytes_per_s / 1e9:.0f} GB/s",
        )
    launch_s = _gemms(curves, chip, bytes_per_s, say)
    points = [
        p
        for p in curves.get("attention", [])
        if p.get("backend") in ("flash", "cudnn", "efficient") and p["seq_len"] >= 1024
    ]
    if points:
        best = {}
        for p in points:  # the fastest backend of each size
            size = (p["batch"], p["seq_len"], p["heads"], p["head_dim"])
            if size not in best or p["seconds"] < best[size]["seconds"]:
                best[size] = p
        say(
            "attention",
            attention_share(best.values(), chip, launch_s),
            (
                f"{len(best)} sizes of causal attention, "
                f"{', '.join(sorted({p['backend'] for p in best.values()}))}"
            ),
        )
    _collectives(curves.get("collectives", []), chip, scale_out_bytes_per_s, say)
    if "scale_up_share" in found and implausible(
        "scale_up_share", found["scale_up_share"][0], chip
    ):
        found.pop("ep_up_share", None)  # it is a ratio to that rate
    constants, left = {}, []
    for name, (value, origin) in found.items():
        why = implausible(name, value, chip)
        if why:
            left.append({"constant": name, "value": _round(value), "why": why})
        else:
            prior = prior_of(name, chip)
            constants[name] = {
                "value": _round(value),
                "unit": PRIORS[name].unit,
                "offset": round(math.log(value / prior), 4),
                "prior": _round(prior),
                "from": origin,
            }
    return constants, left


def _gemms(curves, chip, bytes_per_s, say):
    launch_s = prior_of("gemm_launch_s", chip)
    gemm = curves.get("gemm", {})
    dtype = next((d for d in HALF if len(gemm.get(d, ())) >= 3 and _peak(chip, d)), None)
    if dtype:
        rate, launch_s, rms = gemm_law(gemm[dtype], bytes_per_s, prior_of("gemm_bytes", chip))
        origin = f"{len(gemm[dtype])} sizes in {dtype}, rms {100 * rms:.0f} %"
        say("gemm", rate / _peak(chip, dtype), origin)
        say("gemm_launch_s", launch_s, origin)
    if len(gemm.get("fp8", ())) >= 3 and _peak(chip, "fp8"):
        rate, _, rms = gemm_law(gemm["fp8"], bytes_per_s, prior_of("gemm_bytes", chip))
        say(
            "gemm_fp8",
            rate / _peak(chip, "fp8"),
            f"{len(gemm['fp8'])} sizes in fp8, rms {100 * rms:.0f} %",
        )
    return launch_s


def _peak(chip, dtype) -> float:
    peak = {"bf16": chip.bf16_flops, "fp16": chip.fp16_flops, "fp8": chip.fp8_flops}[dtype]
    return 0.0 if peak != peak else peak


def _collectives(points, chip, scale_out_bytes_per_s, say):
    """Shares of the rates that the model of collectives gives this chip's links, each the best that
    any large message reached."""
    out = scale_out_bytes_per_s or catalogue.default_scale_out_bytes_per_s(chip.id)
    large = [p for p in points if p["bytes"] >= LARGE_BYTES]
    inside = [p for p in large if 1 < p["ranks"] <= p["ranks_per_node"]]
    across = [p for p in large if p["ranks"] > p["ranks_per_node"]]
    up_bytes_per_s = chip.link_bytes_per_s
    rings = [p for p in inside if p["op"] != "all_to_all"]
    if rings:
        share = _best(rings, lambda p, x: _alone_s(p, chip, x * up_bytes_per_s, out))
        up_bytes_per_s *= share
        say("scale_up_share", share, f"{len(rings)} collectives of {rings[0]['ranks']} devices")
    turns = [p for p in inside if p["op"] == "all_to_all"]
    if turns and rings:
        share = _best(turns, lambda p, x: _alone_s(p, chip, x * up_bytes_per_s, out))
        say("ep_up_share", share, f"{len(turns)} all-to-alls beside {len(rings)} rings")
    rings = [p for p in across if p["op"] != "all_to_all"]
    if rings:
        share = _best(rings, lambda p, x: _alone_s(p, chip, up_bytes_per_s, x * out))
        say("scale_out_share", share, f"{len(rings)} collectives across nodes")


def _best(points, seconds) -> float:
    """The largest share x of the rates at which `seconds(point, x)` gives a measured time."""
    shares = []
    for p in points:
        x = 1.0
        for _ in range(30):  # seconds fall with x a little slower than 1/x
            x *= seconds(p, x) / p["seconds"]
        shares.append(x)
    return max(shares)


def _alone_s(point, chip, up_bytes_per_s: float, out_bytes_per_s: float) -> float:
    """Seconds that the model of collectives gives a measured point."""
    rates = dict(up_bytes_per_s=up_bytes_per_s, out_bytes_per_s=out_bytes_per_s)
    link = Link(**link_facts(chip) | rates)
    ranks = point["ranks"]
    w = Wires(ranks, min(ranks, point["ranks_per_node"]), link)
    return float(fastest(point["op"], point["bytes"], w))


def match(name: str, memory_bytes: float) -> str | None:
    """The catalogue id of a device by the name and memory that its driver reports; None where
    nothing fits.

    "NVIDIA H100 80GB HBM3" is h100-sxm, "NVIDIA H100 PCIe" h100-pcie: the model word must be in the
    name, the form as well,
    and the memory that a program can have decides between the rest.
    """
    words = name.lower().replace("-", " ").split()
    near = [a for a in catalogue.accelerators().values() if a.id.split("-")[0] in words]
    near = [
        a
        for a in near
        if ("pcie" in a.id) == ("pcie" in words) and ("nvl" in a.id.split("-")) == ("nvl" in words)
    ]
    near = [a for a in near if abs(math.log(memory_bytes / a.hbm_usable_bytes)) < 0.12]
    return (
        min(near, key=lambda a: abs(math.log(memory_bytes / a.hbm_usable_bytes))).id
        if near
        else None
    )


def _round(x: float) -> float:
    return float(f"{x:.4g}")
