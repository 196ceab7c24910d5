"""Predict the pinned plans of a table of runs, one line out for each line in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..catalogue.models.shape import flops_per_token, parameters
from ..physics import bands
from ..physics.memory.peak import memory
from ..physics.step import hardware_share, rates, step_time
from .runs import Runs, to_runs

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "id step_time_s tokens_per_s_per_device model_tflops_per_device mfu mfu_low mfu_high hfu "
    "memory_bytes fits params active_params flops_per_token assumed error"
).split()
# settings that decide the step: where one was inferred, the band is wider
DECISIVE = (
    "vocab ffn_hidden micro_batch recompute tp pp vpp ep global_batch_seqs precision"
).split()
MOST_MFU = 0.999  # of the upper end of a band


def predict_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Predictions for rows in the run-table format; blank with an `error` where a row cannot be
    computed.

    mfu counts flops_per_token of the PaLM and Megatron count over the dense peak of the precision;
    hfu adds what is recomputed; mfu_low to mfu_high is the 80 % band. None of the measured columns
    is read.
    """
    import pandas as pd

    runs = to_runs(frame)
    at = np.flatnonzero(runs.ready)
    rows = {} if runs.cases is None else _predicted(runs, len(at))
    out = pd.DataFrame(rows, index=at).reindex(range(len(runs.ids)))
    out = out.reindex(columns=COLUMNS).assign(
        id=runs.ids,
        assumed=runs.assumed,
        error=runs.errors,
        fits=out.get("fits", pd.NA),
    )
    counts = ["params", "active_params"]
    out[counts] = out[counts].astype(float).round().astype("Int64")
    return out


def _predicted(runs: Runs, n: int) -> dict:
    """Columns of the `n` rows that have a case."""
    c = runs.cases
    seconds = np.broadcast_to(step_time(c).total, n)
    tokens_per_s, flops, mfu = rates(c, seconds)
    count, per_token = parameters(c.shape), flops_per_token(c.shape, c.job.seq_len)
    held = memory(c)
    used = np.broadcast_to(held.total, n)
    low, high = band_of(runs, used / np.broadcast_to(held.capacity, n))
    return dict(
        step_time_s=seconds,
        tokens_per_s_per_device=tokens_per_s,
        model_tflops_per_device=flops / 1e12,
        mfu=mfu,
        mfu_low=mfu / high,
        mfu_high=np.minimum(mfu / low, np.maximum(MOST_MFU, mfu)),
        hfu=mfu * hardware_share(c),
        memory_bytes=used,
        fits=np.where(np.broadcast_to(held.fits, n), "true", "false").astype(object),
        params=count.total,
        active_params=count.active,
        flops_per_token=per_token.total + per_token.mtp,
    )


def decisive(assumed: str) -> list[str]:
    """The settings that decide the step among those that were inferred for a row."""
    inferred = {part.split("=")[0] for part in assumed.split("; ")}
    return [name for name in DECISIVE if name in inferred]


def band_of(runs: Runs, memory_share):
    """The band factors of every ready row, widened where a setting that decides the step was
    inferred."""
    return bands.band(
        runs.cases,
        np.array([bands.known_stack(n) for n in runs.stacks]),
        np.array([bands.known_chip(n) for n in runs.chips]),
        np.array([bool(decisive(a)) for a, r in zip(runs.assumed, runs.ready) if r]),
        np.array([bands.single_source(n) for n in runs.stacks]),
        np.nan_to_num(memory_share),
        np.array([bands.known_family(n) for n in runs.families]),
    )
