"""The laws that a plan must keep: each a function of columns of plans, with what it says and whose
it is. What a pipeline schedule asks for stands in physics.pipeline.RULES."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache, reduce

import numpy as np

from ..base.columns import Array, Column
from ..base.records import Lines, record
from ..catalogue.models.patterns import widths
from ..catalogue.models.shape import Model
from ..design.cluster import Cluster, in_smallest_site
from ..design.resolved import Phase
from ..physics.cases import HSDP, ULYSSES

Columns = Mapping[str, Array]  # fields of plans by name


class Stage(StrEnum):
    """The axes of an enumeration after which laws can be told."""

    DEGREES = "degrees"
    BATCH = "batch"
    EXPERTS = "experts"
    SHARD_GROUP = "shard_group"
    SEQUENCE = "sequence"
    EXCHANGE = "exchange"


@record
class Setting:
    """What plans have to suit: one model and cluster, or those of each row of a table."""

    layers: Column
    heads: Column
    kv_heads: Column
    latent: Column  # bool: attention keeps one latent vector a token
    state_split: Column  # what tp divides of mixers with a state; 0: there are none
    state_swapped: Column  # what tp x cp divides of them
    ffn_hidden: Column
    shared_ffn_hidden: Column
    experts: Column  # 0: dense
    expert_ffn_hidden: Column
    seq_len: Column  # tokens
    global_batch: Column  # sequences
    devices: Column
    sites: Column
    smallest_site: Column  # devices
    shares: Column  # what replicas are a multiple of


def setting_of(model: Model, phase: Phase, cluster: Cluster) -> Setting:
    """What the plans of a phase have to suit."""
    return Setting(
        layers=model.layers,
        heads=model.heads,
        kv_heads=model.kv_heads,
        latent=model.attention == "mla",
        state_split=widths(model, "split"),
        state_swapped=widths(model, "swapped"),
        ffn_hidden=model.ffn_hidden,
        shared_ffn_hidden=model.shared_ffn_hidden,
        experts=model.experts,
        expert_ffn_hidden=model.expert_ffn_hidden,
        seq_len=phase.seq_len,
        global_batch=phase.global_batch,
        devices=cluster.devices,
        sites=cluster.sites,
        smallest_site=min(cluster.by_site),
        shares=cluster.shares,
    )


Test = Callable[[Columns, Setting], Array]  # true where plans keep the law


@record
class Law:
    """One law: the axis after which it can be told, the field it concerns, the columns that it
    reads, what it says, whose it is."""

    stage: Stage
    field: str
    reads: frozenset[str]
    text: str
    source: str
    holds: Test


_LAWS: list[Law] = []  # in the order in which they are told


def _law(stage: Stage, field: str, reads: Lines, text: str, source: str) -> Callable[[Test], Test]:
    """Enter a function as the law that says `text`."""

    def enter(holds: Test) -> Test:
        _LAWS.append(
            Law(
                stage=stage,
                field=field,
                reads=frozenset(reads),
                text=text,
                source=source,
                holds=holds,
            )
        )
        return holds

    return enter


def _divides(part: Column, whole: Column) -> Array:
    return np.asarray(whole % np.maximum(part, 1) == 0)


def either(*masks: Column | bool) -> Array:
    """Where one of several conditions holds."""
    return np.asarray(reduce(np.logical_or, masks))


def _both(*masks: Column) -> Array:
    """Where all of several conditions hold."""
    return np.asarray(reduce(np.logical_and, masks))


@_law(
    Stage.DEGREES,
    "tp",
    ("tp",),
    "tp divides the attention heads",
    "Megatron-LM asserts num_attention_heads % tp == 0",
)
def heads(c: Columns, s: Setting) -> Array:
    return _divides(c["tp"], s.heads)


@_law(
    Stage.DEGREES,
    "tp",
    ("tp",),
    "tp divides the key-value heads or is a multiple of them",
    "Megatron-LM replicates key-value heads only by whole copies",
)
def kv_heads(c: Columns, s: Setting) -> Array:
    return either(s.latent, _divides(c["tp"], s.kv_heads), _divides(s.kv_heads, c["tp"]))


@_law(
    Stage.DEGREES,
    "tp",
    ("tp",),
    "tp divides the heads and the groups of mixers with a state",
    "Megatron-LM asserts nheads % tp == 0 and ngroups % tp == 0 (ssm/mamba_mixer.py)",
)
def state(c: Columns, s: Setting) -> Array:
    return _divides(c["tp"], s.state_split)


@_law(
    Stage.DEGREES,
    "cp",
    ("tp", "cp"),
    "tp x cp divides the heads of mixers with a state",
    "a scan sees the whole sequence of its heads (Megatron-LM, ssm/mamba_context_parallel.py)",
)
def scan(c: Columns, s: Setting) -> Array:
    return either(c["cp"] == 1, _divides(c["tp"] * c["cp"], s.state_swapped))


@_law(
    Stage.DEGREES,
    "tp",
    ("tp",),
    "tp divides the width of the feed-forward layer",
    "column-parallel linear layers split evenly (Megatron-LM, torchtitan)",
)
def width(c: Columns, s: Setting) -> Array:
    return _both(_divides(c["tp"], s.ffn_hidden), _divides(c["tp"], s.shared_ffn_hidden))


@_law(
    Stage.DEGREES,
    "cp",
    ("cp",),
    "2 x cp divides the sequence",
    "causal load balance gives a rank two chunks (Megatron-Core, Llama 3 section 3.3.2)",
)
def sequence(c: Columns, s: Setting) -> Array:
    return either(c["cp"] == 1, _divides(2 * c["cp"], s.seq_len))


@_law(
    Stage.DEGREES,
    "pp",
    ("pp",),
    "every stage holds a layer",
    "Megatron-LM and torchtitan refuse empty stages",
)
def stage(c: Columns, s: Setting) -> Array:
    return np.asarray(c["pp"] <= s.layers)


@_law(
    Stage.DEGREES,
    "tp",
    ("tp", "cp", "pp"),
    "tp x cp x pp is at most the devices of a site",
    "one rank a device, and a replica stands inside one site",
)
def devices(c: Columns, s: Setting) -> Array:
    return np.asarray(c["tp"] * c["cp"] * c["pp"] <= s.smallest_site)


@_law(
    Stage.BATCH,
    "dp",
    ("dp",),
    "every site holds a replica, and sites of one size hold equally many",
    "between sites go gradients or weights, nothing of a replica",
)
def sites(c: Columns, s: Setting) -> Array:
    return _both(c["dp"] >= s.sites, _divides(s.shares, c["dp"]))


@_law(
    Stage.BATCH,
    "micro_batch",
    ("dp", "micro_batch"),
    "dp x micro_batch divides the global batch",
    "every step must see the whole batch (convergence)",
)
def batch(c: Columns, s: Setting) -> Array:
    return _divides(c["dp"] * c["micro_batch"], s.global_batch)


@_law(
    Stage.EXPERTS,
    "ep",
    ("ep",),
    "ep divides the experts",
    "each rank holds whole experts (Megatron-Core)",
)
def experts(c: Columns, s: Setting) -> Array:
    return _divides(c["ep"], np.maximum(s.experts, 1))


@_law(
    Stage.EXPERTS,
    "ep",
    ("tp", "cp", "dp", "ep", "etp"),
    "ep x etp divides dp x cp x tp",
    "expert groups fold into the other ranks (Liu et al. 2025)",
)
def expert_ranks(c: Columns, s: Setting) -> Array:
    return _divides(c["ep"] * c["etp"], c["dp"] * c["cp"] * c["tp"])


@_law(
    Stage.EXPERTS,
    "ep",
    ("tp", "cp", "dp", "ep", "etp"),
    "ep x etp divides the dp x cp x tp ranks of one site",
    "no token waits for the way between sites",
)
def expert_site(c: Columns, s: Setting) -> Array:
    replicas = in_smallest_site(c["dp"], s.smallest_site, s.devices)
    return _divides(c["ep"] * c["etp"], replicas * c["cp"] * c["tp"])


@_law(Stage.EXPERTS, "etp", ("etp",), "etp divides the expert width", "column-parallel experts")
def expert_width(c: Columns, s: Setting) -> Array:
    return either(_divides(c["etp"], np.maximum(s.expert_ffn_hidden, 1)), c["etp"] == 1)


@_law(
    Stage.SEQUENCE,
    "sp",
    ("tp", "cp", "sp"),
    "with sequence parallelism, tp (with cp: tp x 2 cp) divides the sequence",
    "torchtitan's trainer asks for it; Megatron-Core splits a rank's tokens over tp",
)
def chunks(c: Columns, s: Setting) -> Array:
    parts = c["tp"] * np.where(c["cp"] > 1, 2 * c["cp"], 1)
    return either(c["sp"] == 0, _divides(parts, s.seq_len))


@_law(
    Stage.EXCHANGE,
    "cp",
    ("tp", "cp", "cp_type"),
    "with ulysses, tp x cp divides the heads and the key-value heads",
    "Transformer Engine asks both to be multiples of cp after tp (attention by all-to-all)",
)
def exchange(c: Columns, s: Setting) -> Array:
    kv_heads = np.where(s.latent, s.heads, s.kv_heads)
    return exchange_splits_heads(s.heads, kv_heads, tp=c["tp"], cp=c["cp"], cp_type=c["cp_type"])


def exchange_splits_heads(
    heads: Column, kv_heads: Column, *, tp: Column, cp: Column, cp_type: Column
) -> Array:
    """Whether an exchange of keys and values (a code of CP_TYPES) has whole heads to deal out;
    kv_heads are the heads themselves under latent attention."""
    whole = _both(_divides(tp * cp, heads), _divides(tp * cp, kv_heads))
    return either(cp_type != ULYSSES, cp == 1, whole)


@_law(
    Stage.SHARD_GROUP,
    "ep",
    ("tp", "ep", "etp", "sharding", "shard_group"),
    "under hsdp, ep x etp divides shard_group x tp",
    "torchtitan folds expert ranks into one shard group's",
)
def expert_groups(c: Columns, s: Setting) -> Array:
    whole = _divides(c["ep"] * c["etp"], c["shard_group"] * c["tp"])
    return either(c["sharding"] != HSDP, c["ep"] == 1, whole)


LAWS = tuple(_LAWS)


@cache
def laws_of(stage: Stage) -> tuple[Law, ...]:
    """The laws that can be told once an axis is laid out."""
    return tuple(law for law in LAWS if law.stage == stage)


def all_hold(laws: Iterable[Law], columns: Columns, setting: Setting) -> Array:
    """Where plans keep every one of some laws."""
    return _both(*(law.holds(columns, setting) for law in laws))
