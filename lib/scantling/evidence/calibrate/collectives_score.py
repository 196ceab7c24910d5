"""How well `curves` predicts each published series when that series was not in the fit. `python -m
scantling.evidence.calibrate.collectives_score`

Prints the median of |predicted / measured - 1| of the time, for messages of 64 MiB and more and for
smaller ones, by fabric and by
series; `--refit` repeats the fits instead of reading their constants from the catalogue.
"""

from __future__ import annotations

import sys

import numpy as np

from ... import catalogue
from ...physics.curves import CurveConstants, calibration, fastest, volume, wires
from .collectives import LARGE_BYTES, fabric_of, fit, left_out, points, scored

LIMITS = {"large": 0.15, "small": 0.35}


def errors(refit: bool = False) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Per series (message bytes, predicted / measured - 1), from constants fitted without it."""
    p = points()
    kept = calibration()["without"]
    return of_constants(
        p,
        {
            name: fit(p.take(~left_out(name, p))) if refit else CurveConstants(**kept[name])
            for name in scored()
        },
    )


def of_constants(p, by_series: dict) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The same from given constants for each series."""
    out = {}
    for name, k in by_series.items():
        own = p.take(p.series == name)
        out[name] = (
            own.message_bytes,
            fastest(own.collective, own.message_bytes, own.wires, k) / own.seconds - 1,
        )
    return out


# fabrics of which no series is in any fit -> the catalogue's scale-out fabric there (the scale-up
# one follows from the accelerator)
OUTSIDE = {"xGMI": "rocev2-400", "RoCE 8x400G": "rocev2-400", "NVLink4 + TCPXO 8x200G": "gcp-tcpxo"}


def outside(k: CurveConstants | None = None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Per series of fabrics that no fit has seen (message bytes, predicted / measured - 1):
    constants of the other fabrics, wires of the catalogue."""
    from ...design.cluster_rules import build_cluster

    out = {}
    for name, s in catalogue.collective_series().items():
        if s.fabric in OUTSIDE and s.collective == "all_reduce":
            cluster = build_cluster(
                {
                    "accelerator": s.accelerator,
                    "devices": 8 * s.nvlink_domains,
                    "scale_out": OUTSIDE[s.fabric],
                }
            )[0]
            sizes = np.asarray(s.message_bytes)
            seconds = (
                float(volume("all_reduce", s.devices)) * sizes / np.asarray(s.busbw_bytes_per_s)
            )
            out[name] = (
                sizes,
                fastest(
                    "all_reduce", sizes, wires(cluster, s.devices, s.devices // s.nvlink_domains), k
                )
                / seconds
                - 1,
            )
    return out


def table(found=None, fabric=fabric_of) -> list[dict]:
    """Rows by fabric, then by series: median error of large and small messages, counts; nan where
    there are no such points."""
    found = errors() if found is None else found
    groups = {}
    for name in found:
        groups.setdefault(fabric(name), []).append(name)
    rows = [
        _row(own, "all of the fabric", [found[n] for n in names], len(names))
        for own, names in groups.items()
    ]
    rows += [_row(own, name, [found[name]], 1) for own, names in groups.items() for name in names]
    return rows


def _row(fabric, series, parts, count):
    size = np.concatenate([s for s, _ in parts])
    error = np.abs(np.concatenate([e for _, e in parts]))
    large = size >= LARGE_BYTES
    median = lambda keep: float(np.median(error[keep])) if keep.any() else float("nan")
    return {
        "fabric": fabric,
        "series": series,
        "count": count,
        "large_error": median(large),
        "small_error": median(~large),
        "large_points": int(large.sum()),
        "small_points": int((~large).sum()),
    }


def main(arguments=None) -> None:
    """Print the table."""
    refit = "--refit" in (sys.argv[1:] if arguments is None else arguments)
    rows = table(errors(refit)) + table(
        outside(), fabric=lambda name: "not fitted: " + catalogue.collective_series()[name].fabric
    )
    print(
        f"median |predicted/measured - 1| of the time, each series left out of its fit; "
        f"limits {LIMITS['large']:.0%} from 64 MiB, {LIMITS['small']:.0%} below"
    )
    print(f"{'fabric':36} {'series':30} {'>= 64 MiB':>10} {'below':>8}")
    for r in rows:
        show = lambda x: "-" if np.isnan(x) else f"{x:.1%}"
        print(
            f"{r['fabric']:36} {r['series']:30} {show(r['large_error']):>10} "
            f"{show(r['small_error']):>8}"
        )


if __name__ == "__main__":
    main()
