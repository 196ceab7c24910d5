"""Other networks for the same design: their counts and price, and what the step model makes of
them."""

from collections.abc import Iterator
from dataclasses import replace

from scantling.base.records import Known, Record, record
from scantling.catalogue.packet_switches import leaf_ports
from scantling.design.cluster import Cluster
from scantling.physics.wires import Link

from ..constants import CONSTANTS
from ..fabric.build import Wiring, wiring
from ..fabric.dragonflies import dragonfly, dragonfly_plus, dragonfly_plus_reach, dragonfly_reach
from ..fabric.prices import usd
from ..fabric.topology import Topology, copies
from ..job_site import HORIZON_DAYS, Site

RATIOS = (2.0, 7.0)  # of oversubscribed pods that are tried: 7 as at Meta (arXiv 2407.21783)
ALL = 1e9  # devices of a pod that holds all


@record
class Alternative(Record):
    """One other network for the same design: counts, price, what the step model makes of its
    bandwidth, and the price of that over the run."""

    kind: str
    what: str
    topology: Topology
    usd: Known
    usd_per_device: Known
    step_s: float
    step_change: float  # against the design's own network
    run_usd: Known  # network written off over the run, and devices for the extra time
    chosen: bool


@record
class Candidate:
    """A network within reach, and the step model's view of it."""

    what: str
    topology: Topology
    pod_devices: float = ALL
    oversubscription: float = 1.0
    rail_only: bool = False

    def link(self, link: Link) -> Link:
        """The links of a case on this network."""
        seen = replace(link, pod_devices=self.pod_devices, oversubscription=self.oversubscription)
        return replace(seen, rail_only=1.0) if self.rail_only else seen

    @property
    def counts(self) -> tuple[str, int, int]:
        """By which a network is known again."""
        return self.topology.kind, self.topology.switches, self.topology.all_cables


def candidates(cluster: Cluster) -> list[Candidate]:
    """Every network within reach."""
    w = wiring(cluster)
    reachable = [*_trees(w), *_oversubscribed(w), *_groups(w)]
    if cluster.sites > 1:
        return [replace(c, topology=copies(c.topology, cluster.sites)) for c in reachable]
    return reachable


def _reach(w: Wiring) -> int:
    """Cards of the largest tree of three tiers."""
    return w.radix**3 // 4


def _trees(w: Wiring) -> Iterator[Candidate]:
    """Networks as fast everywhere."""
    n = w.cards
    reach = _reach(w)
    if n <= reach:
        on_rails = ", rails on their own leaves" if w.rails > 1 else ""
        yield Candidate(what=f"non-blocking fat tree{on_rails}", topology=w.tree())
    if w.rails > 1 and 1 < w.cluster.nodes <= reach:
        yield Candidate(
            what="one network per rail, none between", topology=w.rail_only(), rail_only=True
        )
    if w.radix < n <= 8 * reach:
        yield Candidate(what="cards split over two planes", topology=w.two_planes())


def _oversubscribed(w: Wiring) -> Iterator[Candidate]:
    """Leaves or pods with less bandwidth above than below."""
    cluster = w.cluster
    k = w.radix
    whole = w.pod_devices == cluster.devices
    pod = int(k * k // 4 * w.per_card) if whole else w.pod_devices
    for r in sorted({*RATIOS, cluster.oversubscription} - {1.0}):
        # two tiers hold it: the leaves are what can be oversubscribed
        if whole and k < w.cards <= k * k // 2:
            yield Candidate(
                what=f"leaves {r:g} : 1, two tiers",
                topology=w.tree(r),
                pod_devices=leaf_devices(w, r),
                oversubscription=r,
            )
        elif 0 < pod < cluster.devices and pod <= _reach(w) * w.per_card:
            yield Candidate(
                what=f"pods of {pod:,} devices, {r:g} : 1 above",
                topology=w.pods(round(pod / w.per_card), r),
                pod_devices=pod,
                oversubscription=r,
            )


def _groups(w: Wiring) -> Iterator[Candidate]:
    """Dragonflies, where groups share links."""
    for build, reach in (
        (dragonfly_plus, dragonfly_plus_reach(w.radix)),
        (dragonfly, dragonfly_reach(w.radix)),
    ):
        if w.cards > reach:
            continue
        t = w.groups(build)
        if t.oversubscription > 1:
            yield Candidate(
                what=f"{t.kind}, groups of {t.pod_endpoints:,} cards",
                topology=t,
                pod_devices=t.pod_endpoints * w.per_card,
                oversubscription=t.oversubscription,
            )


def leaf_devices(w: Wiring, r: float) -> int:
    """Devices under one leaf (of each rail) that is oversubscribed r : 1, as `trees.clos` builds
    it."""
    devices = round(leaf_ports(w.radix, r)[0] * w.rails * w.per_card)
    return min(w.cluster.devices, max(w.cluster.devices_per_node, devices))


def alternatives(s: Site, built_as: Topology) -> tuple[Alternative, ...]:
    """The design's own network first, then the others, the cheapest over the run first.

    step_s is the kit's step model with the fabric's pod and ratio in place of the design's.
    run_usd = network price x run / 4 years + extra device-time x price; without a price the
    network's own counts.
    """
    cluster = s.cluster
    wide = cluster.devices > cluster.scale_up_domain
    others = candidates(cluster) if wide and built_as.kind != "torus" else []
    mine = Candidate(what="the design's own", topology=built_as)
    same = next((c for c in others if c.counts == mine.counts), mine)
    rows = [_alternative(s, same, s.model_step_s, chosen=True)]
    for c in others:
        if c is not same:
            step_s = s.model_step_s * s.link_ratio(c.link(s.case.link))
            rows.append(_alternative(s, c, step_s, chosen=False))
    return tuple(sorted(rows, key=lambda a: (not a.chosen, a.run_usd or 0.0)))


def _alternative(s: Site, c: Candidate, step_s: float, *, chosen: bool) -> Alternative:
    """A network with its price; nothing is to buy where one domain holds the job."""
    cluster = s.cluster
    days = s.a.days or HORIZON_DAYS
    hourly = s.cost.usd_per_device_hour if s.cost else None
    per_day = hourly * cluster.devices * 24 if hourly else 0.0
    written_off = days / (CONSTANTS.network_life_years * 365.25)
    change = step_s / s.model_step_s - 1
    price = usd(c.topology) if cluster.devices > cluster.scale_up_domain else None
    return Alternative(
        kind=c.topology.kind,
        what=c.what,
        topology=c.topology,
        usd=price,
        usd_per_device=price and price / cluster.devices,
        step_s=step_s,
        step_change=change,
        run_usd=price and price * written_off + per_day * days * change,
        chosen=chosen,
    )
