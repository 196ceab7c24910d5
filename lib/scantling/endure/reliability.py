"""What failures make of a design: time between failures, checkpoint interval, goodput and where the
rest goes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import catalogue
from ..base.records import Assumed, Record, get, given, record
from ..base.units import DAY_S
from . import checkpoint, elastic, failures, goodput, spares, storage
from .first_step import first_step
from .simulate import Level, of_life, simulate

# an explicit failure is seen in 60 s, localised in 2 min at best (ByteRobust, arXiv 2509.16293
# s2.2)
DETECT_S = 180.0
# drain, reboot, test, return of a node: 4 h; NCSA Delta measured 2.2 h (arXiv 2503.11901)
REPAIR_S = 14_400.0
LEAST_RATE = 1e-6  # failures per 1,000 node-days
BADPUT = (
    "saves",
    "lost work",
    "detection",
    "restart",
    "spare shortage",
    "planned stops",
    "stragglers",
    "link flaps",
    "sdc",
    "sites",
)
# a loss spike is noticed some 60 steps late (judgement) and rewound 100 (PaLM, arXiv 2204.02311
# s5.1): copies must reach back as far
SPIKE_STEPS = 160
KEEP_DAYS = 14.0
TIERS = ("l0", "l1", "l2", "l3")


@record
class Gang:
    """What an elastic run drops at once: data-parallel replicas, nodes in each, micro-batches of
    one replica in a step."""

    replicas: int
    nodes: int
    micro_batches: int


@record
class Life:
    """All that the closed form and the simulation know of a job: the one description that both
    read. Seconds of the whole job; arrays where device counts are."""

    stops: tuple[failures.Stop, ...]
    levels: tuple[Level, ...]  # one, or those of the tiers, nearest first
    reach: tuple[int, ...]  # level that each of the stops restores from
    interval_s: object  # between saves of the first level
    pauses: tuple[failures.Pause, ...]
    latency_s: object  # corruption to its discovery
    planned_per_s: float  # stops that save first, restart and lose nothing
    spares: object
    gang: Gang | None = None  # None: the job waits where spares are out
    cut_off: float = 0.0  # share of the time that a synchronous run waits for a site
    alone: int = 1  # parts that restart without the others
    slower: object = 1.0  # failures over those of `stops`
    fails_in_restart: bool = True
    save_survives: bool = False
    accounts: str = "exact"

    @property
    def mtbf_s(self):
        return 1 / np.maximum(self.slower * sum(s.per_s for s in self.stops), 1e-300)

    def mean(
        self,
        what: str,
        which=lambda stop: True,
    ):
        """Mean of a time over the failures that `which` picks."""
        kept = [s for s in self.stops if which(s)]
        total = sum(s.per_s for s in kept)
        return sum(s.per_s * getattr(s, what) for s in kept) / np.maximum(total, 1e-300)

    @property
    def held(self) -> tuple[failures.Pause, ...]:
        """The pauses, planned stops among them: a save and a restart."""
        far = self.levels[-1]
        long = far.stall_s + far.durable_s + self.mean("restart_s")
        return (
            failures.Pause(
                id="planned stops",
                per_s=self.planned_per_s,
                seconds=long,
            ),
            *self.pauses,
        )

    @property
    def evictions_per_s(self):
        return self.slower * sum(s.per_s for s in self.stops if s.cause.evicts)

    @property
    def corruptions_per_s(self):
        return self.slower * sum(s.per_s for s in self.stops if s.cause.id == "sdc")

    @property
    def repair_s(self):
        return np.maximum(self.mean("repair_s", lambda s: s.cause.evicts), 1e-3)

    def restart_s(self, level: int | None = None):
        """The one restart that fails as often as those of all causes: -M log of the mean of
        exp(-R / M), over the failures that restore from a level."""
        rates = [
            (s.per_s, s.restart_s) for s, k in zip(self.stops, self.reach) if level in (None, k)
        ]
        total, m = np.maximum(sum(rate for rate, _ in rates), 1e-300), self.mtbf_s
        lived = sum(rate / total * -np.expm1(-np.asarray(r) / m) for rate, r in rates)
        far = sum(rate / total * np.asarray(r) for rate, r in rates)
        with np.errstate(divide="ignore"):
            return np.where(lived < 0.999, -m * np.log1p(-np.minimum(lived, 0.9999)), far)


@record
class Endurance(Record):
    """How a run lives with failures. Seconds, bytes and shares of the wall time; arrays where
    `devices` was an array.

    goodput + sum(badput.values()) = 1. goodput is useful time over all time, stalls included.
    """

    devices: object
    preset: str
    failures_per_1000_node_days: object
    mtbf_s: object
    failures_per_day: dict
    planned_per_day: float
    checkpoint_interval_s: object
    checkpoint_bytes: object
    checkpoint_stall_s: object
    checkpoint_durable_s: object
    checkpoint_overhead: object
    young_s: object
    daly_s: object
    optimum_s: object
    restart_s: object
    detect_s: object
    repair_s: object
    recovery_s: object
    recovery: str
    first_step_s: dict
    lost_work_s: object
    goodput: object
    badput: dict
    spares: object
    spares_recommended: object
    spares_for: dict
    write_bytes_per_s_needed: object
    write_bytes_per_s: object
    retention: object
    keep_days: float
    check_every_s: object
    tiers: tuple[dict, ...]
    domain_nodes: dict
    sites: int
    alone: int
    copies_survive: str
    curve: dict
    interval_set_by: str
    assumed: tuple[Assumed, ...]
    life: Life

    @property
    def evictions_per_s(self):
        """Failures that take a node out of the job."""
        return self.life.evictions_per_s

    @property
    def corruptions_per_s(self):
        """Corruptions of the state that nobody sees."""
        return self.life.corruptions_per_s

    def as_dict(self) -> dict:
        said = super().as_dict()
        del said["life"]
        return said


def otherwise(life: Life, durable_s=None, **times) -> Life:
    """The same life with other times (detect_s, restart_s, repair_s) of every cause, or with the
    farthest copy durable that late. [s]"""
    far = life.levels[-1]
    far = far if durable_s is None else replace(far, durable_s=durable_s)
    return replace(
        life,
        stops=tuple(replace(stop, **times) for stop in life.stops),
        levels=(*life.levels[:-1], far),
    )


def lived(life: Life) -> tuple:
    """(goodput, badput) of a life: shares of the wall time that sum to one.

    Per second of running: detection D / M, the pauses, waiting for nodes (`spares.shortage`, or
    shrinking where that costs less); running itself splits by `goodput.shares`. Corruption throws
    away `latency` less what an ordinary failure loses anyway. Sums exactly. One level of copies:
    exact for exponential failures but for waits that overlap other downtime; several: nested
    (`goodput.ettr_tiers_nested`), within 0.3 points at 30 min between failures.
    """
    m, part = life.mtbf_s * life.alone, _running(life)
    run = 1 - part["detection"]
    paused = {p.id: run * p.per_s * p.seconds for p in life.held}
    short = shortage(life)
    kept = (1 - short) / (1 + sum(paused.values()))
    late = np.maximum(life.latency_s - life.levels[-1].durable_s, 0.0)
    replayed = life.corruptions_per_s / life.alone * run * kept * late
    left = (1 - life.cut_off) / (1 + replayed)
    bad = dict.fromkeys(BADPUT, 0.0)
    bad |= {k: v * kept * left for k, v in (part | paused).items() if k in BADPUT}
    bad["spare shortage"] = short * left
    bad["sdc"] = (replayed + paused.get("checks", 0.0) * kept) * left
    bad["sites"] = life.cut_off + 0 * m
    return part["useful"] * kept * left, bad


def _running(life: Life) -> dict:
    """{useful, saves, lost work, detection, restart}: running and detection, split."""
    m, tau, near = life.mtbf_s * life.alone, life.interval_s, life.levels[0]
    detect, restart = life.mean("detect_s"), life.restart_s()
    safe = 0.0 if life.fails_in_restart else restart
    part = goodput.shares(
        m,
        near.stall_s,
        tau,
        durable_s=0.0 if life.save_survives else life.levels[-1].durable_s,
        restart_s=restart - safe,
        down_s=detect + safe,
        accounts=life.accounts,
    )
    if len(life.levels) > 1:
        several = range(len(life.levels))
        part["useful"] = goodput.ettr_tiers_nested(
            [
                life.slower
                / life.alone
                * sum(s.per_s for s, k in zip(life.stops, life.reach) if k == level)
                for level in several
            ],
            [level.every for level in life.levels],
            tau,
            [near.stall_s] * len(life.levels),
            [life.restart_s(level) for level in several],
            [level.durable_s for level in life.levels],
            detect,
        )
        part["saves"] = part["useful"] * near.stall_s / tau
        spent = sum(part[k] for k in ("useful", "saves", "detection", "restart"))
        part["lost work"] = np.maximum(1 - spent, 0.0)
    moved = part["detection"] * safe / np.maximum(detect + safe, 1e-300)
    return part | {
        "detection": part["detection"] - moved,
        "restart": part["restart"] + moved,
    }


def shortage(life: Life):
    """Share of the wall time lost for want of nodes: waiting for a repair, or running on without a
    gang where that costs less. The wait of an eviction hides behind its own detection; other
    downtime stretches the time between evictions."""
    rate, gang = np.maximum(life.evictions_per_s, 1e-300), life.gang
    others = (1 / life.mtbf_s - rate) * life.mean("detect_s", lambda s: not s.cause.evicts)
    spread = 1 + others + sum(p.per_s * p.seconds for p in life.held)
    down = life.mean("detect_s", lambda s: s.cause.evicts)
    wait = spares.shortage(
        life.spares,
        rate / spread,
        life.repair_s,
        down,
    )
    if gang is None or gang.replicas < 2 or np.all(wait < 1e-6):
        return wait
    shrunk = elastic.shrink_loss(
        rate * life.repair_s,
        life.spares,
        gang.nodes,
        gang.replicas,
        gang.micro_batches,
        resize_share=rate * elastic.RESIZE_S,
    )
    return np.minimum(wait, shrunk)


def endure(
    cluster,
    spec=None,
    *,
    checkpoint_bytes,
    state_bytes_per_device,
    saves=None,
    step_s=None,
    constraints=None,
    devices=None,
    gang: Gang | None = None,
    planned_stops=True,
    **features,
) -> Endurance:
    """Reliability of one job, or of the same job on many device counts at once.

    cluster : Cluster.  spec, saves : the design file's `reliability` and `checkpoint`, mappings or
    records; any field may be missing.
    checkpoint_bytes : one whole copy [bytes, scalar or (n,)].  state_bytes_per_device : what a
    device copies out in a save [bytes, ditto].
    step_s : step time; the interval is at least this, a check against corruption costs one.
    constraints : ceilings that move the interval (checkpoint overhead, lost work).
    devices : device counts instead of the cluster's own [(n,)].  gang : what the plan can drop.
    planned_stops : count the fleet's stops for maintenance and changes (graceful: nothing lost).
    features : of Life (fails_in_restart, save_survives, accounts): sources differ in these.

    Sites that average after local steps restart alone; a synchronous run stops whenever one of them
    is cut off (`elastic.cut_off`). What they exchange is in the step (physics.across).

    M = 1 / sum of the rates by cause. Interval: as pinned, else the exact optimum of the stall,
    raised until a save is durable before the next begins and moved by ceilings. Goodput: `lived`.
    A simulation of the same Life bears it out (`finish`). Source of each default in `assumed`;
    formulas' sources in `goodput` and `spares`.
    """
    n = np.asarray(cluster.devices if devices is None else devices, float)
    say: list[Assumed] = []
    nodes, step = np.ceil(n / cluster.devices_per_node), step_s or 1.0
    disk = storage.rates(cluster, nodes)
    total, fleet, name = _rate(spec, say, n)
    stall, durable, times, parts = _times(
        cluster,
        spec,
        say,
        n,
        disk,
        checkpoint_bytes,
        state_bytes_per_device,
    )
    stops = failures.stops(
        spec,
        total,
        n,
        times,
        say,
    )
    life = Life(
        stops=stops,
        levels=(
            Level(
                stall_s=stall,
                durable_s=durable,
            ),
        ),
        reach=(0,) * len(stops),
        interval_s=1.0,
        pauses=(),
        latency_s=0.0,
        planned_per_s=0.0,
        spares=0,
        gang=None if get(spec, "recovery") in ("restart", "in-place") else gang,
        cut_off=elastic.cut_off(cluster),
        alone=cluster.sites if cluster.sync.apart else 1,
        **features,
    )
    m = life.mtbf_s
    every = check_every(
        spec,
        life.corruptions_per_s,
        step,
        say,
    )
    planned = fleet.planned_per_day if planned_stops else 0.0
    life = replace(
        life,
        pauses=(
            *failures.pauses(
                spec,
                n,
                nodes,
                nodes * cluster.nics_per_node,
                say,
            ),
            failures.Pause(
                id="checks",
                per_s=(life.corruptions_per_s > 0) / every,
                seconds=step,
            ),
        ),
        latency_s=every / 2,
        planned_per_s=planned / DAY_S,
    )
    optimum = goodput.optimum_interval(m, stall)
    interval, by = chosen_interval(
        optimum,
        stall,
        durable,
        constraints,
        saves,
        step,
    )
    life, tiers = _by_tiers(
        cluster,
        replace(life, interval_s=interval),
        saves,
        disk,
        checkpoint_bytes,
        state_bytes_per_device,
        sum(v for k, v in parts.items() if k != "load"),
    )
    by = "checkpoint.tiers" if len(life.levels) > 1 else by
    interval, detect, repair = life.interval_s, life.mean("detect_s"), life.repair_s
    load = life.evictions_per_s * repair / (1 + detect / m)
    most = min(int(nodes.max()) + 2, 4096)  # spares that are looked at
    hit = _domain_nodes(cluster, nodes)
    needed = hit.get({"pod": "rack"}.get(get(constraints, "survive"), get(constraints, "survive")))
    recommended = np.maximum(
        spares.cheapest(load, nodes, limit=most), 0 if needed is None else needed
    )
    used = given(
        spec,
        "reliability.spares",
        np.asarray(recommended),
        "the number that makes a useful hour cheapest (Erlang-B), at least the domain that must be "
        "survived (a pod: a rack's, its own copies and shrinking beyond)",
        say,
    )
    life = replace(life, spares=np.asarray(used, int))
    good, bad = lived(life)
    waits, _ = lived(replace(life, gang=None))
    elastically = get(spec, "recovery") or (
        "elastic" if np.any(good > waits + 1e-4) else "in-place"
    )
    curve = {}
    if n.ndim == 0 and len(life.levels) == 1:
        low, high = sorted((float(interval), float(optimum)))
        axis = np.geomspace(max(1.0, low / 20), high * 20, 81)
        curve = {
            "interval_s": axis,
            "goodput": lived(replace(life, interval_s=axis))[0],
        }
    top = interval * life.levels[-1].every
    reach = np.maximum(every, SPIKE_STEPS * step)
    keep = checkpoint.retention(
        top + stall,
        detection_latency_s=reach,
        durable_s=durable,
    )
    why = "back past a corruption found late and a loss spike (160 steps), one in flight"
    keep = given(
        saves,
        "checkpoint.keep_versions",
        keep,
        why,
        say,
    )
    why = "judgement: a fortnight of daily copies for what nobody saw"
    days = float(
        given(
            saves,
            "checkpoint.keep_days",
            KEEP_DAYS,
            why,
            say,
        )
    )
    restart = life.mean("restart_s")
    return Endurance(
        devices=n.astype(int),
        preset=name,
        failures_per_1000_node_days=1 / m / failures.failure_rate_per_s(1.0, n),
        mtbf_s=m,
        failures_per_day={s.cause.id: s.per_s * DAY_S for s in life.stops},
        planned_per_day=planned,
        checkpoint_interval_s=interval,
        checkpoint_bytes=checkpoint_bytes,
        checkpoint_stall_s=stall,
        checkpoint_durable_s=durable,
        checkpoint_overhead=stall / (interval + stall),
        young_s=goodput.young(m, stall),
        daly_s=goodput.daly(m, stall),
        optimum_s=optimum,
        restart_s=restart,
        detect_s=detect,
        repair_s=repair,
        recovery_s=detect + restart,
        recovery=elastically,
        first_step_s=first_step(n, parts["load"]),
        lost_work_s=interval + stall + durable,
        goodput=np.clip(good, 1e-12, 1.0),
        badput=bad,
        spares=life.spares,
        spares_recommended=recommended,
        spares_for={str(c): spares.spares_for(load, c, limit=most) for c in (0.9, 0.99, 0.999)},
        write_bytes_per_s_needed=checkpoint.write_rate_needed(checkpoint_bytes, top, stall),
        write_bytes_per_s=disk.write_bytes_per_s,
        retention=keep,
        keep_days=days,
        check_every_s=every,
        tiers=tiers,
        domain_nodes=hit,
        sites=cluster.sites,
        alone=life.alone,
        copies_survive=disk.survives,
        curve=curve,
        interval_set_by=by,
        assumed=tuple(say),
        life=life,
    )


def check_every(
    spec,
    corruptions_per_s,
    step_s,
    say: list,
):
    """Seconds between two checks against corruption, each a step run twice: as given, else those
    that cost least, sqrt(2 step / rate), at least once a day."""
    rate = np.maximum(corruptions_per_s, 1e-300)
    best = np.clip(np.sqrt(2 * step_s / rate), step_s, max(DAY_S, step_s))
    why = "where repeated steps and replays cost least: sqrt(2 x step / corruptions per s)"
    best = best if np.ndim(best) else float(best)
    return given(
        get(spec, "sdc"),
        "reliability.sdc.check_every_s",
        best,
        why,
        say,
    )


def _times(
    cluster,
    spec,
    say,
    n,
    disk,
    checkpoint_bytes,
    state_bytes_per_device,
):
    """(stall of a save, time until it is durable, {detect_s, restart_s, repair_s}, parts of the
    restart) [s]: given, or by the rule that goes into `say`."""
    nodes = np.ceil(n / cluster.devices_per_node)

    def moved(way):
        store, node = (getattr(disk, f"{at}{way}_bytes_per_s") for at in ("", "node_"))
        return checkpoint.transfer_s(
            checkpoint_bytes,
            store,
            nodes,
            node,
        )

    mode = get(spec, "recovery") or "in-place"
    parts = first_step(n, checkpoint.LOAD_S + moved("read"), mode)
    link = cluster.accelerator.host_link_bytes_per_s
    rules = {
        "checkpoint_stall_s": (
            checkpoint.snapshot_stall_s(state_bytes_per_device, link),
            "asynchronous save: 0.5 s to plan and pin (ByteCheckpoint, Table 8) + the copy "
            "to host memory at half the host link",
        ),
        "checkpoint_durable_s": (
            checkpoint.COMMIT_S + moved("write"),
            f"20 s to commit (ByteCheckpoint, Table 8) + one copy at the write rate of {disk.what}",
        ),
        "detect_s": (
            DETECT_S,
            "60 s to see and 2 min to localise an explicit failure (ByteRobust s2.2)",
        ),
        "restart_s": (
            sum(parts.values()),
            f"{mode}: " + " + ".join(f"{k} {np.max(v):,.0f} s" for k, v in parts.items()),
        ),
        "repair_s": (
            REPAIR_S,
            "4 h to drain, test and return a node; 2.2 h measured at NCSA Delta",
        ),
    }
    stall, durable, *times = (
        np.asarray(
            given(
                spec,
                f"reliability.{field}",
                np.asarray(value),
                why,
                say,
            ),
            float,
        )
        for field, (value, why) in rules.items()
    )
    return stall, durable, dict(zip(("detect_s", "restart_s", "repair_s"), times)), parts


def _by_tiers(
    cluster,
    life: Life,
    saves,
    disk,
    checkpoint_bytes,
    state_bytes_per_device,
    launch_s,
):
    """(life, rows): the life with the tiers of the design, each failure restoring from the nearest
    copy that survives it; the shared store alone where none is given."""
    asked = {k: get(get(saves, "tiers"), k) for k in TIERS}
    asked = {k: v for k, v in asked.items() if v is not None}
    near, stored = life.levels[0], "L3" if disk.kind == "object" else "L2"
    if not asked or np.ndim(life.mtbf_s):
        every = np.max(life.interval_s)
        return life, (
            _row(
                stored,
                every,
                near.durable_s,
                [s.cause.id for s in life.stops],
            ),
        )
    asked = asked if {"l2", "l3"} & asked.keys() else asked | {"l2": {}}
    found = {
        t.id.lower(): t
        for t in checkpoint.tiers(
            cluster,
            float(checkpoint_bytes),
            float(state_bytes_per_device),
            store_write_bytes_per_s=float(disk.write_bytes_per_s),
            store_read_bytes_per_s=float(disk.read_bytes_per_s),
            store_capacity_bytes=float(disk.capacity_bytes),
            stall_s=float(near.stall_s),
        )
    }
    names = [k for k in TIERS if k in asked]
    durable = {k: 0.0 if k == "l0" else float(found[k].durable_s) for k in names}
    if "l2" in names:
        durable["l2"] = float(near.durable_s)
    period = float(get(asked[names[0]], "every_s") or life.interval_s)
    every, levels = 1, []
    for k in names:
        given_s = get(asked[k], "every_s")
        times = (given_s or durable[k] + float(near.stall_s)) / (period * every)
        every *= max(1, round(times) if given_s else int(np.ceil(times)))
        low = max([durable[k], *(x.durable_s for x in levels)])
        levels.append(
            Level(
                stall_s=near.stall_s,
                durable_s=low,
                every=every,
            )
        )
    reach = tuple(
        next((i for i, k in enumerate(names) if int(k[1]) >= s.cause.copy), len(names) - 1)
        for s in life.stops
    )
    stops = tuple(
        replace(s, restart_s=np.minimum(launch_s + found[names[k]].restore_s, s.restart_s))
        for s, k in zip(life.stops, reach)
    )
    rows = tuple(
        _row(
            k.upper(),
            period * level.every,
            level.durable_s,
            [s.cause.id for s, at in zip(stops, reach) if at == i],
        )
        for i, (k, level) in enumerate(zip(names, levels))
    )
    own = {
        "levels": tuple(levels),
        "reach": reach,
        "stops": stops,
        "interval_s": period,
    }
    return replace(life, **own), rows


def _row(
    tier,
    every_s,
    write_s,
    restores,
) -> dict:
    return {
        "tier": tier,
        "every_s": float(every_s),
        "write_s": float(np.max(write_s)),
        "restores": restores,
    }


def tiered(
    cluster,
    endurance: Endurance,
    *,
    state_bytes_per_device,
) -> dict:
    """The same job with copies at every tier: {tiers, interval_s, every, goodput, gain, life}.

    tiers as `checkpoint.tiers`; saves go to the host and a peer each time, to the store as often as
    it keeps up; the interval maximises `lived`.
    """
    e, disk = endurance, storage.rates(cluster)
    size, held = float(np.max(e.checkpoint_bytes)), float(state_bytes_per_device)
    launch = max(float(e.restart_s) - float(e.first_step_s["load"]), 0.0)
    first, best = dict.fromkeys(TIERS[:3], {}), float(e.optimum_s)
    plain = replace(
        e.life,
        levels=e.life.levels[-1:],
        reach=(0,) * len(e.life.stops),
    )

    def at(tau):
        saves = {"tiers": first | {"l0": {"every_s": tau}}}
        return _by_tiers(
            cluster,
            plain,
            saves,
            disk,
            size,
            held,
            launch,
        )[0]

    lives = [at(tau) for tau in np.geomspace(max(best / 8, 1.0), max(best * 4, 1.0), 40)]
    life = max(lives, key=lambda one: lived(one)[0])
    total = float(lived(life)[0])
    return {
        "tiers": checkpoint.tiers(
            cluster,
            size,
            held,
            store_write_bytes_per_s=float(disk.write_bytes_per_s),
            store_read_bytes_per_s=float(disk.read_bytes_per_s),
            store_capacity_bytes=float(disk.capacity_bytes),
            stall_s=float(e.checkpoint_stall_s),
        ),
        "interval_s": life.interval_s,
        "every": [level.every for level in life.levels],
        "goodput": total,
        "gain": total - float(e.goodput),
        "life": life,
    }


def finish(endurance: Endurance, work_s, *, replicas=1000, seed=0, **features) -> dict:
    """Distribution of the finishing day by simulation: {goodput, badput, days_p10, days_p50,
    days_p90, replicas, seed, failures}.

    work_s : compute time of the run, failures apart [s].  features : fields of `simulate.Scenario`
    (shrink, lemons, contended, …).
    Sites that train alone: one of them is simulated. Synchronous ones: the work is stretched by
    what cuts between them cost.
    """
    life = endurance.life
    work = work_s / (1 - float(life.cut_off))
    alone = replace(life, slower=life.slower / life.alone)
    return simulate(of_life(alone, work, **features), replicas, seed).as_dict()


def _rate(
    spec,
    say,
    devices,
):
    """(failures per 1,000 node-days, the fleet, its name): as given, else the preset's, more where
    the job is larger than the fleet's."""
    explicit, name = get(spec, "failures_per_1000_node_days"), get(spec, "preset")
    fleet = catalogue.failure_preset(name or "typical")
    if explicit is not None:
        if explicit <= 0:
            say.append(
                Assumed(
                    "reliability.failures_per_1000_node_days",
                    LEAST_RATE,
                    "no fleet never fails; the least rate that is reckoned with",
                )
            )
        return max(float(explicit), LEAST_RATE), fleet, "explicit"
    rate = fleet.per_1000_node_days * failures.grown(devices, fleet.devices)
    if name is None:
        why = (
            f"none given; {fleet.per_1000_node_days:g} failures per 1,000 8-device node-days "
            f"({fleet.source})"
        )
        if np.min(devices) <= failures.SMALL_JOB:
            low, high = failures.SMALL_JOB_SOONER
            why += f"; so small a job stopped {low} to {high} times as often on Meta's RSC"
        say.append(Assumed("reliability.preset", fleet.id, why))
    if np.max(devices) > failures.GROWS_FROM:
        more = float(np.max(rate)) / fleet.per_1000_node_days
        why = f"{more:.2f} x the fleet's: time between failures fell faster than devices grew "
        why += "from Llama 3 (16,384) to FT-HSDP (98,304, arXiv 2602.00277)"
        say.append(Assumed("reliability.failures_per_1000_node_days", float(np.max(rate)), why))
    return rate, fleet, fleet.id


