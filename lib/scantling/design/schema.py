"""The sections of the design file, each a frozen pydantic model. What may stand in a field, in
which unit and within which bounds, says fields.csv; how fields must agree is said here."""

from functools import cache
from json import loads
from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, Tag, create_model, model_validator

from ..base.errors import DesignError
from ..base.files import csv_rows
from ..catalogue import optimizers, words
from ..catalogue.models.entries import check_spec
from .fields import (
    Like,
    Section,
    about,
    amount,
    checked,
    count,
    flag,
    listed,
    runs,
    share,
    text,
    word,
)

TAGS = ("id:", "mapping:")  # branches of a union, dropped from error paths


def either(mapping, high: int = 200):
    """A text of at most `high` characters (an id of the catalogue, a file), or a mapping."""
    return Annotated[
        Annotated[str, text(high), Tag(TAGS[0])] | Annotated[mapping, Tag(TAGS[1])],
        Discriminator(lambda value: TAGS[not isinstance(value, str)]),
    ]


Ref = either(Like)


def _number(cell: str) -> float:
    return float(cell) if set(cell) & set(".e") else int(cell)


_NUMBERS = ("count", "share", "amount", "runs")  # kinds with both bounds
# kind of a row -> type, validator
_KINDS = {
    "word": (str, word),
    "words": (list[str], listed),
    "runs": (list[list[int]], runs),
    "text": (str, text),
    "flag": (bool, flag),
    "count": (int, count),
    "share": (float, share),
    "amount": (float, amount),
    "ref": (Ref, None),
}


def _field(row: dict) -> tuple:
    """(type, field) of one row of fields.csv; a row of kind `section` names the section that stands
    in the field."""
    if row["kind"] == "section":
        return table(row["choices"]) | None, about(row["description"])
    of, validator = _KINDS[row["kind"]]
    bounds = {k: _number(row[k]) for k in ("low", "high") if row[k]}
    choices = (vars(words) | {"OPTIMIZERS": tuple(optimizers())}).get(row["choices"], ())
    needed = {"default": ...} if row["needed"] else {}
    of = of if needed else of | None
    return Annotated[of, validator(*choices, **bounds)] if validator else of, about(
        row["description"],
        row["unit"],
        loads(row["example"] or "null"),
        choices,
        bounds=bounds if row["kind"] in _NUMBERS else {},
        usual=loads(row["default"] or "null"),
        **needed,
    )


_ROWS = csv_rows(Path(__file__).with_name("fields.csv"))


@cache
def defaults(section: str) -> dict:
    """Fields of a section that have one value wherever a design leaves them out: field -> (value,
    the rule or source that chose it)."""
    rows = (row for row in _ROWS if row["section"] == section and row["default"])
    return {row["field"]: (loads(row["default"]), row["rule"]) for row in rows}


@cache
def table(section: str) -> type[Section]:
    """The section of that name with its fields in fields.csv."""
    return create_model(
        f"{section}_fields",
        __base__=Section,
        __module__=__name__,
        **{row["field"]: _field(row) for row in _ROWS if row["section"] == section},
    )


class ModelSpec(table("model")):
    """A model by catalogue row and changes, by a Hugging Face config, by size alone, or by its
    shape."""

    @model_validator(mode="after")
    def _consistent(self):
        spec = self.given()
        check_spec(spec)
        if spec.get("experts") and not {"like", "hf_config", "size", "top_k"} & spec.keys():
            raise DesignError(
                "top_k",
                allowed="experts that a token visits, such as 2",
                problem="is missing (experts is given)",
            )
        return self


class SiteSpec(table("site")):
    """One of several datacentres."""


class DeliverySpec(table("delivery")):
    """One part of the machine."""


def _list(what: str, most: int, least: int = 1):
    """A validator of a list of so many `what`."""

    def check(value):
        good = isinstance(value, (list, tuple)) and least <= len(value) <= most
        return value, "" if good else "is not such a list"

    return checked(f"a list of {least} to {most:,} {what}", check)


def several(each, *bounds):
    """A list of a type within `bounds` (`_list`), or nothing."""
    return Annotated[list[each] | None, _list(*bounds)]


