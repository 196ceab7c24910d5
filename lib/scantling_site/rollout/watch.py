"""While it runs: dashboards and alerts with this design's thresholds, playbooks for divergence,
drills, who is called how often."""

import math

import numpy as np
from scantling.advise.recovery import recovery
from scantling.base.records import Known, Lines, Record, Rows, record
from scantling.base.stats import poisson_quantile, quantile
from scantling.base.units import DAY_S, HOUR_S
from scantling.endure import elastic, failures
from scantling.endure.first_step import communicator_init_s

from ..network.build import built
from ..site import Site
from ..texts import constant, fill, number, records, rows, source, texts

FALSE_ALARMS_PER_DAY = 1 / 30
ROTATION = 32  # nodes from which a site has a rotation of its own


@record
class Alert(Record):
    """One line of the dashboards: metric, its value in a sound run, the threshold, how long, what
    to do. Units in `unit`."""

    metric: str
    board: str  # job | devices | network | storage | data | fleet
    normal: Known
    threshold: float
    unit: str
    beyond: str  # above | below
    for_s: float
    level: str  # page | ticket
    action: str
    why: str


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


def alerts(s: Site, screen) -> tuple:
    """Thresholds from the estimate: bands of step and MFU, saves from the endurance, counts at the
    99 % quantile of their Poisson law, loss and gradient norm at the deviation that a month of
    sound steps reaches once."""
    e = s.e
    memory = s.figures["memory_bytes"]
    held = memory["total"] / memory["capacity"]
    copy_age = s.period_s + e.checkpoint_durable_s
    # of one day's goodput: failures are Poisson, what one loses is uniform between two saves
    spread = np.sqrt(s.failures_per_day * (s.failure_s**2 + s.period_s**2 / 12)) / DAY_S
    return records(
        Alert,
        rows("alerts"),
        s,
        swing=1 + constant("fleet_pace"),
        deviation=-quantile(min(FALSE_ALARMS_PER_DAY * s.step_s / DAY_S, 0.4)),
        timeout_s=hang_timeout_s(s.step_s, e.checkpoint_stall_s),
        low_day=max(e.goodput - 2.33 * spread, 0.0),
        slowest=1 + screen.evict_slower_than,
        held=held,
        fuller=0.5 * (1 + held),
        many=max(float(poisson_quantile(0.99, s.failures_per_day)), 1.0),
        few_spares=max(s.spares - np.ceil(s.in_repair) - 1, 0.0),
        copy_age_s=copy_age,
        missed_s=copy_age + s.period_s,
        many_nodes=s.nodes > 1,
    )


def hang_timeout_s(step_s: float, stall_s: float) -> float:
    """Watchdog on collectives: twice the longest sound silence (a step and a save's stall), at
    least a minute [s]."""
    return max(2 * (step_s + stall_s), 60.0)


def timeout_gain(s: Site) -> dict:
    """What the watchdog's setting is worth: detection and goodput at the usual 30 min against the
    design's, first order."""
    default = constant("default_timeout_s")
    now = hang_timeout_s(s.step_s, s.e.checkpoint_stall_s)
    slow, fast = (failures.detection_s(t) for t in (default, now))
    return {
        "timeout_s": now,
        "default_s": default,
        "detect_s": fast,
        "detect_default_s": slow,
        "goodput_gain": max(slow - fast, 0.0) / (s.e.mtbf_s + slow),
    }


def collectives(s: Site) -> dict:
    """Collectives that survive: what they cost to re-form, stops that the network alone makes, and
    running on with one card less.

    init_s : `first_step.communicator_init_s`; lazily 30 s at most (MegaScale). calls : of one
    device in a step; a flight recorder of ten steps holds ten times that. stops : links x 0.057 % +
    leaf switches x 0.051 % a month (Alibaba HPN) where each card has one leaf, none of them where
    it has two. one_card_less : step over step with (n - 1) / n of the node's cards; swap at once
    below break_even_s of running on, which is the loss of one stop over what the slower step costs.
    """
    e = s.e
    traffic = s.traffic
    cards = s.cluster.nics_per_node
    calls = sum(row["calls"] for row in traffic)
    init = communicator_init_s(s.used)
    leaves = built(s.cluster)[0].leaf if s.wired else 0
    stops = 0.0
    less = None
    run_on = None
    rule = ""
    if leaves:
        stops = failures.network_crashes_per_s(s.nodes * cards, leaves) * s.run.days * DAY_S
    if leaves and cards > 1:
        rate = s.case.link.out_bytes_per_s * (cards - 1) / cards
        less = s.step_ratio(link=s.link(out_bytes_per_s=rate))
        rule = "swap at the next planned stop"
        if less > 1:
            stop = e.recovery_s + e.checkpoint_durable_s + e.checkpoint_interval_s / 2
            run_on = stop / (less - 1)
            if run_on <= DAY_S:
                rule = "swap at once unless the next planned stop is within "
                rule += f"{run_on / HOUR_S:.1f} h"
    return {
        "abort": (
            "on the watchdog: every rank drops its communicators, keeps its memory, waits "
            "for the new list of nodes"
        ),
        "init_s": init,
        "init_lazy_s": min(init, constant("lazy_init_s")),
        "axes": len(traffic) + 1,
        "calls_per_step": calls,
        "recorder_calls": 10 * calls,
        "stops_one_leaf_per_card": stops,
        "stops_two_leaves_per_card": 0.0,
        "one_card_less": less,
        "run_on_for_s": run_on,
        "rule": rule,
        "source": source("R085", "R105", "R117", "R118", "R175"),
    }


