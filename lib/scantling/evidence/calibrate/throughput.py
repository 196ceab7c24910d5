"""Fit the constants of constants.PRIORS on published runs; write catalogue/calibration.json.
`python -m scantling.evidence.calibrate.throughput RUNS.csv`

What moves: log offsets of each constant, one for all, one per chip family, chip or stack as its
prior allows, never one per run,
source or model. Loss: soft-L1 of the log error (scale 0.06), every row weighing 1 / sqrt(rows of
its source), plus each offset
over its prior's standard deviation, squared: what the runs do not show stays at the sourced prior.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from ...physics.bands import conditions
from ...physics.constants import PRIORS, Constants, calibration, gather, pairs
from ...physics.step import rates, step_time
from ..runs import read_runs, to_runs

SCALE = 0.03
COUNTED_TRUST, COUNTED_SETUP = ("high", "medium"), ("full", "partial")


@dataclass(frozen=True)
class Table:
    """The rows that can be fitted: cases, log measured tokens/s per device, and what they are
    grouped by."""

    runs: object
    cases: object
    log_measured: np.ndarray
    ids: np.ndarray
    source: np.ndarray
    fold: np.ndarray
    levels: dict  # level -> names, per row
    frame: pd.DataFrame


@dataclass(frozen=True)
class Free:
    """The free offsets: for each its constant, level, name and prior standard deviation."""

    keys: list
    sd: np.ndarray
    columns: dict  # constant -> list of index arrays into the offsets, one per level (-1: none)


def load(path) -> Table:
    """The counted rows (trust high or medium, setup full or partial) of a run table that have a
    case and a throughput."""
    frame = read_runs(path)
    runs = to_runs(frame)
    f = frame[runs.ready].reset_index(drop=True)
    measured = pd.to_numeric(f.measured_tokens_per_s_per_device, errors="coerce").to_numpy(float)
    keep = (
        np.isfinite(measured)
        & (measured > 0)
        & f.trust.isin(COUNTED_TRUST).to_numpy()
        & f.setup.isin(COUNTED_SETUP).to_numpy()
    )
    f = f[keep].reset_index(drop=True)
    levels = {
        "family": runs.families[keep],
        "chip": runs.chips[keep],
        "stack": runs.stacks[keep],
        "pair": pairs(runs.stacks[keep], runs.chips[keep]),
    }
    fold = f.fold.to_numpy(int) if "fold" in f else np.zeros(len(f), int)
    return Table(
        runs,
        runs.cases.take(keep),
        np.log(measured[keep]),
        f.id.to_numpy(),
        f.source.to_numpy(),
        fold,
        levels,
        f,
    )


def free_offsets(table: Table) -> Free:
    """One offset per constant and level where the prior allows it and the rows have the name."""
    keys, sd, columns = [], [], {}
    for name, prior in PRIORS.items():
        indices = []
        if prior.sd > 0:
            indices.append(np.full(len(table.ids), len(keys)))
            keys.append((name, "global", ""))
            sd.append(prior.sd)
        for level, spread in prior.by.items():
            names = np.unique(table.levels[level])
            position = {n: len(keys) + i for i, n in enumerate(names)}
            indices.append(np.array([position[n] for n in table.levels[level]]))
            keys += [(name, level, n) for n in names]
            sd += [spread] * len(names)
        if indices:
            columns[name] = indices
    return Free(keys, np.array(sd), columns)


class Model:
    """Log throughput of the table's rows as a function of the offsets, with its derivatives."""

    def __init__(self, table: Table):
        self.table, self.free = table, free_offsets(table)
        base = gather(table.levels["family"], table.levels["chip"], table.levels["stack"], {})
        n = len(table.ids)
        self.base = {
            name: np.log(np.maximum(np.broadcast_to(getattr(base, name), n), 1e-300))
            for name in PRIORS
        }

    def _values(self, theta):
        return {
            name: self.base[name] + sum((theta[i] for i in self.free.columns.get(name, [])), 0.0)
            for name in PRIORS
        }

    def _log_rate(self, values, cases):
        cases = replace(cases, constants=Constants(**{k: np.exp(v) for k, v in values.items()}))
        return np.log(rates(cases, step_time(cases).total)[0])

    def log_rate(self, theta):
        """Log tokens/s per device of every row."""
        return self._log_rate(self._values(theta), self.table.cases)

    def slopes(self, theta, step=1e-3):
        """(log rate, {constant: d log rate / d log constant}) by forward differences."""
        values = self._values(theta)
        at = self._log_rate(values, self.table.cases)
        return at, {
            name: (self._log_rate({**values, name: values[name] + step}, self.table.cases) - at)
            / step
            for name in self.free.columns
        }

    def jacobian(self, slopes):
        """d log rate / d offset, shape (rows, offsets)."""
        n = len(self.table.ids)
        jac = np.zeros((n, len(self.free.keys)))
        rows = np.arange(n)
        for name, indices in self.free.columns.items():
            for i in indices:
                jac[rows, i] += slopes[name]
        return jac


