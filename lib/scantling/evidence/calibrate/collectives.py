"""Fit the factors of `curves` on the published collective series; write
catalogue/collective_calibration.json.

`python -m scantling.evidence.calibrate.collectives`. Loss: soft-L1 of the log error (scale 0.1), every series
weighing the same (single points
less), messages of 64 MiB and more 1.3 times, plus each factor over its prior's spread, squared.
Priors are NCCL's own figures where it
has them. For each of the 28 series of collective_fits.csv the fit is repeated without it, and
without the single published points of
the same devices and collective.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np

from ... import catalogue
from ...physics.curves import CurveConstants, Wires, fastest, volume

LARGE_BYTES = 2.0**26
# value, spread of the log (of the value itself where it is a log factor), source
PRIORS = {
    "ring_share": (0.76, 0.05, "busbw 367 of 450 and 682 of 900 (catalogue fabrics.csv)"),
    "ring_share_a100": (0.0, 0.05, "as the other generations"),
    "ring_share_b200": (0.0, 0.10, "as the other generations"),
    "nvls_share": (0.63, 0.10, "H200 473 of 450 GB/s at 8 devices over 2 x 7/9"),
    "nvls_share_b200": (0.0, 0.10, "as the other generations"),
    "nvls_share_rack": (0.80, 0.15, "assumed"),
    "nvls_share_across": (0.97, 0.05, "two nodes reach what one does"),
    "out_share": (0.86, 0.05, "331 to 357 of 400 (catalogue fabrics.csv)"),
    "out_share_efa": (0.05, 0.03, "0.85 to 0.95 against 0.83"),
    "tree_share": (0.50, 0.40, "NCCL's correction of Simple trees, 0.5 to 0.9"),
    "sharp_gain": (
        1.20,
        0.10,
        (
            "gain of reduction in the switches of one node, 1.23 to 1.29; about 1.3 in "
            "practice (scaling-book)"
        ),
    ),
    "direct_share": (0.83, 0.05, "as rings"),
    "start": (1.0, 0.15, "NCCL"),
    "hop_ll": (4.0, 0.50, "8-device all-reduce of 32 KiB, 31 to 48 us"),
    "hop": (1.0, 0.20, "NCCL"),
    "hop_out": (1.0, 0.10, "NCCL"),
    "hop_efa": (3.5, 0.80, "all-gather start-up by nodes"),
    "hop_tree": (1.5, 0.40, "assumed"),
    "nvls_start": (1.2, 0.70, "NCCL"),
    "nvls_start_rack": (1.0, 0.30, "assumed: by devices"),
    "direct_start": (5.0, 0.70, "assumed"),
    "direct_peer_s": (2.8e-6, 0.70, "start-up of all-to-all by devices"),
    "fill": (0.20, 1.0, "assumed"),
    "fill_out": (0.10, 1.0, "assumed"),
    "fill_direct": (0.30, 1.0, "assumed: as inside a domain"),
    "ring_share_wide": (1.0, 0.40, "as narrow ones"),
    "hop_wide": (1.0, 0.40, "as narrow ones"),
}
_LOGS = ("ring_share_a100", "ring_share_b200", "nvls_share_b200", "out_share_efa")
_GENERATION = {"a100-80-sxm": 0, "h100-sxm": 1, "h200-sxm": 1, "b200-sxm": 2, "gb200-nvl72": 2}
_NAMES = {"alltoall": "all_to_all"}


@dataclass(frozen=True)
class Points:
    """Published points as columns."""

    series: np.ndarray
    fabric: np.ndarray
    collective: np.ndarray
    message_bytes: np.ndarray
    seconds: np.ndarray
    wires: Wires

    def take(self, keep) -> Points:
        """The points at `keep`."""
        w = Wires(**{f.name: np.asarray(getattr(self.wires, f.name))[keep] for f in fields(Wires)})
        return Points(
            self.series[keep],
            self.fabric[keep],
            self.collective[keep],
            self.message_bytes[keep],
            self.seconds[keep],
            w,
        )


def scored() -> tuple[str, ...]:
    """The 28 series that the fit is judged on: those of collective_fits.csv."""
    return tuple(catalogue.collective_fits())


def fabric_of(name: str) -> str:
    """Fabric of a series, one spelling each."""
    text = catalogue.collective_series()[name].fabric
    return (
        "not stated, about 100 GB/s a node"
        if "unspecified" in text
        else text.replace("/NVSwitch", "").split(" (")[0]
    )


@cache
def points() -> Points:
    """All nccl-tests points of NVLink over InfiniBand or EFA: the 28 curves, and single points
    (ring forced, fewer devices, other sites)."""
    rows = []
    for name, s in catalogue.collective_series().items():
        collective = _NAMES.get(s.collective, s.collective)
        if s.accelerator not in _GENERATION or collective not in (
            "all_reduce",
            "all_gather",
            "reduce_scatter",
            "all_to_all",
        ):
            continue
        several, plain = s.nvlink_domains > 1, "nonvls" in name or "sharp_off" in name
        if name.endswith("_nvlstree") or "TCPXO" in s.fabric:
            continue
        efa = "EFA" in s.fabric
        for size, bus in zip(s.message_bytes, s.busbw_bytes_per_s):
            seconds = float(volume(collective, s.devices)) * size / bus
            rows.append(
                (
                    name,
                    fabric_of(name),
                    collective,
                    size,
                    seconds,
                    dict(
                        ranks=float(s.devices),
                        domains=float(s.nvlink_domains),
                        up_bytes_per_s=_link(s.accelerator),
                        generation=_GENERATION[s.accelerator],
                        out_bytes_per_s=s.link_bytes_per_s if several else np.inf,
                        up_share=np.nan,
                        up_hop_s=np.nan,
                        out_share=1.0,
                        out_hop=1.0,
                        ordered=0 if efa else 1,
                        efa=1 if efa else 0,
                        nvls=0 if plain or s.accelerator.startswith("a100") else 1,
                        sharp=1 if "SHARP" in s.fabric else 0,
                        mesh=0,
                    ),
                )
            )
    columns = [np.array([r[i] for r in rows]) for i in range(5)]
    return Points(
        *columns,
        Wires(**{f.name: np.array([r[5][f.name] for r in rows], float) for f in fields(Wires)}),
    )


def _link(accelerator: str) -> float:
    return catalogue.accelerator(accelerator).link_bytes_per_s


def left_out(name: str, p: Points) -> np.ndarray:
    """Points that a fit without this series may not see: its own, and single points of the same
    devices, domains and collective."""
    series, whole = catalogue.collective_series(), set(scored())
    one = series[name]
    same = {
        x
        for x in np.unique(p.series)
        if x == name
        or (
            x not in whole
            and all(
                getattr(series[x], f) == getattr(one, f)
                for f in ("accelerator", "devices", "nvlink_domains", "collective")
            )
        )
    }
    return np.isin(p.series, list(same))


def fit(p: Points) -> CurveConstants:
    """The factors that explain these points best."""
    from scipy.optimize import least_squares

    names = list(PRIORS)
    prior = np.array([PRIORS[n][0] for n in names])
    spread = np.array([PRIORS[n][1] for n in names])
    logs = np.isin(names, _LOGS)
    counts = dict(zip(*np.unique(p.series, return_counts=True)))
    weight = (
        1.5
        / np.sqrt(np.array([max(counts[s], 4) for s in p.series]))
        * np.where(p.message_bytes >= LARGE_BYTES, 1.3, 1.0)
    )
    target = np.log(p.seconds)

    def build(x):
        return CurveConstants(
            **dict(
                zip(
                    names,
                    (
                        float(v)
                        for v in np.where(logs, prior + x, prior * np.exp(np.where(logs, 0, x)))
                    ),
                )
            )
        )

    def residuals(x):
        error = np.log(fastest(p.collective, p.message_bytes, p.wires, build(x))) - target
        return np.r_[
            weight * np.sign(error) * np.sqrt(2 * (np.sqrt(1 + (error / 0.1) ** 2) - 1)),
            0.35 * x / spread,
        ]

    return build(least_squares(residuals, np.zeros(len(names)), diff_step=1e-4, max_nfev=60).x)


def _errors(p: Points, without: dict, whole: CurveConstants) -> list[dict]:
    from .collectives_score import of_constants, outside, table

    fitted = [
        r
        for r in table(of_constants(p, {name: CurveConstants(**k) for name, k in without.items()}))
        if r["series"] == "all of the fabric"
    ]
    return fitted + [
        r
        for r in table(
            outside(whole), fabric=lambda name: catalogue.collective_series()[name].fabric
        )
        if r["series"] == "all of the fabric"
    ]


def main() -> None:
    """Fit on everything and without each series; write the calibration file."""
    from dataclasses import asdict

    p = points()
    whole = fit(p)
    out = {
        "made_by": "python -m scantling.evidence.calibrate.collectives",
        "points": len(p.series),
        "constants": asdict(whole),
        "without": {name: asdict(fit(p.take(~left_out(name, p)))) for name in scored()},
    }
    out["errors"] = [
        {k: r[k] for k in ("fabric", "large_error", "small_error", "large_points", "small_points")}
        for r in _errors(p, out["without"], whole)
    ]
    path = Path(catalogue.HERE) / "collective_calibration.json"
    rounded = json.loads(
        json.dumps(out).replace("NaN", "null"), parse_float=lambda text: float(f"{float(text):.5g}")
    )
    path.write_text(json.dumps(rounded, indent=1) + "\n")
    print(f"{path.name}: {len(p.series)} points, {len(scored())} fits with one series left out")


if __name__ == "__main__":
    main()
