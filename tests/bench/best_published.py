"""Works out the tables of what has been run and published, best MFU and furthest reach, from the
dated published runs of high and medium trust: `make published`."""

from __future__ import annotations

import numpy as np
from scantling.base.errors import DesignError
from scantling.catalogue import HERE, accelerator
from scantling.catalogue.published import AXES, LONGEST, group_of
from scantling.physics.cases import ZERO2
from scantling.physics.pipeline import SCHEDULE_NAMES
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs
from scantling.runs.to_cases import to_runs


def main() -> None:
    """Write both tables."""
    frame = read_runs(HERE / "published_runs.csv")
    known = frame.trust.isin(("high", "medium")) & frame.published.fillna("").ne("")
    frame = frame[known].reset_index(drop=True)
    _write("published_best.csv", _best(frame))
    _write("published_reach.csv", _reach(frame))


def _best(frame):
    """The run of highest MFU of each device, precision group and kind of model; models whose shape
    is a config apart: few of a hybrid's operations are the matrix products that MFU counts."""
    flops = frame.measured_tokens_per_s_per_device.astype(float) * predict_frame(
        frame
    ).flops_per_token.astype(float)
    precision = frame.precision.replace("", "bf16")
    rows = _run_of(frame).assign(
        precision=precision.map(group_of),
        moe=(frame.moe_experts.fillna(0) > 1).astype(int),
        mfu=flops / [_peak(a, p) for a, p in zip(frame.accelerator, precision)],
    )
    plain = frame.layers.notna() & (frame.hf_config.fillna("") == "")  # mixers alone are attention
    rows = rows[(frame.seq_len <= LONGEST) & rows.mfu.notna() & frame.n_devices.notna() & plain]
    rows = rows.sort_values("mfu", ascending=False, kind="stable")
    kind = ["chip", "precision", "moe"]
    rows = rows.drop_duplicates(kind).sort_values(kind)
    return rows.assign(
        id=rows[kind].astype(str).agg(" ".join, axis=1), mfu=rows.mfu.map("{:.4f}".format)
    )[["id", *kind, "mfu", "devices", "run", "model", "source", "date"]]


def _peak(chip, precision) -> float:
    """Dense peak [FLOP/s]; nan where the device has no such unit."""
    try:
        return accelerator(chip).peak_flops(precision)
    except DesignError:
        return np.nan


def _reach(frame):
    """The run that takes each axis, each pipeline schedule, and zero2 that adds up
    over micro-batches, furthest."""
    columns = {f: frame["n_devices" if f == "devices" else f] for f in AXES}
    runs = to_runs(frame)
    plan = runs.cases.plan
    schedule = np.full(len(frame), -1)
    schedule[runs.ready] = np.where(plan.pp > 1, plan.schedule, -1)
    for code, name in enumerate(SCHEDULE_NAMES):
        if (schedule == code).any():
            columns[f"schedule {name}"] = frame.n_devices.where(schedule == code)
    again = np.zeros(len(frame), bool)
    again[runs.ready] = (plan.sharding == ZERO2) & (runs.cases.micro_batches > 1)
    columns["zero2 over micro-batches"] = frame.n_devices.where(again)
    at = [column.astype(float).idxmax() for column in columns.values()]
    rows = (
        _run_of(frame)
        .loc[at]
        .assign(
            id=list(columns),
            field=list(columns),
            value=[int(column.max()) for column in columns.values()],
        )
    )
    return rows[["id", "field", "value", "run", "model", "chip", "devices", "source", "date"]]


def _run_of(frame):
    """What both tables say of a run."""
    return frame[["id", "model", "accelerator", "n_devices", "source", "published"]].rename(
        columns={"id": "run", "accelerator": "chip", "n_devices": "devices", "published": "date"}
    )


def _write(name, rows):
    rows = rows.assign(devices=rows.devices.astype(int), verified="derived")
    rows.to_csv(HERE / name, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
