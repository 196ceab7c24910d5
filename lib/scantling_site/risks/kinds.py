"""The kinds of trouble that the register looks for. Each function evaluates one on a design and
returns what it found, None where it cannot occur; the words stand in tables/risks.yaml."""

from dataclasses import field, replace
from math import erf, erfc, exp, log, sqrt

import numpy as np
from scantling import catalogue
from scantling.advise.diagnose import MEMORY_SD
from scantling.base.records import Known, record
from scantling.base.show import several
from scantling.base.units import DAY_S, HOUR_S
from scantling.endure import elastic, goodput, spares, storage
from scantling.endure.cost import Z80, power_w
from scantling.endure.interval import chosen_interval
from scantling.endure.life import lived, otherwise
from scantling.physics.cases import PRECISIONS
from scantling.verdict.constraints import chance_below

from ..domains import domains
from ..rollout.burn_in import screen
from ..rollout.watch import playbooks, spikes
from ..site import STANDSTILL, Site
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


@record
class Found:
    """One kind of trouble on one design: the chance, what it costs where it happens, and the
    numbers that its words name."""

    id: str  # of tables/risks.yaml
    likelihood: float
    days: float
    usd: Known = -1.0  # -1: the days at the run's price
    left: Known = None  # expected days with the mitigation
    cost_usd: Known = None  # of the mitigation
    in_headline: bool = False
    before_start: bool = False
    words: dict = field(default_factory=dict)


def goodput_at(s: Site, more_failures=1.0, spares=None, **times) -> float:
    """Goodput with parts of the run's life changed (`otherwise`, `lived`);
    the interval moves with the failures."""
    life = otherwise(s.e.life, **times)
    life = replace(
        life,
        spares=s.e.segments.covered(s.standbys if spares is None else spares),
        slower=life.slower * more_failures,
    )
    near = life.levels[0]
    interval = life.interval_s
    if more_failures != 1 and len(life.levels) == 1:
        interval, _ = chosen_interval(
            goodput.optimum_interval(life.mtbf_s, near.stall_s),
            near.stall_s,
            near.durable_s,
            s.a.resolved.constraints,
            s.a.resolved.checkpoint,
            s.step_s,
        )
    interval = max(interval, near.durable_s - near.stall_s)
    return lived(replace(life, interval_s=interval))[0].item()


def days_at(s: Site, goodput: float) -> float:
    """Days that the run takes longer at another goodput."""
    return max(days_of_step(s, s.e.goodput / max(goodput, 1e-9)), 0.0)


def days_of_step(s: Site, ratio: float) -> float:
    """Days that the run takes longer where the step takes `ratio` times as long."""
    return s.run.days * (ratio - 1)


def usd_of_nodes(s: Site, n: float) -> Known:
    """Dollars of so many nodes held as long as the run."""
    return s.run.usd(s.run.days * max(n, 0) / s.nodes)


def idle(s: Site) -> str:
    """What to say of nodes that the plan leaves idle."""
    said = f" (beside {several(s.idle_nodes, 'node')} that the plan leaves idle)"
    return said * (s.idle_nodes > 0)


def mean_excess(sd: float) -> float:
    """Mean of a log-normal over its median, given that it exceeds it, less one:
    2 (exp(sd^2 / 2) Phi(sd) - 1/2)."""
    return 2 * (exp(sd * sd / 2) * 0.5 * (1 + erf(sd / sqrt(2))) - 0.5)


def at_least_one(events: float) -> float:
    """Chance of one or more of so many expected: 1 - exp(-events)."""
    return 1 - exp(-events)


def slower_than_estimated(s: Site):
    f = s.figures
    high = f["step_s_high"] / f["step_s"]
    if high <= 1:
        return None
    deadline = s.a.resolved.constraints.deadline_days
    late = ""
    if deadline is not None and f["days"] is not None:
        band = (f[k] for k in ("days_low", "days", "days_high"))
        missed = 1 - chance_below(deadline, *band)
        if missed >= 0.01:
            late = fill(texts("risks", "slow-step", "late"), deadline=deadline, missed=missed)
    return Found(
        id="slow-step",
        likelihood=EVEN,
        days=s.run.days * mean_excess(log(high) / Z80),
        words={"edge": days_of_step(s, high), "late": late},
        left=EVEN * s.run.days * mean_excess(constant("scatter") / 0.6745),
        cost_usd=s.run.usd(100 * s.step_s / DAY_S),
    )


def late_delivery(s: Site):
    watts = power_w(s.cluster, s.run.devices_paid)
    if not watts >= constant("dedicated_w"):
        return None
    months = number("R144")
    late = months * (365.25 / 12)
    usd = usd_at_the_highest_price(s, min(late, s.run.days))
    return Found(
        id="late",
        likelihood=number("R143") / 100,
        days=late,
        usd=usd,
        before_start=True,
        words={
            "watts": watts,
            "months": months,
            "says": fill(texts("risks", "late", "no price" if usd is None else "price"), s),
        },
    )


