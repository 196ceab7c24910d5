"""From a session to the groups of inputs, and from a moved input back to fields of the design.

Which controls there are, what kind each is and what it is called stands in controls.yaml; what a
field may hold, the library says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from operator import attrgetter

from scantling import catalogue
from scantling.base import typed
from scantling.base.errors import DesignError
from scantling.base.show import shown
from scantling.base.words import Filler, table
from scantling.catalogue import words as legal
from scantling.design.constraints import CONSTRAINTS
from scantling.design.design import Design
from scantling.plans.enumerate import enumerate_plans
from scantling.plans.space import DEFAULT

from . import choices
from .choices import choice, whole, with_value
from .words import at, quantity

_READ = table(__file__, "controls")
# names of the controls by group; words and kind of each, those of a job by the last part of its
# field; and the words that may stand behind a typed number, by the unit of its field
GROUPS, CONTROLS, _TYPED = (_READ[name] for name in ("groups", "controls", "typed"))
# a constraint that the file does not name, as of an extension, is called as its row is
_OTHERS = {f"constraints.{name}": {"label": c.name.capitalize()} for name, c in CONSTRAINTS.items()}
GROUPS = GROUPS | {"Constraints": list(dict.fromkeys([*GROUPS["Constraints"], *_OTHERS]))}
CONTROLS = _OTHERS | CONTROLS
_DESIGN, _PLAN = list(GROUPS)[:2]
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
def groups(session, reasons: Mapping[str, Mapping] | None = None) -> list[dict]:
    """All inputs of the desk, filled from the design that is on it; `reasons` says for a field
    which values it cannot take."""
    job, refusal, out = session.now.resolved.job_path, session.refusal, []
    for title, names in GROUPS.items():
        fields = [
            _control(
                session,
                name.format(job=job),
                reasons or {},
            )
            for name in names
        ]
        shape = "pairs" if title == _PLAN else "rows"
        folded = title not in (_DESIGN, _PLAN)
        out.append(
            {
                "title": title,
                "folded": folded,
                "shape": shape,
                "fields": fields,
            }
        )
    if refusal is not None:
        found = {field["field"]: field for group in out for field in group["fields"]}
        name = next((n for n in (refusal.moved, refusal.field) if n in found), None)
        if name is not None:
            found[name]["fault"] = refusal.text
        if name == refusal.moved and refusal.tried is not None:
            found[name]["value"] = refusal.tried  # so that it can be mended, or moved on
    return out


def section(field: str) -> str:
    """The section of a design that a field is in."""
    return field.split(".")[0]


def _about(field: str) -> Mapping:
    return CONTROLS.get(field) or CONTROLS[field.rsplit(".", 1)[-1]]


def _control(
    session,
    field: str,
    reasons: Mapping,
) -> dict:
    """One control with its words."""
    about = _about(field)
    made = _KINDS[about.get("kind", "plain")](
        session,
        field,
        about,
    )
    if "options" in made and made["kind"] == "list":
        why, options = reasons.get(field, {}), made["options"]
        if made["value"] not in [row["value"] for row in options]:
            options = [choice(made["value"], str(made["value"])), *options]
        made["options"] = [
            {
                **o,
                "reason": why.get(o["value"], ""),
            }
            for o in options
        ]
    own = {
        "field": field,
        "label": about["label"],
        "help": _help(
            session,
            field,
            about,
        ),
    }
    return own | made


def _help(
    session,
    field: str,
    about: Mapping,
) -> str:
    if "help" not in about:
        return _described(field) or about["label"]
    resolved = session.now.resolved
    phase, cluster = resolved.main_phase, resolved.cluster
    facts = {
        "tokens": billions(float(phase.global_batch * phase.seq_len)),
        "rate": shown(cluster.scale_out_bytes_per_s, "bytes_per_s"),
    }
    return Filler(facts, cluster).format(about["help"])


def _slider(
    session,
    field: str,
    about: Mapping,
    ladder=None,
) -> dict:
    """A slider over a ladder of values, its own where none is given; what stands in the design
    takes the place of steps `near` it, which would come to the same."""
    value = attrgetter(about["of"])(session.now.resolved) or 0
    ladder = choices.ladder(about) if ladder is None else ladder
    near = about.get("near", 0.0) * value
    steps = with_value((v for v in ladder if not abs(v - value) < near), value)
    options = [
        choice(
            v,
            _said(
                about,
                "nil",
                "short",
                v,
            ),
            long=_said(
                about,
                "nil_long",
                "long",
                v,
            ),
        )
        for v in steps
    ]
    return {
        "kind": "slider",
        "value": value,
        "options": options,
    }


def _said(
    about: Mapping,
    nil: str,
    form: str,
    value,
) -> str:
    if not value and nil in about:
        return about[nil]
    text = billions(value) if about.get("shown") == "params" else whole(value)
    return about.get(form, "{}").format(text)


def _devices(
    session,
    field,
    about,
) -> dict:
    node = session.now.resolved.cluster.devices_per_node
    return _slider(
        session,
        field,
        about,
        choices.octaves(
            node,
            2**18,
            node,
        ),
    )


def _top_k(
    session,
    field,
    about,
) -> dict:
    experts = session.now.resolved.model.experts
    ladder = [k for k in choices.ladder(about) if k <= experts]
    made = _slider(
        session,
        field,
        about,
        ladder,
    )
    none = {
        "value": 0,
        "options": [
            choice(
                0,
                about["nil"],
                long=about["nil_long"],
            )
        ],
    }
    return made | ({} if experts else none) | {"disabled": not experts}


def _example(
    session,
    field,
    about,
) -> dict:
    rows = [choice("", "open an example…"), *choices.examples()]
    return {
        "kind": "list",
        "value": "",
        "options": rows,
    }


def _model(
    session,
    field,
    about,
) -> dict:
    """The model by name, or its own shape."""
    stated, known = session.now.design.model, choices.models()
    if isinstance(stated, str):
        return {
            "kind": "list",
            "value": stated,
            "options": known,
        }
    name = session.now.resolved.model.name
    text = f"{name} (own shape)" if stated.like else f"by size: {name}"
    return {
        "kind": "list",
        "value": "",
        "options": [choice("", text), *known],
    }


def _fabric(
    session,
    field,
    about,
) -> dict:
    """The scale-out network as a slider from slow to fast."""
    now, known = session.now.resolved.cluster.scale_out, list(choices.fabrics())
    if now not in [row["value"] for row in known]:
        known.append(
            choice(
                now,
                now,
                long=now,
            )
        )
    return {
        "kind": "slider",
        "value": now,
        "options": known,
        "wide": True,
    }


_LISTS = {
    "accelerators": lambda resolved: choices.accelerators(),
    "precisions": lambda resolved: _words(
        p for p in resolved.cluster.accelerator.precisions() if p in legal.PRECISIONS
    ),
    "optimizers": lambda resolved: _words(catalogue.optimizers()),
}


def _list(
    session,
    field,
    about,
) -> dict:
    """One of several that a design always has."""
    resolved = session.now.resolved
    rows = _LISTS[about["rows"]](resolved)
    return {
        "kind": "list",
        "value": attrgetter(about["of"])(resolved),
        "options": rows,
    }


def _words(values) -> list[dict]:
    return [choice(value, value) for value in values]


# plan fields with the words to choose from
_PLAN_WORDS = {
    "sharding": legal.SHARDINGS,
    "schedule": legal.SCHEDULES,
    "recompute": legal.RECOMPUTES,
    "offload": legal.OFFLOADS,
}
_STEPS = {
    "pp": (1.0, 1.25, 1.5, 1.75),
    "vpp": (1.0, 1.5),
    "dp": (1.0, 1.5),
}


def _pin(
    session,
    field: str,
    about,
) -> dict:
    """One field of the plan: searched, or pinned to a value."""
    name, pins = field.removeprefix("plan."), session.now.design.plan.given()
    now, value, pinned = at(session.now.given, field), pins.get(name), name in pins
    auto = choice(None, "auto" if now is None or pinned else f"auto: {now}")
    ways = _PLAN_WORDS.get(name) or with_value(_ways(session, name), value)
    options = [auto, *(choice(v, str(v)) for v in ways)]
    more = {
        "pinned": pinned,
        "asks": True,
        "wide": name in _PLAN_WORDS,
    }
    q = quantity(field)
    help_ = f"{q.label}. {q.formula}" if q.formula else q.label
    return {
        "kind": "list",
        "value": value,
        "options": options,
        "help": help_,
        **more,
    }


def _ways(session, name) -> list[int]:
    """Ways to split along an axis that the design on the desk could take."""
    resolved = session.now.resolved
    model, experts = resolved.model, resolved.model.experts
    if name == "ep":
        return choices.divisors(experts) if experts else [1]
    most = {
        "dp": resolved.cluster.devices,
        "etp": 64 if experts else 1,
        "tp": min(model.heads, 256),
        "pp": min(model.layers, 256),
        "vpp": min(model.layers, 256),
    }
    return choices.octaves(
        1,
        most.get(name, 64),
        steps=_STEPS.get(name, (1.0,)),
    )


def refusals(session, field: str) -> dict:
    """Values of a plan field that the design cannot take as it stands, each with the library's
    reason in a few words."""
    name = field.removeprefix("plan.")
    if name == field or field not in GROUPS[_PLAN]:
        return {}
    resolved = session.now.resolved
    phase = resolved.main_phase
    out = {}
    for value in _PLAN_WORDS.get(name) or _ways(session, name):
        pins = phase.pins | {name: value}
        try:
            enumerate_plans(
                resolved.model,
                phase,
                resolved.cluster,
                DEFAULT,
                pins,
            )
        except DesignError as error:
            allowed = error.allowed if isinstance(error.allowed, str) else ""
            said = allowed or error.problem or "not legal here"
            out[value] = said.split(";")[0].split(" (")[0]
    return out


def computed(session, field: str):
    """What is taken for a field that the design leaves out: of the assessment, or of the design
    with its defaults filled in."""
    about = CONTROLS[field]
    if "of" in about:
        return attrgetter(about["of"])(session.now.resolved)
    return at(session.now.given, about.get("taken", ""))


def stated(session, field: str):
    """What the design says of a field."""
    return at(session.now.design.data(), field)


def _info(field: str):
    """The field of the design's schema that a control stands for."""
    of, _, name = field.rpartition(".")
    return Design.section_fields(*of.split(".")).get(name) if of else None


