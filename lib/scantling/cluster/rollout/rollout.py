"""From delivery to the first week: burn-in, straggler screen, numerical smoke test, dashboards,
playbooks, drills, on-call."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.records import Record
from ...base.units import DAY_S
from ..record import Run, number, run_of, source
from .burn_in import Screen, Test, burn_in, screen, smoke
from .watch import Alert, Playbook, alerts, collectives, drills, on_call, playbooks, timeout_gain

ARRIVE_DEAD = ("R128",)  # 10 % of machines would not start on arrival (Imbue)


@dataclass(frozen=True)
class Rollout(Record):
    """The roll-out of a design, every threshold worked out from it."""

    run: Run
    burn_in: tuple[Test, ...]
    burn_in_s: float
    burn_in_usd: float | None
    dead_on_arrival: float  # nodes to expect
    screen: Screen
    smoke: dict
    alerts: tuple[Alert, ...]
    timeout: dict
    collectives: dict
    playbooks: tuple[Playbook, ...]
    drills: tuple[dict, ...]
    drills_usd: float | None
    on_call: dict
    calendar: tuple[dict, ...]  # {what, days}
    source: str


def rollout(assessment) -> Rollout:
    """How to bring a design's site up and keep it so: see `rollout_tests` and `rollout_watch` for
    the formulas of each part."""
    run = run_of(assessment)
    tests, cut = burn_in(assessment, run), screen(assessment, run)
    seconds = sum(t.seconds for t in tests)
    first, staged = smoke(assessment, run), drills(assessment)
    drilled = sum(d["expected_s"] for d in staged)
    costs = [t.usd for t in tests]
    calendar = (
        dict(what="burn-in tests", days=seconds / DAY_S),
        dict(what="soak under the real job, repairs as it goes", days=number("R167")),
        dict(
            what="repairs of what they find, once over",
            days=float(assessment.endurance.repair_s) / DAY_S,
        ),
        dict(what="numerical smoke test", days=first["seconds"] / DAY_S),
        dict(what="drills", days=drilled / DAY_S),
    )
    return Rollout(
        run,
        tests,
        seconds,
        None if None in costs else sum(costs),
        run.nodes * number("R128") / 100,
        cut,
        first,
        alerts(assessment, run, cut),
        timeout_gain(assessment),
        collectives(assessment, run),
        playbooks(assessment, run, cut),
        staged,
        run.usd(drilled / DAY_S),
        on_call(assessment, run),
        calendar,
        source(*ARRIVE_DEAD, "R167"),
    )
