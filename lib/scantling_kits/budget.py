"""What a run takes: devices, memory, time, money and room, and its checkpoints, as rows of a
table."""

from collections.abc import Iterator
from typing import NamedTuple

from scantling.base.quantities.quantity import band
from scantling.base.show import days, gigabytes, seconds, several, span, usd
from scantling.base.units import DAY_S, HOUR_S
from scantling.catalogue.words import Precision, Sharding
from scantling.verdict.assessment import Assessment

from .launch_plan import LaunchPlan, known
from .quote import md

SMALL_BYTES = 5e7  # of a part of the memory that is not worth its words
MEMORY_NAMES = {"optimizer": "fp32 weights and moments"}
RECOVERIES = {"restart": "from the queue", "in-place": "in place, on spare nodes"}
WAITING = "in place; no node is spare: a lost one is waited for"
REMADE = "the slice of a lost host is made again from the reservation, and all start again on it"


class Row(NamedTuple):
    """A row of a table."""

    name: str
    text: str


def budget(launch: LaunchPlan, wall_s: float | None) -> list[Row]:
    """What the run takes."""
    f = launch.figures
    return [
        Row("devices", devices(launch)),
        Row("memory of the fullest device", memory(launch)),
        Row(
            "step",
            f"{seconds(launch.step_s)}, MFU {f.mfu:.1%} (80 % band {f.mfu_low:.1%} to "
            f"{f.mfu_high:.1%})",
        ),
        *length(launch, wall_s),
        *request(launch),
        Row(
            "checkpoints",
            f"{gigabytes(f.checkpoint_bytes)} a copy, one every {span(launch.save_s)}; kept: "
            f"{copies(launch)}",
        ),
    ]


def devices(launch: LaunchPlan) -> str:
    """Devices, nodes and spares."""
    f = launch.figures
    idle = launch.cluster.devices - launch.devices
    idle_text = f" ({idle:,} of the design stay idle)" if idle else ""
    spares = several(known(f.spares), "spare node")
    if launch.kin.torus:
        spares = f"{several(launch.slices, 'slice')}; {spares} in the reservation, none in a slice"
    return (
        f"{launch.devices:,} {md(launch.cluster.accelerator.name)}{idle_text} on "
        f"{several(launch.nodes, 'node')}, {spares} (recommended {f.spares_recommended})"
    )


def memory(launch: LaunchPlan) -> str:
    """The parts of the memory."""
    m = launch.memory
    parts = ", ".join(
        f"{MEMORY_NAMES.get(part, part)} {gigabytes(size)}"
        for part, size in m.parts.items()
        if size > SMALL_BYTES
    )
    return f"{gigabytes(m.total)} of {gigabytes(m.capacity)}: {parts}"


def length(launch: LaunchPlan, wall_s: float | None) -> Iterator[Row]:
    """Time and money, where the design names tokens."""
    f = launch.figures
    if not wall_s:
        own = "the configuration runs a million steps, set your own"
        if launch.framework.has_trainer:
            own = "set STEPS"
        yield Row("length", f"the design names no tokens: {own}")
        return
    phases = len(launch.assessment.phases)
    whole = f", for all {phases} phases" if phases > 1 else ""
    low, high = span(known(f.days_low) * DAY_S), span(known(f.days_high) * DAY_S)
    undisturbed = f"{span(wall_s)} ({low} to {high}), goodput {f.goodput:.1%}"
    yield Row("likely, with failures and risks", likely_run(launch.assessment) + whole)
    yield Row("wall time, undisturbed by risks", undisturbed + whole)
    if phases > 1:
        yield Row("of which this phase", span(launch.time_share * wall_s))
    hours = launch.devices * launch.time_share * wall_s / HOUR_S
    yield Row(
        f"device hours in {'this phase' if phases > 1 else 'it'}", f"{hours:,.0f}, without spares"
    )
    if f.cost_usd:
        yield Row("cost, undisturbed by risks", usd(f.cost_usd) + whole)


def likely_run(assessment: Assessment) -> str:
    """Days and dollars that lead everywhere, with their 80 % bands."""
    likely = assessment.likely
    text = f"{days(known(likely.days))} ({band('days', likely.days_low, likely.days_high)})"
    if likely.cost_usd is None:
        return text
    spread = band("cost_usd", likely.cost_usd_low, likely.cost_usd_high)
    return f"{text}, {usd(likely.cost_usd)} ({spread})"


def request(launch: LaunchPlan) -> Iterator[Row]:
    """What the scheduler is asked for."""
    nodes = launch.nodes + launch.spares
    if launch.on == "slurm":
        again = "restarts in place"
        if launch.by_queue:
            again = "goes back to the queue"
        restart = span(launch.survival.restart_s)
        gpus = f"--gpus-per-node={launch.per_node} " if launch.gpu else ""
        yield Row(
            "Slurm request",
            f"--nodes={nodes} {gpus}--exclusive: {launch.nodes} that "
            f"train{spares(launch)}; a failure {again} ({restart} counted on)",
        )
    if launch.on == "kubernetes":
        yield Row(
            "Kubernetes request",
            f"{launch.nodes} pods of {launch.per_node} devices, quota for {nodes}",
        )


