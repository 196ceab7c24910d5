"""The sections of the design file, each a frozen pydantic model. What may stand in a field, in
which unit and within which bounds, says fields.csv; how fields must agree is said here."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag, create_model, model_validator

from ..base.errors import DesignError
from ..catalogue import optimizers, words
from .fields import Like, Section, about, amount, count, flag, share, text, word

TAGS = ("id:", "mapping:")  # branches of a union, dropped from error paths


def _branch(value):
    return TAGS[0] if isinstance(value, str) else TAGS[1]


def either(mapping):
    """An id of the catalogue, or a mapping."""
    return Annotated[
        Annotated[str, text(), Tag(TAGS[0])] | Annotated[mapping, Tag(TAGS[1])],
        Discriminator(_branch),
    ]


Ref = either(Like)


def _number(cell: str) -> float:
    return float(cell) if set(cell) & set(".e") else int(cell)


def _field(row: dict) -> tuple:
    """(type, field) of one row of fields.csv."""
    kind, example = row["kind"], json.loads(row["example"]) if row["example"] else None
    bounds = {k: _number(row[k]) for k in ("low", "high") if row[k]}
    choices: tuple = ()
    if kind == "word":
        known = vars(words) | {"OPTIMIZERS": tuple(optimizers())}
        choices = known[row["choices"]]
        of = Annotated[str | None, word(*choices)]
    elif kind == "text":
        of = Annotated[str | None, text(*bounds.values())]
    elif kind == "flag":
        of = Annotated[bool | None, flag()]
    elif kind == "count":
        whole = int if row["needed"] else int | None
        of = Annotated[whole, count(**bounds)]
    elif kind == "share":
        of = Annotated[float | None, share(**bounds)]
    elif kind == "ref":
        of = Ref if row["needed"] else Ref | None
    else:
        of = Annotated[
            float | None,
            amount(
                **bounds,
                above=kind == "amount",
            ),
        ]
    if not row["needed"]:
        return of, about(
            row["description"],
            row["unit"],
            example,
            choices,
        )
    bound = {"ge": bounds["low"]} if bounds else {}
    return of, about(
        row["description"],
        row["unit"],
        example,
        choices,
        default=...,
        **bound,
    )


with open(
    Path(__file__).with_name("fields.csv"),
    newline="",
    encoding="utf-8",
) as _file:
    _ROWS = list(csv.DictReader(_file))


def table(section: str) -> type[Section]:
    """The section of that name with its fields in fields.csv."""
    fields = {row["field"]: _field(row) for row in _ROWS if row["section"] == section}
    return create_model(
        f"{section}_fields",
        __base__=Section,
        __module__=__name__,
        **fields,
    )


class ModelSpec(table("model")):
    """A model by catalogue row and changes, by a Hugging Face config, by size alone, or by its
    shape."""

    @model_validator(mode="after")
    def _consistent(self):
        starts = [f for f in ("like", "hf_config", "size") if getattr(self, f) is not None]
        if len(starts) > 1:
            raise DesignError(
                starts[1],
                getattr(self, starts[1]),
                f"one of like, hf_config and size ({starts[0]} is given already)",
                problem="contradicts " + starts[0],
            )
        if not starts:
            for f in ("layers", "hidden", "heads"):
                if getattr(self, f) is None:
                    raise DesignError(
                        f,
                        allowed=(
                            "a catalogue id, like, hf_config, size, or the shape (layers, "
                            "hidden, heads, vocab, …)"
                        ),
                        problem="is missing",
                    )
        h, kv = self.heads, self.kv_heads
        if h and kv and h % kv:
            near = (
                min((d for d in range(1, h + 1) if h % d == 0), key=lambda d: abs(d - kv))
                if h <= 10**5
                else None
            )
            raise DesignError(
                "kv_heads",
                kv,
                f"a divisor of heads {h}",
                near,
                problem=f"does not divide heads {h}",
            )
        if (
            h
            and self.hidden
            and self.head_dim is None
            and self.hidden % h
            and self.attention != "mla"
        ):
            near = min(
                (d for d in range(1, min(self.hidden, 10**5) + 1) if self.hidden % d == 0),
                key=lambda d: abs(d - h),
            )
            raise DesignError(
                "heads",
                h,
                f"a divisor of hidden {self.hidden}, or give head_dim",
                near,
                problem=f"does not divide hidden {self.hidden}",
            )
        for small, large in (
            ("top_k", "experts"),
            ("moe_layers", "layers"),
            ("windowed_layers", "layers"),
            ("active", "size"),
        ):
            s, b = getattr(self, small), getattr(self, large)
            if s is not None and b is not None and s > b:
                raise DesignError(
                    small,
                    s,
                    f"at most {large} {b:g}",
                    f"{b:g}",
                    problem=f"is more than {large} {b:g}",
                )
        if self.moe is False and self.experts:
            raise DesignError(
                "experts",
                self.experts,
                "0, or moe: true",
                0,
                problem="contradicts moe: false",
            )
        if not starts and self.experts and not self.top_k:
            raise DesignError(
                "top_k",
                allowed="experts that a token visits, such as 2",
                problem="is missing (experts is given)",
            )
        return self


class ClusterSpec(table("cluster")):
    """The machine; what is left out comes from the catalogue row of the accelerator's usual
    node."""


class PlanSpec(table("plan")):
    """Pins of the parallel plan; what is left out is searched."""


class PhaseSpec(table("phase")):
    """One stretch of the run with its own tokens, context and batch."""

    @model_validator(mode="after")
    def _one_batch(self):
        if self.global_batch is not None and self.global_batch_tokens is not None:
            raise DesignError(
                "global_batch_tokens",
                self.global_batch_tokens,
                "global_batch (sequences) or global_batch_tokens, not both",
                problem="is given beside global_batch",
            )
        return self


class PlannedPhase(PhaseSpec):
    """A phase of `job.phases`, with pins of its own."""

    name: Annotated[str | None, text()] = about("name to show", example="long context")
    plan: PlanSpec | None = about(
        "pins for this phase, over those of the design", example={"cp": 16}
    )


def _some(value):
    if value is not None and not (isinstance(value, (list, tuple)) and 1 <= len(value) <= 100):
        raise DesignError(
            "",
            value,
            "a list of 1 to 100 phases",
            problem="is not such a list",
        )
    return value


class Job(PhaseSpec):
    """What is trained: one phase, or several."""

    phases: Annotated[tuple[PlannedPhase, ...] | None, BeforeValidator(_some)] = about(
        "phases in order, instead of tokens, seq_len and global_batch here"
    )

    @model_validator(mode="after")
    def _plain_or_phases(self):
        both = self.phases and next(
            (
                f
                for f in ("tokens", "seq_len", "global_batch", "global_batch_tokens")
                if getattr(self, f) is not None
            ),
            None,
        )
        if both:
            raise DesignError(
                both,
                getattr(self, both),
                f"{both} inside each of the phases, or no phases",
                problem="is given beside phases",
            )
        return self


class Constraints(table("constraints")):
    """What the run must keep to; a missed one makes the verdict `constraint-missed`."""


class Reliability(table("reliability")):
    """How often the machine fails and what a failure and a save cost."""


class Prices(table("prices")):
    """What time and energy cost."""


class Measured(table("measured")):
    """What was measured; it replaces what the kit computes and is marked wherever it shows."""

    @model_validator(mode="after")
    def _one_speed(self):
        given = [
            f for f in ("step_s", "mfu", "tokens_per_s_per_device") if getattr(self, f) is not None
        ]
        if len(given) > 1:
            raise DesignError(
                given[1],
                getattr(self, given[1]),
                "one of step_s, mfu and tokens_per_s_per_device: each gives the others",
                problem=f"is given beside {given[0]}",
            )
        return self


def model_field() -> Any:
    """The type of the `model` field: a catalogue id or a mapping."""
    return either(ModelSpec)