def chosen_interval(
    optimum,
    stall,
    durable,
    constraints,
    saves,
    step_s,
):
    """The optimum, moved as far as it must be: one save in flight, then the ceilings; the wall time
    is unimodal in it, so the nearest point is best."""
    pinned = get(saves, "interval_s")
    if pinned is not None:
        return np.zeros_like(optimum) + float(pinned), "checkpoint.interval_s"
    interval, by = np.maximum(optimum, step_s), "optimum"
    ceiling = get(constraints, "max_checkpoint_overhead")
    lost = get(constraints, "max_lost_work_s")
    most = np.inf if lost is None else lost - stall - durable
    if np.any(interval > most):
        interval = np.minimum(interval, np.maximum(most, step_s))
        by = "constraints.max_lost_work_s"
    least = stall * (1 - ceiling) / ceiling if ceiling else 0.0
    for bound, cause in (
        (least, "constraints.max_checkpoint_overhead"),
        (durable - stall, "one save in flight"),
    ):
        if np.any(interval < bound):
            interval, by = np.maximum(interval, bound), cause
    return interval, by


def _domain_nodes(cluster, nodes):
    """Nodes that one loss of each domain takes; a pod is answered by its own copies and by
    shrinking, not by spares."""
    per = {
        "node": cluster.devices_per_node,
        "rack": failures.rack_devices(cluster),
        "pod": cluster.pod_devices or cluster.devices,
    }
    return {
        k: np.minimum(-(-v // cluster.devices_per_node), nodes).astype(int) for k, v in per.items()
    }
