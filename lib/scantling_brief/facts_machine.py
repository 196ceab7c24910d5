"""What the words on a machine come to: chips, nodes, racks, instances, sites, spares, failures."""

import re
from collections.abc import Callable, Mapping
from math import ceil, prod
from typing import Any

from scantling import catalogue
from scantling.base.errors import plain
from scantling.base.records import Lines
from scantling.base.units import GB, HOUR_S
from scantling.catalogue.words import Axis
from scantling.endure.failures import rate_of_mtbf

from .decisive import NO_CHIP, near_chips
from .facts_money import read_bare_sum, read_price_of_instance, read_spot
from .facts_network import read_alternatives, read_network
from .line import refusal
from .machine import choose_accelerator, devices_of_node
from .notes import SECOND_CHIP, Either, Notes
from .readers import MOST_IN_A_NODE, Chip
from .topics import Topic

MOST_TOGETHER = 144  # devices of a node or a rack, of all that are announced


def read_machine(notes: Notes) -> None:
    """Chip, count and network."""
    facts = notes.facts
    if "hours_of" in facts and "accelerator" not in facts:
        notes.set("accelerator", facts["hours_of"], notes.words["hours_of"])
    _come_to(notes, {"of_them": _of_them, "of_each": _of_each})
    if "instance" in facts:
        _instance(notes, facts["instance"])
        read_price_of_instance(notes)
    else:
        _accelerator(notes)
    _come_to(notes, {"racks": _racks, "nodes": _nodes})
    _of_each_site(notes)
    _ranks(notes)
    _come_to(notes, {"added": _added, "added_nodes": _added_nodes})
    if "node_hours" in facts and (per_node := devices_of_node(notes)) is not None:
        facts["device_hours"] = facts["node_hours"] * per_node
        notes.words["device_hours"] = notes.words["node_hours"]
    of_sums = {"device_hours": _hours, "bare_sum": read_bare_sum, "host_gb_each": _host_memory}
    _come_to(notes, of_sums | {"apart_km": _round_trip})
    read_spot(notes)
    read_alternatives(notes)
    read_network(notes)
    _failures(notes)
    _come_to(notes, {"spares_of_each": _spares})


def _come_to(notes: Notes, readers: Mapping[str, Callable[[Notes, Any], None]]) -> None:
    """What facts come to, in this order, each by its reader."""
    for fact, read in readers.items():
        if fact in notes.facts:
            read(notes, notes.facts[fact])


def _spares(notes: Notes, each: float) -> None:
    """Spare nodes of so many; they are asked about where the nodes are not known."""
    words = notes.words["spares_of_each"]
    devices, per_node = notes.fields.get("cluster.devices"), devices_of_node(notes)
    if devices is None or per_node is None:
        notes.ask(words, "of how many nodes (reliability.spares)?", ("reliability.spares",))
        return
    nodes = devices // per_node
    notes.set("reliability.spares", ceil(each * nodes), words, f"of {nodes:,} nodes")


def _added(notes: Notes, more: int) -> None:
    """Devices that would be added, beside those that are there; alone they are asked about."""
    path = "cluster.devices"
    words = notes.words["added" if "added" in notes.facts else "added_nodes"]
    devices = notes.fields.get(path)
    if devices is None:
        notes.ask(words, f"how many are there in all ({path})?", (path,))
    else:
        notes.either.append(Either(path, devices + more, words))


def _added_nodes(notes: Notes, more: int) -> None:
    """Nodes that would be added, as devices."""
    _added(notes, more * (devices_of_node(notes) or 8))


def _host_memory(notes: Notes, each: float) -> None:
    """Memory of a host, where that of each device is said."""
    words, per_node = notes.words["host_gb_each"], devices_of_node(notes)
    path = "cluster.host_memory_gb"
    if per_node is None:
        notes.ask(words, f"how much does a node have ({path})?", (path,))
    else:
        notes.set(path, each * per_node, words, f"of {per_node} devices")


# the round trip of the one published pair of sites: twice that of straight fibre
_MS_A_KM = 0.02


