"""The controls of the form, group by group: what each is called, and which field it stands for."""

from collections.abc import Callable, Container, Iterator, Sequence
from functools import cache

from scantling import catalogue
from scantling.base.records import record
from scantling.base.units import GB
from scantling.catalogue.words import ADAPTED, POLICIES, PRECISIONS, Method
from scantling.design.constraints import CONSTRAINTS
from scantling.design.resolved import Resolved

from . import choices
from .choices import Option, choice, params_text, whole
from .control import (
    Control,
    Entry,
    FabricList,
    MethodList,
    ModelList,
    NetworkRate,
    OneOf,
    Pin,
    Rate,
    Slider,
    StackList,
    word_choices,
)

EVERY = frozenset(Method)
FROM_THE_START = (Method.PRETRAIN,)
NOT_OF_POLICIES = ("job.tokens", "job.seq_len", "job.global_batch")
FINE_TUNED = tuple(method for method in Method if method not in (*POLICIES, *FROM_THE_START))
_MOST_DEVICES = 262_144


@record
class Group:
    """Controls that stand together."""

    title: str
    controls: tuple[Control, ...]
    methods: Container[Method] = EVERY  # that have a use for them


# ---------------------------------------------------------------- ladders and lists
def _listed(*values: int) -> Callable[[Resolved], Sequence[float]]:
    """A ladder of these values."""
    return lambda design: values


def _decades(low: float, high: float) -> Callable[[Resolved], Sequence[float]]:
    """A ladder of round steps."""
    return lambda design: choices.decades(low, high)


def _octaves(low: int, high: int) -> Callable[[Resolved], Sequence[float]]:
    """A ladder of powers of two and the quarters between them."""
    return lambda design: choices.octaves(low, high)


def _whole_node_counts(design: Resolved) -> Sequence[float]:
    """Devices of whole nodes."""
    node = design.cluster.devices_per_node
    return choices.octaves(node, _MOST_DEVICES, node)


def _sequences(design: Resolved) -> Sequence[float]:
    """Lengths from 1,024 tokens to 1,048,576."""
    return choices.octaves(1024, 1_048_576, 1024, (1.0, 1.5))


def _examples(design: Resolved) -> list[Option]:
    return [choice("", "open an example…"), *choices.examples()]


def _accelerators(design: Resolved) -> Sequence[Option]:
    return choices.accelerators()


def _precisions(design: Resolved) -> list[Option]:
    has = design.cluster.accelerator.precisions()
    return word_choices(precision for precision in has if precision in PRECISIONS)


def _optimizers(design: Resolved) -> list[Option]:
    return word_choices(catalogue.optimizers())


# ---------------------------------------------------------------- values on the sliders
def _short_experts(n: float) -> str:
    return whole(n) if n else "dense"


def _long_experts(n: float) -> str:
    return f"{whole(n)} experts" if n else "dense, no experts"


def _long_size(n: float) -> str:
    return f"{params_text(n)} parameters"


def _long_devices(n: float) -> str:
    return f"{whole(n)} accelerators"


def _short_batch(n: float) -> str:
    return f"{whole(n)} seq"


def _long_batch(n: float) -> str:
    return f"{whole(n)} sequences"


def _or_dash(n: float) -> str:
    return whole(n) if n else "–"


def _long_top_k(n: float) -> str:
    return f"{whole(n)} experts per token" if n else "dense"


def _short_sequence(n: float) -> str:
    return f"{whole(n)} tok"


def _long_sequence(n: float) -> str:
    return f"{whole(n)} tokens"


def _short_tokens(n: float) -> str:
    return params_text(n) if n else "not given"


def _long_tokens(n: float) -> str:
    return f"{params_text(n)} tokens" if n else "not given"


def _long_window(n: float) -> str:
    return f"{whole(n)} tokens" if n else "no window"


def _short_attention_every(n: float) -> str:
    return f"{whole(n)} layers" if n else "–"


def _long_attention_every(n: float) -> str:
    return f"{whole(n)} layers" if n else "no other mixers"


def _long_state_size(n: float) -> str:
    return f"{whole(n)} numbers" if n else "no Mamba"