def usd_at_the_highest_price(s: Site, days: float) -> Known:
    """What the paid devices cost more on so many days at the highest published price."""
    if s.cost is None or not s.cost.usd_per_device_hour:
        return None
    mid = s.cost.usd_per_device_hour
    return ((s.cost.usd_per_device_hour_high or mid) - mid) * s.run.devices_paid * 24 * days


def dearer(s: Site):
    dearest = usd_at_the_highest_price(s, s.run.days)
    if not dearest or dearest < 0:
        return None
    return Found(id="price", likelihood=EVEN, days=0.0, usd=dearest / 2, left=0.0, cost_usd=0.0)


def worse_fleet(s: Site):
    own = s.e.failures_per_1000_node_days
    presets = catalogue.failure_presets()
    fleets = {name: presets[id].per_1000_node_days for id, name in FLEETS.items()}
    worse = {name: rate for name, rate in fleets.items() if rate > own * 1.05}
    if not worse:
        return None
    found, mended = (
        [goodput_at(s, more_failures=max(rate * kept / own, 1.0)) for rate in worse.values()]
        for kept in (1.0, 1 - LEMONS)
    )
    chance = (len(worse) + 1) / (len(fleets) + 2)
    days, left = (np.mean([days_at(s, g) for g in many]) for many in (found, mended))
    soak = number("R167")
    return Found(
        id="failures",
        likelihood=chance,
        days=days,
        words={
            "worse": len(worse),
            "fleets": len(fleets),
            "names": ", ".join(f"{name} {rate:.3g}" for name, rate in worse.items()),
            "lowest": min(found),
            "soak": soak,
        },
        left=chance * left,
        cost_usd=s.run.usd(soak),
    )


def no_spares(s: Site):
    if s.spares < 1:
        return None
    bare = goodput_at(s, spares=s.idle_nodes)
    return Found(
        id="spares",
        likelihood=EVEN,
        days=days_at(s, bare),
        words={
            "per_day": s.evictions_per_s * DAY_S,
            "short": s.e.badput["spare shortage"],
            "bare": bare,
            "idle": idle(s),
        },
        left=0.0,
        cost_usd=s.run.usd(s.run.days * s.spares / (s.nodes + s.spares)),
    )


def slow_repairs(s: Site):
    if s.e.repair_s >= DAY_S:
        return None
    load = s.evictions_per_s * DAY_S
    held = s.e.segments.nodes
    need = held(spares.cheapest(load, s.nodes / held(1), limit=min(s.nodes + 2, 4096)))
    slow, fixed = (
        goodput_at(s, spares=kept, repair_s=DAY_S) for kept in (None, max(need, s.spares))
    )
    return Found(
        id="repairs",
        likelihood=SLOW_REPAIRS,
        days=days_at(s, slow),
        words={"load": load, "slow": slow, "idle": idle(s), "need": need},
        left=SLOW_REPAIRS * days_at(s, fixed),
        cost_usd=usd_of_nodes(s, need - s.spares),
    )


def corruption(s: Site):
    events = s.e.corruptions_per_s * s.useful_s
    chance = at_least_one(events)
    if chance <= 0:
        return None
    checked_s = s.e.check_every_s / 2
    later_s = constant("late_h") * HOUR_S - checked_s
    return Found(
        id="corruption",
        likelihood=chance,
        days=events / chance * later_s / DAY_S,
        words={
            "events": events,
            "checked_s": checked_s,
            "found_late": source("R069"),
            "every": s.e.check_every_s,
        },
        left=0.0,
        cost_usd=0.0,
    )


def slow_store(s: Site):
    e = s.e
    has = storage.rates(s.cluster, s.nodes)
    write = min(has.write_bytes_per_s, s.nodes * has.node_write_bytes_per_s)
    more = (constant("slow_store") - 1) * e.checkpoint_bytes
    durable = e.checkpoint_durable_s + more / write
    restart = e.restart_s + more / has.read_bytes_per_s
    slow, peers = (
        goodput_at(s, durable_s=late, restart_s=restart)
        for late in (durable, min(constant("peers_s"), durable))
    )
    days = days_at(s, slow)
    if days <= 0:
        return None
    return Found(
        id="store",
        likelihood=EVEN,
        days=days,
        words={"what": has.what, "write": write, "durable": durable, "slow": slow},
        left=EVEN * days_at(s, peers),
    )


def slow_network(s: Site):
    if not s.wired:
        return None
    ethernet = catalogue.fabric(s.cluster.scale_out).ethernet
    factor = 1 + number("R168") / 100 if ethernet else constant("slow_link_factor")
    slow = s.step_ratio(link=s.link(out_bytes_per_s=s.case.link.out_bytes_per_s / factor))
    if slow <= 1:
        return None
    longer = days_of_step(s, slow)
    counted = min(s.used / constant("slow_link_devices"), 1.0)
    return Found(
        id="network-ethernet" if ethernet else "network",
        likelihood=UNTUNED if ethernet else constant("shared_link") * counted,
        days=longer if ethernet else (slow - 1) * (constant("slow_link_min") * 60) / DAY_S,
        words={"factor": factor, "slow": slow, "unnoticed": longer},
        left=0.0,
        cost_usd=0.0,
    )


