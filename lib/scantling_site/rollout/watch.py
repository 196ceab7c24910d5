"""While it runs: the watchdog on collectives, collectives that survive, failures staged before the
run, who is called how often."""

from dataclasses import replace
from typing import TypedDict

from scantling.advise.recovery import recovery
from scantling.base.records import Known, Record, record
from scantling.base.units import DAY_S, HOUR_S
from scantling.endure import elastic, failures
from scantling.endure.first_step import communicator_init_s

from ..constants import CONSTANTS
from ..fabric.build import built
from ..facts import number, source
from ..job_site import Site

ROTATION = 32  # nodes from which a site has a rotation of its own


LEAST_HANG_S = 300.0  # s: makers' recipes and libraries set 600 to 3,600; one false end costs more
LINK_TRY_S = 4.096e-6 * 2**22  # s: InfiniBand's NCCL_IB_TIMEOUT of 22, 4.096 us x 2^22 a try
LINK_TRIES = 7  # NCCL_IB_RETRY_CNT
PATIENT = 1.5  # times the link's own retries


def hang_timeout_s(step_s: float, stall_s: float) -> float:
    """Watchdog on collectives: twice the longest sound silence (a step and a save's stall); never
    sooner than 1.5 times what a flapping link takes for its own retries (4.096 us x 2^22 = 17 s
    each, seven of them), nor than five minutes [s]."""
    retries_s = LINK_TRIES * LINK_TRY_S
    return max(2 * (step_s + stall_s), PATIENT * retries_s, LEAST_HANG_S)


@record
class Timeout(Record):
    """What the watchdog's setting is worth."""

    timeout_s: float
    default_s: float
    detect_s: float
    detect_default_s: float
    goodput_gain: float


def timeout_gain(s: Site) -> Timeout:
    """What the watchdog's setting is worth: detection and goodput at the usual 30 min against the
    design's, first order."""
    now = hang_timeout_s(s.step_s, s.e.checkpoint_stall_s)
    slow = float(failures.detection_s(CONSTANTS.default_timeout_s))
    fast = float(failures.detection_s(now))
    return Timeout(
        timeout_s=now,
        default_s=CONSTANTS.default_timeout_s,
        detect_s=fast,
        detect_default_s=slow,
        goodput_gain=max(slow - fast, 0.0) / (s.e.mtbf_s + slow),
    )


@record
class Surviving(Record):
    """Collectives that survive a failure: what they cost to re-form, stops that the network alone
    makes, running on with one card less."""

    abort: str
    init_s: float
    init_lazy_s: float
    axes: int
    calls_per_step: int
    recorder_calls: int  # of ten steps
    stops_one_leaf_per_card: float  # in the run
    stops_two_leaves_per_card: float
    one_card_less: Known  # step over step
    run_on_for_s: Known  # after which a swap at once is better
    rule: str
    source: str


def collectives(s: Site) -> Surviving:
    """Collectives that survive: what they cost to re-form, stops that the network alone makes, and
    running on with one card less.

    init_s : `first_step.communicator_init_s`; lazily 30 s at most (MegaScale). calls : of one
    device in a step; a flight recorder of ten steps holds ten times that. stops : links x 0.057 % +
    leaf switches x 0.051 % a month (Alibaba HPN) where each card has one leaf, none of them where
    it has two. one_card_less : step over step with (n - 1) / n of the node's cards; swap at once
    below break_even_s of running on, which is the loss of one stop over what the slower step costs.
    """
    traffic = s.traffic
    n = s.cluster.nics_per_node
    calls = sum(row.calls for row in traffic)
    init = float(communicator_init_s(s.used))
    leaves = built(s.cluster).topology.leaf if s.wired else 0
    stops = 0.0
    less = run_on = None
    rule = ""
    if leaves:
        per_s = failures.network_crashes_per_s(s.nodes * n, leaves)
        stops = float(per_s) * s.run.days * DAY_S
    if leaves and n > 1:
        link = s.case.link
        less = s.link_ratio(replace(link, out_bytes_per_s=link.out_bytes_per_s * (n - 1) / n))
        run_on = run_on_s(s, less)
        rule = swap_rule(run_on)
    return Surviving(
        abort=(
            "on the watchdog: every rank drops its communicators, keeps its memory, waits for the "
            "new list of nodes"
        ),
        init_s=init,
        init_lazy_s=min(init, CONSTANTS.lazy_init_s),
        axes=len(traffic) + 1,
        calls_per_step=calls,
        recorder_calls=10 * calls,
        stops_one_leaf_per_card=stops,
        stops_two_leaves_per_card=0.0,
        one_card_less=less,
        run_on_for_s=run_on,
        rule=rule,
        source=source("R085", "R105", "R117", "R118", "R175"),
    )