# ---------------------------------------------------------------- help with figures of the design
def _whole_nodes(design: Resolved) -> str:
    node = design.cluster.devices_per_node
    return f"Accelerators in all, in whole nodes of {node}: powers of two and the quarters between."


def _tokens_of_a_step(design: Resolved) -> str:
    phase = design.main_phase
    tokens = params_text(float(phase.global_batch * phase.seq_len))
    return f"Sequences in one step; now {tokens} tokens."


# ---------------------------------------------------------------- the groups
def _of_cause(cause: str, name: str) -> Iterator[Control]:
    """What is asked of one cause of failures."""
    section = f"reliability.causes.{cause}"
    yield Entry(field=f"{section}.per_1000_node_days", label=f"{name}: failures")
    yield Entry(field=f"{section}.detect_s", label=f"{name}: detection")
    yield Entry(field=f"{section}.restart_s", label=f"{name}: restart")
    yield Entry(field=f"{section}.repair_s", label=f"{name}: repair")


_CAUSES = {
    "gpu": "GPU",
    "node": "Node",
    "link": "Link",
    "switch": "Switch",
    "storage": "Storage",
    "software": "Software",
    "power": "Power",
    "maintenance": "Maintenance",
}

_METHOD = MethodList(
    field="job.method",
    label="Method",
    help=(
        "What is trained: a model from the start, all its weights or adapters on samples, or a "
        "policy on samples of its own. Another method takes away what it has no use for."
    ),
)

_DESIGN: tuple[Control, ...] = (
    OneOf(
        field="example",
        label="Example",
        help="Designs of the gallery: published runs and reference cases.",
        rows=_examples,
    ),
    _METHOD,
    ModelList(
        field="model",
        label="Model",
        help="A model of the catalogue. Size, experts and top-k below start from it.",
    ),
    Slider(
        field="model.size",
        label="Model size",
        help="Parameters in all. Moving it derives the shape from the size alone.",
        value=lambda design: design.params.total,
        near=0.1,
        steps=_decades(1e9, 1e13),
        short=params_text,
        long=_long_size,
        typed=True,
        swept=True,
        coarse=True,
    ),
    Slider(
        field="model.experts",
        label="MoE experts",
        help=(
            "Routed experts of a MoE layer. A dense model becomes a MoE of the same total "
            "size; a catalogue MoE keeps the width of its experts."
        ),
        value=lambda design: design.model.experts,
        steps=_listed(0, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192, 256, 384, 512),
        short=_short_experts,
        long=_long_experts,
        swept=True,
    ),
    Slider(
        field="cluster.devices",
        label="GPU count",
        live_help=_whole_nodes,
        value=lambda design: design.cluster.devices,
        steps=_whole_node_counts,
        short=whole,
        long=_long_devices,
        typed=True,
        swept=True,
        coarse=True,
    ),
    OneOf(
        field="cluster.accelerator",
        label="Accelerator",
        help="The chip. Choosing one brings its usual node, scale-up domain and network.",
        value=lambda design: design.cluster.accelerator.id,
        rows=_accelerators,
        swept=True,
    ),
    NetworkRate(
        field="cluster.scale_out_gbytes_per_s_per_device", label="Network rate", swept=True
    ),
    FabricList(field="cluster.scale_out", label="Fabric", swept=True),
    Slider(
        field="job.tokens",
        label="Tokens",
        help="Tokens trained on. Without them there are no days and no cost.",
        of_phase=True,
        value=lambda design: design.main_phase.tokens,
        steps=_decades(1e10, 1e14),
        short=_short_tokens,
        long=_long_tokens,
        typed=True,
        swept=True,
    ),
    Slider(
        field="job.seq_len",
        label="Sequence",
        help="Tokens in one sequence.",
        of_phase=True,
        value=lambda design: design.main_phase.seq_len,
        steps=_sequences,
        short=_short_sequence,
        long=_long_sequence,
        typed=True,
        swept=True,
    ),
    Slider(
        field="job.global_batch",
        label="Global batch",
        live_help=_tokens_of_a_step,
        of_phase=True,
        value=lambda design: design.main_phase.global_batch,
        steps=_octaves(8, 131072),
        short=_short_batch,
        long=_long_batch,
        typed=True,
        swept=True,
    ),
    OneOf(
        field="job.precision",
        label="Precision",
        help="Number format of the matrix products; what this accelerator has.",
        of_phase=True,
        value=lambda design: design.main_phase.precision,
        rows=_precisions,
        swept=True,
    ),
    Entry(field="constraints.deadline_days", label="Deadline"),
    Entry(field="constraints.budget_usd", label="Budget"),
)