def _round_trip(notes: Notes, apart_km: float) -> None:
    """The round trip between sites of a distance, where none is said."""
    path, words = "cluster.site_rtt_ms", notes.words["apart_km"]
    if "cluster.sites" not in notes.fields:
        notes.ask(words, "between which sites (cluster.sites)?", ("cluster.sites",))
    elif path not in notes.fields:
        rtt_ms = float(f"{apart_km * _MS_A_KM:.6g}")
        why = f"{_MS_A_KM:g} ms a km, twice that of straight fibre"
        notes.set(path, rtt_ms, words, why)
        notes.assume(path, rtt_ms, why)


def _of_each_site(notes: Notes) -> None:
    """More devices for each than a node or a rack holds are those of a site; they are asked about
    where no sites are."""
    path, fields = "cluster.devices_per_node", notes.fields
    each = fields.get(path, 0)
    of_sites = "cluster.sites" in fields and not {"nodes", "racks"} & notes.facts.keys()
    if each <= (MOST_IN_A_NODE if of_sites else MOST_TOGETHER):
        return
    words = notes.words[path]
    notes.take_back(path)
    if "cluster.sites" in fields and "cluster.devices" not in fields:
        notes.set("cluster.devices", fields["cluster.sites"] * each, words, "of each site")
    else:
        notes.ask(words, "each of what (cluster.devices has all)?", ("cluster.devices",))


def _ranks(notes: Notes) -> None:
    """Devices of a plan whose replicas are said, where no count of devices is."""
    fields = notes.fields
    if "plan.dp" not in fields or "cluster.devices" in fields:
        return
    devices = prod(fields.get(f"plan.{axis}", 1) for axis in (Axis.TP, Axis.PP, Axis.CP, Axis.DP))
    notes.set("cluster.devices", devices, notes.words["plan.dp"], "tp x pp x cp x dp")


def _failures(notes: Notes) -> None:
    """Failures per 1,000 node-days of a time between two of the job, of a node or of a device; of
    the job it is asked about where the devices are not known."""
    path = "reliability.failures_per_1000_node_days"
    for fact in notes.facts.keys() & {"node_mtbf_s", "device_mtbf_s"}:
        held = 1 if fact == "device_mtbf_s" else _devices_of_a_node(notes)
        rate = float(f"{rate_of_mtbf(notes.facts[fact], held):.4g}")
        notes.set(path, rate, notes.words[fact], f"of {held} devices, on nodes of 8")
        return
    mtbf_s = notes.facts.get("mtbf_s")
    if mtbf_s is None:
        return
    words = notes.words["mtbf_s"]
    devices = notes.fields.get("cluster.devices")
    if devices is None:
        notes.ask(words, "on how many nodes?", (path,))
        return
    rate = float(f"{rate_of_mtbf(mtbf_s, devices):.4g}")
    why = f"one in {mtbf_s / HOUR_S:.3g} h on {devices:,.0f} devices, 8 a node"
    notes.set(path, rate, words, why)


def _devices_of_a_node(notes: Notes) -> int:
    """Devices of a node as the line says it, else of the usual node of its accelerator; 8 where the
    catalogue has none."""
    held = notes.fields.get("cluster.devices_per_node")
    chip = notes.fields.get("cluster.accelerator")
    if held is None and chip in catalogue.accelerators():
        return catalogue.devices_per_node(chip)
    return int(held or 8)


