"""From a session to the groups of inputs, and from a moved input back to fields of the design.

Which control stands for which field is decided here and nowhere else; what a field may hold, the
library says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from scantling.base.errors import DesignError
from scantling.base.show import shown
from scantling.catalogue import words as legal

from . import choices
from .choices import options, whole, with_value

_SIZES = choices.decades(1e9, 1e13)
_TOKENS = choices.decades(1e10, 1e14)
_SEQUENCES = choices.octaves(1024, 2**20, 1024, steps=(1.0, 1.5))
_BATCHES = choices.octaves(8, 2**17)
_EXPERTS = (0, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192, 256, 384, 512)
_TOP = (1, 2, 3, 4, 6, 8, 10, 12, 16)
# what comes from the accelerator's usual node, and so goes when another accelerator is chosen
_OF_THE_NODE = (
    "node",
    "devices_per_node",
    "scale_up_domain",
    "scale_up",
    "scale_out",
    "nics_per_node",
    "pod_devices",
    "host_memory_gb",
    "nvme_gb",
    "node_power_w",
)


@lru_cache(maxsize=1024)  # ladders are written anew at every move of a control
def billions(value) -> str:
    return shown(value, "params")


@lru_cache(maxsize=1024)
def _ratio(value: float) -> str:
    return shown(value, "ratio")


def job_path(session) -> str:
    return session.now.resolved.job_path


# ---------------------------------------------------------------- what the controls show
def groups(session, reasons: Mapping[str, Mapping] | None = None) -> list[dict]:
    """All inputs of the desk, filled from the design that is on it; `reasons` says for a field
    which values it cannot take."""
    out = [_front(session), _plan(session, reasons or {}), *_folded(session)]
    if session.refusal is not None:
        _mark(out, session.refusal)
    return out


def _mark(out, refusal) -> None:
    """Write the refusal below the control of its field; several controls edit below `model` or
    `cluster`."""
    fields = [f for group in out for f in group["fields"]]
    exact = [f for f in fields if f["field"] == refusal.moved] or [
        f for f in fields if f["field"] == refusal.field
    ]
    for field in exact[:1]:
        field["fault"] = refusal.text


def _slider(field, label, value, ladder, say=whole, help="", long=None, **more) -> dict:
    return {
        "kind": "slider",
        "field": field,
        "label": label,
        "value": value,
        "options": options(ladder, say, long),
        "help": help,
        **more,
    }


def _list(field, label, value, choices_, help="", **more) -> dict:
    return {
        "kind": "list",
        "field": field,
        "label": label,
        "value": value,
        "options": choices_,
        "help": help,
        **more,
    }


def _front(session) -> dict:
    design, resolved = session.now.design, session.now.resolved
    cluster, model, params = resolved.cluster, resolved.model, resolved.params
    phase = resolved.main_phase
    job = job_path(session)
    named = design.model if isinstance(design.model, str) else design.model.like
    own = not isinstance(design.model, str)
    names = (
        [
            {
                "value": "",
                "text": f"{model.name} (own shape)"
                if not own or named
                else f"by size: {model.name}",
            }
        ]
        if own
        else []
    )
    fields = [
        _list(
            "example",
            "Example",
            "",
            [{"value": "", "text": "open an example…"}, *choices.examples()],
            "Designs of the gallery: published runs and reference cases.",
        ),
        _list(
            "model",
            "Model",
            "" if own else design.model,
            [*names, *_known(choices.models(), None if own else design.model)],
            "A model of the catalogue. Size, experts and top-k below start from it.",
        ),
        _slider(
            "model.size",
            "Model size",
            params.total,
            with_value(_SIZES, params.total),
            billions,
            "Parameters in all. Moving it derives the shape from the size alone.",
            lambda v: billions(v) + " parameters",
        ),
        _slider(
            "model.experts",
            "MoE experts",
            model.experts,
            with_value(_EXPERTS, model.experts),
            lambda v: whole(v) if v else "dense",
            (
                "Routed experts of a MoE layer. A dense model becomes a MoE of the same "
                "total size; a catalogue MoE keeps the width of its experts."
            ),
            lambda v: f"{v} experts" if v else "dense, no experts",
        ),
        _slider(
            "cluster.devices",
            "GPU count",
            cluster.devices,
            with_value(
                choices.octaves(cluster.devices_per_node, 2**18, cluster.devices_per_node),
                cluster.devices,
            ),
            whole,
            (
                f"Accelerators in all, in whole nodes of {cluster.devices_per_node}: powers "
                f"of two and the quarters between."
            ),
            lambda v: f"{v:,} accelerators",
        ),
        _list(
            "cluster.accelerator",
            "Accelerator",
            cluster.accelerator.id,
            _known(choices.accelerators(), cluster.accelerator.id),
            "The chip. Choosing one brings its usual node, scale-up domain and network.",
        ),
        _fabric(cluster),
        _slider(
            f"{job}.global_batch",
            "Global batch",
            phase.global_batch,
            with_value(_BATCHES, phase.global_batch),
            lambda v: f"{v:,} seq",
            (
                f"Sequences in one step; now "
                f"{shown(float(phase.global_batch * phase.seq_len), 'params')} tokens."
            ),
            lambda v: f"{v:,} sequences",
        ),
    ]
    return {"title": "Design", "folded": False, "shape": "rows", "fields": fields}


def _fabric(cluster) -> dict:
    """The scale-out network as a slider from slow to fast."""
    known = [
        {"value": f["value"], "text": f["value"], "long": f"{f['text']}, {f['rate']} per device"}
        for f in choices.fabrics()
    ]
    if cluster.scale_out not in [o["value"] for o in known]:
        known.append(
            {"value": cluster.scale_out, "text": cluster.scale_out, "long": cluster.scale_out}
        )
    rate = shown(cluster.scale_out_bytes_per_s, "bytes_per_s")
    return {
        "kind": "slider",
        "field": "cluster.scale_out",
        "label": "Interconnect",
        "value": cluster.scale_out,
        "options": known,
        "wide": True,
        "help": (
            f"Scale-out network between nodes, from slow to fast; now {rate} per device, one "
            f"direction."
        ),
    }


def _known(rows, value) -> list[dict]:
    rows = [dict(row) for row in rows]
    if value is not None and value not in [row["value"] for row in rows]:
        rows.insert(0, {"value": value, "text": str(value)})
    return rows


# plan fields that the desk offers, with the ways or words to choose from
_PLAN_WORDS = {
    "sharding": legal.SHARDINGS,
    "schedule": legal.SCHEDULES,
    "recompute": legal.RECOMPUTES,
    "offload": legal.OFFLOADS,
}
_PLAN_SHOWN = (
    "tp",
    "pp",
    "cp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "micro_batch",
    "sharding",
    "schedule",
    "recompute",
)
_PLAN_LABELS = {
    "micro_batch": "Micro-b.",
    "sharding": "Sharding",
    "schedule": "Schedule",
    "recompute": "Recompute",
}


def _plan(session, reasons) -> dict:
    chosen, pins = session.now.given.get("plan") or {}, session.now.design.plan.given()
    fields = []
    for name in _PLAN_SHOWN:
        pinned = name in pins
        now = chosen.get(name)
        auto = {"value": None, "text": "auto" if now is None or pinned else f"auto: {now}"}
        ladder = _PLAN_WORDS.get(name) or with_value(_ways(session, name), pins.get(name))
        fields.append(
            _list(
                f"plan.{name}",
                _PLAN_LABELS.get(name, name.upper()),
                pins.get(name),
                [
                    auto,
                    *(
                        {
                            "value": v,
                            "text": str(v),
                            "reason": reasons.get(f"plan.{name}", {}).get(v, ""),
                        }
                        for v in ladder
                    ),
                ],
                _plan_help(name),
                pinned=pinned,
                asks=True,
                wide=name in _PLAN_WORDS,
            )
        )
    return {
        "title": "Plan: auto is searched, the rest is pinned",
        "folded": False,
        "shape": "pairs",
        "fields": fields,
    }


def _plan_help(name) -> str:
    from .words import quantity

    q = quantity(f"plan.{name}")
    return f"{q.label}. {q.formula}" if q.formula else q.label


def _ways(session, name) -> list[int]:
    resolved = session.now.resolved
    model, cluster = resolved.model, resolved.cluster
    if name == "dp":
        return choices.octaves(1, cluster.devices, steps=(1.0, 1.5))
    if name == "etp":
        return choices.octaves(1, 64, steps=(1.0,)) if model.experts else [1]
    if name == "ep":
        return [1, *(d for d in choices.divisors(model.experts) if d > 1)] if model.experts else [1]
    top = {"tp": model.heads, "pp": model.layers, "cp": 64, "vpp": model.layers, "micro_batch": 64}[
        name
    ]
    return [
        n
        for n in choices.octaves(
            1,
            min(top, 256),
            steps=(1.0, 1.25, 1.5, 1.75)
            if name == "pp"
            else (1.0, 1.5)
            if name == "vpp"
            else (1.0,),
        )
    ]


def refusals(session, field: str) -> dict:
    """Values of a plan field that the design cannot take as it stands, each with the library's
    reason in a few words."""
    from scantling.plans import space as plans
    from scantling.plans.enumerate import enumerate_plans

    name = field.removeprefix("plan.")
    if name == field or name not in _PLAN_SHOWN:
        return {}
    resolved = session.now.resolved
    phase = resolved.main_phase
    out = {}
    for value in _PLAN_WORDS.get(name) or _ways(session, name):
        try:
            enumerate_plans(
                resolved.model, phase, resolved.cluster, plans.DEFAULT, {**phase.pins, name: value}
            )
        except DesignError as error:
            said = (
                error.allowed
                if isinstance(error.allowed, str) and error.allowed
                else error.problem or "not legal here"
            )
            out[value] = said.split(";")[0].split(" (")[0]
    return out


def _folded(session) -> list[dict]:
    design, resolved, given = session.now.design, session.now.resolved, session.now.given
    phase = resolved.main_phase
    job = job_path(session)
    tokens, model = phase.tokens, resolved.model
    sparse = model.experts > 0
    rows = [
        _slider(
            "model.top_k",
            "Top-k",
            model.top_k if sparse else 0,
            with_value([k for k in _TOP if k <= model.experts], model.top_k if sparse else 0),
            lambda v: whole(v) if v else "–",
            "Routed experts that a token visits.",
            lambda v: f"{v} experts per token" if v else "dense",
            disabled=not sparse,
        ),
        _slider(
            f"{job}.seq_len",
            "Sequence",
            phase.seq_len,
            with_value(_SEQUENCES, phase.seq_len),
            lambda v: f"{v:,} tok",
            "Tokens in one sequence.",
            lambda v: f"{v:,} tokens",
        ),
        _slider(
            f"{job}.tokens",
            "Tokens",
            tokens or 0.0,
            with_value(_TOKENS if tokens else [0.0, *_TOKENS], tokens or 0.0),
            lambda v: billions(v) if v else "not given",
            "Tokens trained on. Without them there are no days and no cost.",
            lambda v: billions(v) + " tokens" if v else "not given",
        ),
        _list(
            f"{job}.precision",
            "Precision",
            phase.precision,
            [
                {"value": p, "text": p}
                for p in resolved.cluster.accelerator.precisions()
                if p in legal.PRECISIONS
            ],
            "Number format of the matrix products; what this accelerator has.",
        ),
        _list(
            f"{job}.optimizer",
            "Optimizer",
            phase.optimizer,
            [{"value": o, "text": o} for o in legal.OPTIMIZERS],
            "Decides the state per parameter.",
        ),
        _list(
            "plan.offload",
            "Offload",
            design.plan.offload,
            [{"value": None, "text": "auto"}, *({"value": o, "text": o} for o in legal.OFFLOADS)],
            "State kept in host memory or NVMe.",
            pinned=design.plan.offload is not None,
        ),
    ]
    limits = [
        _number(design, "constraints", name, label, unit)
        for name, label, unit in (
            ("deadline_days", "Deadline", "days"),
            ("budget_usd", "Budget", "USD"),
            ("min_mfu", "MFU at least", "share"),
            ("min_goodput", "Goodput at least", "share"),
            ("max_checkpoint_overhead", "Save overhead ≤", "share"),
            ("max_power_mw", "Power at most", "MW"),
        )
    ]
    money = [
        _rate(
            design,
            "reliability",
            "failures_per_1000_node_days",
            "Failures",
            choices.decades(0.01, 100.0),
            (given.get("endurance") or {}).get("failures_per_1000_node_days"),
            "per 1,000 node-days",
        ),
        _number(
            design,
            "reliability",
            "checkpoint_stall_s",
            "Stall of a save",
            "s",
            given.get("endurance", {}).get("checkpoint_stall_s"),
        ),
        _number(
            design,
            "reliability",
            "restart_s",
            "Restart",
            "s",
            given.get("endurance", {}).get("restart_s"),
        ),
        _number(design, "reliability", "spares", "Spare nodes", "nodes", given.get("spares")),
        _rate(
            design,
            "prices",
            "usd_per_device_hour",
            "Price",
            choices.decades(0.1, 100.0),
            (given.get("cost") or {}).get("usd_per_device_hour"),
            "USD per device-hour",
        ),
        _number(design, "measured", "step_s", "Measured step", "s"),
    ]
    return [
        {"title": "Job", "folded": True, "shape": "rows", "fields": rows},
        {"title": "Constraints", "folded": True, "shape": "rows", "fields": limits},
        {"title": "Failures, prices, measured", "folded": True, "shape": "rows", "fields": money},
    ]


def _number(design, section, name, label, unit, computed=None) -> dict:
    part = getattr(design, section)
    value = getattr(part, name)
    info = type(part).model_fields[name]
    return {
        "kind": "number",
        "field": f"{section}.{name}",
        "label": label,
        "unit": unit,
        "value": "" if value is None else f"{value:g}",
        "placeholder": "none" if computed is None else f"{computed:.4g}",
        "help": info.description or label,
    }


def _rate(design, section, name, label, ladder, computed, unit) -> dict:
    """A slider whose ladder holds, at its place, what is taken where the design says nothing."""
    part = getattr(design, section)
    value = getattr(part, name)
    say = lambda v: _ratio(float(v))
    steps = [
        {"value": v, "text": say(v), "long": f"{say(v)} {unit}", "at": v}
        for v in with_value(ladder, value)
    ]
    if value is None:
        steps.append(
            {
                "value": None,
                "text": f"auto {say(computed)}" if computed is not None else "not known",
                "long": (
                    f"not given: {say(computed) if computed is not None else 'not known'} {unit}"
                ),
                "at": computed or 0.0,
            }
        )
        steps.sort(key=lambda step: (step["at"], step["value"] is not None))
    else:
        steps.insert(
            0,
            {"value": None, "text": "auto", "long": "as the preset or catalogue has it", "at": 0.0},
        )
    info = type(part).model_fields[name]
    return {
        "kind": "slider",
        "field": f"{section}.{name}",
        "label": label,
        "unit": unit,
        "value": value,
        "options": [{k: step[k] for k in ("value", "text", "long")} for step in steps],
        "help": f"{info.description or label}, {unit}",
    }


# ---------------------------------------------------------------- what a moved control changes
def changes(session, field: str, value: Any) -> Mapping[str, Any]:
    """Fields of the design that follow from one moved control."""
    design, resolved = session.now.design, session.now.resolved
    model, params = resolved.model, resolved.params
    if field == "model":
        return {"model": value} if value else {}
    if field == "model.size":
        sparse = (
            {"moe": True, "experts": model.experts, "top_k": model.top_k} if model.experts else {}
        )
        return {"model": {"size": float(value), **sparse}}
    if field == "model.experts":
        return _experts(design, model, params, int(value))
    if field == "model.top_k":
        return {"model.top_k": int(value)}
    if field == "cluster.accelerator":
        return _accelerator(session, value)
    if field == "cluster.scale_out":
        return {"cluster.scale_out": value, "cluster.nics_per_node": None}
    if field.endswith(".global_batch"):
        return {field: value, field + "_tokens": None}
    if field.endswith(".tokens"):
        return {field: value or None}
    if isinstance(value, str) and field.split(".")[0] in (
        "constraints",
        "reliability",
        "prices",
        "measured",
    ):
        return {field: number(field, value)}
    return {field: value}


def _experts(design, model, params, experts: int) -> dict:
    top_k = max(1, min(model.top_k or 2, experts))
    if model.experts and experts and (isinstance(design.model, str) or design.model.size is None):
        return {
            "model.experts": experts,
            "model.top_k": top_k,
        }  # same experts, more or fewer of them
    return {
        "model": {
            "size": float(params.total),
            **({"moe": True, "experts": experts, "top_k": top_k} if experts else {}),
        }
    }


def _accelerator(session, value) -> dict:
    """The chip with its usual node; a precision that it does not have goes back to the default."""
    from scantling.catalogue import accelerator

    design = session.now.design
    out = {"cluster.accelerator": value, **{f"cluster.{name}": None for name in _OF_THE_NODE}}
    has = accelerator(value).precisions()
    job = job_path(session)
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
            field, text, "a number, scientific notation allowed", problem="is not a number"
        ) from None
    return int(value) if abs(value) < 1e15 and value == int(value) else value