_ADAPTERS: tuple[Control, ...] = (
    Entry(field="job.adapter.rank", label="Rank"),
    Entry(field="job.adapter.targets", label="Targets"),
    Entry(field="job.adapter.base_bits", label="Bits of the base"),
)
_SAMPLES: tuple[Control, ...] = (
    Rate(field="job.data.samples", label="Samples", low=1e3, high=1e8, unit="samples"),
    Rate(field="job.data.mean_tokens", label="Mean length", low=100, high=1e5, unit="tokens"),
    Entry(field="job.data.p95_tokens", label="95 % are below"),
    Entry(field="job.data.packed", label="Packed"),
    Entry(field="job.data.epochs", label="Passes"),
)
_ROLLOUT: tuple[Control, ...] = (
    Rate(field="job.rollout.mean_response", label="Mean length", low=100, high=1e5, unit="tokens"),
    Rate(field="job.rollout.max_response", label="Length cap", low=500, high=1e6, unit="tokens"),
    Rate(field="job.rollout.tail", label="Length tail", low=0.1, high=2, unit="ratio"),
    Entry(field="job.rollout.prompts", label="Prompts"),
    Entry(field="job.rollout.samples", label="Samples each"),
    Entry(field="job.rollout.colocated", label="Shared"),
    Entry(field="job.rollout.devices", label="Generate on", figure="rollout.devices"),
    Entry(field="job.rollout.tp", label="TP, engine", figure="rollout.tp"),
    Entry(field="job.rollout.lag", label="Samples lag", figure="rollout.lag"),
    Entry(field="job.rollout.updates", label="Updates"),
    Entry(field="job.rollout.steps", label="Steps"),
    Entry(field="job.rollout.mean_prompt", label="Mean prompt"),
    Entry(field="job.rollout.engine", label="Engine"),
    Entry(field="job.rollout.dp", label="Replicas", figure="rollout.dp"),
    Entry(field="job.rollout.ep", label="EP, engine"),
    Entry(field="job.rollout.precision", label="Format"),
    Entry(field="job.rollout.kv_fraction", label="Memory share"),
    Entry(field="job.rollout.reference", label="Reference"),
    Entry(field="job.rollout.critic", label="Critic"),
    Entry(field="job.rollout.redraw", label="Redrawn"),
    Entry(field="job.rollout.reward.kind", label="Judged by"),
    Entry(field="job.rollout.reward.model", label="Reward model"),
    Entry(field="job.rollout.reward.seconds", label="Judge's wait"),
    Entry(field="job.rollout.environment_s", label="Tools' wait"),
    Entry(field="job.rollout.weight_sync", label="Weight sync", figure="rollout.weight_sync"),
)

_PLAN: tuple[Control, ...] = (
    Pin(field="plan.tp", label="TP", swept=True),
    Pin(field="plan.pp", label="PP", octave=(1.0, 1.25, 1.5, 1.75), swept=True),
    Pin(field="plan.cp", label="CP", swept=True),
    Pin(field="plan.vpp", label="VPP", octave=(1.0, 1.5)),
    Pin(field="plan.dp", label="DP", octave=(1.0, 1.5)),
    Pin(field="plan.ep", label="EP", swept=True),
    Pin(field="plan.micro_batch", label="Micro-b.", axis="Micro-batch", swept=True),
    Pin(field="plan.sharding", label="Sharding", swept=True),
    Pin(field="plan.schedule", label="Schedule", swept=True),
    Pin(field="plan.recompute", label="Recompute", swept=True),
)

