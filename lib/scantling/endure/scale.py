"""The regime beyond 100,000 devices: what whole-job restarts leave, the ladder of measures that
lifts it."""

from ..base.records import Record, record
from ..base.words import table
from . import elastic, failures, goodput
from .first_step import communicator_init_s, first_step


@record
class Rung(Record):
    """One step of the ladder: the measure, the goodput with it and all before it, what it gained,
    the interval it runs at."""

    measure: str
    goodput: float
    gain: float
    interval_s: float
    mtbf_s: float
    why: str


LAZY_INIT_S = 30.0  # communicators above 10,000 devices once made lazily (MegaScale, NSDI'24)
NOTICE_S = 60.0  # an explicit failure is seen (ByteRobust s2.2)
FAR = 0.02  # of the restores that need the store: corruption and whole racks


def measures(e, devices: int, replicas: int) -> tuple:
    """The ladder from synchronous saves and whole-job restarts to recovery of one replica and one
    device, each rung on top of the ones before.

    e : Endurance of a design; its failures a device, grown to `devices`, its save, detection and
    load times.  replicas : of the rungs where one recovers alone. Restarts are those of
    `first_step` at the size.
    Goodput by the exact closed form (`goodput.ettr`) with each rung's stall, durable time, restart
    and downtime; where one replica recovers, by
    `elastic.ft_hsdp`, first order: all stand still while a failure is noticed and communicators
    re-form, one replica is away for its whole
    recovery. Meta measured 44 % before and 80 % after that measure (FT-HSDP, arXiv 2602.00277).
    Parts that average after local steps fail `parts` times as seldom and stop alone.
    Spares, planned stops and corruption beyond these are in `reliability.endure`.
    """
    mtbf = e.mtbf_s * e.devices / devices * failures.grown(e.devices) / failures.grown(devices)
    load = e.first_step_s["load"]
    init = communicator_init_s(devices)
    lazy = min(init, LAZY_INIT_S)
    requeue, in_place = (
        sum(first_step(devices, load, mode).values()) for mode in ("restart", "in-place")
    )
    from_memory = in_place - (1 - FAR) * load
    named = {
        "stall": e.checkpoint_stall_s,
        "durable": e.checkpoint_durable_s,
        "localise": e.detect_s,
        "short stall": min(e.checkpoint_stall_s, 0.5),
        "short durable": min(e.checkpoint_durable_s, 5.0),
        "noticed": min(e.detect_s, NOTICE_S),
        "requeue": requeue,
        "in place": in_place,
        "from memory": from_memory,
        "lazy": from_memory - init + lazy,
    }
    now = {}
    rungs = []
    for step in table(__file__, "scale"):
        now |= {k: named.get(v, v) for k, v in step["sets"].items()}
        stall, durable, restart, down = (now[k] for k in ("stall", "durable", "restart", "down"))
        m = mtbf / (1 - now["lemons"])
        parts = min(now["parts"], replicas)
        tau = 0.0
        if now["alone"]:
            good = elastic.ft_hsdp(
                m, replicas, stall_s=down + lazy, replica_recovery_s=down + restart
            )
            good = max(good, 0.0)  # first order: nothing is left where recoveries overlap
        else:
            tau = now["interval"] or max(
                goodput.optimum_interval(m * parts, stall), durable - stall
            )
            good = goodput.ettr(
                m * parts, stall, tau, durable_s=durable, restart_s=restart, down_s=down
            )
        rungs.append(
            Rung(
                measure=step["measure"],
                goodput=good,
                gain=good - rungs[-1].goodput if rungs else 0.0,
                interval_s=tau,
                mtbf_s=m,
                why=step["why"].format(replicas=replicas, parts=parts),
            )
        )
    return tuple(rungs)
