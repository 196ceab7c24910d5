"""What failures make of a design: time between failures, checkpoint interval, goodput and where the
rest goes."""

from collections.abc import Callable
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from .. import catalogue
from ..base.records import Assumed, Record, get, given, record
from ..base.units import DAY_S
from ..base.words import table
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
LOGGED = table(__file__, "logged")  # causes that a log tells: those of BADPUT they stand for
# a loss spike is noticed some 60 steps late (judgement) and rewound 100 (PaLM, arXiv 2204.02311
# s5.1): copies must reach back as far
SPIKE_STEPS = 160
KEEP_DAYS = 14.0
TIERS = ("l0", "l1", "l2", "l3")
PROBES = 12  # numbers of lost gangs at which the reshaped plan is assessed


@record
class Gang:
    """What an elastic run drops at once: data-parallel replicas, nodes in each, micro-batches of
    one replica in a step."""

    replicas: int
    nodes: int
    micro_batches: int
    reshape: Callable | None = None  # {ratio, fits} of the plan with so many gone, columns

    @cached_property
    def ratios(self):
        """Step over the whole one by gangs gone, for `elastic.slower`: `reshape` at PROBES of them,
        between these in proportion to `elastic.shrink_ratio`; STANDS from where it does not fit.
        None without `reshape`."""
        if self.reshape is None or self.replicas < 2:
            return None
        every = np.arange(self.replicas)
        some = np.unique(np.geomspace(1, self.replicas - 1, PROBES).astype(int))
        plain = elastic.shrink_ratio(self.micro_batches, self.replicas, every)
        found = self.reshape(some)
        ratios = plain * np.interp(every, [0, *some], [1.0, *found["ratio"] / plain[some]])
        return np.where(
            every > np.max(some[found["fits"]], initial=0), elastic.STANDS, np.maximum(ratios, 1.0)
        )