def _one_or_several(of, check, each, *bounds):
    """A number, or a list of them or of sections."""
    each = Annotated[each, check] if of is each else each
    many = Annotated[list[each], _list(*bounds), Tag(TAGS[1])]
    return (
        Annotated[
            Annotated[of, check, Tag(TAGS[0])] | many,
            Discriminator(lambda value: TAGS[isinstance(value, (list, tuple))]),
        ]
        | None
    )


class ClusterSpec(table("cluster")):
    """The machine; what is left out comes from the catalogue row of the accelerator's usual
    node."""

    delivery: several(DeliverySpec, "parts", 100) = about(
        "parts in which the devices are handed over; all on day 0 when left out",
        example=[{"day": 0, "devices": 8192}, {"day": 30, "devices": 8192}],
    )
    oversubscription: _one_or_several(float, amount(1.0, 1000.0), float, "ratios", 4) = about(
        "edge to core bandwidth; 1: none; a list: card to leaf, leaf to spine, spine to core",
        "ratio",
        1.0,
        bounds={"low": 1.0, "high": 1000.0},
    )
    sites: _one_or_several(int, count(1, 1000), SiteSpec, "sites", 1000) = about(
        "datacentres: how many of one size, or a list of them",
        "sites",
        1,
        bounds={"low": 1, "high": 1000},
    )


class PlanSpec(table("plan")):
    """Pins of the parallel plan; what is left out is searched."""


class PhaseSpec(table("phase")):
    """One stretch of the run with its own tokens, context and batch."""

    alone = {
        ("tokens", "target_loss"): "tokens or target_loss, not both",
        ("global_batch", "global_batch_tokens"): (
            "global_batch (sequences) or global_batch_tokens, not both"
        ),
    }


class PlannedPhase(PhaseSpec):
    """A phase of `job.phases`, with pins of its own."""

    name: Annotated[str | None, text()] = about("name to show", example="long context")
    plan: PlanSpec | None = about(
        "pins for this phase, over those of the design", example={"cp": 16}
    )


class SyncSpec(table("sync")):
    """How several sites keep in step."""


class CorpusSpec(table("corpus")):
    """The corpus from its raw bytes to shards of tokens."""

    dedup: several(Annotated[str, word(*words.DEDUPS)], "kinds", 2) = about(
        "duplicates that are taken out: exact, near", example=["exact", "near"]
    )


class Job(PhaseSpec):
    """What is trained: one phase, or several."""

    phases: several(PlannedPhase, "phases", 100) = about(
        "phases in order, instead of tokens, seq_len and global_batch here"
    )
    corpus: CorpusSpec | None = about("where the tokens come from", example={"raw_bytes": 4e14})
    sync: SyncSpec | None = about("how several sites keep in step", example={"kind": "local-steps"})

    alone = PhaseSpec.alone | {
        ("phases", field): f"{field} inside each of the phases, or no phases"
        for field in ("tokens", "seq_len", "global_batch", "global_batch_tokens")
    }


class Constraints(table("constraints")):
    """What the run must keep to; a missed one makes the verdict `constraint-missed`."""


class Reliability(table("reliability")):
    """How often the machine fails and what a failure and a save cost."""


class Checkpoint(table("checkpoint")):
    """How often copies are written, to where, and how many are kept."""


class Prices(table("prices")):
    """What time and energy cost. An hourly price includes energy."""

    alone = {
        ("usd_per_device_hour", "usd_per_node_hour", "owned"): (
            "one of usd_per_device_hour, usd_per_node_hour, owned"
        )
    }


class Measured(table("measured")):
    """What was measured; it replaces what the kit computes and is marked wherever it shows."""

    alone = {
        ("step_s", "mfu", "tokens_per_s_per_device"): (
            "one of step_s, mfu and tokens_per_s_per_device: each gives the others"
        )
    }


class StackSpec(table("stack")):
    """Training software and which release of it."""

    alone = {("id", "like"): "the id of one stack"}

    @model_validator(mode="after")
    def _named(self):
        if not (self.id or self.like):
            raise DesignError("id", allowed="the id of a stack", problem="is missing")
        return self


StackRef = either(StackSpec)


def model_field() -> Any:
    """The type of the `model` field: a catalogue id or a mapping."""
    return either(ModelSpec)