_JOB: tuple[Control, ...] = (
    Slider(
        field="model.top_k",
        label="Top-k",
        help="Routed experts that a token visits.",
        value=lambda design: design.model.top_k,
        steps=_listed(1, 2, 3, 4, 6, 8, 10, 12, 16),
        short=_or_dash,
        long=_long_top_k,
        most=lambda design: design.model.experts,
        needs=lambda design: design.model.experts,
        swept=True,
    ),
    OneOf(
        field="job.optimizer",
        label="Optimizer",
        help="Decides the state per parameter.",
        of_phase=True,
        value=lambda design: design.main_phase.optimizer,
        rows=_optimizers,
    ),
    Pin(field="plan.offload", label="Offload", help="State kept in host memory or NVMe."),
    Entry(field="job.target_loss", label="Target loss", of_phase=True),
    Entry(
        field="job.from_checkpoint",
        label="From a checkpoint",
        of_phase=True,
        usual=lambda design: design.main_phase.from_checkpoint,
    ),
    Entry(
        field="job.evaluation_hours",
        label="Evaluation pause",
        of_phase=True,
        usual=lambda design: design.main_phase.evaluation_hours,
    ),
    Entry(field="job.effort", label="Tuning effort", of_phase=True),
    Entry(field="job.routing", label="Routing", of_phase=True),
    Entry(field="job.expert_skew", label="Expert skew", of_phase=True),
    Entry(field="job.capacity_factor", label="Capacity factor", of_phase=True),
    Entry(field="job.node_limit", label="Nodes per token", of_phase=True),
    Entry(field="job.document_tokens", label="Packed documents", of_phase=True),
    Entry(
        field="job.phases",
        label="Phases",
        help=(
            "training in parts, one after the other: [{tokens: 15e12, seq_len: 8192}, {tokens: "
            "8e11, seq_len: 131072}]"
        ),
    ),
    Entry(field="name", label="Name"),
)

_SITE: tuple[Control, ...] = (
    Entry(
        field="cluster.oversubscription",
        label="Oversubscription",
        usual=lambda design: design.cluster.oversubscription,
    ),
    Entry(
        field="cluster.pod_devices",
        label="Devices of a pod",
        usual=lambda design: design.cluster.pod_devices,
    ),
    Entry(
        field="cluster.sites",
        label="Sites",
        help=(
            "their number, or one of each: [{devices: 8192}, {devices: 4096, rtt_ms: 30, "
            "gbits_per_s: 800}]"
        ),
        usual=lambda design: design.cluster.sites,
    ),
    Entry(
        field="cluster.site_gbytes_per_s",
        label="Between sites",
        usual=lambda design: design.cluster.site_bytes_per_s / GB,
    ),
    Entry(
        field="cluster.site_rtt_ms",
        label="Round trip",
        usual=lambda design: design.cluster.site_rtt_s * 1e3,
    ),
    Entry(
        field="cluster.storage",
        label="Storage",
        usual=lambda design: design.cluster.storage,
        rows=catalogue.storages,
    ),
    Entry(field="cluster.storage_client_gbytes_per_s", label="Storage client"),
    Entry(
        field="cluster.node",
        label="Node",
        usual=lambda design: design.cluster.node,
        rows=catalogue.nodes,
    ),
    Entry(
        field="cluster.devices_per_node",
        label="Devices of a node",
        usual=lambda design: design.cluster.devices_per_node,
    ),
    Entry(
        field="cluster.scale_up_domain",
        label="Scale-up domain",
        usual=lambda design: design.cluster.scale_up_domain,
    ),
    Entry(
        field="cluster.nics_per_node",
        label="Ports of a node",
        usual=lambda design: design.cluster.nics_per_node,
    ),
    Entry(field="cluster.rails", label="Rails"),
    Entry(field="cluster.leaf_devices", label="Devices of a leaf"),
    Entry(field="cluster.topology", label="Topology", usual=lambda design: design.cluster.topology),
    Entry(field="cluster.measured.all_reduce_gbytes_per_s", label="Measured all-reduce"),
    Entry(field="cluster.measured.all_reduce_in_node_gbytes_per_s", label="The same in a node"),
    Entry(field="cluster.measured.all_to_all_gbytes_per_s", label="Measured all-to-all"),
    Entry(
        field="cluster.in_network_reduction",
        label="Switches reduce",
        usual=lambda design: design.cluster.in_network_reduction,
    ),
    Entry(
        field="cluster.host_memory_gb",
        label="Host memory",
        usual=lambda design: design.cluster.host_memory_bytes / GB,
    ),
    Entry(
        field="cluster.nvme_gb", label="NVMe", usual=lambda design: design.cluster.nvme_bytes / GB
    ),
    Entry(
        field="cluster.delivery",
        label="Delivery",
        help="when the devices come: [{day: 0, devices: 8192}, {day: 60, devices: 8192}]",
    ),
)

