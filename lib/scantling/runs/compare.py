"""Predicted against measured: by source, accelerator and stack, with a one-line baseline and the
scatter of repeated runs beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..physics.cases import accumulated
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

    got = predict_frame(frame)
    table = frame.reset_index(drop=True)
    rate = got.tokens_per_s_per_device
    mfu = got.mfu
    measured = pd.to_numeric(table.measured_tokens_per_s_per_device, errors="coerce")
    return table.assign(
        measured=measured,
        error=rate / measured - 1,
        inside=(measured * mfu / rate).between(got.mfu_low, got.mfu_high),
        width=(got.mfu_high - got.mfu_low) / mfu,
        baseline=baseline(got, table) / measured - 1,
        why_not=got.error,
    )[measured > 0]


def baseline(got: DataFrame, table: DataFrame):
    """Tokens/s by one line: half the peak, the recompute's extra forward, and the bubble of
    1F1B or its interleaved form."""
    m = accumulated(
        table.global_batch_seqs, table.dp.fillna(1), table.micro_batch.fillna(1)
    ).fillna(8)
    third = 1 / 3  # of a micro-batch: forward, gradient of the inputs, of the weights
    idle = bubble_interleaved(table.pp.fillna(1), table.vpp.fillna(1), third, third, third)
    recompute = np.where(table.recompute == "full", 4 / 3, 1.0)
    return got.tokens_per_s_per_device / got.mfu * 0.5 / (1 + idle / m) / recompute


def figures(rows: DataFrame) -> dict:
    """`spread` of the error, answered share, band coverage and width, and the baseline's median."""
    answered = rows.error.notna()
    done = rows[answered]
    return spread(rows.error) | {
        "answered": answered.mean(),
        "coverage": done.inside.mean(),
        "width": done.width.median(),
        "baseline_median": spread(rows.baseline)["median"],
    }


def configuration(frame: DataFrame) -> Series:
    """A number for each distinct configuration."""
    return frame.groupby([c for c in SAME if c in frame], dropna=False, sort=False).ngroup()


def apart(measured: Series, key: Series) -> Series:
    """|measured / median of its configuration - 1| where it was measured more than once."""
    same = measured.groupby(key)
    return (measured / same.transform("median") - 1).abs()[same.transform("size") > 1]


def validate_frame(frame: DataFrame) -> dict:
    """All figures of a run table; rows of trust low or setup sparse stand apart."""
    table = compare(frame)
    blank = {"trust": "high", "setup": "full", "source": ""}
    table = table.assign(**blank | dict(table))
    table = table[table.trust.isin(("high", "medium"))]
    full = table.setup.isin(("full", "partial"))
    counted = table[full]
    sparse = table[~full]
    by = {
        name: {str(k): figures(g) for k, g in counted.groupby(name)}
        for name in ("source", "accelerator", "stack")
    }
    worst = counted.loc[counted.error.abs().nlargest(15).index]
    unanswered = counted.loc[counted.error.isna(), ["id", "why_not"]]
    key = configuration(counted)
    again = apart(counted.measured, key)
    return {
        "overall": figures(counted) | {"over_sources": over_sources(counted.error, counted.source)},
        "sparse": figures(sparse) if len(sparse) else None,
        "scatter": {"configurations": key[again.index].nunique()} | typical(again),
        "by": by,
        "worst": worst[["id", "error", "stack", "accelerator"]].to_dict("records"),
        "unanswered": unanswered.set_axis(["id", "error"], axis=1).to_dict("records"),
    }
