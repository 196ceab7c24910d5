"""Fit the memory model's few constants on published peaks and on configurations that ran out of
memory.

`python -m tests.bench.validation.memory_fit [MEMORY.csv]` writes catalogue/memory_calibration.json:
the offsets, the date, the rows and the residuals, with the same figures over folds and with each
stack left out. A row that ran pulls the estimate below the capacity, one that ran out of memory
above it; a measured peak pulls it to its value. Nothing depends on a row's id, source or model.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from datetime import date
from operator import attrgetter
from pathlib import Path

import numpy as np
from scantling.base.records import take
from scantling.catalogue.load import HERE
from scantling.catalogue.stacks import stack as stack_of
from scantling.physics.cases import Cases
from scantling.physics.memory.chance import oom_probability, spread
from scantling.physics.memory.constants import PRIORS, gather
from scantling.physics.memory.peak import memory
from scantling.runs.predict import decisive
from scantling.runs.read import read_runs
from scantling.runs.to_cases import to_runs

from .robust import robust
from .throughput_fit import load

SCALE = 0.05  # one standard deviation of a measured peak, in log
CALL_SCALE = 0.06  # and of a call
# by which a call should clear the capacity; a plan that fails costs more than one passed over
MARGIN_RAN = 0.0
MARGIN_OUT = 0.04
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
        return take(self, where)


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
        (frame.measured_peak_memory_gb * frame.peak_unit.fillna(1)).to_numpy(float) * 1e9,
        frame.outcome.eq("ran").to_numpy(),
    )


def predict(rows: Rows, offsets: dict):
    """(total, capacity) of every row under those offsets. [bytes]"""
    result = memory(
        replace(
            rows.cases, constants=replace(rows.cases.constants, memory=gather(rows.stacks, offsets))
        )
    )
    return np.broadcast_arrays(result.total, result.capacity, rows.ran)[:2]


def fit(rows: Rows) -> dict:
    """{constant: {"global": offset, "stack": {name: offset}}}, the log offsets that explain the
    rows best under their priors.

    Least squares of soft-L1 residuals, from the priors and from a high `pair_bytes`, whose gradient
    vanishes near its prior. Rows weigh 1/sqrt(rows of their source) up to a power, so that no sweep
    decides alone.
    """
    from scipy.optimize import least_squares

    stacks = [str(stack) for stack in np.unique(rows.stacks)]
    dense = [stack for stack in stacks if stack_of(stack).memory.get("dense_masks")]
    keys = [(name, None) for name in PRIORS] + [
        (name, stack)
        for name, prior in PRIORS.items()
        if prior[2] > 0
        for stack in (dense if name == "pair_bytes" else stacks)
    ]
    sd = np.array([PRIORS[name][2 if stack else 1] for name, stack in keys])
    high = np.array([2.0 if name == "pair_bytes" and stack else 0.0 for name, stack in keys])
    starts = [np.zeros(len(keys)), high][: 2 if dense else 1]
    _, source, counts = np.unique(rows.sources, return_inverse=True, return_counts=True)
    weight = np.tile((counts[source] / 10.0) ** -0.25, 2)
    peak = np.isfinite(rows.measured)

    def residuals(x):
        total, capacity = predict(rows, _offsets(keys, x * sd))
        share = np.log(total / capacity)
        over = np.maximum(share + MARGIN_RAN, 0)
        under = np.minimum(share - MARGIN_OUT, 0)
        calls = ~peak * np.where(rows.ran, over, under) / CALL_SCALE
        peaks = np.log(total / np.where(peak, rows.measured, total)) / SCALE
        return np.r_[ROBUST * robust(np.concatenate([calls, peaks]) * weight / ROBUST), x]

    fits = [least_squares(residuals, x, ftol=1e-6) for x in starts]
    return _offsets(keys, np.round(min(fits, key=attrgetter("cost")).x * sd, 4))


def _offsets(keys, values) -> dict:
    offsets = {}
    for (name, stack), value in zip(keys, values.tolist()):
        entry = offsets.setdefault(name, {"global": 0.0, "stack": {}})
        if stack is None:
            entry["global"] = value
        else:
            entry["stack"][stack] = value
    return offsets


def score(rows: Rows, total, capacity) -> dict:
    """Median and 90th percentile of the error on peaks, and the shares of calls that are right, all
    and by source."""
    error = np.abs(total / rows.measured - 1)
    fits = total <= capacity

    def over(values, figure):
        return round(float(figure(values)), 4) if values.size else None

    def of(where):
        peaks = error[where & np.isfinite(error)]
        ran = fits[where & rows.ran]
        oom = ~fits[where & ~rows.ran]
        return {
            "peaks": peaks.size,
            "median": over(peaks, np.median),
            "p90": over(peaks, lambda sizes: np.quantile(sizes, 0.9)),
            "ran": ran.size,
            "ran_called_fitting": over(ran, np.mean),
            "out_of_memory": oom.size,
            "out_of_memory_called": over(oom, np.mean),
        }

    return {
        "all": of(np.ones(len(fits), bool)),
        "by_source": {str(s): of(rows.sources == s) for s in np.unique(rows.sources)},
    }


def chances(stacks, total, capacity) -> np.ndarray:
    """The chance of each row to run out of memory."""
    wide = [spread(name) for name in stacks]
    return np.array([oom_probability(*row) for row in zip(total, capacity, wide)])


def ran(path) -> tuple:
    """(chance to run out of memory, whether recompute and micro-batch are printed) of every counted
    run of a table of published runs: all of them ran."""
    table = load(path)
    held = memory(table.cases)
    sizes = np.broadcast_arrays(held.total, held.capacity, table.log_measured)[:2]
    said = table.frame.assumed
    known = np.array([not {"recompute", "micro_batch"} & {*decisive(a)} for a in said])
    return chances(table.levels["stack"], *sizes), known


def held_out(rows: Rows, groups):
    """(total, capacity) of every row from a fit that has not seen its group."""
    found = np.empty((2, len(rows.ran)))
    for group in np.unique(groups):
        out = groups == group
        found[:, out] = predict(rows.take(out), fit(rows.take(~out)))
    return found


def main(path=None, target=None) -> dict:
    """Fit, evaluate over folds and with each stack left out, write the data file, and return what
    it holds."""
    rows = read(path or HERE / "published_memory.csv")
    offsets = fit(rows)
    result = {
        "made": date.today().isoformat(),
        "rows": len(rows.ran),
        "peaks": int(np.isfinite(rows.measured).sum()),
        "out_of_memory": int((~rows.ran).sum()),
        "single_source_stacks": [
            str(s)
            for s in np.unique(rows.stacks)
            if len(np.unique(rows.sources[rows.stacks == s])) == 1
        ],
        "fit": score(rows, *predict(rows, offsets)),
        "folds": score(rows, *held_out(rows, rows.folds)),
        "stack_left_out": score(rows, *held_out(rows, rows.stacks)),
        "offsets": offsets,
    }
    Path(target or HERE / "memory_calibration.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


if __name__ == "__main__":
    made = main(*sys.argv[1:2])
    print(json.dumps({kind: made[kind] for kind in ("fit", "folds", "stack_left_out")}, indent=1))
