"""What is likely to go wrong here first: a judgement of how likely each trouble is on this design,
what is seen of it, and what to do.

The likelihoods have no unit: they order the troubles of one design, 1 is usual. A trouble that
cannot be on a design is not there.
"""

from collections.abc import Iterator

from scantling.base.records import record
from scantling.base.show import gigabytes, span
from scantling.catalogue.words import Precision, Recompute

from .launch_plan import LaunchPlan, known
from .values import Traffic

STATES = ("weights", "gradients", "optimizer", "activations")
LOW_PRECISION = ("fp8", "mxfp", "nvfp4")  # how the names of such recipes begin
NOTICED = 0.05  # share of the step above which exposed traffic is a trouble of its own


@record
class Trouble:
    """One trouble."""

    likelihood: float  # of no unit: judgement, 1 is usual
    name: str
    text: str  # what is seen, what to check and what to do


def troubles(launch: LaunchPlan) -> list[Trouble]:
    """The troubles of a design, the likely first."""
    found = [
        out_of_memory(launch),
        *collective_timeout(launch),
        *slow_traffic(launch),
        stragglers(launch),
        *overflow(launch),
        *low_precision(launch),
        slow_saves(launch),
        *uneven_experts(launch),
        loss_spikes(launch),
    ]
    return sorted(found, key=lambda trouble: -trouble.likelihood)


def memory_likelihood(fill: float, moe: bool) -> float:
    """How likely a device runs out of memory: 0.5, and 0.8 more for each tenth of the memory that
    the plan fills above 70 %; experts' tokens come and go in memory, 0.5 more. Judgement."""
    return 0.5 + 8 * max(0.0, fill - 0.7) + (0.5 if moe else 0.0)


def timeout_likelihood(devices: int) -> float:
    """How likely a collective times out: 1.5, and one more for each 4,096 devices, up to two.
    Judgement."""
    return 1.5 + min(devices / 4096, 2)


def traffic_likelihood(exposed: float) -> float:
    """How likely traffic slows the steps, of which it is exposed for a share: 1.2, and a half more
    for each tenth of the step. Judgement."""
    return 1.2 + 5 * exposed


def straggler_likelihood(nodes: int) -> float:
    """How likely a slow device slows all: 1.1, and one more at 512 nodes. Judgement."""
    return 1.1 + min(nodes / 512, 1)


def saves_likelihood(stall_s: float, interval_s: float) -> float:
    """How likely saves are slow: 1, and 0.2 more for each hundredth of the interval between them
    that one holds up training. Judgement."""
    return 1.0 + 20 * stall_s / max(interval_s, 1.0)


OVERFLOW_LIKELIHOOD = 2.6  # under fp16: judgement
LOW_PRECISION_LIKELIHOOD = 1.6  # of a loss apart from that in 16 bit: judgement
EXPERTS_LIKELIHOOD = 1.4  # of a fullest expert above twice the mean: judgement
SPIKES_LIKELIHOOD = 0.9  # judgement


def out_of_memory(launch: LaunchPlan) -> Trouble:
    """A device runs out of memory."""
    fill = launch.memory.fill
    states = {part: size for part, size in launch.memory.parts.items() if part in STATES}
    largest = sorted(states, key=lambda part: states[part])[-1]
    if launch.framework.runtime == "torch":
        when = (
            "In step 1 it is activations, in step 2 the optimizer's states, later fragmentation (a "
            "growing gap between reserved and allocated in the memory snapshot)."
        )
    else:
        when = (
            "XLA names the largest buffers at compile time: the sizes in its message are those to "
            "look at."
        )
    return Trouble(
        likelihood=memory_likelihood(fill, launch.model.is_moe),
        name="Out of memory",
        text=f"The plan fills {fill:.0%} of the usable memory, {largest} most of it "
        f"({gigabytes(states[largest])}). In this order: {'; '.join(memory_steps(launch))}: it "
        f"costs time in every step. {when}",
    )


def memory_steps(launch: LaunchPlan) -> Iterator[str]:
    """What makes room, the cheapest first."""
    p = launch.plan
    framework = launch.framework
    knobs = framework.knobs
    if p.micro_batch > 1:
        yield f"halve the micro-batch of {p.micro_batch} ({knobs.micro_batch})"
    if framework.has_trainer and launch.does.eager_tp > 0:
        yield "COMPILE=1"
    if p.recompute != Recompute.FULL:
        yield f"recompute more ({knobs.recompute}, {p.recompute} now)"
    yield f"split further ({knobs.spill})"
    if p.sharding in knobs.sharding and p.pp == 1 and p.dp * p.cp > 1:
        yield f"shard more ({knobs.sharding[p.sharding]}, {p.sharding} now)"
    yield f"offload last ({knobs.offload})"