def _extra(field: str) -> Mapping:
    return (
        getattr(
            _info(field),
            "json_schema_extra",
            None,
        )
        or {}
    )


def unit(field: str) -> str:
    """The unit of a field as its control says it."""
    return CONTROLS[field].get("unit") or _extra(field).get("unit", "")


def _described(field: str) -> str:
    """What a field of the design is."""
    return (
        getattr(
            _info(field),
            "description",
            None,
        )
        or ""
    )


def _plain(
    session,
    field: str,
    about,
) -> dict:
    """A field as the file has it: a list of its words, or a box for a number in which what is taken
    where the design says nothing stands in grey."""
    value, taken = stated(session, field), computed(session, field)
    words = [w for w in _extra(field).get("enum", ()) if w]
    if words or about.get("rows"):
        words = words or list(getattr(catalogue, about["rows"])())
        auto = choice(None, "none" if taken is None else f"auto: {taken}")
        more = {
            "pinned": value is not None,
            "wide": True,
        }
        return {
            "kind": "list",
            "value": value,
            "options": [auto, *_words(words)],
            **more,
        }
    scaled = taken is not None and not isinstance(taken, str)
    gap = f"auto {taken / about.get('scale', 1):.4g}" if scaled else "none"
    said = "" if value is None else f"{value:g}" if isinstance(value, (int, float)) else "several"
    return {
        "kind": "number",
        "value": said,
        "unit": unit(field),
        "placeholder": gap,
    }


