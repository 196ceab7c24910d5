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


def gemm_law(
    points,
    bytes_per_s: float,
    passes: float,
):
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
    best, least = np.max(flops / seconds), np.min(seconds)
    low, logs, high = np.log(
        [[best * 0.2, 1e-8], [best * 1.05, max(least * 0.5, 1e-8)], [best * 3, np.max(seconds)]]
    )
    for _ in range(100):
        rate, start = np.exp(logs)
        total = flops / rate + start + extra
        error = np.log(total / seconds)
        jacobian = np.stack([-flops / rate / total, start / total], axis=1)
        step = np.linalg.solve(jacobian.T @ jacobian + 1e-6 * np.eye(2), -jacobian.T @ error)
        new = np.clip(logs + np.clip(step, -0.5, 0.5), low, high)
        if np.max(np.abs(new - logs)) < 1e-9:
            break
        logs = new
    return *np.exp(logs).tolist(), float(np.sqrt(np.mean(error**2)))


def saturation(points) -> dict:
    """The catalogue's form of a GEMM curve, rate = a G / (G + h): a [FLOP/s], h [FLOP] and the rms
    log error, from two points or more."""
    rate, start, rms = gemm_law(points, 1.0, 0.0)
    return {
        "flops_per_s": rate,
        "half_flop": rate * start,
        "rms_log_error": rms,
    }


def attention_share(
    points,
    chip,
    launch_s: float,
) -> float:
    """Median share of the bf16 peak, as blocks.kernels.attention_core_s defines it, over causal
    forward
    timings of flash attention.

    points: [{batch, seq_len, heads, head_dim, backend, seconds}].
    """
    half, tiles_half, older = (
        prior_of(name, chip) for name in ("attention_half", "attention_tiles", "attention_fa2")
    )
    peak = next(x for x in (chip.bf16_flops, chip.fp16_flops) if x == x)
    older = older if family(chip.family).modern else 1.0

    def share(p):
        s, heads, d = p["seq_len"], p["heads"], p["head_dim"]
        tokens = p["batch"] * s
        flops = 2 * tokens * s * heads * d
        law = s / (s + half) * (0.8 if d <= 64 else 1.0) * (older if p["backend"] == "flash" else 1)
        tiles = 1 + tiles_half / (heads * tokens / 128)
        return flops / (peak * law) / 1.08 * tiles / max(p["seconds"] - launch_s, 1e-9)

    return float(np.median([share(p) for p in points]))


def constants_of(
    curves: dict,
    chip,
    scale_out_bytes_per_s: float | None = None,
):
    """({constant: {value, unit, from}}, [{constant, value, why}]): what the curves say about a
    catalogue accelerator, and what was left out.

    curves: as measure writes them. scale_out_bytes_per_s: network rate per device, one direction;
    the accelerator's usual one if None.
    """
    found: dict = {}

    def say(
        name,
        value,
        origin,
    ):
        if value == value and value > 0:
            found[name] = (float(value), origin)

    memory = [
        p["bytes"] / p["seconds"] for p in curves.get("memory", []) if p["bytes"] >= LARGE_BYTES
    ]
    hbm = chip.hbm_bytes_per_s
    bytes_per_s = max(memory, default=hbm * prior_of("hbm_share", chip))
    if memory:
        origin = f"{len(memory)} copies, the fastest at {bytes_per_s / 1e9:.0f} GB/s"
        say("hbm_share", bytes_per_s / hbm, origin)
    launch_s = _gemms(
        curves.get("gemm", {}),
        chip,
        bytes_per_s,
        say,
    )
    best: dict = {}  # the fastest backend of each size
    for p in sorted(curves.get("attention", []), key=lambda p: p["seconds"]):
        if p.get("backend") in ("flash", "cudnn", "efficient") and p["seq_len"] >= 1024:
            best.setdefault((p["batch"], p["seq_len"], p["heads"], p["head_dim"]), p)
    if best:
        kinds = ", ".join(sorted({p["backend"] for p in best.values()}))
        share = attention_share(best.values(), chip, launch_s)
        say("attention", share, f"{len(best)} sizes of causal attention, {kinds}")
    _collectives(
        curves.get("collectives", []),
        chip,
        scale_out_bytes_per_s,
        say,
    )
    up = "scale_up_share"
    if up in found and implausible(up, found[up][0], chip):
        found.pop("ep_up_share", None)  # it is a ratio to that rate
    constants, left = {}, []
    for name, (value, origin) in found.items():
        why, prior = implausible(name, value, chip), prior_of(name, chip)
        if why:
            left.append(
                {
                    "constant": name,
                    "value": rounded(value),
                    "why": why,
                }
            )
        else:
            constants[name] = {
                "value": rounded(value),
                "unit": PRIORS[name].unit,
                "offset": round(math.log(value / prior), 4),
                "prior": rounded(prior),
                "from": origin,
            }
    return constants, left


