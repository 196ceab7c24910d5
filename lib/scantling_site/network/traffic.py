"""Traffic of one step on the network: which axis rides which tier for how long, bursts, fan-in,
collective curves, settings that follow."""

import numpy as np
from scantling import catalogue
from scantling.base.records import Record, Rows, record
from scantling.base.stats import poisson_beyond
from scantling.catalogue.words import SHARDINGS
from scantling.physics import collectives as curves
from scantling.physics.wires import calibration, members_inside

from ..placement import Placement, expert_share_out
from ..site import Site
from ..texts import columns, constant, fill, texts
from .topology import Topology

# more than 4 or 8 has not paid in practice (NVIDIA/cluster-readiness-engine, change 287); NCCL
# allows 128
QUEUE_PAIRS = (1, 2, 4, 8, 16)
COLLECTIVE_OF = {"tp": "all_gather", "cp": "all_gather", "ep": "all_to_all", "dp": "reduce_scatter"}


@record
class Axis(Record):
    """One axis in one step of one device."""

    axis: str
    what: str
    ranks: int
    per_domain: int
    widest: str  # the widest tier that a group spans (placement.TIERS)
    tier: str  # scale-up | scale-out: where its time is spent
    bytes: float  # sent by a device a step
    calls: int
    message_bytes: float  # of one call, as nccl-tests counts
    time_s: float  # in the step model
    exposed_s: float
    share: float  # exposed, of the step
    alone_s: float  # the same calls by the curves, nothing beside them


@record
class Burst(Record):
    """How uneven the cards' load is: mean and peak rate of a device's scale-out traffic over a
    step, fan-in, bytes that pile up."""

    mean_bytes_per_s: float
    peak_bytes_per_s: float
    factor: float  # peak over mean; None where nothing leaves the domain
    busy_share: float  # of the step during which the cards send
    largest: str  # axis of the largest burst
    largest_bytes: float  # that a device sends in it
    largest_s: float
    period_s: float
    fan_in: dict  # axis -> senders to one card at a time
    incast: float  # largest fan-in
    queue_bytes: float  # that a switch holds at the last port before the senders hear of it
    rows: Rows


@record
class Setting(Record):
    """One setting of the fabric that follows from this design's numbers: what, the choice, why, and
    the figure it rests on."""

    what: str
    choice: str
    why: str
    figure: float
    unit: str


def axes(s: Site, place: Placement) -> tuple:
    """Traffic of every axis in use, with the tier it spans and its time there by the step model and
    by the curves.

    message_bytes: an all-gather's or reduce-scatter's whole tensor, an all-to-all's bytes of one
    rank, a send's payload. alone_s = calls x curve; the step model's time also holds what compute
    beside it costs, so the two need not agree.
    """
    spans = {g.axis: g for g in place.groups}
    out = []
    for row in s.traffic:
        axis = row["axis"]
        n = row["group"]
        calls = max(row["calls"], 1)
        group = spans.get(axis, spans["dp"])
        if axis == "dp":
            calls *= layer_units(s.chosen)
            if s.plan["cp"] > 1 and spans["cp"].domains > group.domains:
                group = spans["cp"]
        per = inside(s.chosen, axis)
        message = row["bytes"] / calls * (1 if axis == "pp" else n / max(n - 1, 1))
        alone_s = one_call_s(s, axis, n, per, message)
        out.append(
            Axis(
                **{k: row[k] for k in ("axis", "what", "bytes", "time_s", "exposed_s")},
                ranks=n,
                per_domain=per,
                widest=group.widest,
                tier="scale-up" if n <= per else row["tier"],
                calls=calls,
                message_bytes=message,
                share=row["exposed_s"] / s.model_step_s,
                alone_s=calls * alone_s,
            )
        )
    return tuple(out)


def layer_units(chosen) -> int:
    """Pieces in which sharded weights are gathered: one a layer that the device holds under zero3
    and hsdp, else 1 (buckets stream)."""
    if SHARDINGS.index(chosen.plan["sharding"]) < SHARDINGS.index("zero3"):
        return 1
    return max(1, round(chosen.case.shape.layers / chosen.plan["pp"]))


