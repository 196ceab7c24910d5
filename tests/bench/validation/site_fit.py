"""Fit how far sites lie from what published runs foretell; write catalogue/site_priors.csv.
`python -m tests.bench.validation.site_fit`

What is fitted: the standard deviation of ln of a site's factor on each constant, what no constant
explains and how far that is alike for runs that differ (`physics.learned`). Loss: of rows drawn
from a source the density of its others, each source weighing as the root of its rows. Every run is
foretold by constants fitted without its family (gallery/validation/validation.csv, family_out), so
that a source is a site never seen; each spread is drawn to a start of its own (START) by an e-fold.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scantling import catalogue
from scantling.physics.learned import CODES, OTHER_MODEL, SIZES, Marks, marks, slopes
from scipy.optimize import minimize

from . import throughput_fit

ROOT = Path(__file__).parents[3]
VALIDATION = ROOT / "gallery" / "validation" / "validation.csv"
OUT = catalogue.HERE / "site_priors.csv"
# where each spread starts: a few are known, the others as far as constants of one chip scatter
USUAL = 0.3
START = {
    "overall": 0.08,
    "gemm": 0.06,
    "gemm_fp8": 0.1,
    "gemm_fp4": 0.15,
    "attention": 0.15,
    "hbm_share": 0.1,
    "layer_host_s": 0.5,
    "moe_host_s": 0.5,
    "step_host_s": 0.5,
    "scale_up_share": 0.15,
    "scale_out_share": 0.25,
    "dp_rate": 0.25,
    "straggler": 0.7,
}
CONSTANTS = (
    "overall",
    "gemm",
    "gemm_fp8",
    "gemm_fp4",
    "attention",
    "hbm_share",
    "eager",
    "layer_host_s",
    "moe_host_s",
    "step_host_s",
    "eager_layer_s",
    "eager_tp_s",
    "eager_stall_s",
    "gather_tensor_s",
    "scale_up_share",
    "scale_out_share",
    "dp_rate",
    "dp_alone",
    "tp_exposed",
    "tp_overlapped",
    "tp_hops",
    "ep_up_share",
    "ep_out_share",
    "ep_out_efa",
    "ep_overlapped",
    "dispatch_s",
    "dispatch_uccl",
    "token_message_s",
    "permute",
    "grouped_gemm",
    "pp_exposed",
    "straggler",
    "straggler_wide",
    "fsdp_contention",
    "optimizer_bytes",
)
NEARNESS = (*SIZES, *CODES, "shares")
NEAR = {"shares": 2.0, "stack": 0.1, "model": 0.1, "precision": 0.1, "dispatcher": 0.1}
TAILS = 4.0  # degrees of freedom of the density that is scored
DRAWS = (1, 1, 1, 3, 3, 5)  # rows drawn
DRAWN_TOWARDS = 600.0  # weight of a row's density over that of one e-fold from the start, squared
ODD_SHARE, ODD = 0.1, 0.3  # rows that tell of nothing but themselves: one in ten, a third off
STEPS = 25


class Site(NamedTuple):
    """One source on one chip: what is left over of its runs, and how far they lie apart."""

    ln_ratio: np.ndarray
    slopes: np.ndarray
    far: np.ndarray  # (rows, rows, NEARNESS)
    draws: list[tuple[np.ndarray, np.ndarray]]


def differences(a: Marks) -> np.ndarray:
    """Differences of runs by NEARNESS, (rows, rows, NEARNESS), as `learned.apart` weighs them."""
    square = (a.sizes[:, None] - a.sizes[None]) ** 2
    model = np.sqrt(square[..., :1]) > OTHER_MODEL
    stack = (a.stacks[:, None] != a.stacks[None])[..., None]
    codes = a.codes[:, None] != a.codes[None]
    shares = np.abs(a.shares[:, None] - a.shares[None]).sum(axis=-1, keepdims=True) / 2
    return np.concatenate([square, model, codes, stack, shares], axis=-1).astype(float)


def sites(column: str = "family_out") -> dict[tuple[str, str], Site]:
    """The published runs by source and chip, foretold as `column` of the validation has them."""
    table = throughput_fit.load(catalogue.HERE / "published_runs.csv")
    known = pd.read_csv(VALIDATION, low_memory=False).set_index("id")
    rows = known.reindex(table.frame.id)
    ln_ratio = np.log(rows[column].to_numpy(float) / rows.measured.to_numpy(float))
    every = marks(table.cases, np.asarray(table.levels["stack"], object))
    every = every._replace(slopes=slopes(table.cases, CONSTANTS))
    draw = np.random.default_rng(0)
    out = {}
    for key, at in table.frame.groupby(["source", "accelerator"]).indices.items():
        if len(at) < 2 or not np.isfinite(ln_ratio[at]).all():
            continue
        drawn = [(draw.permutation(len(at)), count) for count in DRAWS if len(at) > count]
        here = every.take(at)
        out[key] = Site(
            ln_ratio[at],
            here.slopes,
            differences(here),
            [(order[:count], order[count:]) for order, count in drawn],
        )
    return out


def start() -> np.ndarray:
    """Logs of the spreads at which the fit starts."""
    constants = [START.get(name, USUAL) for name in CONSTANTS]
    near = [NEAR.get(name, 0.05) for name in NEARNESS]
    return np.log([*constants, *near, 0.08, 0.025])


def covariance(site: Site, logs: np.ndarray) -> np.ndarray:
    """Covariance of the runs of a site."""
    sd, near = np.exp(logs[: len(CONSTANTS)]), np.exp(logs[len(CONSTANTS) : -2])
    moved = site.slopes * sd
    return moved @ moved.T + np.exp(2 * logs[-2] - site.far @ near)


def loss(logs: np.ndarray, every: dict[tuple[str, str], Site], first: np.ndarray) -> float:
    """What the others of each site are worth, minus log density a row, and the way from `first`."""
    total = weight = 0.0
    scatter = np.exp(2 * logs[-1])
    for site in every.values():
        prior = covariance(site, logs)
        own = 1 / np.sqrt(len(site.ln_ratio))
        for drawn, rest in site.draws:
            between = prior[np.ix_(rest, drawn)]
            of_drawn = prior[np.ix_(drawn, drawn)] + scatter * np.eye(len(drawn))
            told = np.linalg.solve(of_drawn, between.T).T
            variance = prior[rest, rest] - (told * between).sum(axis=1) + scatter
            left = site.ln_ratio[rest] - told @ site.ln_ratio[drawn]
            density = np.log(variance) / 2 + (TAILS + 1) / 2 * np.log1p(left**2 / variance / TAILS)
            total += own * density.sum()
            weight += own * len(rest)
    return total / weight + np.sum((logs - first) ** 2) / DRAWN_TOWARDS


def main() -> None:
    """Fit and write."""
    every, first = sites(), start()
    fit = minimize(loss, first, (every, first), "L-BFGS-B", options={"maxiter": STEPS})
    print(len(every), "sites;", loss(first, every, first), "to", fit.fun, file=sys.stderr)
    values = np.exp(fit.x)
    rows = [("constant", name, v) for name, v in zip(CONSTANTS, values)]
    rows += [("nearness", name, v) for name, v in zip(NEARNESS, values[len(CONSTANTS) :])]
    rows += [("spread", "unexplained", values[-2]), ("spread", "scatter", values[-1])]
    rows += [("spread", "odd_share", ODD_SHARE), ("spread", "odd", ODD)]
    fitted = f"fitted on {len(every)} sites that the constants had not seen (published_runs.csv)"
    judged = {"odd_share": "judgement", "odd": "judgement"}
    with OUT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kind", "name", "value", "source"])
        for kind, name, value in rows:
            writer.writerow([kind, name, f"{value:.3g}", judged.get(name, fitted)])


if __name__ == "__main__":
    main()
