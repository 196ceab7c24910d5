"""The refusal's arithmetic: why no plan can hold a phase, by argument over all plans and
offload."""

import numpy as np

from ..base.records import Lines
from ..physics.memory.peak import memory
from ..plans import space as planning
from ..plans.evaluate import find, unpinned
from ..plans.fit import host_bytes
from ..plans.words import short
from .words import say


def arithmetic(where) -> Lines:
    """Why no plan can hold this phase: the state's bytes against all memory there is, and the
    leanest plan of the widest space."""
    r = where.resolved
    n = r.params.total + r.params.mtp
    job = where.job
    devices = r.cluster.devices
    per = 2 + job.grad_bytes + job.optimizer_bytes + job.master_bytes
    state = n * per
    per_host = host_bytes(r.cluster)
    found = find(unpinned(where), planning.LAST_RESORT)
    i = int(np.argmin(found.total_bytes))
    m = memory(found.case(i))
    hbm = devices * m.capacity
    host = devices * per_host
    pieces = {
        "weights": m.weights,
        "gradients": m.gradients,
        "optimizer": m.optimizer,
        "activations and logits of one sequence": m.activations,
        "gathered layer": m.gathered,
        "buffers and framework": m.buffers + m.framework + m.fragmentation,
    }
    said = (
        say(
            "piece",
            name=name,
            size=size,
        )
        for name, size in pieces.items()
        if size > 0
    )
    leanest = say(
        "leanest",
        legal=found.legal,
        plan=short(found.row(i)),
        m=m,
    )
    if m.host > 0:
        leanest += say(
            "leanest-host",
            m=m,
            host=per_host,
        )
    return (
        say(
            "state",
            n=n,
            per=per,
            job=job,
            state=state,
        ),
        say(
            "devices",
            devices=devices,
            m=m,
            hbm=hbm,
            host=host,
        ),
        say(
            "too-much" if state > hbm + host else "enough",
            state=state,
            all=hbm + host,
        ),
        leanest,
        say("pieces", pieces=", ".join(said)),
    )
