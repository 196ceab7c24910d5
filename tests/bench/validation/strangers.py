"""How right on a site never seen: families of published runs left out together, every family with
weight one. `make strangers` (`python -m tests.bench.validation.strangers [RUNS.csv]`) prints the
figures in a minute.

Everything was chosen on the older two thirds of the families, each predicted by a fit on the
other older ones; the newest third is predicted, and its intervals are set, by the older two thirds
alone. Intervals of a family are those of the others (spread.py). The kinds of sites are those of
the column `effort`; "effort unsaid" is the same with that column blank, as most users leave it.
Ranking: pairs of runs of one source, model, accelerator, size and sequence whose plans differ and
whose measured rates differ by 5 % or more.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scantling import catalogue
from scantling.base.json import text
from scantling.physics import bands
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs

from . import spread, throughput_fit as calibrate
from .families import family_weights, newest, weighted_quantile
from .spread import interval_score
from .throughput_fit import Model, elsewhere, unknown

ALIKE = ["source", "model", "accelerator", "n_devices", "seq_len"]
PLAN = (
    "tp pp vpp cp ep micro_batch global_batch_seqs recompute precision sharding"  # what may differ
).split()
APART = np.log(1.05)  # least difference of two measured rates
DRAWS = 2000  # of the bootstrap
KINDS = (bands.RECIPE, bands.ORDINARY, bands.FIRST_WEEK)
GRID = Path(__file__).parents[1] / "data" / "nanotron_grid.csv"
# GB/s of the all-reduce over all devices and inside a node, measured in the run's own allocation
HEALTHY = (130.0, 400.0)
CELL = 10  # measured plans of a cell from which it is scored
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


class Judged(NamedTuple):
    """What was said of some runs, and their measurement."""

    frame: pd.DataFrame
    site: np.ndarray
    kind: np.ndarray  # of the site
    log_measured: np.ndarray
    log_said: np.ndarray
    ends: np.ndarray  # of ln(measured / predicted), shape (2, rows)

    def take(self, at: np.ndarray) -> Judged:
        """Some of the runs (bool)."""
        return Judged(*(of[at] for of in self[:-1]), self.ends[:, at])


def score(judged: Judged) -> dict:
    """Errors, coverage and width of the intervals, every family with weight one, and ranking."""
    off = judged.log_measured - judged.log_said
    weight = family_weights(judged.site)
    low, high = judged.ends
    inside = (off >= low) & (off <= high)
    error = np.abs(np.expm1(-off))
    of_family = pd.DataFrame({"error": error, "inside": inside}).groupby(judged.site)
    medians = of_family.error.median()
    total = weight.sum()
    return dict(
        rows=len(off),
        families=len(medians),
        median=weighted_quantile(error, weight, 0.5),
        p90=weighted_quantile(error, weight, 0.9),
        family_mean=float(medians.mean()),
        family_interval=bootstrap(medians),
        coverage=float((weight * inside).sum() / total),
        half_inside=float((of_family.inside.mean() >= 0.5).mean()),
        width=weighted_quantile(np.exp(high) - np.exp(low), weight, 0.5),
        interval_score=float((weight * interval_score(off, low, high)).sum() / total),
        width_follows_error=rank_correlation(high - low, np.abs(off)),
        **ranking(judged.frame, judged.log_measured, judged.log_said),
    )


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's."""
    return float(np.corrcoef(pd.Series(a).rank(), pd.Series(b).rank())[0, 1])


def by_kind(judged: Judged) -> dict:
    """`score` of all, and of each kind of site."""
    kinds = [kind for kind in KINDS if (judged.kind == kind).any()]
    return score(judged) | {
        "kinds": {kind: score(judged.take(judged.kind == kind)) for kind in kinds}
    }


def by_tier(table, judged: Judged) -> dict:
    """Rows, families, coverage and width of each tier, by what other families have run."""
    names = [elsewhere(table.levels[level], table.levels["site"]) for level in ("chip", "stack")]
    least = np.minimum(*names)
    tiers = np.array([bands.tier_of(int(families), True) for families in least])
    keep = ("rows", "families", "coverage", "half_inside", "width")
    return {
        str(tier): {name: of[name] for name in keep}
        for tier in np.unique(tiers)
        for of in [score(judged.take(tiers == tier))]
    }


