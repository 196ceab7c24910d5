"""What failures make of a design: time between failures, checkpoint interval, goodput and where the
rest goes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .. import catalogue
from ..base.records import Assumed, Record, get, given
from ..base.units import DAY_S
from . import checkpoint, elastic, failures, goodput, spares, storage
from .simulate import Fault, Level, Scenario, of_endurance, simulate

# an explicit failure is seen in 60 s, localised in 2 min at best (ByteRobust, arXiv 2509.16293
# s2.2)
DETECT_S = 180.0
RELAUNCH_S = (
    60.0  # processes restarted in place: 46-65 s at 2,048-16,384 devices (ByteRobust, Table 7)
)
# drain, reboot, test, return of a node: 4 h; NCSA Delta measured 2.2 h (arXiv 2503.11901)
REPAIR_S = 14_400.0
# corruption to discovery with periodic checks; gives the 0.25 % of steps that Gemini 2.5 replayed,
# at 16,384 devices
SDC_LATENCY_S = 1800.0
LEAST_RATE = 1e-6  # failures per 1,000 node-days
BADPUT = (
    "saves",
    "lost work",
    "detection",
    "restart",
    "spare shortage",
    "planned stops",
    "stragglers",
    "sdc",
    "sites",
)
BYTES_PER_PARAM = 14  # of a whole copy: bf16 weights, fp32 master weights and two fp32 moments


# least start of the collectives' library: under 5 s at 2,048 devices, the best published
# (MegaScale, arXiv 2402.15627)
INIT_S = 5.0


def communicator_init_s(devices):
    """Start of the collectives' library: 17 s at 16,384 devices, 200 s at 98,304 (FT-HSDP, arXiv
    2602.00277), power law through both, INIT_S at
    least [s]. Nobody has published more than 98,304."""
    return np.maximum(
        INIT_S, 17.0 * (np.asarray(devices, float) / 16_384) ** (np.log(200 / 17) / np.log(6))
    )


@dataclass(
    frozen=True,
    kw_only=True,
)
class Endurance(Record):
    """How a run lives with failures. Seconds, bytes and shares of the wall time; arrays where
    `devices` was an array.

    goodput + sum(badput.values()) = 1. goodput is useful time over all time, stalls included.
    """

    devices: object
    preset: str
    failures_per_1000_node_days: float
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
    lost_work_s: object
    goodput: object
    badput: dict
    spares: object
    spares_recommended: object
    spares_for: dict
    write_bytes_per_s_needed: object
    write_bytes_per_s: object
    retention: object
    domain_nodes: dict
    sites: int
    copies_survive: str
    curve: dict
    interval_set_by: str
    assumed: tuple[Assumed, ...]


def endure(
    cluster,
    spec=None,
    *,
    checkpoint_bytes,
    state_bytes_per_device,
    step_s=None,
    params=None,
    constraints=None,
    devices=None,
    sdc_latency_s=SDC_LATENCY_S,
    fail_slow_share=0.0,
    planned_stops=True,
    fails_in_restart=True,
    save_survives=False,
    accounts="exact",
) -> Endurance:
    """Reliability of one job, or of the same job on many device counts at once.

    cluster : Cluster.  spec : the design file's `reliability` mapping or record; any field may be
    missing.
    checkpoint_bytes : one whole copy [bytes, scalar or (n,)].  state_bytes_per_device : what a
    device copies out in a save [bytes, ditto].
    step_s : step time; the interval is at least this.  params : parameters that several sites
    average; a fourteenth of checkpoint_bytes
    where not given.  constraints : ceilings that move the interval (checkpoint overhead, lost
    work).
    devices : device counts instead of the cluster's own [(n,)].
    sdc_latency_s : corruption to its discovery.  fail_slow_share : time lost to degraded nodes not
    yet replaced; steady jitter is in the
    step.
    planned_stops : count the fleet's stops for maintenance and changes (graceful: nothing lost).
    fails_in_restart : a failure can strike a
    restart.  save_survives : a save in flight is finished in spite of a failure, where detection
    takes as long.  accounts : "exact",
    "renewal" or "linear" (`goodput.shares`). Sources differ in the last three.

    Several sites average every 100 steps and restart alone (`elastic.apart`); the headline says so
    in `assumed`, with what a
    synchronous run would lose.

    M = 1 / failure_rate_per_s. Interval: exact optimum of the stall, then raised until a save is
    durable before the next begins and moved
    by ceilings. Goodput: `goodput.shares` x (1 - spare shortage) x (1 - planned stops) x (1 -
    stragglers) x (1 - SDC); spare shortage is
    `spares.shortage` (Erlang-B but for what hides behind the detection). Sums exactly; the product
    treats rare losses as independent,
    which a simulation bears out to 0.1 point at 16,384 devices and 0.3 at 98,304. Source of each
    default in `assumed`; formulas' sources
    in `goodput` and `spares`.
    """
    n = np.asarray(cluster.devices if devices is None else devices, float)
    say: list[Assumed] = []
    rate, planned_per_day, name = _rate(spec, say, np.min(n))
    m = failures.job_mtbf_s(rate, n)
    nodes = np.ceil(n / cluster.devices_per_node)
    disk = storage.rates(cluster, nodes)
    stall, durable, detect, restart, repair = _times(
        cluster,
        spec,
        say,
        n,
        disk,
        checkpoint_bytes,
        state_bytes_per_device,
    )

    optimum = goodput.optimum_interval(m, stall)
    interval, by = chosen_interval(
        optimum,
        stall,
        durable,
        constraints,
        get(spec, "checkpoint_interval_s"),
        step_s or 1.0,
    )
    load = failures.EVICTS * repair / (m + detect)
    most = min(int(nodes.max()) + 2, 4096)  # spares that are looked at
    hit = _domain_nodes(cluster, nodes)
    survive = get(constraints, "survive")
    recommended = np.maximum(
        spares.cheapest(load, nodes, limit=most), 0 if survive == "pod" else hit.get(survive, 0)
    )
    used = given(
        spec,
        "reliability.spares",
        np.asarray(recommended),
        "the number that makes a useful hour cheapest (Erlang-B), at least the domain "
        "that must be survived",
        say,
    )
    used = np.asarray(used, int)

    planned_per_day = planned_per_day if planned_stops else 0.0
    planned = planned_per_day / DAY_S * (stall + durable + restart)
    averaged = np.asarray(checkpoint_bytes, float) / BYTES_PER_PARAM if params is None else params
    losses = {
        "spare shortage": spares.shortage(
            used,
            failures.EVICTS / m,
            repair,
            detect / failures.EVICTS,
        ),
        "planned stops": planned / (1 + planned),
        "stragglers": fail_slow_share,
        "sdc": -np.expm1(-failures.SDC_SHARE / m * sdc_latency_s),
        "sites": _between_sites(
            cluster,
            averaged,
            step_s or 1.0,
            say,
        ),
    }
    sites = max(1, int(cluster.sites))

    def split(tau):
        safe = 0.0 if fails_in_restart else restart
        part = goodput.shares(
            m * sites,
            stall,
            tau,
            durable_s=0.0 if save_survives else durable,
            restart_s=restart - safe,
            down_s=detect + safe,
            accounts=accounts,
        )
        moved = part["detection"] * safe / np.maximum(detect + safe, 1e-300)
        part["detection"], part["restart"] = part["detection"] - moved, part["restart"] + moved
        return _left(part, losses)

    good, bad = split(interval)
    curve = {}
    if n.ndim == 0:
        low, high = sorted((float(interval), float(optimum)))
        axis = np.geomspace(max(1.0, low / 20), high * 20, 81)
        curve = {
            "interval_s": axis,
            "goodput": split(axis)[0],
        }
    return Endurance(
        devices=n.astype(int),
        preset=name,
        failures_per_1000_node_days=rate,
        mtbf_s=m,
        failures_per_day=failures.rates_by_cause(rate, n),
        planned_per_day=planned_per_day,
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
        lost_work_s=interval + stall + durable,
        goodput=np.clip(good, 1e-12, 1.0),
        badput={k: bad[k] for k in BADPUT},
        spares=used,
        spares_recommended=recommended,
        spares_for={str(c): spares.spares_for(load, c, limit=most) for c in (0.9, 0.99, 0.999)},
        write_bytes_per_s_needed=checkpoint.write_rate_needed(checkpoint_bytes, interval, stall),
        write_bytes_per_s=disk.write_bytes_per_s,
        retention=checkpoint.retention(
            interval,
            detection_latency_s=sdc_latency_s,
            durable_s=durable,
        ),
        domain_nodes=hit,
        sites=sites,
        copies_survive=disk.survives,
        curve=curve,
        interval_set_by=by,
        assumed=tuple(say),
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
    """Stall of a save, time until it is durable, detection, restart, repair [s]: given, or by the
    rule that goes into `say`."""
    nodes = np.ceil(n / cluster.devices_per_node)

    def moved(way):
        store, node = (getattr(disk, f"{at}{way}_bytes_per_s") for at in ("", "node_"))
        return checkpoint.transfer_s(
            checkpoint_bytes,
            store,
            nodes,
            node,
        )

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
            RELAUNCH_S + communicator_init_s(n) + checkpoint.LOAD_S + moved("read"),
            "in place: 60 s relaunch (ByteRobust, Table 7) + communicators (17 s at 16,384, "
            "200 s at 98,304) + load (120 s and the bytes)",
        ),
        "repair_s": (
            REPAIR_S,
            "4 h to drain, test and return a node; 2.2 h measured at NCSA Delta",
        ),
    }
    *times, repair = (
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
    return *times, np.maximum(repair, 1e-3)


def _between_sites(
    cluster,
    params,
    step_s,
    say,
):
    """Share of the time that averaging between the sites takes; 0 for one site."""
    sites = int(cluster.sites)
    if sites <= 1:
        return 0.0
    way = elastic.apart(
        params,
        step_s,
        sites,
        cluster.site_bytes_per_s,
    )
    say.append(
        Assumed(
            "cluster.sites",
            sites,
            f"local updates: {sites} sites average every {elastic.INNER_STEPS} steps "
            f"over {cluster.site_bytes_per_s / 1e9:g} GB/s "
            f"({np.max(way['sync_s']):,.0f} s each, {np.max(way['share']):.1%} of the "
            f"time) and restart alone; all-reducing every step would lose "
            f"{np.max(way['every_step_share']):.1%}. To be confirmed by an ML specialist",
        )
    )
    return way["share"]


def _left(part, losses):
    """(goodput, badput): the shares of `part` in what every loss in turn leaves."""
    out, left = {}, 1.0
    for key, loss in losses.items():
        out[key], left = left * loss, left * (1 - loss)
    return left * part["useful"], {
        **{k: left * v for k, v in part.items() if k != "useful"},
        **out,
    }


def tiered(
    cluster,
    endurance: Endurance,
    *,
    state_bytes_per_device,
    replicas=0,
    seed=0,
) -> dict:
    """The same job with copies in host memory and on a peer before the parallel file system.

    A process that dies restarts from host memory (15 % of failures), a lost node from its peer (84
    %), corruption from the store (1 %).
    {tiers, interval_s, every, goodput, gain, scenario, simulated}: tiers as `checkpoint.tiers`; the
    store gets every `every[2]`-th save,
    as often as it keeps up; the interval maximises the nested closed form
    (`goodput.ettr_tiers_nested`), the other losses are the
    endurance's own. `simulated` is the goodput of `scenario` from `replicas` replicas of 30 days,
    planned stops and shortage apart (None
    without).
    """
    e, disk = endurance, storage.rates(cluster)
    found = checkpoint.tiers(
        cluster,
        float(np.max(e.checkpoint_bytes)),
        float(state_bytes_per_device),
        store_write_bytes_per_s=float(disk.write_bytes_per_s),
        store_read_bytes_per_s=float(disk.read_bytes_per_s),
        store_capacity_bytes=float(disk.capacity_bytes),
        stall_s=float(e.checkpoint_stall_s),
    )
    m, down, stall = float(e.mtbf_s), float(e.detect_s), float(e.checkpoint_stall_s)
    rates = [
        sum(c.share for c in failures.CAUSES if c.survivor == kind) / m
        for kind in ("host", "peer", "remote")
    ]
    launch = max(float(e.restart_s) - found[2].restore_s, 0.0)
    restores = [min(launch + t.restore_s, float(e.restart_s)) for t in found[:3]]
    durables = [0.0, found[1].durable_s, float(e.checkpoint_durable_s)]

    def at(tau):
        every = [1, 1, max(1, int(np.ceil(durables[2] / (tau + stall))))]
        return goodput.ettr_tiers_nested(
            rates,
            every,
            tau,
            [stall] * 3,
            restores,
            durables,
            down,
        ), every

    best = float(goodput.optimum_interval(m, stall))
    least = max(best / 8, durables[1] - stall, 1.0)
    tau = max(np.geomspace(least, max(best * 4, least), 60), key=lambda t: at(t)[0])
    useful, every = at(tau)
    base = goodput.shares(
        m,
        stall,
        e.checkpoint_interval_s,
        durable_s=e.checkpoint_durable_s,
        restart_s=e.restart_s,
        down_s=down,
    )["useful"]
    total = float(useful * e.goodput / base)
    scenario = Scenario(
        work_s=30 * DAY_S,
        interval_s=float(tau),
        levels=tuple(
            Level(
                stall_s=stall,
                durable_s=d,
                restart_s=r,
                every=k,
            )
            for d, r, k in zip(durables, restores, every)
        ),
        faults=tuple(
            Fault(
                rate_per_s=r,
                level=i,
                down_s=down,
            )
            for i, r in enumerate(rates)
        ),
    )
    return {
        "tiers": found,
        "interval_s": float(tau),
        "every": every,
        "goodput": total,
        "gain": total - float(e.goodput),
        "scenario": scenario,
        "useful": float(useful),
        "simulated": simulate(scenario, replicas, seed).goodput if replicas else None,
    }


def finish(endurance: Endurance, work_s, *, replicas=1000, seed=0, **features) -> dict:
    """Distribution of the finishing day by simulation: {goodput, badput, days_p10, days_p50,
    days_p90, replicas, seed, failures}.

    work_s : compute time of the run, failures apart [s].  features : fields of `simulate.Scenario`
    (shrink, lemons, contended, …).
    Several sites: one of them is simulated, its work stretched by the exchange between them.
    """
    if endurance.sites > 1:
        work_s = work_s / (
            1 - endurance.badput["sites"] / (endurance.goodput + endurance.badput["sites"])
        )
        endurance = replace(endurance, mtbf_s=endurance.mtbf_s * endurance.sites)
    return simulate(of_endurance(endurance, work_s, **features), replicas, seed).as_dict()


def _rate(
    spec,
    say,
    devices,
):
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
        return max(float(explicit), LEAST_RATE), fleet.planned_per_day, "explicit"
    if name is None:
        say.append(
            Assumed(
                "reliability.preset",
                fleet.id,
                (
                    f"none given; {fleet.per_1000_node_days:g} failures per 1,000 8-device "
                    f"node-days ({fleet.source})"
                )
                + (
                    "; so small a job stopped {} to {} times as often on Meta's RSC".format(
                        *failures.SMALL_JOB_SOONER
                    )
                    if devices <= failures.SMALL_JOB
                    else ""
                ),
            )
        )
    return fleet.per_1000_node_days, fleet.planned_per_day, fleet.id


def chosen_interval(
    optimum,
    stall,
    durable,
    constraints,
    pinned,
    step_s,
):
    """The optimum, moved as far as it must be: one save in flight, then the ceilings; the wall time
    is unimodal in it, so the nearest point is best."""
    if pinned is not None:
        return np.zeros_like(optimum) + float(pinned), "reliability.checkpoint_interval_s"
    interval, by = np.maximum(optimum, step_s), "optimum"
    ceiling, lost = (
        get(constraints, "max_checkpoint_overhead"),
        get(constraints, "max_lost_work_s"),
    )
    if lost is not None and np.any(interval + stall + durable > lost):
        interval, by = (
            np.minimum(interval, np.maximum(lost - stall - durable, step_s)),
            "constraints.max_lost_work_s",
        )
    if ceiling and np.any(interval < (least := stall * (1 - ceiling) / ceiling)):
        interval, by = np.maximum(interval, least), "constraints.max_checkpoint_overhead"
    if np.any(interval + stall < durable):
        interval, by = np.maximum(interval, durable - stall), "one save in flight"
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
