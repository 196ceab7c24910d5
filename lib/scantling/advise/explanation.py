"""What a number opens to: its formula, the values in it, the constants behind it, its source."""

import re
from collections.abc import Mapping
from html import escape
from operator import attrgetter

import numpy as np

from ..base.displayed import clipped
from ..base.errors import DesignError, closest
from ..base.quantities import table as quantities
from ..base.records import at, record
from ..base.show import is_number, shown
from ..base.words import Filler, table
from ..physics.constants import PRIORS
from ..verdict.record import Assessment
from .computed_by import computed_by
from .design_json import as_dict
from .why import why

_SAID = table(__file__, "explanation")
TIMED = ("step_s", "step_breakdown_s")  # what a formula rests on where constants of the step enter


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
    constants: tuple[tuple[str, float, str, str], ...] = ()

    def __repr__(self) -> str:
        lines = [f"{self.title}: {self.value}"] + [f"  {term}: {text}" for term, text in self.lines]
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


def explain(assessment: Assessment, key: str | None = None) -> Explanation | list[dict]:
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
    given = as_dict(assessment, advice=False)
    return Explanation(
        key=key,
        constants=_constants(assessment) if _rests_on_the_step(key) else (),
        **opened(key, given, inputs(assessment, given)),
    )


def _rests_on_the_step(key: str) -> bool:
    """Whether a step's time is among what the formula of `key` needs, at any depth."""
    open_ = [key]
    for name in open_:  # grows
        if name in quantities.table():
            inputs = base_of(quantities.quantity(name)).inputs
            open_ += (other for other in inputs if other not in open_)
    return any(name.partition(".")[0] in TIMED for name in open_)


def _constants(assessment: Assessment) -> tuple:
    """(name, value, unit, source) of the constants that time the plan."""
    if not assessment.phases:
        return ()
    held = vars(assessment.chosen.case.constants)
    return tuple(
        (
            name,
            float(held[name]),
            prior.unit,
            prior.source + ("; fitted on published runs" if prior.sd else ""),
        )
        for name, prior in PRIORS.items()
        if held.get(name) is not None and np.size(held[name]) == 1
    )


def inputs(assessed, given: Mapping) -> dict:
    """Inputs of formulas that an assessment does not repeat, by the names that the formulas use.

    assessed : an Assessment, or whatever holds its `design` and `resolved`.
    given : what `design --json` says of it, or of another plan or design beside it."""
    resolved = assessed.resolved
    cost = given.get("cost") or {}
    chip = resolved.cluster.accelerator
    facts = {
        "peak": quantities.show(
            "roofline.peak_flops", chip.peak_flops(resolved.main_phase.precision)
        ),
        "usable": shown(chip.hbm_usable_bytes, "bytes"),
        "stack": resolved.stack or "not named",
    }
    say = Filler(facts, resolved).format
    lived = (given.get("endurance") or {}).items()
    endurance = {k: v for k, v in lived if isinstance(v, (int, float, str))}
    return {
        **{name: attrgetter(path)(resolved) for name, path in _SAID["inputs"].items()},
        **{name: say(text) for name, text in _SAID["said"].items()},
        "prices": _stated(cost, _SAID["prices"]),
        **{name: cost.get(name) for name in _SAID["prices"]},
        "constraints": _stated(assessed.design.constraints.given()),
        "reliability": _stated(endurance, _SAID["rates"]),
        **endurance,
    }


def _stated(section: Mapping, names=None) -> str:
    """The fields of a section that are stated, in a line."""
    said = (
        f"{name} {plain(value)}"
        for name, value in section.items()
        if value is not None and (names is None or name in names)
    )
    return ", ".join(said) or "none"


def opened(key: str, given: Mapping, resolved: Mapping, facts: Mapping | None = None) -> dict:
    """What a number opens to: formula, the values in it, source, convention, band.

    `facts` are those of the row that a number of a table stands in; `resolved` holds inputs of the
    design by plain name, for those
    that an assessment does not repeat. A quantity that is "as" another is explained by the other's
    formula.
    """
    q = quantities.quantity(key)
    base = base_of(q)
    own = facts or {}
    said = own.get(key.rsplit(".", 1)[-1], at(own, base.key)) if facts else at(given, key)
    spread = quantities.band_in(own or given, base.key)
    lines = {
        "Formula": base.formula and f"{base.label} = {base.formula}",
        "With these values": values_in(base.inputs, given, resolved, own),
        "Band": spread and f"{spread}: {band_of(base.key)}",
        "Convention": q.convention or base.convention,
        "Source": q.source or base.source,
        "Computed by": computed_by(base.key),
    }
    return {
        "title": q.label,
        "value": quantities.show(key, said),
        "lines": [(term, text) for term, text in lines.items() if text],
    }


def band_of(key: str) -> str:
    """What the two ends of a band are."""
    low = quantities.quantity(key + "_low")
    return (
        "four of five such runs lie inside"
        if low.convention.startswith("80 % band")
        else f"{low.formula}, {quantities.quantity(key + '_high').formula}"
    )


def base_of(q: quantities.Quantity) -> quantities.Quantity:
    """The quantity whose formula explains this one: itself, or the one that it is "as"."""
    found = re.match(r"as ([a-z_][\w.]*)", q.formula)
    if not found:
        return q
    known = quantities.table()
    base = known.get(found[1].rstrip("."), q)
    return known.get(f"{base.key}.{q.key.rsplit('.', 1)[-1]}", base)  # of a part of it


def values_in(inputs, given: Mapping, resolved: Mapping, facts: Mapping = {}) -> str:
    """`name = value` for every input that is a number or a word."""
    said = []
    for name in inputs:
        value = found(name, given, resolved, facts)
        if isinstance(value, Mapping):
            said += [
                f"{label_or(f'{name}.{part}', part)} {show_or(f'{name}.{part}', amount)}"
                for part, amount in value.items()
                if is_number(amount) and amount
            ]
        elif value is not None and not isinstance(value, (list, tuple)):
            short = name.rsplit(".", 1)[-1] if name.startswith("blueprint.") else name
            said.append(f"{short} = {show_or(name, value)}")
    return "; ".join(said)


def found(name: str, given: Mapping, resolved: Mapping, facts: Mapping = {}):
    """The value of one input of a formula: of the row first, then of the assessment, then of the
    design."""
    last = name.rsplit(".", 1)[-1]
    places = (
        at(facts, name),
        facts.get(last),
        at(given, name),
        resolved.get(name),
        resolved.get(last),
        at(given, f"plan.{name}"),
    )
    return next((value for value in places if value is not None), None)


def label_or(key: str, fallback: str) -> str:
    q = quantities.table().get(key)
    return q.label if q else fallback


def plain(value) -> str:
    """A number without a unit, or the word itself."""
    if isinstance(value, float):
        return quantities.shown(value, "ratio")
    return f"{value:,}" if type(value) is int else str(value)


def show_or(key: str, value) -> str:
    """`show`, or for an input that is no output of the kit a plain number."""
    for known in (key, f"endurance.{key}", f"cost.{key}"):
        if known in quantities.table():
            return quantities.show(known, value)
    return plain(value)
