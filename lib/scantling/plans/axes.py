"""The axes of a search in words: every axis of the coarse, the default and the wide space with its
values, and those that occur for one design."""

from typing import Any

import numpy as np

from ..base.records import record
from ..catalogue.words import Sharding
from ..design.resolved import Phase, Resolved
from ..physics.cases import Plan
from .enumerate import enumerate_plans
from .plan_names import CODED
from .space import DEEPEST, EVERY_DEPTH, MOST_CHUNKS, MOST_EXPERT_RANKS, SPACES, Space, offered


@record
class SearchAxis:
    """One axis of a search: the field of a plan, what it is, and what it takes where a space leaves
    it open."""

    field: str
    what: str
    open: str = ""


AXES = (
    SearchAxis(field="tp", what="tensor-parallel ways"),
    SearchAxis(field="cp", what="context-parallel ways"),
    SearchAxis(field="cp_type", what="how cp exchanges keys and values"),
    SearchAxis(
        field="pp",
        what="pipeline stages",
        open=f"every depth to {DEEPEST} that divides layers or layers + 2; powers of two where "
        "layers are odd",
    ),
    SearchAxis(
        field="vpp",
        what="model parts a stage (interleaved)",
        open=f"2 to {MOST_CHUNKS}, those that divide a stage",
    ),
    SearchAxis(field="schedule", what="pipeline schedule"),
    SearchAxis(
        field="dp",
        what="data-parallel ways",
        open="the largest divisor of the global batch that the devices allow, and above half of "
        "that the one with most factors of two",
    ),
    SearchAxis(field="micro_batch", what="sequences a micro-batch"),
    SearchAxis(
        field="ep",
        what="expert-parallel ways (MoE)",
        open=f"divisors of the experts to {MOST_EXPERT_RANKS}",
    ),
    SearchAxis(field="etp", what="tensor-parallel ways of an expert (MoE)"),
    SearchAxis(field="sp", what="sequence parallelism beside tp"),
    SearchAxis(field="sharding", what="what data-parallel ranks share out"),
    SearchAxis(field="shard_group", what="ranks of a shard group (hsdp)"),
    SearchAxis(field="recompute", what="activations computed again"),
    SearchAxis(field="offload", what="state in host memory"),
    SearchAxis(
        field="precision",
        what="number format, where the design leaves it open",
        open="the design's",
    ),
)


def _values(axis: SearchAxis, space: Space) -> str:
    """The values of one axis in words."""
    field = axis.field
    if field == "sp":
        return " ".join("on" if value else "off" for value in space.sp)
    if field == "etp":
        return " ".join(str(value or "as tp") for value in space.etp)
    if field == "shard_group":
        hybrid = Sharding.HSDP in space.sharding
        return "those of one scale-up domain" if hybrid else "—"
    values = vars(space).get(field) or ()
    words = " ".join(str(value) for value in values) or axis.open
    if field == "cp":
        return f"{words}; at least {space.min_chunk:,} tokens of a sequence a rank"
    if field == "cp_type" and len(space.cp_type) == 1:
        return f"{words}, or the stack's own"
    if field == "pp" and space.uneven:
        return f"{words}; 1 to {EVERY_DEPTH} and powers of two to {DEEPEST} whatever the layers"
    if field == "recompute":
        shares = " ".join(f"{100 * share:g} %" for share in space.recompute_share)
        return f"{words}; full for {shares} of a stage's layers"
    return words


def described(name: str) -> list[dict[str, str]]:
    """The axes of one space: [{field, what, values}]. Raises KeyError for a name that is not in
    SPACES."""
    space = SPACES[name]
    return [
        {"field": axis.field, "what": axis.what, "values": _values(axis, space)} for axis in AXES
    ]


def counted(resolved: Resolved, phase: Phase) -> list[dict[str, Any]]:
    """For one phase of a design, under its pins and its stack: [{space, legal, axes: {field: values
    that occur}}], smallest space first."""
    rows = []
    for name, space in SPACES.items():
        plan = enumerate_plans(
            resolved.model, phase, resolved.cluster, offered(space, resolved), phase.pins
        )
        n = np.size(plan.tp)
        axes = {
            axis.field: _occurring(plan, axis.field, n) for axis in AXES if axis.field in vars(plan)
        }
        rows.append({"space": name, "legal": n, "axes": axes})
    return rows


def _occurring(plan: Plan, field: str, n: int) -> list[Any]:
    """The values of a field that occur in columns of n plans, words instead of codes."""
    column = np.broadcast_to(vars(plan)[field], n)
    values = np.unique(column).astype(int).tolist()
    return [CODED[field][value] for value in values] if field in CODED else values