_SEVERAL_SITES: tuple[Control, ...] = (
    Entry(field="job.sync.kind", label="Synchronised by"),
    Entry(field="job.sync.local_steps", label="Local steps"),
    Entry(field="job.sync.compress_bits", label="Bits exchanged"),
    Entry(field="job.sync.outer_optimizer", label="Outer optimizer"),
    Entry(field="job.sync.overlap", label="Exchange hidden"),
)

_LIMITS: tuple[Control, ...] = (
    Entry(field="constraints.min_mfu", label="MFU at least"),
    Entry(field="constraints.min_goodput", label="Goodput at least"),
    Entry(field="constraints.max_checkpoint_overhead", label="Save overhead ≤"),
    Entry(field="constraints.max_checkpoint_stall_s", label="Stall of a save ≤"),
    Entry(field="constraints.max_lost_work_s", label="Lost work ≤"),
    Entry(field="constraints.max_recovery_s", label="Recovery ≤"),
    Entry(field="constraints.survive", label="Survive loss of"),
    Entry(field="constraints.max_oom_probability", label="OOM risk ≤"),
    Entry(field="constraints.max_power_mw", label="Power at most"),
)
_NAMED = {control.field for control in (*_DESIGN, *_LIMITS)}
# those of extensions, called as their records are
_ADDED = tuple(
    Entry(field=f"constraints.{name}", label=constraint.name.capitalize())
    for name, constraint in CONSTRAINTS.items()
    if f"constraints.{name}" not in _NAMED
)
_CONSTRAINTS: tuple[Control, ...] = (*_LIMITS, *_ADDED)

_FAILURES_PRICES_MEASURED: tuple[Control, ...] = (
    Rate(
        field="reliability.failures_per_1000_node_days",
        label="Failures",
        figure="endurance.failures_per_1000_node_days",
        low=0.01,
        high=100,
        unit="per 1,000 node-days",
        axis="Failures per 1,000 node-days",
        axis_unit="",
    ),
    Entry(
        field="reliability.checkpoint_stall_s",
        label="Stall of a save",
        figure="endurance.checkpoint_stall_s",
        unit="s",
        axis="Stall of a save",
    ),
    Entry(
        field="reliability.restart_s",
        label="Restart",
        figure="endurance.restart_s",
        unit="s",
        axis="Restart time",
    ),
    Entry(
        field="reliability.detect_s",
        label="Detection",
        figure="endurance.detect_s",
        axis="Detection time",
    ),
    Entry(
        field="reliability.repair_s",
        label="Repair",
        figure="endurance.repair_s",
        axis="Repair time",
    ),
    Entry(
        field="reliability.planned_per_day",
        label="Planned stops",
        figure="endurance.planned_per_day",
        axis="Planned stops per day",
    ),
    Entry(
        field="reliability.spares",
        label="Spare nodes",
        figure="spares",
        unit="nodes",
        axis="Spare nodes",
    ),
    Entry(
        field="reliability.preset",
        label="Figures of fleet",
        figure="endurance.preset",
        rows=catalogue.failure_presets,
    ),
    Entry(field="reliability.recovery", label="Recovery by", figure="endurance.recovery"),
    Rate(
        field="prices.usd_per_device_hour",
        label="Price",
        figure="cost.usd_per_device_hour",
        low=0.1,
        high=100,
        unit="USD per device-hour",
        axis="Price per device-hour",
        axis_unit="USD",
    ),
    Entry(field="prices.kind", label="Kind of rent"),
    Entry(field="prices.usd_per_node_hour", label="Price of a node"),
    Entry(field="prices.usd_per_kwh", label="Energy price", figure="cost.usd_per_kwh"),
    Entry(field="prices.pue", label="PUE", figure="cost.pue"),
    Entry(field="measured.step_s", label="Measured step"),
    Entry(field="measured.mfu", label="Measured MFU"),
    Entry(field="measured.tokens_per_s_per_device", label="Measured rate"),
    Entry(field="measured.memory_gb", label="Measured memory"),
    Entry(field="measured.goodput", label="Measured goodput"),
)