def _rate(
    session,
    field: str,
    about,
) -> dict:
    """A slider whose ladder holds, at its place, what is taken where the design says nothing."""
    value, taken = stated(session, field), computed(session, field)
    known = "not known" if taken is None else _ratio(float(taken))
    ladder = with_value(choices.ladder(about), value)
    steps = [
        choice(
            v,
            _ratio(v),
            long=f"{_ratio(v)} {unit(field)}",
        )
        for v in map(float, ladder)
    ]
    if value is None:
        text, place = known if taken is None else f"auto {known}", taken or 0.0
        auto = choice(
            None,
            text,
            long=f"not given: {known} {unit(field)}",
        )
    else:
        auto, place = (
            choice(
                None,
                "auto",
                long="as the preset or catalogue has it",
            ),
            0.0,
        )
    steps.insert(sum(v < place for v in ladder), auto)
    own = {
        "kind": "slider",
        "value": value,
        "options": steps,
        "unit": unit(field),
    }
    return own | {"help": f"{_described(field)}, {unit(field)}"}


_KINDS = {
    **{
        "slider": _slider,
        "devices": _devices,
        "top_k": _top_k,
        "example": _example,
    },
    **{
        "model": _model,
        "fabric": _fabric,
        "list": _list,
        "pin": _pin,
        "plain": _plain,
    },
    "rate": _rate,
}