def _gemms(
    gemm,
    chip,
    bytes_per_s,
    say,
):
    """Say what the products of each kind show; seconds of a kernel's launch."""
    launch_s = prior_of("gemm_launch_s", chip)
    shown = [d for d in (*HALF, "fp8") if len(gemm.get(d, ())) >= 3 and _peak(chip, d) > 0]
    for dtype in shown:
        if dtype == "fp16" and "bf16" in shown:
            continue
        points, half = gemm[dtype], dtype in HALF
        rate, start_s, rms = gemm_law(points, bytes_per_s, prior_of("gemm_bytes", chip))
        origin = f"{len(points)} sizes in {dtype}, rms {100 * rms:.0f} %"
        say("gemm" if half else "gemm_fp8", rate / _peak(chip, dtype), origin)
        if half:
            launch_s = start_s
            say("gemm_launch_s", launch_s, origin)
    return launch_s


def _peak(chip, dtype) -> float:
    """Dense peak [FLOP/s]; nan where the chip has no such unit."""
    return getattr(chip, f"{dtype}_flops")


def _collectives(
    points,
    chip,
    scale_out_bytes_per_s,
    say,
):
    """Shares of the rates that the model of collectives gives this chip's links, each the best that
    any large message reached."""
    out = scale_out_bytes_per_s or catalogue.default_scale_out_bytes_per_s(chip.id)
    up = chip.link_bytes_per_s

    def of(inside: bool, turns: bool):
        return [
            p
            for p in points
            if p["bytes"] >= LARGE_BYTES
            and p["ranks"] > 1
            and (p["ranks"] <= p["ranks_per_node"]) == inside
            and (p["op"] == "all_to_all") == turns
        ]

    rings, turns, across = of(True, False), of(True, True), of(False, False)
    if rings:
        share = _best(
            rings,
            lambda p, x: _alone_s(
                p,
                chip,
                x * up,
                out,
            ),
        )
        say("scale_up_share", share, f"{len(rings)} collectives of {rings[0]['ranks']} devices")
        up *= share
    if turns and rings:
        share = _best(
            turns,
            lambda p, x: _alone_s(
                p,
                chip,
                x * up,
                out,
            ),
        )
        say("ep_up_share", share, f"{len(turns)} all-to-alls beside {len(rings)} rings")
    if across:
        share = _best(
            across,
            lambda p, x: _alone_s(
                p,
                chip,
                up,
                x * out,
            ),
        )
        say("scale_out_share", share, f"{len(across)} collectives across nodes")


def _best(points, seconds) -> float:
    """The largest share x of the rates at which `seconds(point, x)` gives a measured time."""
    shares = []
    for p in points:
        x = 1.0
        for _ in range(30):  # seconds fall with x a little slower than 1/x
            x *= seconds(p, x) / p["seconds"]
        shares.append(x)
    return max(shares)


def _alone_s(
    point,
    chip,
    up_bytes_per_s: float,
    out_bytes_per_s: float,
) -> float:
    """Seconds that the model of collectives gives a measured point."""
    rates = dict(
        up_bytes_per_s=up_bytes_per_s,
        out_bytes_per_s=out_bytes_per_s,
    )
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

    def apart(chip):
        return abs(math.log(memory_bytes / chip.hbm_usable_bytes))

    near = [
        a
        for a in catalogue.accelerators().values()
        for own in [a.id.split("-")]
        if own[0] in words
        and all((form in own) == (form in words) for form in ("pcie", "nvl"))
        and apart(a) < 0.12
    ]
    return min(near, key=apart).id if near else None


def rounded(x: float) -> float:
    """Four digits of a number."""
    return float(f"{x:.4g}")