def source_weights(source, rows=None):
    """1 / sqrt(rows of the row's source), counted among `rows`."""
    rows = np.ones(len(source), bool) if rows is None else rows
    names, inverse = np.unique(source, return_inverse=True)
    count = np.bincount(inverse[rows], minlength=len(names))
    return np.where(rows, 1 / np.sqrt(np.maximum(count, 1))[inverse], 0.0)


def fit(model: Model, rows=None, start=None, iterations=40, tolerance=1e-4):
    """Offsets that minimise the loss over `rows` (bool), by damped Gauss-Newton with soft-L1
    weights from the last residuals."""
    table, free = model.table, model.free
    theta = np.zeros(len(free.keys)) if start is None else start.copy()
    weight = source_weights(table.source, rows)
    precision = 1 / free.sd**2

    def loss(log_rate, theta):
        z = (log_rate - table.log_measured) / SCALE
        return np.sum(weight * 2 * (np.sqrt(1 + z * z) - 1)) + np.sum(theta * theta * precision)

    damping, now, best = 1e-3, None, np.inf
    for _ in range(iterations):
        if now is None:
            now, slopes = model.slopes(theta)
            jac = model.jacobian(slopes)
            best = loss(now, theta)
        residual = now - table.log_measured
        w = weight / np.sqrt(1 + (residual / SCALE) ** 2) / SCALE**2
        hessian = (jac.T * w) @ jac + np.diag(precision)
        gradient = jac.T @ (w * residual) + precision * theta
        trial = theta - np.linalg.solve(hessian + damping * np.diag(np.diag(hessian)), gradient)
        got = loss(model.log_rate(trial), trial)
        if got < best:
            gain, theta, now, damping = best - got, trial, None, damping * 0.3
            if (
                gain < tolerance * best and damping < 1e-2
            ):  # a small step under heavy damping is not the end
                break
        else:
            damping = max(damping, 1e-3) * 8
            if damping > 1e6:
                break
    return theta


def to_offsets(model: Model, theta) -> dict:
    """{constant: {"global": x, "family": {...}, "chip": {...}, "stack": {...}}} with negligible
    offsets left out."""
    offsets: dict = {}
    for (name, level, key), value, sd in zip(model.free.keys, theta, model.free.sd):
        if abs(value) < 0.01 * sd:
            continue
        entry = offsets.setdefault(name, {})
        if level == "global":
            entry["global"] = round(float(value), 5)
        else:
            entry.setdefault(level, {})[key] = round(float(value), 5)
    return offsets


def left_out(model: Model, groups, start):
    """Log rate of every row predicted by constants fitted without the row's group, each fit started
    from `start`."""
    out = np.full(len(groups), np.nan)
    for g in np.unique(groups):
        held = groups == g
        out[held] = model.log_rate(fit(model, ~held, start, iterations=12, tolerance=1e-3))[held]
    return out


def errors(log_rate, table):
    """Predicted / measured - 1 of tokens/s."""
    return np.exp(log_rate - table.log_measured) - 1


def summary(error, source) -> dict:
    """Median, 90th percentile and median over sources of |error|, and the bias."""
    a = pd.Series(np.abs(error))
    return dict(
        rows=len(a),
        median=a.median(),
        p90=a.quantile(0.9),
        over_sources=a.groupby(source).median().median(),
        bias=float(np.median(error)),
    )


