"""The machine: network, scheduler, storage, topologies compared, stores sized."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from scantling import catalogue
from scantling.base.show import bytes_per_s, seconds, share, size, usd

from ..blocks import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Row,
    Section,
    Table,
    bullets,
    columns,
    line,
    rows,
    strong,
)
from ..phrases import LIBRARIES, fabric, in_unit, lead, nodes, sentence, storage, upfirst, whole
from ..view import View, carried

STORES = 2  # lines on storage
_RDMA = ("verbs", "srd")  # transports by which devices read each other's memory


def site(view: View) -> Section:
    """Network, scheduler and storage of the machine."""
    blocks: list[Block] = [
        Heading(text="Network"),
        Bullets(items=_network(view)),
        Heading(text="Scheduler"),
        Bullets(items=_scheduler(view)),
        Heading(text="Storage"),
        Bullets(items=_storage(view)),
    ]
    return Section(id="site", blocks=blocks)


# ---------------------------------------------------------------- network
def _network(view: View) -> list[Markup]:
    cluster, network = view.cluster, view.parts["network"]
    items = [_scale_up(view)]
    if cluster.nodes > 1:
        if cluster.scale_up_domain < cluster.devices:
            items.append(_scale_out(view))
        items.append(_topology(network))
    if not view.full:
        return [*items, _collectives(view)]
    if cluster.nodes > 1:
        if cluster.oversubscription > 1:
            ratio = strong(f"Oversubscription {cluster.oversubscription:g} : 1")
            pod = whole(cluster.pod_devices)
            items.append(line(ratio, f" above the pod of {pod} devices."))
        if network["bursts"].get("factor"):
            items.append(_bursts(network["bursts"]))
        for setting in network["settings"]:
            what = strong(f"{upfirst(setting['what'])}: {setting['choice']}")
            items.append(line(what, f". {sentence(setting['why'])}"))
        if cluster.in_network_reduction:
            text = f" available on {fabric(cluster.scale_out)}."
            items.append(line(strong("In-network reduction"), text))
    if cluster.sites > 1:
        text = ": the axis that crosses them is data parallel."
        items.append(line(strong(f"{cluster.sites} sites"), text))
    items.append(_collectives(view))
    collectives = view.parts["rollout"]["collectives"]
    if collectives.get("one_card_less"):
        items.append(_one_card_less(collectives))
    return items


def _scale_up(view: View) -> Markup:
    cluster = view.cluster
    rate = bytes_per_s(cluster.scale_up_bytes_per_s)
    text = f", domain of {cluster.scale_up_domain}, {rate} a device and direction"
    if cluster.nodes > 1 and cluster.scale_up_domain < cluster.devices:
        ratio = view.parts["network"]["scale_up"]["ratio_one_way"]
        text += f", {ratio:.3g} times what a device has outside it"
    axes = carried(view.facts, "scale-up")
    if axes:
        text += f": carries {axes}"
    return line(strong(fabric(cluster.scale_up)), f"{text}.")


def _scale_out(view: View) -> Markup:
    cluster = view.cluster
    text = f", {bytes_per_s(cluster.scale_out_bytes_per_s)} a device and direction"
    if cluster.nics_per_node:
        text += f", {cluster.nics_per_node} NICs a node, one rail each"
    axes = carried(view.facts, "scale-out")
    if axes:
        text += f": carries {axes}"
    return line(strong(fabric(cluster.scale_out)), f"{text}.")


def _topology(network: Mapping[str, Any]) -> Markup:
    topology = network["topology"]
    kind = upfirst(topology["kind"])
    if topology["tiers"] > 1:
        kind += f", {topology['tiers']} tiers"
    switch = f" of {network['switch']['name']}" if network.get("switch") else ""
    hops = f"{topology['hops']} hop{'s' if topology['hops'] != 1 else ''}"
    cost = f"; {usd(network['usd'])} in ports and cables" if network.get("usd") else ""
    return line(
        strong(kind),
        f"{switch}: {_switches(topology)}{whole(topology['all_cables'])} cables, "
        f"{whole(topology['transceivers'])} transceivers; bisection ",
        strong(bytes_per_s(topology["bisection_bytes_per_s"])),
        f", {hops} at most{cost}.\n",
        bullets([sentence(network["rule"])]),
    )


def _switches(topology: Mapping[str, Any]) -> str:
    """Packet switches by their tier, and circuit switches."""
    text = ""
    if topology.get("leaf"):
        tiers = [
            f"{whole(topology[tier])} {tier}"
            for tier in ("leaf", "spine", "core")
            if topology.get(tier)
        ]
        plural = "es" if topology["switches"] != 1 else ""
        text += f"{', '.join(tiers)} switch{plural}, "
    if topology.get("circuits"):
        text += f"{whole(topology['circuits'])} optical circuit switches, "
    return text


def _bursts(bursts: Mapping[str, Any]) -> Markup:
    peak, mean = bytes_per_s(bursts["peak_bytes_per_s"]), bytes_per_s(bursts["mean_bytes_per_s"])
    queue = "no incast"
    if bursts["incast"] > 1:
        queue = (
            f"up to {bursts['incast']:.3g} senders to one receiver, a queue of "
            f"{size(bursts['queue_bytes'])}"
        )
    return line(
        strong(f"Bursts of {peak} against a mean of {mean}"),
        f": {bursts['largest'].upper()} sends {size(bursts['largest_bytes'])} in "
        f"{seconds(bursts['largest_s'])}; {queue}.",
    )


def _collectives(view: View) -> Markup:
    cluster, part = view.cluster, view.parts["rollout"]
    library = LIBRARIES.get(cluster.accelerator.vendor, "the vendor's")
    text = " collectives"
    if cluster.nodes > 1 and catalogue.fabric(cluster.scale_out).transport in _RDMA:
        text += " over GPUDirect RDMA"
    if library in ("NCCL", "RCCL"):
        collectives = part["collectives"]
        init, lazy = collectives["init_s"], collectives["init_lazy_s"]
        lazily = f", lazily in {seconds(lazy)}" if lazy < init else ""
        text += (
            f"; watchdog at {seconds(part['timeout']['timeout_s'])}: ranks abort them, keep their "
            f"memory, rebuild in {seconds(init)}{lazily}; flight recorder of "
            f"{whole(collectives['recorder_calls'])} calls, ten steps"
        )
    return line(strong(library), f"{text}.")


def _one_card_less(collectives: Mapping[str, Any]) -> Markup:
    return line(
        strong("Resilient collectives"),
        " (two leaves a card, or R2CCL) spare "
        f"{collectives['stops_one_leaf_per_card']:.2g} stops; without a lost card a step is "
        f"{collectives['one_card_less']:.3g} times as long.",
    )


# ---------------------------------------------------------------- scheduler and storage
def _scheduler(view: View) -> list[Markup]:
    scheduler, cluster = view.parts["scheduler"], view.cluster
    items = [line(strong(scheduler["name"]), f": {scheduler['why'][0]}."), _gang(view)]
    if not view.full:
        return items
    requeue = scheduler["requeue"]
    in_place, again = share(requeue["goodput_in_place"]), share(requeue["goodput_requeued"])
    if cluster.nodes > 1 and in_place != again:
        text = (
            f": goodput {in_place} against {again}; state saved within "
            f"{seconds(requeue['signal_before_end_s'])} of a warning."
        )
        items.append(line(strong("Restart in place before requeue"), text))
    checks = strong(f"{len(scheduler['health_checks'])} health checks")
    text = (
        f" drain a node between jobs or steps; the job itself is {scheduler['preemption']['job']}."
    )
    items.append(line(checks, text))
    return items


def _gang(view: View) -> Markup:
    scheduler, cluster, spares = (
        view.parts["scheduler"],
        view.cluster,
        view.facts["spares_recommended"],
    )
    text = ", all or nothing"
    if spares:
        text += f", with {nodes(spares)} kept warm, {scheduler['spares']['where']}"
    if cluster.nodes > 1:
        text += f"; {scheduler['request']['topology']['why']}"
    return line(strong(f"One gang of {nodes(cluster.nodes)}"), f"{text}.")


def _storage(view: View) -> list[Markup]:
    cluster, a, e = view.cluster, view.facts, view.endurance
    items = []
    if cluster.storage:
        text = (
            f" takes {size(a['checkpoint_bytes'])} a checkpoint, durable in "
            f"{seconds(e.get('checkpoint_durable_s'))}"
        )
        if cluster.nvme_bytes:
            text += f"; node-local NVMe of {size(cluster.nvme_bytes)} takes the peer copy first"
        items.append(line(strong(storage(cluster.storage)), f"{text}."))
    stores = view.parts["stores"] or {}
    lines = stores.get("lines", ())[: None if view.full else STORES]
    return [*items, *(line(lead(text), ".") for text in lines)]


# ---------------------------------------------------------------- topologies
def fabrics(view: View) -> Section | None:
    """The same devices under other topologies."""
    network = view.parts["network"]
    if not network or len(network["alternatives"]) < 2:
        return None
    table = Table(
        columns=columns(
            "Topology",
            "Switches#",
            "Cables#",
            "Bisection#",
            "Hops#",
            "Ports and cables#",
            "A device#",
            "Step#",
        ),
        rows=[_alternative(row) for row in network["alternatives"]],
    )
    blocks: list[Block] = [Heading(text="Topologies compared"), table]
    prices = network.get("prices")
    if prices:
        port, cable = usd(prices["usd_per_port_400g"]), usd(prices["usd_per_cable_400g"])
        text = f"{port} a 400G port, {cable} a cable with its transceivers."
        blocks.append(Paragraph(text=f"Prices of {prices['date']}: {text}"))
    return Section(id="fabrics", blocks=blocks)


def _alternative(row: Mapping[str, Any]) -> Row:
    topology = row["topology"]
    return Row(
        css="here" if row["chosen"] else "",
        cells=(
            f"{upfirst(row['what'])}{' (this design)' if row['chosen'] else ''}",
            whole(topology["switches"]),
            whole(topology["all_cables"]),
            bytes_per_s(topology["bisection_bytes_per_s"]),
            str(topology["hops"]),
            usd(row["usd"]),
            usd(row["usd_per_device"]),
            seconds(row["step_s"]),
        ),
    )


# ---------------------------------------------------------------- stores
def stores(view: View) -> Section | None:
    """What each tier of storage has to hold and to take, and which stores do."""
    part = view.parts["stores"]
    if not part:
        return None
    needs = Table(
        columns=columns("Tier", "What", "Needed#", "Design has#", "Load#", "Because"),
        rows=rows(
            (
                strong(upfirst(need["tier"])),
                need["what"],
                in_unit(need["unit"], need["needed"]),
                in_unit(need["unit"], need["has"]),
                share(need["load"]),
                need["why"],
            )
            for need in part["needs"]
        ),
    )
    candidates = Table(
        columns=columns(
            "Store",
            "Tier",
            "To buy#",
            "Writes#",
            "Reads#",
            "Against the needs",
            "A month#",
            "Source",
        ),
        rows=rows(
            (
                strong(store["name"]),
                store["tier"],
                f"{whole(store['pieces'])} {store['piece']}" if store.get("pieces") else "",
                bytes_per_s(store["write_bytes_per_s"]),
                bytes_per_s(store["read_bytes_per_s"]),
                _against_needs(store),
                usd(store["usd_per_month"]),
                store["source"],
            )
            for store in part["candidates"]
        ),
    )
    heading = Heading(text="Storage sized")
    return Section(id="stores", blocks=[heading, needs, candidates])


def _against_needs(store: Mapping[str, Any]) -> str:
    if store["misses"]:
        return ", ".join(
            f"{miss['what']} {miss['short_by']:.3g}× short" for miss in store["misses"]
        )
    if store["meets"]:
        return "meets every need"
    return f"not published: {', '.join(store['unknown'])}"
