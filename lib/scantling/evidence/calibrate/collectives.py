"""Fit the factors of the model of collectives on the published collective series; write
catalogue/collective_calibration.json.

`python -m scantling.evidence.calibrate.collectives`.

Loss: soft-L1 of the log error (scale 0.1), every series
weighing the same (single points
less), messages of 64 MiB and more 1.3 times, plus each factor over its prior's spread, squared.
Priors are NCCL's own figures where it
has them. For each of the 28 series of collective_fits.csv the fit is repeated without it, and
without the single published points of
the same devices and collective.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ... import catalogue
from ...base.records import take
from ...design.cluster_rules import build_cluster
from ...physics.cases import Link
from ...physics.collectives import (
    COLLECTIVES,
    CurveConstants,
    Wires,
    calibration,
    fastest,
    volume,
    wires,
)
from ..runs import link_facts

LARGE_BYTES = 2.0**26
LIMITS = {
    "large": 0.15,
    "small": 0.35,
}
WHOLE = "all of the fabric"
# fabrics of which no series is in any fit -> the catalogue's scale-out fabric there (the scale-up
# one follows from the accelerator)
OUTSIDE = {
    "xGMI": "rocev2-400",
    "RoCE 8x400G": "rocev2-400",
    "NVLink4 + TCPXO 8x200G": "gcp-tcpxo",
}
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
NAMES = {"alltoall": "all_to_all"}
ACCELERATORS = ("a100-80-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "gb200-nvl72")


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
        return take(self, keep)


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
    rows, links = [], []
    for name, s in catalogue.collective_series().items():
        collective = NAMES.get(s.collective, s.collective)
        if s.accelerator not in ACCELERATORS or collective not in COLLECTIVES:
            continue
        if name.endswith("_nvlstree") or "TCPXO" in s.fabric:
            continue
        link = _link(s, plain="nonvls" in name or "sharp_off" in name)
        ranks = float(s.devices)
        for size, bus in zip(s.message_bytes, s.busbw_bytes_per_s):
            seconds = float(volume(collective, ranks)) * size / bus
            inside = ranks / s.nvlink_domains
            rows.append((name, fabric_of(name), collective, size, seconds, ranks, inside))
            links.append(link)
    columns = [np.array(column) for column in zip(*rows)]
    link = Link(**{f: np.array([link[f] for link in links], float) for f in links[0]})
    return Points(*columns[:5], Wires(*columns[5:], link))


def _link(series, plain: bool) -> dict:
    """The links of a published series; `plain` where reduction in the switches was turned off."""
    chip = catalogue.accelerator(series.accelerator)
    efa = "EFA" in series.fabric
    facts = link_facts(chip, "efa-v2" if efa else "ib-ndr")
    return facts | dict(
        out_bytes_per_s=series.link_bytes_per_s if series.nvlink_domains > 1 else np.inf,
        nvls=0 if plain else facts["nvls"],
        sharp=1 if "SHARP" in series.fabric else 0,
    )


def predicted(p: Points, k: CurveConstants | None = None) -> np.ndarray:
    """Seconds of the algorithm that a library picks at every point."""
    seconds = np.full(len(p.series), np.nan)
    for collective in np.unique(p.collective):
        at = p.collective == collective
        seconds[at] = fastest(
            str(collective),
            p.message_bytes[at],
            take(p.wires, at),
            k,
        )
    return seconds


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
        values = np.where(logs, prior + x, prior * np.exp(np.where(logs, 0, x)))
        return CurveConstants(**dict(zip(names, values.tolist())))

    def residuals(x):
        error = np.log(predicted(p, build(x))) - target
        return np.r_[
            weight * np.sign(error) * np.sqrt(2 * (np.sqrt(1 + (error / 0.1) ** 2) - 1)),
            0.35 * x / spread,
        ]

    return build(
        least_squares(
            residuals,
            np.zeros(len(names)),
            diff_step=1e-4,
            max_nfev=60,
        ).x
    )


def errors(refit: bool = False) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Per series (message bytes, predicted / measured - 1), from constants fitted without it: those
    kept in the catalogue, or with `refit` fitted again."""
    p, kept = points(), calibration()["without"]
    return of_constants(
        p,
        {
            name: fit(p.take(~left_out(name, p))) if refit else CurveConstants(**kept[name])
            for name in scored()
        },
    )