def main(argv=None) -> int:
    """Fit on a run table, again without each fold, source and stack, and write the calibration;
    --quick keeps the bands and skips what is left out."""
    argv = list(sys.argv[1:] if argv is None else argv)
    cross = "--quick" not in argv
    paths = [a for a in argv if not a.startswith("-")]
    here = Path(__file__).parents[2] / "catalogue"
    path = paths[0] if paths else here / "published_runs.csv"
    table = load(path)
    model = Model(table)
    theta = fit(model)
    kinds = {"in sample": model.log_rate(theta)}
    if cross:
        kinds["folds"] = left_out(model, table.fold, theta)
        kinds["source left out"] = left_out(model, table.source, theta)
    by = pd.DataFrame(
        {"rows": pd.Series(1, index=range(len(table.ids))).groupby(table.source).sum()}
    )
    figures = {}
    for kind, log_rate in kinds.items():
        e = errors(log_rate, table)
        figures[kind] = {k: round(float(v), 4) for k, v in summary(e, table.source).items()}
        print(f"{kind:16s}", *(f"{k} {v:.4g}" for k, v in figures[kind].items()))
        by[kind] = pd.Series(np.abs(e)).groupby(table.source).median()
        by[kind + " bias"] = pd.Series(e).groupby(table.source).median()
    bands = calibration().get("bands")
    if cross:
        kinds["stack left out"] = left_out(model, table.levels["stack"], theta)
        bands = band_quantiles(table, kinds)
        print(by.round(3).to_string())
    if "--dry" not in argv:
        counts = _supports(table)
        result = dict(
            made=str(date.today()),
            rows=len(table.ids),
            sources=len(np.unique(table.source)),
            figures=figures,
            support=counts,
            bands=bands,
            offsets=to_offsets(model, theta),
        )
        if bands is None:
            del result["bands"]
        write_conditions(table, here / "run_conditions.csv")
        (here / "calibration.json").write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    return 0


def band_quantiles(table, kinds) -> dict:
    """10th and 90th percentile of ln(measured / predicted) by class: known stacks from runs left
    out by fold and by source (where another
    source ran the stack), unknown ones with the whole stack left out; the two ways of a class weigh
    alike."""
    moe = np.asarray(table.cases.shape.moe_layers) > 0
    sources = pd.Series(table.source).groupby(table.levels["stack"]).transform("nunique").to_numpy()
    out: dict = {}
    for known, ways in (
        ("known", (("folds", sources > 0), ("source left out", sources > 1))),
        ("unknown", (("stack left out", sources > 0),)),
    ):
        for name, kind in (("dense", ~moe), ("moe", moe)):
            ends = [
                np.quantile((table.log_measured - kinds[way])[rows & kind], (0.1, 0.9))
                for way, rows in ways
            ]
            out.setdefault(known, {})[name] = [round(float(x), 4) for x in np.mean(ends, axis=0)]
    for name, (low, high) in out["unknown"].items():  # never narrower than what is known
        out["unknown"][name] = [min(low, out["known"][name][0]), max(high, out["known"][name][1])]
    return out


def write_conditions(table, path) -> None:
    """The compact table from which `bands.nearest_runs` reads: what each run was, as text and as
    the numbers it is compared by."""

    c = table.cases
    n = len(table.ids)
    tokens_per_s, _, mfu = rates(c, step_time(c).total)
    f = table.frame
    plan = [
        " ".join(f"{k}{int(v)}" for k, v in row.items() if v > 1 or k in ("tp", "pp", "dp"))
        for row in pd.DataFrame(
            {
                k: np.broadcast_to(getattr(c.plan, k), n)
                for k in ("tp", "pp", "vpp", "cp", "ep", "dp")
            }
        ).to_dict("records")
    ]
    out = pd.DataFrame(
        dict(
            id=table.ids,
            model=f.model,
            accelerator=table.levels["chip"],
            family=table.levels["family"],
            stack=table.levels["stack"],
            n_devices=f.n_devices,
            plan=plan,
            mfu=np.round(mfu * np.exp(table.log_measured) / tokens_per_s, 4),
            source=table.source,
            locator=f.locator,
        )
    )
    for name, column in conditions(c).items():
        out[name] = np.round(np.broadcast_to(column, n), 3)
    out.to_csv(path, index=False)


def _supports(table) -> dict:
    """Rows and sources behind each chip, family and stack; one source alone is marked."""
    out = {}
    for level, names in table.levels.items():
        for name in np.unique(names):
            at = names == name
            sources = len(np.unique(table.source[at]))
            out.setdefault(level, {})[name] = dict(
                rows=int(at.sum()), sources=sources, single_source=sources == 1
            )
    return out


if __name__ == "__main__":
    raise SystemExit(main())
