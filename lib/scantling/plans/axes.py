"""The axes of a search in words: every axis of the coarse, the default and the wide space with its
values, and those that occur for one design."""

import numpy as np

from ..base.words import table
from .enumerate import enumerate_plans
from .space import SPACES, Space, offered
from .words import NAMES

SHARDED_ONCE = (
    "; zero2 with one micro-batch a step alone (with more, its gradients are reduced m times or "
    "kept whole as in zero1), unless it is the stack's own or published at that size"
)
AXES = table(__file__, "axes")


def _values(field: str, s: Space) -> str:
    """The values of one axis in words."""
    said = {
        "sp": ["on" if v else "off" for v in s.sp],
        "etp": [v or "as tp" for v in s.etp],
        "shard_group": ["those of one scale-up domain" if "hsdp" in s.sharding else "—"],
        "dp": (),
    }
    words = " ".join(map(str, said.get(field) or getattr(s, field, ()))) or AXES[field]["open"]
    shares = " ".join(f"{100 * x:g} %" for x in s.recompute_share)
    more = {
        "cp": f"; at least {s.min_chunk:,} tokens of a sequence a rank",
        "cp_type": ", or the stack's own" if len(s.cp_type) == 1 else "",
        "pp": "; 1 to 16 and powers of two to 128 whatever the layers" if s.uneven else "",
        "sharding": SHARDED_ONCE if "zero2" in s.sharding else "",
        "recompute": f"; full for {shares} of a stage's layers",
    }
    return words + more.get(field, "")


def described(name: str) -> list:
    """The axes of one space: [{field, what, values}]. Raises KeyError for a name that is not in
    SPACES."""
    space = SPACES[name]
    return [
        {"field": f, "what": axis["what"], "values": _values(f, space)} for f, axis in AXES.items()
    ]


def counted(resolved, phase) -> list:
    """For one phase of a design, under its pins and its stack: [{space, legal, axes: {field: values
    that occur}}], smallest space first."""
    out = []
    for name, space in SPACES.items():
        plan = enumerate_plans(
            resolved.model, phase, resolved.cluster, offered(space, resolved), phase.pins
        )
        n = plan.tp.size
        axes = {}
        for field in AXES:
            if hasattr(plan, field):
                values = np.unique(np.broadcast_to(getattr(plan, field), n)).astype(int).tolist()
                axes[field] = [NAMES[field][v] for v in values] if field in NAMES else values
        out.append({"space": name, "legal": int(n), "axes": axes})
    return out
