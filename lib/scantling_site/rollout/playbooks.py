"""What to do when training goes wrong: loss spike, silent corruption, creeping step time."""

from math import ceil, log2

from scantling.base import show
from scantling.base.records import Known, Lines, Record, record
from scantling.base.units import DAY_S

from ..constants import CONSTANTS
from ..facts import number, source
from ..job_site import Site
from .screen import Screen


@record
class Playbook(Record):
    """What to do when training goes wrong in one way; seconds and dollars of one occurrence,
    occurrences per run."""

    id: str
    signals: Lines
    steps: Lines
    seconds: float
    usd: Known
    per_run: Known
    source: str


def playbooks(s: Site, cut: Screen) -> tuple[Playbook, ...]:
    """Loss spike, silent corruption, creeping step time: signals, steps in order, what one costs
    here, how many to expect."""
    return loss_spike(s), silent_corruption(s), creeping_step_time(s, cut)


def spikes(steps: float) -> tuple[float, float]:
    """(chance that a run is of the kind that has to rewind, rewinds of such a run).

    Rewinds: PaLM 540B's 20 in 255,000 steps, fewer in a shorter run. Chance by the rule of
    succession over three published runs of which one rewound: (1 + 1) / (3 + 2); Llama 3 405B and
    DeepSeek-V3 report none.
    """
    runs = [number(x) for x in ("R148", "R165", "R166")]
    chance = (sum(x > 0 for x in runs) + 1) / (len(runs) + 2)
    return chance, runs[0] * min(1.0, steps / number("R149"))


def steps_back() -> int:
    """Steps that a rewind goes back before the spike, as PaLM did."""
    return int(number("R150"))


def loss_spike_s(s: Site) -> float:
    """Seconds that one rewind costs: the steps back, half a period to the copy before them, a
    restart."""
    return steps_back() * s.step_s + s.period_s / 2 + s.e.restart_s


def loss_spike(s: Site) -> Playbook:
    """Rewind, skip the batches around the spike, go on."""
    step = s.step_s
    back = steps_back()
    skip = f"{number('R151'):.0f} to {number('R152'):.0f} batches"
    history = ceil((back + 60) * step / s.period_s) + 1
    seconds = loss_spike_s(s)
    chance, count = spikes(s.useful_s / step)
    return Playbook(
        id="loss spike",
        signals=(
            f"loss or gradient norm beyond the alert for 3 steps ({show.seconds(3 * step)})",
            "clipping has not brought it back within 60 steps",
        ),
        steps=(
            f"stop; keep the state, and the {skip} around the spike, for the post-mortem",
            f"restore a copy from at least {back} steps ({show.seconds(back * step)}) before it "
            f"began: with a copy every {show.seconds(s.period_s)} that is copy {history} back"
            f"{_retention_text(s.e.retention, history)}",
            f"skip {skip} and go on with the data order after them",
            "if it comes back at the same place: check one batch on two replicas (corruption), "
            "then a lower learning rate with an ML specialist",
        ),
        seconds=seconds,
        usd=s.run.usd(seconds / DAY_S),
        per_run=chance * count,
        source=source("R148", "R150", "R165", "R166"),
    )


def _retention_text(keep: int, history: int) -> str:
    """Whether the copies that are kept reach back so far."""
    if keep >= history:
        return f"; {keep} are kept"
    return (
        f", but only {keep} are kept: keep {history}, or beyond the newest {keep} one in "
        f"{-(-history // keep)} for that long"
    )


def halvings(n: int) -> int:
    """Rounds that single out one of n by halving."""
    return ceil(log2(max(n, 2)))


def silent_corruption(s: Site) -> Playbook:
    """Find the device that computes wrongly, go back to a copy from before it."""
    e = s.e
    rounds = halvings(s.plan["dp"]) + halvings(s.replica)
    every = e.check_every_s
    search_s = rounds * 2 * s.step_s
    seconds = search_s + every / 2 + s.period_s / 2 + e.restart_s
    kept = "" if e.retention > every / s.period_s else f", {e.retention} are kept now"
    return Playbook(
        id="silent corruption",
        signals=(
            "two replicas disagree on a recomputed batch",
            "loss drifts with no spike; NaN on one rank; checksums of a collective differ",
        ),
        steps=(
            f"recompute one step on other devices every {show.seconds(every)} "
            f"({e.badput['sdc']:.2%} of the time): the check that this failure rate pays for",
            "when it fails: save, then run one fixed batch on all replicas and compare bit for bit",
            f"halve the suspects: {rounds} rounds of two steps, {show.seconds(search_s)}, name the "
            "device",
            "evict it; restore the newest copy from before the last check that passed: keep "
            f"{ceil(every / s.period_s) + 1} copies{kept}",
        ),
        seconds=seconds,
        usd=s.run.usd(seconds / DAY_S),
        per_run=e.corruptions_per_s * s.useful_s,
        source=source("R010", "R069"),
    )


def creeping_step_time(s: Site, cut: Screen) -> Playbook:
    """Find the node, then the link, that slows the step; swap it."""
    e = s.e
    seconds = e.detect_s + e.restart_s + e.checkpoint_durable_s
    return Playbook(
        id="creeping step time",
        signals=(
            f"step above {1 + CONSTANTS.fleet_pace:.2f} times its median of the last day for an "
            "hour",
            "the slowest rank is the same in a hundred steps",
        ),
        steps=(
            f"forward time of every node from the timers: one above {1 + cut.evict_slower_than:.3f}"
            " of the mean is the cause; swap it",
            "if none: clocks, power and temperature by row; then flaps, retransmits and the rate "
            "of each card",
            "if none: all-reduce on pairs at the next stop, against the burn-in's thresholds",
            # one per cent of the step pays the swap back in a hundred times its seconds
            f"a swap costs {show.seconds(seconds)}: for one per cent of the step it is paid back "
            f"in {show.seconds(100 * seconds)}, so do it unless the run ends before",
        ),
        seconds=seconds,
        usd=s.run.usd(seconds / DAY_S),
        per_run=None,
        source=source("R138", "R155"),
    )
