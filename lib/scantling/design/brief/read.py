"""From a line of text to the fields of a design: what was read, from which words, and what those
words were taken to mean."""

from __future__ import annotations

from dataclasses import dataclass

from ... import catalogue
from ...base.errors import DesignError, plain
from ...base.records import Assumed
from ...catalogue.models.entries import entry
from ...catalogue.models.shape import parameters
from .grammar import Notes, Read, scan
from .machine import ACTIONS, choose_accelerator, choose_fabric

LONGEST = 5000


@dataclass(
    frozen=True,
    kw_only=True,
)
class Brief:
    """Fields by dotted path, the words each came from, and the readings that were a choice."""

    fields: dict
    read: tuple[Read, ...]
    assumed: tuple[Assumed, ...]


def read_brief(text: str) -> Brief:
    """The plan that `text` states, such as "175B MoE, 96 layers, 1024x A100 80GB, 200Gb/s IB, 1T
    tokens in 30 days".

    Every word has to be used by a rule or be one of the listed words without meaning; what is left
    over is an error that names it, so nothing
    is dropped silently. K, M, B, T scale numbers (K is 1,024 for sequence lengths), Gb/s are bits
    and GB/s bytes, a month has 30 days.
    Raises DesignError for words it cannot use, for two values of one thing, and for hardware that
    the catalogue does not have.
    """
    if len(text) > LONGEST:
        raise DesignError(
            "text",
            allowed=f"at most {LONGEST:,} characters",
            problem=f"has {len(text):,} characters",
        )
    if not text.strip():
        raise DesignError(
            "text",
            allowed=(
                "the plan in words, such as 175B MoE, 96 layers, 1024x A100 80GB, 1T tokens "
                "in 30 days"
            ),
            problem="is empty",
        )
    notes, unused = scan(text, ACTIONS)
    if unused:
        words = ", ".join(f"'{plain(w, 40)}'" for w in unused[:12]) + (
            f" and {len(unused) - 12} more" if len(unused) > 12 else ""
        )
        raise DesignError(
            "text",
            problem=f"cannot use {words}",
            allowed="leave them out, put them another way, or write them into the design file",
        )
    if not notes.read and not notes.facts:
        raise DesignError(
            "text",
            text,
            problem="holds nothing about a plan",
            allowed="such as 175B MoE, 1024x A100 80GB, 1T tokens in 30 days",
        )
    if notes.clashes:
        path, one, two, said = notes.clashes[0]
        raise DesignError(
            "text",
            problem=(
                f"gives {path} twice: {plain(str(one), 40)} and {plain(str(two), 40)} "
                f"('{plain(said, 60)}')"
            ),
            allowed="one value",
        )
    return _gather(notes)


def _gather(notes: Notes) -> Brief:
    fields, facts, read, assumed = dict(notes.fields), notes.facts, list(notes.read), []
    if isinstance(fields.get("model"), str):
        _named(fields)
    if fields.get("model.moe") is False:
        del fields["model.moe"]
        if any(k in fields for k in ("model.experts", "model.top_k", "model.active")):
            raise DesignError(
                "text",
                problem="says dense and gives experts",
                allowed="one of the two",
            )
    elif "model.like" not in fields and any(k in fields for k in ("model.experts", "model.active")):
        fields["model.moe"] = True
    _machine(
        fields,
        facts,
        read,
        assumed,
    )
    return Brief(
        fields=fields,
        read=tuple(read),
        assumed=tuple(assumed),
    )


