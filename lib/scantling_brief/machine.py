"""What words about a machine come to: the accelerator and the network of the catalogue."""

import re
from functools import partial
from math import floor
from typing import Any, NamedTuple

from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.base.units import GB, GBIT
from scantling.catalogue.hardware import Accelerator

from .fragments import RACK
from .notes import Notes
from .readers import RACKS, Chip

_FIELD = "cluster.accelerator"
_GIB = 2**30  # what tools print device memory in
ROUNDED = 0.03  # of the memory on the box, by which people round it: 96 GB of 94, 144 of 141


class Choice(NamedTuple):
    """A row of the catalogue, why it, and what the catalogue lacks of what was said."""

    id: str | None
    why: str
    lacking: list[DesignError]


def _flat(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _named(family: str, rows: list[Accelerator]) -> Accelerator | None:
    """The accelerator that a family alone names: an A100 is the one of 80 GB and SXM."""
    return next((row for row in rows if family in map(_flat, (row.id, *row.aliases))), None)


def _is_of(row: Accelerator, family: str) -> bool:
    """Whether an accelerator belongs to a family as it is written."""
    for name in (row.id, *row.aliases):
        parts = re.split(r"[^a-z0-9]+", name.lower())
        if family in ("".join(parts[:count]) for count in range(1, len(parts) + 1)):
            return True
    return False


def choose_accelerator(chip: Chip, nvlink: bool | None) -> Choice:
    """The accelerator of a family, memory and form: the nearest memory stands in for one that the
    catalogue lacks, nothing for another family."""
    rows = catalogue.accelerators()
    chip = chip._replace(family=RACKS.get(chip.family, chip.family))
    of_family = [row for row in rows.values() if _is_of(row, chip.family)]
    if not of_family:
        problem = "is not an accelerator of the catalogue"
        return Choice(None, "", [DesignError(_FIELD, chip.family, rows, problem=problem)])
    lacking: list[DesignError] = []
    fitting = of_family
    if chip.form and not chip.form.startswith(("hbm", "oam")):
        matches = [row for row in fitting if _has_form(row, chip.form)]
        if not matches:
            lacking.append(_lacking(chip.family, chip.form, of_family))
        fitting = matches or fitting
    if chip.memory_gb:
        memory = chip.memory_gb
        nearest = round(min((row.hbm_bytes / GB for row in fitting), key=partial(_apart, memory)))
        matches = [row for row in fitting if _has_memory(row, memory)]
        if not matches:
            matches = [row for row in fitting if _has_memory(row, nearest)]
            if _apart(memory, nearest) > ROUNDED * memory:
                lacking.append(_lacking(chip.family, f"{memory} GB", of_family, nearest))
        fitting = matches
    if nvlink is not None:
        matches = [row for row in fitting if _has_nvlink(row) == nvlink]
        if not matches:
            what = "with NVLink" if nvlink else "without NVLink"
            lacking.append(_lacking(chip.family, what, of_family))
        fitting = matches or fitting
    usual = _named(chip.family, of_family) or of_family[0]
    alike = [row for row in fitting if row.hbm_bytes == usual.hbm_bytes] or fitting
    why = "the usual one of " + ", ".join(row.id for row in fitting) if len(fitting) > 1 else ""
    row = _named(chip.family, fitting) or alike[0]
    refusal = row.refusal()
    if refusal:
        lacking.append(refusal)
    return Choice(row.id, why, lacking)


def _lacking(
    family: str, what: str, of_family: list[Accelerator], nearest: int | None = None
) -> DesignError:
    """That the catalogue has no row of a family with this."""
    choices = [f"{row.id} ({row.hbm_bytes / GB:.0f} GB)" for row in of_family]
    problem = "is not in the catalogue"
    return DesignError(_FIELD, f"{family.upper()} {what}", choices, nearest, problem=problem)


def _apart(one: float, other: float) -> float:
    return abs(one - other)


def _has_memory(row: Accelerator, memory_gb: int) -> bool:
    """Whether that is its memory: on the box, in its name, or as tools print what is left of it, in
    GB (192 of a B200, whose 180 are GiB) or GiB (46 of an A40 with ECC on)."""
    in_name = re.search(rf"\b{memory_gb}\s?GB", row.name) is not None
    on_box, usable = row.hbm_bytes / GB, row.hbm_usable_bytes
    reported = floor(usable / _GIB) <= memory_gb <= on_box or _apart(usable / GB, memory_gb) < 1
    return _apart(on_box, memory_gb) < 1 or in_name or reported


def _has_form(row: Accelerator, form: str) -> bool:
    """Whether an accelerator is of a form: the number of a rack is its devices, that of a module a
    generation."""
    if re.fullmatch(RACK, form):
        return any(form in name for name in (row.id, *row.aliases))
    short = form.rstrip("0123456789")
    return short in row.id.rstrip("0123456789") or form in row.id or form in _flat(row.name)


def _has_nvlink(row: Accelerator) -> bool:
    return catalogue.fabric(row.scale_up).kind != "host"


def choose_fabric(
    kind: str | None, rate: float | None, rate_of: str, per_node: int
) -> dict[str, Any]:
    """Cluster fields of a network said in words: kind ("ib", "rocev2", "eth", or an id), rate
    [Gb/s] per "port", "device" or "node"."""
    if rate is None:
        return {} if kind == "ib" else {"scale_out": kind and catalogue.fabric(kind).id}
    port = rate / per_node if rate_of == "node" else rate
    kind = kind or "ib"
    rows = [
        row
        for row in catalogue.fabrics("scale-out").values()
        if row.id == kind or row.id.startswith(kind + "-")
    ]
    nearest = min(rows, key=lambda row: abs(row.port_bytes_per_s / GBIT - port))
    if rate_of != "port":
        return {
            "scale_out": nearest.id,
            "scale_out_gbytes_per_s_per_device": float(f"{port / 8:.6g}"),
        }
    if abs(nearest.port_bytes_per_s / GBIT - port) >= 1:
        return {"scale_out": {"like": nearest.id, "port_gbits_per_s": port}}
    return {"scale_out": nearest.id}


def devices_of_node(notes: Notes) -> int | None:
    """Devices of a node: as said, else of the accelerator's usual node; None where it is not
    known."""
    stated: int | None = notes.fields.get("cluster.devices_per_node")
    if stated:
        return stated
    if "cluster.accelerator" in notes.as_given:
        return None
    id = notes.fields.get("cluster.accelerator")
    return catalogue.devices_per_node(id) if id else 8
