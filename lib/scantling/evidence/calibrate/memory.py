"""Fit the memory model's few constants on published peaks and on configurations that ran out of
memory.

`python -m scantling.evidence.calibrate.memory [MEMORY.csv]` writes
catalogue/memory_calibration.json: the offsets, the date, the rows and the
residuals, with the same figures over folds and with each stack left out. A row that ran pulls the
estimate below the capacity, one
that ran out of memory above it; a measured peak pulls it to its value. Nothing depends on a row's
id, source or model.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np

from ...catalogue.stacks import stack as stack_of
from ...physics.cases import Cases
from ...physics.memory.constants import PRIORS, gather
from ...physics.memory.peak import memory
from ..runs import read_runs, to_runs

SCALE = 0.05  # one standard deviation of a measured peak, in log
CALL_SCALE = 0.06  # and of a call
MARGIN_RAN, MARGIN_OUT = (
    0.0,
    0.04,
)  # by which a call should clear the capacity; a plan that fails costs more than one passed over
ROBUST = 2.0  # soft-L1 beyond so many deviations


@dataclass(frozen=True)
class Rows:
    """What the fit sees: cases, their stack, source and fold, the measured peak (nan) and whether
    they ran."""

    ids: np.ndarray
    cases: Cases
    stacks: np.ndarray
    sources: np.ndarray
    folds: np.ndarray
    measured: np.ndarray
    ran: np.ndarray

    def take(self, where) -> Rows:
        """The rows of a boolean mask."""
        return Rows(
            self.ids[where],
            self.cases.take(where),
            *(
                column[where]
                for column in (self.stacks, self.sources, self.folds, self.measured, self.ran)
            ),
        )


def read(path) -> Rows:
    """Rows of trust high and medium with a case. Raises ValueError where no row has one."""
    frame = read_runs(path)
    runs = to_runs(frame)
    if runs.cases is None:
        raise ValueError(f"{path}: no row has a case")
    frame = frame[runs.ready]
    keep = frame.trust.isin(["high", "medium"]).to_numpy()
    frame = frame[keep]
    return Rows(
        frame.id.to_numpy(),
        runs.cases.take(keep),
        runs.stacks[keep],
        frame.source.to_numpy(str),
        frame.fold.to_numpy(int),
        frame.measured_peak_memory_gb.to_numpy(float) * 1e9,
        frame.outcome.eq("ran").to_numpy(),
    )


def predict(rows: Rows, offsets: dict):
    """(total, capacity) of every row under those offsets. [bytes]"""
    constants = replace(rows.cases.constants, memory=gather(rows.stacks, offsets))
    result = memory(replace(rows.cases, constants=constants))
    return np.broadcast_to(result.total, rows.ran.shape), np.broadcast_to(
        result.capacity, rows.ran.shape
    )


def fit(rows: Rows) -> dict:
    """{constant: {"global": offset, "stack": {name: offset}}}, the log offsets that explain the
    rows best under their priors.

    Gauss-Newton with soft-L1 weights, from the priors and from a high `pair_bytes`, whose gradient
    vanishes near its prior. Rows weigh
    1/sqrt(rows of their source) up to a power, so that no sweep decides alone.
    """
    dense = [
        str(stack)
        for stack in np.unique(rows.stacks)
        if stack_of(str(stack)).memory.get("dense_masks")
    ]
    stacks = {
        name: dense if name == "pair_bytes" else [str(stack) for stack in np.unique(rows.stacks)]
        for name in PRIORS
    }
    keys = [(name, None) for name in PRIORS] + [
        (name, stack) for name, prior in PRIORS.items() if prior[2] > 0 for stack in stacks[name]
    ]
    sd = np.array([PRIORS[name][2 if stack else 1] for name, stack in keys])
    high = np.array([2.0 if name == "pair_bytes" and stack else 0.0 for name, stack in keys])
    found = [
        _descend(rows, keys, sd, start)
        for start in ([np.zeros(len(keys)), high] if dense else [np.zeros(len(keys))])
    ]
    return _offsets(keys, min(found, key=lambda one: one[0])[1] * sd)


def _descend(rows, keys, sd, x):
    """(loss, standardised offsets) at the end of the descent from x."""
    _, source, counts = np.unique(rows.sources, return_inverse=True, return_counts=True)
    weight = (counts[source] / 10.0) ** -0.25
    peak = np.isfinite(rows.measured)

    def residuals(x):
        total, capacity = predict(rows, _offsets(keys, x * sd))
        share = np.log(total / capacity)
        calls = (
            np.where(rows.ran, np.maximum(share + MARGIN_RAN, 0), np.minimum(share - MARGIN_OUT, 0))
            / CALL_SCALE
        )
        peaks = np.where(peak, np.log(total / np.where(peak, rows.measured, total)) / SCALE, 0.0)
        return np.concatenate([calls * ~peak, peaks]) * np.tile(weight, 2)

    raw = residuals(x)
    best, damp = _loss(raw, x), 1.0
    for _ in range(40):
        scale = (1 + (raw / ROBUST) ** 2) ** -0.25
        jacobian = np.empty((len(raw), len(x)))
        for j in range(len(x)):
            step = x.copy()
            step[j] += 0.02
            jacobian[:, j] = (residuals(step) - raw) / 0.02 * scale
        before = best
        for _ in range(6):
            trial = x + np.linalg.solve(
                jacobian.T @ jacobian + np.eye(len(x)) * (1 + damp),
                -(jacobian.T @ (raw * scale) + x),
            )
            after = residuals(trial)
            loss = _loss(after, trial)
            if loss < best:
                x, raw, best, damp = trial, after, loss, damp / 3
                break
            damp *= 4
        if before - best < 1e-6 * before:
            break
    return best, x


def _loss(raw, x):
    return np.sum(2 * ROBUST**2 * (np.sqrt(1 + (raw / ROBUST) ** 2) - 1)) + np.sum(x**2)


def _offsets(keys, values) -> dict:
    offsets = {}
    for (name, stack), value in zip(keys, values):
        entry = offsets.setdefault(name, {"global": 0.0, "stack": {}})
        if stack is None:
            entry["global"] = round(float(value), 4)
        else:
            entry["stack"][str(stack)] = round(float(value), 4)
    return offsets


def score(rows: Rows, total, capacity) -> dict:
    """Median and 90th percentile of the error on peaks, and the shares of calls that are right, all
    and by source."""
    error = np.abs(total / rows.measured - 1)
    fits = total <= capacity

    def of(where):
        peaks, ran, oom = where & np.isfinite(error), where & rows.ran, where & ~rows.ran
        share = lambda right, among: round(float(right[among].mean()), 4) if among.any() else None  # noqa: E731
        q = lambda p: round(float(np.quantile(error[peaks], p)), 4) if peaks.any() else None  # noqa: E731
        return {
            "peaks": int(peaks.sum()),
            "median": q(0.5),
            "p90": q(0.9),
            "ran": int(ran.sum()),
            "ran_called_fitting": share(fits, ran),
            "out_of_memory": int(oom.sum()),
            "out_of_memory_called": share(~fits, oom),
        }

    return {
        "all": of(np.ones(len(fits), bool)),
        "by_source": {str(s): of(rows.sources == s) for s in np.unique(rows.sources)},
    }


def held_out(rows: Rows, groups):
    """(total, capacity) of every row from a fit that has not seen its group."""
    total, capacity = np.empty(len(rows.ran)), np.empty(len(rows.ran))
    for group in np.unique(groups):
        out = groups == group
        total[out], capacity[out] = predict(rows.take(out), fit(rows.take(~out)))
    return total, capacity


def main(path=None, target=None) -> dict:
    """Fit, evaluate over folds and with each stack left out, write the data file, and return what
    it holds."""
    here = Path(__file__).parents[2] / "catalogue"
    rows = read(path or here / "published_memory.csv")
    offsets = fit(rows)
    result = {
        "made": date.today().isoformat(),
        "rows": len(rows.ran),
        "peaks": int(np.isfinite(rows.measured).sum()),
        "out_of_memory": int((~rows.ran).sum()),
        "single_source_stacks": sorted(
            str(s)
            for s in np.unique(rows.stacks)
            if len(np.unique(rows.sources[rows.stacks == s])) == 1
        ),
        "fit": score(rows, *predict(rows, offsets)),
        "folds": score(rows, *held_out(rows, rows.folds)),
        "stack_left_out": score(rows, *held_out(rows, rows.stacks)),
        "offsets": offsets,
    }
    Path(target or here / "memory_calibration.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


if __name__ == "__main__":
    made = main(*sys.argv[1:2])
    for kind in ("fit", "folds", "stack_left_out"):
        print(kind, made[kind]["all"])
        for source, line in made[kind]["by_source"].items():
            print("   ", source[:60], {k: v for k, v in line.items() if v})
