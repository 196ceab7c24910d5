"""The regime beyond 100,000 devices: what whole-job restarts leave, the ladder of measures that
lifts it."""

from __future__ import annotations

from .. import catalogue
from ..base.records import record
from ..base.words import table
from . import elastic, failures, goodput
from .checkpoint import LOAD_S
from .first_step import PARTS, communicator_init_s, part_s


@record
class Rung:
    """One step of the ladder: the measure, the goodput with it and all before it, what it gained,
    the interval it runs at."""

    measure: str
    goodput: float
    gain: float
    interval_s: float
    mtbf_s: float
    why: str

    def as_dict(self) -> dict:
        return dict(self.__dict__)


RELAUNCH_S = float(PARTS["imports"]["seconds"])
LAZY_INIT_S = 30.0  # communicators above 10,000 devices once made lazily (MegaScale, NSDI'24)
NOTICE_S = 60.0  # an explicit failure is seen (ByteRobust s2.2)
FAR = 0.02  # of the restores that need the store: corruption and whole racks


def measures(
    devices=None,
    preset="bad",
    replicas=12,
    *,
    endurance=None,
) -> tuple[Rung, ...]:
    """The ladder from synchronous saves and whole-job restarts to replica-level recovery, each rung
    on top of the ones before.

    devices, preset : set the MTBF (98,304, the default, at RSC-1's rate: 18 min); with `endurance`
    (an Endurance of one design) its failures a device, grown to `devices` (its own by default), its
    save, detection and load times stand in for the published ones.  replicas : of the last rung.
    Goodput by the exact closed form (`goodput.ettr`) with each rung's stall, durable time, restart
    and downtime; the last rung by
    `elastic.ft_hsdp`, first order: all stand still while a failure is noticed and communicators
    re-form, one replica is away for its whole
    recovery. Meta measured 44 % before and 80 % after that measure (FT-HSDP, arXiv 2602.00277).
    Detection, spares, planned stops and
    corruption beyond these are in `reliability.endure`.
    """
    e = endurance
    if e is None:
        devices = devices or 98_304
        mtbf, save, stall, durable, localise = (
            failures.job_mtbf_s(catalogue.failure_preset(preset).per_1000_node_days, devices),
            300,
            5,
            120,
            180,
        )
    else:
        devices, localise = devices or int(e.devices), e.detect_s
        mtbf = e.mtbf_s * e.devices / devices * failures.grown(e.devices) / failures.grown(devices)
        save = durable = e.checkpoint_durable_s
        stall = e.checkpoint_stall_s
    init = float(communicator_init_s(devices))
    lazy = min(init, LAZY_INIT_S)
    named = {
        "save": save,
        "stall": stall,
        "durable": durable,
        "localise": localise,
        "short stall": min(stall, 0.5),
        "short durable": min(durable, 5.0),
        "noticed": min(localise, NOTICE_S),
        "requeue": float(part_s("scheduler", devices)) + RELAUNCH_S + init + LOAD_S,
        "in place": RELAUNCH_S + init + LOAD_S,
        "from memory": RELAUNCH_S + init + FAR * LOAD_S,
        "lazy": RELAUNCH_S + lazy + FAR * LOAD_S,
    }
    now, rungs = {}, []
    for step in table(__file__, "scale"):
        now |= {k: named.get(v, v) for k, v in step["sets"].items()}
        stall, durable, restart, down = (now[k] for k in ("stall", "durable", "restart", "down"))
        m, tau = float(mtbf) / (1 - now["lemons"]), 0.0
        if now["alone"]:
            good = elastic.ft_hsdp(
                m,
                replicas,
                stall_s=down + lazy,
                replica_recovery_s=down + restart,
            )
            good = max(good, 0.0)  # first order: nothing is left where recoveries overlap
        else:
            tau = now["interval"] or max(goodput.optimum_interval(m, stall), durable - stall)
            good = goodput.ettr(
                m,
                stall,
                tau,
                durable_s=durable,
                restart_s=restart,
                down_s=down,
            )
        rungs.append(
            Rung(
                measure=step["measure"],
                goodput=float(good),
                gain=float(good) - rungs[-1].goodput if rungs else 0.0,
                interval_s=float(tau),
                mtbf_s=m,
                why=step["why"].format(replicas=replicas),
            )
        )
    return tuple(rungs)
