"""Traffic of one step on the network: which axis rides which tier for how long, bursts, fan-in,
collective curves, settings that follow."""

from collections.abc import Sequence
from typing import TypedDict

from scantling import catalogue
from scantling.base.records import Record, record
from scantling.catalogue.words import SHARDINGS, Sharding
from scantling.design.cluster import Cluster
from scantling.physics import collectives as curves
from scantling.physics.cases import Cases
from scantling.physics.collectives import Curve
from scantling.physics.wires import calibration, members_inside
from scantling.verdict.assessment import Chosen

from ..job_site import Site
from ..placement import Placement, expert_share_out

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


class BurstRow(TypedDict):
    """The bursts of one axis on a device's card."""

    axis: str
    bytes: float  # of one
    burst_s: float
    bursts_per_step: int
    period_s: float
    bytes_per_step: float


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
    fan_in: dict[str, int]  # axis -> senders to one card at a time
    incast: int  # largest fan-in
    queue_bytes: float  # that a switch holds at the last port before the senders hear of it
    rows: tuple[BurstRow, ...]


def axes(s: Site, place: Placement) -> tuple[Axis, ...]:
    """Traffic of every axis in use, with the tier it spans and its time there by the step model and
    by the curves.

    message_bytes: an all-gather's or reduce-scatter's whole tensor, an all-to-all's bytes of one
    rank, a send's payload. alone_s = calls x curve; the step model's time also holds what compute
    beside it costs, so the two need not agree.
    """
    spans = {g.axis: g for g in place.groups}
    out = []
    for row in s.traffic:
        axis = row.axis
        n = row.group
        calls = max(row.calls, 1)
        group = spans.get(axis, spans["dp"])
        if axis == "dp":
            calls *= layer_units(s.chosen)
            if s.plan["cp"] > 1 and spans["cp"].domains > group.domains:
                group = spans["cp"]
        per = inside(s.chosen, axis)
        message = row.bytes / calls * (1 if axis == "pp" else n / max(n - 1, 1))
        alone_s = one_call_s(s, axis, n, per, message)
        out.append(
            Axis(
                axis=axis,
                what=row.what,
                bytes=row.bytes,
                time_s=row.time_s,
                exposed_s=row.exposed_s,
                ranks=n,
                per_domain=per,
                widest=group.widest,
                tier="scale-up" if n <= per else row.tier,
                calls=calls,
                message_bytes=message,
                share=row.exposed_s / s.model_step_s,
                alone_s=calls * alone_s,
            )
        )
    return tuple(out)


def gathers_layers(sharding: str) -> bool:
    """True where weights are gathered layer by layer."""
    return SHARDINGS.index(sharding) >= SHARDINGS.index(Sharding.ZERO3)


def layer_units(chosen: Chosen) -> int:
    """Pieces in which sharded weights are gathered: one a layer that the device holds under zero3
    and hsdp, else 1 (buckets stream)."""
    if not gathers_layers(chosen.plan["sharding"]):
        return 1
    return max(1, round(float(chosen.case.shape.layers) / int(chosen.plan["pp"])))


def inside(chosen: Chosen, axis: str) -> int:
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
        return float(curves.send_s(message, curves.wires(s.cluster, n, per)))
    collective = COLLECTIVE_OF[axis]
    if axis == "dp" and s.plan["sharding"] == Sharding.NONE:
        collective = "all_reduce"
    sizes = [(message, n)]
    if axis == "ep" and n > per:
        # a dispatcher that sends one copy a domain: fewer bytes leave, all still pass inside
        out = expert_share_out(s.case) * n / (n - per) * (n - 1) / n
        sizes = [(message * out, n), (message * per / n, per)]
    return max(
        float(curves.fastest(collective, size, curves.wires(s.cluster, ranks, per)))
        for size, ranks in sizes
    )


def curves_of(s: Site) -> tuple[Curve, ...]:
    """Curves of this design's own groups: what each axis runs, and an all-reduce of the
    data-parallel group for every plan."""
    cluster = s.cluster
    plan = s.plan
    could = catalogue.fabric(cluster.scale_out).in_network_reduction
    many = min(cluster.devices, cluster.scale_up_domain * 32)
    groups: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
        ("tp", plan["tp"], inside(s.chosen, "tp"), ("all_gather", "all_reduce")),
        ("ep", plan["ep"], inside(s.chosen, "ep"), ("all_to_all",)),
        (
            "dp",
            plan["dp"] * plan["cp"],
            inside(s.chosen, "dp"),
            ("all_reduce", "reduce_scatter", "all_gather"),
        ),
        (
            "32 domains",
            many,
            min(cluster.scale_up_domain, many),
            ("all_reduce", "all_gather", "all_to_all"),
        ),
    )
    return tuple(
        curves.curve(collective, curves.wires(cluster, n, per), name, could_reduce=could)
        for name, n, per, collectives in groups
        for collective in collectives
        if n > 1
    )