def spikes(steps: float) -> tuple:
    """(chance that a run is of the kind that has to rewind, rewinds of such a run).

    Rewinds: PaLM 540B's 20 in 255,000 steps, fewer in a shorter run. Chance by the rule of
    succession over three published runs of which one rewound: (1 + 1) / (3 + 2); Llama 3 405B and
    DeepSeek-V3 report none.
    """
    runs = [number(x) for x in ("R148", "R165", "R166")]
    chance = (sum(x > 0 for x in runs) + 1) / (len(runs) + 2)
    return chance, runs[0] * min(1.0, steps / number("R149"))


def halvings(n: int) -> int:
    """Rounds that single out one of n by halving."""
    return math.ceil(math.log2(max(n, 2)))


def playbooks(s: Site, screen) -> tuple:
    """Loss spike, silent corruption, creeping step time: signals, steps in order, what one costs
    here, how many to expect."""
    e = s.e
    step = s.step_s
    period = s.period_s
    back, skip_low, skip_high = (int(number(x)) for x in ("R150", "R151", "R152"))
    history = math.ceil((back + 60) * step / period) + 1
    keep = e.retention
    rounds = halvings(s.plan["dp"]) + halvings(s.replica)
    every = e.check_every_s
    find = rounds * 2 * step
    seconds = {
        "spike": back * step + period / 2 + e.restart_s,
        "corruption": find + every / 2 + period / 2 + e.restart_s,
        "swap": e.detect_s + e.restart_s + e.checkpoint_durable_s,
    }
    kept = f"; {keep} are kept"
    if keep < history:
        kept = (
            f", but only {keep} are kept: keep {history}, or beyond the newest {keep} one in "
            f"{-(-history // keep)} for that long"
        )
    table = fill(
        texts("playbooks"),
        s,
        back=back,
        skip_low=skip_low,
        skip_high=skip_high,
        history=history,
        kept=kept,
        every=every,
        overhead=e.badput["sdc"],
        rounds=rounds,
        find_s=find,
        **{f"{k}_s": v for k, v in seconds.items()},
        **{f"{k}_usd": s.run.usd(v / DAY_S) for k, v in seconds.items()},
        three_steps=3 * step,
        back_s=back * step,
        checked=math.ceil(every / period) + 1,
        checked_kept="" if keep > every / period else f", {keep} are kept now",
        spikes_per_run=np.prod(spikes(s.useful_s / step)),
        corruptions_per_run=e.corruptions_per_s * s.useful_s,
        swing=1 + constant("fleet_pace"),
        slowest=1 + screen.evict_slower_than,
    )
    return tuple(Playbook(**row | {"source": source(*row["source"].split())}) for row in table)


def drills(s: Site) -> Rows:
    """Failures to stage before the run, with the time each may take: [{what, breaks, expected_s,
    pass_s, checks}]. pass = 1.5 x expected."""
    found = recovery(s.a)
    tiers = {t["id"]: t["restore_s"] for t in found["tiers"]["copies"]}
    begun = s.e.detect_s + max(s.e.restart_s - tiers["L2"], 0.0)
    longer = 0.0
    if s.plan["dp"] > 1 and found.get("elastic"):
        longer = elastic.shrink_ratio(s.plan["grad_accum"], s.plan["dp"]) - 1
    keys = ("what", "copy", "expected_s", "pass_s", "checks")
    table = fill(
        rows("drills"),
        s,
        **{f"after_{k.lower()}": begun + tiers[k] for k in ("L0", "L1", "L3")},
        longer=longer,
    )
    table = ({**row, "pass_s": 1.5 * row["expected_s"]} for row in table)
    return tuple({k: row[k] for k in keys} for row in table)


def on_call(s: Site) -> dict:
    """Who is called how often: pages a week between Llama 3's share of failures that needed
    somebody (3 of 419) and one in ten, against what a rotation can bear (two incidents a 12-hour
    shift)."""
    per_week = 7 * s.failures_per_day
    bear = number("R164") * 14
    large = s.nodes >= ROTATION
    return {
        "failures_per_week": per_week,
        "pages_per_week_low": per_week * number("R025") / number("R021"),
        "pages_per_week_high": per_week * (1 - constant("auto_repair")),
        "pages_per_week_bearable": bear,
        "automation_needed": np.clip(1 - bear / per_week, 0.0, 1.0) if per_week > 0 else 0.0,
        "people": int(number("R163")) if large else 2,
        "roles": fill(rows("roles"), large=large),
        "hour_of_silence_usd": s.run.usd(HOUR_S / DAY_S),
        "source": source("R025", "R103", "R163"),
    }