def unscreened(s: Site):
    cut = screen(s)
    counted = s.figures["step_breakdown_s"]["straggler"] / s.step_s
    extra, after = (max(x - counted, 0.0) for x in (cut.waits_unscreened, cut.waits_screened))
    if extra <= 0:
        return None
    chance = number("R139") / 100
    return Found(
        id="stragglers",
        likelihood=chance,
        days=s.run.days * extra,
        words={"line": cut.lines[1], "cut": cut.evict_slower_than},
        left=chance * after * s.run.days,
        cost_usd=cut.usd_cost,
    )


def divergence(s: Site):
    steps = s.useful_s / s.step_s
    chance, count = spikes(steps)
    seconds = playbooks(s, screen(s))[0].seconds
    return Found(
        id="spikes",
        likelihood=chance,
        days=count * seconds / DAY_S,
        words={"rewinds": round(count), "seconds": seconds, "steps": steps},
    )


def memory_over(s: Site):
    chosen = s.chosen
    share = chosen.memory.total / chosen.memory.capacity
    safe = chosen.search.best_safe()
    if not chosen.fits or share <= 0.5 or safe is None:
        return None
    ratio = chosen.search.step_s[safe] / chosen.search.step_s[chosen.row]
    if ratio <= 1:
        return None
    return Found(
        id="memory",
        likelihood=0.5 * erfc(log(1 / share) / MEMORY_SD / sqrt(2)),
        days=days_of_step(s, ratio),
        words={"share": share, "longer": ratio - 1},
        left=0.0,
        cost_usd=0.0,
    )


def beyond_spares(s: Site):
    # single nodes that find no spare are the headline's spare shortage
    rows = [x for x in domains(s).rows if x.events_per_run and x.wait_s > 0 and x.nodes > 1]
    if not rows:
        return None
    # of the domains of more than one node each stands once, under its own name
    waited = {x.id: x.events_per_run * x.wait_s / DAY_S for x in rows}
    chance = at_least_one(sum(x.events_per_run for x in rows))
    need = max((x.nodes for x in rows if x.id != "building"), default=0)
    return Found(
        id="domains",
        likelihood=chance,
        days=sum(waited.values()) / chance,
        words={
            "sources": "; ".join(dict.fromkeys(x.rate_source for x in rows)),
            "together": ", ".join(
                f"{x.id}: {several(x.nodes, 'node')}, {x.events_per_run:.2g} a run" for x in rows
            ),
            "need": need,
            "mitigation": None if need else texts("risks", "domains", "mitigation elsewhere"),
        },
        left=waited.get("building", 0.0),
        cost_usd=usd_of_nodes(s, need - s.spares),
    )


def low_precision(s: Site):
    c = s.case
    name = PRECISIONS[c.job.precision]
    if name in ("bf16", "fp16", "fp32") or not np.isfinite(c.chip.bf16_flops):
        return None
    ratio = s.step_ratio(
        job=replace(c.job, precision=PRECISIONS.index("bf16")),
        chip=replace(c.chip, linear_flops=c.chip.bf16_flops),
    )
    if ratio <= 1:
        return None
    chance = EVEN
    published = None
    if name.startswith(("fp8", "mxfp8")):
        chance = (number("R166") + 1) / (1 + 2)
        published = fill(texts("risks", "precision", "source published"), facts=source("R166"))
    return Found(
        id="precision",
        likelihood=chance,
        days=days_of_step(s, ratio),
        words={"ratio": ratio, "source": published},
    )


def sites_apart(s: Site):
    if s.sites < 2:
        return None
    every = number("R157")
    back = number("R158")
    events = s.sites * s.run.days * 24 / every
    chance = at_least_one(events)
    return Found(
        id="sites",
        likelihood=chance,
        days=events * back / 24 / s.sites / chance,
        words={"every_h": every, "back_h": back, "events": events},
        left=0.0,
    )


def lost_replica(s: Site):
    plan = s.plan
    if plan["dp"] < 2 or s.standbys > 0:
        return None
    events = s.evictions_per_s * s.run.days * DAY_S
    chance = at_least_one(events)
    return Found(
        id="no-spare",
        likelihood=chance,
        days=events * s.e.repair_s / DAY_S / max(chance, 1e-12),
        in_headline=True,
        words={"events": events, "ratio": elastic.shrink_ratio(plan["grad_accum"], plan["dp"])},
        left=0.0,
        cost_usd=usd_of_nodes(s, 1),
    )


def standstill(s: Site):
    if s.e.goodput > STANDSTILL:
        return None
    return Found(id="standstill", likelihood=1.0, days=s.run.days, in_headline=True)


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
