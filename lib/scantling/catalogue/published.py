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

`make published` works both tables out from the published runs.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..base.records import Lines, record
from . import accelerator
from .load import filled, indexed, rows

_BESIDES = ("run", "date", "verified")  # columns for readers and tests
LONGEST = 16_384  # tokens
ROOM = 1.10  # above this many times the best published, the band is wider
ENOUGH = 64  # devices of a run from which a device is held to its own record
BEYOND_SCHEDULE = 2  # times the devices of the largest run with a schedule, to be called untried
EVERYDAY = ("gpipe", "1f1b", "interleaved")
AXES = {
    "devices": "devices",
    "pp": "pipeline stages",
    "cp": "context-parallel ways",
    "ep": "expert-parallel ways",
    "vpp": "model parts a stage",
}


@record
class Run:
    """The published run that holds a record: its model, chip, devices and source."""

    id: str
    model: str
    chip: str
    devices: int
    source: str

    @property
    def run(self) -> str:
        """The run in words."""
        return f"{self.model} on {self.devices:,} {accelerator(self.chip).name}"


@record
class Best(Run):
    """The best MFU of a device, precision group and kind of model."""

    mfu: float
    precision: str
    moe: bool


@record
class Reach(Run):
    """The furthest that an axis has been taken."""

    value: int


def group_of(precision: str) -> str:
    """The precision as records are kept: 16 bit, fp8, fp4, or its own name."""
    if "fp8" in precision:
        return "fp8"
    return {"bf16": "16 bit", "fp16": "16 bit", "mxfp4": "fp4", "nvfp4": "fp4"}.get(
        precision, precision
    )


@cache
def records() -> dict[tuple[str, str, bool], Best]:
    """{(device, precision group, mixture of experts): Best}."""
    best = filled(Best, rows("published_best"), _BESIDES)
    return {(b.chip, b.precision, b.moe): b for b in best}


@cache
def reaches() -> dict[str, Reach]:
    """By id: devices, pp, cp, ep, vpp, and `schedule NAME` for the most devices that a
    schedule was published on."""
    return indexed(filled(Reach, rows("published_reach"), (*_BESIDES, "field")))


def _die(chip: str) -> str:
    record = accelerator(chip)
    return record.die or record.id


def best_published(chip: str, precision: str, moe: bool, seq_len: float) -> Best | None:
    """The record that a device (catalogue id) is held to for a precision and kind of model; None
    where there is none, or beyond LONGEST."""
    if seq_len > LONGEST:
        return None
    group = group_of(precision)
    kind = bool(moe)
    own = records().get((chip, group, kind))
    if own is not None and own.devices >= ENOUGH:
        return own
    die = [
        b for (c, g, m), b in records().items() if (g, m) == (group, kind) and _die(c) == _die(chip)
    ]
    return max(die, key=lambda b: b.mfu, default=None)


def published_schedules(devices: int) -> Lines:
    """Pipeline schedules of published runs of at least half so many devices, beside the everyday
    ones."""
    return tuple(
        name
        for field, reach in reaches().items()
        if field.startswith("schedule ")
        and (name := field.removeprefix("schedule ")) not in EVERYDAY
        and devices <= BEYOND_SCHEDULE * reach.value
    )


def published_accumulation(devices: int) -> bool:
    """Whether zero2 over several micro-batches is published on about so many devices: the largest
    run with it, within a factor of BEYOND_SCHEDULE either way. Below, DeepSpeed's is published,
    which sends the gradients every time."""
    reach = reaches().get("zero2 over micro-batches")
    if reach is None:
        return False
    return 1 / BEYOND_SCHEDULE <= devices / reach.value <= BEYOND_SCHEDULE


def beyond(plan: Mapping[str, Any], devices: int) -> list[str]:
    """Where a plan (plain values) on so many devices goes further than any published run, in
    words."""
    out = []
    for field, words in AXES.items():
        value = devices if field == "devices" else plan[field]
        reach = reaches().get(field)
        if reach is not None and value > reach.value:
            out.append(
                f"{value:,} {words}, beyond the {reach.value:,} of any published run "
                f"({reach.run}; {reach.source})"
            )
    name = plan["schedule"]
    if plan["pp"] > 1 and name not in (*EVERYDAY, *published_schedules(devices)):
        reach = reaches().get(f"schedule {name}")
        most = f"{reach.value:,} at most ({reach.source})" if reach else "none"
        out.append(f"schedule {name} on {devices:,} devices, published on {most}")
    return out