def spares(launch: LaunchPlan) -> str:
    """Nodes that stand by, and where."""
    size, group = launch.segment_nodes, launch.segment_group
    if not launch.spares:
        return racked_alone(launch) if size > 1 else ""
    out = f" and {several(launch.spares, 'spare')}"
    if size > 1:
        replaced = "in its rack" if group > size else "with its whole segment"
        out += (
            f", in segments of {group} within one NVLink rack, of which {size} train: a lost node "
            f"is replaced {replaced}"
        )
    counted = int(known(launch.figures.spares))
    if launch.spares != counted:
        out += f"; the cost counts {counted} spare nodes, for all nodes of the cluster"
    return out


def racked_alone(launch: LaunchPlan) -> str:
    """Segments of racks without a node to spare, and what their racks have left."""
    k = launch.cluster
    size = launch.segment_nodes
    rack = max(k.accelerator.scale_up_domain_max, k.scale_up_domain) // k.devices_per_node
    out = (
        f", in segments of {size} within one NVLink rack, none to spare: a lost node holds the run "
        "up until its segment is whole again"
    )
    if rack <= size:
        return out
    left = several(rack - size, "node")
    return f"{out}; a rack has {left} beside it, which stand by once reliability.spares asks"


def copies(launch: LaunchPlan) -> str:
    """What becomes of old checkpoints."""
    return launch.framework.keep(launch.keep, launch.survival.keep_days)


def recovery(launch: LaunchPlan) -> str:
    """How the run goes on after a failure."""
    way = launch.survival.recovery
    if launch.kin.torus:
        return REMADE
    return WAITING if way == "in-place" and not launch.spares else RECOVERIES[way]


def checkpoints(launch: LaunchPlan) -> list[Row]:
    """Format, interval, size, cost and room of the checkpoints."""
    f = launch.figures
    saves = launch.framework.saves
    shards = launch.plan.sharding in (Sharding.ZERO2, Sharding.ZERO3)
    return [
        Row("format", saves.of_shards if shards and saves.of_shards else saves.format),
        Row("where", f"`RUN_DIR`: {saves.place}"),
        Row("frequency", frequency(launch)),
        *tiers(launch),
        Row("recovery", recovery(launch)),
        Row(
            "size", f"{gigabytes(f.checkpoint_bytes)} a copy: weights, fp32 master copy and moments"
        ),
        Row("asynchronous", asynchronous(launch)),
        Row("overhead", overhead(launch)),
        Row("kept", copies(launch)),
        Row("room", room(launch)),
        Row("state", state(launch)),
    ]


def frequency(launch: LaunchPlan) -> str:
    """Interval between saves, and the optimum."""
    f = launch.figures
    nearer = " of the nearest copies" if len(launch.tiers) > 1 else ""
    return (
        f"every {launch.save_steps:,} steps, {span(launch.save_s)}; the optimum{nearer} for one "
        f"failure every {span(f.mtbf_s)} is {span(f.checkpoint_interval_s)} (Young 1974, Daly 2006)"
    )


def tiers(launch: LaunchPlan) -> Iterator[Row]:
    """Where copies live, where that is more than one place."""
    if len(launch.tiers) == 1:
        return
    places = ", ".join(f"{tier['tier']} every {span(tier['every_s'])}" for tier in launch.tiers)
    alone = "".join(
        f" and the only one here: {gap.why}"
        for gap in launch.gaps
        if gap.field == "checkpoint.tiers"
    )
    yield Row("tiers", f"{places}; RUN_DIR is {launch.tiers[-1]['tier']}{alone}")


def asynchronous(launch: LaunchPlan) -> str:
    """How long a save holds up training."""
    stall, whole = span(launch.survival.stall_s), span(launch.survival.whole_s)
    if not launch.framework.saves_in_background:
        return f"no: training waits {stall}, until the files are written"
    return f"training goes on after {stall}; the copy is durable after {whole}"


def overhead(launch: LaunchPlan) -> str:
    """Share of the wall time for which saves hold up training."""
    return f"{100 * known(launch.figures.checkpoint_overhead):.2f} % of the wall time"


def room(launch: LaunchPlan) -> str:
    """Bytes of all copies."""
    together = launch.keep + 1
    size = known(launch.figures.checkpoint_bytes) / 1e12
    return (
        f"{together * size:,.2f} TB for {together} copies: {launch.keep} kept and the one being "
        "written; what is copied elsewhere besides"
    )


def state(launch: LaunchPlan) -> str:
    """What a checkpoint holds."""
    framework = launch.framework
    position = ", the data loader's state"
    if framework.reads_by_position or framework.runtime == "jax":
        position = " (which is the position in the data)"
    scale = ", loss scale" if launch.phase.precision == Precision.FP16 else ""
    return (
        f"weights, optimizer states, step{position}, learning-rate schedule (a function of the "
        f"step), random state of every rank{scale}"
    )