_CHECKPOINTS: tuple[Control, ...] = (
    Entry(
        field="checkpoint.interval_s", label="Interval", figure="endurance.checkpoint_interval_s"
    ),
    Entry(
        field="reliability.checkpoint_durable_s",
        label="Until it is safe",
        figure="endurance.checkpoint_durable_s",
    ),
    Entry(field="checkpoint.keep_versions", label="Copies kept"),
    Entry(field="checkpoint.keep_days", label="One a day for", figure="endurance.keep_days"),
    Entry(field="checkpoint.tiers.l0.every_s", label="L0, host memory"),
    Entry(field="checkpoint.tiers.l1.every_s", label="L1, local NVMe"),
    Entry(field="checkpoint.tiers.l2.every_s", label="L2, file system"),
    Entry(field="checkpoint.tiers.l3.every_s", label="L3, object store"),
)

_FAILURES_BY_CAUSE: tuple[Control, ...] = tuple(
    control for cause, name in _CAUSES.items() for control in _of_cause(cause, name)
)

_STRAGGLERS: tuple[Control, ...] = (
    Entry(field="reliability.sdc.per_1000_node_days", label="Silent corruption"),
    Entry(
        field="reliability.sdc.check_every_s",
        label="Checked every",
        figure="endurance.check_every_s",
    ),
    Entry(field="reliability.stragglers.share", label="Stragglers a day"),
    Entry(field="reliability.stragglers.slowdown", label="Slowdown by one"),
    Entry(field="reliability.stragglers.notice_s", label="Until it is out"),
    Entry(field="reliability.lemons.share", label="Lemons"),
    Entry(field="reliability.lemons.factor", label="Failures of one"),
    Entry(field="reliability.link_flaps.per_1000_link_days", label="Link flaps"),
    Entry(field="reliability.link_flaps.seconds", label="Stall of a flap"),
)

_OWNED: tuple[Control, ...] = (
    Entry(field="prices.owned.capex_usd", label="Machine"),
    Entry(field="prices.owned.years", label="Written off over"),
    Entry(field="prices.owned.staff_usd_per_year", label="Staff"),
    Entry(field="prices.owned.network_usd", label="Network, apart"),
    Entry(field="prices.owned.storage_usd", label="Storage, apart"),
    Entry(field="prices.spot.usd_per_device_hour", label="Spot device-hour"),
    Entry(field="prices.spot.preemptions_per_day", label="Preemptions a day"),
    Entry(field="prices.spot.notice_s", label="Notice"),
    Entry(field="prices.spot.replacement_s", label="Until replaced"),
)

_PLAN_IN_DETAIL_SOFTWARE: tuple[Control, ...] = (
    Pin(field="plan.etp", label="ETP"),
    StackList(field="stack", label="Software", help="Training software that runs the plan."),
    Entry(field="stack.release", label="Release"),
    Entry(field="plan.sp", label="Sequence parallel", figure="plan.sp"),
    Entry(field="plan.shard_group", label="Shard group", figure="plan.shard_group"),
    Entry(field="plan.grad_accum", label="Micro-batches", figure="plan.grad_accum"),
    Entry(field="plan.recompute_modules", label="Recompute of"),
    Entry(field="plan.activation_offload.modules", label="Activations away"),
    Entry(field="plan.activation_offload.layers", label="Layers of these"),
    Entry(field="plan.remat", label="MaxText's policy"),
    Entry(field="plan.recompute_layers", label="Recomputed layers", figure="plan.recompute_layers"),
    Entry(field="plan.layer_split", label="Layer split", figure="plan.layer_split"),
    Entry(field="plan.cp_type", label="CP exchange", figure="plan.cp_type"),
    Entry(field="plan.cuda_graphs", label="Captured graphs"),
    Entry(field="plan.graph_modules", label="Captured modules"),
    Entry(field="plan.tp_overlap", label="TP overlap"),
    Entry(field="plan.moe_dispatcher", label="MoE dispatcher"),
    Entry(field="plan.moe_overlap", label="MoE overlap"),
    Entry(field="plan.expert_sharding", label="Experts' sharding"),
    Entry(field="plan.gradients", label="Gradients"),
    Entry(field="plan.moments", label="Moments"),
    Entry(field="plan.sync_each_batch", label="Reduced each batch"),
    Entry(field="plan.dp_outer", label="Shard groups"),
    Entry(field="plan.compile_memory_budget", label="Compiler's budget"),
    Entry(field="plan.recompute_layer_ids", label="Recomputed by number"),
    Entry(field="plan.fp8_param_gather", label="8-bit gather"),
    Entry(field="plan.keep_16bit.first", label="First in 16 bit"),
    Entry(field="plan.keep_16bit.last", label="Last in 16 bit"),
    Entry(field="plan.reshard_after_forward", label="Reshard (FSDP)"),
    Entry(field="plan.compile", label="Compiled blocks"),
    Entry(field="plan.layout", label="Layers of each stage"),
)

