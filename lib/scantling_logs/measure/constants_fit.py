"""From measured seconds to constants: what GEMM, attention, copy and collective timings say about
the constants of the step model.

The laws are those of compute.py and collectives.py, solved for one constant at a time with the
others at their sourced priors.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scantling import catalogue
from scantling.base.columns import Array
from scantling.catalogue.families import family
from scantling.catalogue.hardware import Accelerator
from scantling.physics.calibration_file import implausible, prior_of
from scantling.physics.collectives import fastest
from scantling.physics.constants import PRIORS
from scantling.physics.wires import Link, Wires
from scantling.runs.links import link_of_chip

from .points import (
    AttentionPoint,
    CollectivePoint,
    ConstantEntry,
    Curves,
    GemmPoint,
    LeftOut,
    Saturation,
)

LARGE_BYTES = 32e6  # copies and collectives from here on show a rate
MEMORY_APART = 0.12  # of ln of the memory of a device and of its row, at most
SOLVED = 30  # rounds: seconds fall with the share a little slower than 1 / share
BACKENDS = ("flash", "cudnn", "efficient")


class GemmLaw(NamedTuple):
    """Constants of the seconds of matrix products."""

    flops_per_s: float
    launch_s: float  # of a kernel
    rms_log_error: float


class Estimate(NamedTuple):
    """A measured constant and what it comes from."""

    value: float
    origin: str


def gemm_law(
    points: Sequence[GemmPoint], bytes_per_s: float, passes: float, width: float = 2.0
) -> GemmLaw:
    """2mnk/R + passes x (w (mk + kn) + 2 mn) / B + t0, fitted to log seconds of two or more points;
    w: `width`, bytes of an operand's element.

    At constant m = n = k without the middle term it is R G / (G + R t0), the a G / (G + h) of the
    catalogue.
    """
    from scipy.optimize import least_squares

    m = np.array([p["m"] for p in points], float)
    n = np.array([p["n"] for p in points], float)
    k = np.array([p["k"] for p in points], float)
    seconds = np.array([p["seconds"] for p in points], float)
    flops = 2 * m * n * k
    extra = passes * (width * (m * k + k * n) + 2 * m * n) / bytes_per_s
    best = np.max(flops / seconds)
    least = max(np.min(seconds), 4e-8)
    low, first, high = np.log(
        [[best * 0.2, 1e-8], [best * 1.05, least / 2], [best * 3, np.max(seconds) + least]]
    )

    def error(logs: Array) -> Array:
        rate, start = np.exp(logs)
        return np.asarray(np.log((flops / rate + start + extra) / seconds))

    fit = least_squares(error, first, bounds=(low, high), xtol=1e-10)
    rate, launch_s = np.exp(fit.x).tolist()
    return GemmLaw(rate, launch_s, float(np.sqrt(np.mean(fit.fun**2))))


def saturation(points: Sequence[GemmPoint]) -> Saturation:
    """The catalogue's form of a GEMM curve, rate = a G / (G + h): a [FLOP/s], h [FLOP] and the rms
    log error, from two points or more."""
    law = gemm_law(points, 1.0, 0.0)
    return Saturation(
        flops_per_s=law.flops_per_s,
        half_flop=law.flops_per_s * law.launch_s,
        rms_log_error=law.rms_log_error,
    )


def attention_share(points: Iterable[AttentionPoint], chip: Accelerator, launch_s: float) -> float:
    """Median share of the bf16 peak, as blocks.kernels.attention_core_s defines it, over causal
    forward timings of flash attention."""
    half = prior_of("attention_half", chip)
    tiles_half = prior_of("attention_tiles", chip)
    older = prior_of("attention_fa2", chip)
    forward = prior_of("attention_forward", chip)
    peak = next(x for x in (chip.bf16_flops, chip.fp16_flops) if x == x)
    older = older if family(chip.family).modern else 1.0

    def share(p: AttentionPoint) -> float:
        s, heads, d = p["seq_len"], p["heads"], p["head_dim"]
        tokens = p["batch"] * s
        flops = 2 * tokens * s * heads * d
        law = s / (s + half) * (0.8 if d <= 64 else 1.0) * (older if p["backend"] == "flash" else 1)
        tiles = 1 + tiles_half / (heads * tokens / 128)
        return flops / (peak * law) / forward * tiles / max(p["seconds"] - launch_s, 1e-9)

    return float(np.median([share(p) for p in points]))


def constants_of(
    curves: Curves, chip: Accelerator, scale_out_bytes_per_s: float | None = None
) -> tuple[dict[str, ConstantEntry], list[LeftOut]]:
    """What the curves say about a catalogue accelerator, and what was left out.

    curves: as measure writes them. scale_out_bytes_per_s: network rate per device, one direction;
    the accelerator's usual one if None.
    """
    estimates = estimates_of(curves, chip, scale_out_bytes_per_s)
    constants = {}
    left_out = []
    for name, (value, origin) in estimates.items():
        if not value > 0:
            continue
        why = implausible(name, value, chip)
        prior = prior_of(name, chip)
        if why:
            left_out.append(LeftOut(constant=name, value=rounded(value), why=why))
            continue
        entry: ConstantEntry = {
            "value": rounded(value),
            "unit": PRIORS[name].unit,
            "offset": round(math.log(value / prior), 4),
            "prior": rounded(prior),
            "from": origin,
        }
        constants[name] = entry
    return constants, left_out


def estimates_of(
    curves: Curves, chip: Accelerator, scale_out_bytes_per_s: float | None
) -> dict[str, Estimate]:
    """Every constant that the curves show, plausible or not."""
    estimates = {}
    hbm = chip.hbm_bytes_per_s
    memory = [
        p["bytes"] / p["seconds"] for p in curves.get("memory", []) if p["bytes"] >= LARGE_BYTES
    ]
    bytes_per_s = max(memory, default=hbm * prior_of("hbm_share", chip))
    if memory:
        origin = f"{len(memory)} copies, the fastest at {bytes_per_s / 1e9:.0f} GB/s"
        estimates["hbm_share"] = Estimate(bytes_per_s / hbm, origin)
    estimates |= _gemms(curves.get("gemm", {}), chip, bytes_per_s)
    sizes = fastest_attention(curves.get("attention", []))
    if sizes:
        launch = estimates.get("gemm_launch_s")
        launch_s = launch.value if launch else prior_of("gemm_launch_s", chip)
        backends = ", ".join(sorted({p["backend"] for p in sizes}))
        share = attention_share(sizes, chip, launch_s)
        origin = f"{len(sizes)} sizes of causal attention, {backends}"
        estimates["attention"] = Estimate(share, origin)
    estimates |= _collectives(curves.get("collectives", []), chip, scale_out_bytes_per_s)
    up = estimates.get("scale_up_share")
    if up and implausible("scale_up_share", up.value, chip):
        estimates.pop("ep_up_share", None)  # it is a ratio to that rate
    return estimates


def fastest_attention(points: Iterable[AttentionPoint]) -> list[AttentionPoint]:
    """The fastest backend of each size."""
    fastest_of: dict[tuple[int, int, int, int], AttentionPoint] = {}
    for p in sorted(points, key=lambda p: p["seconds"]):
        if p.get("backend") in BACKENDS and p["seq_len"] >= 1024:
            size = (p["batch"], p["seq_len"], p["heads"], p["head_dim"])
            fastest_of.setdefault(size, p)
    return list(fastest_of.values())


def _gemms(
    curves: Mapping[str, list[GemmPoint]], chip: Accelerator, bytes_per_s: float
) -> dict[str, Estimate]:
    """What the products of each precision show."""
    estimates: dict[str, Estimate] = {}
    for precision, peak, name, width in (
        ("bf16", chip.bf16_flops, "gemm", 2.0),
        ("fp16", chip.fp16_flops, "gemm", 2.0),
        ("fp8", chip.fp8_flops, "gemm_fp8", 1.0),
    ):
        points = curves.get(precision, [])
        if name not in estimates and len(points) >= 3 and peak > 0:
            law = gemm_law(points, bytes_per_s, prior_of("gemm_bytes", chip), width)
            origin = f"{len(points)} sizes in {precision}, rms {100 * law.rms_log_error:.0f} %"
            estimates[name] = Estimate(law.flops_per_s / peak, origin)
            if name == "gemm":
                estimates["gemm_launch_s"] = Estimate(law.launch_s, origin)
    return estimates


def _collectives(
    points: Iterable[CollectivePoint], chip: Accelerator, scale_out_bytes_per_s: float | None
) -> dict[str, Estimate]:
    """Shares of the rates that the model of collectives gives this chip's links, each the best that
    any large message reached."""
    link = link_of_chip(chip)
    if scale_out_bytes_per_s:
        link = replace(link, out_bytes_per_s=scale_out_bytes_per_s)
    rings: list[CollectivePoint] = []
    turns: list[CollectivePoint] = []
    across: list[CollectivePoint] = []
    for p in points:
        if p["bytes"] < LARGE_BYTES or p["ranks"] <= 1:
            continue
        inside = p["ranks"] <= p["ranks_per_node"]
        if p["op"] != "all_to_all":
            (rings if inside else across).append(p)
        elif inside:
            turns.append(p)
    estimates = {}
    if rings:
        share = max(share_inside(p, link) for p in rings)
        link = replace(link, up_bytes_per_s=share * link.up_bytes_per_s)
        origin = f"{len(rings)} collectives of {rings[0]['ranks']} devices"
        estimates["scale_up_share"] = Estimate(share, origin)
        if turns:
            origin = f"{len(turns)} all-to-alls beside {len(rings)} rings"
            best = max(share_inside(p, link) for p in turns)
            estimates["ep_up_share"] = Estimate(best, origin)
    if across:
        best = max(share_across(p, link) for p in across)
        origin = f"{len(across)} collectives across nodes"
        estimates["scale_out_share"] = Estimate(best, origin)
    return estimates


def share_inside(p: CollectivePoint, link: Link) -> float:
    """The share of the rate inside a domain at which the model of collectives gives a measured
    time."""
    share = 1.0
    for _ in range(SOLVED):
        slower = replace(link, up_bytes_per_s=share * link.up_bytes_per_s)
        share *= seconds_on(p, slower) / p["seconds"]
    return share


def share_across(p: CollectivePoint, link: Link) -> float:
    """The same of the rate across domains."""
    share = 1.0
    for _ in range(SOLVED):
        slower = replace(link, out_bytes_per_s=share * link.out_bytes_per_s)
        share *= seconds_on(p, slower) / p["seconds"]
    return share


def seconds_on(p: CollectivePoint, link: Link) -> float:
    """Seconds that the model of collectives gives a message on some links."""
    wires = Wires(p["ranks"], min(p["ranks"], p["ranks_per_node"]), link)
    return float(fastest(p["op"], p["bytes"], wires))


def match(name: str, memory_bytes: float) -> str | None:
    """The catalogue id of a device by the name and memory that its driver reports; None where
    nothing fits.

    "NVIDIA H100 80GB HBM3" is h100-sxm, "NVIDIA H100 PCIe" h100-pcie: the model word must be in the
    name, the form as well, and the memory that a program can have decides between the rest.
    """
    words = name.lower().replace("-", " ").split()

    best = None
    least = MEMORY_APART
    for chip in catalogue.accelerators().values():
        parts = chip.id.split("-")
        same_form = all((form in parts) == (form in words) for form in ("pcie", "nvl"))
        apart = abs(math.log(memory_bytes / chip.hbm_usable_bytes))
        if not {parts[0], *chip.aliases}.isdisjoint(words) and same_form and apart < least:
            best, least = chip.id, apart
    return best


def rounded(x: float) -> float:
    """Four digits of a number."""
    return float(f"{x:.4g}")
