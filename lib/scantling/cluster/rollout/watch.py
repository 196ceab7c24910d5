"""While it runs: dashboards and alerts with this design's thresholds, playbooks for divergence,
drills, who is called how often."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...base.records import Record
from ...base.units import DAY_S, HOUR_S
from ...endure import elastic, failures
from ...physics import stragglers
from ...physics.step import step_time
from ..network.build import built
from ..record import Run, is_torus, number, source

AUTO = (
    0.9  # of the repairs need nobody (MegaScale, R103); 3 of 419 needed somebody in Llama 3 (R025)
)
FALSE_ALARMS_PER_DAY = 1 / 30
SWING = 0.02  # daily swing of the throughput with the temperature: 1-2 % (R027)
HANG = 0.099  # of the failures hang without a word (R059-R060)
DEFAULT_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class Alert(Record):
    """One line of the dashboards: metric, its value in a sound run, the threshold, how long, what
    to do. Units in `unit`."""

    metric: str
    board: str  # job | devices | network | storage | data | fleet
    normal: float | None
    threshold: float
    unit: str
    beyond: str  # above | below
    for_s: float
    level: str  # page | ticket
    action: str
    why: str


@dataclass(frozen=True)
class Playbook(Record):
    """What to do when training goes wrong in one way; seconds and dollars of one occurrence,
    occurrences per run."""

    id: str
    signals: tuple[str, ...]
    steps: tuple[str, ...]
    seconds: float
    usd: float | None
    per_run: float | None
    source: str


def alerts(assessment, run: Run, screen) -> tuple[Alert, ...]:
    """Thresholds from the estimate: bands of step and MFU, saves from the endurance, counts at the
    99 % quantile of their Poisson law,
    loss and gradient norm at the deviation that a month of sound steps reaches once."""
    from scipy.special import ndtri
    from scipy.stats import poisson

    f, e = assessment.figures, assessment.endurance
    step, per_day = f["step_s"], sum(float(x) for x in e.failures_per_day.values())
    period = float(e.checkpoint_interval_s + e.checkpoint_stall_s)
    z = float(-ndtri(min(FALSE_ALARMS_PER_DAY * step / DAY_S, 0.4)))
    many = max(float(poisson.ppf(0.99, per_day)), 1.0)
    loss = float(e.recovery_s + e.checkpoint_durable_s) + period / 2
    spread = np.sqrt(per_day * (loss**2 + period**2 / 12)) / DAY_S
    low = max(float(e.goodput) - 2.33 * float(spread), 0.0)
    busy = float(failures.EVICTS * per_day / DAY_S * float(e.repair_s))
    timeout = hang_timeout_s(step, float(e.checkpoint_stall_s))
    capacity = f["memory_bytes"]["capacity"]
    own = f["memory_bytes"]["total"] / capacity
    out = [
        Alert(
            "step time, median of 10",
            "job",
            step,
            f["step_s_high"],
            "s",
            "above",
            10 * step,
            "page",
            "creeping step time",
            "upper edge of the 80 % band",
        ),
        Alert(
            "step time over its median of the last day",
            "job",
            1.0,
            1 + SWING,
            "ratio",
            "above",
            HOUR_S,
            "ticket",
            "creeping step time",
            "the temperature alone moves it by 1 to 2 % (Llama 3, s3.3.4)",
        ),
        Alert(
            "MFU",
            "job",
            f["mfu"],
            f["mfu_low"],
            "share",
            "below",
            HOUR_S,
            "ticket",
            "creeping step time",
            "lower edge of the band",
        ),
        Alert(
            "loss over its trend",
            "job",
            0.0,
            z,
            "standard deviations",
            "above",
            step,
            "page",
            "loss spike",
            f"a sound run of {step:.3g} s steps goes there once a month",
        ),
        Alert(
            "gradient norm over its trend",
            "job",
            0.0,
            z,
            "standard deviations",
            "above",
            3 * step,
            "page",
            "loss spike",
            "as the loss; three steps running",
        ),
        Alert(
            "seconds since the last step",
            "job",
            step,
            timeout,
            "s",
            "above",
            0.0,
            "page",
            "abort the collectives and restart in place",
            "a step, a save and a margin; the default of 30 min is paid for by every hang",
        ),
        Alert(
            "goodput of the last day",
            "job",
            float(e.goodput),
            low,
            "share",
            "below",
            DAY_S,
            "ticket",
            "go through the day's stops by cause",
            "a sound day in a hundred is worse",
        ),
        Alert(
            "slowest node's forward time over the mean",
            "devices",
            1.0,
            1 + screen.evict_slower_than,
            "ratio",
            "above",
            600.0,
            "ticket",
            "swap the node at the next stop",
            "the straggler screen's cut",
        ),
        Alert(
            "uncorrectable memory errors",
            "devices",
            0.0,
            1.0,
            "count",
            "above",
            0.0,
            "page",
            "drain the node",
            "one is enough: the answer is wrong",
        ),
        Alert(
            "device memory in use",
            "devices",
            own,
            0.5 * (1 + own),
            "share of usable",
            "above",
            0.0,
            "ticket",
            "watch fragmentation; fall back to the fastest safe plan",
            "half of what the plan leaves free",
        ),
        Alert(
            "failures in a day",
            "fleet",
            per_day,
            many,
            "count",
            "above",
            DAY_S,
            "ticket",
            "look for lemons: nodes that failed twice",
            "99 % of sound days stay below",
        ),
        Alert(
            "spares ready",
            "fleet",
            float(e.spares),
            max(float(int(e.spares)) - float(np.ceil(busy)) - 1, 0.0),
            "nodes",
            "below",
            HOUR_S,
            "ticket",
            "push repairs, lend from elsewhere",
            f"{busy:.1f} nodes are in repair on average",
        ),
        Alert(
            "age of the newest durable copy",
            "storage",
            period + float(e.checkpoint_durable_s),
            2 * period + float(e.checkpoint_durable_s),
            "s",
            "above",
            0.0,
            "page",
            "find why saves fail before the next failure",
            "one save was missed",
        ),
        Alert(
            "stall of a save",
            "storage",
            float(e.checkpoint_stall_s),
            3 * float(e.checkpoint_stall_s),
            "s",
            "above",
            0.0,
            "ticket",
            "look at host memory and pinning",
            "three times the estimate",
        ),
        Alert(
            "time until a save is durable",
            "storage",
            float(e.checkpoint_durable_s),
            period,
            "s",
            "above",
            0.0,
            "page",
            "longer interval, or fewer writers",
            "the next save begins then",
        ),
        Alert(
            "wait for data in a step",
            "data",
            0.0,
            0.01 * step,
            "s",
            "above",
            10 * step,
            "ticket",
            "readers, prefetch, metadata server",
            "one per cent of the step",
        ),
    ]
    if assessment.resolved.cluster.nodes > 1:
        card = float(assessment.resolved.cluster.scale_out_bytes_per_s)
        out += [
            Alert(
                "rate that a card negotiated",
                "network",
                card,
                0.99 * card,
                "bytes/s per device",
                "below",
                60.0,
                "ticket",
                "clean or swap the cable",
                "a link that came up slower slows its whole ring",
            ),
            Alert(
                "flaps of one link",
                "network",
                0.0,
                1.0,
                "per 6 h",
                "above",
                6 * HOUR_S,
                "ticket",
                "swap transceiver or cable at the next stop",
                "published acceptance test (catalogue/acceptance.csv)",
            ),
        ]
    return tuple(out)


def hang_timeout_s(step_s: float, stall_s: float) -> float:
    """Watchdog on collectives: twice the longest sound silence (a step and a save's stall), at
    least a minute [s]."""
    return max(2 * (step_s + stall_s), 60.0)


def timeout_gain(assessment) -> dict:
    """What the watchdog's setting is worth: detection and goodput at the usual 30 min against the
    design's, first order."""
    e = assessment.endurance
    now = hang_timeout_s(assessment.figures["step_s"], float(e.checkpoint_stall_s))
    slow, fast = (
        float(failures.detection_s(hang_share=HANG, timeout_s=t)) for t in (DEFAULT_TIMEOUT_S, now)
    )
    return dict(
        timeout_s=now,
        default_s=DEFAULT_TIMEOUT_S,
        detect_s=fast,
        detect_default_s=slow,
        goodput_gain=max(slow - fast, 0.0) / (float(e.mtbf_s) + slow),
    )


def collectives(assessment, run: Run) -> dict:
    """Collectives that survive: what they cost to re-form, stops that the network alone makes, and
    running on with one card less.

    init_s : `reliability.communicator_init_s`; lazily 30 s at most (MegaScale). calls : of one
    device in a step; a flight recorder of ten
    steps holds ten times that. stops : links x 0.057 % + leaf switches x 0.051 % a month (Alibaba
    HPN) where each card has one leaf, none
    of them where it has two. one_card_less : step over step with (n - 1) / n of the node's cards;
    swap_at_once below break_even_s of
    running on, which is the loss of one stop over what the slower step costs.
    """
    from ...endure.reliability import communicator_init_s
    from ...verdict.numbers import communication

    e, cluster, c = assessment.endurance, assessment.resolved.cluster, assessment.chosen.case
    cards, nodes = max(1, int(cluster.nics_per_node)), int(cluster.nodes)
    rows = communication(assessment.chosen)
    calls = float(sum(r["calls"] for r in rows))
    init = float(communicator_init_s(assessment.figures["devices_used"]))
    leaves = built(assessment)[0].leaf if nodes > 1 and not is_torus(cluster) else 0
    stops = (
        float(failures.network_crashes_per_s(nodes * cards, leaves)) * run.days * DAY_S
        if leaves
        else 0.0
    )
    less = (
        float(
            step_time(
                replace(
                    c,
                    link=replace(
                        c.link, out_bytes_per_s=c.link.out_bytes_per_s * (cards - 1) / cards
                    ),
                )
            ).total
            / step_time(c).total
        )
        if leaves and cards > 1
        else None
    )
    stop = float(e.recovery_s + e.checkpoint_durable_s) + float(e.checkpoint_interval_s) / 2
    return dict(
        abort=(
            "on the watchdog: every rank drops its communicators, keeps its memory, waits "
            "for the new list of nodes"
        ),
        init_s=init,
        init_lazy_s=min(init, 30.0),
        axes=len(rows) + 1,
        calls_per_step=calls,
        recorder_calls=10 * calls,
        stops_one_leaf_per_card=stops,
        stops_two_leaves_per_card=0.0,
        one_card_less=less,
        run_on_for_s=None if less is None or less <= 1 else stop / (less - 1),
        rule=""
        if less is None
        else "swap at the next planned stop"
        if less <= 1 or stop / (less - 1) > DAY_S
        else (
            f"swap at once unless the next planned stop is within "
            f"{stop / (less - 1) / HOUR_S:.1f} h"
        ),
        source=source("R085", "R105", "R117", "R118"),
    )


def spikes(steps: float) -> tuple[float, float]:
    """(chance that a run is of the kind that has to rewind, rewinds of such a run).

    Rewinds: PaLM 540B's 20 in 255,000 steps, fewer in a shorter run. Chance by the rule of
    succession over three published runs of which
    one rewound: (1 + 1) / (3 + 2); Llama 3 405B and DeepSeek-V3 report none.
    """
    runs = [number(x) for x in ("R148", "R165", "R166")]
    return (sum(x > 0 for x in runs) + 1) / (len(runs) + 2), number("R148") * min(
        1.0, steps / number("R149")
    )


def playbooks(assessment, run: Run, screen) -> tuple[Playbook, ...]:
    """Loss spike, silent corruption, creeping step time: signals, steps in order, what one costs
    here, how many to expect."""
    f, e, plan = assessment.figures, assessment.endurance, assessment.chosen.plan
    step, period = f["step_s"], float(e.checkpoint_interval_s + e.checkpoint_stall_s)
    good, stop = float(e.goodput), float(e.restart_s)
    steps = run.days * DAY_S * good / step
    usd = lambda s: run.usd(s / DAY_S)  # noqa: E731
    back, skip_low, skip_high = (number(x) for x in ("R150", "R151", "R152"))
    rewind = back * step + period / 2
    spike = rewind + stop
    history = int(np.ceil((back * step + 60 * step) / period)) + 1
    rate = float(failures.SDC_SHARE) / float(e.mtbf_s)
    rounds = int(np.ceil(np.log2(max(plan["dp"], 2)))) + int(
        np.ceil(np.log2(max(plan["tp"] * plan["cp"] * plan["pp"], 2)))
    )
    every, overhead = (float(x) for x in stragglers.verified_interval(0.0, rate, step, 0.0))
    find = rounds * 2 * step
    sdc = find + every / 2 + period / 2 + stop
    swap = float(e.detect_s + e.restart_s + e.checkpoint_durable_s)
    keep = int(np.max(e.retention))
    return (
        Playbook(
            "loss spike",
            (
                f"loss or gradient norm beyond the alert for 3 steps ({3 * step:.3g} s)",
                "clipping has not brought it back within 60 steps",
            ),
            (
                (
                    f"stop; keep the state, and the {int(skip_low)} to {int(skip_high)} "
                    f"batches around the spike, for the post-mortem"
                ),
                (
                    f"restore a copy from at least {int(back)} steps ({back * step / 60:.3g} "
                    f"min) before it began: with a copy every {period / 60:.3g} min that is "
                    f"copy {history} back"
                )
                + (
                    f"; {keep} are kept"
                    if keep >= history
                    else (
                        f", but only {keep} are kept: keep {history}, or beyond the newest "
                        f"{keep} one in {-(-history // keep)} for that long"
                    )
                ),
                (
                    f"skip {int(skip_low)} to {int(skip_high)} batches and go on with the "
                    f"data order after them"
                ),
                (
                    "if it comes back at the same place: check one batch on two replicas "
                    "(corruption), then a lower learning rate with an ML specialist"
                ),
            ),
            spike,
            usd(spike),
            float(np.prod(spikes(steps))),
            source("R148", "R150", "R165", "R166"),
        ),
        Playbook(
            "silent corruption",
            (
                "two replicas disagree on a recomputed batch",
                "loss drifts with no spike; NaN on one rank; checksums of a collective differ",
            ),
            (
                (
                    f"recompute one step on other devices every {every / HOUR_S:.3g} h "
                    f"({overhead:.2%} of the time): the check that this failure rate pays "
                    f"for"
                ),
                (
                    "when it fails: save, then run one fixed batch on all replicas and "
                    "compare bit for bit"
                ),
                (
                    f"halve the suspects: {rounds} rounds of two steps, {find / 60:.3g} min, "
                    f"name the device"
                ),
                (
                    f"evict it; restore the newest copy from before the last check that "
                    f"passed: keep {int(np.ceil(every / period)) + 1} copies"
                )
                + ("" if keep > every / period else f", {keep} are kept now"),
            ),
            sdc,
            usd(sdc),
            rate * run.days * DAY_S * good,
            source("R010", "R069"),
        ),
        Playbook(
            "creeping step time",
            (
                f"step above {1 + SWING:.2f} times its median of the last day for an hour",
                "the slowest rank is the same in a hundred steps",
            ),
            (
                (
                    f"forward time of every node from the timers: one above "
                    f"{1 + screen.evict_slower_than:.3f} of the mean is the cause; swap it"
                ),
                (
                    "if none: clocks, power and temperature by row; then flaps, retransmits "
                    "and the rate of each card"
                ),
                "if none: all-reduce on pairs at the next stop, against the burn-in's thresholds",
                (
                    f"a swap costs {swap / 60:.3g} min: for one per cent of the step it is "
                    f"paid back in {swap / 0.01 / HOUR_S:.3g} h, so do it unless the run "
                    f"ends before"
                ),
            ),
            swap,
            usd(swap),
            None,
            source("R138", "R155"),
        ),
    )


def drills(assessment) -> tuple[dict, ...]:
    """Failures to stage before the run, with the time each may take: [{what, breaks, expected_s,
    pass_s, checks}]. pass = 1.5 x expected."""
    e, plan = assessment.endurance, assessment.chosen.plan
    tiers = {t["id"]: t for t in assessment.recovery["tiers"]["copies"]}
    launch = max(float(e.restart_s) - tiers["L2"]["restore_s"], 0.0)
    rows = [
        (
            "kill one process",
            "L0",
            float(e.detect_s) + launch + tiers["L0"]["restore_s"],
            "the others abort their collectives; the node stays",
        ),
        (
            "power off a node",
            "L1",
            float(e.detect_s) + launch + tiers["L1"]["restore_s"],
            "a spare takes its place with the same ranks; losses repeat",
        ),
        (
            "power off a node and its peer",
            "L2",
            float(e.recovery_s),
            "the copy of the file system is used",
        ),
        (
            "corrupt the newest copy",
            "L2",
            float(e.recovery_s),
            "its checksum fails and the one before is taken",
        ),
        (
            "hide the file system",
            "L3",
            float(e.detect_s) + launch + tiers["L3"]["restore_s"],
            "the object store's copy of yesterday loads",
        ),
        (
            "pull one cable",
            "L0",
            float(e.detect_s) + launch + tiers["L0"]["restore_s"],
            "rerouted, or the node is swapped",
        ),
        ("fill the spares", "none", float(e.repair_s), "the job waits or shrinks as planned"),
    ]
    if plan["dp"] > 1 and assessment.recovery.get("elastic"):
        shrink = elastic.shrink_ratio(max(plan["grad_accum"], 1), plan["dp"])
        rows.append(
            (
                "run a day with one replica less",
                "L1",
                float(e.recovery_s),
                f"the step grows by {float(shrink) - 1:.1%} and the global batch stays",
            )
        )
    return tuple(
        dict(what=w, copy=c, expected_s=s, pass_s=1.5 * s, checks=k) for w, c, s, k in rows
    )


def on_call(assessment, run: Run) -> dict:
    """Who is called how often: pages a week between Llama 3's share of failures that needed
    somebody (3 of 419) and one in ten, against
    what a rotation can bear (two incidents a 12-hour shift)."""
    e = assessment.endurance
    per_week = 7 * sum(float(x) for x in e.failures_per_day.values())
    low, high = per_week * number("R025") / number("R021"), per_week * (1 - AUTO)
    bear = number("R164") * 14
    return dict(
        failures_per_week=per_week,
        pages_per_week_low=low,
        pages_per_week_high=high,
        pages_per_week_bearable=bear,
        automation_needed=float(np.clip(1 - bear / per_week, 0.0, 1.0)) if per_week > 0 else 0.0,
        people=int(number("R163")) if run.nodes >= 32 else 2,
        roles=_roles(run),
        hour_of_silence_usd=run.usd(HOUR_S / DAY_S),
        source=source("R025", "R103", "R163"),
    )


def _roles(run: Run) -> tuple[dict, ...]:
    rows = [
        ("run lead", "decides to rewind, skip or stop"),
        ("training engineer", "loss, gradient norm, data order"),
        ("site engineer", "drains, spares, repairs, power and cooling"),
    ]
    if run.nodes >= 32:
        rows += [
            ("network engineer", "links, switches, routing"),
            ("storage engineer", "saves, restores, readers"),
        ]
    return tuple(dict(role=r, owns=o) for r, o in rows)