def inside(chosen, axis: str) -> int:
    """Members of one group of an axis that share a scale-up domain."""
    tp, cp, dp, pp, ep, etp = (chosen.plan[a] for a in ("tp", "cp", "dp", "pp", "ep", "etp"))
    size, packed = {
        "tp": (tp, 1),
        "cp": (cp, tp),
        "ep": (ep, etp),
        "dp": (dp * cp, tp),
        "pp": (pp, tp * cp * dp),
    }[axis]
    return int(members_inside(size, packed, chosen.case.link.domain))


def one_call_s(s: Site, axis: str, n: int, per: int, message: float) -> float:
    """Seconds of one call of an axis, alone on the wires."""
    if axis == "pp":
        return curves.send_s(message, curves.wires(s.cluster, n, per))
    collective = COLLECTIVE_OF[axis]
    sizes = [(message, n)]
    if axis == "ep" and n > per:
        # a dispatcher that sends one copy a domain: fewer bytes leave, all still pass inside
        out = expert_share_out(s.case) * n / (n - per) * (n - 1) / n
        sizes = [(message * out, n), (message * per / n, per)]
    if axis == "dp" and s.plan["sharding"] == "none":
        collective = "all_reduce"
    return max(
        curves.fastest(collective, size, curves.wires(s.cluster, ranks, per))
        for size, ranks in sizes
    )


def curves_of(s: Site) -> tuple:
    """Curves of this design's own groups: what each axis runs, and an all-reduce of the
    data-parallel group for every plan."""
    cluster = s.cluster
    p = s.plan
    could = catalogue.fabric(cluster.scale_out).in_network_reduction
    many = min(cluster.devices, cluster.scale_up_domain * 32)
    groups = (
        ("tp", p["tp"], inside(s.chosen, "tp"), "all_gather all_reduce"),
        ("ep", p["ep"], inside(s.chosen, "ep"), "all_to_all"),
        ("dp", p["dp"] * p["cp"], inside(s.chosen, "dp"), "all_reduce reduce_scatter all_gather"),
        (
            "32 domains",
            many,
            min(cluster.scale_up_domain, many),
            "all_reduce all_gather all_to_all",
        ),
    )
    return tuple(
        curves.curve(collective, curves.wires(cluster, n, per), name, could_reduce=could)
        for name, n, per, run in groups
        for collective in run.split()
        if n > 1
    )


def trust(cluster) -> Rows:
    """How far the curves were off on published series of the fabrics nearest to the design's, each
    series left out of its fit (xGMI, RoCE and TCPXO are in no fit at all).

    {tier, fabric, judged_on, large_error, small_error}: medians of the time from 64 MiB and below
    (catalogue/collective_calibration.json); judged_on None where nobody has published a curve of
    such a fabric.
    """
    errors = {r["fabric"]: r for r in calibration()["errors"]}
    up = catalogue.fabric(cluster.scale_up)
    out = catalogue.fabric(cluster.scale_out)
    wide = cluster.scale_up_domain > cluster.devices_per_node
    judged = up.judged_on, wide and out.judged_on_racks or out.judged_on
    found = [errors.get(name, {}) for name in judged]
    return columns(
        tier=("scale-up", "scale-out"),
        fabric=(up.id, out.id),
        judged_on=[name or None for name in judged],
        large_error=[row.get("large_error") for row in found],
        small_error=[row.get("small_error") for row in found],
    )


def measured(cluster, most: int = 6) -> Rows:
    """Published curves of the same accelerator, to lay over the model's: {series, collective,
    devices, domains, message_bytes, busbw_bytes_per_s, source}."""
    rows = [
        x
        for x in catalogue.collective_series().values()
        if x.accelerator == cluster.accelerator.id
        and len(x.message_bytes) > 1
        and "nvshmem" not in x.collective
    ]
    same = "message_bytes", "busbw_bytes_per_s", "source"
    return tuple(
        {
            "series": x.id,
            "fabric": x.fabric,
            "collective": x.collective.replace("alltoall", "all_to_all"),
            "devices": x.devices,
            "domains": x.nvlink_domains,
            **{k: getattr(x, k) for k in same},
        }
        for x in rows[:most]
    )


