"""What a number opens to: its formula, the values in it, the constants behind it, its source."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Protocol, TypedDict

import numpy as np

from ..base.displayed import clipped
from ..base.errors import DesignError, closest
from ..base.quantities import quantity as quantities
from ..base.records import at, of_quantity, record
from ..base.show import flops, is_number, ratio, size
from ..design.design import Design
from ..design.resolved import Resolved
from ..physics.constants import PRIORS
from ..verdict.assessment import Assessment
from ..verdict.result import Line
from .computed_by import computed_by
from .design_json import as_dict
from .why import why

PRICES = ("usd_per_device_hour", "pue", "usd_per_kwh")
RATES = ("preset", "failures_per_1000_node_days", "repair_s")
TIMED = ("step_s", "step_breakdown_s")  # what a formula rests on where constants of the step enter


Constant = tuple[str, float, str, str]  # name, value, unit, source


class Assessed(Protocol):
    """An assessment, or whatever else holds a design and what was resolved of it."""

    @property
    def design(self) -> Design: ...

    @property
    def resolved(self) -> Resolved: ...


class Opened(TypedDict):
    """What a number opens to: its label, its value as text, and (term, text) of each line."""

    title: str
    value: str
    lines: list[tuple[str, str]]


@record
class Explanation:
    """One number of an assessment, opened.

    key, title, value : its key in `design --json`, its label, its value with unit, as text.
    lines : (term, text): formula, the values in it, band, convention, source, function.
    constants : (name, value, unit, source) of each constant of the step that it rests on.
    """

    key: str
    title: str
    value: str
    lines: list[tuple[str, str]]
    constants: tuple[Constant, ...] = ()

    def __repr__(self) -> str:
        lines = [f"{self.title}: {self.value}"]
        lines += [f"  {term}: {text}" for term, text in self.lines]
        if self.constants:
            names = ", ".join(f"{name} {value:.3g}" for name, value, _, _ in self.constants)
            lines.append(f"  Constants: {names}")
        return clipped("\n".join(lines))

    def _repr_html_(self) -> str:
        rows = self.lines + [
            (name, f"{value:.3g} {unit}; {source}") for name, value, unit, source in self.constants
        ]
        cells = "".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in rows)
        return f"<p><b>{escape(self.title)}</b> {escape(self.value)}</p><dl>{cells}</dl>"


def explain(assessment: Assessment, key: str | None = None) -> Explanation | list[Line]:
    """What one number of an assessment is made of; without a key, why the plan is what it is.

    key : of `design --json`, dotted below a mapping: "mfu", "memory_bytes.weights".
    Returns an Explanation; without a key `why`: a line an axis.
    Raises DesignError for a key that no assessment has, with the nearest.
    """
    if key is None:
        return why(assessment)
    if key not in quantities.table():
        raise DesignError(
            "key",
            key,
            problem="is no number of an assessment",
            nearest=closest(key, quantities.table()),
        )
    figures = as_dict(assessment, advice=False)
    number = opened(key, figures, inputs(assessment, figures))
    return Explanation(
        key=key,
        title=number["title"],
        value=number["value"],
        lines=number["lines"],
        constants=_constants(assessment) if _rests_on_the_step(key) else (),
    )


def _rests_on_the_step(key: str) -> bool:
    """Whether a step's time is among what the formula of `key` needs, at any depth."""
    seen: set[str] = set()
    waiting = [key]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        if name.partition(".")[0] in TIMED:
            return True
        seen.add(name)
        if name in quantities.table():
            waiting += base_of(quantities.quantity(name)).inputs
    return False


def _constants(assessment: Assessment) -> tuple[Constant, ...]:
    """The constants that time the plan."""
    if not assessment.phases:
        return ()
    values = vars(assessment.chosen.case.constants)
    rows = []
    for name, prior in PRIORS.items():
        value = values.get(name)
        if value is not None and np.size(value) == 1:
            fitted = "; fitted on published runs" if prior.sd else ""
            rows.append((name, float(value), prior.unit, prior.source + fitted))
    return tuple(rows)


