"""From delivery to the first week: burn-in, straggler screen, numerical smoke test, dashboards,
playbooks, drills, on-call."""

from scantling.base.records import Known, Record, Rows, record
from scantling.base.units import DAY_S

from ..site import Run, Site
from ..texts import columns, number, source
from .burn_in import Screen, Test, burn_in, screen, smoke
from .watch import Alert, Playbook, alerts, collectives, drills, on_call, playbooks, timeout_gain


@record
class Rollout(Record):
    """The roll-out of a design, every threshold worked out from it."""

    run: Run
    burn_in: tuple[Test, ...]
    burn_in_s: float
    burn_in_usd: Known
    dead_on_arrival: float  # nodes to expect
    screen: Screen
    smoke: dict
    alerts: tuple[Alert, ...]
    timeout: dict
    collectives: dict
    playbooks: tuple[Playbook, ...]
    drills: Rows
    drills_usd: Known
    on_call: dict
    calendar: Rows  # {what, days}
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
    calendar = {
        "burn-in tests": seconds / DAY_S,
        "soak under the real job, repairs as it goes": number("R167"),
        "repairs of what they find, once over": s.e.repair_s / DAY_S,
        "numerical smoke test": first["seconds"] / DAY_S,
        "drills": drilled / DAY_S,
    }
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
        calendar=columns(what=calendar, days=calendar.values()),
        source=source("R128", "R167"),
    )
