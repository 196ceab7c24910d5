"""What words about a machine come to: the accelerator and the network of the catalogue."""

import re

from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.base.units import GB, GBIT


def _flat(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _is_of(row, family: str) -> bool:
    """Whether an accelerator belongs to a family as it is written."""
    names = [_flat(name) for name in (row.id, *row.aliases)]
    return bool(re.match(rf"{family}(?:[^a-z0-9]|$)", row.id)) or any(
        name.startswith(family) and not name[len(family) :][:1].isalpha() for name in names
    )


def choose_accelerator(
    family: str, memory: int | None, form: str | None, nvlink: bool | None
) -> tuple:
    """(catalogue id, why, what the catalogue lacks) of an accelerator by family, memory and form:
    the nearest memory stands in for one that it lacks, nothing for another family."""
    rows = catalogue.accelerators()
    field = "cluster.accelerator"
    of_family = fitting = [r for r in rows.values() if _is_of(r, family)]
    if not of_family:
        problem = "is not an accelerator of the catalogue"
        return (None, "", [DesignError(field, family, rows, problem=problem)])
    lacking = []
    sizes = {round(r.hbm_bytes / GB) for r in of_family}
    near = memory and min(sizes, key=lambda size: abs(size - memory))
    for asked, what, kept, instead in (
        (memory, f"{memory} GB", lambda r: _holds(r, memory), near),
        (form and not form.startswith(("hbm", "oam")), form, lambda r: _has_form(r, form), None),
        (
            nvlink is not None,
            f"with{'' if nvlink else 'out'} NVLink",
            lambda r: (catalogue.fabric(r.scale_up).kind != "host") == nvlink,
            None,
        ),
    ):
        found = [r for r in fitting if asked and kept(r)]
        if asked and not found:
            problem = "is not in the catalogue"
            lacking.append(
                DesignError(
                    field,
                    f"{family.upper()} {what}",
                    [f"{r.id} ({r.hbm_bytes / GB:.0f} GB)" for r in of_family],
                    instead,
                    problem=problem,
                )
            )
            found = [r for r in fitting if instead and _holds(r, instead)]
        fitting = found or fitting
    plain_name = [r for r in fitting if family in map(_flat, (r.id, *r.aliases))]
    usual = "the usual one of " + ", ".join(r.id for r in fitting) if len(fitting) > 1 else ""
    return (plain_name or fitting)[0].id, usual, lacking


def _has_form(row, form: str) -> bool:
    short = form.rstrip("0123456789")
    return short in row.id.rstrip("0123456789") or form in row.id or form in _flat(row.name)


def _holds(row, memory: int) -> bool:
    named = re.search(rf"\b{memory}\s?GB", row.name) is not None
    return abs(row.hbm_bytes / GB - memory) < 1 or named


def choose_fabric(kind: str | None, rate: float | None, of: str, per_node: int) -> dict:
    """Cluster fields of a network said in words: kind ("ib", "rocev2", "eth", or an id), rate
    [Gb/s] per "port", "device" or "node"."""
    if rate is None:
        return {} if kind == "ib" else {"scale_out": kind and catalogue.fabric(kind).id}
    port = rate / per_node if of == "node" else rate
    kind = kind or "ib"
    wanted = [
        f
        for f in catalogue.fabrics("scale-out").values()
        if f.id == kind or f.id.startswith(kind + "-")
    ]
    near = min(wanted, key=lambda f: abs(f.port_bytes_per_s / GBIT - port))
    if of == "port" and abs(near.port_bytes_per_s / GBIT - port) >= 1:
        return {"scale_out": {"like": near.id, "port_gbits_per_s": port}}
    fields = {"scale_out": near.id}
    if of != "port":
        fields["scale_out_gbytes_per_s_per_device"] = float(f"{port / 8:.6g}")
    return fields