def inputs(assessed: Assessed, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs of formulas that an assessment does not repeat, by the names that the formulas use.

    assessed : an Assessment, or whatever holds its `design` and `resolved`.
    figures : what `design --json` says of it, or of another plan or design beside it."""
    resolved = assessed.resolved
    cluster = resolved.cluster
    phase = resolved.main_phase
    model = resolved.model
    chip = cluster.accelerator
    cost = figures.get("cost") or {}
    lived = (figures.get("endurance") or {}).items()
    endurance = {k: v for k, v in lived if isinstance(v, (int, float, str))}
    return {
        "tokens": phase.tokens,
        "seq_len": phase.seq_len,
        "global_batch": phase.global_batch,
        "optimizer": phase.optimizer,
        "devices": cluster.devices,
        "params": resolved.params.total,
        "vocab": model.vocab,
        "storage": cluster.storage,
        "devices_per_node": cluster.devices_per_node,
        "oversubscription": cluster.oversubscription,
        "job.sync": cluster.sync.kind,
        "precision": f"{phase.precision}, {flops(chip.peak_flops(phase.precision))} dense peak",
        "stack": resolved.stack or "not named",
        "model": (
            f"{model.name} ({model.layers} layers, h {model.hidden:,}, {model.heads} heads, "
            f"{model.kv_heads} KV heads, vocab {model.vocab:,})"
        ),
        "cluster": f"{cluster.devices:,} x {chip.name}",
        "accelerator": f"{chip.name}, {size(chip.hbm_usable_bytes)} usable",
        "prices": _stated(cost, PRICES),
        **{name: cost.get(name) for name in PRICES},
        "constraints": _stated(assessed.design.constraints.stated()),
        "reliability": _stated(endurance, RATES),
        **endurance,
    }


def _stated(section: Mapping[str, Any], names: Sequence[str] | None = None) -> str:
    """The fields of a section that are stated, in a line."""
    fields = (
        f"{name} {plain(value)}"
        for name, value in section.items()
        if value is not None and (names is None or name in names)
    )
    return ", ".join(fields) or "none"


def opened(
    key: str,
    figures: Mapping[str, Any],
    resolved: Mapping[str, Any],
    facts: Mapping[str, Any] | None = None,
) -> Opened:
    """What a number opens to: formula, the values in it, source, convention, band.

    `facts` are those of the row that a number of a table stands in; `resolved` holds inputs of the
    design by plain name, for those that an assessment does not repeat. A quantity that is "as"
    another is explained by the other's formula.
    """
    quantity = quantities.quantity(key)
    base = base_of(quantity)
    row = facts or {}
    value = at(figures, key)
    if row:
        value = of_quantity(row, key, at(row, base.key))
    spread = quantities.band_in(row or figures, base.key)
    lines = {
        "Formula": base.formula and f"{base.label} = {base.formula}",
        "With these values": values_in(base.inputs, figures, resolved, row),
        "Band": spread and f"{spread}: {band_meaning(base.key)}",
        "Convention": quantity.convention or base.convention,
        "Source": quantity.source or base.source,
        "Computed by": computed_by(base.key),
    }
    return Opened(
        title=quantity.label,
        value=quantities.show(key, value),
        lines=[(term, text) for term, text in lines.items() if text],
    )


def band_meaning(key: str) -> str:
    """What the two ends of a band are."""
    low = quantities.quantity(key + "_low")
    if low.convention.startswith("80 % band"):
        return "four of five such runs lie inside"
    return f"{low.formula}, {quantities.quantity(key + '_high').formula}"


def base_of(quantity: quantities.Quantity) -> quantities.Quantity:
    """The quantity whose formula explains this one: itself, or the one that it is "as"."""
    match = re.match(r"as ([a-z_][\w.]*)", quantity.formula)
    if not match:
        return quantity
    known = quantities.table()
    base = known.get(match[1].rstrip("."), quantity)
    part = quantity.key.rsplit(".", 1)[-1]
    return known.get(f"{base.key}.{part}", base)  # of a part of it


def values_in(
    inputs: Iterable[str],
    figures: Mapping[str, Any],
    resolved: Mapping[str, Any],
    facts: Mapping[str, Any] | None = None,
) -> str:
    """`name = value` for every input that is a number or a word."""
    texts = []
    for name in inputs:
        value = input_value(name, figures, resolved, facts)
        if isinstance(value, Mapping):
            texts += [
                f"{label_or(f'{name}.{part}', part)} {show_or(f'{name}.{part}', amount)}"
                for part, amount in value.items()
                if is_number(amount) and amount
            ]
        elif value is not None and not isinstance(value, (list, tuple)):
            short = name.rsplit(".", 1)[-1] if name.startswith("blueprint.") else name
            texts.append(f"{short} = {show_or(name, value)}")
    return "; ".join(texts)


def input_value(
    name: str,
    figures: Mapping[str, Any],
    resolved: Mapping[str, Any],
    facts: Mapping[str, Any] | None = None,
) -> Any:
    """The value of one input of a formula: of the row first, then of the assessment, then of the
    design."""
    row = facts or {}
    last = name.rsplit(".", 1)[-1]
    places = (
        at(row, name),
        row.get(last),
        at(figures, name),
        resolved.get(name),
        resolved.get(last),
        at(figures, f"plan.{name}"),
    )
    return next((value for value in places if value is not None), None)


def label_or(key: str, fallback: str) -> str:
    """The label of a quantity, `fallback` for what is none."""
    quantity = quantities.table().get(key)
    return quantity.label if quantity else fallback


def plain(value: Any) -> str:
    """A number without a unit, or the word itself."""
    if isinstance(value, float):
        return ratio(value)
    return f"{value:,}" if type(value) is int else str(value)


def show_or(key: str, value: Any) -> str:
    """`show`, or for an input that is no output of the kit a plain number."""
    for known in (key, f"endurance.{key}", f"cost.{key}"):
        if known in quantities.table():
            return quantities.show(known, value)
    return plain(value)
