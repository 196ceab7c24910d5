"""From a session to the groups of inputs, and from a moved input back to fields of the design.

Which controls there are, what kind each is and what it is called stands in controls.yaml; what a
field may hold, the library says.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from math import inf
from numbers import Real
from operator import attrgetter

from scantling import catalogue
from scantling.base import typed
from scantling.base.errors import DesignError
from scantling.base.show import shown
from scantling.base.words import Filler, table
from scantling.catalogue import words as legal
from scantling.catalogue.stacks import stacks
from scantling.design.constraints import CONSTRAINTS
from scantling.design.design import Design
from scantling.design.fields import FieldFacts, Kind
from scantling.design.file import inline, load
from scantling.plans.enumerate import enumerate_plans
from scantling.plans.space import DEFAULT

from ..words import at, quantity
from . import choices
from .choices import choice, whole, with_value

SAID = table(__file__, "controls")
# names of the controls by group; words and kind of each, those of a job by the last part of its
# field; the words that may stand behind a typed number, by the unit of its field; what is said of
# a field that nothing is known of, by its section; the fields that the file alone has, by the
# reason
GROUPS, CONTROLS, _TYPED, _UNSET, IN_THE_FILE = (
    SAID[name] for name in ("groups", "controls", "typed", "unset", "in_the_file")
)
# a constraint that the file does not name, as of an extension, is called as its row is
_OTHERS = {f"constraints.{name}": {"label": c.name.capitalize()} for name, c in CONSTRAINTS.items()}
GROUPS = GROUPS | {"Constraints": list(dict.fromkeys([*GROUPS["Constraints"], *_OTHERS]))}
CONTROLS = _OTHERS | CONTROLS
_DESIGN, _PLAN = list(GROUPS)[:2]
_TABLES = vars(catalogue) | {"stacks": stacks}
# what comes from the accelerator's usual node, and so goes when another accelerator is chosen
_OF_THE_NODE = (
    *("node", "devices_per_node", "scale_up_domain", "scale_up", "scale_out", "nics_per_node"),
    *("pod_devices", "host_memory_gb", "nvme_gb", "node_power_w"),
)


@lru_cache(maxsize=1024)  # ladders are written anew at every move of a control
def billions(value) -> str:
    return shown(value, "params")


@lru_cache(maxsize=1024)
def _ratio(value: float) -> str:
    return shown(value, "ratio")


# ---------------------------------------------------------------- what the controls show
def groups(session, reasons: Mapping[str, Mapping] = {}) -> list[dict]:
    """All inputs of the desk, filled from the design that is on it; `reasons` says for a field
    which values it cannot take."""
    job, refusal = session.now.resolved.job_path, session.refusal
    out = [
        {
            "title": title,
            "folded": title not in (_DESIGN, _PLAN),
            "shape": "pairs" if title == _PLAN else "rows",
            "fields": [_control(session, name.format(job=job), reasons) for name in names],
        }
        for title, names in GROUPS.items()
    ]
    if refusal is not None:
        found = {field["field"]: field for group in out for field in group["fields"]}
        name = next((n for n in (refusal.moved, refusal.field) if n in found), None)
        if name is not None:
            found[name]["fault"] = refusal.text
        if name == refusal.moved and refusal.tried is not None:
            found[name]["value"] = refusal.tried  # so that it can be mended, or moved on
    return out


@cache
def about(field: str) -> Mapping:
    """What controls.yaml says of a field; of one that it does not name, its path as its label."""
    return CONTROLS.get(field) or CONTROLS.get(field.rpartition(".")[2]) or {"label": field}


def _control(session, field: str, reasons: Mapping) -> dict:
    """One control with its words."""
    said = about(field)
    made = {
        "field": field,
        "label": said["label"],
        "help": _help(session, field),
        **_KINDS[said.get("kind", "plain")](session, field),
    }
    rows, value = made.get("options"), made["value"]
    if rows and value not in [row["value"] for row in rows]:
        made["options"] = [choice(value, str(value)), *rows]
    if made["made"] == "list":
        why = reasons.get(field, {})
        made["options"] = [o | {"reason": why.get(o["value"], "")} for o in made["options"]]
    return made


def _help(session, field: str) -> str:
    said = about(field)
    if "help" not in said:
        facts = _facts(field)
        return facts.text if facts else said["label"]
    resolved = session.now.resolved
    phase, cluster = resolved.main_phase, resolved.cluster
    facts = {
        "tokens": billions(float(phase.global_batch * phase.seq_len)),
        "rate": shown(cluster.scale_out_bytes_per_s, "bytes_per_s"),
    }
    return Filler(facts, cluster).format(said["help"])


def _offer(kind: str, value, options, **more) -> dict:
    """A slider or a list, with what it stands at and what it offers."""
    return {"made": kind, "value": value, "options": options, **more}


def _slider(session, field: str) -> dict:
    """A slider over a ladder of values; what stands in the design takes the place of steps `near`
    it, which would come to the same."""
    said, resolved = about(field), session.now.resolved
    value = attrgetter(said["of"])(resolved) or 0
    near = said.get("near", 0.0) * value
    most = attrgetter(said["most"])(resolved) if "most" in said else inf
    ladder = choices.ladder(said, resolved.cluster.devices_per_node)
    steps = with_value((v for v in ladder if v <= most and not abs(v - value) < near), value)
    options = [choice(v, _said(said, "short", v), long=_said(said, "long", v)) for v in steps]
    needs = said.get("needs") or said.get("most")
    return _offer("slider", value, options) | (
        {"disabled": not attrgetter(needs)(resolved)} if needs else {}
    )


def _said(said: Mapping, form: str, value) -> str:
    """A value on the slider, `short`, or read aloud, `long`."""
    if not value and f"{form}_nil" in said:
        return said[f"{form}_nil"]
    text = billions(value) if said.get("shown") == "params" else whole(value)
    return said.get(form, "{}").format(text)


def _model(session, field: str) -> dict:
    """The model by name, or its own shape."""
    stated, known = session.now.design.model, choices.models()
    if isinstance(stated, str):
        return _offer("list", stated, known)
    name = session.now.resolved.model.name
    return _offer(
        "list",
        "",
        [choice("", f"{name} (own shape)" if stated.like else f"by size: {name}"), *known],
    )


def _fabric(session, field: str) -> dict:
    """The scale-out network as a slider from slow to fast."""
    return _offer("slider", session.now.resolved.cluster.scale_out, choices.fabrics(), wide=True)


_LISTS = {
    "examples": lambda resolved: [choice("", "open an example…"), *choices.examples()],
    "accelerators": lambda resolved: choices.accelerators(),
    "precisions": lambda resolved: _words(
        p for p in resolved.cluster.accelerator.precisions() if p in legal.PRECISIONS
    ),
    "optimizers": lambda resolved: _words(catalogue.optimizers()),
}


def _list(session, field: str) -> dict:
    """One of several that a design always has."""
    said, resolved = about(field), session.now.resolved
    return _offer(
        "list",
        attrgetter(said["of"])(resolved) if "of" in said else "",
        _LISTS[said["rows"]](resolved),
    )


def _words(values) -> list[dict]:
    return [choice(value, _word(value)) for value in values]


def _words_of(field: str) -> list:
    """The words that the schema lets stand in a field."""
    facts = _facts(field)
    if facts is None:
        return []
    return [True, False] if facts.kind is Kind.FLAG else [word for word in facts.choices if word]


def _pin(session, field: str) -> dict:
    """One field of the plan: searched, or pinned to a value."""
    name, pins = field.removeprefix("plan."), session.now.design.plan.given()
    now, value, pinned = at(session.now.given, field), pins.get(name), name in pins
    auto = choice(None, "auto" if now is None or pinned else f"auto: {now}")
    q, words = quantity(field), _words_of(field)
    return _offer(
        "list",
        value,
        [auto, *_words(words or with_value(_ways(session, name), value))],
        pinned=pinned,
        asks=True,
        wide=bool(words),
        help=f"{q.label}. {q.formula}" if q.formula else q.label,
    )


def _ways(session, name) -> list[int]:
    """Ways to split along an axis that the design on the desk could take."""
    resolved = session.now.resolved
    model, experts = resolved.model, resolved.model.experts
    if name == "ep":
        return choices.divisors(experts or 1)
    most = {
        "dp": resolved.cluster.devices,
        "etp": 64 if experts else 1,
        "tp": min(model.heads, 256),
        "pp": min(model.layers, 256),
        "vpp": min(model.layers, 256),
    }
    return choices.octaves(
        1, most.get(name, 64), steps=tuple(about(f"plan.{name}").get("between", (1.0,)))
    )


def refusals(session, field: str) -> dict:
    """Values of a plan field that the design cannot take as it stands, each with the library's
    reason in a few words."""
    name, out = field.removeprefix("plan."), {}
    if field not in GROUPS[_PLAN]:
        return out
    resolved = session.now.resolved
    phase = resolved.main_phase
    for value in _words_of(field) or _ways(session, name):
        try:
            enumerate_plans(
                resolved.model, phase, resolved.cluster, DEFAULT, phase.pins | {name: value}
            )
        except DesignError as error:
            allowed = error.allowed if isinstance(error.allowed, str) else ""
            said = allowed or error.problem or "not legal here"
            out[value] = said.split(";")[0].split(" (")[0]
    return out


def computed(session, field: str):
    """What is taken for a field that the design leaves out: of the design with its defaults filled
    in, of the assessment, or of what it lists as assumed."""
    said = about(field)
    if "of" in said:
        return attrgetter(said["of"])(session.now.resolved)
    if "taken" in said:
        return at(session.now.given, said["taken"])
    assumed = session.now.given.get("assumed", ())
    return next((row["value"] for row in assumed if row["field"] == field), None)


def stated(session, field: str):
    """What the design says of a field."""
    return at(session.now.design.data(), field)


@cache
def _facts(field: str) -> FieldFacts | None:
    """What is known of the field of the design that a control stands for."""
    section, _, name = field.rpartition(".")
    return Design.section_fields(*section.split(".") if section else ()).get(name)


def unit(field: str) -> str:
    """The unit of a field as its control says it."""
    facts = _facts(field)
    return about(field).get("unit") or (facts.unit if facts else "")


def _plain(session, field: str) -> dict:
    """A field as the file has it: a list of its words, or a box to type in, in which what is taken
    where the design says nothing stands in grey."""
    said, value, taken = about(field), stated(session, field), computed(session, field)
    facts, unset = _facts(field), _UNSET.get(field.partition(".")[0], "auto")
    words = _TABLES[said["rows"]]() if "rows" in said else _words_of(field)
    if words and not (facts and facts.several):
        auto = choice(None, unset if taken in (None, "") else f"auto: {_word(taken)}")
        return _offer("list", value, [auto, *_words(words)], pinned=value is not None, wide=True)
    if isinstance(taken, Real):
        taken = float(f"{taken / said.get('scale', 1):.5g}")
    return {
        "made": "number" if facts and facts.unit else "text",
        "value": "" if value is None else _text(value),
        "unit": unit(field),
        "placeholder": f"auto {_text(taken)}" if _brief(taken) else unset,
    }


def _stack(session, field: str) -> dict:
    """The software, which the file names alone or beside its release."""
    value = stated(session, field)
    if isinstance(value, Mapping):
        value = value.get("id") or value["like"]
    return _offer(
        "list",
        value,
        [choice(None, "none"), *_words(stacks())],
        pinned=value is not None,
        wide=True,
    )


def _word(value) -> str:
    """A word of the design as a list offers it."""
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _brief(taken) -> bool:
    """Whether what is taken is more than nothing and less than a list of records."""
    return taken not in (None, "") and "{" not in _text(taken)


def _text(value) -> str:
    """A value of the design as it stands in a box; lists of records as the file has them."""
    if isinstance(value, Real):
        return f"{value:.10g}"
    words = isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value)
    return ", ".join(value) if words else value if isinstance(value, str) else inline(value)


def _rate(session, field: str) -> dict:
    """A slider whose ladder holds, at its place, what is taken where the design says nothing."""
    value, taken, of = stated(session, field), computed(session, field), unit(field)
    ladder = with_value(choices.ladder(about(field)), value)
    steps = [choice(v, _ratio(v), long=f"{_ratio(v)} {of}") for v in map(float, ladder)]
    text, long, place = "auto", "as the preset or catalogue has it", 0.0
    if value is None:
        known = "not known" if taken is None else _ratio(float(taken))
        text, place = known if taken is None else f"auto {known}", taken or 0.0
        long = f"not given: {known} {of}"
    auto = choice(None, text, long=long)
    steps.insert(sum(v < place for v in ladder), auto)
    return _offer("slider", value, steps, unit=of, help=f"{_facts(field).text}, {of}")


_KINDS = {
    "slider": _slider,
    "model": _model,
    "fabric": _fabric,
    "list": _list,
    "pin": _pin,
    "plain": _plain,
    "stack": _stack,
    "rate": _rate,
}


# ---------------------------------------------------------------- what a moved control changes
def changes(session, field: str, value) -> Mapping:
    """Fields of the design that follow from one moved control."""
    model = session.now.resolved.model
    if field == "model":
        return {field: value} if value else {}
    if field == "model.size":
        return _by_size(value, model.experts, model.top_k)
    if field == "model.experts":
        return _experts(session, int(value))
    if field == "cluster.accelerator":
        return _accelerator(session, value)
    if field == "cluster.scale_out":
        return {field: value, "cluster.nics_per_node": None}
    if field.endswith(".tokens"):
        value = value or None
    facts = _facts(field)
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = load(value)
    elif isinstance(value, str) and facts and facts.unit:
        value = number(field, value)
    elif isinstance(value, str) and facts and facts.several:
        value = re.split(r"[,;\s]+", value.strip(" ,;"))
    return {**({} if value is None else _instead(field)), field: value}


def _instead(field: str) -> dict:
    """The other fields of which the file may give one: what is set last holds."""
    above, _, name = field.rpartition(".")
    alone = getattr(Design.section(*above.split(".")) if above else Design, "alone", {})
    others = {one for group in alone if name in group for one in group} - {name}
    return {f"{above}.{one}": None for one in others}


def _emptied(session, field: str) -> str:
    """The section that holds nothing any more without this field, or the field."""
    above, _, name = field.rpartition(".")
    whole = "." not in above or above.rpartition(".")[2].isdigit()
    alone = not whole and set(stated(session, above) or ()) <= {name}
    return _emptied(session, above) if alone else field


def _by_size(size, experts: int, top_k: int) -> dict:
    """A model by its size alone, a MoE where it has experts."""
    sparse = {"moe": True, "experts": experts, "top_k": top_k}
    return {"model": {"size": float(size), **(sparse if experts else {})}}


def _experts(session, experts: int) -> dict:
    resolved, stated = session.now.resolved, session.now.design.model
    model = resolved.model
    top_k = max(1, min(model.top_k or 2, experts))
    if model.experts and experts and (isinstance(stated, str) or stated.size is None):
        # same experts, more or fewer of them
        return {"model.experts": experts, "model.top_k": top_k}
    return _by_size(resolved.params.total, experts, top_k)


def _accelerator(session, value) -> dict:
    """The chip with its usual node; a precision that it does not have goes back to the default."""
    design, path = session.now.design, session.now.resolved.job_path
    has = catalogue.accelerator(value).precisions()
    stated = {
        path: design.job.phases[int(path.rpartition(".")[2])] if design.job.phases else design.job,
        "job": design.job,
        "plan": design.plan,
    }
    lost = [name for name, of in stated.items() if of.precision and of.precision not in has]
    return {
        "cluster.accelerator": value,
        **{f"cluster.{name}": None for name in _OF_THE_NODE},
        **{f"{name}.precision": None for name in lost},
    }


def number(field: str, text: str) -> float | int:
    """A typed number (7,5, 1,024, 50M, 90 d, 2 TB; 40% of a share) in the unit of its field, or a
    DesignError that says what was typed."""
    facts = _facts(field)
    of = facts.unit if facts else ""
    behind = re.fullmatch(r"(.*?\d.*?)\s*([^\W\d_]{1,7})", text.strip().removeprefix("$"))
    factor = _TYPED.get(of, {}).get(behind[2].lower()) if behind else None
    found = typed.number(behind[1] if factor else text.strip().removeprefix("$" * (of == "USD")))
    value, in_percent = found or (0.0, False)
    share = of == "share"
    if not found or in_percent and not share:
        known = ", ".join(_TYPED.get(of, ()))
        raise DesignError(
            field,
            text,
            f"a number{f' of {of}' if of and not share else ''}, such as 7.5, 1,024, 50M"
            + (" or 40%" if share else f"; units read: {known}" if known else ""),
            problem="is not a number",
        )
    value *= factor or 1
    return int(value) if abs(value) < 1e15 and value == int(value) else value
