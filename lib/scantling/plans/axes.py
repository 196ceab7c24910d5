"""The axes of a search in words: every axis of the coarse, the default and the wide space with its
values, and those that occur for one design."""

from numpy import broadcast_to, unique

from .enumerate import enumerate_plans
from .space import SPACES, Space, offered
from .words import NAMES

SHARDED_ONCE = (
    "; zero2 with one micro-batch a step alone (with more, its gradients are reduced m times or "
    "kept whole as in zero1), unless it is the stack's own or published at that size"
)
# field -> what it is
AXES = {
    "tp": "tensor-parallel ways",
    "cp": "context-parallel ways",
    "cp_type": "how cp exchanges keys and values",
    "pp": "pipeline stages",
    "vpp": "model parts a stage (interleaved)",
    "schedule": "pipeline schedule",
    "dp": "data-parallel ways",
    "micro_batch": "sequences a micro-batch",
    "ep": "expert-parallel ways (MoE)",
    "etp": "tensor-parallel ways of an expert (MoE)",
    "sp": "sequence parallelism beside tp",
    "sharding": "what data-parallel ranks share out",
    "shard_group": "ranks of a shard group (hsdp)",
    "recompute": "activations computed again",
    "offload": "state in host memory",
    "precision": "number format, where the design leaves it open",
}
# where a space leaves an axis open
OPEN = {
    "pp": "every depth to 128 that divides layers or layers + 2; powers of two where layers are "
    "odd",
    "vpp": "2 to 20, those that divide a stage",
    "ep": "divisors of the experts to 256",
    "precision": "the design's",
    "dp": "the largest divisor of the global batch that the devices allow, and above half of that "
    "the one with most factors of two",
}


def _values(field: str, s: Space) -> str:
    """The values of one axis in words."""
    said = {
        "sp": ["on" if v else "off" for v in s.sp],
        "etp": [v or "as tp" for v in s.etp],
        "shard_group": ["those of one scale-up domain" if "hsdp" in s.sharding else "—"],
        "dp": (),
    }
    words = " ".join(map(str, said.get(field) or getattr(s, field, ()))) or OPEN[field]
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
        {
            "field": f,
            "what": what,
            "values": _values(f, space),
        }
        for f, what in AXES.items()
    ]


def counted(resolved, phase) -> list:
    """For one phase of a design, under its pins and its stack: [{space, legal, axes: {field: values
    that occur}}], smallest space first."""
    out = []
    for name, space in SPACES.items():
        plan = enumerate_plans(
            resolved.model,
            phase,
            resolved.cluster,
            offered(space, resolved),
            phase.pins,
        )
        n = plan.tp.size
        axes = {}
        for field in AXES:
            if hasattr(plan, field):
                values = unique(broadcast_to(getattr(plan, field), n)).astype(int).tolist()
                axes[field] = [NAMES[field][v] for v in values] if field in NAMES else values
        out.append(
            {
                "space": name,
                "legal": int(n),
                "axes": axes,
            }
        )
    return out