def run_on_s(s: Site, ratio: float) -> Known:
    """Seconds of running on with a step `ratio` times as long that lose as much as one stop; None
    where the step is no longer."""
    if ratio <= 1:
        return None
    e = s.e
    stop = e.recovery_s + e.checkpoint_durable_s + e.checkpoint_interval_s / 2
    return stop / (ratio - 1)


def swap_rule(run_on: Known) -> str:
    """When to swap a node that has lost a card, by how long it may run on."""
    if run_on is None or run_on > DAY_S:
        return "swap at the next planned stop"
    return f"swap at once unless the next planned stop is within {run_on / HOUR_S:.1f} h"


class Drill(TypedDict):
    """A failure to stage before the run: the copy that it should fall back on, the time that it
    takes and may take, what it shows."""

    what: str
    copy: str
    expected_s: float
    pass_s: float
    checks: str


def drill(what: str, copy: str, expected_s: float, checks: str) -> Drill:
    """One failure to stage; it passes within 1.5 times what is expected."""
    return Drill(
        what=what, copy=copy, expected_s=expected_s, pass_s=1.5 * expected_s, checks=checks
    )


def drills(s: Site) -> tuple[Drill, ...]:
    """Failures to stage before the run, with the time each may take."""
    plan = recovery(s.a)
    restore = {t["id"]: t["restore_s"] for t in plan["tiers"]["copies"]}
    begun = s.e.detect_s + max(s.e.restart_s - restore["L2"], 0.0)
    in_place = begun + restore["L0"]
    from_peer = begun + restore["L1"]
    from_store = s.e.recovery_s
    staged = [
        drill(
            "kill one process", "L0", in_place, "the others abort their collectives; the node stays"
        ),
        drill(
            "power off a node",
            "L1",
            from_peer,
            "a spare takes its place with the same ranks; losses repeat",
        ),
        drill(
            "power off a node and its peer", "L2", from_store, "the copy of the file system is used"
        ),
        drill(
            "corrupt the newest copy",
            "L2",
            from_store,
            "its checksum fails and the one before is taken",
        ),
        drill(
            "hide the file system",
            "L3",
            begun + restore["L3"],
            "the object store's copy of yesterday loads",
        ),
        drill("pull one cable", "L0", in_place, "rerouted, or the node is swapped"),
        drill("fill the spares", "none", s.e.repair_s, "the job waits or shrinks as planned"),
    ]
    if s.plan["dp"] > 1 and plan.get("elastic"):
        longer = elastic.shrink_ratio(s.plan["grad_accum"], s.plan["dp"]) - 1
        if longer:
            staged.append(
                drill(
                    "run a day with one replica less",
                    "L1",
                    from_store,
                    f"the step grows by {longer:.1%} and the global batch stays",
                )
            )
    return tuple(staged)


class Role(TypedDict):
    """Somebody who is called, and what for."""

    role: str
    owns: str


def roles(large: bool) -> tuple[Role, ...]:
    """Who is called; on a large site network and storage have people of their own."""
    everywhere = (
        Role(role="run lead", owns="decides to rewind, skip or stop"),
        Role(role="training engineer", owns="loss, gradient norm, data order"),
        Role(role="site engineer", owns="drains, spares, repairs, power and cooling"),
    )
    if not large:
        return everywhere
    return (
        *everywhere,
        Role(role="network engineer", owns="links, switches, routing"),
        Role(role="storage engineer", owns="saves, restores, readers"),
    )


@record
class OnCall(Record):
    """Who is called how often."""

    failures_per_week: float
    pages_per_week_low: float
    pages_per_week_high: float
    pages_per_week_bearable: float
    automation_needed: float  # share of the failures that nobody may be called for
    people: int
    roles: tuple[Role, ...]
    hour_of_silence_usd: Known
    source: str


def on_call(s: Site) -> OnCall:
    """Who is called how often: pages a week between Llama 3's share of failures that needed
    somebody (3 of 419) and one in ten, against what a rotation can bear (two incidents a 12-hour
    shift)."""
    per_week = 7 * s.failures_per_day
    bearable = number("R164") * 14
    large = s.nodes >= ROTATION
    automated = min(max(1 - bearable / per_week, 0.0), 1.0) if per_week > 0 else 0.0
    return OnCall(
        failures_per_week=per_week,
        pages_per_week_low=per_week * number("R025") / number("R021"),
        pages_per_week_high=per_week * (1 - CONSTANTS.auto_repair),
        pages_per_week_bearable=bearable,
        automation_needed=automated,
        people=int(number("R163")) if large else 2,
        roles=roles(large),
        hour_of_silence_usd=s.run.usd(HOUR_S / DAY_S),
        source=source("R025", "R103", "R163"),
    )
