"""From delivery to the first week: burn-in, straggler screen, numerical smoke test, dashboards,
playbooks, drills, on-call."""

from typing import TypedDict

from scantling.base.records import Known, Record, record
from scantling.base.units import DAY_S

from ..facts import number, source
from ..job_site import Run, Site
from .alerts import Alert, alerts
from .burn_in import Test, burn_in
from .numerical_test import Smoke, smoke
from .playbooks import Playbook, playbooks
from .screen import Screen, screen
from .watch import Drill, OnCall, Surviving, Timeout, collectives, drills, on_call, timeout_gain


class Span(TypedDict):
    """One stage of the roll-out."""

    what: str
    days: float


@record
class Rollout(Record):
    """The roll-out of a design, every threshold worked out from it."""

    run: Run
    burn_in: tuple[Test, ...]
    burn_in_s: float
    burn_in_usd: Known
    dead_on_arrival: float  # nodes to expect
    screen: Screen
    smoke: Smoke
    alerts: tuple[Alert, ...]
    timeout: Timeout
    collectives: Surviving
    playbooks: tuple[Playbook, ...]
    drills: tuple[Drill, ...]
    drills_usd: Known
    on_call: OnCall
    calendar: tuple[Span, ...]
    source: str


def rollout(s: Site) -> Rollout:
    """How to bring a design's site up and keep it so: see `burn_in` and `watch` for the formulas of
    each part. 10 % of machines do not start on arrival (Imbue, R128)."""
    tests = burn_in(s)
    cut = screen(s)
    first = smoke(s)
    staged = drills(s)
    seconds = sum(t.seconds for t in tests)
    drilled = sum(d["expected_s"] for d in staged)
    return Rollout(
        run=s.run,
        burn_in=tests,
        burn_in_s=seconds,
        burn_in_usd=s.run.usd(seconds / DAY_S),
        dead_on_arrival=s.run.nodes * number("R128") / 100,
        screen=cut,
        smoke=first,
        alerts=alerts(s, cut),
        timeout=timeout_gain(s),
        collectives=collectives(s),
        playbooks=playbooks(s, cut),
        drills=staged,
        drills_usd=s.run.usd(drilled / DAY_S),
        on_call=on_call(s),
        calendar=(
            Span(what="burn-in tests", days=seconds / DAY_S),
            Span(what="soak under the real job, repairs as it goes", days=number("R167")),
            Span(what="repairs of what they find, once over", days=s.e.repair_s / DAY_S),
            Span(what="numerical smoke test", days=first.seconds / DAY_S),
            Span(what="drills", days=drilled / DAY_S),
        ),
        source=source("R128", "R167"),
    )
