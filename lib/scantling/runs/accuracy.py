"""Predicted against measured: by source, accelerator and stack, with a one-line baseline and the
scatter of repeated runs beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ..physics.pipeline import bubble_interleaved
from .predict import predict_frame
from .scores import over_sources, spread, typical

if TYPE_CHECKING:
    from pandas import DataFrame, Series

SAME = (
    "stack",
    "accelerator",
    "layers",
    "hidden",
    "ffn_hidden",
    "heads",
    "vocab",
    "seq_len",
    "moe_experts",
    "moe_topk",
    "n_devices",
    "precision",
    "tp",
    "sp",
    "pp",
    "vpp",
    "cp",
    "ep",
    "etp",
    "dp",
    "sharding",
    "micro_batch",
    "global_batch_seqs",
    "recompute",
    "recompute_as_printed",
    "offload",
    "other_opts",
)


def compare(frame: DataFrame) -> DataFrame:
    """The measured rows with prediction, error (predicted / measured - 1 of tokens/s), band hit,
    and the baseline's error."""
    import pandas as pd

    predicted = predict_frame(frame)
    table = frame.reset_index(drop=True)
    rate = predicted.tokens_per_s_per_device
    mfu = predicted.mfu
    measured = pd.to_numeric(table.measured_tokens_per_s_per_device, errors="coerce")
    return table.assign(
        measured=measured,
        error=rate / measured - 1,
        inside=(measured * mfu / rate).between(predicted.mfu_low, predicted.mfu_high),
        width=(predicted.mfu_high - predicted.mfu_low) / mfu,
        baseline=baseline(predicted, table) / measured - 1,
        why_not=predicted.error,
    )[measured > 0]


def baseline(predicted: DataFrame, table: DataFrame) -> Series:
    """Tokens/s by one line: half the peak, the recompute's extra forward, and the bubble of
    1F1B or its interleaved form."""
    replicas = table.dp.fillna(1)
    m = np.maximum(table.global_batch_seqs / (replicas * table.micro_batch.fillna(1)), 1.0)
    third = 1 / 3  # of a micro-batch: forward, gradient of the inputs, of the weights
    idle = bubble_interleaved(
        p=table.pp.fillna(1), v=table.vpp.fillna(1), F=third, B=third, W=third
    )
    recompute = np.where(table.recompute == "full", 4 / 3, 1.0)
    at_peak = predicted.tokens_per_s_per_device / predicted.mfu
    return at_peak * 0.5 / (1 + idle / m.fillna(8)) / recompute


class Figures(TypedDict):
    """Errors of the predictions of some rows, shares of one; a missing one counts as 100 %."""

    rows: int
    median: float  # of |error|
    p90: float
    mean: float
    bias: float  # median error
    answered: float
    coverage: float  # of the 80 % bands
    width: float
    baseline_median: float


class Scatter(TypedDict):
    """|measured / median of its configuration - 1| of repeated measurements."""

    configurations: int
    rows: int
    median: float
    p90: float


class Overall(Figures):
    """Figures of all rows, and the median over sources of each source's median |error|."""

    over_sources: float


class Validation(TypedDict):
    """All figures of a run table."""

    overall: Overall
    sparse: Figures | None  # of rows whose source prints little of its setup
    scatter: Scatter
    by: dict[str, dict[str, Figures]]
    worst: list[dict[str, Any]]
    unanswered: list[dict[str, Any]]


def figures(rows: DataFrame) -> Figures:
    """Errors, answered share, band coverage and width, and the baseline's median of some rows."""
    answered = rows.error.notna()
    done = rows[answered]
    errors = spread(rows.error)
    return Figures(
        rows=len(rows),
        median=errors["median"],
        p90=errors["p90"],
        mean=errors["mean"],
        bias=errors["bias"],
        answered=answered.mean(),
        coverage=done.inside.mean(),
        width=done.width.median(),
        baseline_median=spread(rows.baseline)["median"],
    )


def configuration(frame: DataFrame) -> Series:
    """A number for each distinct configuration."""
    return frame.groupby([c for c in SAME if c in frame], dropna=False, sort=False).ngroup()


def apart(measured: Series, key: Series) -> Series:
    """|measured / median of its configuration - 1| where it was measured more than once."""
    same = measured.groupby(key)
    return (measured / same.transform("median") - 1).abs()[same.transform("size") > 1]


def validate_frame(frame: DataFrame) -> Validation:
    """All figures of a run table; rows of trust low or setup sparse stand apart."""
    table = compare(frame)
    for name, usual in (("trust", "high"), ("setup", "full"), ("source", "")):
        if name not in table:
            table[name] = usual
    table = table[table.trust.isin(("high", "medium"))]
    full = table.setup.isin(("full", "partial"))
    counted = table[full]
    sparse = table[~full]
    by = {
        name: {str(value): figures(rows) for value, rows in counted.groupby(name)}
        for name in ("source", "accelerator", "stack")
    }
    worst = counted.loc[counted.error.abs().nlargest(15).index]
    unanswered = counted.loc[counted.error.isna(), ["id", "why_not"]]
    key = configuration(counted)
    again = apart(counted.measured, key)
    errors = typical(again)
    return Validation(
        overall=Overall(
            **figures(counted), over_sources=over_sources(counted.error, counted.source)
        ),
        sparse=figures(sparse) if len(sparse) else None,
        scatter=Scatter(
            configurations=key[again.index].nunique(),
            rows=len(again),
            median=errors["median"],
            p90=errors["p90"],
        ),
        by=by,
        worst=worst[["id", "error", "stack", "accelerator"]].to_dict("records"),
        unanswered=unanswered.set_axis(["id", "error"], axis=1).to_dict("records"),
    )