def _accelerator(notes: Notes) -> None:
    """The card; what the catalogue lacks of it is asked about, and its name stands as it was
    given."""
    words = notes.words
    field = "cluster.accelerator"
    nvlink = notes.facts.get("nvlink")
    memory = notes.facts.get("memory")
    if "accelerator" not in notes.facts:
        if nvlink is not None:
            notes.note(words["nvlink"], why="no accelerator is named")
        if memory is not None:
            rows = catalogue.accelerators().values()
            choices = tuple(row.id for row in rows if round(row.hbm_bytes / GB) == memory)[:6]
            notes.ask(words["memory"], f"which accelerator has {memory} GB?", choices)
        return
    chip: Chip = notes.facts["accelerator"]
    if memory is None and chip.memory_gb is None:
        memory = _ram_of_the_chip(notes, chip)
    if memory is not None and chip.memory_gb is None:
        chip = chip.joined(chip._replace(memory_gb=memory, text=f"{chip.text} {memory}GB")) or chip
    choice = choose_accelerator(chip, nvlink)
    if choice.id is None:
        _as_given(notes, chip, near_chips(chip.text), NO_CHIP)
        return
    for error in choice.lacking:
        of_family = tuple(map(str, error.allowed)) if isinstance(error.allowed, tuple) else ()
        ids = tuple(name.split()[0] for name in of_family) or near_chips(chip.text)
        if "NVLink" in str(error.value):
            notes.ask(words["nvlink"], plain(str(error), 300), ids)
        else:
            _as_given(notes, chip, ids, plain(str(error), 300))
            return
    notes.fields[field] = choice.id
    _name_its_architecture(notes, choice.id)
    sources = ", ".join(words[fact] for fact in ("accelerator", "nvlink") if fact in words)
    notes.note(sources, field, choice.id, choice.why)
    if choice.why:
        notes.assume(field, choice.id, choice.why)


_OF_A_HOST = re.compile(r"host|system|cpu|main|dram|node|server|machine", re.IGNORECASE)


def _ram_of_the_chip(notes: Notes, chip: Chip) -> int | None:
    """GB of RAM that are what a chip of the family has, where no host is named: 2,048 A100 with 80
    GB of RAM. They are that chip's memory, and no longer the host's; None where there are none."""
    path = "cluster.host_memory_gb"
    memory, words = notes.fields.get(path), notes.words.get(path, "")
    if memory is None or memory != int(memory) or _OF_A_HOST.search(words):
        return None
    if choose_accelerator(chip._replace(memory_gb=int(memory)), None).lacking:
        return None
    notes.take_back(path)
    notes.note(words, why="the memory of the accelerator")
    return int(memory)


def _name_its_architecture(notes: Notes, id: str) -> None:
    """The architecture of the card beside its name says nothing more: H100 Hopper."""
    name = catalogue.accelerator(id).family.partition("-")[0]
    for asked in [u for u in notes.unread if u.question == SECOND_CHIP]:
        if asked.words.lower().split()[0] == name:
            notes.unread.remove(asked)
            notes.note(asked.words, why="its architecture")


def _as_given(notes: Notes, chip: Chip, choices: Lines, question: str) -> None:
    """A card that the catalogue lacks stands as it was given."""
    notes.fields["cluster.accelerator"] = chip.text
    notes.as_given.add("cluster.accelerator")
    notes.ask(chip.text, question, choices)


_SEVERAL = re.compile(r"\s+(?:instances|vms|nodes|machines)\b", re.IGNORECASE)


def _instance(notes: Notes, node: str) -> None:
    """A rented instance: a node of the catalogue with its accelerator."""
    words = notes.words["instance"]
    row = catalogue.node(node)
    notes.set("cluster.accelerator", row.accelerator, words, f"the accelerator of {node}")
    notes.set("cluster.node", node, words)
    how_many = any(asked.topic is Topic.FEWEST for asked in notes.questions)
    how_many |= _SEVERAL.match(notes.text, notes.places["instance"] + len(words)) is not None
    if "nodes" not in notes.facts and "cluster.devices" not in notes.fields and not how_many:
        notes.set("cluster.devices", row.devices, words, "one instance")


_AND_ON = re.compile(r"\?\s*and\s+(?:how\s+long\s+)?$", re.IGNORECASE)  # how long? And on 8?


def _of_them(notes: Notes, count: int) -> None:
    """A count of what was named before: instances, else accelerators; it is asked about where
    neither was, or was counted."""
    counted = "nodes" in notes.facts or "cluster.devices" in notes.fields
    place = notes.places["of_them"]
    if "cluster.devices" in notes.fields and _AND_ON.search(notes.text, 0, place):
        notes.either.append(Either("cluster.devices", count, notes.words["of_them"]))
        return
    if counted or not notes.facts.keys() & {"instance", "accelerator"}:
        notes.ask(notes.words["of_them"], "of what are they so many (cluster.devices)?")
        return
    of_nodes = "instance" in notes.facts or "cluster.devices_per_node" in notes.fields
    path = "nodes" if of_nodes else "cluster.devices"
    notes.set(path, count, notes.words["of_them"])


