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

`python -m scantling.evidence.published` works both tables out from the published runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from . import HERE, accelerator, read

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


@dataclass(frozen=True, kw_only=True)
class Best:
    """One record: MFU, the model and devices of the run, its source, the device it was reached
    on."""

    mfu: float
    run: str
    source: str
    chip: str
    devices: int


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The furthest that an axis has been taken in a published run: value, the run, its source."""

    value: int
    run: str
    source: str


def group_of(precision: str) -> str:
    """The precision as records are kept: 16 bit, fp8, fp4, or its own name."""
    if "fp8" in precision:
        return "fp8"
    return {"bf16": "16 bit", "fp16": "16 bit", "nvfp4": "fp4"}.get(precision, precision)


def _run(row) -> str:
    """The model, devices and chip of a row in words."""
    return f"{row['model']} on {int(row['devices']):,} {accelerator(row['chip']).name}"


@cache
def records() -> dict[tuple[str, str, bool], Best]:
    """{(device, precision group, mixture of experts): Best}."""
    return {
        (r["chip"], r["precision"], r["moe"] == "1"): Best(
            mfu=float(r["mfu"]),
            run=_run(r),
            source=r["source"],
            chip=r["chip"],
            devices=int(r["devices"]),
        )
        for r in read(HERE / "published_best.csv")
    }


@cache
def reaches() -> dict[str, Reach]:
    """{field: Reach}: devices, pp, cp, ep, vpp, and `schedule NAME` for the most devices that a
    schedule was published on."""
    return {
        r["field"]: Reach(value=int(r["value"]), run=_run(r), source=r["source"])
        for r in read(HERE / "published_reach.csv")
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
        if (g, m) == (group, kind) and accelerator(c).die == accelerator(chip).die
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
