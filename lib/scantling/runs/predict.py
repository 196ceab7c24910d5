"""Predict the pinned plans of a table of runs, one line out for each line in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..catalogue.models.shape import flops_per_token, parameters
from ..physics import bands, calibration_file
from ..physics.cases import PRECISIONS
from ..physics.constants import gather
from ..physics.memory.chance import oom_probability, spread
from ..physics.memory.peak import memory
from ..physics.step import hardware_share, rates, step_time
from .read import Runs, to_runs

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = (
    "id",
    "step_time_s",
    "tokens_per_s_per_device",
    "model_tflops_per_device",
    "mfu",
    "mfu_low",
    "mfu_high",
    "hfu",
    "memory_bytes",
    "fits",
    "oom_probability",
    "params",
    "active_params",
    "flops_per_token",
    "band_tier",
    "assumed",
    "error",
)
# settings that decide the step: where one was inferred, the band is wider
DECISIVE = (
    "vocab",
    "ffn_hidden",
    "micro_batch",
    "recompute",
    "tp",
    "pp",
    "vpp",
    "ep",
    "global_batch_seqs",
    "precision",
)
MOST_MFU = 0.999  # of the upper end of a band


def predict_frame(frame: DataFrame, calibration: str | Path | None = None) -> DataFrame:
    """Predictions for rows in the run-table format; blank with an `error` where a row cannot be
    computed.

    mfu counts flops_per_token of the PaLM and Megatron count over the dense peak of the precision;
    hfu adds what is recomputed; mfu_low to mfu_high is the 80 % band. None of the measured columns
    is read. oom_probability and band_tier are those of an assessment.
    calibration : path of a calibration file, for the rows on its accelerator (and, where it comes
    from measured steps, of its model and precision; half of it under another stack).
    """
    import pandas as pd

    runs = to_runs(frame)
    at = np.flatnonzero(runs.ready)
    rows = {} if runs.cases is None else _predicted(runs, len(at))
    override = calibration and calibration_file.read(calibration, "--calibration")
    for each in (override.elsewhere(), override) if override and rows else ():
        if each is None:
            continue
        own = calibrated(runs, each, rows["mfu"])
        rows = {k: np.where(own["holds"], own[k], v) for k, v in rows.items()}
    out = pd.DataFrame(rows, index=at).reindex(index=range(len(runs.ids)), columns=COLUMNS)
    out = out.assign(
        id=runs.ids, assumed=runs.assumed, error=runs.errors, fits=out.get("fits", pd.NA)
    )
    counts = ["params", "active_params"]
    out[counts] = out[counts].astype(float).round().astype("Int64")
    return out


def _predicted(runs: Runs, n: int) -> dict:
    """Columns of the `n` rows that have a case."""
    c = runs.cases
    seconds = np.broadcast_to(step_time(c).total, n)
    tokens_per_s, flops, mfu = rates(c, seconds)
    count = parameters(c.shape)
    per_token = flops_per_token(c.shape, c.attended)
    held = memory(c)
    used = np.broadcast_to(held.total, n)
    low, high = bands.band(
        c,
        known=np.array([*map(bands.known_stack, runs.stacks)]),
        seen_chip=np.array([*map(bands.known_chip, runs.chips)]),
        seen_family=np.array([*map(bands.known_family, runs.families)]),
        **known_of([a for a, ready in zip(runs.assumed, runs.ready) if ready], seconds),
    )
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
        oom_probability=oom_probability(
            used, np.broadcast_to(held.capacity, n), [*map(spread, runs.stacks)]
        ),
        band_tier=[*map(bands.tier, runs.stacks, runs.chips)],
        params=count.total,
        active_params=count.active,
        flops_per_token=per_token.total + per_token.mtp,
    )


def calibrated(runs: Runs, override: calibration_file.Override, mfu) -> dict:
    """Columns of the ready rows with the constants of a calibration file; `holds`: for which."""
    c = runs.cases
    active = np.broadcast_to(parameters(c.shape).active, mfu.shape)
    names = np.broadcast_to(c.job.precision, mfu.shape)
    alike = [override.holds(float(a), PRECISIONS[int(p)]) for a, p in zip(active, names)]
    constants = gather(runs.families, runs.chips, runs.stacks, override.offsets, c.software.tuned)
    override = override.under(runs.stacks)
    own = _predicted(replace(runs, cases=override.applied(c, constants)), mfu.size)
    low, high = override.narrowed(own["mfu"] / own["mfu_high"], own["mfu"] / own["mfu_low"], c)
    own |= {
        "mfu_low": own["mfu"] / high,
        "mfu_high": own["mfu"] / low,
        "band_tier": bands.tier("", "", measured=True),
    }
    return own | {"holds": (runs.chips == override.accelerator) & np.array(alike)}


def decisive(assumed: str) -> list:
    """The settings that decide the step among those that were inferred for a row."""
    inferred = {part.split("=")[0] for part in assumed.split("; ")}
    return [name for name in DECISIVE if name in inferred]


def known_of(assumed, step_s) -> dict:
    """What every row says of itself, as `bands.band` takes it; `assumed`: what was inferred."""
    return dict(inferred=np.array([bool(decisive(a)) for a in assumed]), step_s=step_s)