# ---------------------------------------------------------------- what a moved control changes
def changes(
    session,
    field: str,
    value,
) -> Mapping:
    """Fields of the design that follow from one moved control."""
    model = session.now.resolved.model
    if field == "model":
        return {field: value} if value else {}
    if field == "model.size":
        return _by_size(
            value,
            model.experts,
            model.top_k,
        )
    if field == "model.experts":
        return _experts(session, int(value))
    if field == "cluster.accelerator":
        return _accelerator(session, value)
    if field == "cluster.scale_out":
        return {
            field: value,
            "cluster.nics_per_node": None,
        }
    if field.endswith(".global_batch"):
        return {
            field: value,
            field + "_tokens": None,
        }
    if field.endswith(".tokens"):
        return {field: value or None}
    typed = isinstance(value, str) and "unit" in _extra(field)
    return {field: number(field, value) if typed else value}


def _by_size(
    size,
    experts: int,
    top_k: int,
) -> dict:
    """A model by its size alone, a MoE where it has experts."""
    sparse = (
        {
            "moe": True,
            "experts": experts,
            "top_k": top_k,
        }
        if experts
        else {}
    )
    return {
        "model": {
            "size": float(size),
            **sparse,
        }
    }


def _experts(session, experts: int) -> dict:
    resolved, stated = session.now.resolved, session.now.design.model
    model = resolved.model
    top_k = max(1, min(model.top_k or 2, experts))
    if model.experts and experts and (isinstance(stated, str) or stated.size is None):
        # same experts, more or fewer of them
        return {
            "model.experts": experts,
            "model.top_k": top_k,
        }
    return _by_size(
        resolved.params.total,
        experts,
        top_k,
    )


def _accelerator(session, value) -> dict:
    """The chip with its usual node; a precision that it does not have goes back to the default."""
    design, path = session.now.design, session.now.resolved.job_path
    phase = design.job.phases[int(path.rpartition(".")[2])] if design.job.phases else design.job
    has = catalogue.accelerator(value).precisions()
    stated = {
        path: phase,
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
    of = _extra(field).get("unit")
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