def bursts(s: Site, rows: tuple) -> Burst:
    """Load of the cards over a step.

    mean = bytes that leave the scale-up domain / step; peak = the card at the share of its rate
    that large messages reach; a burst is one call: its bytes, its time at peak, the time until the
    next. Fan-in: ring 1; pipeline 1 (2 with both directions at once); an all-to-all every rank
    outside the domain, or every other domain where the dispatcher sends one copy a domain.
    queue_bytes = (fan-in - 1) x rate x one step of the fabric: what arrives at the last port before
    the senders can react.
    """
    rate = s.cluster.scale_out_bytes_per_s
    peak = rate * s.cluster.scale_out_efficiency
    leaving = [a for a in rows if a.tier == "scale-out"]
    fan = {a.axis: senders(s.case, a) for a in leaving}

    def burst(axis, calls, sent):
        return {
            "axis": axis,
            "bytes": sent / calls,
            "burst_s": sent / calls / peak,
            "bursts_per_step": calls,
            "period_s": s.model_step_s / calls,
            "bytes_per_step": sent,
        }

    out = [burst(a.axis, a.calls, a.bytes * outside_share(s.case, a)) for a in leaving]
    mean = sum(row["bytes_per_step"] for row in out) / s.model_step_s
    big = max(out, key=lambda r: r["bytes"], default=burst("", 1, 0.0))
    most = max(fan.values(), default=0)
    return Burst(
        mean_bytes_per_s=mean,
        peak_bytes_per_s=peak,
        factor=peak / mean if mean > 0 else float("nan"),
        busy_share=min(1.0, mean / peak),
        largest=big["axis"],
        largest_bytes=big["bytes"],
        largest_s=big["burst_s"],
        period_s=big["period_s"],
        fan_in=fan,
        incast=most,
        queue_bytes=max(most - 1, 0.0) * rate * s.cluster.scale_out_latency_s,
        rows=tuple(out),
    )


def senders(case, a: Axis) -> int:
    """Ranks that send to one card at a time."""
    if a.axis != "ep":
        return 1
    if case.software.dedup_dispatch > 0:
        return a.ranks // a.per_domain - 1
    return a.ranks - a.per_domain


def outside_share(case, a: Axis) -> float:
    """Share of what a device sends on an axis that leaves its scale-up domain through its own card.

    Rings: the pair at the edge of the domain leaves, and every member's card carries its share of
    the rings, so 1 / members inside. An all-to-all: `expert_share_out`. Pipelines: all.
    """
    if a.ranks <= a.per_domain:
        return 0.0
    if a.axis == "ep":
        return expert_share_out(case)
    return 1.0 if a.axis == "pp" else 1.0 / a.per_domain


def fullest_uplink(flows_per_uplink: float, uplinks: int) -> float:
    """Fullest of so many uplinks over the mean when flows are hashed at random: smallest m with
    uplinks x P(Poisson > m) < 1/2, over the mean.

    What static ECMP does to few large flows; packet spraying and adaptive routing have none of it.
    """
    mean = flows_per_uplink
    beyond = poisson_beyond(int(mean + 12 * np.sqrt(mean) + 11), mean)
    return np.argmax(uplinks * beyond < 0.5) / mean


def _saving(s: Site, id: str, seconds: float, yes: str, no: str, **values) -> Setting:
    """A setting that saves so many seconds of a step: `yes` where that is worth it, else `no`."""
    worth = seconds / s.model_step_s >= constant("small_share") / 10
    return _setting(s, id, seconds, choice=texts("settings", id, yes if worth else no), **values)


def _setting(s: Site, id: str, figure: float, **values) -> Setting:
    words = texts("settings", id)
    words = {k: words[k] for k in ("what", "choice", "why", "unit")}
    return Setting(**fill(words, s, figure=figure, **values), figure=figure)


