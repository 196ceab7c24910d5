"""What has been run and published: the best model FLOP utilisation by device, precision and kind of
model, how far each axis has been taken, and the plans that ran.

MFU of the PaLM count (non-causal attention, no recompute) over the dense peak of the precision;
sequences of 16,384 tokens at most, above which attention alone lifts the figure. Never a clamp: a
prediction above the record stands, is said to be untried, and gets a wider band.

A device is held to its own record where that is of a run of at least 64 devices; else to the best
of its die: H100, H200 and H800 (B200 and GB200, B300 and GB300, the A100s) have the same matrix
units and the same peak, so a share of it that one reached is within reach of the others, while a
single small run of one says nothing of what it can do.

`make published` works the tables out from the published runs.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..base.files import csv_rows
from ..base.records import Lines, record
from . import accelerator
from .load import HERE, filled, indexed, of_rows, rows
from .models.entries import PADDED, models
from .models.shape import Model

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


# what two models have alike that are one: fields of a model
DIMENSIONS = (
    "layers",
    "hidden",
    "ffn_hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "experts",
    "top_k",
    "expert_ffn_hidden",
    "shared_ffn_hidden",
    "moe_layers",
    "mtp_layers",
)


@record
class Ran(Run):
    """A plan that ran: fields of a plan, and what else decides its memory."""

    stack: str
    date: str
    seq_len: int
    precision: str
    micro_batches: int  # of a step
    grad_bytes: float  # of a gradient as it is summed
    tp: int
    cp: int
    pp: int
    vpp: int
    dp: int
    ep: int
    etp: int
    sp: int
    micro_batch: int  # sequences
    recompute_share: float  # of the layers
    sharding: str
    schedule: str
    recompute: str
    cp_type: str


def dimensions(model: Model) -> tuple[int, ...]:
    """The dimensions by which a model is known again."""
    values = vars(model)
    return tuple(int(values[name]) for name in DIMENSIONS)


def same_model(one: Model, other: Model) -> bool:
    """Whether two models are one: dimensions, feed-forward and attention, and a vocabulary that
    differs by padding alone."""
    kinds = (one.mlp, one.attention) == (other.mlp, other.attention)
    padded = abs(one.vocab / other.vocab - 1) < PADDED
    return kinds and padded and dimensions(one) == dimensions(other)


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


@cache
def _ran() -> dict[tuple[str, str], list[Ran]]:
    """Plans that ran, by device and stack."""
    plans: dict[tuple[str, str], list[Ran]] = {}
    for plan in filled(Ran, rows("published_plans"), ("run", "verified")):
        plans.setdefault((plan.chip, plan.stack), []).append(plan)
    return plans


def ran(chip: str, stack: str, model: Model) -> list[Ran]:
    """Plans of published runs of a model on a device under a stack."""
    plans = _ran().get((chip, stack), [])
    names = {plan.model for plan in plans}
    alike = {name for name in names if same_model(models()[name], model)}
    return [plan for plan in plans if plan.model in alike]


@cache
def families_of_runs(stack: str) -> frozenset[str]:
    """Families of chips on which runs of a stack are published."""
    runs = csv_rows(HERE / "run_conditions.csv")
    return frozenset(run["family"] for run in runs if run["stack"] == stack)


@of_rows
@cache
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
    die = _die(chip)
    alike = (b for (c, g, m), b in records().items() if (g, m) == (group, kind) and _die(c) == die)
    return max(alike, key=lambda b: b.mfu, default=None)


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
