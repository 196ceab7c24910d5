"""The kinds of trouble that the register looks for. Each function evaluates one on a design and
returns what it found, None where it cannot occur."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ... import catalogue
from ...advise.diagnose import MEMORY_SD
from ...base.show import several
from ...base.units import DAY_S, HOUR_S
from ...endure import elastic, failures, goodput, reliability, spares, storage
from ...physics.cases import PRECISIONS
from ...physics.step import step_time
from ...verdict.limits import Z80, chance_below
from ..domains import domains
from ..record import STANDSTILL, Run, idle_nodes, is_torus, number, source
from ..rollout.burn_in import screen
from ..rollout.watch import playbooks, spikes

UNKNOWN = "nobody has published a rate: an even chance"
SLOW_REPAIRS = (2 + 1) / (3 + 2)  # 2.2 h at NCSA Delta; a day or more in R169 and R170
UNTUNED = (3 + 1) / (3 + 2)  # R168, R171, R172
FLEETS = {
    "rsc-1": "Meta RSC-1",
    "rsc-2": "Meta RSC-2",
    "ft-hsdp": "FT-HSDP",
    "imbue": "Imbue",
    "bloom": "BLOOM",
    "opt-175b": "OPT-175B",
    "llama3": "Llama 3",
}
DEDICATED_W = (
    10e6  # sites above this are built for the job; smaller ones are rented where they stand
)
MONTH_DAYS = 365.25 / 12
# of the failures that go with the nodes that cause most of them; RSC's 40 caused some 70 % of large
# jobs' (scale.measures takes the same)
LEMONS = 0.3
LATE_H = 8.0  # hours that offline stress tests took to find a corrupting device, at least (R069)


@dataclass(frozen=True)
class Scene:
    """One assessment and what several risks need of it."""

    a: object
    run: Run
    goodput: float
    steps: float

    @classmethod
    def of(cls, assessment, run: Run) -> Scene:
        good = float(assessment.endurance.goodput)
        return cls(assessment, run, good, run.days * DAY_S * good / assessment.figures["step_s"])

    def goodput_at(
        self, *, mtbf_s=None, durable_s=None, restart_s=None, spare_nodes=None, repair_s=None
    ) -> float:
        """Goodput with some of the endurance's figures changed: closed form and shortage again, the
        other losses as they are.

        Where spares run short the job waits or shrinks, whichever costs less (`spares.shortage`,
        `elastic.shrink_loss`).
        """
        e = self.a.endurance
        pick = lambda new, old: float(old) if new is None else float(new)  # noqa: E731
        m, durable, restart = (
            pick(mtbf_s, e.mtbf_s),
            pick(durable_s, e.checkpoint_durable_s),
            pick(restart_s, e.restart_s),
        )
        stall, down = float(e.checkpoint_stall_s), float(e.detect_s)
        tau = max(float(e.checkpoint_interval_s), durable - stall)
        if mtbf_s is not None:
            tau = float(
                reliability.chosen_interval(
                    goodput.optimum_interval(m, stall),
                    stall,
                    durable,
                    self.a.resolved.constraints,
                    None,
                    self.a.figures["step_s"],
                )[0]
            )
        at = lambda *x: float(
            goodput.ettr(x[0], stall, x[1], durable_s=x[2], restart_s=x[3], down_s=down)
        )  # noqa: E731
        now = at(
            float(e.mtbf_s),
            float(e.checkpoint_interval_s),
            float(e.checkpoint_durable_s),
            float(e.restart_s),
        )
        short = self.short(m, pick(spare_nodes, e.spares), pick(repair_s, e.repair_s), shrinks=True)
        had = self.short(float(e.mtbf_s), float(e.spares), float(e.repair_s))
        stops = float(e.planned_per_day) / DAY_S
        planned = (1 + stops * (stall + float(e.checkpoint_durable_s) + float(e.restart_s))) / (
            1 + stops * (stall + durable + restart)
        )
        return (
            float(e.goodput)
            * at(m, tau, durable, restart)
            / max(now, 1e-300)
            * (1 - short)
            / max(1 - had, 1e-9)
            * planned
        )

    def short(self, mtbf_s, spare_nodes, repair_s, shrinks=False) -> float:
        """Share of the run lost for want of nodes: waiting, or shrunk by whole replicas where that
        costs less."""
        e, plan = self.a.endurance, self.a.chosen.plan
        rate, n = failures.EVICTS / mtbf_s, int(spare_nodes) + idle_nodes(self.a)
        wait = float(spares.shortage(n, rate, repair_s, float(e.detect_s)))
        if not shrinks or plan["dp"] < 2 or wait < 1e-4:
            return wait
        per_node = self.a.resolved.cluster.devices_per_node
        span = max(1, -(-plan["ep"] * plan["etp"] // (plan["tp"] * plan["cp"])))
        gangs = plan["dp"] // span
        if gangs < 2:
            return wait
        gang = -(-plan["tp"] * plan["cp"] * plan["pp"] * span // per_node)
        return min(
            wait,
            elastic.shrink_loss(rate * repair_s, n, gang, gangs, max(plan["grad_accum"], 1) * span),
        )

    def days_at(self, goodput: float) -> float:
        """Days that the run takes longer at another goodput."""
        return max(self.run.days * (self.goodput / max(goodput, 1e-9) - 1), 0.0)

    def days_of_step(self, ratio: float) -> float:
        """Days that the run takes longer where the step takes `ratio` times as long."""
        return self.run.days * (ratio - 1)


def slower_than_estimated(s: Scene):
    f, wants = s.a.figures, s.a.resolved.constraints
    if f["step_s_high"] <= f["step_s"]:
        return None
    sd = math.log(f["step_s_high"] / f["step_s"]) / Z80
    over = 2 * (
        math.exp(sd * sd / 2) * 0.5 * (1 + math.erf(sd / math.sqrt(2))) - 0.5
    )  # mean excess of a log-normal, given that it exceeds its median
    edge = s.run.days * (f["step_s_high"] / f["step_s"] - 1)
    late, deadline = "", wants.deadline_days
    if (
        deadline is not None
        and f["days"] is not None
        and (missed := 1 - chance_below(deadline, f["days_low"], f["days"], f["days_high"])) >= 0.01
    ):
        late = f"; the deadline of {deadline:g} days is missed with a chance of {missed:.0%}"
    kept = _scatter()
    left = (
        0.5
        * s.run.days
        * 2
        * (math.exp(kept**2 / 2) * 0.5 * (1 + math.erf(kept / math.sqrt(2))) - 0.5)
    )
    return dict(
        id="slow-step",
        risk="the step is slower than estimated",
        likelihood=0.5,
        source="the estimate is the median of its band",
        days=s.run.days * over,
        evidence=(
            f"MFU {f['mfu']:.1%}, 80 % band {f['mfu_low']:.1%} to {f['mfu_high']:.1%}; at "
            f"the low edge the run takes {edge:.1f} days longer"
        )
        + late,
        mitigation=(
            "time 100 steps of this plan on one replica before signing and put the mean "
            "into the design as measured"
        ),
        left=left,
        cost_usd=s.run.usd(100 * f["step_s"] / DAY_S),
        owner="performance engineer",
    )


def _scatter() -> float:
    """Spread of single runs once a source's common part is known: median 4.3 % (validation of the
    kit), as a standard deviation."""
    return 0.043 / 0.6745


def late_delivery(s: Scene):
    from ...endure.cost import power_w

    c = s.a.cost
    watts = float(power_w(s.a.resolved.cluster, s.run.devices_paid))
    if not watts >= DEDICATED_W:
        return None
    late = number("R144") * MONTH_DAYS
    usd, says = None, "no dated price"
    if c is not None and c.usd_per_device_hour:
        premium = (c.usd_per_device_hour_high or c.usd_per_device_hour) - c.usd_per_device_hour
        usd = premium * s.run.devices_paid * 24 * min(late, s.run.days)
        says = (
            f"the same devices for those days at the dearest published price, "
            f"{c.usd_per_device_hour_high:g} instead of {c.usd_per_device_hour:g} USD an "
            f"hour"
        )
    return dict(
        id="late",
        risk="devices, power or fabric are delivered late",
        likelihood=number("R143") / 100,
        source=source("R143"),
        days=late,
        usd=usd,
        evidence=(
            f"{watts / 1e6:.0f} MW is a site of its own; large ones slip by "
            f"{number('R144'):g} months or more; dollars: {says}"
        ),
        mitigation=(
            "take the site over pod by pod and start on the first; an option on rented devices"
        ),
        owner="capacity lead",
    )


def dearer(s: Scene):
    c = s.a.cost
    if (
        c is None
        or not c.usd_per_device_hour
        or not c.usd_per_device_hour_high
        or c.usd_per_device_hour_high <= c.usd_per_device_hour
    ):
        return None
    mid, high = c.usd_per_device_hour, c.usd_per_device_hour_high
    excess = s.run.devices_paid * 24 * s.run.days * (high - mid) / 2
    return dict(
        id="price",
        risk="the devices cost more than the middle price",
        likelihood=0.5,
        source="the middle is the median of the observations",
        days=0.0,
        usd=excess,
        evidence=(
            f"{mid:g} USD per device-hour assumed; observed up to {high:g} ({c.price_date}); "
            f"half of that on average where it is above"
        ),
        mitigation="sign a contract and put its price into the design",
        left=0.0,
        cost_usd=0.0,
        owner="capacity lead",
    )


def worse_fleet(s: Scene):
    e = s.a.endurance
    fleets = [
        p
        for p in catalogue.failure_presets().values()
        if p.id not in ("typical", "good", "bad", "new-cluster", "epoch", "byterobust", "tpu")
    ]
    own = float(e.failures_per_1000_node_days)
    worse = [p for p in fleets if p.per_1000_node_days > own * 1.05]
    if not worse:
        return None
    at = [s.goodput_at(mtbf_s=float(e.mtbf_s) * own / p.per_1000_node_days) for p in worse]
    chance = (len(worse) + 1) / (len(fleets) + 2)
    fewer = [
        s.goodput_at(mtbf_s=float(e.mtbf_s) * own / max(p.per_1000_node_days * (1 - LEMONS), own))
        for p in worse
    ]
    return dict(
        id="failures",
        risk="the fleet fails more often than assumed",
        likelihood=chance,
        source=f"{len(worse)} of {len(fleets)} published fleets",
        days=float(np.mean([s.days_at(g) for g in at])),
        evidence=(
            f"{own:.3g} failures per 1,000 node-days assumed; evaluated at "
            f"{', '.join(f'{FLEETS.get(p.id, p.id)} {p.per_1000_node_days:.3g}' for p in worse)}: "
            f"goodput down to {min(at):.1%}"
        ),
        mitigation=(
            f"soak {number('R167'):.0f} days and return nodes that fail twice: {LEMONS:.0%} "
            f"of the failures go with them"
        ),
        left=chance * float(np.mean([s.days_at(g) for g in fewer])),
        cost_usd=s.run.usd(number("R167")),
        owner="site engineer",
    )


def _idle(a) -> str:
    idle = idle_nodes(a)
    return f" (beside {several(idle, 'node')} that the plan leaves idle)" if idle else ""


def no_spares(s: Scene):
    e = s.a.endurance
    have = int(e.spares)
    if have < 1:
        return None
    rate = failures.EVICTS / float(e.mtbf_s)
    short, bare = s.short(float(e.mtbf_s), have, float(e.repair_s)), s.goodput_at(spare_nodes=0)
    return dict(
        id="spares",
        risk="the hot spares are not there (lent out, not bought, not on the job's fabric)",
        likelihood=0.5,
        source=UNKNOWN,
        days=s.days_at(bare),
        evidence=(
            f"{several(have, 'spare')} for {rate * DAY_S:.2g} evictions a day of "
            f"{float(e.repair_s) / HOUR_S:.1f} h: the job stands {short:.2%} of the time; "
            f"without them goodput is {bare:.1%} instead of {s.goodput:.1%}, even where it "
            f"shrinks"
        )
        + _idle(s.a),
        mitigation=f"{several(have, 'spare node')} inside the allocation, under the same spines",
        left=0.0,
        cost_usd=s.run.usd(s.run.days * have / (s.run.nodes + have)),
        owner="site engineer",
    )


def slow_repairs(s: Scene):
    e = s.a.endurance
    if float(e.repair_s) >= DAY_S:
        return None
    slow = s.goodput_at(repair_s=DAY_S)
    load = failures.EVICTS * DAY_S / float(e.mtbf_s)
    need = int(spares.cheapest(load, s.run.nodes, limit=min(int(s.run.nodes) + 2, 4096)))
    fixed = s.goodput_at(repair_s=DAY_S, spare_nodes=max(need, int(e.spares)))
    return dict(
        id="repairs",
        risk="nodes are back the next day only (parts and hands not on site)",
        likelihood=SLOW_REPAIRS,
        source="two of three published repair times are a day or more: "
        + source("R131", "R169", "R170"),
        days=max(s.days_at(slow), 0.0),
        evidence=(
            f"{float(e.repair_s) / HOUR_S:.1f} h assumed; at 24 h {load:.1f} nodes are out "
            f"on average against {several(int(e.spares), 'spare')}: goodput {slow:.1%}, "
            f"waiting or shrunk, against {s.goodput:.1%}"
        )
        + _idle(s.a),
        mitigation=f"parts on site, or {several(need, 'spare')}",
        left=SLOW_REPAIRS * max(s.days_at(fixed), 0.0),
        cost_usd=s.run.usd(s.run.days * max(need - int(e.spares), 0) / s.run.nodes),
        owner="site engineer",
    )


def corruption(s: Scene):
    e = s.a.endurance
    events = failures.SDC_SHARE / float(e.mtbf_s) * s.run.days * DAY_S * s.goodput
    extra = LATE_H * HOUR_S - reliability.SDC_LATENCY_S
    chance = 1 - math.exp(-events)
    if chance <= 0:
        return None
    days = events / chance * extra / DAY_S
    from ...physics import stragglers

    rate = failures.SDC_SHARE / float(e.mtbf_s)
    every, overhead = (
        float(x) for x in stragglers.verified_interval(0.0, rate, s.a.figures["step_s"], 0.0)
    )
    return dict(
        id="corruption",
        risk="silent corruption is found late",
        likelihood=chance,
        source=source("R010"),
        days=days,
        evidence=(
            f"{events:.2g} corruptions expected; the estimate has each found after "
            f"{reliability.SDC_LATENCY_S / 60:.0f} min by checks, without them it takes more "
            f"than 8 h ({source('R069')})"
        ),
        mitigation=f"recompute one step elsewhere every {every / HOUR_S:.2g} h",
        left=overhead * s.run.days,
        cost_usd=s.run.usd(overhead * s.run.days),
        owner="training engineer",
    )


def slow_store(s: Scene):
    e, a = s.a.endurance, s.a
    nodes = a.resolved.cluster.nodes
    has = storage.rates(a.resolved.cluster, nodes)
    write = min(float(has.write_bytes_per_s), nodes * float(has.node_write_bytes_per_s))
    moved = float(e.checkpoint_bytes) / write
    durable, restart = (
        float(e.checkpoint_durable_s) + 3 * moved,
        float(e.restart_s) + 3 * float(e.checkpoint_bytes) / max(float(has.read_bytes_per_s), 1.0),
    )
    slow = s.goodput_at(durable_s=durable, restart_s=restart)
    days = s.days_at(slow)
    if days <= 0:
        return None
    return dict(
        id="store",
        risk="the file system gives a quarter of its rate (shared, rebuilding, full)",
        likelihood=0.5,
        source=UNKNOWN,
        days=days,
        evidence=(
            f"{has.what}: {write / 1e9:,.0f} GB/s assumed; at a quarter a save is durable "
            f"after {durable:,.0f} s instead of {float(e.checkpoint_durable_s):,.0f}, "
            f"goodput {slow:.1%}"
        ),
        mitigation="saves to the peers' memory first, a rate in the contract",
        left=0.5
        * max(s.days_at(s.goodput_at(durable_s=min(30.0, durable), restart_s=restart)), 0.0),
        owner="storage engineer",
    )


def slow_network(s: Scene):
    cluster = s.a.resolved.cluster
    if cluster.nodes < 2 or is_torus(cluster):
        return None
    c = s.a.chosen.case
    ethernet = catalogue.fabric(cluster.scale_out).technology == "ethernet"
    factor = 1 + number("R168") / 100 if ethernet else 2.0
    slow = float(
        step_time(
            replace(c, link=replace(c.link, out_bytes_per_s=c.link.out_bytes_per_s / factor))
        ).total
        / step_time(c).total
    )
    if slow <= 1:
        return None
    if ethernet:
        return dict(
            id="network",
            risk="flows collide and the fabric gives less than its rate",
            likelihood=UNTUNED,
            source=(
                "each of three published Ethernet fabrics lost as much until its routing or "
                "uplinks were changed: "
            )
            + source("R168", "R171", "R172"),
            days=s.days_of_step(slow),
            evidence=(
                f"all-reduce at 1/{factor:.2f} of its rate, what collisions cost in a usual "
                f"three-tier Ethernet (40 and 70% elsewhere), makes the step {slow:.2f} "
                f"times as long"
            ),
            mitigation=(
                "adaptive routing or paths pinned per rail, many queue pairs; all-reduce on "
                "all nodes before acceptance"
            ),
            left=0.0,
            cost_usd=0.0,
            owner="network engineer",
        )
    shared = (
        0.4 * (16 + 1) / (27 + 2) * min(s.a.figures["devices_used"] / 512, 1.0)
    )  # R138: 16 of 27 jobs, 40 % of the causes
    episode = (slow - 1) * 72 / 60 / 24
    return dict(
        id="network",
        risk="a link at half its rate slows every ring until it is found",
        likelihood=shared,
        source=source("R138"),
        days=episode,
        evidence=(
            f"the step is {slow:.2f} times as long at half of a card's rate, for 72 min; "
            f"unnoticed, {s.days_of_step(slow):.1f} days of this run"
        ),
        mitigation="per-rank timers, pair tests at each stop",
        left=0.0,
        cost_usd=0.0,
        owner="network engineer",
    )


def unscreened(s: Scene):
    cut = screen(s.a, s.run)
    counted = s.a.figures["step_breakdown_s"]["straggler"] / s.a.figures["step_s"]
    extra, after = max(cut.waits_unscreened - counted, 0.0), max(cut.waits_screened - counted, 0.0)
    if extra <= 0:
        return None
    return dict(
        id="stragglers",
        risk="slow devices stay in the job",
        likelihood=number("R139") / 100,
        source=source("R139"),
        days=s.run.days * extra,
        evidence=f"{cut.lines[1]}",
        mitigation=f"screen: return nodes with a device {cut.evict_slower_than:.1%} over the mean",
        left=number("R139") / 100 * after * s.run.days,
        cost_usd=cut.usd_cost,
        owner="site engineer",
    )


def divergence(s: Scene):
    chance, count = spikes(s.steps)
    book = playbooks(s.a, s.run, screen(s.a, s.run))[0]
    return dict(
        id="spikes",
        risk="loss spikes force rewinds",
        likelihood=chance,
        source=source("R148", "R165", "R166"),
        days=count * book.seconds / DAY_S,
        evidence=(
            f"{several(round(count), 'rewind')} of {book.seconds / 60:.0f} min in "
            f"{s.steps:,.0f} steps, as in PaLM"
        ),
        mitigation=(
            "rewind by the playbook; keep copies far enough back; clipping and z-loss with "
            "an ML specialist"
        ),
        owner="training engineer",
    )


def memory_over(s: Scene):
    chosen = s.a.chosen
    share = float(chosen.memory.total / chosen.memory.capacity)
    if not chosen.fits or share <= 0.5:
        return None
    chance = 0.5 * math.erfc(math.log(1 / share) / MEMORY_SD / math.sqrt(2))
    safe = chosen.found.best_safe()
    ratio = (
        float(chosen.found.step_s[safe] / chosen.found.step_s[chosen.row])
        if safe is not None
        else 1.0
    )
    if ratio <= 1:
        return None
    return dict(
        id="memory",
        risk="the plan runs out of memory",
        likelihood=chance,
        source=f"{share:.0%} of the usable memory, a tenth of spread over published peaks",
        days=s.days_of_step(ratio),
        evidence=f"the fastest plan that keeps a fifth free takes {ratio - 1:.1%} longer a step",
        mitigation="try the peak on one replica first; the safe plan's file ready",
        left=0.0,
        cost_usd=0.0,
        owner="performance engineer",
    )


def beyond_spares(s: Scene):
    rows = [x for x in domains(s.a).rows if x.events_per_run and x.wait_s > 0]
    if not rows:
        return None
    events = sum(x.events_per_run for x in rows)
    days = sum(x.events_per_run * x.wait_s for x in rows) / DAY_S
    chance = 1 - math.exp(-events)
    need = (
        max(x.nodes for x in rows if x.id != "building")
        if any(x.id != "building" for x in rows)
        else 0
    )
    price = s.run.usd(s.run.days * max(need - int(s.a.endurance.spares), 0) / s.run.nodes)
    gone = sum(x.events_per_run * x.wait_s for x in rows if x.id == "building") / DAY_S
    together = {}
    for x in rows:
        name = {"corruption": "node", "device": "node", "power-supply": "node"}.get(x.id, x.id)
        together[name] = x.nodes, together.get(name, (0, 0.0))[1] + x.events_per_run
    return dict(
        id="domains",
        risk="more nodes fail together than there are spares",
        likelihood=chance,
        source="; ".join(dict.fromkeys(x.rate_source for x in rows)),
        days=days / chance,
        evidence=", ".join(
            f"{name}: {several(n, 'node')}, {often:.2g} a run"
            for name, (n, often) in together.items()
        )
        + f"; {several(int(s.a.endurance.spares), 'spare')}",
        mitigation=(
            f"{several(need, 'spare')} or switches that nodes reach twice; else run on shrunk"
        )
        if need
        else "a second site's copies",
        left=gone,
        cost_usd=price,
        owner="network engineer",
    )


def low_precision(s: Scene):
    c = s.a.chosen.case
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
    good = number("R166")
    chance = (good + 1) / (1 + 2) if name.startswith(("fp8", "mxfp8")) else 0.5
    own = (
        s.a.chosen.phase.precision
    )  # fp8-block runs at the rate of fp8-current, which is what the case holds
    return dict(
        id="precision",
        risk=f"training in {own} does not converge and goes on in bf16",
        likelihood=chance,
        source=source("R166") + " by the rule of succession" if chance < 0.5 else UNKNOWN,
        days=s.days_of_step(ratio),
        evidence=f"the step in bf16 is {ratio:.2f} times as long",
        mitigation=(
            "a small run against bf16 first, confirmed by an ML specialist; keep bf16 copies"
        ),
        owner="training engineer",
    )


def sites_apart(s: Scene):
    n = int(s.a.resolved.cluster.sites)
    if n < 2:
        return None
    events = n * s.run.days * 24 / number("R157")
    chance = 1 - math.exp(-events)
    days = events * number("R158") / 24 / n / chance
    return dict(
        id="sites",
        risk="a site is cut off from the others and its steps do not count",
        likelihood=chance,
        source=source("R157", "R158"),
        days=days,
        evidence=(
            f"{n} sites, an edge fails every {number('R157'):,.0f} h and is back in "
            f"{number('R158'):.0f} h: {events:.2g} in the run; a synchronous run would lose "
            f"{n} times as much"
        ),
        mitigation="two disjoint paths to each site",
        left=0.0,
        owner="network engineer",
    )


def lost_replica(s: Scene):
    e, plan = s.a.endurance, s.a.chosen.plan
    if plan["dp"] < 2 or int(e.spares) + idle_nodes(s.a) > 0:
        return None
    m = max(plan["grad_accum"], 1)
    ratio = float(elastic.shrink_ratio(m, plan["dp"]))
    events = failures.EVICTS / float(e.mtbf_s) * s.run.days * DAY_S
    chance = 1 - math.exp(-events)
    days = events * float(e.repair_s) / DAY_S / max(chance, 1e-12)
    return dict(
        id="no-spare",
        risk="there is no spare at all: each lost node stops the job until it is repaired",
        likelihood=chance,
        source="the design's failure rate",
        days=days,
        in_headline=True,
        evidence=(
            f"{events:.2g} evictions in the run, {float(e.repair_s) / HOUR_S:.1f} h each; "
            f"shrunk by one replica the step is {ratio:.2f} times as long"
        ),
        mitigation="one spare node",
        left=0.0,
        cost_usd=s.run.usd(s.run.days / s.run.nodes),
        owner="site engineer",
    )


def standstill(s: Scene):
    e = s.a.endurance
    if s.goodput > STANDSTILL:
        return None
    return dict(
        id="standstill",
        risk="failures come faster than the job recovers from them: the run does not end",
        likelihood=1.0,
        source="the design's failure rate",
        days=s.run.days,
        in_headline=True,
        evidence=(
            f"{float(e.mtbf_s):,.0f} s between failures, {float(e.recovery_s):,.0f} s to "
            f"recover from one; counted on {s.run.days:.0f} days"
        ),
        mitigation=(
            "recovery replica by replica, copies in peers' memory, or fewer devices in one job"
        ),
        owner="training engineer",
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
