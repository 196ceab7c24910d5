"""Which network a design gets, from which switches, at what price, and what the others would be:
counts, cost, step time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import ceil, isnan

from ... import catalogue
from ...base.records import Record
from ...base.units import DAY_S
from ...catalogue import HERE, read
from ..site import is_torus
from . import topology as shapes
from .topology import Topology

LIFE_YEARS = 4.0  # over which a network is written off
# of an H100 cluster's all-in price: 8 to 13 % (catalogue prices.csv, "h100 cluster all-in")
NETWORK_SHARE = 0.105
RAIL_ONLY_ALL_TO_ALL = 0.112  # longer, the upper end of arXiv 2307.12169's 8.2 to 11.2 %
RATIOS = (2.0, 7.0)  # of oversubscribed pods that are tried: 7 as at Meta (arXiv 2407.21783)


@dataclass(frozen=True)
class Switch(Record):
    """One switch of catalogue/switches.csv; the rate of a port in bytes/s, None where light passes
    whatever its rate."""

    id: str
    name: str
    kind: str
    fabrics: tuple[str, ...]
    ports: int
    port_bytes_per_s: float
    latency_s: float
    per_domain: int
    reduction: str
    source: str
    verified: str


@cache
def switches() -> dict[str, Switch]:
    """All switches by id."""
    n = lambda text, factor: float(text) * factor if text else float("nan")  # noqa: E731
    return {
        r["id"]: Switch(
            r["id"],
            r["name"],
            r["kind"],
            tuple(r["fabrics"].split()),
            int(r["ports"]),
            n(r["port_gbits_per_s"], 1e9 / 8),
            n(r["latency_ns"], 1e-9),
            int(r["per_domain"] or 0),
            r["reduction"],
            r["source"],
            r["verified"],
        )
        for r in read(HERE / "switches.csv")
    }


@cache
def published() -> tuple[dict, ...]:
    """Counts of published networks (catalogue/topologies.csv); None where a source prints none."""
    numbers = (
        "devices",
        "endpoints",
        "per_node",
        "radix",
        "planes",
        "oversubscription",
        "leaf",
        "spine",
        "core",
        "switches",
        "leaf_spine_cables",
        "spine_core_cables",
    )
    return tuple(
        {k: (int(float(v)) if v else None) if k in numbers else v for k, v in row.items()}
        for row in read(HERE / "topologies.csv")
    )


def switch_for(fabric_id: str, kind: str = "packet") -> Switch | None:
    """The switch that carries a fabric; None where the catalogue has none."""
    return next((s for s in switches().values() if fabric_id in s.fabrics and s.kind == kind), None)


def cards(cluster) -> tuple[int, float]:
    """(scale-out cards of the cluster, bytes/s of one)."""
    return (
        cluster.nodes * cluster.nics_per_node,
        cluster.scale_out_bytes_per_s * cluster.devices_per_node / cluster.nics_per_node,
    )


def radix_of(switch: Switch, rate: float) -> int:
    """Ports at the rate of a card: a port twice as fast splits in two."""
    if isnan(switch.port_bytes_per_s):
        return switch.ports
    return switch.ports * (2 if rate <= switch.port_bytes_per_s / 2 * 1.01 else 1)


@dataclass(frozen=True)
class Prices(Record):
    """Dollars of network parts, per port and per cable with both its ends, at 400 Gb/s; other rates
    in proportion."""

    usd_per_port_400g: float
    usd_per_cable_400g: float
    date: str
    source: str
    basis: str


@cache
def prices() -> Prices:
    """The switch's dated price over its ports; the cable's from the all-in price of a two-tier
    cluster.

    cable = (8 to 13 %, middle 10.5 %, of the all-in price per device less the switches) / 2 cables
    per device. Check: a third tier then
    adds 2 switch ports and one cable a device, 2.9 k$, where the same source prints 2.4 k$ (51.6
    against 49.2 k$).
    """
    one = {p.item: p for p in catalogue.prices(category="capex")}
    switch, whole, sheet = (
        one["ib-ndr-switch-64p"],
        one["h100 cluster all-in"],
        one["h100 8-GPU node"].source,
    )
    port = switch.value / 64
    cable = (NETWORK_SHARE * whole.value - 3 * port) / 2
    return Prices(
        port,
        cable,
        switch.date,
        sheet,
        (
            "a two-tier cluster has 3 switch ports and 2 cables a device; its network is 8 "
            "to 13 % of the all-in price"
        ),
    )


def usd(t: Topology) -> float | None:
    """Price of a network's switches, cables and transceivers; None for a torus, whose parts nobody
    sells alone."""
    if t.kind == "torus":
        return None
    scale = t.port_bytes_per_s / 50e9
    return (
        t.switches * t.radix * prices().usd_per_port_400g
        + t.all_cables * prices().usd_per_cable_400g
    ) * scale


def one_site(cluster):
    """The cluster of one of the sites; the cluster itself where there is one."""
    n = max(1, int(cluster.sites))
    devices = ceil(cluster.devices / n)
    return (
        cluster
        if n == 1
        else replace(
            cluster,
            devices=devices,
            sites=1,
            pod_devices=min(cluster.pod_devices or devices, devices),
        )
    )


def built(cluster) -> tuple[Topology, str, bool]:
    """(topology of the design, the rule that chose it, whether the provider owns it); with several
    sites one such network in each."""
    sites = max(1, int(cluster.sites))
    if is_torus(cluster):
        return _torus(cluster)
    t, why, provided = _built(one_site(cluster))
    return (
        (t, why, provided)
        if sites == 1
        else (shapes.copies(t, sites), f"{why}; one in each of {sites} sites", provided)
    )


def _built(cluster) -> tuple[Topology, str, bool]:
    n, rate = cards(cluster)
    switch = switch_for(cluster.scale_out) or switches()["sn5600"]
    k, rails = radix_of(switch, rate), cluster.nics_per_node
    provided = not catalogue.fabric(cluster.scale_out).topology_open
    own = " (of the provider: an equivalent is shown)" if provided else ""
    pod = (
        ceil(
            min(cluster.pod_devices or cluster.devices, cluster.devices) / cluster.devices_per_node
        )
        * cluster.nics_per_node
    )
    if cluster.scale_out.startswith("slingshot") and k < n <= shapes.dragonfly_reach(k):
        return shapes.dragonfly(n, k, rate), "Slingshot is built as a dragonfly", False
    r = cluster.oversubscription
    if pod < n:
        above = f"{r:g} : 1 above" if r > 1 else "non-blocking above"
        return (
            shapes.pods(n, pod, k, rate, r, rails=rails),
            f"the design says pods of {cluster.pod_devices:,} devices, {above}" + own,
            provided,
        )
    try:
        t = shapes.clos(
            n,
            k,
            rate,
            rails=rails,
            oversubscription=r,
            kind="rail-optimised" if rails > 1 else "fat-tree",
        )
        if cluster.devices <= cluster.scale_up_domain:
            return (
                t,
                (
                    "one scale-up domain holds every device; this is what its cards would "
                    "need beyond it"
                ),
                provided,
            )
        why = (
            f"non-blocking, as few tiers as {k} ports allow: {t.tiers}"
            if r == 1
            else f"the design says {r:g} : 1; no pods are named, so at the top of {t.tiers} tiers"
        )
        return (
            t,
            why
            + (", every card of a node on its own rail" if rails > 1 and t.tiers > 1 else "")
            + own,
            provided,
        )
    except ValueError:
        if n <= (k // 2) ** 2 * ((k // 2) ** 2 + 1):
            return (
                shapes.dragonfly_plus(n, k, rate),
                f"beyond three tiers of {k} ports: groups joined directly" + own,
                provided,
            )
        return (
            shapes.pods(n, k**3 // 4, k, rate, r, rails=rails),
            (
                f"beyond three tiers and a dragonfly+ of {k} ports: the largest three-tier "
                f"trees joined by a fourth tier"
            )
            + own,
            provided,
        )


def _torus(cluster) -> tuple[Topology, str, bool]:
    fabric = catalogue.fabric(cluster.scale_up)
    flat = "2D" in fabric.name
    chips = min(cluster.scale_up_domain, cluster.devices)
    t = shapes.torus(shapes.near_cube(chips, 2 if flat else 3), fabric.p2p_bytes_per_s)
    slices = ceil(cluster.devices / chips)
    text = f"{fabric.name}: the most compact torus of {chips:,} chips" + (
        f", {slices} such slices over {cluster.scale_out}" if slices > 1 else ""
    )
    return t, text, True


@dataclass(frozen=True)
class Alternative(Record):
    """One other network for the same design: counts, price, what the step model makes of its
    bandwidth, and the price of that over the run."""

    kind: str
    what: str
    topology: Topology
    usd: float | None
    usd_per_device: float | None
    step_s: float
    step_change: float  # against the design's own network
    run_usd: float | None  # network written off over the run, and devices for the extra time
    chosen: bool


def candidates(assessment) -> list[tuple[str, Topology, dict]]:
    """(what, topology, the step model's view of it: pod_devices and oversubscription) of every
    network within reach."""
    cluster, sites = (
        one_site(assessment.resolved.cluster),
        max(1, int(assessment.resolved.cluster.sites)),
    )
    n, rate = cards(cluster)
    switch = switch_for(cluster.scale_out) or switches()["sn5600"]
    k, rails, per = (
        radix_of(switch, rate),
        cluster.nics_per_node,
        cluster.devices / max(cards(cluster)[0], 1),
    )
    free = {"pod_devices": 1e9, "oversubscription": 1.0}
    out = []

    def add(what, build, view=free):
        try:
            out.append((what, build(), view))
        except ValueError:
            pass

    add(
        "non-blocking fat tree, rails on their own leaves"
        if rails > 1
        else "non-blocking fat tree",
        lambda: shapes.clos(
            n, k, rate, rails=rails, kind="rail-optimised" if rails > 1 else "fat-tree"
        ),
    )
    if rails > 1 and cluster.nodes > 1:
        add(
            "one network per rail, none between",
            lambda: shapes.rail_only(cluster.nodes, rails, k, rate),
        )
    if n > k:
        add(
            "cards split over two planes",
            lambda: shapes.clos(n, 2 * k, rate / 2, planes=2, rails=rails, kind="fat-tree"),
        )
    stated = min(cluster.pod_devices or cluster.devices, cluster.devices)
    pod = stated if stated < cluster.devices else int(k * k // 4 * per)
    ratios = sorted({*RATIOS, cluster.oversubscription} - {1.0})
    if (
        stated == cluster.devices and k < n <= k * k // 2
    ):  # two tiers hold it: the leaves are what can be oversubscribed
        for r in ratios:
            view = {"pod_devices": float(leaf_devices(cluster, k, rails, r)), "oversubscription": r}
            add(
                f"leaves {r:g} : 1, two tiers",
                lambda r=r: shapes.clos(
                    n,
                    k,
                    rate,
                    rails=rails,
                    oversubscription=r,
                    kind="rail-optimised" if rails > 1 else "fat-tree",
                ),
                view,
            )
    elif pod < cluster.devices:
        inside = max(1, round(pod / per))
        for r in ratios:
            add(
                f"pods of {pod:,} devices, {r:g} : 1 above",
                lambda r=r: shapes.pods(n, inside, k, rate, r, rails=rails),
                {"pod_devices": float(pod), "oversubscription": r},
            )
    for build in (shapes.dragonfly_plus, shapes.dragonfly):
        try:
            t = build(n, k, rate)
        except ValueError:
            continue
        if t.oversubscription > 1:
            out.append(
                (
                    f"{t.kind}, groups of {t.pod_endpoints:,} cards",
                    t,
                    {
                        "pod_devices": float(max(1, t.pod_endpoints * per)),
                        "oversubscription": t.oversubscription,
                    },
                )
            )
    return [(what, shapes.copies(t, sites), view) for what, t, view in out]


def leaf_devices(cluster, k: int, rails: int, r: float) -> int:
    """Devices under one leaf (of each rail) that is oversubscribed r : 1, as `topology.clos` builds
    it."""
    per = cluster.devices / max(cards(cluster)[0], 1)
    return min(
        cluster.devices,
        max(cluster.devices_per_node, round(shapes.leaf_ports(k, r)[0] * rails * per)),
    )


def alternatives(assessment, own: Topology) -> tuple[Alternative, ...]:
    """The design's own network first, then the others, the cheapest over the run first.

    step_s is the kit's step model with the fabric's pod and ratio in place of the design's; a
    network of rails alone adds what its
    all-to-all loses. run_usd = network price x run / 4 years + extra device-time x price; without a
    price the network's own counts.
    """
    from ...physics.step import step_time

    chosen, cluster = assessment.chosen, assessment.resolved.cluster
    base = float(chosen.step.total)
    days = assessment.days or 30.0
    money = assessment.cost
    per_day = (
        float(money.usd_per_device_hour) * cluster.devices * DAY_S / 3600
        if money is not None and money.usd_per_device_hour
        else None
    )
    own_view = {
        "pod_devices": chosen.case.link.pod_devices,
        "oversubscription": chosen.case.link.oversubscription,
    }
    rows = (
        []
        if own.kind == "torus" or cluster.devices <= cluster.scale_up_domain
        else candidates(assessment)
    )
    same = next(
        (
            i
            for i, (_, t, view) in enumerate(rows)
            if t.kind == own.kind and t.switches == own.switches and t.all_cables == own.all_cables
        ),
        None,
    )
    if same is None:
        rows.insert(0, ("the design's own", own, own_view))
        same = 0
    out = []
    for i, (what, t, view) in enumerate(rows):
        seconds = base
        if i != same:
            case = replace(chosen.case, link=replace(chosen.case.link, **view))
            seconds = float(step_time(case).total)
            if (
                t.kind == "rail-only"
                and cluster.scale_up_domain < chosen.plan["ep"] * chosen.plan["etp"]
            ):
                seconds += RAIL_ONLY_ALL_TO_ALL * (
                    float(chosen.step.ep) + float(chosen.step.axes["ep"].hidden_s)
                )
        price = (
            usd(t) if cluster.devices > cluster.scale_up_domain else None
        )  # nothing to buy where one domain holds the job
        change = seconds / base - 1
        run = None
        if price is not None:
            run = price * days / (LIFE_YEARS * 365.25) + (
                per_day * days * change if per_day else 0.0
            )
        out.append(
            Alternative(
                t.kind,
                what,
                t,
                price,
                None if price is None else price / cluster.devices,
                seconds,
                change,
                run,
                i == same,
            )
        )
    return tuple(
        sorted(out, key=lambda a: (not a.chosen, a.run_usd if a.run_usd is not None else 0.0))
    )


def is_ethernet(fabric_id: str) -> bool:
    """True where flows of a fabric share Ethernet links."""
    return catalogue.fabric(fabric_id).technology == "ethernet"
