"""The laws that a plan must keep, each with its reason. What a pipeline schedule asks for stands in
physics.pipeline.RULES."""

from collections.abc import Callable
from functools import cache
from inspect import getfullargspec

import numpy as np

from ..base.records import record
from ..base.words import table
from ..catalogue.models.patterns import widths
from ..physics.cases import HSDP, ULYSSES, ZERO3


@record
class Law:
    """One law: the axis after which it can be told, the field it concerns, what it says, whose it
    is."""

    stage: str
    field: str
    text: str
    source: str
    kept: Callable  # function(model, phase, cluster, **columns) -> bool column

    @property
    def needs(self) -> frozenset[str]:
        """The columns that it reads."""
        return _keywords(self.kept)


@cache
def _keywords(function: Callable) -> frozenset[str]:
    return frozenset(getfullargspec(function).kwonlyargs)


def _divides(a, b):
    return (b % np.maximum(a, 1)) == 0


KEPT = {
    "heads": lambda m, j, k, *, tp, **_: _divides(tp, m.heads),
    "kv_heads": lambda m, j, k, *, tp, **_: (
        _divides(tp, m.kv_heads) | (tp % max(m.kv_heads, 1) == 0)
        if m.attention != "mla"
        else tp > 0
    ),
    "state": lambda m, j, k, *, tp, **_: _divides(tp, widths(m, "split")),
    "scan": lambda m, j, k, *, tp, cp, **_: (cp == 1) | _divides(tp * cp, widths(m, "swapped")),
    "width": lambda m, j, k, *, tp, **_: (
        _divides(tp, m.ffn_hidden) & _divides(tp, m.shared_ffn_hidden)
    ),
    "sequence": lambda m, j, k, *, cp, **_: (cp == 1) | _divides(2 * cp, j.seq_len),
    "stage": lambda m, j, k, *, pp, **_: pp <= m.layers,
    "devices": lambda m, j, k, *, tp, cp, pp, **_: tp * cp * pp <= min(k.by_site),
    "sites": lambda m, j, k, *, dp, **_: (dp >= k.sites) & _divides(k.shares, dp),
    "batch": lambda m, j, k, *, dp, micro_batch, **_: _divides(dp * micro_batch, j.global_batch),
    "experts": lambda m, j, k, *, ep, **_: _divides(ep, max(m.experts, 1)),
    "expert_ranks": lambda m, j, k, *, tp, cp, dp, ep, etp, **_: _divides(ep * etp, dp * cp * tp),
    "expert_site": lambda m, j, k, *, tp, cp, dp, ep, etp, **_: _divides(
        ep * etp, k.in_smallest_site(dp) * cp * tp
    ),
    "expert_width": lambda m, j, k, *, etp, **_: (
        _divides(etp, max(m.expert_ffn_hidden, 1)) | (etp == 1)
    ),
    "chunks": lambda m, j, k, *, tp, cp, sp, **_: (
        (sp == 0) | _divides(tp * np.where(cp > 1, 2 * cp, 1), j.seq_len)
    ),
    "interleaved": lambda m, j, k, *, vpp, sharding, **_: (sharding < ZERO3) | (vpp == 1),
    "exchange": lambda m, j, k, *, tp, cp, cp_type, **_: (
        (cp_type != ULYSSES)
        | (cp == 1)
        | (_divides(tp * cp, m.heads) & ((m.attention == "mla") | _divides(tp * cp, m.kv_heads)))
    ),
    "expert_groups": lambda m, j, k, *, tp, ep, etp, sharding, shard_group, **_: (
        (sharding != HSDP) | (ep == 1) | _divides(ep * etp, shard_group * tp)
    ),
}
LAWS = tuple(Law(**row, kept=KEPT[id]) for id, row in table(__file__, "laws").items())


def of(stage: str) -> tuple:
    """The laws that can be told once an axis is laid out."""
    return tuple(law for law in LAWS if law.stage == stage)
