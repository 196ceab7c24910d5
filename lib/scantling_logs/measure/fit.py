"""From measured seconds to constants: what GEMM, attention, copy and collective timings say about
the constants of the step model.

The laws are those of compute.py and collectives.py, solved for one constant at a time with the
others at their sourced priors.
"""

import math
from dataclasses import replace
from operator import itemgetter

import numpy as np
from scantling import catalogue
from scantling.catalogue.families import family
from scantling.physics.calibration_file import implausible, prior_of
from scantling.physics.collectives import fastest
from scantling.physics.constants import PRIORS
from scantling.physics.wires import Link, Wires
from scantling.runs.read import link_facts

LARGE_BYTES = 32e6  # copies and collectives from here on show a rate
HALF = ("bf16", "fp16")
SIZE = itemgetter("batch", "seq_len", "heads", "head_dim")


def gemm_law(points, bytes_per_s: float, passes: float):
    """(FLOP/s, seconds per kernel, root mean square log error) of 2mnk/R + passes x 2 (mk + kn +
    mn) / B + t0, fitted to log seconds.

    points: [{m, n, k, seconds}], two or more. At constant m = n = k without the middle term it is R
    G / (G + R t0), the a G / (G + h)
    of the catalogue.
    """
    from scipy.optimize import least_squares

    m, n, k, seconds = (
        np.array([p[name] for p in points], float) for name in ("m", "n", "k", "seconds")
    )
    flops = 2 * m * n * k
    extra = passes * 2 * (m * k + k * n + m * n) / bytes_per_s
    best = np.max(flops / seconds)
    least = max(np.min(seconds), 4e-8)
    low, first, high = np.log(
        [[best * 0.2, 1e-8], [best * 1.05, least / 2], [best * 3, np.max(seconds) + least]]
    )

    def error(logs):
        rate, start = np.exp(logs)
        return np.log((flops / rate + start + extra) / seconds)

    found = least_squares(error, first, bounds=(low, high), xtol=1e-10)
    return *np.exp(found.x).tolist(), float(np.sqrt(np.mean(found.fun**2)))


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
    names = ("half", "tiles", "fa2", "forward")
    half, tiles_half, older, forward = (prior_of(f"attention_{name}", chip) for name in names)
    peak = next(x for x in (chip.bf16_flops, chip.fp16_flops) if x == x)
    older = older if family(chip.family).modern else 1.0

    def share(p):
        batch, s, heads, d = SIZE(p)
        tokens = batch * s
        flops = 2 * tokens * s * heads * d
        law = s / (s + half) * (0.8 if d <= 64 else 1.0) * (older if p["backend"] == "flash" else 1)
        tiles = 1 + tiles_half / (heads * tokens / 128)
        return flops / (peak * law) / forward * tiles / max(p["seconds"] - launch_s, 1e-9)

    return float(np.median([share(p) for p in points]))


