"""Fit the memory model's few constants on published peaks, on configurations that ran out of memory
and on published runs, which fit.

`python -m tests.bench.validation.memory_fit [MEMORY.csv]` writes catalogue/memory_calibration.json:
the offsets, the date, and the spread of families left out, from which chances of running out of
memory come; it prints the errors in sample and with each family left out. A row that ran pulls
the estimate below the capacity, one that ran out of memory above it; a measured peak pulls it to
its value. A family of sources weighs as much as any other, however many rows it has. Nothing
depends on a row's id, source or model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scantling.base.records import take
from scantling.catalogue.load import HERE
from scantling.catalogue.stacks import stack as stack_of
from scantling.physics.cases import Cases
from scantling.physics.memory.chance import oom_probability, spread, student
from scantling.physics.memory.constants import PRIORS, gather
from scantling.physics.memory.peak import memory
from scantling.runs.predict import decisive
from scantling.runs.read import read_runs
from scantling.runs.to_cases import to_runs

from .robust import robust
from .throughput_fit import load

GRID = Path(__file__).parents[1] / "data" / "nanotron_grid.csv"
MEMORY, RUNS = HERE / "published_memory.csv", HERE / "published_runs.csv"
SCALE = 0.05  # one standard deviation of a measured peak, in log
CALL_SCALE = 0.06  # and of a call
# by which a call should clear the capacity; a plan that fails costs more than one passed over
MARGIN_RAN = 0.0
MARGIN_OUT = 0.04
ROBUST = 2.0  # soft-L1 beyond so many deviations
# rows that a family weighs at most as much as, with its peaks and with its calls: families differ
# by more than rows of one do (of 10 and 1 the first is 1.0 points nearer in sample and 1.5 further
# off with families left out)
PEAK_ROWS, CALL_ROWS = 4.0, 80.0
RUN_WEIGHT = 0.7  # least, of a published run that is called too large
GRID_SHARE = 4  # every so many of the grid's rows are fitted
# estimates over the capacity, under the priors, at which a call can still go either way
OPEN = (0.65, 1.6)
STEP = 1e-4  # of a derivative, in deviations of a prior
# Gauss-Newton: steps at most, the shortest share of one, and how near the end lies
MOST_STEPS, LEAST_SHARE, CLOSE = 12, 0.05, 0.03
SPREADS = np.geomspace(0.02, 0.4, 61)  # tried


@dataclass(frozen=True)
class Rows:
    """What the fit sees: cases, their stack, source, family and fold, the measured peak (nan),
    whether they ran, and whether they count in scores (published runs do in the fit alone)."""

    ids: np.ndarray
    cases: Cases
    stacks: np.ndarray
    sources: np.ndarray
    families: np.ndarray
    folds: np.ndarray
    measured: np.ndarray
    ran: np.ndarray
    scored: np.ndarray

    def take(self, where: Any) -> Rows:
        """The rows of a boolean mask."""
        return take(self, where)


def read(path: Any = MEMORY, *others: pd.DataFrame) -> Rows:
    """Rows of trust high and medium with a case. Raises ValueError where no row has one."""
    table = read_runs(path)
    table["scored"] = True
    frame = pd.concat([table, *others], ignore_index=True) if others else table
    runs = to_runs(frame)
    if runs.cases is None:
        raise ValueError(f"{path}: no row has a case")
    frame = frame[runs.ready]
    keep = frame.trust.isin(["high", "medium"]).to_numpy()
    frame = frame[keep]
    unit = frame.peak_unit.fillna(1) if "peak_unit" in frame else 1.0
    return Rows(
        frame.id.to_numpy(),
        runs.cases.take(keep),
        runs.stacks[keep],
        frame.source.to_numpy(str),
        frame.family.to_numpy(str),
        frame.fold.fillna(-1).to_numpy(int),
        (frame.measured_peak_memory_gb * unit).to_numpy(float) * 1e9,
        frame.outcome.eq("ran").to_numpy(),
        frame.scored.to_numpy(bool),
    )


def grid() -> pd.DataFrame:
    """The rows of the public grid: all of them count for memory, every GRID_SHARE-th is fitted."""
    frame = read_runs(GRID).iloc[::GRID_SHARE].copy()
    frame["trust"], frame["scored"] = "medium", True
    return frame


def published() -> pd.DataFrame:
    """Published runs: all of them ran, so they fit; peaks that they print are in the memory table
    too."""
    frame = read_runs(RUNS)
    frame["outcome"], frame["measured_peak_memory_gb"], frame["scored"] = "ran", np.nan, False
    return frame


def fitted_rows(path: Any = MEMORY) -> Rows:
    """The memory table, the grid and the published runs, but for calls that no fit could change."""
    rows = read(path, grid(), published())
    total, capacity = predict(rows, {})
    share = total / capacity
    is_open = (share > OPEN[0]) & (share < OPEN[1])
    return rows.take(np.isfinite(rows.measured) | is_open)


def predict(rows: Rows, offsets: Mapping[str, Any] | None) -> tuple[np.ndarray, np.ndarray]:
    """(total, capacity) of every row under those offsets. [bytes]"""
    result = memory(
        replace(
            rows.cases, constants=replace(rows.cases.constants, memory=gather(rows.stacks, offsets))
        )
    )
    total, capacity = np.broadcast_arrays(result.total, result.capacity, rows.ran)[:2]
    return total, capacity


def weights_of(rows: Rows) -> np.ndarray:
    """Weight of each row's residual: that of PEAK_ROWS rows a family for peaks, the root of that of
    CALL_ROWS for calls."""
    weights = np.ones(len(rows.ran))
    peak = np.isfinite(rows.measured)
    for kind, most, power in ((peak, PEAK_ROWS, 0.5), (~peak, CALL_ROWS, 0.25)):
        _, family, counts = np.unique(rows.families[kind], return_inverse=True, return_counts=True)
        weights[kind] = np.minimum((most / counts) ** power, 1.0)[family]
    return np.where(rows.scored, weights, np.maximum(weights, RUN_WEIGHT))


class Problem:
    """The least-squares problem of some rows: which offsets are open, how far, and the residuals of
    calls and peaks under them."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        stacks = [str(stack) for stack in np.unique(rows.stacks[rows.scored])]
        dense = [stack for stack in stacks if stack_of(stack).memory.get("dense_masks")]
        self.keys: list[tuple[str, str | None]] = [(name, None) for name in PRIORS]
        for name, prior in PRIORS.items():
            if prior.stack_sd > 0:
                self.keys += [
                    (name, stack) for stack in (dense if name == "pair_bytes" else stacks)
                ]
        self.sd = np.array(
            [PRIORS[name].stack_sd if stack else PRIORS[name].sd for name, stack in self.keys]
        )
        self.weight = weights_of(rows)
        self.peak = np.isfinite(rows.measured)

    def start(self) -> np.ndarray:
        """A high `pair_bytes` of the stacks with dense masks, whose gradient vanishes near its
        prior; the priors of the rest."""
        return np.array(
            [2.0 if name == "pair_bytes" and stack else 0.0 for name, stack in self.keys]
        )

    def offsets(self, x: np.ndarray) -> dict[str, Any]:
        """Offsets of a vector in deviations of the priors."""
        offsets: dict[str, Any] = {name: {"global": 0.0, "stack": {}} for name in PRIORS}
        for (name, stack), value in zip(self.keys, np.round(x * self.sd, 6).tolist()):
            if stack is None:
                offsets[name]["global"] = value
            else:
                offsets[name]["stack"][stack] = value
        return offsets

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """One of each row, soft-L1, in its own deviations."""
        rows = self.rows
        total, capacity = predict(rows, self.offsets(x))
        share = np.log(total / capacity)
        over = np.maximum(share + MARGIN_RAN, 0)
        under = np.minimum(share - MARGIN_OUT, 0)
        calls = ~self.peak * np.where(rows.ran, over, under) / CALL_SCALE
        peaks = np.log(total / np.where(self.peak, rows.measured, total)) / SCALE
        return np.asarray(ROBUST * robust((calls + peaks) * self.weight / ROBUST))

    def slopes(self, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Derivatives of the residuals `at` x."""
        columns = []
        for i in range(len(x)):
            moved = x.copy()
            moved[i] += STEP
            columns.append((self.residuals(moved) - at) / STEP)
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Solution:
    """Where a problem ends: the offsets in deviations, the residuals and their slopes there."""

    problem: Problem
    x: np.ndarray
    residuals: np.ndarray
    slopes: np.ndarray

    def without(self, out: np.ndarray) -> dict[str, Any]:
        """The offsets that the other rows ask for: a Gauss-Newton step of their own problem."""
        slopes, residuals = self.slopes[~out], self.residuals[~out]
        return self.problem.offsets(self.x + gauss_newton(slopes, residuals, self.x))


def gauss_newton(slopes: np.ndarray, residuals: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A step towards the least squares of residuals and of x itself, the priors."""
    gradient = slopes.T @ residuals + x
    return np.asarray(-np.linalg.solve(slopes.T @ slopes + np.eye(len(x)), gradient))


def solve(rows: Rows) -> Solution:
    """The log offsets that explain the rows best under their priors: least squares of soft-L1
    residuals, by Gauss-Newton steps that halve where they would make it worse."""
    problem = Problem(rows)
    x = problem.start()
    for _ in range(MOST_STEPS):
        residuals = problem.residuals(x)
        slopes = problem.slopes(x, residuals)
        step, cost = gauss_newton(slopes, residuals, x), residuals @ residuals + x @ x
        share = 1.0
        while share > LEAST_SHARE:
            ahead = problem.residuals(x + share * step)
            if ahead @ ahead + (x + share * step) @ (x + share * step) <= cost:
                break
            share /= 2
        x = x + share * step
        if np.abs(share * step).max() < CLOSE:
            break
    residuals = problem.residuals(x)
    return Solution(problem, x, residuals, problem.slopes(x, residuals))


def fit(rows: Rows) -> dict[str, Any]:
    """{constant: {"global": offset, "stack": {name: offset}}} of `solve`."""
    solution = solve(rows)
    return rounded(solution.problem.offsets(solution.x))


def rounded(offsets: dict[str, Any]) -> dict[str, Any]:
    """Offsets with four decimals."""
    return {
        name: {
            "global": round(levels["global"], 4),
            "stack": {stack: round(value, 4) for stack, value in levels["stack"].items()},
        }
        for name, levels in offsets.items()
    }


def family_quantile(values: np.ndarray, families: np.ndarray, share: float) -> float:
    """A quantile of some values, each family with weight one."""
    _, family, counts = np.unique(families, return_inverse=True, return_counts=True)
    order = np.argsort(values)
    weight = np.cumsum((1 / counts)[family][order])
    return float(values[order][np.searchsorted(weight, share * weight[-1])])


def score(rows: Rows, total: np.ndarray, capacity: np.ndarray) -> dict[str, Any]:
    """Median and 90th percentile of the error on peaks, each family with weight one, and the shares
    of calls that are right."""
    error = np.abs(total / rows.measured - 1)
    fits = total <= capacity

    def part(values: np.ndarray) -> float | None:
        return round(float(np.mean(values)), 4) if values.size else None

    peaks = rows.scored & np.isfinite(error)
    size, families = error[peaks], rows.families[peaks]
    ran = fits[rows.scored & rows.ran]
    out = ~fits[rows.scored & ~rows.ran]
    return {
        "peaks": size.size,
        "families": int(np.unique(families).size),
        "median": round(family_quantile(size, families, 0.5), 4) if size.size else None,
        "p90": round(family_quantile(size, families, 0.9), 4) if size.size else None,
        "ran": ran.size,
        "ran_called_fitting": part(ran),
        "out_of_memory": out.size,
        "out_of_memory_called": part(out),
    }


def chances(total: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """The chance of each row to run out of memory."""
    return np.asarray(oom_probability(total, capacity, spread()))


def ran(path: Any) -> tuple[np.ndarray, np.ndarray]:
    """(chance to run out of memory, whether recompute and micro-batch are printed) of every counted
    run of a table of published runs: all of them ran."""
    table = load(path)
    held = memory(table.cases)
    total, capacity = np.broadcast_arrays(held.total, held.capacity, table.log_measured)[:2]
    assumed = table.frame.assumed
    known = np.array([not {"recompute", "micro_batch"} & {*decisive(a)} for a in assumed])
    return np.asarray(oom_probability(total, capacity, spread())), known


def held_out(solution: Solution, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """(total, capacity) of scored rows from offsets that have not seen their family; of the others
    from all."""
    fitted = solution.problem.rows.families
    offsets = solution.problem.offsets(solution.x)
    total, capacity = (np.array(column) for column in predict(rows, offsets))
    for family in np.unique(rows.families[rows.scored]):
        here = rows.families == family
        unseen = solution.without(fitted == family)
        total[here], capacity[here] = predict(rows.take(here), unseen)
    return total, capacity


def spread_of(rows: Rows, total: np.ndarray, capacity: np.ndarray, where: np.ndarray) -> float:
    """The scale of ln(measured / estimate) that the rows in `where` bear out best: most likely
    under Student's t with four degrees of freedom, each family with weight one, calls by their
    chance."""
    peak = np.isfinite(rows.measured)
    off = np.log(np.where(peak, rows.measured, total) / total)
    room = np.log(total / capacity)
    _, family, counts = np.unique(rows.families[where], return_inverse=True, return_counts=True)
    weight = (1 / counts)[family]

    def likelihood(scale: float) -> float:
        density = 0.375 * (1 + (off / scale) ** 2 / 4) ** -2.5 / scale
        chance = np.clip(student(room / scale), 1e-9, 1 - 1e-9)
        told = np.where(rows.ran, 1 - chance, chance)
        return float(np.sum(weight * np.log(np.where(peak, density, told))[where]))

    return float(max(SPREADS, key=likelihood))


def main(path: Any = None, target: Any = None) -> dict[str, Any]:
    """Fit, write the data file, and return what it holds; print the errors with each family left
    out and in sample."""
    fitted = fitted_rows(path or MEMORY)
    rows = read(path or MEMORY, grid())
    solution = solve(fitted)
    offsets = rounded(solution.problem.offsets(solution.x))
    left_out = held_out(solution, rows)
    result = {
        "made": date.today().isoformat(),
        "spread": round(spread_of(rows, *left_out, rows.scored), 4),
        "offsets": offsets,
    }
    for kind, found in (("in sample", predict(rows, offsets)), ("family left out", left_out)):
        print(kind, score(rows, *found))
    Path(target or HERE / "memory_calibration.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


if __name__ == "__main__":
    main(*sys.argv[1:2])
