"""What the words on networks come to, and on machines beside the one that is planned."""

import re
from collections.abc import Mapping
from typing import Any

from scantling import catalogue
from scantling.base.units import GBIT
from scantling.endure.failures import rate_of_mtbf

from .decisive import NO_CHIP, near_chips
from .machine import choose_accelerator, choose_fabric, devices_of_node
from .notes import FACTS, Either, Notes
from .readers import Chip

_NO_NETWORK = "no network of the catalogue has this rate: which one is compared?"


def read_alternatives(notes: Notes) -> None:
    """What an or sets beside: rows of the catalogue in place of words."""
    either = [other for one in notes.either if (other := _of_field(notes, one)) is not None]
    facts = notes.facts
    if "rate_after" in facts:
        path, words = "cluster.scale_out_gbytes_per_s_per_device", notes.words["rate_after"]
        notes.set(path, facts["rate_before"], words, "of each device")
        either.append(Either(path, facts["rate_after"], words))
    if "then" in notes.facts:
        either.append(Either("job.method", notes.facts["then"], notes.words["then"]))
    notes.either[:] = either


def _of_field(notes: Notes, one: Either) -> Either | None:
    """Another value of a fact as one of the field that the fact comes to; None where it comes to
    none, and is asked about."""
    path, value, words = one
    if path == "accelerator" and isinstance(value, Chip):
        choice = choose_accelerator(value, notes.facts.get("nvlink"))
        if choice.id is not None:
            return Either("cluster.accelerator", choice.id, words)
        notes.ask(words, NO_CHIP, near_chips(value.text))
    elif path in ("fabric", "rate"):
        return _other_network(notes, path, words)
    elif path in ("nodes", "racks") and "cluster.devices" in notes.fields:
        each = notes.fields["cluster.devices"] // notes.facts[path]
        return Either("cluster.devices", value * each, words)
    elif path == "mtbf_s" and "cluster.devices" in notes.fields:
        rate = float(f"{rate_of_mtbf(value, notes.fields['cluster.devices']):.4g}")
        return Either("reliability.failures_per_1000_node_days", rate, words)
    elif path in FACTS:
        notes.ask(words, "which of the two holds?")
    else:
        return one
    return None


def _other_network(notes: Notes, path: str, words: str) -> Either | None:
    """A network that is compared; None for the rate of one whose kind is said beside it, and for
    one that the catalogue lacks."""
    other = {e.path: e.value for e in notes.either if e.words == words}
    if path == "rate" and "fabric" in other:
        return None
    kind = other.get("fabric", notes.facts.get("fabric"))
    network = _network_of(notes, kind, other.get("rate"))
    return (
        Either("cluster.scale_out", network, words)
        if _of_catalogue(notes, network, words)
        else None
    )


def _network_of(notes: Notes, kind: str | None, rate: float | None) -> Any:
    """The network of a kind and a rate [Gb/s] of its ports; InfiniBand alone is that of the
    accelerator's usual node."""
    if kind in (None, "ib") and rate is None:
        node = catalogue.node_for(notes.fields.get("cluster.accelerator", ""))
        usual = node.scale_out if node else ""
        return usual if usual.startswith("ib") else catalogue.fabric("ib").id
    return choose_fabric(kind, rate, "port", devices_of_node(notes) or 8)["scale_out"]


def _of_catalogue(notes: Notes, network: Any, words: str) -> bool:
    """Whether a network that is compared is one of the catalogue; another is asked about."""
    if not isinstance(network, str):
        notes.ask(words, _NO_NETWORK, ("cluster.scale_out",))
    return isinstance(network, str)


_OF_SITES = "between the sites, or of the network in each of them?"


def _said(words: Mapping[str, str], *facts: str) -> str:
    """The words that said some facts, each once."""
    return " ".join(dict.fromkeys(words[fact] for fact in facts if fact in words))


def read_network(notes: Notes) -> None:
    """The fabric between nodes and its rate."""
    words = notes.words
    kind = notes.facts.get("fabric")
    rate = notes.facts.get("rate")
    rate_of = notes.facts.get("rate_of")
    if rate_of and not rate:
        notes.ignore(words["rate_of"], "no rate is said of it, such as 400 Gb/s per device")
    if _is_no_network(notes, kind, rate) or kind and _is_of_node(notes, kind, rate):
        return
    if rate_of == "node" and "cluster.nics_per_node" in notes.fields:
        rate_of = "port"  # the node's are the ports
    if rate and not rate_of and (_is_of_instances(kind) or rate > _fastest_port()):
        rate_of = "node"  # no port is as fast
    sources = _said(words, "rate", "fabric", "rate_of")
    fields = choose_fabric(kind, rate, rate_of or "port", devices_of_node(notes) or 8)
    if any(either.path == "cluster.scale_out" for either in notes.either):
        fields = fields or {"scale_out": _network_of(notes, kind, rate)}
        _of_catalogue(notes, fields["scale_out"], sources)
    for name, value in fields.items():
        notes.fields[f"cluster.{name}"] = value
        notes.note(sources, f"cluster.{name}", value)
    if not fields:
        notes.note(sources, why="InfiniBand of the accelerator's usual node")
    if kind is None:
        why = "a rate without a network: InfiniBand"
        notes.assume("cluster.scale_out", fields.get("scale_out"), why)


def _is_no_network(notes: Notes, kind: str | None, rate: float | None) -> bool:
    """Whether no network is named, or words of one have to be asked about first."""
    words = notes.words
    if "no_ib" in notes.facts:
        if not kind or str(kind).startswith("ib"):
            notes.ask(words["no_ib"], "which network then (cluster.scale_out)?")
            return True
        notes.note(words["no_ib"], why="another network is named")
    if rate and not kind and notes.fields.get("cluster.sites", 1) > 1:
        notes.ask(words["rate"], _OF_SITES, ("cluster.site_gbytes_per_s", "cluster.scale_out"))
        return True
    if kind or not rate:
        return not kind
    if "rate_of" not in notes.facts and re.search(r"B(?:/s|ps)", words["rate"]):
        choices = ("cluster.scale_out_gbytes_per_s_per_device", "cluster.storage")
        notes.ask(words["rate"], "a rate of the network, or of the shared store?", choices)
        return True
    return False


def _is_of_node(notes: Notes, kind: str, rate: float | None) -> bool:
    """Whether a network is that of the node that is named, which is noted: of its kind, with no
    generation and no rate but that of all its ports."""
    id, words = notes.fields.get("cluster.node"), notes.words
    if not id or not catalogue.node(id).scale_out.startswith(kind.partition("-")[0]):
        return False
    if re.search(r"v\d" if rate else r"\d", words["fabric"]) or rate and not _has_rate(id, rate):
        return False
    sources = _said(words, "rate", "fabric")
    notes.note(sources, why=f"that of {id}")
    return True


def _has_rate(id: str, gbits_per_s: float) -> bool:
    """Whether a rate is that of a node's ports together."""
    node = catalogue.node(id)
    ports = node.nics * catalogue.fabric(node.scale_out).port_bytes_per_s / GBIT
    return abs(ports / gbits_per_s - 1) < 0.01


def _is_of_instances(kind: Any) -> bool:
    """Whether a network's rate is stated of a rented instance: Amazon's, whose cards speak SRD."""
    rows = catalogue.fabrics("scale-out").values()
    return any(row.transport == "srd" for row in rows if kind and row.id.startswith(str(kind)))


def _fastest_port() -> float:
    """The fastest port of a network between nodes. [Gb/s]"""
    return max(row.port_bytes_per_s for row in catalogue.fabrics("scale-out").values()) / GBIT
