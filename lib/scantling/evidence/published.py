"""The tables of what has been published (`catalogue.published`), worked out again from the published
runs: `python -m scantling.evidence.published`."""

from __future__ import annotations

import csv

import numpy as np

from .. import catalogue
from ..base.errors import DesignError
from ..catalogue.published import AXES, LONGEST, group_of
from ..physics.pipeline import SCHEDULE_NAMES
from .predict import predict_frame
from .runs import read_runs, to_runs


def main() -> None:
    """Write both tables from the published runs of high and medium trust."""
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    frame = frame[frame.trust.isin(("high", "medium"))].reset_index(drop=True)
    rate = frame.measured_tokens_per_s_per_device.astype(float)
    flops = predict_frame(frame).flops_per_token.to_numpy(float)
    rows = {}
    for i, row in frame.iterrows():
        precision = row.precision or "bf16"
        try:
            peak = catalogue.accelerator(row.accelerator).peak_flops(precision)
        except DesignError:
            continue
        mfu = rate[i] * flops[i] / peak
        key = (row.accelerator, group_of(precision), int((row.moe_experts or 0) > 1))
        if (
            row.seq_len <= LONGEST
            and np.isfinite(mfu)
            and np.isfinite(row.n_devices)
            and (key not in rows or mfu > float(rows[key]["mfu"]))
        ):
            rows[key] = dict(
                id=" ".join(map(str, key)),
                chip=key[0],
                precision=key[1],
                moe=key[2],
                mfu=f"{mfu:.4f}",
                devices=int(row.n_devices),
                run=row.id,
                model=row.model,
                source=row.source,
                date=row.published,
                verified="derived",
            )
    _write("published_best.csv", [rows[k] for k in sorted(rows)])
    reach = [
        _furthest(frame, field, frame["n_devices" if field == "devices" else field])
        for field in AXES
    ]
    runs = to_runs(frame)
    used = frame[runs.ready].reset_index(drop=True)
    schedule, pp = (
        np.broadcast_to(np.asarray(x), len(used))
        for x in (runs.cases.plan.schedule, runs.cases.plan.pp)
    )
    for code, name in enumerate(SCHEDULE_NAMES):
        mask = (schedule == code) & (pp > 1)
        if mask.any():
            reach.append(_furthest(used[mask], f"schedule {name}", used[mask].n_devices))
    _write("published_reach.csv", reach)


def _furthest(frame, field, column) -> dict:
    row = frame.loc[column.astype(float).idxmax()]
    return dict(
        id=field,
        field=field,
        value=int(column.max()),
        run=row.id,
        model=row.model,
        chip=row.accelerator,
        devices=int(row.n_devices),
        source=row.source,
        date=row.published,
        verified="derived",
    )


def _write(name, rows):
    with open(catalogue.HERE / name, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
