"""How right on a site never seen: families of published runs left out together.
`python -m tests.bench.validation.strangers [RUNS.csv]` prints the figures in half a minute.

Each family of sources is predicted by a fit without it; the families of
`throughput_fit.ASIDE`, which choose no structure and no prior, by one fit without all of
them. Intervals are 80 % of a bootstrap over families. Ranking: pairs of runs of one source, model,
accelerator, size and sequence whose plans differ and whose measured rates differ by 5 % or more.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from scantling import catalogue
from scantling.base.json import text
from scantling.physics import bands
from scantling.physics.calibration_file import OTHER_STACK, UNLIKE
from scantling.physics.step import PARTS, step_time

from . import throughput_fit as calibrate

ALIKE = ["source", "model", "accelerator", "n_devices", "seq_len"]
PLAN = (
    "tp pp vpp cp ep micro_batch global_batch_seqs recompute precision sharding"  # what may differ
).split()
APART = np.log(1.05)  # least difference of two measured rates
DRAWS = 2000  # of the bootstrap
SINCE = 2025.0  # runs published from this year on are predicted from those before


def pairs(frame: pd.DataFrame, log_measured, log_said) -> pd.DataFrame:
    """source, measured and said log ratio of every pair of runs that a plan tells apart."""
    plans = frame[PLAN].astype(object).fillna("").astype(str).to_numpy()
    real, said = np.asarray(log_measured), np.asarray(log_said)
    out = []
    for key, at in frame.groupby(ALIKE).indices.items():
        i, j = (at[k] for k in np.triu_indices(len(at), 1))
        found = {"measured": real[i] - real[j], "said": said[i] - said[j]}
        apart = (np.abs(found["measured"]) >= APART) & (plans[i] != plans[j]).any(axis=1)
        out.append(pd.DataFrame(found)[apart].assign(source=key[0]))
    return pd.concat(out, ignore_index=True)


def ranking(frame: pd.DataFrame, log_measured, log_said) -> dict:
    """Share of pairs whose faster run is said to be faster, mean over sources, and the median over
    sources of how far the ratio is off (log)."""
    found = pairs(frame, log_measured, log_said)
    found["right"] = np.sign(found.measured) == np.sign(found.said)
    found["off"] = (found.said - found.measured).abs()
    by = found.groupby("source")
    return dict(
        pairs=len(found),
        right=float(by.right.mean().mean()),
        ratio_off=float(by.off.median().median()),
    )


def bootstrap(values) -> list[float]:
    """80 % interval of the mean of `values` over draws with replacement."""
    values = np.asarray(values, float)
    drawn = np.random.default_rng(0).integers(0, len(values), (DRAWS, len(values)))
    return [float(x) for x in np.quantile(values[drawn].mean(axis=1), (0.1, 0.9))]


def score(table, rate, rows, widths) -> dict:
    """Errors, coverage, width of the band and ranking of the `rows` (bool) as they were said."""
    site = table.levels["site"]
    off = np.abs(calibrate.errors(rate, table))
    low, high = bands.ends(calibrate.unknown(table, rate), widths)
    share = np.exp(table.log_measured - rate)
    inside = (share >= 1 / high) & (share <= 1 / low)
    of_family = pd.Series(off[rows]).groupby(site[rows]).median()
    return dict(
        rows=int(rows.sum()),
        families=len(of_family),
        median=float(np.median(off[rows])),
        p90=float(np.quantile(off[rows], 0.9)),
        family_mean=float(of_family.mean()),
        family_interval=bootstrap(of_family),
        coverage=float(inside[rows].mean()),
        width=float(np.median((1 / low - 1 / high)[rows])),
        **ranking(table.frame[rows], table.log_measured[rows], rate[rows]),
    )


def siblings(table, rate) -> dict:
    """Errors of rows that one other row of the same source, model, chip and precision corrects, as
    far as its step is made of the same parts (calibration_file.UNLIKE) and ran under the same stack
    (OTHER_STACK). any: over all others, each row counting once; alike: by the one with the likest
    plan; other stack: by the likest of another stack, and left alone or corrected in full."""
    frame, log_off = table.frame, rate - table.log_measured
    step = step_time(table.cases)
    shares = np.stack([np.broadcast_to(getattr(step, n) / step.total, len(rate)) for n in PARTS], 1)
    known = frame[PLAN + ["n_devices", "seq_len"]].astype(object)
    said = known.fillna("").astype(str).to_numpy()
    stacks = frame["stack"].astype(str).to_numpy()
    found = []
    for at in frame.groupby(["source", "model", "accelerator", "precision"]).indices.values():
        if len(at) < 2:
            continue
        far = np.abs(shares[at][:, None] - shares[at][None]).sum(axis=2) / 2
        own, moved = log_off[at][:, None], np.exp(-UNLIKE * far) * log_off[at][None]
        other = stacks[at][:, None] != stacks[at][None]
        left = own - np.where(other, OTHER_STACK, 1.0) * moved
        unlike = (said[at][:, None] != said[at][None]).sum(axis=2) + far
        others = ~np.eye(len(at), dtype=bool)
        likest, across = (np.where(kept, unlike, np.inf).argmin(axis=1) for kept in (others, other))
        for i in range(len(at)):
            weight = 1 / others[i].sum()
            found += [
                (left[i, j], own[i, 0], own[i, 0] - moved[i, j], weight)
                + (j == likest[i], other[i, j] and j == across[i])
                for j in np.flatnonzero(others[i])
            ]
    left, own, whole, weight, alike, across = map(np.array, zip(*found))
    once = np.ones(len(found))
    return {
        "any": _weighted(left, weight),
        "alike": _weighted(left[alike], once[alike]),
        "other stack": _weighted(left[across], once[across]) | {"rows": int(across.sum())},
        "other stack, alone": _weighted(own[across], once[across]),
        "other stack, in full": _weighted(whole[across], once[across]),
    }


def _weighted(log_off, weight) -> dict:
    error = np.abs(np.expm1(log_off))
    order = np.argsort(error)
    share = np.cumsum(weight[order]) / weight.sum()
    at = {"median": 0.5, "p90": 0.9}
    return {n: float(error[order][np.searchsorted(share, q)]) for n, q in at.items()}


def figures(table, rate=None) -> dict:
    """The scores of families left out one by one, of those set aside, the worse of both, and of
    runs published from SINCE on by a fit on those before."""
    model = calibrate.Model(table)
    rate = calibrate.strangers(model) if rate is None else rate
    aside = np.isin(table.levels["site"], calibrate.ASIDE)
    widths = calibrate.band_widths(table, rate, ~aside)
    late = np.broadcast_to(table.cases.software.released, len(rate)) >= SINCE
    asked = {"families left out": (rate, ~aside), "families set aside": (rate, aside)}
    if late.any() and not late.all():
        before = model.log_rate(calibrate.fit(model, ~late, iterations=25))
        asked["forward in time"] = (before, late)
    parts = {
        name: score(table, said, rows, widths) for name, (said, rows) in asked.items() if rows.any()
    }
    best = dict.fromkeys(("coverage", "right"), min)
    names = ("median", "p90", "family_mean", "coverage", "right", "ratio_off", "width")
    sites = [parts[name] for name in list(asked)[:2] if name in parts]
    worse = {n: best.get(n, max)(part[n] for part in sites) for n in names}
    return parts | {"worse of both": worse}


if __name__ == "__main__":  # the kit's own table by default
    path, *_ = [*sys.argv[1:], catalogue.HERE / "published_runs.csv"]
    table = calibrate.load(path)
    model = calibrate.Model(table)
    every = np.ones(len(table.frame), bool)
    folds = calibrate.left_out(
        model, calibrate.folds(table), calibrate.fit(model, every, iterations=25)
    )
    print(text(figures(table) | {"one measured sibling": siblings(table, folds)}))
