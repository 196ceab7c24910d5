"""From a line of text to the fields of a design: what was read, from which words, and what those
words were taken to mean."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from scantling import catalogue
from scantling.base.errors import DesignError, plain
from scantling.catalogue.models.entries import entry
from scantling.catalogue.models.shape import parameters
from scantling.design.reading import Brief

from .grammar import scan
from .machine import choose_accelerator, choose_fabric
from .notes import Clash, Notes

_wrong = partial(DesignError, "text")
_EXAMPLE = "such as 175B MoE, 1024x A100 80GB, 1T tokens in 30 days"
LONGEST = 10_000
AMOUNTS = ("examples", "epochs", "tokens_per_param")


def read_brief(text: str) -> Brief:
    """The plan that `text` states, such as "175B MoE, 96 layers, 1024x A100 80GB, 200Gb/s IB, 1T
    tokens in 30 days".

    Words that no rule reads are listed as ignored, with what follows a negation or a bound, so
    nothing is dropped silently. K, M, B, T scale numbers (K is 1,024 for sequence lengths), Gb/s
    are bits and GB/s bytes, a month has 30 days.
    Raises DesignError for two values of one thing and for what is no text: nothing, control
    characters, more than LONGEST characters.
    """
    _check(text)
    notes = scan(text)
    if notes.clashes:
        raise _contradiction(notes.clashes[0])
    _model(notes.fields)
    facts = notes.facts
    if "hours_of" in facts and "accelerator" not in facts:
        notes.set("accelerator", facts["hours_of"], notes.words["hours_of"])
    _accelerator(notes)
    if "racks" in facts:
        _racks(notes, facts["racks"])
    if "nodes" in facts:
        _nodes(notes, facts["nodes"])
    if "device_hours" in facts:
        _hours(notes, facts["device_hours"])
    _network(notes)
    if "rdma" in facts:
        notes.note(notes.words["rdma"], why="the fabric does RDMA; there is no field for it")
    return Brief(
        fields=notes.fields,
        read=tuple(notes.read),
        ignored=tuple(notes.ignored),
        assumed=tuple(notes.assumed),
        amounts={name: facts[name] for name in AMOUNTS if name in facts},
    )


def _check(text: str) -> None:
    """Raises DesignError for what is no text: nothing, control characters, too much."""
    problem = ""
    for character in text:
        if not character.isprintable() and not character.isspace():
            problem = f"holds a control character, {character!a}"
            break
    if not text.strip():
        problem = "is empty"
    if len(text) > LONGEST:
        problem = f"has {len(text):,} characters, more than {LONGEST:,}"
    if problem:
        raise _wrong(allowed="the plan in words, " + _EXAMPLE, problem=problem)


def _contradiction(clash: Clash) -> DesignError:
    one = plain(str(clash.one), 40)
    two = plain(str(clash.two), 40)
    problem = f"gives {clash.path} twice: {one} and {two} ('{plain(clash.words, 60)}')"
    return _wrong(problem=problem, allowed="one value")


def _model(fields: dict[str, Any]) -> None:
    """A model is named, or a mixture of experts where it has experts."""
    if isinstance(fields.get("model"), str):
        _named(fields)
    sparse = fields.keys() & {"model.experts", "model.top_k", "model.active"}
    if fields.get("model.moe") is False:
        del fields["model.moe"]
        if sparse:
            raise _wrong(problem="says dense and gives experts", allowed="one of the two")
    elif "model.like" not in fields and sparse - {"model.top_k"}:
        fields["model.moe"] = True


def _named(fields: dict[str, Any]) -> None:
    """A catalogue model that the text also describes: sizes have to agree, other dimensions replace
    the row's."""
    id = fields["model"]
    model = entry(id).model
    counts = parameters(model)
    total = float(counts.total)
    active = float(counts.active)
    _agrees(fields.pop("model.size", None), id, "", total, (total, active))
    _agrees(fields.pop("model.active", None), id, "active ", active, (active,))
    moe = fields.pop("model.moe", model.is_moe)
    if moe != model.is_moe:
        kind = "a mixture of experts" if model.is_moe else "dense"
        raise _wrong(
            problem=f"names {id}, which is {kind}, and says the contrary", allowed="one of the two"
        )
    if any(path.startswith("model.") for path in fields):
        fields["model.like"] = fields.pop("model")


