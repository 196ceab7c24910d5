"""From a line of text to the fields of a design: what was read, from which words, and what those
words were taken to mean."""

from functools import partial

from scantling import catalogue
from scantling.base.errors import DesignError, plain
from scantling.catalogue.models.entries import entry
from scantling.catalogue.models.shape import parameters
from scantling.design.reading import Brief

from .grammar import Notes, scan
from .machine import choose_accelerator, choose_fabric

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
    odd = next((c for c in text if not c.isprintable() and not c.isspace()), None)
    problem = "is empty" if not text.strip() else odd and f"holds a control character, {odd!a}"
    if len(text) > LONGEST:
        problem = f"has {len(text):,} characters, more than {LONGEST:,}"
    if problem:
        raise _wrong(allowed="the plan in words, " + _EXAMPLE, problem=problem)
    notes = scan(text)
    if notes.clashes:
        path, *values, said = notes.clashes[0]
        one, two = (plain(str(value), 40) for value in values)
        problem = f"gives {path} twice: {one} and {two} ('{plain(said, 60)}')"
        raise _wrong(problem=problem, allowed="one value")
    _model(notes.fields)
    facts = notes.facts
    if "hours_of" in facts and "accelerator" not in facts:
        notes.set("accelerator", facts["hours_of"], notes.said["hours_of"])
    _accelerator(notes)
    if "racks" in facts:
        _racks(notes)
    if "nodes" in facts:
        _nodes(notes)
    if "device_hours" in facts:
        _hours(notes)
    _network(notes)
    if "rdma" in facts:
        notes.note(notes.said["rdma"], why="the fabric does RDMA; there is no field for it")
    return Brief(
        fields=notes.fields,
        read=tuple(notes.read),
        ignored=tuple(notes.ignored),
        assumed=tuple(notes.assumed),
        amounts={k: facts[k] for k in AMOUNTS if k in facts},
    )


def _model(fields):
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


def _named(fields):
    """A catalogue model that the text also describes: sizes have to agree, other dimensions replace
    the row's."""
    id = fields["model"]
    model = entry(id).model
    counted = parameters(model)
    for name, real, kind in (("size", counted.total, ""), ("active", counted.active, "active ")):
        said = fields.pop(f"model.{name}", None)
        if said is not None and min(abs(said / n - 1) for n in (real, counted.active)) > 0.08:
            has = f"names {id}, which has {real / 1e9:.4g}B {kind}parameters, and says "
            raise _wrong(problem=f"{has}{said / 1e9:g}B", allowed="one of the two")
    moe = fields.pop("model.moe", model.is_moe)
    if moe != model.is_moe:
        kind = "a mixture of experts" if model.is_moe else "dense"
        raise _wrong(
            problem=f"names {id}, which is {kind}, and says the contrary", allowed="one of the two"
        )
    if any(k.startswith("model.") for k in fields):
        fields["model.like"] = fields.pop("model")


def _accelerator(notes: Notes):
    """The card, with the nearest memory where the catalogue lacks the one that was said; what it
    lacks is listed as ignored."""
    facts = notes.facts
    said = notes.said
    field = "cluster.accelerator"
    if "accelerator" not in facts:
        if "nvlink" in facts:
            notes.note(said["nvlink"], why="no accelerator is named")
        return
    id, why, lacking = choose_accelerator(*facts["accelerator"], facts.get("nvlink"))
    for error in lacking:
        notes.ignore(said["accelerator"], plain(str(error), 200))
    if id is None:
        return
    notes.fields[field] = id
    notes.note(", ".join(said[k] for k in ("accelerator", "nvlink") if k in said), field, id, why)
    if why:
        notes.assume(field, id, why)


def _racks(notes: Notes):
    """Devices of a count of racks, where the scale-up domain is one."""
    racks = notes.facts["racks"]
    field = "cluster.devices"
    id = notes.fields.get("cluster.accelerator")
    domain = catalogue.accelerator(id).scale_up_domain if id else 0
    if not id or domain <= catalogue.devices_per_node(id):
        return notes.ignore(notes.said["racks"], "how many devices a rack holds is not known")
    notes.set(field, racks * domain, notes.said["racks"], f"{racks:,} racks of {domain}")


def _nodes(notes: Notes):
    """Devices of a count of nodes."""
    nodes = notes.facts["nodes"]
    each = _per_node(notes.fields)
    field = "cluster.devices"
    devices = nodes * each
    given = notes.fields.setdefault(field, devices)
    if given != devices:
        raise _wrong(
            problem=f"gives {given:,} devices and {nodes:,} nodes of {each}", allowed="one count"
        )
    notes.note(notes.said["nodes"], field, devices, f"{nodes:,} nodes of {each}")
    if "cluster.devices_per_node" not in notes.fields:
        notes.assume(
            field,
            devices,
            f"{nodes:,} nodes with {each} devices each, as this accelerator's usual node has",
        )


def _hours(notes: Notes):
    """Devices of a budget of device-hours until the deadline, in whole nodes; where devices are
    said, or no deadline is, the hours set nothing."""
    said = notes.said["device_hours"]
    days = notes.fields.get("constraints.deadline_days")
    if "cluster.devices" in notes.fields:
        return notes.ignore(said, "device-hours: state days beside the devices")
    if not days:
        return notes.ignore(said, "device-hours do not say how many devices: add in how many days")
    each = _per_node(notes.fields)
    most = notes.facts["device_hours"] / (24 * days)
    devices = int(most // each) * each or max(1, int(most))
    why = f"as many as the hours pay for in {days:g} days, in whole nodes of {each}"
    notes.set("cluster.devices", devices, said, why)
    notes.assume("cluster.devices", devices, why)


def _network(notes: Notes):
    said = notes.said
    kind, rate, of = (notes.facts.get(k) for k in ("fabric", "rate", "rate_of"))
    if of and not rate:
        notes.ignore(said["rate_of"], "a rate is missing, such as 400 Gb/s per device")
    if not kind and not rate:
        return
    words = " ".join(said[k] for k in ("rate", "fabric", "rate_of") if k in said)
    found = choose_fabric(kind, rate, of or "port", _per_node(notes.fields))
    for k, v in found.items():
        notes.fields[f"cluster.{k}"] = v
        notes.note(words, f"cluster.{k}", v)
    if not found:
        notes.note(words, why="InfiniBand of the accelerator's usual node")
    if kind is None:
        notes.assume(
            "cluster.scale_out", found.get("scale_out"), "a rate without a network: InfiniBand"
        )


def _per_node(fields) -> int:
    """Devices of a node: as said, else of the accelerator's usual node."""
    id = fields.get("cluster.accelerator")
    usual = catalogue.devices_per_node(id) if id else 8
    return fields.get("cluster.devices_per_node") or usual