_MODEL_SHAPE: tuple[Control, ...] = (
    Entry(field="model.name", label="Name", usual=lambda design: design.model.name),
    Entry(field="model.layers", label="Layers", usual=lambda design: design.model.layers),
    Entry(field="model.hidden", label="Hidden", usual=lambda design: design.model.hidden),
    Entry(
        field="model.ffn_hidden", label="FFN width", usual=lambda design: design.model.ffn_hidden
    ),
    Entry(field="model.heads", label="Heads", usual=lambda design: design.model.heads),
    Entry(field="model.kv_heads", label="KV heads", usual=lambda design: design.model.kv_heads),
    Entry(field="model.head_dim", label="Head width", usual=lambda design: design.model.head_dim),
    Entry(field="model.vocab", label="Vocabulary", usual=lambda design: design.model.vocab),
    Entry(field="model.mlp", label="Feed-forward", usual=lambda design: design.model.mlp),
    Entry(field="model.attention", label="Attention", usual=lambda design: design.model.attention),
    Entry(
        field="model.tied_embeddings",
        label="Tied head",
        usual=lambda design: design.model.tied_embeddings,
    ),
    Slider(
        field="model.window",
        label="Window",
        help="Tokens that a layer with a window looks back at.",
        value=lambda design: design.model.window,
        steps=_listed(128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768),
        short=_or_dash,
        long=_long_window,
        needs=lambda design: design.model.windowed_layers,
    ),
    Entry(
        field="model.windowed_layers",
        label="Windowed layers",
        usual=lambda design: design.model.windowed_layers,
    ),
    Slider(
        field="model.attention_every",
        label="Attention every",
        help=(
            "Of so many layers that mix tokens one attends to everything, where the model's "
            "pattern has both kinds."
        ),
        value=lambda design: design.model.attention_every,
        steps=_listed(2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32),
        short=_short_attention_every,
        long=_long_attention_every,
        needs=lambda design: design.model.attention_every,
    ),
    Slider(
        field="model.state_size",
        label="State size",
        help="Numbers that a channel of a Mamba scan keeps.",
        value=lambda design: design.model.state_size,
        steps=_listed(16, 32, 64, 96, 128, 192, 256, 512),
        short=_or_dash,
        long=_long_state_size,
        needs=lambda design: design.model.state_size,
    ),
    Entry(
        field="model.active", label="Active parameters", usual=lambda design: design.params.active
    ),
    Entry(
        field="model.moe_layers", label="MoE layers", usual=lambda design: design.model.moe_layers
    ),
    Entry(
        field="model.expert_ffn_hidden",
        label="Expert width",
        usual=lambda design: design.model.expert_ffn_hidden,
    ),
    Entry(
        field="model.shared_ffn_hidden",
        label="Shared width",
        usual=lambda design: design.model.shared_ffn_hidden,
    ),
    Entry(
        field="model.mtp_layers", label="MTP modules", usual=lambda design: design.model.mtp_layers
    ),
    Entry(field="model.q_lora", label="MLA q rank", usual=lambda design: design.model.q_lora),
    Entry(field="model.kv_lora", label="MLA kv rank", usual=lambda design: design.model.kv_lora),
    Entry(
        field="model.qk_nope", label="MLA no-position", usual=lambda design: design.model.qk_nope
    ),
    Entry(field="model.qk_rope", label="MLA rope width", usual=lambda design: design.model.qk_rope),
    Entry(
        field="model.v_head_dim",
        label="MLA value width",
        usual=lambda design: design.model.v_head_dim,
    ),
)

