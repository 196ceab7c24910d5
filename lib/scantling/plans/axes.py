"""The axes of a search in words: every axis of the coarse, the default and the wide space with its
values, and those that occur for one design."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..catalogue.words import OFFLOADS, RECOMPUTES, SHARDINGS
from ..physics.pipeline import SCHEDULE_NAMES
from .enumerate import enumerate_plans
from .space import COARSE, DEFAULT, WIDE, offered

SPACES = {"coarse": COARSE, "default": DEFAULT, "wide": WIDE}
NAMED = {
    "sharding": SHARDINGS,
    "schedule": SCHEDULE_NAMES,
    "recompute": RECOMPUTES,
    "offload": OFFLOADS,
}


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis of the search: its field, what it is, values(space) in words."""

    field: str
    what: str
    values: object


def _list(values) -> str:
    return " ".join(str(v) for v in values)


def _depths(space) -> str:
    even = (
        "every depth to 128 that divides layers or layers + 2; powers of two where layers are odd"
    )
    return (
        _list(space.pp)
        if space.pp
        else even
        + ("; 1 to 16 and powers of two to 128 whatever the layers" if space.uneven else "")
    )


AXES = (
    Axis(field="tp", what="tensor-parallel ways", values=lambda s: _list(s.tp)),
    Axis(
        field="cp",
        what="context-parallel ways",
        values=lambda s: f"{_list(s.cp)}; at least {s.min_chunk:,} tokens of a sequence a rank",
    ),
    Axis(
        field="cp_type",
        what="how cp exchanges keys and values",
        values=lambda s: _list(s.cp_type) + ("" if len(s.cp_type) > 1 else ", or the stack's own"),
    ),
    Axis(field="pp", what="pipeline stages", values=_depths),
    Axis(
        field="vpp",
        what="model parts a stage (interleaved)",
        values=lambda s: _list(s.vpp) if s.vpp else "2 to 20, those that divide a stage",
    ),
    Axis(field="schedule", what="pipeline schedule", values=lambda s: _list(s.schedule)),
    Axis(
        field="dp",
        what="data-parallel ways",
        values=lambda s: (
            "the largest divisor of the global batch that the devices allow, and above "
            "half of that the one with most factors of two"
        ),
    ),
    Axis(
        field="micro_batch", what="sequences a micro-batch", values=lambda s: _list(s.micro_batch)
    ),
    Axis(
        field="ep",
        what="expert-parallel ways (MoE)",
        values=lambda s: _list(s.ep) if s.ep else "divisors of the experts to 256",
    ),
    Axis(
        field="etp",
        what="tensor-parallel ways of an expert (MoE)",
        values=lambda s: _list("as tp" if v == 0 else v for v in s.etp),
    ),
    Axis(
        field="sp",
        what="sequence parallelism beside tp",
        values=lambda s: _list("on" if v else "off" for v in s.sp),
    ),
    Axis(
        field="sharding",
        what="what data-parallel ranks share out",
        values=lambda s: (
            f"{_list(s.sharding)}"
            + (
                (
                    "; zero2 with one micro-batch a step alone (with more, its gradients "
                    "are reduced m times or kept whole as in zero1)"
                )
                if "zero2" in s.sharding
                else ""
            )
        ),
    ),
    Axis(
        field="shard_group",
        what="ranks of a shard group (hsdp)",
        values=lambda s: "those of one scale-up domain" if "hsdp" in s.sharding else "—",
    ),
    Axis(
        field="recompute",
        what="activations computed again",
        values=lambda s: (
            f"{_list(s.recompute)}; full for "
            f"{_list(f'{100 * x:g} %' for x in s.recompute_share)} of a stage's layers"
        ),
    ),
    Axis(field="offload", what="state in host memory", values=lambda s: _list(s.offload)),
    Axis(
        field="precision",
        what="number format, where the design leaves it open",
        values=lambda s: _list(s.precision) if s.precision else "the design's",
    ),
)


def described(name: str) -> list[dict]:
    """The axes of one space: [{field, what, values}]. Raises KeyError for a name that is not in
    SPACES."""
    return [dict(field=a.field, what=a.what, values=a.values(SPACES[name])) for a in AXES]


def counted(resolved, phase) -> list[dict]:
    """For one phase of a design, under its pins and its stack: [{space, legal, axes: {field: values
    that occur}}], smallest space first."""
    out = []
    for name, space in SPACES.items():
        plan = enumerate_plans(
            resolved.model,
            phase,
            resolved.cluster,
            offered(space, resolved.stack),
            phase.pins,
        )
        n = plan.tp.size
        axes = {}
        for a in AXES:
            if hasattr(plan, a.field):
                values = np.unique(np.broadcast_to(getattr(plan, a.field), n))
                axes[a.field] = [
                    NAMED[a.field][int(v)] if a.field in NAMED else int(v) for v in values
                ]
        out.append(dict(space=name, legal=int(n), axes=axes))
    return out
