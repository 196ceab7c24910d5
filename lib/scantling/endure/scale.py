"""The regime beyond 100,000 devices: what whole-job restarts leave, the ladder of measures that
lifts it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ..base.columns import Column
from ..base.records import Record, record
from ..base.units import HOUR_S
from . import elastic, failures, goodput
from .elastic import PARTS
from .first_step import LAZY_INIT_S, communicator_init_s, first_step
from .reliability import Endurance


@record
class Rung(Record):
    """One step of the ladder: the measure, the goodput with it and all before it, what it gained,
    the interval it runs at."""

    measure: str
    goodput: Column
    gain: Column
    interval_s: Column
    mtbf_s: Column
    why: str


NOTICE_S = 60.0  # an explicit failure is seen (ByteRobust s2.2)
FAR = 0.02  # of the restores that need the store: corruption and whole racks
HABIT_S = HOUR_S  # between saves
ASYNC_STALL_S = 6.3  # of an asynchronous save of 7B (PyTorch's async DCP, 2024)
FIND_NODE_S = 600.0  # without automatic localisation
LEMONS = 0.3  # of the failures that lemon nodes cause
NETWORK = 0.06  # of the failures that a lost link or card causes


@record
class Regime:
    """How a job of one size lives with its failures on a rung of the ladder."""

    stall_s: Column  # of a save
    durable_s: Column  # until it can be restored from
    restart_s: Column
    down_s: Column  # until a failure is noticed and localised
    interval_s: Column | None = None  # None: the optimum
    avoided: float = 0.0  # share of the failures that no longer happen
    alone: bool = False  # one replica recovers by itself
    parts: int = 1  # that stop and start alone


class Measure(NamedTuple):
    """A rung: what is done, why it counts so much, and the regime with it."""

    name: str
    why: str
    regime: Regime


def ladder(e: Endurance, devices: int, replicas: int) -> Iterator[Measure]:
    """The measures, each on top of the ones before."""
    load_s = e.first_step_s["load"]
    init_s = communicator_init_s(devices)
    requeue_s = sum(first_step(devices, load_s, "restart").values())
    in_place_s = sum(first_step(devices, load_s, "in-place").values())
    from_memory_s = in_place_s - (1 - FAR) * load_s
    now = Regime(
        stall_s=e.checkpoint_stall_s + e.checkpoint_durable_s,
        durable_s=0.0,
        restart_s=requeue_s,
        down_s=FIND_NODE_S,
        interval_s=HABIT_S,
    )
    yield Measure(
        "hourly synchronous saves, requeue",
        "a save blocks until it is written (5 min in the RSC fleets, arXiv 2410.21680), 10 min to"
        " find the node, requeue 768 s (ByteRobust, Table 7)",
        now,
    )
    now = replace(now, interval_s=None)
    yield Measure("the interval at its optimum", "exact optimum instead of a habit", now)
    stall_s, durable_s = e.checkpoint_stall_s, e.checkpoint_durable_s
    if not durable_s:  # the software waits for the whole save
        stall_s = min(stall_s, ASYNC_STALL_S)
        durable_s = e.checkpoint_stall_s - stall_s
    now = replace(now, stall_s=stall_s, durable_s=durable_s)
    yield Measure(
        "asynchronous saves",
        "6 s of stall with asynchronous DCP (PyTorch 2024), 0.6 s in ByteCheckpoint; minutes until"
        " durable",
        now,
    )
    now = replace(now, down_s=e.detect_s)
    yield Measure(
        "automatic detection and localisation",
        "60 s to see, 2 min to localise (ByteRobust s2.2)",
        now,
    )
    now = replace(now, restart_s=in_place_s)
    yield Measure(
        "restart in place on warm spares",
        "65 s relaunch instead of a requeue (ByteRobust, Table 7)",
        now,
    )
    now = replace(
        now, stall_s=min(stall_s, 0.5), durable_s=min(durable_s, 5.0), restart_s=from_memory_s
    )
    yield Measure(
        "copies in host memory and on a peer",
        "0.34-0.59 s blocked (ByteCheckpoint, Table 8); all but corruption and whole racks restores"
        " in seconds",
        now,
    )
    now = replace(
        now,
        restart_s=from_memory_s - init_s + min(init_s, LAZY_INIT_S),
        down_s=min(e.detect_s, NOTICE_S),
    )
    yield Measure(
        "lazy communicators, hangs seen at once",
        "under 30 s to initialise above 10,000 devices (MegaScale, NSDI'24)",
        now,
    )
    now = replace(now, avoided=LEMONS)
    yield Measure(
        "lemon nodes removed",
        "RSC's 40 lemons caused some 70 % of large jobs' failures; 30 % is taken",
        now,
    )
    yield Measure(
        "one replica recovers, the others go on",
        f"fault-tolerant HSDP (arXiv 2602.00277) with {replicas} replicas",
        replace(now, alone=True),
    )
    now = replace(now, alone=True, avoided=LEMONS + NETWORK)
    yield Measure(
        "lost links and cards routed around",
        "two leaves a card, or R2CCL (arXiv 2512.25059): 35 of Llama 3's 419 stops were a switch or"
        " a cable (arXiv 2407.21783, Table 5), beside the 30 % of the lemons",
        now,
    )
    parts = min(PARTS, replicas)
    yield Measure(
        "replicas that average after local steps",
        f"{parts} parts that train on their own and stop alone: decoupled DiLoCo (arXiv 2604.21428)"
        " prints 0.88 with 8, 0.93 with 16 and 0.27 in step for more than a million simulated"
        " chips; what averages cost in loss is open beyond 12 B parameters",
        replace(now, alone=False, parts=parts),
    )


def measures(e: Endurance, devices: int, replicas: int) -> tuple[Rung, ...]:
    """The ladder from synchronous saves and whole-job restarts to recovery of one replica and one
    device, each rung on top of the ones before.

    e : Endurance of a design; its failures a device, grown to `devices`, its save, detection and
    load times.  replicas : of the rungs where one recovers alone. Restarts are those of
    `first_step` at the size.
    Goodput by the exact closed form (`goodput.ettr`) with each rung's stall, durable time, restart
    and downtime; where one replica recovers, by `elastic.ft_hsdp`, first order: all stand still
    while a failure is noticed and communicators re-form, one replica is away for its whole
    recovery. Meta measured 44 % before and 80 % after that measure (FT-HSDP, arXiv 2602.00277).
    Parts that average after local steps fail `parts` times as seldom and stop alone.
    Spares, planned stops and corruption beyond these are in `reliability.endure`.
    """
    mtbf_s = e.mtbf_s * e.devices / devices * failures.grown(e.devices) / failures.grown(devices)
    rungs: list[Rung] = []
    for measure in ladder(e, devices, replicas):
        m = mtbf_s / (1 - measure.regime.avoided)
        good, interval_s = goodput_of(measure.regime, m, devices, replicas)
        rungs.append(
            Rung(
                measure=measure.name,
                goodput=good,
                gain=good - rungs[-1].goodput if rungs else 0.0,
                interval_s=interval_s,
                mtbf_s=m,
                why=measure.why,
            )
        )
    return tuple(rungs)


def goodput_of(now: Regime, mtbf_s: Column, devices: int, replicas: int) -> tuple[Column, Column]:
    """(goodput, interval between saves [s], 0 where one replica recovers alone) of a regime."""
    if now.alone:
        reform_s = min(communicator_init_s(devices), LAZY_INIT_S)
        good = elastic.ft_hsdp(
            mtbf_s,
            replicas,
            stall_s=now.down_s + reform_s,
            replica_recovery_s=now.down_s + now.restart_s,
        )
        return max(good, 0.0), 0.0  # first order: nothing is left where recoveries overlap
    m = mtbf_s * now.parts
    interval_s = now.interval_s or max(
        goodput.optimum_interval(m, now.stall_s), now.durable_s - now.stall_s
    )
    good = goodput.ettr(
        m,
        now.stall_s,
        interval_s,
        durable_s=now.durable_s,
        restart_s=now.restart_s,
        down_s=now.down_s,
    )
    return good, interval_s
