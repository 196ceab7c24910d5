"""What words about a machine come to: accelerators and their count, nodes, network."""

from __future__ import annotations

import re

from ... import catalogue
from ...base.errors import DesignError, plain
from ...base.units import GB, GBIT
from .grammar import Match, Notes, phrases


def _family(m: Match) -> tuple:
    """(family, memory in GB, form) of an accelerator as it is written."""
    more = (m["more"] or "").lower()
    memory = re.search(r"(\d+)\s?gb", more)
    form = re.search(phrases()["fragments"]["form"].lower(), more)
    return (
        re.sub(r"[\s-]", "", m["acc"].lower()),
        int(memory[1]) if memory else None,
        form[0].replace("-", "") if form else None,
    )


def accelerator(
    n: Notes,
    m: Match,
    _=None,
):
    n.fact("accelerator", _family(m), m)
    if m["box"]:
        n.fact("box", True, m)


def accelerators(
    n,
    m,
    _=None,
):
    accelerator(n, m)
    n.set("cluster.devices", m.devices("c"), m)


def nodes(
    n,
    m,
    _=None,
):
    n.fact("nodes", m.whole("n"), m)
    if m["acc"]:
        accelerator(n, m)
    if m["per"]:
        n.set("cluster.devices_per_node", m.whole("per"), m)


def per_node(
    n,
    m,
    _=None,
):
    n.set("cluster.devices_per_node", m.whole("per"), m)
    accelerator(n, m)


def _groups(
    n,
    m,
    field,
    value,
):
    n.set(field, value, m)
    if m["acc"]:
        accelerator(n, m)
    n.set("cluster.devices", m.whole("n") * m.devices("c"), m)


def sites(
    n,
    m,
    _=None,
):
    _groups(
        n,
        m,
        "cluster.sites",
        m.whole("n"),
    )


def pods(
    n,
    m,
    _=None,
):
    _groups(
        n,
        m,
        "cluster.pod_devices",
        m.devices("c"),
    )


def nvlink(
    n,
    m,
    value,
):
    n.fact("nvlink", value, m)


def rdma(
    n,
    m,
    _=None,
):
    n.fact("rdma", True, m)


def link_rate(
    n,
    m,
    _=None,
):
    raise DesignError(
        "text",
        problem=f"cannot use '{plain(m.said, 60)}'",
        allowed=(
            "the catalogue's link, or in the file accelerator: {like: id, "
            "link_gbytes_per_s: one direction}"
        ),
    )


def fabric(
    n,
    m,
    kind,
):
    """A network by kind; InfiniBand and its generation may be said apart."""
    said = n.facts.get("fabric", ("",))[0]
    if "ib" in (said, kind) and kind.startswith("ib") and said.startswith("ib"):
        n.facts.pop("fabric")
        kind = max(said, kind, key=len)
    n.fact("fabric", kind, m)


def infiniband(
    n,
    m,
    _=None,
):
    fabric(n, m, "ib-" + (m["g"] or m["h"]).lower())


def efa(
    n,
    m,
    _=None,
):
    fabric(n, m, "efa-" + (m["v"] or "v2").lower())


def network_at(
    n,
    m,
    _=None,
):
    fabric(n, m, "ib" if m["ib"] else "rocev2" if m["roce"] else "eth")
    n.fact("rate", float(m["r"]), m)


def rate(
    n,
    m,
    _=None,
):
    """A rate in Gb/s; lower-case gb/s leaves open whether bits or bytes are meant."""
    unit, said = m["u"], m["r"]
    if unit in ("gb/s", "tb/s"):
        asked = f"{m.said}: bits (Gb/s) or bytes (GB/s)?"
        n.clashes.append(("network rate", f"{said} Gb/s", f"{said} GB/s", asked))
    bits = float(said) * (8 if "B" in unit else 1) * (1000 if unit[0] in "Tt" else 1)
    n.fact("rate", bits, m)
    if m["of"]:
        rate_of(n, m)


def rate_of(
    n,
    m,
    _=None,
):
    """What a rate is of: a node, a port or a device."""
    kinds = {
        "node": "node",
        "host": "node",
        "server": "node",
    } | dict.fromkeys(("nic", "port", "link", "rail"), "port")
    n.fact("rate_of", kinds.get(m["of"].lower(), "device"), m)


