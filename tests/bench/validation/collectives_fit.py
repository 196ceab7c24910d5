"""Fit the factors of the model of collectives on the published collective series; write
catalogue/collective_calibration.json.

`python -m tests.bench.validation.collectives_fit`.

Loss: soft-L1 of the log error (scale 0.1), every series weighing the same (single points less),
messages of 64 MiB and more 1.3 times, plus each factor over its prior's spread, squared. Priors are
NCCL's own figures where it has them. For each of the 28 series of collective_fits.csv the fit is
repeated without it, and without the single published points of the same devices and collective.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from scantling import catalogue
from scantling.base.files import csv_rows
from scantling.base.records import Lines, take
from scantling.design.cluster_rules import build_cluster
from scantling.physics.collectives import fastest, volume, wires
from scantling.physics.wires import CurveConstants
from scantling_logs.collective_points import Points, fabric_of, points

from .robust import robust

LARGE_BYTES = 2.0**26
# fabrics of which no series is in any fit -> the catalogue's scale-out fabric there (the scale-up
# one follows from the accelerator)
OUTSIDE = {"xGMI": "rocev2-400", "RoCE 8x400G": "rocev2-400", "NVLink4 + TCPXO 8x200G": "gcp-tcpxo"}


class Prior(NamedTuple):
    """A factor before any fit: its value, the spread of its log (of the value itself where it is a
    log factor), and who says so."""

    value: float
    spread: float
    is_log: bool
    source: str


PRIORS = {
    name: Prior(float(value), float(spread), is_log == "1", source)
    for name, value, spread, is_log, source, _ in map(
        dict.values, csv_rows(catalogue.HERE / "collective_priors.csv")
    )
}


def scored() -> Lines:
    """The 28 series that the fit is judged on: those of collective_fits.csv."""
    return tuple(row["series"] for row in catalogue.rows("collective_fits", "series"))


def predicted(p: Points, k: CurveConstants | None = None) -> np.ndarray:
    """Seconds of the algorithm that a library picks at every point."""
    seconds = np.full(len(p.series), np.nan)
    for collective in np.unique(p.collective):
        at = p.collective == collective
        links = take(p.wires, at)
        links = replace(links, k=k) if k else links
        seconds[at] = fastest(str(collective), p.message_bytes[at], links)
    return seconds


def left_out(name: str, p: Points) -> np.ndarray:
    """Points that a fit without this series may not see: its own, and single points of the same
    devices, domains and collective."""
    series = catalogue.collective_series()
    whole = scored()
    what = attrgetter("accelerator", "devices", "nvlink_domains", "collective")
    same = [
        x
        for x in np.unique(p.series)
        if x == name or (x not in whole and what(series[x]) == what(series[name]))
    ]
    return np.isin(p.series, same)


def fit(p: Points) -> CurveConstants:
    """The factors that explain these points best."""
    from scipy.optimize import least_squares

    prior, spread, logs, _ = map(np.array, zip(*PRIORS.values()))
    _, series, counts = np.unique(p.series, return_inverse=True, return_counts=True)
    large = p.message_bytes >= LARGE_BYTES
    weight = 1.5 / np.sqrt(np.maximum(counts, 4))[series] * np.where(large, 1.3, 1.0)
    target = np.log(p.seconds)

    def build(x):
        values = np.where(logs, prior + x, prior * np.exp(x * ~logs))
        return CurveConstants(**dict(zip(PRIORS, values.tolist())))

    def residuals(x):
        return np.r_[
            weight * robust((np.log(predicted(p, build(x))) - target) / 0.1), 0.35 * x / spread
        ]

    return build(least_squares(residuals, np.zeros(len(prior)), diff_step=1e-4, max_nfev=60).x)


def errors(names: Lines) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Per series (message bytes, predicted / measured - 1), each from constants fitted without
    it."""
    p = points()
    own = {name: p.take(p.series == name) for name in names}
    without = {name: fit(p.take(~left_out(name, p))) for name in names}
    return {
        name: (own[name].message_bytes, predicted(own[name], k) / own[name].seconds - 1)
        for name, k in without.items()
    }


def outside(k: CurveConstants | None = None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Per series of fabrics that no fit has seen (message bytes, predicted / measured - 1):
    constants of the other fabrics, wires of the catalogue."""
    out = {}
    for name, s in catalogue.collective_series().items():
        if s.fabric not in OUTSIDE or s.collective != "all_reduce":
            continue
        cluster, *_ = build_cluster(
            {
                "accelerator": s.accelerator,
                "devices": 8 * s.nvlink_domains,
                "scale_out": OUTSIDE[s.fabric],
            }
        )
        sizes = np.asarray(s.message_bytes)
        bus = np.asarray(s.busbw_bytes_per_s)
        links = wires(cluster, s.devices, s.devices // s.nvlink_domains)
        took = fastest("all_reduce", sizes, replace(links, k=k) if k else links)
        out[name] = (sizes, took * bus / (float(volume("all_reduce", s.devices)) * sizes) - 1)
    return out


def published_fabric(name: str) -> str:
    """Fabric of a series as its source spells it."""
    return catalogue.collective_series()[name].fabric


def table(found, fabric=fabric_of) -> list[dict]:
    """Rows by fabric: median error of large and small messages, counts; nan where there are no such
    points."""
    groups: dict = {}
    for name, errors_of in found.items():
        groups.setdefault(fabric(name), []).append(errors_of)
    return [_row(own, parts) for own, parts in groups.items()]


def _row(fabric, parts) -> dict:
    size = np.concatenate([s for s, _ in parts])
    error = np.abs(np.concatenate([e for _, e in parts]))
    large = size >= LARGE_BYTES
    row = {"fabric": fabric}
    for name, keep in (("large", large), ("small", ~large)):
        row[f"{name}_error"] = np.median(error[keep]) if keep.any() else np.nan
        row[f"{name}_points"] = int(keep.sum())
    return row


def calibrate() -> None:
    """Fit on everything and without each series; write the calibration file."""
    p = points()
    whole = fit(p)
    out = {
        "made_by": "python -m tests.bench.validation.collectives_fit",
        "points": len(p.series),
        "constants": asdict(whole),
        "errors": table(errors(scored())) + table(outside(whole), fabric=published_fabric),
    }
    path = catalogue.HERE / "collective_calibration.json"
    rounded = json.loads(
        json.dumps(out).replace("NaN", "null"), parse_float=lambda text: float(f"{float(text):.5g}")
    )
    path.write_text(json.dumps(rounded, indent=1) + "\n")
    print(f"{path.name}: {len(p.series)} points, {len(scored())} fits with one series left out")


if __name__ == "__main__":
    calibrate()