def _of_each(notes: Notes, count: int) -> None:
    """A count of devices of each: of each chip that is compared, or of each node; it is asked about
    where neither is."""
    words = notes.words["of_each"]
    if any(either.path == "accelerator" for either in notes.either):
        notes.set("cluster.devices", count, words, "of each that is compared")
    elif "nodes" in notes.facts and count <= MOST_IN_A_NODE:
        notes.set("cluster.devices_per_node", count, words)
    else:
        notes.ask(words, "each of what (cluster.devices has all)?", ("cluster.devices",))


def _racks(notes: Notes, racks: int) -> None:
    """Devices of a count of racks, where the scale-up domain is one."""
    words = notes.words["racks"]
    id = None if notes.as_given else notes.fields.get("cluster.accelerator")
    domain = catalogue.accelerator(id).scale_up_domain if id else 0
    if not id or domain <= catalogue.devices_per_node(id):
        notes.ask(words, "how many devices does a rack hold (cluster.devices)?")
        return
    notes.set("cluster.devices", racks * domain, words, f"{racks:,} racks of {domain}")


_OF_A_MACHINE = re.compile(r"\d+\s*[x×]")  # what one holds: 8xH100, 4 nodes
_OF_EACH = re.compile(
    r"\b(?:each|every|with|of|per|have|has|having|holding|contain\w*)\b|[x×*@]", re.IGNORECASE
)


def _nodes(notes: Notes, nodes: int) -> None:
    """Devices of a count of nodes; a count behind them that their usual nodes add up to is that of
    all: 2 nodes (16 A100)."""
    per_node = devices_of_node(notes)
    field = "cluster.devices"
    if per_node is None:
        notes.ask(notes.words["nodes"], "how many devices does a node hold (cluster.devices)?")
        return
    devices = nodes * per_node
    chip = notes.fields.get("cluster.accelerator")
    usual = catalogue.devices_per_node(chip) if chip and not notes.as_given else None
    stated = "cluster.devices_per_node" in notes.fields
    if stated and per_node == nodes * (usual or 0) and not _OF_EACH.search(notes.words["nodes"]):
        del notes.fields["cluster.devices_per_node"]
        notes.set(field, per_node, notes.words["nodes"], f"on {nodes:,} nodes of {usual}")
        return
    all_devices = notes.fields.setdefault(field, devices)
    if all_devices == usual != devices and _OF_A_MACHINE.match(notes.words[field]):
        notes.take_back(field)
        all_devices = notes.fields[field] = devices
    if all_devices != devices:
        raise refusal(
            problem=f"gives {all_devices:,} devices and {nodes:,} nodes of {per_node}",
            allowed="one count",
        )
    notes.note(notes.words["nodes"], field, devices, f"{nodes:,} nodes of {per_node}")
    if "cluster.devices_per_node" not in notes.fields:
        why = f"{nodes:,} nodes with {per_node} devices each, as this accelerator's usual node has"
        notes.assume(field, devices, why)


def _hours(notes: Notes, device_hours: float) -> None:
    """Devices of a budget of device-hours until the deadline, in whole nodes; where devices are
    said, or no deadline is, the hours set nothing."""
    words = notes.words["device_hours"]
    days = notes.fields.get("constraints.deadline_days")
    if "cluster.devices" in notes.fields:
        notes.ask(
            words, "device-hours beside devices: in how many days (constraints.deadline_days)?"
        )
        return
    per_node = devices_of_node(notes)
    if not days or per_node is None:
        notes.ask(words, "in how many days (constraints.deadline_days), on how many devices?")
        return
    most = device_hours / (24 * days)
    devices = int(most // per_node) * per_node or max(1, int(most))
    why = f"as many as the hours pay for in {days:g} days, in whole nodes of {per_node}"
    notes.set("cluster.devices", devices, words, why)
    notes.assume("cluster.devices", devices, why)
