"""The refusal's arithmetic: why no plan can hold a phase, by argument over all plans and
offload."""

from __future__ import annotations

import numpy as np

from ..base.quantities.table import show
from ..physics.memory.peak import memory
from ..plans import space as planning
from ..plans.fit import host_bytes
from ..plans.run import find, unpinned
from ..plans.words import short


def arithmetic(where) -> tuple[str, ...]:
    """Why no plan can hold this phase: the state's bytes against all memory there is, and the
    leanest plan of the widest space."""
    r = where.resolved
    n, job, cluster = r.params.total + r.params.mtp, where.job, r.cluster
    per = 2 + job.grad_bytes + job.optimizer_bytes + job.master_bytes
    state = n * per
    host = host_bytes(cluster) * cluster.devices

    def gb(size) -> str:
        return show("memory_bytes.total", float(size))

    found = find(unpinned(where), planning.LAST_RESORT)
    i = int(np.argmin(found.total_bytes))
    leanest = found.case(i)
    m = memory(leanest)
    hbm = cluster.devices * float(m.capacity)
    pieces = ", ".join(
        f"{name} {gb(value)}"
        for name, value in (
            ("weights", m.weights),
            ("gradients", m.gradients),
            ("optimizer", m.optimizer),
            ("activations and logits of one sequence", m.activations),
            ("gathered layer", m.gathered),
            ("buffers and framework", m.buffers + m.framework + m.fragmentation),
        )
        if float(value) > 0
    )
    lines = [
        (
            f"state: {n:,} parameters x {per:g} bytes (weights 2, gradients "
            f"{job.grad_bytes:g}, moments {job.optimizer_bytes:g}, master weights "
            f"{job.master_bytes:g}) = {gb(state)}"
        ),
        (
            f"devices: {cluster.devices:,} x {gb(m.capacity)} usable = "
            f"{gb(hbm)}; host memory and NVMe that may be used: {gb(host)}"
        ),
        f"sum: {gb(state)} of state > {gb(hbm + host)} of all memory, before a single activation"
        if state > hbm + host
        else (
            f"sum: {gb(state)} of state < {gb(hbm + host)} of all memory; it is what cannot "
            f"leave the device that does not fit"
        ),
        f"leanest: memory falls with every further way of splitting, recomputing and "
        f"offloading, so the far end of each bounds all plans; of its {found.legal:,} "
        f"plans the leanest "
        f"({short(found.row(i))}) needs {gb(m.total)} per device of {gb(m.capacity)}"
        + (
            f", and {gb(m.host)} of offloaded state per device of {gb(host_bytes(cluster))}"
            if float(m.host) > 0
            else ""
        ),
        f"what it cannot split further: {pieces}",
    ]
    return tuple(lines)
