"""The kinds of trouble that the register looks for. Each function evaluates one on a design and
returns what it found, None where it cannot occur; the words stand in tables/risks.yaml."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from ... import catalogue
from ...advise.diagnose import MEMORY_SD
from ...base.show import several
from ...base.units import DAY_S, HOUR_S
from ...endure import elastic, failures, goodput, reliability, spares, storage
from ...endure.cost import power_w
from ...physics import stragglers
from ...physics.cases import PRECISIONS
from ...physics.step import step_time
from ...verdict.constraints import Z80, chance_below
from ..domains import domains
from ..rollout.burn_in import screen
from ..rollout.watch import playbooks, spikes
from ..site import STANDSTILL, Site, ettr, is_torus
from ..texts import constant, fill, number, source, texts

SLOW_REPAIRS = constant("slow_repairs")
UNTUNED = constant("untuned")
LEMONS = constant("lemons")
EVEN = 0.5  # the chance where nobody has published a rate
FLEETS = {
    "rsc-1": "Meta RSC-1",
    "rsc-2": "Meta RSC-2",
    "ft-hsdp": "FT-HSDP",
    "imbue": "Imbue",
    "bloom": "BLOOM",
    "opt-175b": "OPT-175B",
    "llama3": "Llama 3",
}
NO_FLEETS = ("typical", "good", "bad", "new-cluster", "epoch", "byterobust", "tpu")


@dataclass(frozen=True, kw_only=True)
class Found:
    """One kind of trouble on one design: the chance, what it costs where it happens, and the
    numbers that its words name."""

    id: str  # of tables/risks.yaml
    likelihood: float
    days: float
    usd: float | None = -1.0  # -1: the days at the run's price
    left: float | None = None  # expected days with the mitigation
    cost_usd: float | None = None  # of the mitigation
    in_headline: bool = False
    words: dict = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A site and what several risks need of it."""

    s: Site

    @property
    def steps(self) -> float:
        """Steps of the run."""
        return self.s.run.days * DAY_S * self.s.e.goodput / self.s.step_s

    def goodput_at(
        self, *, mtbf_s=None, durable_s=None, restart_s=None, spare_nodes=None, repair_s=None
    ) -> float:
        """Goodput with some of the endurance's figures changed: closed form and shortage again, the
        other losses as they are.

        Where spares run short the job waits or shrinks, whichever costs less (`spares.shortage`,
        `elastic.shrink_loss`).
        """
        e = self.s.e
        changed = dict(
            mtbf_s=mtbf_s,
            checkpoint_durable_s=durable_s,
            restart_s=restart_s,
            spares=spare_nodes,
            repair_s=repair_s,
        )
        new = replace(e, **{k: float(v) for k, v in changed.items() if v is not None})
        stall = e.checkpoint_stall_s
        every = max(e.checkpoint_interval_s, new.checkpoint_durable_s - stall)
        if mtbf_s is not None:
            every = self.interval_s(new)
        kept = ettr(new, every) / max(ettr(e), 1e-300)
        fed = (1 - self.short(new, shrinks=True)) / max(1 - self.short(e), 1e-9)
        stops = e.planned_per_day / DAY_S
        planned = (1 + stops * _stop_s(e)) / (1 + stops * _stop_s(new))
        return e.goodput * kept * fed * planned

    def interval_s(self, e) -> float:
        """Checkpoint interval at another time between failures."""
        chosen = reliability.chosen_interval(
            goodput.optimum_interval(e.mtbf_s, e.checkpoint_stall_s),
            e.checkpoint_stall_s,
            e.checkpoint_durable_s,
            self.s.a.resolved.constraints,
            None,
            self.s.step_s,
        )
        return float(chosen[0])

    def short(self, e, shrinks=False) -> float:
        """Share of the run lost for want of nodes: waiting, or shrunk by whole replicas where that
        costs less."""
        plan = self.s.plan
        span = self.s.expert_span
        rate = failures.EVICTS / e.mtbf_s
        n = int(e.spares) + self.s.idle_nodes
        wait = float(spares.shortage(n, rate, e.repair_s, e.detect_s))
        gangs = plan["dp"] // span
        if not shrinks or gangs < 2 or wait < 1e-4:
            return wait
        gang = -(-plan["tp"] * plan["cp"] * plan["pp"] * span // self.s.per_node)
        accumulated = max(plan["grad_accum"], 1) * span
        return min(wait, elastic.shrink_loss(rate * e.repair_s, n, gang, gangs, accumulated))

    def days_at(self, goodput: float) -> float:
        """Days that the run takes longer at another goodput."""
        return max(self.s.run.days * (self.s.e.goodput / max(goodput, 1e-9) - 1), 0.0)

    def days_of_step(self, ratio: float) -> float:
        """Days that the run takes longer where the step takes `ratio` times as long."""
        return self.s.run.days * (ratio - 1)

    def usd_of_nodes(self, n: float, of: float | None = None) -> float | None:
        """Dollars of so many nodes held as long as the run."""
        return self.s.run.usd(self.s.run.days * n / (of or self.s.run.nodes))

    @property
    def idle(self) -> str:
        """What to say of nodes that the plan leaves idle."""
        idle = self.s.idle_nodes
        return f" (beside {several(idle, 'node')} that the plan leaves idle)" if idle else ""


def _stop_s(e) -> float:
    """Seconds of a planned stop: a save and a restart."""
    return e.checkpoint_stall_s + e.checkpoint_durable_s + e.restart_s


def mean_excess(sd: float) -> float:
    """Mean of a log-normal over its median, given that it exceeds it, less one:
    2 (exp(sd^2 / 2) Phi(sd) - 1/2)."""
    return 2 * (math.exp(sd * sd / 2) * 0.5 * (1 + math.erf(sd / math.sqrt(2))) - 0.5)


def at_least_one(events: float) -> float:
    """Chance of one or more of so many expected: 1 - exp(-events)."""
    return 1 - math.exp(-events)


def slower_than_estimated(at: Scene):
    s = at.s
    f = at.s.figures
    wants = at.s.a.resolved.constraints
    high = f["step_s_high"] / f["step_s"]
    if high <= 1:
        return None
    deadline = wants.deadline_days
    late = ""
    if deadline is not None and f["days"] is not None:
        missed = 1 - chance_below(deadline, f["days_low"], f["days"], f["days_high"])
        if missed >= 0.01:
            late = fill(
                texts("risks")["slow-step"]["late"],
                deadline=deadline,
                missed=missed,
            )
    return Found(
        id="slow-step",
        likelihood=EVEN,
        days=s.run.days * mean_excess(math.log(high) / Z80),
        words=dict(edge=at.days_of_step(high), late=late),
        left=EVEN * s.run.days * mean_excess(constant("scatter") / 0.6745),
        cost_usd=s.run.usd(100 * s.step_s / DAY_S),
    )


def late_delivery(at: Scene):
    s = at.s
    c = at.s.cost
    months = number("R144")
    watts = float(power_w(s.cluster, s.run.devices_paid))
    if not watts >= constant("dedicated_w"):
        return None
    words = texts("risks")["late"]
    late = months * (365.25 / 12)
    usd = None
    says = words["no price"]
    if c is not None and c.usd_per_device_hour:
        mid = c.usd_per_device_hour
        high = c.usd_per_device_hour_high
        usd = ((high or mid) - mid) * s.run.devices_paid * 24 * min(late, s.run.days)
        says = fill(
            words["price"],
            high=high,
            mid=mid,
        )
    return Found(
        id="late",
        likelihood=number("R143") / 100,
        days=late,
        usd=usd,
        words=dict(
            watts=watts,
            months=months,
            says=says,
        ),
    )


def dearer(at: Scene):
    s = at.s
    c = at.s.cost
    mid, high = (c.usd_per_device_hour, c.usd_per_device_hour_high) if c else (None, None)
    if not mid or not high or high <= mid:
        return None
    return Found(
        id="price",
        likelihood=EVEN,
        days=0.0,
        usd=s.run.devices_paid * 24 * s.run.days * (high - mid) / 2,
        left=0.0,
        cost_usd=0.0,
    )


def worse_fleet(at: Scene):
    e = at.s.e
    own = float(e.failures_per_1000_node_days)
    fleets = [p for p in catalogue.failure_presets().values() if p.id not in NO_FLEETS]
    worse = [p for p in fleets if p.per_1000_node_days > own * 1.05]
    if not worse:
        return None

    def goodputs(kept: float) -> list[float]:
        rates = (max(p.per_1000_node_days * kept, own) for p in worse)
        return [at.goodput_at(mtbf_s=e.mtbf_s * own / rate) for rate in rates]

    rates = goodputs(1.0)
    chance = (len(worse) + 1) / (len(fleets) + 2)
    named = ", ".join(f"{FLEETS.get(p.id, p.id)} {p.per_1000_node_days:.3g}" for p in worse)
    days, left = (
        float(np.mean([at.days_at(g) for g in many])) for many in (rates, goodputs(1 - LEMONS))
    )
    soak = number("R167")
    return Found(
        id="failures",
        likelihood=chance,
        days=days,
        words=dict(
            worse=len(worse),
            fleets=len(fleets),
            own=own,
            names=named,
            lowest=min(rates),
            soak=soak,
        ),
        left=chance * left,
        cost_usd=at.s.run.usd(soak),
    )


def no_spares(at: Scene):
    e = at.s.e
    have = at.s.spares
    if have < 1:
        return None
    bare = at.goodput_at(spare_nodes=0)
    return Found(
        id="spares",
        likelihood=EVEN,
        days=at.days_at(bare),
        words=dict(
            spares=several(have, "spare"),
            nodes=several(have, "spare node"),
            per_day=failures.EVICTS / e.mtbf_s * DAY_S,
            short=at.short(e),
            bare=bare,
            idle=at.idle,
        ),
        left=0.0,
        cost_usd=at.usd_of_nodes(have, at.s.run.nodes + have),
    )


def slow_repairs(at: Scene):
    s = at.s
    e = at.s.e
    have = at.s.spares
    if e.repair_s >= DAY_S:
        return None
    load = failures.EVICTS * DAY_S / e.mtbf_s
    need = int(spares.cheapest(load, s.run.nodes, limit=min(s.run.nodes + 2, 4096)))
    slow = at.goodput_at(repair_s=DAY_S)
    fixed = at.goodput_at(repair_s=DAY_S, spare_nodes=max(need, have))
    return Found(
        id="repairs",
        likelihood=SLOW_REPAIRS,
        days=at.days_at(slow),
        words=dict(
            load=load,
            spares=several(have, "spare"),
            slow=slow,
            idle=at.idle,
            need=several(need, "spare"),
        ),
        left=SLOW_REPAIRS * at.days_at(fixed),
        cost_usd=at.usd_of_nodes(max(need - have, 0)),
    )


def corruption(at: Scene):
    s = at.s
    rate = failures.SDC_SHARE / at.s.e.mtbf_s
    events = rate * s.run.days * DAY_S * s.e.goodput
    chance = at_least_one(events)
    if chance <= 0:
        return None
    later_s = constant("late_h") * HOUR_S - reliability.SDC_LATENCY_S
    every, overhead = map(float, stragglers.verified_interval(0.0, rate, s.step_s, 0.0))
    return Found(
        id="corruption",
        likelihood=chance,
        days=events / chance * later_s / DAY_S,
        words=dict(
            events=events,
            checked_s=reliability.SDC_LATENCY_S,
            found_late=source("R069"),
            every=every,
        ),
        left=overhead * s.run.days,
        cost_usd=s.run.usd(overhead * s.run.days),
    )


def slow_store(at: Scene):
    s = at.s
    e = at.s.e
    has = storage.rates(s.cluster, s.cluster.nodes)
    write = min(float(has.write_bytes_per_s), s.cluster.nodes * float(has.node_write_bytes_per_s))
    more = constant("slow_store") - 1
    durable = e.checkpoint_durable_s + more * e.checkpoint_bytes / write
    read = max(float(has.read_bytes_per_s), 1.0)
    restart = e.restart_s + more * e.checkpoint_bytes / read
    slow = at.goodput_at(durable_s=durable, restart_s=restart)
    days = at.days_at(slow)
    if days <= 0:
        return None
    peers = at.goodput_at(durable_s=min(constant("peers_s"), durable), restart_s=restart)
    return Found(
        id="store",
        likelihood=EVEN,
        days=days,
        words=dict(
            what=has.what,
            write=write,
            durable=durable,
            slow=slow,
        ),
        left=EVEN * at.days_at(peers),
    )


def slow_network(at: Scene):
    s = at.s
    out = at.s.case.link.out_bytes_per_s
    if s.nodes < 2 or is_torus(s.cluster):
        return None
    ethernet = catalogue.fabric(s.cluster.scale_out).technology == "ethernet"
    factor = 1 + number("R168") / 100 if ethernet else constant("slow_link_factor")
    slow = s.step_ratio(link=s.link(out_bytes_per_s=out / factor))
    if slow <= 1:
        return None
    longer = at.days_of_step(slow)
    counted = min(s.used / constant("slow_link_devices"), 1.0)
    found_s = constant("slow_link_min") * 60
    return Found(
        id="network-ethernet" if ethernet else "network",
        likelihood=UNTUNED if ethernet else constant("shared_link") * counted,
        days=longer if ethernet else (slow - 1) * found_s / DAY_S,
        words=dict(
            factor=factor,
            slow=slow,
            unnoticed=longer,
        ),
        left=0.0,
        cost_usd=0.0,
    )


def unscreened(at: Scene):
    s = at.s
    cut = screen(at.s)
    counted = s.figures["step_breakdown_s"]["straggler"] / s.step_s
    extra, after = (max(x - counted, 0.0) for x in (cut.waits_unscreened, cut.waits_screened))
    if extra <= 0:
        return None
    chance = number("R139") / 100
    return Found(
        id="stragglers",
        likelihood=chance,
        days=s.run.days * extra,
        words=dict(line=cut.lines[1], cut=cut.evict_slower_than),
        left=chance * after * s.run.days,
        cost_usd=cut.usd_cost,
    )


def divergence(at: Scene):
    chance, count = spikes(at.steps)
    seconds = playbooks(at.s, screen(at.s))[0].seconds
    return Found(
        id="spikes",
        likelihood=chance,
        days=count * seconds / DAY_S,
        words=dict(
            rewinds=several(round(count), "rewind"),
            seconds=seconds,
            steps=at.steps,
        ),
    )


def memory_over(at: Scene):
    chosen = at.s.chosen
    share = float(chosen.memory.total / chosen.memory.capacity)
    safe = chosen.found.best_safe()
    if not chosen.fits or share <= 0.5 or safe is None:
        return None
    ratio = float(chosen.found.step_s[safe] / chosen.found.step_s[chosen.row])
    if ratio <= 1:
        return None
    return Found(
        id="memory",
        likelihood=0.5 * math.erfc(math.log(1 / share) / MEMORY_SD / math.sqrt(2)),
        days=at.days_of_step(ratio),
        words=dict(share=share, longer=ratio - 1),
        left=0.0,
        cost_usd=0.0,
    )


def beyond_spares(at: Scene):
    rows = [x for x in domains(at.s).rows if x.events_per_run and x.wait_s > 0]
    if not rows:
        return None
    events = sum(x.events_per_run for x in rows)
    spare = at.s.spares
    waited = {x.id: x.events_per_run * x.wait_s / DAY_S for x in rows}
    chance = at_least_one(events)
    need = max((x.nodes for x in rows if x.id != "building"), default=0)
    together = {}
    for x in rows:
        name = "node" if x.id in ("corruption", "device", "power-supply") else x.id
        together[name] = x.nodes, together.get(name, (0, 0.0))[1] + x.events_per_run
    words = texts("risks")["domains"]
    return Found(
        id="domains",
        likelihood=chance,
        days=sum(waited.values()) / chance,
        words=dict(
            sources="; ".join(dict.fromkeys(x.rate_source for x in rows)),
            together=", ".join(
                f"{name}: {several(n, 'node')}, {often:.2g} a run"
                for name, (n, often) in together.items()
            ),
            spares=several(spare, "spare"),
            need=several(need, "spare"),
            mitigation=None if need else words["mitigation elsewhere"],
        ),
        left=waited.get("building", 0.0),
        cost_usd=at.usd_of_nodes(max(need - spare, 0)),
    )


def low_precision(at: Scene):
    c = at.s.case
    name = PRECISIONS[int(c.job.precision)]
    if name in ("bf16", "fp16", "fp32") or not np.isfinite(float(c.chip.bf16_flops)):
        return None
    back = replace(
        c,
        job=replace(c.job, precision=PRECISIONS.index("bf16")),
        chip=replace(c.chip, linear_flops=c.chip.bf16_flops),
    )
    ratio = float(step_time(back).total / step_time(c).total)
    if ratio <= 1:
        return None
    published = name.startswith(("fp8", "mxfp8"))
    chance = (number("R166") + 1) / (1 + 2) if published else EVEN
    template = texts("risks")["precision"]["source published"]
    return Found(
        id="precision",
        likelihood=chance,
        days=at.days_of_step(ratio),
        words=dict(
            ratio=ratio,
            source=fill(template, facts=source("R166")) if chance < EVEN else None,
        ),
    )


def sites_apart(at: Scene):
    n = at.s.sites
    every = number("R157")
    back = number("R158")
    if n < 2:
        return None
    events = n * at.s.run.days * 24 / every
    chance = at_least_one(events)
    return Found(
        id="sites",
        likelihood=chance,
        days=events * back / 24 / n / chance,
        words=dict(
            n=n,
            every_h=every,
            back_h=back,
            events=events,
        ),
        left=0.0,
    )


def lost_replica(at: Scene):
    s = at.s
    e = at.s.e
    plan = at.s.plan
    if plan["dp"] < 2 or s.spares + s.idle_nodes > 0:
        return None
    events = failures.EVICTS / e.mtbf_s * s.run.days * DAY_S
    chance = at_least_one(events)
    ratio = float(elastic.shrink_ratio(max(plan["grad_accum"], 1), plan["dp"]))
    return Found(
        id="no-spare",
        likelihood=chance,
        days=events * e.repair_s / DAY_S / max(chance, 1e-12),
        in_headline=True,
        words=dict(events=events, ratio=ratio),
        left=0.0,
        cost_usd=at.usd_of_nodes(1),
    )


def standstill(at: Scene):
    if at.s.e.goodput > STANDSTILL:
        return None
    return Found(
        id="standstill",
        likelihood=1.0,
        days=at.s.run.days,
        in_headline=True,
    )


FOUND = (
    standstill,
    slower_than_estimated,
    late_delivery,
    dearer,
    worse_fleet,
    no_spares,
    slow_repairs,
    corruption,
    slow_store,
    slow_network,
    unscreened,
    divergence,
    memory_over,
    beyond_spares,
    low_precision,
    sites_apart,
    lost_replica,
)
