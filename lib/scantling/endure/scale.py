"""The regime beyond 100,000 devices: what whole-job restarts leave, the ladder of measures that
lifts it."""

from __future__ import annotations

from dataclasses import dataclass

from .. import catalogue
from . import elastic, failures, goodput
from .checkpoint import LOAD_S
from .reliability import communicator_init_s


@dataclass(
    frozen=True,
    kw_only=True,
)
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


RELAUNCH_S, REQUEUE_S = (
    65.0,
    768.0,
)  # hot update and requeue at 1,024 machines of 16 (ByteRobust, arXiv 2509.16293, Table 7)
LAZY_INIT_S = 30.0  # communicators above 10,000 devices once made lazily (MegaScale, NSDI'24)
NOTICE_S = 60.0  # an explicit failure is seen (ByteRobust s2.2)
FAR = 0.02  # of the restores that need the store: corruption and whole racks


def measures(
    devices=98_304,
    preset="bad",
    replicas=12,
    *,
    endurance=None,
) -> tuple[Rung, ...]:
    """The ladder from synchronous saves and whole-job restarts to replica-level recovery, each rung
    on top of the ones before.

    devices, preset : set the MTBF (98,304 at RSC-1's rate: 18 min); with `endurance` (an Endurance
    of one design) its MTBF, save,
    detection and load times stand in for the published ones.  replicas : of the last rung.
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
        m0, save, stall, durable, localise, load = (
            failures.job_mtbf_s(catalogue.failure_preset(preset).per_1000_node_days, devices),
            300.0,
            5.0,
            120.0,
            180.0,
            LOAD_S,
        )
    else:
        devices, m0, save, stall, durable, localise, load = (
            e.devices,
            e.mtbf_s,
            e.checkpoint_durable_s,
            e.checkpoint_stall_s,
            e.checkpoint_durable_s,
            e.detect_s,
            LOAD_S,
        )
    init = float(communicator_init_s(devices))
    steps = (
        (
            "synchronous saves every hour, the job requeued",
            dict(
                stall=save,
                durable=0.0,
                restart=REQUEUE_S + init + load,
                down=600.0,
                interval=3600.0,
            ),
            (
                "a save blocks until it is written (5 min in the RSC fleets, arXiv "
                "2410.21680), 10 min to find the node, requeue 768 s (ByteRobust, Table 7)"
            ),
        ),
        ("the interval at its optimum", dict(interval=None), "exact optimum instead of a habit"),
        (
            "asynchronous saves",
            dict(
                stall=stall,
                durable=durable,
            ),
            (
                "6 s of stall with asynchronous DCP (PyTorch 2024), 0.6 s in "
                "ByteCheckpoint; minutes until durable"
            ),
        ),
        (
            "automatic detection and localisation",
            dict(down=localise),
            "60 s to see, 2 min to localise (ByteRobust s2.2)",
        ),
        (
            "restart in place on warm spares",
            dict(restart=RELAUNCH_S + init + load),
            "65 s relaunch instead of a requeue (ByteRobust, Table 7)",
        ),
        (
            "copies in host memory and on a peer",
            dict(
                stall=min(stall, 0.5),
                durable=min(durable, 5.0),
                restart=RELAUNCH_S + init + FAR * load,
            ),
            (
                "0.34-0.59 s blocked (ByteCheckpoint, Table 8); all but corruption and "
                "whole racks restores in seconds"
            ),
        ),
        (
            "lazy communicators, hangs seen at once",
            dict(
                restart=RELAUNCH_S + min(init, LAZY_INIT_S) + FAR * load,
                down=min(localise, NOTICE_S),
            ),
            "under 30 s to initialise above 10,000 devices (MegaScale, NSDI'24)",
        ),
        (
            "lemon nodes removed",
            dict(lemons=0.3),
            "RSC's 40 lemons caused some 70 % of large jobs' failures; 30 % is taken",
        ),
        (
            "one replica recovers, the others go on",
            dict(alone=True),
            f"fault-tolerant HSDP (arXiv 2602.00277) with {replicas} replicas",
        ),
    )
    w, rungs, before = (
        dict(
            interval=None,
            lemons=0.0,
            alone=False,
        ),
        [],
        None,
    )
    for name, change, why in steps:
        w |= change
        m = float(m0) / (1 - w["lemons"])
        if w["alone"]:
            good, tau = (
                float(
                    elastic.ft_hsdp(
                        m,
                        replicas,
                        stall_s=w["down"] + min(init, LAZY_INIT_S),
                        replica_recovery_s=w["down"] + w["restart"],
                    )
                ),
                0.0,
            )
        else:
            tau = float(
                w["interval"]
                or max(goodput.optimum_interval(m, w["stall"]), w["durable"] - w["stall"])
            )
            good = float(
                goodput.ettr(
                    m,
                    w["stall"],
                    tau,
                    durable_s=w["durable"],
                    restart_s=w["restart"],
                    down_s=w["down"],
                )
            )
        rungs.append(
            Rung(
                measure=name,
                goodput=good,
                gain=good - (good if before is None else before),
                interval_s=tau,
                mtbf_s=m,
                why=why,
            )
        )
        before = good
    return tuple(rungs)