class CurveError(TypedDict):
    """How far the curves of a tier were off on published series of the nearest fabric."""

    tier: str
    fabric: str
    judged_on: str | None  # None: nobody has published a curve of such a fabric
    large_error: float | None  # median of the time, from 64 MiB on
    small_error: float | None  # below


def trust(cluster: Cluster) -> tuple[CurveError, CurveError]:
    """How far the curves were off on published series of the fabrics nearest to the design's, each
    series left out of its fit (xGMI, RoCE and TCPXO are in no fit at all): scale-up, scale-out
    (catalogue/collective_calibration.json)."""
    up = catalogue.fabric(cluster.scale_up)
    out = catalogue.fabric(cluster.scale_out)
    wide = cluster.scale_up_domain > cluster.devices_per_node
    judged_on = out.judged_on_racks if wide and out.judged_on_racks else out.judged_on
    return (
        _curve_error("scale-up", up.id, up.judged_on),
        _curve_error("scale-out", out.id, judged_on),
    )


def _curve_error(tier: str, fabric: str, judged_on: str) -> CurveError:
    errors = {row["fabric"]: row for row in calibration()["errors"]}
    row = errors.get(judged_on, {})
    return CurveError(
        tier=tier,
        fabric=fabric,
        judged_on=judged_on or None,
        large_error=row.get("large_error"),
        small_error=row.get("small_error"),
    )


class MeasuredCurve(TypedDict):
    """A published curve of a collective."""

    series: str
    fabric: str
    collective: str
    devices: int
    domains: int
    message_bytes: tuple[float, ...]
    busbw_bytes_per_s: tuple[float, ...]
    source: str


def measured(cluster: Cluster, most: int = 6) -> tuple[MeasuredCurve, ...]:
    """Published curves of the same accelerator, to lay over the model's."""
    rows = [
        x
        for x in catalogue.collective_series().values()
        if x.accelerator == cluster.accelerator.id
        and len(x.message_bytes) > 1
        and "nvshmem" not in x.collective
    ]
    return tuple(
        MeasuredCurve(
            series=x.id,
            fabric=x.fabric,
            collective=x.collective.replace("alltoall", "all_to_all"),
            devices=x.devices,
            domains=x.nvlink_domains,
            message_bytes=x.message_bytes,
            busbw_bytes_per_s=x.busbw_bytes_per_s,
            source=x.source,
        )
        for x in rows[:most]
    )


def bursts(s: Site, rows: Sequence[Axis]) -> Burst:
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
    fan_in = {a.axis: senders(s.case, a) for a in leaving}
    out = [
        _burst(a.axis, a.calls, a.bytes * outside_share(s.case, a), peak, s.model_step_s)
        for a in leaving
    ]
    mean = sum(row["bytes_per_step"] for row in out) / s.model_step_s
    largest = max(
        out, key=lambda row: row["bytes"], default=_burst("", 1, 0.0, peak, s.model_step_s)
    )
    most = max(fan_in.values(), default=0)
    return Burst(
        mean_bytes_per_s=mean,
        peak_bytes_per_s=peak,
        factor=peak / mean if mean > 0 else float("nan"),
        busy_share=min(1.0, mean / peak),
        largest=largest["axis"],
        largest_bytes=largest["bytes"],
        largest_s=largest["burst_s"],
        period_s=largest["period_s"],
        fan_in=fan_in,
        incast=most,
        queue_bytes=max(most - 1, 0.0) * rate * s.cluster.scale_out_latency_s,
        rows=tuple(out),
    )


def _burst(axis: str, calls: int, sent: float, peak: float, step_s: float) -> BurstRow:
    """So many calls that send so many bytes in a step."""
    return BurstRow(
        axis=axis,
        bytes=sent / calls,
        burst_s=sent / calls / peak,
        bursts_per_step=calls,
        period_s=step_s / calls,
        bytes_per_step=sent,
    )


def senders(case: Cases, a: Axis) -> int:
    """Ranks that send to one card at a time."""
    if a.axis != "ep":
        return 1
    if float(case.software.dedup_dispatch) > 0:
        return a.ranks // a.per_domain - 1
    return a.ranks - a.per_domain


def outside_share(case: Cases, a: Axis) -> float:
    """Share of what a device sends on an axis that leaves its scale-up domain through its own card.

    Rings: the pair at the edge of the domain leaves, and every member's card carries its share of
    the rings, so 1 / members inside. An all-to-all: `expert_share_out`. Pipelines: all.
    """
    if a.ranks <= a.per_domain:
        return 0.0
    if a.axis == "ep":
        return expert_share_out(case)
    return 1.0 if a.axis == "pp" else 1.0 / a.per_domain
