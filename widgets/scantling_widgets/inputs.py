"""From a session to the groups of inputs, and from a moved input back to fields of the design.

Which control stands for which field is decided here and nowhere else; what a control is called
stands in controls.yaml; what a field may hold, the library says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import yaml
from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.base.show import shown
from scantling.catalogue import words as legal
from scantling.plans.enumerate import enumerate_plans
from scantling.plans.space import DEFAULT

from . import choices
from .choices import options, whole, with_value
from .words import at, quantity

_SIZES = choices.decades(1e9, 1e13)
_TOKENS = choices.decades(1e10, 1e14)
_SEQUENCES = choices.octaves(
    1024,
    2**20,
    1024,
    steps=(1.0, 1.5),
)
_BATCHES = choices.octaves(8, 2**17)
_EXPERTS = (0, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192, 256, 384, 512)
_TOP = (1, 2, 3, 4, 6, 8, 10, 12, 16)
# what comes from the accelerator's usual node, and so goes when another accelerator is chosen
_OF_THE_NODE = (
    *("node", "devices_per_node", "scale_up_domain", "scale_up", "scale_out", "nics_per_node"),
    *("pod_devices", "host_memory_gb", "nvme_gb", "node_power_w"),
)


@cache
def controls() -> dict[str, dict]:
    """Names and words of the controls, by field; those of a job by the last part of it."""
    return yaml.safe_load(Path(__file__).with_name("controls.yaml").read_text(encoding="utf-8"))


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
    plan = "Plan: auto is searched, the rest is pinned"
    found = (
        ("Design", False, "rows", _front(session)),
        (plan, False, "pairs", [_pin(session, name, reasons or {}) for name in _PLAN_SHOWN]),
        ("Job", True, "rows", _job(session)),
        ("Constraints", True, "rows", [_number(session, f) for f in _of("constraints")]),
        ("Failures, prices, measured", True, "rows", _money(session)),
    )
    keys = ("title", "folded", "shape", "fields")
    out = [dict(zip(keys, group)) for group in found]
    if session.refusal is not None:
        _mark([field for group in out for field in group["fields"]], session.refusal)
    return out


def _of(*sections: str) -> list[str]:
    """The controls of some sections of a design."""
    return [field for field in controls() if section(field) in sections]


def section(field: str) -> str:
    """The section of a design that a field is in."""
    return field.split(".")[0]


def _mark(fields, refusal) -> None:
    """Write the refusal below the control of its field; several controls edit below `model` or
    `cluster`."""
    for name in (refusal.moved, refusal.field):
        for field in fields:
            if field["field"] == name:
                field["fault"] = refusal.text
                return


def _control(kind: str, field: str, value, options_: list[dict], *of, **more) -> dict:
    """One control with its words; `of` fills the gap in its help."""
    about = controls().get(field) or controls()[field.rsplit(".", 1)[-1]]
    return {
        "kind": kind,
        "field": field,
        "label": about["label"],
        "value": value,
        "options": options_,
        "help": about.get("help", "").format(*of),
        **more,
    }


def _slider(field: str, value, ladder, *of, **more) -> dict:
    """A slider over a ladder of values."""
    about = controls().get(field) or controls()[field.rsplit(".", 1)[-1]]
    say, long = (
        partial(
            _said,
            about,
            nil,
            form,
        )
        for nil, form in (("nil", "short"), ("nil_long", "long"))
    )
    return _control(
        "slider",
        field,
        value,
        options(ladder, say, long),
        *of,
        **more,
    )


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


def _words(values) -> list[dict]:
    return [
        {
            "value": value,
            "text": value,
        }
        for value in values
    ]


def _front(session) -> list[dict]:
    resolved = session.now.resolved
    cluster, model, params = resolved.cluster, resolved.model, resolved.params
    phase, node = resolved.main_phase, cluster.devices_per_node
    devices = with_value(choices.octaves(node, 2**18, node), cluster.devices)
    examples = [
        {
            "value": "",
            "text": "open an example…",
        },
        *choices.examples(),
    ]
    batch = f"{session.now.resolved.job_path}.global_batch"
    batches = with_value(_BATCHES, phase.global_batch)
    chips = _known(choices.accelerators(), cluster.accelerator.id)
    return [
        _control(
            "list",
            "example",
            "",
            examples,
        ),
        _model(session.now.design.model, model.name),
        _slider("model.size", params.total, with_value(_SIZES, params.total)),
        _slider("model.experts", model.experts, with_value(_EXPERTS, model.experts)),
        _slider(
            "cluster.devices",
            cluster.devices,
            devices,
            node,
        ),
        _control(
            "list",
            "cluster.accelerator",
            cluster.accelerator.id,
            chips,
        ),
        _fabric(cluster),
        _slider(
            batch,
            phase.global_batch,
            batches,
            billions(float(phase.global_batch * phase.seq_len)),
        ),
    ]


def _model(stated, name: str) -> dict:
    """The model by name, or its own shape."""
    if isinstance(stated, str):
        return _control(
            "list",
            "model",
            stated,
            _known(choices.models(), stated),
        )
    text = f"{name} (own shape)" if stated.like else f"by size: {name}"
    return _control(
        "list",
        "model",
        "",
        [
            {
                "value": "",
                "text": text,
            },
            *choices.models(),
        ],
    )


def _fabric(cluster) -> dict:
    """The scale-out network as a slider from slow to fast."""
    now = cluster.scale_out
    known = [
        {
            "value": f["value"],
            "text": f["value"],
            "long": f"{f['text']}, {f['rate']} per device",
        }
        for f in choices.fabrics()
    ]
    if now not in [option["value"] for option in known]:
        known.append(
            {
                "value": now,
                "text": now,
                "long": now,
            }
        )
    rate = shown(cluster.scale_out_bytes_per_s, "bytes_per_s")
    return _control(
        "slider",
        "cluster.scale_out",
        now,
        known,
        rate,
        wide=True,
    )


def _known(rows, value) -> list[dict]:
    rows = [dict(row) for row in rows]
    if value not in [row["value"] for row in rows]:
        rows.insert(
            0,
            {
                "value": value,
                "text": str(value),
            },
        )
    return rows


# plan fields that the desk offers, with the ways or words to choose from
_PLAN_WORDS = {
    "sharding": legal.SHARDINGS,
    "schedule": legal.SCHEDULES,
    "recompute": legal.RECOMPUTES,
    "offload": legal.OFFLOADS,
}
_PLAN_SHOWN = (
    *("tp", "pp", "cp", "vpp", "dp", "ep", "etp", "micro_batch"),
    *("sharding", "schedule", "recompute"),
)
_STEPS = {
    "pp": (1.0, 1.25, 1.5, 1.75),
    "vpp": (1.0, 1.5),
    "dp": (1.0, 1.5),
}


def _pin(
    session,
    name: str,
    reasons,
) -> dict:
    """One field of the plan: searched, or pinned to a value."""
    field, pins = f"plan.{name}", session.now.design.plan.given()
    now, pinned = (session.now.given.get("plan") or {}).get(name), name in pins
    auto = {
        "value": None,
        "text": "auto" if now is None or pinned else f"auto: {now}",
    }
    why = reasons.get(field, {})
    ladder = [
        {
            "value": v,
            "text": str(v),
            "reason": why.get(v, ""),
        }
        for v in _PLAN_WORDS.get(name) or with_value(_ways(session, name), pins.get(name))
    ]
    q, more = (
        quantity(field),
        {
            "pinned": pinned,
            "asks": True,
            "wide": name in _PLAN_WORDS,
        },
    )
    about = f"{q.label}. {q.formula}" if q.formula else q.label
    return _control(
        "list",
        field,
        pins.get(name),
        [auto, *ladder],
        **more,
    ) | {"help": about}


def _ways(session, name) -> list[int]:
    """Ways to split along an axis that the design on the desk could take."""
    model, cluster = session.now.resolved.model, session.now.resolved.cluster
    if name == "ep":
        return [1, *(d for d in choices.divisors(model.experts) if d > 1)] if model.experts else [1]
    most = {
        "dp": cluster.devices,
        "etp": 64 if model.experts else 1,
        "tp": min(model.heads, 256),
        "pp": min(model.layers, 256),
        "vpp": min(model.layers, 256),
    }
    return choices.octaves(1, most.get(name, 64), steps=_STEPS.get(name, (1.0,)))


def refusals(session, field: str) -> dict:
    """Values of a plan field that the design cannot take as it stands, each with the library's
    reason in a few words."""
    name = field.removeprefix("plan.")
    if name == field or name not in _PLAN_SHOWN:
        return {}
    resolved = session.now.resolved
    phase = resolved.main_phase
    out = {}
    for value in _PLAN_WORDS.get(name) or _ways(session, name):
        pins = {
            **phase.pins,
            name: value,
        }
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


def _job(session) -> list[dict]:
    design, resolved = session.now.design, session.now.resolved
    phase, model, job = resolved.main_phase, resolved.model, session.now.resolved.job_path
    tokens, sparse = phase.tokens or 0.0, model.experts > 0
    top, offload = model.top_k if sparse else 0, design.plan.offload
    experts = with_value([k for k in _TOP if k <= model.experts], top)
    tokens_ = with_value(_TOKENS if tokens else [0.0, *_TOKENS], tokens)
    formats = [p for p in resolved.cluster.accelerator.precisions() if p in legal.PRECISIONS]
    offloads = [
        {
            "value": None,
            "text": "auto",
        },
        *_words(legal.OFFLOADS),
    ]
    return [
        _slider(
            "model.top_k",
            top,
            experts,
            disabled=not sparse,
        ),
        _slider(f"{job}.seq_len", phase.seq_len, with_value(_SEQUENCES, phase.seq_len)),
        _slider(f"{job}.tokens", tokens, tokens_),
        _control(
            "list",
            f"{job}.precision",
            phase.precision,
            _words(formats),
        ),
        _control(
            "list",
            f"{job}.optimizer",
            phase.optimizer,
            _words(catalogue.optimizers()),
        ),
        _control(
            "list",
            "plan.offload",
            offload,
            offloads,
            pinned=offload is not None,
        ),
    ]


def computed(session, field: str):
    """What is taken for a field of reliability or prices that the design leaves out."""
    of, name = field.split(".")
    given = session.now.given
    if of == "reliability":
        return given.get("spares") if name == "spares" else at(given, f"endurance.{name}")
    return at(given, f"cost.{name}")


def _money(session) -> list[dict]:
    return [
        (_rate if "decades" in controls()[field] else _number)(session, field)
        for field in _of("reliability", "prices", "measured")
    ]


def _stated(session, field: str) -> tuple:
    """(what the design says of a field, what the field is)."""
    of, name = field.split(".")
    part = getattr(session.now.design, of)
    return getattr(part, name), type(part).model_fields[name].description


def _number(session, field: str) -> dict:
    """A box for a number; what is computed where the design says nothing stands in it in grey."""
    value, about = _stated(session, field)
    own, free = controls()[field], section(field) in ("constraints", "measured")
    taken = None if free else computed(session, field)
    return {
        "kind": "number",
        "field": field,
        "label": own["label"],
        "unit": own["unit"],
        "value": "" if value is None else f"{value:g}",
        "placeholder": "none" if taken is None else f"{taken:.4g}",
        "help": about or own["label"],
    }


def _rate(session, field: str) -> dict:
    """A slider whose ladder holds, at its place, what is taken where the design says nothing."""
    value, about = _stated(session, field)
    own, taken = controls()[field], computed(session, field)
    unit, known = own["unit"], "not known" if taken is None else _ratio(float(taken))
    auto = {
        "value": None,
        "text": "auto",
        "long": "as the preset or catalogue has it",
    }
    place = 0.0
    if value is None:
        text, place = known if taken is None else f"auto {known}", taken or 0.0
        auto = {
            "value": None,
            "text": text,
            "long": f"not given: {known} {unit}",
        }
    ladder = with_value(choices.decades(*own["decades"]), value)
    steps = [
        {
            "value": v,
            "text": _ratio(v),
            "long": f"{_ratio(v)} {unit}",
        }
        for v in map(float, ladder)
    ]
    steps.insert(sum(v < place for v in ladder), auto)
    help_ = f"{about or own['label']}, {unit}"
    return _control(
        "slider",
        field,
        value,
        steps,
        unit=unit,
    ) | {"help": help_}


# ---------------------------------------------------------------- what a moved control changes
def changes(
    session,
    field: str,
    value: Any,
) -> Mapping:
    """Fields of the design that follow from one moved control."""
    design, resolved = session.now.design, session.now.resolved
    model, params = resolved.model, resolved.params
    if field == "model":
        return {"model": value} if value else {}
    if field == "model.size":
        sparse = (
            {
                "moe": True,
                "experts": model.experts,
                "top_k": model.top_k,
            }
            if model.experts
            else {}
        )
        return {
            "model": {
                "size": float(value),
                **sparse,
            }
        }
    if field == "model.experts":
        return _experts(
            design,
            model,
            params,
            int(value),
        )
    if field == "model.top_k":
        return {"model.top_k": int(value)}
    if field == "cluster.accelerator":
        return _accelerator(session, value)
    if field == "cluster.scale_out":
        return {
            "cluster.scale_out": value,
            "cluster.nics_per_node": None,
        }
    if field.endswith(".global_batch"):
        return {
            field: value,
            field + "_tokens": None,
        }
    if field.endswith(".tokens"):
        return {field: value or None}
    if isinstance(value, str) and field in _of(
        "constraints",
        "reliability",
        "prices",
        "measured",
    ):
        return {field: number(field, value)}
    return {field: value}


def _experts(
    design,
    model,
    params,
    experts: int,
) -> dict:
    top_k = max(1, min(model.top_k or 2, experts))
    if model.experts and experts and (isinstance(design.model, str) or design.model.size is None):
        return {
            "model.experts": experts,
            "model.top_k": top_k,
        }  # same experts, more or fewer of them
    return {
        "model": {
            "size": float(params.total),
            **(
                {
                    "moe": True,
                    "experts": experts,
                    "top_k": top_k,
                }
                if experts
                else {}
            ),
        }
    }


def _accelerator(session, value) -> dict:
    """The chip with its usual node; a precision that it does not have goes back to the default."""
    design = session.now.design
    out = {
        "cluster.accelerator": value,
        **{f"cluster.{name}": None for name in _OF_THE_NODE},
    }
    has = catalogue.accelerator(value).precisions()
    job = session.now.resolved.job_path
    for where in {job, "job"}:
        section = design.job if where == "job" else design.job.phases[int(where.rsplit(".", 1)[1])]
        if section.precision and section.precision not in has:
            out[f"{where}.precision"] = None
    if design.plan.precision and design.plan.precision not in has:
        out["plan.precision"] = None
    return out


def number(field: str, text: str) -> float | int:
    """A typed number, or a DesignError that says what was typed."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        raise DesignError(
            field,
            text,
            "a number, scientific notation allowed",
            problem="is not a number",
        ) from None
    return int(value) if abs(value) < 1e15 and value == int(value) else value
