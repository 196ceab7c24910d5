"""Settings of a fabric that follow from a design's traffic: routing, quality of service, reduction
in the network."""

from collections.abc import Iterator, Sequence

import numpy as np
from scantling import catalogue
from scantling.base import show
from scantling.base.records import Record, record
from scantling.base.stats import poisson_beyond
from scantling.catalogue.hardware import Fabric
from scantling.catalogue.packet_switches import Switch
from scantling.physics import collectives as curves

from ..constants import CONSTANTS
from ..fabric.topology import Topology
from ..job_site import Site
from .traffic import Axis, Burst, bursts

# more than 4 or 8 has not paid in practice (NVIDIA/cluster-readiness-engine, change 287); NCCL
# allows 128
QUEUE_PAIRS = (1, 2, 4, 8, 16)
UNDER_ONE_LEAF = ("leaf unit", "node", "scale-up domain")  # tiers


@record
class Setting(Record):
    """One setting of the fabric that follows from this design's numbers: what, the choice, why, and
    the figure it rests on."""

    what: str
    choice: str
    why: str
    figure: float
    unit: str


def fullest_uplink(flows_per_uplink: float, uplinks: int) -> float:
    """Fullest of so many uplinks over the mean when flows are hashed at random: smallest m with
    uplinks x P(Poisson > m) < 1/2, over the mean.

    What static ECMP does to few large flows; packet spraying and adaptive routing have none of it.
    """
    mean = flows_per_uplink
    beyond = poisson_beyond(int(mean + 12 * np.sqrt(mean) + 11), mean)
    return float(np.argmax(uplinks * beyond < 0.5)) / mean


def settings(
    s: Site, t: Topology, switch: Switch | None, rows: Sequence[Axis]
) -> tuple[Setting, ...]:
    """Routing, quality of service and reduction that this fabric and this traffic ask for."""
    fabric = catalogue.fabric(s.cluster.scale_out)
    leaving = [a for a in rows if a.tier == "scale-out"]
    if not leaving:
        return (_torus_routing(t) if s.torus else _unused(),)
    by_axis = {a.axis: a for a in leaving}
    pp = by_axis.get("pp")
    dp = by_axis.get("dp")
    out = [*_routing(s, t, fabric, leaving), *_congestion(s, fabric, bursts(s, rows), len(leaving))]
    if pp and dp:
        out.append(_classes(s, pp, dp))
    reduces = s.cluster.in_network_reduction or fabric.in_network_reduction
    if dp and (reduces or (switch is not None and switch.reduction == "sharp")):
        out += _reduction(s, dp)
    wire = sum(a.time_s for a in leaving)
    share = wire / s.model_step_s
    if share < CONSTANTS.small_share:
        out.append(
            Setting(
                what="priority",
                choice="low: leave defaults",
                why=f"all scale-out traffic takes {share:.2%} of the step",
                figure=wire,
                unit="s a step",
            )
        )
    return tuple(out)


def _torus_routing(t: Topology) -> Setting:
    return Setting(
        what="routing",
        choice="dimension order on the torus, wrap-around on",
        why=(
            "the job stands in one slice; the switches wire each slice's axes to rings of their own"
        ),
        figure=t.hops,
        unit="hops, farthest pair",
    )


def _unused() -> Setting:
    return Setting(
        what="scale-out",
        choice="not used by this plan",
        why="no group leaves its scale-up domain",
        figure=0.0,
        unit="bytes a step",
    )