def constants_of(curves: dict, chip, scale_out_bytes_per_s: float | None = None):
    """({constant: {value, unit, from}}, [{constant, value, why}]): what the curves say about a
    catalogue accelerator, and what was left out.

    curves: as measure writes them. scale_out_bytes_per_s: network rate per device, one direction;
    the accelerator's usual one if None.
    """
    found = {}
    memory = [
        p["bytes"] / p["seconds"] for p in curves.get("memory", []) if p["bytes"] >= LARGE_BYTES
    ]
    hbm = chip.hbm_bytes_per_s
    bytes_per_s = max(memory, default=hbm * prior_of("hbm_share", chip))
    if memory:
        origin = f"{len(memory)} copies, the fastest at {bytes_per_s / 1e9:.0f} GB/s"
        found["hbm_share"] = bytes_per_s / hbm, origin
    found |= _gemms(curves.get("gemm", {}), chip, bytes_per_s)
    best = {}  # the fastest backend of each size
    for p in sorted(curves.get("attention", []), key=itemgetter("seconds")):
        if p.get("backend") in ("flash", "cudnn", "efficient") and p["seq_len"] >= 1024:
            best.setdefault(SIZE(p), p)
    if best:
        launch_s, _ = found.get("gemm_launch_s", (prior_of("gemm_launch_s", chip), ""))
        kinds = ", ".join(sorted({p["backend"] for p in best.values()}))
        share = attention_share(best.values(), chip, launch_s)
        found["attention"] = share, f"{len(best)} sizes of causal attention, {kinds}"
    found |= _collectives(curves.get("collectives", []), chip, scale_out_bytes_per_s)
    up = "scale_up_share"
    if up in found and implausible(up, found[up][0], chip):
        found.pop("ep_up_share", None)  # it is a ratio to that rate
    constants = {}
    left = []
    for name, (value, origin) in found.items():
        if not value > 0:
            continue
        why = implausible(name, value, chip)
        prior = prior_of(name, chip)
        if why:
            left.append({"constant": name, "value": rounded(value), "why": why})
        else:
            constants[name] = {
                "value": rounded(value),
                "unit": PRIORS[name].unit,
                "offset": round(math.log(value / prior), 4),
                "prior": rounded(prior),
                "from": origin,
            }
    return constants, left


def _gemms(gemm, chip, bytes_per_s) -> dict:
    """What the products of each kind show: {constant: (value, origin)}."""
    found = {}
    for dtype in (*HALF, "fp8"):
        points = gemm.get(dtype, ())
        peak = getattr(chip, f"{dtype}_flops")
        name = "gemm" if dtype in HALF else "gemm_fp8"
        if name not in found and len(points) >= 3 and peak > 0:
            rate, start_s, rms = gemm_law(points, bytes_per_s, prior_of("gemm_bytes", chip))
            origin = f"{len(points)} sizes in {dtype}, rms {100 * rms:.0f} %"
            found[name] = rate / peak, origin
            if dtype in HALF:
                found["gemm_launch_s"] = start_s, origin
    return found


def _collectives(points, chip, scale_out_bytes_per_s) -> dict:
    """Shares of the rates that the model of collectives gives this chip's links, each the best that
    any large message reached: {constant: (value, origin)}."""
    link = Link(**link_facts(chip))
    found = {}
    if scale_out_bytes_per_s:
        link = replace(link, out_bytes_per_s=scale_out_bytes_per_s)
    rings = []
    turns = []
    across = []
    for p in points:
        if p["bytes"] >= LARGE_BYTES and p["ranks"] > 1:
            inside = p["ranks"] <= p["ranks_per_node"]
            turn = p["op"] == "all_to_all"
            if inside or not turn:
                (turns if turn else rings if inside else across).append(p)
    if rings:
        share = _reached(rings, link, "up_bytes_per_s")
        link = replace(link, up_bytes_per_s=share * link.up_bytes_per_s)
        found["scale_up_share"] = share, f"{len(rings)} collectives of {rings[0]['ranks']} devices"
        if turns:
            found["ep_up_share"] = (
                _reached(turns, link, "up_bytes_per_s"),
                f"{len(turns)} all-to-alls beside {len(rings)} rings",
            )
    if across:
        share = _reached(across, link, "out_bytes_per_s")
        found["scale_out_share"] = share, f"{len(across)} collectives across nodes"
    return found


def _reached(points, link, rate) -> float:
    """The largest share of a rate of the link (a field of it) at which the model of collectives
    gives a measured time."""
    shares = []
    for p in points:
        share = 1.0
        ranks = p["ranks"]
        for _ in range(30):  # seconds fall with the share a little slower than 1 / share
            share *= (
                float(
                    fastest(
                        p["op"],
                        p["bytes"],
                        Wires(
                            ranks,
                            min(ranks, p["ranks_per_node"]),
                            replace(link, **{rate: share * getattr(link, rate)}),
                        ),
                    )
                )
                / p["seconds"]
            )
        shares.append(share)
    return max(shares)


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