def said_and_unsaid(table, rate, blank: Model, blank_rate, newer) -> tuple[Judged, Judged]:
    """The runs with their effort and without it, each with the intervals of the other older
    families, those of the newest third by the older ones."""
    parts = [(table, rate), (blank.table, blank_rate)]
    off = np.concatenate([table.log_measured - of for _, of in parts])
    each = [unknown(*part) for part in parts]
    rows = len(rate)
    holds = {
        name: np.concatenate([np.broadcast_to(of[name], rows) for of in each]) for name in each[0]
    }
    site, late = np.tile(table.levels["site"], 2), np.tile(newer, 2)
    older = {name: column[~late] for name, column in holds.items()}
    found = np.empty((2, 2 * rows))
    found[:, ~late] = spread.left_out(off[~late], older, site[~late])
    if late.any():
        fit = spread.distribution(off[~late], older, site[~late])
        found[:, late] = spread.of(fit, {name: column[late] for name, column in holds.items()})
    kind = bands.site_kind(table.cases.software.tuned)
    kind = np.broadcast_to(kind, rows)
    return tuple(
        Judged(table.frame, table.levels["site"], kind, table.log_measured, of, ends)
        for (_, of), ends in zip(parts, (found[:, :rows], found[:, rows:]))
    )


def figures(table, rate=None, blank_rate=None) -> dict:
    """The scores of families left out one by one, of the newest third, the worse of both, and of
    runs published from SINCE on by a fit on those before."""
    model = calibrate.Model(table)
    blank = calibrate.unsaid(model)
    rate = calibrate.strangers(model) if rate is None else rate
    blank_rate = calibrate.strangers(model, blank) if blank_rate is None else blank_rate
    newer = newest(table.frame)
    said, unsaid = said_and_unsaid(table, rate, blank, blank_rate, newer)
    asked = {"families left out": ~newer, "newest third": newer}
    parts = {name: by_kind(said.take(at)) for name, at in asked.items() if at.any()}
    blanks = {name: score(unsaid.take(at)) for name, at in asked.items() if at.any()}
    best = dict.fromkeys(("coverage", "half_inside", "right", "width_follows_error"), min)
    names = [
        name for name in score(said) if name not in ("rows", "families", "family_interval", "pairs")
    ]
    worse = {n: best.get(n, max)(part[n] for part in parts.values()) for n in names}
    kinds = {
        kind: {
            "families": sum(of["kinds"][kind]["families"] for of in both),
            "rows": sum(of["kinds"][kind]["rows"] for of in both),
        }
        | {n: best.get(n, max)(of["kinds"][kind][n] for of in both) for n in names}
        for kind in KINDS
        for both in [[part for part in parts.values() if kind in part["kinds"]]]
        if both
    }
    found = parts | {
        "worse of both": worse | {"kinds": kinds},
        "effort unsaid": blanks,
        "tiers": by_tier(table, said),
    }
    late = np.broadcast_to(table.cases.software.released, len(rate)) >= SINCE
    if late.any() and not late.all():
        before = model.log_rate(calibrate.fit(model, ~late, iterations=25))
        error = np.abs(calibrate.errors(before, table))[late]
        found["forward in time"] = {
            "rows": int(late.sum()),
            "median": float(np.median(error)),
            "p90": float(np.quantile(error, 0.9)),
        }
    return found


def healthy(path: Path = GRID) -> pd.DataFrame:
    """The runs of the grid that count, on a healthy network and with tp up to 8."""
    frame = read_runs(path)
    counted = frame.trust.isin(("high", "medium")) & frame.outcome.eq("ran")
    across = frame.all_reduce_gbytes_per_s.ge(HEALTHY[0]) | frame.n_devices.le(8)
    inside = frame.all_reduce_in_node_gbytes_per_s.ge(HEALTHY[1])
    return frame[counted & across & inside & frame.tp.le(8)].reset_index(drop=True)


def grid(path: Path = GRID) -> dict:
    """The public grid of nanotron, of which no run is in any fit: errors and pairs of the healthy
    runs (HEALTHY) with tp up to 8; and what the plan that is said to be the fastest of the measured
    ones of a (model, devices) cell reaches of the best of them."""
    frame = healthy(path)
    got = predict_frame(frame)
    said = got.tokens_per_s_per_device
    measured = frame.measured_tokens_per_s_per_device
    off = np.abs(said / measured - 1)
    ends = (measured * got.mfu / said).between(got.mfu_low, got.mfu_high)
    cells = pd.DataFrame({"said": said, "measured": measured})
    cells = cells.groupby([frame.model, frame.n_devices])
    reach = [
        of.measured[of.said.idxmax()] / of.measured.max() for _, of in cells if len(of) >= CELL
    ]
    found = pairs(frame, np.log(measured), np.log(said))
    return dict(
        rows=len(frame),
        median=float(off.median()),
        p90=float(off.quantile(0.9)),
        coverage=float(ends.mean()),
        pairs=len(found),
        right=float((np.sign(found.measured) == np.sign(found.said)).mean()),
        cells=len(reach),
        reach_median=float(np.median(reach)),
        reach_worst=float(np.min(reach)),
    )


if __name__ == "__main__":  # the kit's own table by default
    path, *_ = [*sys.argv[1:], catalogue.HERE / "published_runs.csv"]
    print(text(figures(calibrate.load(path)) | {"grid": grid()}))