def _routing(s: Site, t: Topology, fabric: Fabric, leaving: Sequence[Axis]) -> Iterator[Setting]:
    """How flows find their uplinks, and over how many queue pairs they are spread."""
    uplinks = t.ports.get("leaf", {}).get("up", 0) if t.tiers > 1 else 0
    crossing = [a for a in leaving if a.widest not in UNDER_ONE_LEAF]
    if uplinks and not crossing:
        yield Setting(
            what="routing",
            choice="static is enough",
            why="every group that leaves a domain stays under one leaf of its rail",
            figure=1.0,
            unit="switches passed",
        )
    elif uplinks and fabric.technology in ("infiniband", "efa", "ethernet"):
        yield _spraying(fabric, crossing, uplinks)
        if fabric.ethernet:
            yield _queue_pairs(crossing, uplinks)
    elif not uplinks and crossing and t.kind.startswith("dragonfly") and t.oversubscription > 1:
        # a group's links share out over so many others
        others = -(-t.endpoints // t.pod_endpoints) - 1
        yield Setting(
            what="routing",
            choice="adaptive, over a third group where the direct links are full",
            why=(
                "by direct links alone two groups that talk only to each other have "
                f"1/{others} of their cards' rate"
            ),
            figure=others,
            unit="other groups that share a group's links",
        )


def _spraying(fabric: Fabric, crossing: Sequence[Axis], uplinks: int) -> Setting:
    """How packets of a few large flows are kept from colliding above the leaves."""
    bad = fullest_uplink(1.0, uplinks)
    axes = ", ".join(a.axis for a in crossing)
    hashed = (
        f"one flow a card hashed over {uplinks} uplinks loads the fullest {bad:.1f} times; the "
        f"{axes} traffic above the leaf takes {sum(a.time_s for a in crossing):.3f} s of a step"
    )
    if fabric.technology == "efa":
        return Setting(
            what="routing",
            choice="none to set: the cards spray packets (SRD)",
            why=f"{hashed} if they did not",
            figure=bad,
            unit="fullest uplink over mean if hashed",
        )
    choice = "adaptive routing on its own service level"
    if fabric.technology == "ethernet":
        choice = "packet spraying or adaptive routing where switch and card reorder"
    return Setting(
        what="routing",
        choice=choice,
        why=hashed,
        figure=bad,
        unit="fullest uplink over mean without it",
    )


def _queue_pairs(crossing: Sequence[Axis], uplinks: int) -> Setting:
    """Queue pairs a connection that even the flows out where only hashing is there."""
    limit = CONSTANTS.load_limit
    enough = (q for q in QUEUE_PAIRS if fullest_uplink(q, uplinks) <= limit)
    need = next(enough, QUEUE_PAIRS[-1])
    left = fullest_uplink(need, uplinks)
    lost = sum(a.time_s for a in crossing) * (fullest_uplink(1.0, uplinks) - 1)
    full = ", still too full: hashing alone is not enough here" if left > limit else ""
    return Setting(
        what="queue pairs a connection",
        choice=f"{need} where only hashing is there, hashed on the destination queue pair",
        why=(
            f"{need} flows a card bring the fullest uplink to {left:.2f} of the mean{full}; one "
            f"costs up to {lost:.3f} s of wire time a step"
        ),
        figure=need,
        unit="queue pairs",
    )


def _congestion(s: Site, fabric: Fabric, load: Burst, axes: int) -> Iterator[Setting]:
    """What holds senders back where several meet at a card."""
    if load.incast > 1:
        yield _fan_in(s, fabric, load)
    elif fabric.ethernet:
        senders = "no card has two senders of this job"
        if axes > 1:
            senders = f"a card has {axes} senders at most, one an axis, when all axes send at once"
        yield Setting(
            what="congestion control",
            choice="flow control alone; ECN-driven slowing off or lax",
            why=f"rings and pipelines send one to one: {senders}",
            figure=load.incast,
            unit="senders a card",
        )


def _fan_in(s: Site, fabric: Fabric, load: Burst) -> Setting:
    """Many senders to one card in the experts' exchange."""
    choice = "left to the cards"
    if fabric.technology == "infiniband":
        choice = "credits hold it at the card"
    elif fabric.technology == "ethernet":
        choice = "receiver-given credits in the dispatcher, else ECN thresholds above it"
    return Setting(
        what="fan-in",
        choice=choice,
        why=(
            f"{load.incast:.0f} senders meet at a card in the experts' exchange; "
            f"{show.size(load.queue_bytes)} pile up in one step of "
            f"{s.cluster.scale_out_latency_s / 1e-6:.0f} us"
        ),
        figure=load.queue_bytes,
        unit="bytes at one port",
    )


def pays(s: Site, seconds: float) -> bool:
    """Whether saving so many seconds of a step is worth a setting."""
    return seconds / s.model_step_s >= CONSTANTS.small_share / 10


def _classes(s: Site, pp: Axis, dp: Axis) -> Setting:
    """Whether pipeline sends should pass gradients on the cards."""
    share = min(1.0, dp.time_s / s.model_step_s)
    waits = pp.time_s * share
    choice = "one class for training traffic; another for storage and control"
    if pays(s, waits):
        choice = "pipeline sends above gradients"
    return Setting(
        what="classes",
        choice=choice,
        why=(
            f"gradients fill the cards {share:.0%} of the step; a send of "
            f"{show.size(pp.message_bytes)} behind them waits as long again, {waits / 1e-3:.1f} "
            "ms a step"
        ),
        figure=waits,
        unit="s a step",
    )


def _reduction(s: Site, dp: Axis) -> Iterator[Setting]:
    """What reduction in the switches would save of the data-parallel traffic."""
    size = show.size(dp.message_bytes)
    sharding = s.plan["sharding"]
    if sharding.startswith("zero"):
        yield Setting(
            what="reduction in the network",
            choice="little to gain",
            why=(
                f"{sharding} sends reduce-scatters and all-gathers of {size}, no all-reduce; "
                "switches save an all-reduce's second half"
            ),
            figure=0.0,
            unit="s a step",
        )
        return
    wires = curves.wires(s.cluster, dp.ranks, dp.per_domain)
    by = curves.times("all_reduce", dp.message_bytes, curves.reducing(wires))
    ring = float(by["ring"])
    sharp = float(by["sharp"])
    if np.isfinite(sharp):
        saved = max(0.0, ring - sharp) * dp.calls * (dp.exposed_s / max(dp.time_s, 1e-12))
        yield Setting(
            what="reduction in the network",
            choice="on" if pays(s, saved) else "not worth a licence here",
            why=(
                f"an all-reduce of {size} over {dp.ranks:,} ranks takes {sharp:.3f} s in the "
                f"switches against {ring:.3f} s"
            ),
            figure=saved,
            unit="s a step, exposed",
        )
