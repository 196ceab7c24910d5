"""The tables of the tabs: what each is called, its columns, and what its numbers open to."""

from collections.abc import Mapping
from dataclasses import field

from scantling.base.records import Lines, record

from ..charts.endurance import LADDER_SIZES


@record
class TableSpec:
    """One table.

    `prefix` stands before a column's name in the table of quantities, where `quantities` does not
    name the whole of it; `labels` are the heads of columns that the table of quantities has none
    for. Numbers of the columns `opens` open to their formula; where that is None, those of all that
    are not of words. `own` : the rows are records of the blueprint; their numbers open to these
    fields too, term -> field.
    """

    file_name: str  # stem of the file that it downloads as
    label: str
    names: Lines  # columns: fields of the rows
    left: Lines = ()  # columns of words
    labels: Mapping[str, str] = field(default_factory=dict)
    wrap: Lines = ()  # columns whose words go on in a second line
    prefix: str = ""
    quantities: Mapping[str, str] = field(default_factory=dict)
    opens: Lines | None = None
    extra_lines: Mapping[str, str] = field(default_factory=dict)
    action: str = ""  # what choosing a row does: its rows are other plans or designs
    empty: str = "Nothing to list for this design."
    sortable: bool = True
    cls: str = ""  # of the style sheet

    def quantity(self, name: str) -> str:
        """The key of a column in the table of quantities."""
        return self.quantities.get(name, self.prefix + name)

    def open_to_formula(self, name: str) -> bool:
        """Whether the numbers of a column open to their formula."""
        return name not in self.left if self.opens is None else name in self.opens