def of_constants(p: Points, by_series: dict) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The same from given constants for each series."""
    own = {name: p.take(p.series == name) for name in by_series}
    return {
        name: (own[name].message_bytes, predicted(own[name], k) / own[name].seconds - 1)
        for name, k in by_series.items()
    }


def outside(k: CurveConstants | None = None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Per series of fabrics that no fit has seen (message bytes, predicted / measured - 1):
    constants of the other fabrics, wires of the catalogue."""
    out = {}
    for name, s in catalogue.collective_series().items():
        if s.fabric not in OUTSIDE or s.collective != "all_reduce":
            continue
        devices = 8 * s.nvlink_domains
        cluster = build_cluster(
            {
                "accelerator": s.accelerator,
                "devices": devices,
                "scale_out": OUTSIDE[s.fabric],
            }
        )[0]
        sizes, bus = np.asarray(s.message_bytes), np.asarray(s.busbw_bytes_per_s)
        took = fastest(
            "all_reduce",
            sizes,
            wires(cluster, s.devices, s.devices // s.nvlink_domains),
            k,
        )
        out[name] = (sizes, took * bus / (float(volume("all_reduce", s.devices)) * sizes) - 1)
    return out


def published_fabric(name: str) -> str:
    """Fabric of a series as its source spells it."""
    return catalogue.collective_series()[name].fabric


def table(found=None, fabric=fabric_of) -> list[dict]:
    """Rows by fabric, then by series: median error of large and small messages, counts; nan where
    there are no such points."""
    found = errors() if found is None else found
    groups: dict = {}
    for name in found:
        groups.setdefault(fabric(name), []).append(name)
    rows = [_row(own, WHOLE, [found[n] for n in names]) for own, names in groups.items()]
    rows += [_row(own, name, [found[name]]) for own, names in groups.items() for name in names]
    return rows


def _row(
    fabric,
    series,
    parts,
) -> dict:
    size = np.concatenate([s for s, _ in parts])
    error = np.abs(np.concatenate([e for _, e in parts]))
    large = size >= LARGE_BYTES
    row = {
        "fabric": fabric,
        "series": series,
        "count": len(parts),
    }
    for name, keep in (("large", large), ("small", ~large)):
        row[f"{name}_error"] = float(np.median(error[keep])) if keep.any() else float("nan")
        row[f"{name}_points"] = int(keep.sum())
    return row


def calibrate() -> None:
    """Fit on everything and without each series; write the calibration file."""
    p = points()
    whole = fit(p)
    without = {name: fit(p.take(~left_out(name, p))) for name in scored()}
    judged = table(of_constants(p, without)) + table(outside(whole), fabric=published_fabric)
    kept = ("fabric", "large_error", "small_error", "large_points", "small_points")
    out = {
        "made_by": "python -m scantling.evidence.calibrate.collectives",
        "points": len(p.series),
        "constants": asdict(whole),
        "without": {name: asdict(k) for name, k in without.items()},
        "errors": [{k: r[k] for k in kept} for r in judged if r["series"] == WHOLE],
    }
    path = Path(catalogue.HERE) / "collective_calibration.json"
    rounded = json.loads(
        json.dumps(out).replace("NaN", "null"), parse_float=lambda text: float(f"{float(text):.5g}")
    )
    path.write_text(json.dumps(rounded, indent=1) + "\n")
    print(f"{path.name}: {len(p.series)} points, {len(scored())} fits with one series left out")


def score(refit: bool = False) -> None:
    """Print how well the model predicts each series that was not in the fit."""
    rows = table(errors(refit))
    rows += table(outside(), fabric=lambda name: "not fitted: " + published_fabric(name))
    print(
        f"median |predicted/measured - 1| of the time, each series left out of its fit; "
        f"limits {LIMITS['large']:.0%} from 64 MiB, {LIMITS['small']:.0%} below"
    )
    print(f"{'fabric':36} {'series':30} {'>= 64 MiB':>10} {'below':>8}")
    for r in rows:
        large, small = (
            "-" if np.isnan(x) else f"{x:.1%}" for x in (r["large_error"], r["small_error"])
        )
        print(f"{r['fabric']:36} {r['series']:30} {large:>10} {small:>8}")


def main(arguments=None) -> None:
    """`--score` prints the errors of the kept fits, `--refit` those of new ones; else calibrate."""
    given = sys.argv[1:] if arguments is None else arguments
    if {"--score", "--refit"} & set(given):
        score("--refit" in given)
    else:
        calibrate()


if __name__ == "__main__":
    main()
