"""Predicted against measured: by source, accelerator and stack, with a one-line baseline and the
scatter of repeated runs beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...physics.cases import accumulated
from ...physics.pipeline import bubble_interleaved
from ..predict import predict_frame

if TYPE_CHECKING:
    import pandas as pd

SAME = (
    "stack accelerator layers hidden ffn_hidden heads vocab seq_len moe_experts "
    "moe_topk n_devices precision tp sp pp vpp cp ep etp dp sharding micro_batch "
    "global_batch_seqs recompute recompute_as_printed offload other_opts"
).split()


def compare(frame: pd.DataFrame) -> pd.DataFrame:
    """The measured rows with prediction, error (predicted / measured - 1 of tokens/s), band hit,
    and the baseline's error."""
    got = predict_frame(frame)
    table = frame.reset_index(drop=True)
    measured = _measured(table)
    mfu = measured * got.mfu / got.tokens_per_s_per_device
    return table.assign(
        predicted=got.tokens_per_s_per_device,
        error=got.tokens_per_s_per_device / measured - 1,
        inside=mfu.between(got.mfu_low, got.mfu_high),
        width=(got.mfu_high - got.mfu_low) / got.mfu,
        baseline=baseline(got, table) / measured - 1,
        why_not=got.error,
    )[measured > 0]


def _measured(table):
    """Measured tokens/s per device, nan where there is none."""
    import pandas as pd

    blank = pd.Series(np.nan, index=table.index)
    return pd.to_numeric(table.get("measured_tokens_per_s_per_device", blank), errors="coerce")


def baseline(got: pd.DataFrame, table: pd.DataFrame):
    """Tokens/s by one line: half the peak, the recompute's extra forward, and the bubble of
    1F1B or its interleaved form."""
    pp, dp = table.pp.fillna(1), table.dp.fillna(1)
    m = accumulated(table.global_batch_seqs, dp, table.micro_batch.fillna(1)).fillna(8)
    third = 1 / 3  # of a micro-batch: forward, gradient of the inputs, of the weights
    idle = bubble_interleaved(
        p=pp,
        v=table.vpp.fillna(1),
        F=third,
        B=third,
        W=third,
    )
    recompute = np.where(table.recompute == "full", 4 / 3, 1.0)
    return got.tokens_per_s_per_device / got.mfu * 0.5 / (1 + idle / m) / recompute


def figures(rows: pd.DataFrame) -> dict:
    """Rows, answered share, median and 90th percentile of |error| (an unanswered row counts as 100
    %), bias, band coverage and width."""
    a = rows.error.abs().fillna(1.0)
    done = rows[rows.error.notna()]
    return dict(
        rows=len(rows),
        answered=float(len(done) / max(len(rows), 1)),
        median=float(a.median()),
        p90=float(a.quantile(0.9)),
        bias=float(done.error.median()),
        coverage=float(done.inside.mean()),
        width=float(done.width.median()),
        baseline_median=float(rows.baseline.abs().fillna(1.0).median()),
    )


def scatter(table: pd.DataFrame) -> dict:
    """How far repeated measurements of one configuration lie apart: median and 90th percentile of
    |measured / their median - 1|."""
    have = [c for c in SAME if c in table]
    groups = _measured(table).groupby([table[c] for c in have], dropna=False)
    repeated = groups.transform("size") > 1
    off = (_measured(table) / groups.transform("median") - 1).abs()[repeated]
    return dict(
        configurations=int((groups.size() > 1).sum()),
        rows=len(off),
        median=float(off.median()) if len(off) else 0.0,
        p90=float(off.quantile(0.9)) if len(off) else 0.0,
    )


def validate_frame(frame: pd.DataFrame) -> dict:
    """All figures of a run table; rows of trust low or setup sparse stand apart."""
    import pandas as pd

    table = compare(frame)

    def among(name, *words):
        return table[name].isin(words) if name in table else pd.Series(True, index=table.index)

    trusted, full = among("trust", "high", "medium"), among("setup", "full", "partial")
    counted, sparse = table[trusted & full], table[trusted & ~full]
    by = {
        name: {str(k): figures(g) for k, g in counted.groupby(name)}
        for name in ("source", "accelerator", "stack")
        if name in counted
    }
    overall = figures(counted)
    if "source" in by:
        medians = [v["median"] for v in by["source"].values()]
        overall["over_sources"] = float(np.median(medians)) if medians else 0.0
    worst = counted.loc[counted.error.abs().nlargest(15).index]
    unanswered = counted[counted.error.isna()].rename(
        columns={
            "error": "",
            "why_not": "error",
        }
    )
    return dict(
        overall=overall,
        sparse=figures(sparse) if len(sparse) else None,
        scatter=scatter(counted),
        by=by,
        worst=worst[["id", "error", "stack", "accelerator"]].to_dict("records"),
        unanswered=unanswered[["id", "error"]].to_dict("records"),
    )
