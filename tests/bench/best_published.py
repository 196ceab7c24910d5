"""Works out the tables of what has been run and published, best MFU, furthest reach and plans, from
the dated published runs of high and medium trust: `make published`."""

from __future__ import annotations

import numpy as np
from scantling.base.errors import DesignError
from scantling.catalogue import HERE, accelerator
from scantling.catalogue.models.entries import PADDED, models
from scantling.catalogue.published import AXES, DIMENSIONS, LONGEST, dimensions, group_of
from scantling.catalogue.words import CP_TYPES, PRECISIONS, RECOMPUTES, SHARDINGS
from scantling.physics.pipeline import SCHEDULE_NAMES
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs
from scantling.runs.run_shapes import SHAPE
from scantling.runs.to_cases import to_runs


def main() -> None:
    """Write the tables."""
    frame = read_runs(HERE / "published_runs.csv")
    known = frame.trust.isin(("high", "medium")) & frame.published.fillna("").ne("")
    frame = frame[known].reset_index(drop=True)
    _write("published_best.csv", _best(frame))
    _write("published_reach.csv", _reach(frame))
    _write("published_plans.csv", _plans(frame))


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
    """The run that takes each axis and each pipeline schedule furthest."""
    columns = {f: frame["n_devices" if f == "devices" else f] for f in AXES}
    runs = to_runs(frame)
    plan = runs.cases.plan
    schedule = np.full(len(frame), -1)
    schedule[runs.ready] = np.where(plan.pp > 1, plan.schedule, -1)
    for code, name in enumerate(SCHEDULE_NAMES):
        if (schedule == code).any():
            columns[f"schedule {name}"] = frame.n_devices.where(schedule == code)
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


# settings that a run has to print before its plan is one that ran
PRINTED = ("tp", "pp", "sharding", "recompute", "global_batch_seqs")
PLAN = {  # column of the table: field of the plan
    **{name: name for name in ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "sp", "micro_batch")},
    "recompute_share": "recompute_share",
}
CODED = {
    "sharding": SHARDINGS,
    "schedule": SCHEDULE_NAMES,
    "recompute": RECOMPUTES,
    "cp_type": CP_TYPES,
}


def _plans(frame):
    """Runs of models of the catalogue whose plan is printed, each plan once. A micro-batch that is
    not printed is one sequence at least: the plan with one needs no more."""
    runs = to_runs(frame)
    cases = runs.cases
    plan = cases.plan
    n = int(runs.ready.sum())
    ready = frame[runs.ready].reset_index(drop=True)
    table = _run_of(ready).assign(
        chip=runs.chips,
        stack=runs.stacks,
        model=_models(ready),
        seq_len=np.broadcast_to(cases.job.seq_len, n).astype(int),
        precision=np.array(PRECISIONS)[np.broadcast_to(cases.job.precision, n)],
        micro_batches=np.broadcast_to(cases.micro_batches, n).round().astype(int),
        grad_bytes=np.broadcast_to(cases.job.grad_bytes, n),
        **{name: np.broadcast_to(vars(plan)[field], n) for name, field in PLAN.items()},
        **{
            name: np.array(words)[np.broadcast_to(vars(plan)[name], n)]
            for name, words in CODED.items()
        },
    )
    blank = ready[list(PRINTED)].isna() | (ready[list(PRINTED)] == "")
    staged = table.pp > 1
    printed = ~blank.any(axis=1) & ~(staged & ready.schedule.fillna("").eq("") & ready.vpp.isna())
    printed &= ready.offload.fillna("").isin(("", "none")) & (table.sharding != "hsdp")
    printed &= ready.half_states.fillna(0).eq(0) & ready.optimizer_group.fillna(0).eq(0)
    unprinted = ready.micro_batch.isna() & ready.grad_accum.isna()
    printed &= ~unprinted | (table.micro_batch == 1)
    table = table[printed & (table.model != "") & (table.stack != "")]
    whole = [name for name in PLAN if name != "recompute_share"]
    table = table.astype(dict.fromkeys(whole, int))
    says = [name for name in table if name not in ("run", "source", "date", "devices")]
    table = table.sort_values(["model", "chip", "stack", "run"], kind="stable")
    table = table.drop_duplicates(says).assign(id=lambda t: t.run)
    table["recompute_share"] = table.recompute_share.map("{:.6g}".format)
    return table[["id", *says, "devices", "run", "source", "date"]]


def _models(frame):
    """The catalogue's model of each row that prints its dimensions; "" where there is none."""
    dense = frame.ffn_hidden.fillna(frame.dense_ffn_hidden_in_moe_model)
    dense = dense.mask(frame.moe_layers == frame.layers, 0)
    table = frame.assign(ffn_hidden=dense, moe_layers=frame.moe_layers.where(dense.notna(), -1))
    rows = zip(*(table[SHAPE[name]].fillna(0).astype(int) for name in DIMENSIONS))
    by_dimensions = {}
    for name, model in models().items():
        by_dimensions.setdefault(dimensions(model), []).append((name, model))
    out = []
    for row, mlp, attention, vocab in zip(rows, frame.mlp, frame.attention, frame.vocab):
        alike = [
            name
            for name, model in by_dimensions.get(row, ())
            if (model.mlp, model.attention) == (mlp, attention)
            and abs(vocab / model.vocab - 1) < PADDED
        ]
        out.append(alike[0] if alike else "")
    return out


def _run_of(frame):
    """What the tables say of a run."""
    return frame[["id", "model", "accelerator", "n_devices", "source", "published"]].rename(
        columns={"id": "run", "accelerator": "chip", "n_devices": "devices", "published": "date"}
    )


def _write(name, rows):
    rows = rows.assign(devices=rows.devices.astype(int), verified="derived")
    rows.to_csv(HERE / name, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
