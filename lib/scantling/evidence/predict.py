"""Predict the pinned plans of a table of runs, one line out for each line in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..catalogue.models.shape import flops_per_token, parameters
from ..physics import bands
from ..physics.memory.peak import memory
from ..physics.step import hardware_share, rates, step_time
from .runs import Runs, read_runs, to_runs

COLUMNS = (
    "id step_time_s tokens_per_s_per_device model_tflops_per_device mfu mfu_low "
    "mfu_high hfu memory_bytes fits params active_params flops_per_token "
    "assumed error"
).split()
DECISIVE = (
    "vocab=",
    "ffn_hidden=",
    "micro_batch=",
    "recompute=",
    "tp=",
    "pp=",
    "vpp=",
    "ep=",
    "global_batch_seqs=",
    "precision=",
)


def predict_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Predictions for rows in the run-table format; blank with an `error` where a dimension of the
    model is missing.

    mfu counts flops_per_token of the PaLM and Megatron count over the dense peak of the precision;
    hfu adds what is recomputed;
    mfu_low to mfu_high is the 80 % band. None of the measured columns is read.
    """
    runs = to_runs(frame)
    out = pd.DataFrame({"id": runs.ids}).reindex(columns=COLUMNS)
    for name in ("assumed", "error"):
        out[name] = out[name].astype(object)
    out["assumed"], out["error"] = runs.assumed, runs.errors
    out["fits"] = out["fits"].astype(object)
    if runs.cases is None:
        return out
    c, at = runs.cases, np.flatnonzero(runs.ready)
    step = step_time(c)
    total = np.broadcast_to(step.total, len(at))
    tokens_per_s, flops, mfu = rates(c, total)
    count, per_token = parameters(c.shape), flops_per_token(c.shape, c.job.seq_len)
    used, fits = _memory(c)
    low, high = band_of(runs, used / np.broadcast_to(c.chip.usable_bytes, len(at)))
    columns = dict(
        step_time_s=total,
        tokens_per_s_per_device=tokens_per_s,
        model_tflops_per_device=flops / 1e12,
        mfu=mfu,
        mfu_low=mfu / high,
        mfu_high=np.minimum(mfu / low, np.maximum(0.999, mfu)),
        hfu=mfu * hardware_share(c),
        memory_bytes=used,
        params=count.total + count.mtp * 0,
        active_params=count.active,
        flops_per_token=per_token.total + per_token.mtp,
    )
    for name, values in columns.items():
        column = np.full(len(out), np.nan)
        column[at] = values
        out[name] = column
    for name in ("params", "active_params"):
        out[name] = out[name].round().astype("Int64")
    said = np.full(len(out), "", dtype=object)
    said[at] = fits
    out["fits"] = said
    return out


def band_of(runs: Runs, memory_share=0.0):
    """The band factors of every ready row, widened where a setting that decides the step was
    inferred."""
    inferred = np.array(
        [
            any(f"{w}" in f"; {a}" for w in (f"; {d}" for d in DECISIVE))
            for a, r in zip(runs.assumed, runs.ready)
            if r
        ]
    )
    each = lambda test, names: np.array([test(n) for n in names])  # noqa: E731
    return bands.band(
        runs.cases,
        each(bands.known_stack, runs.stacks),
        each(bands.known_chip, runs.chips),
        inferred,
        each(bands.single_source, runs.stacks),
        np.nan_to_num(memory_share),
        each(bands.known_family, runs.families),
    )


def _memory(c):
    """(bytes of the fullest device as the stack's figures count them, "true" where they fit)."""
    m = memory(c)
    used, fits = (np.broadcast_to(column, len(c)) for column in (m.total, m.fits))
    return used, np.where(fits, "true", "false").astype(object)


def predict_file(source, output) -> pd.DataFrame:
    """Read a run table, write its predictions as CSV, return them."""
    out = predict_frame(read_runs(source))
    out.to_csv(Path(output), index=False)
    return out