def _agrees(
    stated: float | None, id: str, kind: str, count: float, counts: tuple[float, ...]
) -> None:
    """Raises DesignError for a size that is none of the named model's, within 8 %."""
    if stated is None or min(abs(stated / n - 1) for n in counts) <= 0.08:
        return
    problem = (
        f"names {id}, which has {count / 1e9:.4g}B {kind}parameters, and says {stated / 1e9:g}B"
    )
    raise _wrong(problem=problem, allowed="one of the two")


def _accelerator(notes: Notes) -> None:
    """The card, with the nearest memory where the catalogue lacks the one that was said; what it
    lacks is listed as ignored."""
    words = notes.words
    field = "cluster.accelerator"
    nvlink = notes.facts.get("nvlink")
    if "accelerator" not in notes.facts:
        if nvlink is not None:
            notes.note(words["nvlink"], why="no accelerator is named")
        return
    choice = choose_accelerator(notes.facts["accelerator"], nvlink)
    for error in choice.lacking:
        notes.ignore(words["accelerator"], plain(str(error), 200))
    if choice.id is None:
        return
    notes.fields[field] = choice.id
    sources = ", ".join(words[fact] for fact in ("accelerator", "nvlink") if fact in words)
    notes.note(sources, field, choice.id, choice.why)
    if choice.why:
        notes.assume(field, choice.id, choice.why)


def _racks(notes: Notes, racks: int) -> None:
    """Devices of a count of racks, where the scale-up domain is one."""
    words = notes.words["racks"]
    id = notes.fields.get("cluster.accelerator")
    domain = catalogue.accelerator(id).scale_up_domain if id else 0
    if not id or domain <= catalogue.devices_per_node(id):
        notes.ignore(words, "how many devices a rack holds is not known")
        return
    notes.set("cluster.devices", racks * domain, words, f"{racks:,} racks of {domain}")


def _nodes(notes: Notes, nodes: int) -> None:
    """Devices of a count of nodes."""
    per_node = _per_node(notes.fields)
    field = "cluster.devices"
    devices = nodes * per_node
    stated = notes.fields.setdefault(field, devices)
    if stated != devices:
        raise _wrong(
            problem=f"gives {stated:,} devices and {nodes:,} nodes of {per_node}",
            allowed="one count",
        )
    notes.note(notes.words["nodes"], field, devices, f"{nodes:,} nodes of {per_node}")
    if "cluster.devices_per_node" not in notes.fields:
        why = f"{nodes:,} nodes with {per_node} devices each, as this accelerator's usual node has"
        notes.assume(field, devices, why)


def _hours(notes: Notes, device_hours: float) -> None:
    """Devices of a budget of device-hours until the deadline, in whole nodes; where devices are
    said, or no deadline is, the hours set nothing."""
    words = notes.words["device_hours"]
    days = notes.fields.get("constraints.deadline_days")
    if "cluster.devices" in notes.fields:
        notes.ignore(words, "device-hours: state days beside the devices")
        return
    if not days:
        why = "device-hours do not say how many devices: add in how many days"
        notes.ignore(words, why)
        return
    per_node = _per_node(notes.fields)
    most = device_hours / (24 * days)
    devices = int(most // per_node) * per_node or max(1, int(most))
    why = f"as many as the hours pay for in {days:g} days, in whole nodes of {per_node}"
    notes.set("cluster.devices", devices, words, why)
    notes.assume("cluster.devices", devices, why)


def _network(notes: Notes) -> None:
    """The fabric between nodes and its rate."""
    words = notes.words
    kind = notes.facts.get("fabric")
    rate = notes.facts.get("rate")
    rate_of = notes.facts.get("rate_of")
    if rate_of and not rate:
        notes.ignore(words["rate_of"], "a rate is missing, such as 400 Gb/s per device")
    if not kind and not rate:
        return
    sources = " ".join(words[fact] for fact in ("rate", "fabric", "rate_of") if fact in words)
    fields = choose_fabric(kind, rate, rate_of or "port", _per_node(notes.fields))
    for name, value in fields.items():
        notes.fields[f"cluster.{name}"] = value
        notes.note(sources, f"cluster.{name}", value)
    if not fields:
        notes.note(sources, why="InfiniBand of the accelerator's usual node")
    if kind is None:
        why = "a rate without a network: InfiniBand"
        notes.assume("cluster.scale_out", fields.get("scale_out"), why)


def _per_node(fields: Mapping[str, Any]) -> int:
    """Devices of a node: as said, else of the accelerator's usual node."""
    stated: int | None = fields.get("cluster.devices_per_node")
    if stated:
        return stated
    id = fields.get("cluster.accelerator")
    return catalogue.devices_per_node(id) if id else 8