def _named(fields):
    """A catalogue model that the text also describes: sizes have to agree, other dimensions replace
    the row's."""

    id = fields["model"]
    model = entry(id).model
    counted = parameters(model)
    for name, real in (("size", counted.total), ("active", counted.active)):
        said = fields.pop(f"model.{name}", None)
        if said is not None and min(abs(said / n - 1) for n in (real, counted.active)) > 0.08:
            raise DesignError(
                "text",
                problem=(
                    f"names {id}, which has {real / 1e9:.4g}B "
                    f"{'active ' if name == 'active' else ''}parameters, and says "
                    f"{said / 1e9:g}B"
                ),
                allowed="one of the two",
            )
    moe = fields.pop("model.moe", None)
    if moe is not None and moe != model.is_moe:
        raise DesignError(
            "text",
            problem=(
                f"names {id}, which is "
                f"{'a mixture of experts' if model.is_moe else 'dense'}, and says the "
                f"contrary"
            ),
            allowed="one of the two",
        )
    if any(k.startswith("model.") for k in fields):
        fields["model.like"] = fields.pop("model")


def _machine(
    fields,
    facts,
    read,
    assumed,
):
    """Fields that several words make up together: accelerator, count of devices, network."""
    _accelerator(
        fields,
        facts,
        read,
        assumed,
    )
    if "nodes" in facts:
        _nodes(
            fields,
            *facts["nodes"],
            read,
            assumed,
        )
    if "fabric" in facts or "rate" in facts:
        _network(
            fields,
            facts,
            read,
            assumed,
        )
    if "rate_of" in facts and "rate" not in facts:
        raise DesignError(
            "text",
            problem=f"cannot use '{plain(facts['rate_of'][1], 40)}' without a rate",
            allowed="a rate such as 400 Gb/s per device",
        )
    if "rdma" in facts:
        why = "the fabric does RDMA; there is no field for it"
        read.append(
            Read(
                facts["rdma"][1],
                "",
                None,
                why,
            )
        )


def _accelerator(
    fields,
    facts,
    read,
    assumed,
):
    linked, link_said = facts.get("nvlink", (None, ""))
    if "accelerator" not in facts:
        if link_said:
            read.append(
                Read(
                    link_said,
                    "",
                    None,
                    "no accelerator is named",
                )
            )
        return
    (family, memory, form), said = facts["accelerator"]
    id, why = choose_accelerator(
        family,
        memory,
        form,
        linked,
    )
    fields["cluster.accelerator"] = id
    said = ", ".join(filter(None, (said, link_said)))
    read.append(
        Read(
            said,
            "cluster.accelerator",
            id,
            why,
        )
    )
    if why:
        assumed.append(Assumed("cluster.accelerator", id, why))


def _nodes(
    fields,
    nodes,
    said,
    read,
    assumed,
):
    each = _per_node(fields)
    devices = nodes * each
    given = fields.setdefault("cluster.devices", devices)
    if given != devices:
        raise DesignError(
            "text",
            problem=f"gives {given:,} devices and {nodes:,} nodes of {each}",
            allowed="one count",
        )
    read.append(
        Read(
            said,
            "cluster.devices",
            devices,
            f"{nodes:,} nodes of {each}",
        )
    )
    if "cluster.devices_per_node" not in fields:
        why = f"{nodes:,} nodes with {each} devices each, as this accelerator's usual node has"
        assumed.append(Assumed("cluster.devices", devices, why))


def _network(
    fields,
    facts,
    read,
    assumed,
):
    kind, rate, of = (facts.get(k, (None, ""))[0] for k in ("fabric", "rate", "rate_of"))
    said = " ".join(facts[k][1] for k in ("rate", "fabric", "rate_of") if k in facts)
    found = choose_fabric(kind, rate and (rate, of or "port"), _per_node(fields))
    for k, v in found.items():
        fields[f"cluster.{k}"] = v
        read.append(Read(said, f"cluster.{k}", v))
    if not found:
        read.append(
            Read(
                said,
                "",
                None,
                "InfiniBand of the accelerator's usual node",
            )
        )
    if kind is None:
        why = "a rate without a network: InfiniBand"
        assumed.append(Assumed("cluster.scale_out", found.get("scale_out"), why))


def _per_node(fields) -> int:
    """Devices of a node: as said, else of the accelerator's usual node."""
    id = fields.get("cluster.accelerator")
    usual = catalogue.devices_per_node(id) if id else 8
    return fields.get("cluster.devices_per_node") or usual
