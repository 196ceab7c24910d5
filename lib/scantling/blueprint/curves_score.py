"""How well `curves` predicts each published series when that series was not in the fit. `python -m scantling.blueprint.curves_score`

Prints the median of |predicted / measured - 1| of the time, for messages of 64 MiB and more and for smaller ones, by fabric and by
series; `--refit` repeats the fits instead of reading their constants from the catalogue.
"""
from __future__ import annotations

import sys

import numpy as np

from .curves import CurveConstants, calibration, fastest
from .curves_fit import LARGE_BYTES, fabric_of, fit, left_out, points, scored

LIMITS = {"large": 0.15, "small": 0.35}


def errors(refit: bool = False) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Per series (message bytes, predicted / measured - 1), from constants fitted without it."""
    p = points()
    kept = calibration()["without"]
    return of_constants(p, {name: fit(p.take(~left_out(name, p))) if refit else CurveConstants(**kept[name]) for name in scored()})


def of_constants(p, by_series: dict) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The same from given constants for each series."""
    out = {}
    for name, k in by_series.items():
        own = p.take(p.series == name)
        out[name] = own.message_bytes, fastest(own.collective, own.message_bytes, own.wires, k) / own.seconds - 1
    return out


def table(found=None) -> list[dict]:
    """Rows by fabric, then by series: median error of large and small messages, counts; nan where there are no such points."""
    found = errors() if found is None else found
    groups = {}
    for name in found:
        groups.setdefault(fabric_of(name), []).append(name)
    rows = [_row(fabric, "all of the fabric", [found[n] for n in names], len(names)) for fabric, names in groups.items()]
    rows += [_row(fabric, name, [found[name]], 1) for fabric, names in groups.items() for name in names]
    return rows


def _row(fabric, series, parts, count):
    size = np.concatenate([s for s, _ in parts])
    error = np.abs(np.concatenate([e for _, e in parts]))
    large = size >= LARGE_BYTES
    median = lambda keep: float(np.median(error[keep])) if keep.any() else float("nan")
    return {"fabric": fabric, "series": series, "count": count, "large_error": median(large), "small_error": median(~large),
            "large_points": int(large.sum()), "small_points": int((~large).sum())}


def main(arguments=None) -> None:
    """Print the table."""
    refit = "--refit" in (sys.argv[1:] if arguments is None else arguments)
    rows = table(errors(refit))
    print(f"median |predicted/measured - 1| of the time, each series left out of its fit; limits {LIMITS['large']:.0%} from 64 MiB, {LIMITS['small']:.0%} below")
    print(f"{'fabric':36} {'series':30} {'>= 64 MiB':>10} {'below':>8}")
    for r in rows:
        show = lambda x: "-" if np.isnan(x) else f"{x:.1%}"
        print(f"{r['fabric']:36} {r['series']:30} {show(r['large_error']):>10} {show(r['small_error']):>8}")


if __name__ == "__main__":
    main()