_CORPUS: tuple[Control, ...] = (
    Entry(field="job.corpus.raw_bytes", label="Raw corpus"),
    Entry(field="job.corpus.extract_share", label="Text of raw"),
    Entry(field="job.corpus.exact_share", label="After exact dedup"),
    Entry(field="job.corpus.near_share", label="After near dedup"),
    Entry(field="job.corpus.keep_share", label="After filters"),
    Entry(field="job.corpus.dedup", label="Deduplication"),
    Entry(field="job.corpus.tokens_per_byte", label="Tokens per byte"),
    Entry(field="job.corpus.cores", label="Cores"),
    Entry(field="job.corpus.extract_mbytes_per_s_per_core", label="Extraction"),
    Entry(field="job.corpus.exact_mbytes_per_s_per_core", label="Exact dedup"),
    Entry(field="job.corpus.near_mbytes_per_s_per_core", label="Near dedup"),
    Entry(field="job.corpus.filter_mbytes_per_s_per_core", label="Filters"),
    Entry(field="job.corpus.tokenise_mbytes_per_s_per_core", label="Tokenising"),
    Entry(field="job.corpus.usd_per_core_hour", label="Price of a core"),
    Entry(field="job.corpus.fetch_gbytes_per_s", label="Fetched at"),
    Entry(field="job.corpus.read_gbytes_per_s", label="Shards read at"),
    Entry(field="job.corpus.reads_per_s", label="Sequences read"),
)

GROUPS = (
    Group(title="Design", controls=_DESIGN),
    Group(title="Adapters", controls=_ADAPTERS, methods=ADAPTED),
    Group(title="Samples", controls=_SAMPLES, methods=FINE_TUNED),
    Group(title="Rollout", controls=_ROLLOUT, methods=POLICIES),
    Group(title="Plan: auto is searched", controls=_PLAN),
    Group(title="Job", controls=_JOB),
    Group(title="Site", controls=_SITE),
    Group(title="Training over several sites", controls=_SEVERAL_SITES, methods=FROM_THE_START),
    Group(title="Further constraints", controls=_CONSTRAINTS),
    Group(title="Failures, prices, measured", controls=_FAILURES_PRICES_MEASURED),
    Group(title="Checkpoints", controls=_CHECKPOINTS),
    Group(title="Failures by cause", controls=_FAILURES_BY_CAUSE),
    Group(title="Stragglers, silent errors, flaps", controls=_STRAGGLERS),
    Group(title="Owned machine", controls=_OWNED),
    Group(title="Plan in detail, software", controls=_PLAN_IN_DETAIL_SOFTWARE),
    Group(title="Model shape", controls=_MODEL_SHAPE),
    Group(title="Corpus", controls=_CORPUS, methods=FROM_THE_START),
)

# ---------------------------------------------------------------- what stands where
PINS = {control.field: control for control in _PLAN if isinstance(control, Pin)}
_BY_FIELD = {control.field: control for group in GROUPS for control in group.controls}
# by the last part of a field that several sections have
_BY_NAME = {
    control.field.rpartition(".")[2]: control
    for control in (*_DESIGN, *_JOB)
    if control.of_phase or control.field == "name"
}


@cache
def control_of(field: str) -> Control | None:
    """The control that stands for a field; None where there is none."""
    return _BY_FIELD.get(field) or _BY_NAME.get(field.rpartition(".")[2])


def place_of(*fields: str) -> str | None:
    """The first of some fields that has a control of its own, beside which a fault is shown."""
    return next((field for field in fields if field in _BY_FIELD), None)


def label_of(field: str) -> str:
    """What a field is called on the form; its path where no control stands for it."""
    control = control_of(field)
    return control.label if control else field
