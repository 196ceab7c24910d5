"""The refusal's arithmetic: why no plan can hold a phase, by argument over all plans and
offload."""

from ..base.records import Lines
from ..base.show import params, several, size
from ..physics.gather import Situation
from ..physics.memory.peak import Memory, memory
from ..plans import space as planning
from ..plans.evaluate import Search, find, unpinned
from ..plans.fit import host_bytes
from ..plans.plan_names import short


def leanest(situation: Situation) -> Search:
    """The widest space's lean end: what does not fit there fits nowhere."""
    return find(unpinned(situation), planning.LAST_RESORT)


def arithmetic(situation: Situation) -> Lines:
    """Why no plan can hold this phase: the state's bytes against all memory there is, and the
    leanest plan of the widest space."""
    resolved = situation.resolved
    job = situation.job
    devices = resolved.cluster.devices
    parameters = resolved.params.total + resolved.params.mtp
    state = parameters * job.state_bytes
    host = host_bytes(resolved.cluster)
    search = leanest(situation)
    row = int(search.total_bytes.argmin())
    used = memory(search.case(row))
    on_devices = devices * used.capacity
    on_hosts = devices * host
    everything = on_devices + on_hosts
    if state > everything:
        verdict = f"> {size(everything)} of all memory, before a single activation"
    else:
        verdict = (
            f"< {size(everything)} of all memory; it is what cannot leave the device that does not "
            "fit"
        )
    return (
        f"state: {params(parameters)} parameters x {job.state_bytes:g} bytes (weights 2, "
        f"gradients {job.grad_bytes:g}, moments {job.optimizer_bytes:g}, "
        f"master weights {job.master_bytes:g}) = {size(state)}",
        f"devices: {devices:,} x {size(used.capacity)} usable = {size(on_devices)}; "
        f"host memory and NVMe that may be used: {size(on_hosts)}",
        f"sum: {size(state)} of state {verdict}",
        _leanest_line(search, row, used, host),
        f"what it cannot split further, of one sequence: {_pieces(used)}",
    )


def _leanest_line(search: Search, row: int, used: Memory, host: float) -> str:
    """What the leanest plan needs of a device and of its share of the host."""
    line = (
        "leanest: memory falls with every further way of splitting, recomputing and offloading, so "
        "no plan needs less than one that goes furthest in each; of "
        f"{several(search.legal, 'such plan')} the leanest "
        f"({short(search.row(row))}) needs {size(used.total)} per device; "
        f"{size(used.capacity)} are available"
    )
    if used.host > 0:
        line += f", and offloads {size(used.host)} per device; {size(host)} are available"
    return line


def _pieces(used: Memory) -> str:
    """The parts of a device's memory with their sizes, the last of them taken apart."""
    parts = {
        "weights": used.weights,
        "gradients": used.gradients,
        "optimizer": used.optimizer,
        "activations": used.activations,
        "gathered weights of a layer": used.gathered,
        "buffers": used.buffers,
        "framework": used.framework,
        "fragmentation": used.fragmentation,
    }
    return ", ".join(f"{name} {size(value)}" for name, value in parts.items() if value > 0)
