"""Traffic of one step on the network: which axis rides which tier for how long, bursts, fan-in,
collective curves, settings that follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import catalogue
from ...base.records import Record
from ...catalogue.words import SHARDINGS
from ...physics import curves
from ...physics.collectives import members_inside
from ...physics.communication import communication
from ...physics.traffic import expert_copies
from ..placement import placement
from ..site import is_torus

QUEUE_PAIRS = (
    1,
    2,
    4,
    8,
    16,
    # more than 4 or 8 has not paid in practice (NVIDIA/cluster-readiness-engine, change 287); NCCL
    # allows 128
)
LOAD_LIMIT = 1.25  # fullest uplink over the mean that a design should accept of hashed flows
SMALL_SHARE = 0.01  # of the step: a saving below this is not worth a setting
COLLECTIVE_OF = {"tp": "all_gather", "cp": "all_gather", "ep": "all_to_all", "dp": "reduce_scatter"}


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
    rows: tuple[dict, ...]


@dataclass(frozen=True)
class Setting(Record):
    """One setting of the fabric that follows from this design's numbers: what, the choice, why, and
    the figure it rests on."""

    what: str
    choice: str
    why: str
    figure: float
    unit: str


def axes(assessment) -> tuple[Axis, ...]:
    """Traffic of every axis in use, with the tier it spans and its time there by the step model and
    by the curves.

    message_bytes: an all-gather's or reduce-scatter's whole tensor, an all-to-all's bytes of one
    rank, a send's payload.
    alone_s = calls x curve; the step model's time also holds what compute beside it costs, so the
    two need not agree.
    """
    chosen = assessment.chosen
    spans = {g.axis: g for g in placement(assessment).groups}
    step = float(chosen.step.total)
    out = []
    for row in communication(chosen.case, chosen.step):
        axis, n, calls = row["axis"], row["group"], max(int(row["calls"]), 1)
        if axis == "dp":
            calls *= layer_units(chosen)
        per = inside(chosen, axis)
        each = row["bytes"] / calls
        message = each if axis == "pp" else each * n / max(n - 1, 1)
        group = spans["ep" if axis == "ep" and "ep" in spans else axis if axis in spans else "dp"]
        if axis == "dp" and chosen.plan["cp"] > 1 and spans["cp"].domains > group.domains:
            group = spans["cp"]
        alone = calls * one_call_s(assessment, axis, n, per, message)
        out.append(
            Axis(
                axis,
                row["what"],
                n,
                per,
                group.widest,
                "scale-up" if n <= per else row["tier"],
                row["bytes"],
                calls,
                message,
                row["time_s"],
                row["exposed_s"],
                row["exposed_s"] / step,
                float(alone),
            )
        )
    return tuple(out)


def layer_units(chosen) -> int:
    """Pieces in which sharded weights are gathered: one a layer that the device holds under zero3
    and hsdp, else 1 (buckets stream)."""
    if SHARDINGS.index(chosen.plan["sharding"]) < SHARDINGS.index("zero3"):
        return 1
    return max(1, round(float(chosen.case.shape.layers) / chosen.plan["pp"]))


def inside(chosen, axis: str) -> int:
    """Members of one group of an axis that share a scale-up domain."""
    p, domain = chosen.plan, chosen.case.link.domain
    packed = {
        "tp": 1,
        "cp": p["tp"],
        "ep": p["etp"],
        "dp": p["tp"],
        "pp": p["tp"] * p["cp"] * p["dp"],
    }[axis]
    size = {"tp": p["tp"], "cp": p["cp"], "ep": p["ep"], "dp": p["dp"] * p["cp"], "pp": p["pp"]}[
        axis
    ]
    return int(members_inside(size, packed, domain))


def one_call_s(assessment, axis: str, n: int, per: int, message: float) -> float:
    """Seconds of one call of an axis, alone on the wires."""
    cluster = assessment.resolved.cluster
    if axis == "pp":
        up = n <= per
        rate = (
            cluster.scale_up_bytes_per_s * cluster.scale_up_efficiency
            if up
            else cluster.scale_out_bytes_per_s * cluster.scale_out_efficiency
        )
        return message / rate + (cluster.scale_up_latency_s if up else cluster.scale_out_latency_s)
    collective = COLLECTIVE_OF[axis]
    if (
        axis == "ep" and n > per
    ):  # a dispatcher that sends one copy a domain: fewer bytes leave, all still pass inside
        out = expert_share_out(assessment.chosen) * n / (n - per) * (n - 1) / n
        both = [(message * out, n), (message * per / n, per)]
        return max(
            float(curves.fastest(collective, size, curves.wires(cluster, ranks, per)))
            for size, ranks in both
        )
    if axis == "dp" and SHARDINGS.index(assessment.chosen.plan["sharding"]) == 0:
        collective = "all_reduce"
    return float(curves.fastest(collective, message, curves.wires(cluster, n, per)))


def curves_of(assessment) -> tuple[curves.Curve, ...]:
    """Curves of this design's own groups: what each axis runs, and an all-reduce of the
    data-parallel group for every plan."""
    chosen, cluster = assessment.chosen, assessment.resolved.cluster
    p = chosen.plan
    wanted = [
        ("tp", "all_gather", p["tp"]),
        ("tp", "all_reduce", p["tp"]),
        ("ep", "all_to_all", p["ep"]),
        ("dp", "all_reduce", p["dp"] * p["cp"]),
        ("dp", "reduce_scatter", p["dp"] * p["cp"]),
        ("dp", "all_gather", p["dp"] * p["cp"]),
    ]
    could = catalogue.fabric(cluster.scale_out).in_network_reduction
    out = [
        curves.curve(
            collective, curves.wires(cluster, n, inside(chosen, axis)), axis, could_reduce=could
        )
        for axis, collective, n in wanted
        if n > 1
    ]
    several = min(cluster.devices, max(cluster.scale_up_domain, 1) * 32)
    if several > 1:
        for collective in ("all_reduce", "all_gather", "all_to_all"):
            out.append(
                curves.curve(
                    collective,
                    curves.wires(cluster, several, min(cluster.scale_up_domain, several)),
                    "32 domains",
                    could_reduce=could,
                )
            )
    return tuple(out)


_RACK = "gb200-so-ndr"  # the network whose curves were measured between racks of one domain


def trust(cluster) -> tuple[dict, ...]:
    """How far the curves were off on published series of the fabrics nearest to the design's, each
    series left out of its fit
    (xGMI, RoCE and TCPXO are in no fit at all).

    {tier, fabric, judged_on, large_error, small_error}: medians of the time from 64 MiB and below
    (curves_score); judged_on None where
    nobody has published a curve of such a fabric.
    """
    errors = {r["fabric"]: r for r in curves.calibration()["errors"]}
    up, network = catalogue.fabric(cluster.scale_up), catalogue.fabric(cluster.scale_out)
    # a rack-wide domain over InfiniBand was measured as a whole
    wide = cluster.scale_up_domain > cluster.devices_per_node and up.technology == "nvlink"
    rack = wide and network.technology == "infiniband"
    out = []
    for tier, fabric, name in (
        ("scale-up", up, up.judged_on),
        ("scale-out", network, catalogue.fabric(_RACK).judged_on if rack else network.judged_on),
    ):
        row = errors.get(name, {})
        out.append(
            {
                "tier": tier,
                "fabric": fabric.id,
                "judged_on": name or None,
                "large_error": row.get("large_error"),
                "small_error": row.get("small_error"),
            }
        )
    return tuple(out)


def measured(cluster, most: int = 6) -> tuple[dict, ...]:
    """Published curves of the same accelerator, to lay over the model's: {series, collective,
    devices, domains, message_bytes, busbw_bytes_per_s, source}."""
    chip = cluster.accelerator.id
    rows = [
        s
        for s in catalogue.collective_series().values()
        if s.accelerator == chip and len(s.message_bytes) > 1 and "nvshmem" not in s.collective
    ]
    return tuple(
        {
            "series": s.id,
            "fabric": s.fabric,
            "collective": s.collective.replace("alltoall", "all_to_all"),
            "devices": s.devices,
            "domains": s.nvlink_domains,
            "message_bytes": s.message_bytes,
            "busbw_bytes_per_s": s.busbw_bytes_per_s,
            "source": s.source,
        }
        for s in rows[:most]
    )


def bursts(assessment, rows) -> Burst:
    """Load of the cards over a step.

    mean = bytes that leave the scale-up domain / step; peak = the card at the share of its rate
    that large messages reach; a burst is
    one call: its bytes, its time at peak, the time until the next. Fan-in: ring 1; pipeline 1 (2
    with both directions at once); an
    all-to-all every rank outside the domain, or every other domain where the dispatcher sends one
    copy a domain. queue_bytes =
    (fan-in - 1) x rate x one step of the fabric: what arrives at the last port before the senders
    can react.
    """
    chosen, cluster = assessment.chosen, assessment.resolved.cluster
    step = float(chosen.step.total)
    peak = cluster.scale_out_bytes_per_s * cluster.scale_out_efficiency
    fan, out, total = {}, [], 0.0
    for a in rows:
        if a.tier != "scale-out":
            continue
        leaves = outside_share(chosen, a)
        sent = a.bytes * leaves
        total += sent
        if a.axis == "ep":
            one_copy = bool(chosen.case.software.dedup_dispatch > 0)
            domains = max(1, a.ranks // max(a.per_domain, 1))
            fan["ep"] = domains - 1 if one_copy else a.ranks - a.per_domain
        else:
            fan[a.axis] = 1
        seconds = sent / a.calls / peak
        out.append(
            {
                "axis": a.axis,
                "bytes": sent / a.calls,
                "burst_s": seconds,
                "bursts_per_step": a.calls,
                "period_s": step / a.calls,
                "bytes_per_step": sent,
            }
        )
    mean = total / step
    big = max(out, key=lambda r: r["bytes"]) if out else None
    most = float(max(fan.values(), default=0))
    return Burst(
        mean,
        peak,
        peak / mean if mean > 0 else float("nan"),
        min(1.0, mean / peak),
        big["axis"] if big else "",
        big["bytes"] if big else 0.0,
        big["burst_s"] if big else 0.0,
        big["period_s"] if big else step,
        fan,
        most,
        max(most - 1, 0.0) * cluster.scale_out_bytes_per_s * cluster.scale_out_latency_s,
        tuple(out),
    )


def outside_share(chosen, a: Axis) -> float:
    """Share of what a device sends on an axis that leaves its scale-up domain through its own card.

    Rings: the pair at the edge of the domain leaves, and every member's card carries its share of
    the rings, so 1 / members inside. An
    all-to-all: `expert_share_out`. Pipelines: all.
    """
    if a.ranks <= a.per_domain:
        return 0.0
    if a.axis == "ep":
        return expert_share_out(chosen)
    return 1.0 if a.axis == "pp" else 1.0 / max(a.per_domain, 1)


def expert_share_out(chosen) -> float:
    """Share of the bytes of the experts' exchange that leave the scale-up domain.

    Copies over the card over those over link and card (`physics.traffic.expert_copies`).
    """
    copies = expert_copies(chosen.case)
    return float(copies.card / np.maximum(copies.link + copies.card, 1e-30))


def fullest_uplink(flows_per_uplink: float, uplinks: int) -> float:
    """Fullest of so many uplinks over the mean when flows are hashed at random: smallest m with
    uplinks x P(Poisson > m) < 1/2, over the mean.

    What static ECMP does to few large flows; packet spraying and adaptive routing have none of it.
    """
    from scipy.special import pdtrc

    mean = max(flows_per_uplink, 1e-9)
    m = np.arange(0, int(mean + 12 * np.sqrt(mean) + 12))
    return float(m[np.argmax(uplinks * pdtrc(m, mean) < 0.5)] / mean)


def settings(assessment, t, switch, rows) -> tuple[Setting, ...]:
    """Routing, quality of service and reduction that this fabric and this traffic ask for."""
    chosen, cluster = assessment.chosen, assessment.resolved.cluster
    fabric = catalogue.fabric(cluster.scale_out)
    step = float(chosen.step.total)
    out_rows = [a for a in rows if a.tier == "scale-out"]
    if is_torus(cluster) and not out_rows:
        return (
            Setting(
                "routing",
                "dimension order on the torus, wrap-around on",
                (
                    "the job stands in one slice; the switches wire each slice's axes to "
                    "rings of their own"
                ),
                float(t.hops),
                "hops, farthest pair",
            ),
        )
    if not out_rows:
        return (
            Setting(
                "scale-out",
                "not used by this plan",
                "no group leaves its scale-up domain",
                0.0,
                "bytes a step",
            ),
        )
    load = bursts(assessment, rows)
    wire = sum(a.time_s for a in out_rows)
    out = []
    uplinks = int(t.ports.get("leaf", {}).get("up", 0)) if t.tiers > 1 else 0
    crossing = [a for a in out_rows if a.widest not in ("leaf unit", "node", "scale-up domain")]
    ethernet, band = fabric.technology == "ethernet", fabric.technology == "infiniband"
    if uplinks and crossing:
        bad = fullest_uplink(1.0, uplinks)
        need = next(
            (q for q in QUEUE_PAIRS if fullest_uplink(q, uplinks) <= LOAD_LIMIT), QUEUE_PAIRS[-1]
        )
        lost = sum(a.time_s for a in crossing) * (bad - 1)
        text = (
            f"one flow a card hashed over {uplinks} uplinks loads the fullest {bad:.1f} "
            f"times; the {', '.join(a.axis for a in crossing)} traffic above the leaf takes "
            f"{sum(a.time_s for a in crossing):.3f} s of a step"
        )
        if band:
            out.append(
                Setting(
                    "routing",
                    "adaptive routing on its own service level",
                    text,
                    bad,
                    "fullest uplink over mean without it",
                )
            )
        elif fabric.technology == "efa":
            out.append(
                Setting(
                    "routing",
                    "none to set: the cards spray packets (SRD)",
                    text + " if they did not",
                    bad,
                    "fullest uplink over mean if hashed",
                )
            )
        elif ethernet:
            out.append(
                Setting(
                    "routing",
                    "packet spraying or adaptive routing where switch and card reorder",
                    text,
                    bad,
                    "fullest uplink over mean without it",
                )
            )
            left = fullest_uplink(need, uplinks)
            out.append(
                Setting(
                    "queue pairs a connection",
                    f"{need} where only hashing is there, hashed on the destination queue pair",
                    f"{need} flows a card bring the fullest uplink to {left:.2f} of the mean"
                    + (
                        ", still too full: hashing alone does not do here"
                        if left > LOAD_LIMIT
                        else ""
                    )
                    + f"; one costs up to {lost:.3f} s of wire time a step",
                    float(need),
                    "queue pairs",
                )
            )
    elif t.kind.startswith("dragonfly") and t.oversubscription > 1 and crossing:
        others = (
            -(-t.endpoints // t.pod_endpoints) - 1
        )  # a group's links share out over so many others
        out.append(
            Setting(
                "routing",
                "adaptive, over a third group where the direct links are full",
                (
                    f"by direct links alone two groups that talk only to each other have "
                    f"1/{others} of their cards' rate"
                ),
                float(others),
                "other groups that share a group's links",
            )
        )
    elif uplinks:
        out.append(
            Setting(
                "routing",
                "static is enough",
                "every group that leaves a domain stays under one leaf of its rail",
                1.0,
                "switches passed",
            )
        )
    if load.incast > 1:
        kind = (
            "credits hold it at the card"
            if band
            else "receiver-given credits in the dispatcher, else ECN thresholds above it"
            if ethernet
            else "left to the cards"
        )
        out.append(
            Setting(
                "fan-in",
                kind,
                (
                    f"{load.incast:.0f} senders meet at a card in the experts' exchange; "
                    f"{load.queue_bytes / 1e6:.2f} MB pile up in one step of "
                    f"{cluster.scale_out_latency_s * 1e6:.0f} us"
                ),
                load.queue_bytes,
                "bytes at one port",
            )
        )
    elif ethernet:
        out.append(
            Setting(
                "congestion control",
                "flow control alone; ECN-driven slowing off or lax",
                _one_to_one(len(out_rows)),
                load.incast,
                "senders a card",
            )
        )
    pp, dp = (next((a for a in out_rows if a.axis == x), None) for x in ("pp", "dp"))
    if pp is not None and dp is not None:
        share = min(1.0, dp.time_s / step)
        gain = pp.time_s * share
        worth = gain / step >= SMALL_SHARE / 10
        out.append(
            Setting(
                "classes",
                "pipeline sends above gradients"
                if worth
                else "one class for training traffic; another for storage and control",
                (
                    f"gradients fill the cards {share:.0%} of the step; a send of "
                    f"{pp.message_bytes / 1e6:.1f} MB behind them waits as long again, "
                    f"{gain * 1e3:.1f} ms a step"
                ),
                gain,
                "s a step",
            )
        )
    if (
        cluster.in_network_reduction
        or (switch is not None and switch.reduction == "sharp")
        or fabric.in_network_reduction
    ):
        out.append(_reduction(assessment, dp, step))
    if wire / step < SMALL_SHARE:
        out.append(
            Setting(
                "priority",
                "low: leave defaults",
                f"all scale-out traffic takes {wire / step:.2%} of the step",
                wire,
                "s a step",
            )
        )
    return tuple(s for s in out if s is not None)


def _one_to_one(axes: int) -> str:
    """Why a fabric without an all-to-all needs no slowing down."""
    return "rings and pipelines send one to one" + (
        f": a card has {axes} senders at most, one an axis, when all axes send at once"
        if axes > 1
        else ": no card has two senders of this job"
    )


def _reduction(assessment, dp, step) -> Setting | None:
    """What reduction in the switches would save of the data-parallel traffic."""
    cluster, plan = assessment.resolved.cluster, assessment.chosen.plan
    if dp is None:
        return None
    if plan["sharding"] in ("zero3",) or plan["sharding"].startswith("zero"):
        return Setting(
            "reduction in the network",
            "little to gain",
            (
                f"{plan['sharding']} sends reduce-scatters and all-gathers of "
                f"{dp.message_bytes / 1e9:.2f} GB, no all-reduce; switches save an "
                f"all-reduce's second half"
            ),
            0.0,
            "s a step",
        )
    from dataclasses import replace

    w = curves.wires(cluster, dp.ranks, dp.per_domain)
    by = curves.times("all_reduce", dp.message_bytes, replace(w, sharp=1))
    if not np.isfinite(by["sharp"]):
        return None
    saved = (
        max(0.0, float(by["ring"] - by["sharp"]))
        * dp.calls
        * (dp.exposed_s / max(dp.time_s, 1e-12))
    )
    return Setting(
        "reduction in the network",
        "on" if saved / step >= SMALL_SHARE / 10 else "not worth a licence here",
        (
            f"an all-reduce of {dp.message_bytes / 1e9:.2f} GB over {dp.ranks:,} ranks takes "
            f"{float(by['sharp']):.3f} s in the switches against {float(by['ring']):.3f} s"
        ),
        saved,
        "s a step, exposed",
    )