def total_and_active(
    n,
    m,
    _=None,
):
    n.set("model.size", m.num("p"), m)
    n.set("model.active", m.num("a"), m)


ACTIONS = {
    act.__name__: act
    for act in (
        *(accelerator, accelerators, nodes, per_node, sites, pods, nvlink, rdma, link_rate),
        *(fabric, infiniband, efa, network_at, rate, rate_of, total_and_active),
    )
}


def _flat(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _is_of(row, family: str) -> bool:
    """Whether an accelerator belongs to a family as it is written."""
    names = [_flat(name) for name in (row.id, *row.aliases)]
    return bool(re.match(rf"{family}(?:[^a-z0-9]|$)", row.id)) or any(
        name.startswith(family) and not name[len(family) :][:1].isalpha() for name in names
    )


def choose_accelerator(
    family: str,
    memory: int | None,
    form: str | None,
    nvlink: bool | None,
) -> tuple[str, str]:
    """(catalogue id, why) of an accelerator by family, memory and form. Raises DesignError where
    the catalogue has no such card."""
    rows = list(catalogue.accelerators().values())
    of_family = [r for r in rows if _is_of(r, family)]
    if not of_family:
        raise DesignError(
            "cluster.accelerator",
            family,
            [r.id for r in rows],
            problem="is not an accelerator of the catalogue",
        )
    fitting = [r for r in of_family if memory is None or _holds(r, memory)]
    if not fitting:
        sizes = sorted({round(r.hbm_bytes / GB) for r in of_family})
        raise DesignError(
            "cluster.accelerator",
            f"{family.upper()} {memory} GB",
            f"{family.upper()} with " + ", ".join(map(str, sizes)) + " GB",
            min(sizes, key=lambda s: abs(s - memory)),
            problem="is not in the catalogue",
        )
    asked = []  # (what, whether a row has it)
    if form and not form.startswith(("hbm", "oam")):
        asked.append((form, lambda r: _has_form(r, form)))
    if nvlink is not None:
        link = "nvlink" if nvlink else "pcie"
        asked.append((f"with{'' if nvlink else 'out'} NVLink", lambda r: link in r.scale_up))
    for what, has in asked:
        fitting = [r for r in fitting if has(r)]
        if not fitting:
            raise DesignError(
                "cluster.accelerator",
                f"{family.upper()} {what}",
                [r.id for r in of_family],
                problem="is not in the catalogue",
            )
    plain_name = [r for r in fitting if family in map(_flat, (r.id, *r.aliases))]
    usual = (plain_name or fitting)[0].id
    several = len(fitting) > 1
    return usual, "the usual one of " + ", ".join(r.id for r in fitting) if several else ""


def _has_form(row, form: str) -> bool:
    short = form.rstrip("0123456789")
    return short in row.id.rstrip("0123456789") or form in row.id or form in _flat(row.name)


def _holds(row, memory: int) -> bool:
    named = re.search(rf"\b{memory}\s?GB", row.name) is not None
    return abs(row.hbm_bytes / GB - memory) < 1 or named


def choose_fabric(
    kind: str | None,
    rate: tuple | None,
    per_node: int,
) -> dict:
    """Cluster fields of a network said in words: kind ("ib", "rocev2", "eth", or an id), rate
    (Gb/s, per "port", "device" or "node")."""
    if rate is None:
        usual = {
            "rocev2": "rocev2-400",
            "eth": "eth-100",
        }.get(kind, kind)
        return {} if kind == "ib" else {"scale_out": usual}
    bits, of = rate
    port = bits / per_node if of == "node" else bits
    family = f"{kind or 'ib'}-" if kind in ("ib", "rocev2", "eth", None) else "\0"
    wanted = [
        f
        for f in catalogue.fabrics("scale-out").values()
        if f.id == kind or f.id.startswith(family)
    ]

    def off(f):
        return abs(f.port_bytes_per_s / GBIT - port)

    exact = [f for f in wanted if off(f) < 1]
    near = exact[0] if exact else min(wanted, key=off)
    as_it_is = exact or of != "port"
    fields = {
        "scale_out": near.id
        if as_it_is
        else {
            "like": near.id,
            "port_gbits_per_s": port,
        }
    }
    if of in ("device", "node"):
        fields["scale_out_gbytes_per_s_per_device"] = float(f"{port / 8:.6g}")
    return fields