@record
class Life:
    """All that the closed form and the simulation know of a job: the one description that both
    read. Seconds of the whole job; arrays where device counts are."""

    stops: tuple[failures.Stop, ...]
    levels: tuple[Level, ...]  # one, or those of the tiers, nearest first
    reach: tuple[int, ...]  # level that each of the stops restores from
    interval_s: object = 1.0  # between saves of the first level
    pauses: tuple[failures.Pause, ...] = ()
    latency_s: object = 0.0  # corruption to its discovery
    planned_per_s: float = 0.0  # stops that save first, restart and lose nothing
    spares: object = 0  # losses of a node that they cover at a time (`spares.Segments`)
    gang: Gang | None = None  # None: the job waits where spares are out
    cut_off: float = 0.0  # share of the time that a synchronous run waits for a site
    alone: int = 1  # parts that restart without the others
    slower: object = 1.0  # failures over those of `stops`

    @property
    def mtbf_s(self):
        return 1 / np.maximum(self.slower * sum(s.per_s for s in self.stops), 1e-300)

    def mean(self, what: str, which=lambda stop: True):
        """Mean of a time over the failures that `which` picks."""
        kept = [s for s in self.stops if which(s)]
        total = sum(s.per_s for s in kept)
        return sum(s.per_s * getattr(s, what) for s in kept) / np.maximum(total, 1e-300)

    @property
    def held(self) -> tuple:
        """The pauses, planned stops among them: a save and a restart."""
        far = self.levels[-1]
        return (
            failures.Pause(
                id="planned stops",
                per_s=self.planned_per_s,
                seconds=far.stall_s + far.durable_s + self.mean("restart_s"),
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
        kept = [s for s, k in zip(self.stops, self.reach) if level in (None, k)]
        total = np.maximum(sum(s.per_s for s in kept), 1e-300)
        m = self.mtbf_s * self.alone
        lived = sum(s.per_s / total * -np.expm1(-s.restart_s / m) for s in kept)
        return np.where(
            lived < 0.999,
            -m * np.log1p(-np.minimum(lived, 0.9999)),
            sum(s.per_s / total * s.restart_s for s in kept),
        )


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
    spares: object  # nodes
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
    life: Life = field(repr=False)
    segments: spares.Segments = field(repr=False)

    @property
    def evictions_per_s(self):
        """Failures that take a node out of the job."""
        return self.life.evictions_per_s

    @property
    def corruptions_per_s(self):
        """Corruptions of the state that nobody sees."""
        return self.life.corruptions_per_s


def as_logged(badput: dict) -> dict:
    """Shares of the wall clock that a plan loses, by the causes that a log tells."""
    return {cause: float(sum(badput[n] for n in names)) for cause, names in LOGGED.items()}


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
    m = life.mtbf_s * life.alone
    part = _running(life)
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
    tau = life.interval_s
    near = life.levels[0]
    detect = life.mean("detect_s")
    part = goodput.shares(
        life.mtbf_s * life.alone,
        near.stall_s,
        tau,
        durable_s=life.levels[-1].durable_s,
        restart_s=life.restart_s(),
        down_s=detect,
    )
    if len(life.levels) > 1:
        slower = life.slower / life.alone
        several = range(len(life.levels))
        part["useful"] = goodput.ettr_tiers_nested(
            [
                slower * sum(s.per_s for s, k in zip(life.stops, life.reach) if k == level)
                for level in several
            ],
            life.levels,
            tau,
            [life.restart_s(level) for level in several],
            detect,
        )
        part["saves"] = part["useful"] * near.stall_s / tau
        spent = sum(part[k] for k in ("useful", "saves", "detection", "restart"))
        part["lost work"] = np.maximum(1 - spent, 0.0)
    return part


def shortage(life: Life):
    """Share of the wall time lost for want of nodes: waiting for a repair, or running on without a
    gang where that costs less. The wait of an eviction hides behind its own detection; other
    downtime stretches the time between evictions."""
    rate = np.maximum(life.evictions_per_s, 1e-300)
    gang = life.gang
    others = (1 / life.mtbf_s - rate) * life.mean("detect_s", lambda s: not s.cause.evicts)
    wait = spares.shortage(
        life.spares,
        rate / (1 + others + sum(p.per_s * p.seconds for p in life.held)),
        life.repair_s,
        life.mean("detect_s", lambda s: s.cause.evicts),
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
        ratios=gang.ratios,
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

    Sites that average after local steps fail, restart, slow down and save alone, each as so many
    devices do; a synchronous run stops whenever one of them
    is cut off (`elastic.cut_off`). What they exchange is in the step (physics.sites).

    M = 1 / sum of the rates by cause. Interval: as pinned, else the exact optimum of the stall,
    raised until a save is durable before the next begins and moved by ceilings. Goodput: `lived`.
    A simulation of the same Life bears it out (`finish`). Source of each default in `assumed`;
    formulas' sources in `goodput` and `spares`.
    """
    n = np.asarray(cluster.devices if devices is None else devices, float)
    say = []
    nodes = np.ceil(n / cluster.devices_per_node)
    alone = cluster.sites if cluster.sync.apart else 1
    part = n / alone  # what stops and starts together
    step = step_s or 1.0
    disk = storage.rates(cluster, nodes)
    total, fleet, name = _rate(spec, say, n)
    stall, durable, times, parts = _times(
        cluster, spec, say, part, nodes, disk, checkpoint_bytes, state_bytes_per_device
    )
    stops = failures.stops(spec, total, n, times, say)
    life = Life(
        stops=stops,
        levels=(Level(stall_s=stall, durable_s=durable),),
        reach=(0,) * len(stops),
        gang=None if get(spec, "recovery") in ("restart", "in-place") else gang,
        cut_off=elastic.cut_off(cluster),
        alone=alone,
    )
    m = life.mtbf_s
    every = check_every(spec, life.corruptions_per_s / alone, step, say)
    planned = fleet.planned_per_day if planned_stops else 0.0
    life = replace(
        life,
        pauses=(
            *failures.pauses(spec, nodes / alone, nodes / alone * cluster.nics_per_node, say),
            failures.Pause(id="checks", per_s=(life.corruptions_per_s > 0) / every, seconds=step),
        ),
        latency_s=every / 2,
        planned_per_s=planned / DAY_S,
    )
    optimum = goodput.optimum_interval(m * alone, stall)
    interval, by = chosen_interval(optimum, stall, durable, constraints, saves, step)
    life, tiers = _by_tiers(
        cluster,
        replace(life, interval_s=interval),
        saves,
        disk,
        checkpoint_bytes,
        state_bytes_per_device,
        sum(v for k, v in parts.items() if k != "load"),
    )
    if len(life.levels) > 1:
        by = "checkpoint.tiers"
    else:
        why = f"one tier, the shared store; set by the {by}"
        given(saves, "checkpoint.interval_s", interval, why, say)
    interval = life.interval_s
    detect = life.mean("detect_s")
    repair = life.repair_s
    load = life.evictions_per_s * repair / (1 + detect / m)
    most = min(int(nodes.max()) + 2, 4096)  # spares that are looked at
    segments = spares.segments(cluster, nodes)
    hit = _domain_nodes(cluster, nodes, segments)
    survive = get(constraints, "survive")
    losses = np.maximum(
        spares.cheapest(load, nodes / segments.held(1), limit=most),
        segments.covered(hit.get("rack" if survive == "pod" else survive, 0)),
    )
    recommended = segments.held(losses)
    used = given(
        spec,
        "reliability.spares",
        recommended,
        "cheapest useful hour (Erlang-B), at least the domain to survive (for a pod: a rack's)",
        say,
    )
    life = replace(life, spares=segments.covered(used))
    good, bad = lived(life)
    waits, _ = lived(replace(life, gang=None))
    elastically = given(
        spec,
        "reliability.recovery",
        "elastic" if np.any(good > waits + 1e-4) else "in-place",
        "the better of fewer replicas and waiting for a node",
        say,
    )
    curve = {}
    if n.ndim == 0 and len(life.levels) == 1:
        low, high = sorted((interval, optimum))
        axis = np.geomspace(max(1.0, low / 20), high * 20, 81)
        curve = {"interval_s": axis, "goodput": lived(replace(life, interval_s=axis))[0]}
    top = interval * life.levels[-1].every
    keep = checkpoint.retention(
        top + stall, detection_latency_s=np.maximum(every, SPIKE_STEPS * step), durable_s=durable
    )
    why = "back past a corruption found late and a loss spike (160 steps), one in flight"
    keep = given(saves, "checkpoint.keep_versions", keep, why, say)
    why = "judgement: a fortnight of daily copies for what nobody saw"
    days = given(saves, "checkpoint.keep_days", KEEP_DAYS, why, say)
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
        young_s=goodput.young(m * alone, stall),
        daly_s=goodput.daly(m * alone, stall),
        optimum_s=optimum,
        restart_s=restart,
        detect_s=detect,
        repair_s=repair,
        recovery_s=detect + restart,
        recovery=elastically,
        first_step_s=first_step(part, parts["load"]),
        lost_work_s=interval + stall + durable,
        goodput=np.clip(good, 1e-12, 1.0),
        badput=bad,
        spares=segments.held(life.spares),
        segments=segments,
        spares_recommended=recommended,
        spares_for={
            str(c): segments.held(spares.spares_for(load, c, limit=most))
            for c in (0.9, 0.99, 0.999)
        },
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


def check_every(spec, corruptions_per_s, step_s, say: list):
    """Seconds between two checks against corruption, each a step run twice: as given, else those
    that cost least, sqrt(2 step / rate), at least once a day."""
    return given(
        get(spec, "sdc"),
        "reliability.sdc.check_every_s",
        np.clip(
            np.sqrt(2 * step_s / np.maximum(corruptions_per_s, 1e-300)), step_s, max(DAY_S, step_s)
        ),
        "where repeated steps and replays cost least: sqrt(2 x step / corruptions per s)",
        say,
    )


def _times(cluster, spec, say, part, nodes, disk, checkpoint_bytes, state_bytes_per_device):
    """(stall of a save, time until it is durable, {detect_s, restart_s, repair_s}, parts of the
    restart) [s]: given, or by the rule that goes into `say`. part : devices that start together."""
    write_s, read_s = (
        checkpoint.transfer_s(checkpoint_bytes, store, nodes, node)
        for store, node in (
            (disk.write_bytes_per_s, disk.node_write_bytes_per_s),
            (disk.read_bytes_per_s, disk.node_read_bytes_per_s),
        )
    )
    mode = get(spec, "recovery") or "in-place"
    parts = first_step(part, checkpoint.LOAD_S + read_s, mode)
    rules = {
        "checkpoint_stall_s": (
            checkpoint.snapshot_stall_s(
                state_bytes_per_device, cluster.accelerator.host_link_bytes_per_s
            ),
            "asynchronous: 0.5 s (ByteCheckpoint, Table 8) + the copy at half the host link",
        ),
        "checkpoint_durable_s": (
            checkpoint.COMMIT_S + write_s,
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
    times = {
        field: given(spec, f"reliability.{field}", value, why, say)
        for field, (value, why) in rules.items()
    }
    return times.pop("checkpoint_stall_s"), times.pop("checkpoint_durable_s"), times, parts


def _by_tiers(cluster, life: Life, saves, disk, checkpoint_bytes, state_bytes_per_device, launch_s):
    """(life, rows): the life with the tiers of the design, each failure restoring from the nearest
    copy that survives it; the shared store alone where none is given."""
    asked = {k: own for k in TIERS if (own := get(get(saves, "tiers"), k)) is not None}
    if not asked or np.ndim(life.mtbf_s):
        asked = {"l3" if disk.kind == "object" else "l2": {}}
    else:
        if not {"l2", "l3"} & asked.keys():
            asked["l2"] = {}
        found = checkpoint.tiers(
            cluster, checkpoint_bytes, state_bytes_per_device, disk, life.levels[0].stall_s
        )
        life = _nested(life, asked, dict(zip(TIERS, found)), launch_s)
    return life, tuple(
        {
            "tier": k.upper(),
            "every_s": np.max(life.interval_s) * level.every,
            "write_s": np.max(level.durable_s),
            "restores": [s.cause.id for s, at in zip(life.stops, life.reach) if at == i],
        }
        for i, (k, level) in enumerate(zip(asked, life.levels))
    )


def _nested(life: Life, asked: dict, found: dict, launch_s) -> Life:
    """The life with a level for each of the tiers that are asked for, nearest first."""
    names = tuple(asked)
    near = life.levels[0]
    period = get(asked[names[0]], "every_s") or life.interval_s
    every = 1
    low = 0.0
    levels = []
    for k, own in asked.items():
        durable = (near if k == "l2" else found[k]).durable_s
        given_s = get(own, "every_s")
        times = (given_s or durable + near.stall_s) / (period * every)
        every *= max(1, round(times) if given_s else int(np.ceil(times)))
        low = max(durable, low)
        levels.append(Level(stall_s=near.stall_s, durable_s=low, every=every))
    last = len(names) - 1
    reach = tuple(min(sum(int(k[1]) < s.cause.copy for k in names), last) for s in life.stops)
    return replace(
        life,
        levels=tuple(levels),
        reach=reach,
        stops=tuple(
            replace(s, restart_s=np.minimum(launch_s + found[names[k]].restore_s, s.restart_s))
            for s, k in zip(life.stops, reach)
        ),
        interval_s=period,
    )


def tiered(cluster, endurance: Endurance, *, state_bytes_per_device) -> dict:
    """The same job with copies at every tier: {tiers, interval_s, every, goodput, gain, life}.

    tiers as `checkpoint.tiers`; saves go to the host and a peer each time, to the store as often as
    it keeps up; the interval maximises `lived`.
    """
    e = endurance
    disk = storage.rates(cluster)
    launch = max(e.restart_s - e.first_step_s["load"], 0.0)
    first = dict.fromkeys(TIERS[:3], {})
    plain = replace(e.life, levels=e.life.levels[-1:], reach=(0,) * len(e.life.stops))

    def at(tau):
        return _by_tiers(
            cluster,
            plain,
            {"tiers": first | {"l0": {"every_s": tau}}},
            disk,
            e.checkpoint_bytes,
            state_bytes_per_device,
            launch,
        )[0]

    ends = (max(e.optimum_s * times, 1.0) for times in (1 / 8, 4))
    life = max(map(at, np.geomspace(*ends, 40)), key=lambda one: lived(one)[0])
    total = lived(life)[0]
    return {
        "tiers": checkpoint.tiers(
            cluster, e.checkpoint_bytes, state_bytes_per_device, disk, e.checkpoint_stall_s
        ),
        "interval_s": life.interval_s,
        "every": [level.every for level in life.levels],
        "goodput": total,
        "gain": total - e.goodput,
        "life": life,
    }


def finish(endurance: Endurance, work_s, *, replicas=1000, seed=0, **features) -> dict:
    """Distribution of the finishing day by simulation: {goodput, badput, days_p10, days_p50,
    days_p90, replicas, seed, failures}.

    work_s : compute time of the run, failures apart [s].  features : fields of `simulate.Scenario`
    (spares, shrink, …).
    Sites that train alone: one of them is simulated. Synchronous ones: the work is stretched by
    what cuts between them cost.
    """
    life = endurance.life
    return simulate(
        of_life(
            replace(life, slower=life.slower / life.alone), work_s / (1 - life.cut_off), **features
        ),
        replicas,
        seed,
    ).as_dict()


def _rate(spec, say, devices):
    """(failures per 1,000 node-days, the fleet, its name): as given, else the preset's, more where
    the job is larger than the fleet's."""
    explicit = get(spec, "failures_per_1000_node_days")
    name = get(spec, "preset")
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
        return max(explicit, LEAST_RATE), fleet, "explicit"
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
        most = np.max(rate)
        why = (
            f"{most / fleet.per_1000_node_days:.2f} x the fleet's: time between failures fell "
            "faster than devices grew from Llama 3 (16,384) to FT-HSDP (98,304, arXiv 2602.00277)"
        )
        say.append(Assumed("reliability.failures_per_1000_node_days", most, why))
    return rate, fleet, fleet.id


def chosen_interval(optimum, stall, durable, constraints, saves, step_s):
    """The optimum, moved as far as it must be: one save in flight, then the ceilings; the wall time
    is unimodal in it, so the nearest point is best."""
    pinned = get(saves, "interval_s")
    if pinned is not None:
        return 0 * optimum + pinned, "checkpoint.interval_s"
    interval = np.maximum(optimum, step_s)
    by = "optimum"
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
            interval = np.maximum(interval, bound)
            by = cause
    return interval, by


def _domain_nodes(cluster, nodes, segments):
    """Nodes that one loss of each domain takes; a pod is answered by its own copies and by
    shrinking, not by spares."""
    per_node = cluster.devices_per_node
    size = segments.size
    per = {
        "node": per_node,
        "rack": np.where(size > 1, size * per_node, failures.rack_devices(cluster)),
        "pod": cluster.pod_devices or cluster.devices,
    }
    return {k: np.minimum(-(-v // per_node), nodes).astype(int) for k, v in per.items()}