def collective_timeout(launch: LaunchPlan) -> Iterator[Trouble]:
    """A collective that some ranks do not enter."""
    if launch.nodes == 1:
        return
    if launch.framework.runtime == "torch":
        cause = (
            "The flight recorder names the first collective that some ranks did not enter: the "
            "rank that is missing there is the cause, the others only waited. Look at its last "
            "kernel, its host's log, its link."
        )
    else:
        cause = (
            "Every host logs `barrier` or `heartbeat` time-outs: the host that logs nothing is the "
            "cause. Look at it first; a slice restarts as a whole."
        )
    every = span(launch.figures.mtbf_s)
    yield Trouble(
        likelihood=timeout_likelihood(launch.devices),
        name="Collective time-out",
        text=f"A failure every {every} is expected on this many devices. {cause}",
    )


def most_exposed(launch: LaunchPlan) -> Traffic | None:
    """The axis whose traffic is exposed longest; of equals the last."""
    rows = sorted(launch.communication, key=lambda row: row["exposed_s"])
    return rows[-1] if rows else None


def slow_traffic(launch: LaunchPlan) -> Iterator[Trouble]:
    """Traffic that left the tier that the plan counts on."""
    worst = most_exposed(launch)
    if worst is None or worst["exposed_s"] / launch.step_s <= NOTICED:
        return
    if launch.chip == "tpu":
        check = "the collectives' rows of an xprof trace"
    elif launch.nodes > 1:
        check = "NCCL_DEBUG=INFO for one start: rings, NICs, GPUDirect"
    else:
        check = "`nvidia-smi topo -m`: fast links between all pairs"
    yield Trouble(
        likelihood=traffic_likelihood(worst["exposed_s"] / launch.step_s),
        name=f"Slow steps: {worst['axis']} traffic",
        text=f"{span(worst['exposed_s'])} of {span(launch.step_s)} is exposed {worst['axis']} "
        "communication already. If it is more, it left the tier that the plan counts on "
        f"({check}).",
    )


def stragglers(launch: LaunchPlan) -> Trouble:
    """One slow device."""
    return Trouble(
        likelihood=straggler_likelihood(launch.nodes),
        name="Stragglers",
        text=f"One slow device slows all. {launch.framework.stragglers}; a node that is slow twice "
        "is drained, not restarted. Heat and power caps come first, then a link at half its width.",
    )


def overflow(launch: LaunchPlan) -> Iterator[Trouble]:
    """Gradients beyond the range of fp16."""
    if launch.phase.precision == Precision.FP16:
        yield Trouble(
            likelihood=OVERFLOW_LIKELIHOOD,
            name="FP16 overflow",
            text="The loss scale halves on every overflow and is kept in the checkpoint; a few "
            "skipped steps at the start are normal. A scale below 1 means that the gradients, not "
            "the scale, are wrong: lower the rate, clip, look for a bad batch.",
        )


def low_precision(launch: LaunchPlan) -> Iterator[Trouble]:
    """A loss that low precision moves."""
    if launch.phase.precision.startswith(LOW_PRECISION):
        yield Trouble(
            likelihood=LOW_PRECISION_LIKELIHOOD,
            name="Loss apart from 16 bit",
            text="Run 1,000 steps in bf16 beside it. First and last layers in bf16 cure most "
            "divergences; attention and the head stay in bf16 anyway.",
        )


def slow_saves(launch: LaunchPlan) -> Trouble:
    """Checkpoints that hold up training."""
    stall_s = launch.survival.stall_s
    folder = "stripe the folder, "
    if launch.chip == "tpu":
        folder = "use a bucket in the slice's region, "
    return Trouble(
        likelihood=saves_likelihood(stall_s, known(launch.figures.checkpoint_interval_s)),
        name="Slow saves",
        text=f"A save should hold up training for {span(stall_s)} and be durable after "
        f"{span(launch.survival.whole_s)}. Slower: count the writers, {folder}look whether the "
        "save before it was still being written, and save less often before anything else.",
    )


def uneven_experts(launch: LaunchPlan) -> Iterator[Trouble]:
    """Experts that get more tokens than others."""
    if launch.model.is_moe and not launch.routes_at_random:
        yield Trouble(
            likelihood=EXPERTS_LIKELIHOOD,
            name="Uneven experts",
            text="Watch the share of tokens by expert: above twice the mean, memory and step time "
            "both grow. Raise the balancing loss before adding capacity.",
        )


def loss_spikes(launch: LaunchPlan) -> Trouble:
    """A loss that jumps."""
    return Trouble(
        likelihood=SPIKES_LIKELIHOOD,
        name="Loss spikes",
        text="Go back to the checkpoint before it and leave the batches in between out: "
        f"{launch.framework.skip}.",
    )