def settings(s: Site, t: Topology, switch, rows: tuple) -> tuple:
    """Routing, quality of service and reduction that this fabric and this traffic ask for."""
    fabric = catalogue.fabric(s.cluster.scale_out)
    leaving = [a for a in rows if a.tier == "scale-out"]
    if not leaving:
        return (_setting(s, "torus", t.hops) if s.torus else _setting(s, "unused", 0.0),)
    by_axis = {a.axis: a for a in leaving}
    pp = by_axis.get("pp")
    dp = by_axis.get("dp")
    out = [*_routing(s, t, fabric, leaving), *_congestion(s, fabric, bursts(s, rows), len(leaving))]
    if pp and dp:
        out.append(_classes(s, pp, dp))
    own = s.cluster.in_network_reduction or fabric.in_network_reduction
    if dp and (own or switch is not None and switch.reduction == "sharp"):
        out += _reduction(s, dp)
    wire = sum(a.time_s for a in leaving)
    share = wire / s.model_step_s
    if share < constant("small_share"):
        out.append(_setting(s, "priority", wire, share=share))
    return tuple(out)


def _routing(s: Site, t: Topology, fabric, leaving):
    """How flows find their uplinks, and over how many queue pairs they are spread."""
    uplinks = t.ports.get("leaf", {}).get("up", 0) if t.tiers > 1 else 0
    near = ("leaf unit", "node", "scale-up domain")
    crossing = [a for a in leaving if a.widest not in near]
    if uplinks and not crossing:
        yield _setting(s, "static", 1.0)
    elif uplinks and fabric.technology in texts("settings"):
        bad = fullest_uplink(1.0, uplinks)
        limit = constant("load_limit")
        fit = (q for q in QUEUE_PAIRS if fullest_uplink(q, uplinks) <= limit)
        need = next(fit, QUEUE_PAIRS[-1])
        spent = sum(a.time_s for a in crossing)
        words = texts("settings")
        yield _setting(
            s,
            fabric.technology,
            bad,
            hashed=fill(
                words["hashed"],
                uplinks=uplinks,
                bad=bad,
                axes=", ".join(a.axis for a in crossing),
                crossing=spent,
            ),
        )
        if fabric.ethernet:
            left = fullest_uplink(need, uplinks)
            yield _setting(
                s,
                "queue pairs",
                need,
                need=need,
                left=left,
                lost=spent * (bad - 1),
                fully=words["queue pairs"]["full"] if left > limit else "",
            )
    elif not uplinks and crossing and t.kind.startswith("dragonfly") and t.oversubscription > 1:
        # a group's links share out over so many others
        yield _setting(s, "dragonfly", -(-t.endpoints // t.pod_endpoints) - 1)


def _congestion(s: Site, fabric, load: Burst, axes: int):
    """What holds senders back where several meet at a card."""
    words = texts("settings")
    if load.incast > 1:
        yield _setting(
            s,
            "fan-in",
            load.queue_bytes,
            kind=words["fan-in"].get(fabric.technology, words["fan-in"]["other"]),
            load=load,
        )
    elif fabric.ethernet:
        yield _setting(
            s,
            "congestion control",
            load.incast,
            senders=fill(words["congestion control"]["several" if axes > 1 else "one"], axes=axes),
        )


def _classes(s: Site, pp: Axis, dp: Axis) -> Setting:
    """Whether pipeline sends should pass gradients on the cards."""
    share = min(1.0, dp.time_s / s.model_step_s)
    return _saving(s, "classes", pp.time_s * share, "above", "one", share=share, pp=pp)


def _reduction(s: Site, dp: Axis):
    """What reduction in the switches would save of the data-parallel traffic."""
    if s.plan["sharding"].startswith("zero"):
        yield _setting(s, "reduction sharded", 0.0, dp=dp)
        return
    wires = curves.wires(s.cluster, dp.ranks, dp.per_domain)
    by = curves.times("all_reduce", dp.message_bytes, curves.reducing(wires))
    ring = by["ring"]
    sharp = by["sharp"]
    if np.isfinite(sharp):
        saved = max(0.0, ring - sharp) * dp.calls * (dp.exposed_s / max(dp.time_s, 1e-12))
        yield _saving(s, "reduction", saved, "on", "off", dp=dp, ring=ring, sharp=sharp)
