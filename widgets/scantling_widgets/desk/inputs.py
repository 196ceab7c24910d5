"""From a session to the groups of inputs, and from a moved input back to fields of the design."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.catalogue.words import POLICIES, Method
from scantling.design.design import Design
from scantling.design.fields import Section
from scantling.design.file import load
from scantling.design.methods import method_of, without_use
from scantling.design.pins import pins_from
from scantling.plans.enumerate import enumerate_plans
from scantling.plans.space import DEFAULT

from .amounts import number
from .choices import Option
from .control import ControlState, facts_of, words_of
from .controls import GROUPS, NOT_OF_POLICIES, PINS, Group, place_of
from .session import Moment, Refusal, Session

Reasons = Mapping[Any, str]  # a value of a control -> why the design cannot take it

_UNFOLDED = 2  # groups that are open at first
# what comes from the accelerator's usual node, and so goes when another accelerator is chosen
_OF_THE_NODE = (
    "node",
    "devices_per_node",
    "scale_up_domain",
    "scale_up",
    "scale_out",
    "scale_out_gbytes_per_s_per_device",
    "nics_per_node",
    "pod_devices",
    "host_memory_gb",
    "nvme_gb",
    "node_power_w",
)


@record
class GroupState:
    """A group of inputs as it stands on the page; `shape` is rows, or pairs side by side."""

    title: str
    folded: bool
    shape: str
    controls: tuple[ControlState, ...]


# ---------------------------------------------------------------- what the controls show
def groups(
    session: Session,
    reasons: Mapping[str, Reasons] | None = None,
    fields: Sequence[str] | None = None,
) -> list[GroupState]:
    """The inputs of the desk, all or those of some `fields` in their order, filled from the design
    that is on it; `reasons` says for a field which values it cannot take."""
    if fields is None:
        method = method_of(session.now.design)
        own = [group for group in GROUPS if method in group.methods]
        out = [
            replace(
                _state(session, reasons or {}, group),
                folded=place >= _UNFOLDED and Method.PRETRAIN in group.methods,
            )
            for place, group in enumerate(own)
        ]
    else:
        controls = {control.field: control for group in GROUPS for control in group.controls}
        group = Group(title="", controls=tuple(controls[field] for field in fields))
        out = [_state(session, reasons or {}, group)]
    return out if session.refusal is None else _with_fault(out, session.refusal)


def _state(session: Session, reasons: Mapping[str, Reasons], group: Group) -> GroupState:
    unused = NOT_OF_POLICIES if method_of(session.now.design) in POLICIES else ()
    states = (
        control.state(session.now) for control in group.controls if control.field not in unused
    )
    pinned = bool(group.title) and group.controls[0].field in PINS
    return GroupState(
        title=group.title,
        folded=False,
        shape="pairs" if pinned else "rows",
        controls=tuple(_marked(state, reasons.get(state.field, {})) for state in states),
    )


def _marked(state: ControlState, reasons: Reasons) -> ControlState:
    """A list with the reason why the design cannot take a value beside each."""
    if state.input_kind != "list":
        return state
    options = tuple(_with_reason(option, reasons) for option in state.options)
    return replace(state, options=options)


def _with_reason(option: Option, reasons: Reasons) -> Option:
    return {**option, "reason": reasons.get(option["value"], "")}


def _with_fault(groups: list[GroupState], refusal: Refusal) -> list[GroupState]:
    """The groups with the reason of a refusal at the control that was moved, else at that of the
    field that is wrong or, where there is no such field, of the one that was meant; and what else
    is wrong at the controls of those fields."""
    own = place_of(refusal.moved, refusal.field, refusal.first.nearest)
    beside = {} if own is None else {own: [refusal.text]}  # field of a control -> what is wrong
    for fault in refusal.others:
        place = place_of(fault.field, fault.nearest)
        if place is not None:
            beside.setdefault(place, []).append(fault.text)
    texts = {place: "; also ".join(said) for place, said in beside.items()}

    def marked(state: ControlState) -> ControlState:
        faulty = replace(state, fault=texts.get(state.field, state.fault))
        if state.field != own or refusal.tried is None:
            return faulty
        if state.input_kind == "slider" and isinstance(refusal.tried, str):
            return replace(faulty, typed=refusal.tried)
        # so that it can be mended, or moved on
        return replace(faulty, value=refusal.tried) if own == refusal.moved else faulty

    return [replace(group, controls=tuple(map(marked, group.controls))) for group in groups]


def refusals(now: Moment, field: str) -> dict[Any, str]:
    """Values of a plan field that the design cannot take as it stands, each with the library's
    reason in a few words."""
    out: dict[Any, str] = {}
    pin = PINS.get(field)
    if pin is None or now.tuned is not None:
        return out
    design, phase = now.resolved, now.resolved.main_phase
    for value in words_of(field) or pin.ways(design):
        try:
            pins = pins_from({**phase.pins, pin.name: value})
            enumerate_plans(design.model, phase, design.cluster, DEFAULT, pins)
        except DesignError as error:
            allowed = error.allowed if isinstance(error.allowed, str) else ""
            reason = allowed or error.problem or "not legal here"
            out[value] = reason.split(";")[0].split(" (")[0]
    return out


# ---------------------------------------------------------------- what a moved control changes
def changes(
    now: Moment, field: str, value: Any, pretrained: Design | None = None
) -> dict[str, Any]:
    """Fields of the design that follow from one moved control. `pretrained` is the last design
    that trained from the start: whose job comes back with that method."""
    model = now.resolved.model
    if field == "model":
        return {field: value} if value else {}
    if field == "job.method":
        return _method(now, Method(value), pretrained)
    if field == "model.size":
        size = number(field, value) if isinstance(value, str) else value
        return _by_size(size, model.experts, model.top_k)
    if field == "model.experts":
        return _experts(now, int(value))
    if field == "cluster.accelerator":
        return _accelerator(now, value)
    if field == "cluster.scale_out":
        own = ("cluster.nics_per_node", "cluster.scale_out_gbytes_per_s_per_device")
        return {field: value, **dict.fromkeys(own)}
    if field.endswith(".tokens"):
        value = value or None
    if isinstance(value, str):
        value = _typed(field, value)
    instead = {} if value is None else _instead(field)
    return {**instead, field: value}


# of a job: a pre-training's are not those of a fine-tune
_OF_PRETRAINING = ("tokens", "phases", "seq_len", "global_batch")


def _method(now: Moment, method: Method, pretrained: Design | None) -> dict[str, Any]:
    """Another method, without what it has no use for; back at pre-training its tokens, phases and
    batch are what they were."""
    both = (method, method_of(now.design))
    if method is both[1]:
        return {}
    earlier = pretrained.data()["job"] if pretrained and method is Method.PRETRAIN else {}
    of_another = _OF_PRETRAINING if Method.PRETRAIN in both else ()
    return {
        **without_use(method),
        **{f"job.{name}": earlier.get(name) for name in of_another},
        "job.method": None if method is Method.PRETRAIN else method.value,
    }


def _typed(field: str, text: str) -> Any:
    """What was typed into a box, as the design file has it."""
    facts = facts_of(field)
    if text.lstrip().startswith("["):
        return load(text)
    if facts and facts.unit:
        return number(field, text)
    if facts and facts.several:
        return re.split(r"[,;\s]+", text.strip(" ,;"))
    return text


def _instead(field: str) -> dict[str, Any]:
    """The other fields of which the file may give one: what is set last holds."""
    above, _, name = field.rpartition(".")
    section = Design.section(*above.split(".")) if above else None
    if section is None or not issubclass(section, Section):
        return {}
    others = {one for group in section.alone if name in group for one in group} - {name}
    return {f"{above}.{one}": None for one in others}


def _by_size(size: float, experts: int, top_k: int) -> dict[str, Any]:
    """A model by its size alone, a MoE where it has experts."""
    sparse = {"moe": True, "experts": experts, "top_k": top_k}
    return {"model": {"size": float(size), **(sparse if experts else {})}}


def _experts(now: Moment, experts: int) -> dict[str, Any]:
    stated, model = now.design.model, now.resolved.model
    top_k = max(1, min(model.top_k or 2, experts))
    if model.experts and experts and (isinstance(stated, str) or stated.size is None):
        # same experts, more or fewer of them
        return {"model.experts": experts, "model.top_k": top_k}
    # a size that is stated stays: what a shape of it counts to is a little beside it, at every move
    size = None if isinstance(stated, str) else stated.size
    return _by_size(size or float(now.resolved.params.total), experts, top_k)


def _accelerator(now: Moment, value: str) -> dict[str, Any]:
    """The chip with its usual node; a precision that it does not have goes back to the default."""
    design, path = now.design, now.resolved.job_path
    has = catalogue.accelerator(value).precisions()
    phase = design.job.phases[now.resolved.main] if design.job.phases else design.job
    stated = {path: phase.precision, "job": design.job.precision, "plan": design.plan.precision}
    lost = [name for name, precision in stated.items() if precision and precision not in has]
    return {
        "cluster.accelerator": value,
        **{f"cluster.{name}": None for name in _OF_THE_NODE},
        **{f"{name}.precision": None for name in lost},
    }