COMMUNICATION = TableSpec(
    file_name="communication",
    label="Communication of one step",
    names=("axis", "what", "exposed_s", "time_s", "bytes", "calls", "group", "tier"),
    left=("axis", "what", "tier"),
    wrap=("what",),
    prefix="communication.",
    empty="No communication: one device.",
)
TOPOLOGIES = TableSpec(
    file_name="topologies",
    label="Other topologies for the same devices",
    names=(
        "what",
        "usd",
        "step_change",
        "run_usd",
        "usd_per_device",
        "switches",
        "all_cables",
        "bisection_bytes_per_s",
    ),
    left=("what",),
    wrap=("what",),
    prefix="blueprint.topologies.",
    extra_lines={
        "Of": "what",
        "Kind": "kind",
        "Tiers": "tiers",
        "Ports of a switch": "radix",
        "Mean hops": "mean_hops",
        "Transceivers": "transceivers",
        "Source": "source",
    },
)
CROSSINGS = TableSpec(
    file_name="crossings",
    label="What crosses each edge of the fabric in one step",
    names=(
        "edge",
        "busy_share",
        "busy_s",
        "bytes",
        "capacity_bytes_per_s",
        "blocks",
        "tp",
        "cp",
        "ep",
        "dp",
        "pp",
    ),
    left=("edge",),
    labels={"tp": "TP", "cp": "CP", "ep": "EP", "dp": "DP", "pp": "PP"},
    prefix="blueprint.crossings.",
    opens=("bytes", "capacity_bytes_per_s", "busy_s", "busy_share"),
    extra_lines={"Of": "edge"},
    empty="Nothing leaves a scale-up domain.",
    sortable=False,
)
FABRIC_SETTINGS = TableSpec(
    file_name="fabric-settings",
    label="Settings of the fabric",
    names=("what", "choice", "why"),
    left=("what", "choice", "why"),
    labels={"what": "What", "choice": "Choice", "why": "Why"},
    wrap=("choice", "why"),
    sortable=False,
)
BLOCK_KINDS = TableSpec(
    file_name="block-kinds",
    label="What each kind of block takes",
    names=("kind", "count", "parameters", "step_share", "memory_share", "context_share"),
    left=("kind",),
    prefix="blocks.",
    sortable=False,
)
PLANS = TableSpec(
    file_name="plans",
    label="Best plans, fastest first",
    # what decides stands in front: on a narrow screen the axes are what scrolls
    names=(
        "step_s",
        "mfu_shown",
        "memory_bytes",
        "tp",
        "cp",
        "pp",
        "vpp",
        "dp",
        "ep",
        "etp",
        "micro_batch",
        "sharding",
        "schedule",
        "recompute",
        "recompute_modules",
        "devices_used",
    ),
    left=("rank", "sharding", "schedule", "recompute", "recompute_modules"),
    labels={"rank": "Use"},
    prefix="candidates.",
    opens=("step_s", "mfu_shown", "memory_bytes", "devices_used"),
    action="Use this plan",
    empty="No plan is legal and fits.",
)
PLANS_REFUSED = TableSpec(
    file_name="plans-refused",
    label="Plans refused, by reason",
    names=("reason", "plans"),
    left=("reason",),
    labels={"reason": "Refused because", "plans": "Plans"},
    wrap=("reason",),
    empty="No plan was refused.",
)
LADDER = TableSpec(
    file_name="ladder",
    label="What each rung of the ladder leaves",
    names=("measure", "own", "at_100k", "at_300k", "at_1m", "why"),
    left=("measure", "why"),
    labels=LADDER_SIZES,
    wrap=("measure", "why"),
    prefix="blueprint.recovery.",
    empty="Too few devices for a ladder.",
    sortable=False,
)
FIRST_STEP = TableSpec(
    file_name="first-step",
    label="Time to the first step, by devices",
    names=(
        "devices",
        "total_s",
        "scheduler_s",
        "imports_s",
        "communicators_s",
        "compile_s",
        "load_s",
    ),
    left=("devices",),
    prefix="blueprint.recovery.",
    sortable=False,
)
REPLICAS_LOST = TableSpec(
    file_name="replicas-lost",
    label="Replicas that lose a node each",
    names=(
        "lost",
        "choice",
        "dp",
        "micro_batches",
        "ratio",
        "memory_bytes",
        "shrink_loss_s",
        "wait_loss_s",
        "break_even_s",
    ),
    left=("lost", "choice"),
    prefix="blueprint.recovery.",
    empty="One replica alone, nothing to drop.",
    sortable=False,
)
DEVICE_COUNTS = TableSpec(
    file_name="device-counts",
    label="Device counts",
    names=(
        "devices",
        "likely.days",
        "likely.cost_usd",
        "mfu_shown",
        "devices_used",
        "goodput",
        "verdict",
    ),
    left=("devices",),
    labels={"devices": "Devices"},
    opens=("devices_used", "mfu_shown", "likely.days", "likely.cost_usd", "goodput", "verdict"),
    action="Use this many devices",
    empty="Not swept yet.",
)
SWINGS = TableSpec(
    file_name="steps-of-inputs",
    label="What each input moves, in figures",
    names=("what", "to"),
    left=("what", "to"),
    labels={"what": "Input", "to": "Changed to"},
    wrap=("what", "to"),
    opens=(),
    empty="",
)
SWEEP = TableSpec(
    file_name="sweep",
    label="Cells of the sweep",
    names=("at", "verdict"),
    left=("at", "verdict"),
    labels={"at": "Use"},
    wrap=("why",),
    action="Use this design",
    empty="Not swept yet.",
)
DESIGN_DIFFERENCES = TableSpec(
    file_name="design-differences",
    label="Fields in which the designs differ",
    names=("field", "now"),
    left=("field",),
    labels={"field": "Field", "now": "On the desk"},
    empty="No design is kept, or the one on the desk is the same.",
    sortable=False,
)
COMPARISON = TableSpec(
    file_name="comparison",
    label="The figures that decide",
    names=("quantity", "now", "difference"),
    left=("quantity",),
    labels={"quantity": "Quantity", "now": "On the desk", "difference": "Against the reference"},
    wrap=("now",),
    empty="Keep a design to compare with.",
    sortable=False,
)
LEARNT = TableSpec(
    file_name="learnt",
    label="Before and after the log",
    names=("quantity", "before", "now"),
    left=("quantity",),
    labels={"quantity": "Quantity", "before": "Before", "now": "With what the log says"},
    sortable=False,
)
TO_MEASURE = TableSpec(
    file_name="to-measure",
    label="What to measure first",
    names=("what", "device_hours", "days", "usd", "left"),
    left=("what",),
    labels={
        "what": "Measurement",
        "device_hours": "Device-hours",
        "days": "Removes days",
        "usd": "Removes dollars",
        "left": "Interval left",
    },
    wrap=("what",),
    empty="Not worked out yet.",
    sortable=False,
)
NEAREST_RUNS = TableSpec(
    file_name="nearest-runs",
    label="Nearest published runs",
    names=(
        "model",
        "mfu_shown",
        "predicted_shown",
        "accelerator",
        "devices",
        "stack",
        "plan",
        "differs",
        "source",
    ),
    left=("model", "accelerator", "stack", "plan", "differs", "source"),
    wrap=("plan", "source", "differs"),
    prefix="nearest_runs.",
    opens=("mfu_shown", "predicted_shown"),
    empty="No published run is near this design.",
)
ASSUMED = TableSpec(
    file_name="assumed",
    label="Assumed, because the design does not say",
    names=("field", "value", "why"),
    left=("field", "value", "why"),
    wrap=("field", "value", "why"),
    prefix="assumed.",
    empty="Nothing was assumed.",
)
AVOID = TableSpec(
    file_name="avoid",
    label="What to avoid here",
    names=("what", "cost", "why"),
    left=("what", "why", "cost"),
    wrap=("what", "why", "cost"),
    prefix="avoid.",
    empty="Nothing to warn of.",
)
ROOFLINE = TableSpec(
    file_name="roofline",
    label="Kernels of one step, on the fullest stage",
    names=(
        "kernel",
        "share",
        "seconds",
        "bound",
        "flops",
        "bytes",
        "intensity",
        "achieved_flops",
        "attainable_flops",
    ),
    left=("kernel", "bound"),
    prefix="roofline.",
)
ROOFLINE_LINKS = TableSpec(
    file_name="roofline-links",
    label="Axes of the plan against their links",
    names=("axis", "exposed_s", "time_s", "tier", "bytes", "intensity", "attainable_flops"),
    left=("axis", "tier"),
    quantities={
        "axis": "communication.axis",
        "tier": "communication.tier",
        "bytes": "communication.bytes",
        "intensity": "roofline.intensity",
        "attainable_flops": "roofline.attainable_flops",
        "time_s": "communication.time_s",
        "exposed_s": "communication.exposed_s",
    },
    empty="One device: nothing is sent.",
)
LAUNCH_KIT = TableSpec(
    file_name="launch-kit",
    label="Files of the launch kit",
    names=("file", "lines"),
    left=("file",),
    labels={"file": "File", "lines": "Lines"},
    empty="Not written yet.",
    sortable=False,
)
DOMAINS = TableSpec(
    file_name="domains",
    label="Failure domains: what one loss takes out",
    names=(
        "what",
        "days_lost",
        "usd_lost",
        "events_per_run",
        "each_s",
        "days_between",
        "devices",
        "replicas_stalled",
        "recovers",
    ),
    left=("what", "recovers"),
    wrap=("what", "recovers"),
    prefix="blueprint.domains.",
    extra_lines={
        "Of": "what",
        "At most in this run": "at_most_per_run",
        "Nearest copy": "copy",
        "Spares cover it": "spares_cover",
        "Restart and lost work": "loss_s",
        "Waiting for nodes": "wait_s",
        "Of the wall time": "goodput_cost",
        "Rate from": "rate_source",
    },
)
RISKS = TableSpec(
    file_name="risks",
    label="Risk register",
    names=(
        "risk",
        "expected_usd",
        "impact_days",
        "likelihood",
        "mitigation",
        "left_after_days",
        "owner",
    ),
    left=("risk", "mitigation", "owner"),
    wrap=("risk", "mitigation"),
    prefix="blueprint.risks.",
    extra_lines={
        "Of": "risk",
        "Evidence": "evidence",
        "Likelihood from": "likelihood_from",
        "Remedy costs": "mitigation_usd",
        "In the headline days": "in_headline",
    },
)
RELIABILITY = TableSpec(
    file_name="reliability",
    label="Failures and checkpoints",
    names=("what", "value"),
    left=("what",),
    labels={"what": "Quantity", "value": "Value"},
    wrap=("value",),
    cls="sd-keys",
)
COST = TableSpec(
    file_name="cost",
    label="The bill",
    names=("what", "value"),
    left=("what",),
    labels={"what": "Quantity", "value": "Value"},
    wrap=("value",),
    sortable=False,
    cls="sd-keys",
)
