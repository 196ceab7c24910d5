"""Predict the pinned plans of a table of runs, one line out for each line in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..base.columns import Array, Column
from ..base.records import pick, record
from ..base.units import DAY_S, HOUR_S
from ..catalogue.models.shape import flops_per_token, parameters
from ..physics import bands, calibration_file
from ..physics.cases import Cases
from ..physics.constants import gather
from ..physics.memory.chance import oom_probability, spread
from ..physics.memory.peak import memory
from ..physics.step import hardware_share, rates, step_time
from .frames import has_pandas, table_of
from .run_table import Table
from .to_cases import Runs, to_runs

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
    "days",
    "cost_usd",
    "band_tier",
    "site_kind",
    "assumed",
    "error",
)
COUNTS = ("params", "active_params")
BLANK_WORDS = ("fits", "band_tier", "site_kind")  # columns of text, blank where a row has no case
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


@record
class Predicted:
    """Predictions of the rows that have a case, as columns of COLUMNS."""

    step_time_s: Array
    tokens_per_s_per_device: Array
    model_tflops_per_device: Array
    mfu: Array
    mfu_low: Array
    mfu_high: Array
    hfu: Array
    memory_bytes: Array
    fits: Array  # "true" or "false"
    oom_probability: Array
    params: Array
    active_params: Array
    flops_per_token: Array
    days: Array  # where the row names its tokens
    cost_usd: Array  # where it names the price of an hour besides
    band_tier: Array
    site_kind: Array  # recipe, ordinary or first-week: whose spread the band has


def predict(runs: Table, calibration: str | Path | None = None) -> DataFrame | dict[str, Array]:
    """Predictions for rows in the run-table format; blank with an `error` where a row cannot be
    computed. A pandas DataFrame where pandas is installed, else a mapping of columns.

    mfu counts flops_per_token of the PaLM and Megatron count over the dense peak of the precision;
    hfu adds what is recomputed; mfu_low to mfu_high is the 80 % band. None of the measured columns
    is read. oom_probability and band_tier are those of an assessment; site_kind is the kind of site
    whose spread the band has.
    calibration : path of a calibration file, for the rows on its accelerator; what measured steps
    tell fades with how unlike them a row is.
    """
    columns = predicted_columns(runs, calibration)
    return frame_of_predictions(columns) if has_pandas() else columns


def predict_frame(frame: DataFrame) -> DataFrame:
    """`predict` of the rows of a data frame."""
    return frame_of_predictions(predicted_columns(table_of(frame)))


def frame_of_predictions(columns: Mapping[str, Array]) -> DataFrame:
    """Predictions as a data frame; blank ids and words are missing, counts are whole."""
    import pandas as pd

    out = pd.DataFrame(columns)
    for name in ("id", *BLANK_WORDS):
        out[name] = out[name].mask(columns[name] == "")
    return out.astype(dict.fromkeys(COUNTS, "Int64"))


def predicted_columns(runs: Table, calibration: str | Path | None = None) -> dict[str, Array]:
    """What `predict` returns, as columns without pandas: nan, or "" in text, where a row has no
    case; params and active_params are whole."""
    rows = to_runs(runs)
    override = None
    if calibration:
        override = calibration_file.read(calibration, "--calibration")
    columns = {name: np.full(len(rows.ids), np.nan) for name in COLUMNS}
    for name in BLANK_WORDS:
        columns[name] = np.full(len(rows.ids), "", object)
    if rows.cases is not None:
        predicted = predicted_of(rows, rows.cases)
        if override is not None:
            predicted = calibrated(rows, rows.cases, override, predicted)
        for name, column in vars(predicted).items():
            columns[name][rows.ready] = column
    for name in COUNTS:
        columns[name] = np.round(columns[name])
    columns["id"] = rows.ids
    columns["assumed"] = np.array(rows.assumed, object)
    columns["error"] = np.array(rows.errors, object)
    return columns


def predicted_of(runs: Runs, cases: Cases) -> Predicted:
    """Predictions of the rows that have a case."""
    n = len(runs.stacks)
    seconds = np.broadcast_to(step_time(cases).total, n)
    tokens_per_s, flops, mfu = rates(cases, seconds)
    count = parameters(cases.shape)
    per_token = flops_per_token(cases.shape, cases.attended)
    peak = memory(cases)
    peak_bytes = np.broadcast_to(peak.total, n)
    capacity = np.broadcast_to(peak.capacity, n)
    days = column(runs.tokens / (tokens_per_s * cases.devices) / runs.goodput / DAY_S, n)
    assumed = [text for text, ready in zip(runs.assumed, runs.ready) if ready]
    mechanisms = bands.mechanisms(cases, runs.families, runs.fabrics)
    low, high = bands.band(
        cases,
        measured=bands.measured_mechanisms(mechanisms),
        known=np.array([bands.known_stack(stack) for stack in runs.stacks]),
        seen_chip=np.array([bands.known_chip(chip) for chip in runs.chips]),
        seen_family=np.array([bands.known_family(family) for family in runs.families]),
        inferred=any_decisive(assumed),
        step_s=seconds,
    )
    return Predicted(
        step_time_s=seconds,
        tokens_per_s_per_device=column(tokens_per_s, n),
        model_tflops_per_device=column(flops / 1e12, n),
        mfu=column(mfu, n),
        mfu_low=column(mfu / high, n),
        mfu_high=np.minimum(mfu / low, np.maximum(bands.MOST_MFU, mfu)),
        hfu=column(mfu * hardware_share(cases), n),
        memory_bytes=peak_bytes,
        fits=np.where(np.broadcast_to(peak.fits, n), "true", "false").astype(object),
        oom_probability=column(oom_probability(peak_bytes, capacity, spread()), n),
        params=column(count.total, n),
        active_params=column(count.active, n),
        flops_per_token=column(per_token.total + per_token.mtp, n),
        days=days,
        cost_usd=days * (DAY_S / HOUR_S) * runs.usd_per_hour,
        band_tier=np.array([bands.tier(s, c) for s, c in zip(runs.stacks, runs.chips)], object),
        site_kind=column(bands.site_kind(cases.software.tuned), n),
    )


def column(value: Column, n: int) -> Array:
    """A number or a column as a column of n rows."""
    return np.broadcast_to(np.asarray(value), n)


def calibrated(
    runs: Runs, cases: Cases, override: calibration_file.Override, usual: Predicted
) -> Predicted:
    """Predictions with the constants of a calibration file for the rows that it holds for, the
    usual ones for the others."""
    n = len(runs.stacks)
    holds = runs.chips == override.accelerator
    constants = gather(
        runs.families, runs.chips, runs.stacks, override.offsets, cases.software.tuned
    )
    override = override.under(runs.stacks)
    here = predicted_of(runs, override.applied(cases, constants))
    low, high = override.narrowed(here.mfu / here.mfu_high, here.mfu / here.mfu_low, cases)
    tier = bands.tier("", "", measured=True)
    here = replace(
        here, mfu_low=here.mfu / high, mfu_high=here.mfu / low, band_tier=np.full(n, tier, object)
    )
    return pick(holds, here, usual)


def decisive(assumed: str) -> list[str]:
    """The settings that decide the step among those that were inferred for a row."""
    inferred = {part.split("=")[0] for part in assumed.split("; ")}
    return [name for name in DECISIVE if name in inferred]


def any_decisive(assumed: Sequence[str]) -> Array:
    """Whether a setting that decides the step was inferred, a row each."""
    return np.array([bool(decisive(text)) for text in assumed])
