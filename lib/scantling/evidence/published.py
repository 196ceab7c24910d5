"""What has been run and published: the best model FLOP utilisation by device, precision and kind of
model, and how far each axis has been taken.

MFU of the PaLM count (non-causal attention, no recompute) over the dense peak of the precision;
sequences of 16,384 tokens at most, above
which attention alone lifts the figure. Never a clamp: a prediction above the record stands, is said
to be untried, and gets a wider band.

A device is held to its own record where that is of a run of at least 64 devices; else to the best
of its die: H100, H200 and H800 (B200 and
GB200, B300 and GB300, the A100s) have the same matrix units and the same peak, so a share of it
that one reached is within reach of the
others, while a single small run of one says nothing of what it can do.

`python -m scantling.evidence.published` works both tables out again from the published runs.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache

from .. import catalogue

LONGEST = 16_384  # tokens
ROOM = 1.10  # above this many times the best published, the band is wider
ENOUGH = 64  # devices of a run from which a device is held to its own record
EVERYDAY = ("gpipe", "1f1b", "interleaved")
AXES = {
    "devices": "devices",
    "pp": "pipeline stages",
    "cp": "context-parallel ways",
    "ep": "expert-parallel ways",
    "vpp": "model parts a stage",
}


@dataclass(frozen=True)
class Best:
    """One record: MFU, the model and devices of the run, its source, the device it was reached
    on."""

    mfu: float
    run: str
    source: str
    chip: str
    devices: int


@dataclass(frozen=True)
class Reach:
    """The furthest that an axis has been taken in a published run: value, the run, its source."""

    value: int
    run: str
    source: str


def group_of(precision: str) -> str:
    """The precision as records are kept: 16 bit, fp8, fp4, or its own name."""
    return (
        "16 bit"
        if precision in ("bf16", "fp16")
        else "fp4"
        if precision == "nvfp4"
        else "fp8"
        if "fp8" in precision
        else precision
    )


@cache
def records() -> dict[tuple[str, str, bool], Best]:
    """{(device, precision group, mixture of experts): Best}."""
    return {
        (r["chip"], r["precision"], r["moe"] == "1"): Best(
            float(r["mfu"]),
            f"{r['model']} on {int(r['devices']):,} {catalogue.accelerator(r['chip']).name}",
            r["source"],
            r["chip"],
            int(r["devices"]),
        )
        for r in catalogue.read(catalogue.HERE / "published_best.csv")
    }


@cache
def reaches() -> dict[str, Reach]:
    """{field: Reach}: devices, pp, cp, ep, vpp, and `schedule NAME` for the most devices that a
    schedule was published on."""
    return {
        r["field"]: Reach(
            int(r["value"]),
            f"{r['model']} on {int(r['devices']):,} {catalogue.accelerator(r['chip']).name}",
            r["source"],
        )
        for r in catalogue.read(catalogue.HERE / "published_reach.csv")
    }


def best_published(chip: str, precision: str, moe: bool, seq_len: float) -> Best | None:
    """The record that a device (catalogue id) is held to for a precision and kind of model; None
    where there is none, or beyond LONGEST."""
    if seq_len > LONGEST:
        return None
    group, kind = group_of(precision), bool(moe)
    own = records().get((chip, group, kind))
    if own is not None and own.devices >= ENOUGH:
        return own
    die = [
        b
        for (c, g, m), b in records().items()
        if (g, m) == (group, kind)
        and catalogue.accelerator(c).die == catalogue.accelerator(chip).die
    ]
    return max(die, key=lambda b: b.mfu, default=None)


def beyond(plan: dict, devices: int) -> list[str]:
    """Where a plan (plain values) on so many devices goes further than any published run, in
    words."""
    out = []
    for field, words in AXES.items():
        value, reach = devices if field == "devices" else plan[field], reaches().get(field)
        if reach is not None and value > reach.value:
            out.append(
                f"{value:,} {words}, beyond the {reach.value:,} of any published run "
                f"({reach.run}; {reach.source})"
            )
    name = plan["schedule"]
    reach = reaches().get(f"schedule {name}")
    if plan["pp"] > 1 and name not in EVERYDAY and (reach is None or devices > 2 * reach.value):
        out.append(
            f"schedule {name} on {devices:,} devices, published on "
            + (f"{reach.value:,} at most ({reach.source})" if reach else "none")
        )
    return out


def main() -> None:
    """Write both tables from the published runs of high and medium trust."""
    import numpy as np

    from ..physics.pipeline import SCHEDULE_NAMES
    from .predict import predict_frame
    from .runs import read_runs, to_runs

    frame = read_runs(catalogue.HERE / "published_runs.csv")
    frame = frame[frame.trust.isin(("high", "medium"))].reset_index(drop=True)
    rate = frame.measured_tokens_per_s_per_device.astype(float)
    flops = predict_frame(frame).flops_per_token.to_numpy(float)
    rows = {}
    for i, row in frame.iterrows():
        precision = row.precision or "bf16"
        try:
            peak = catalogue.accelerator(row.accelerator).peak_flops(precision)
        except catalogue.DesignError:
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
