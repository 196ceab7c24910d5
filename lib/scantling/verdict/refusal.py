"""The refusal's arithmetic: why no plan can hold a phase, by argument over all plans and
offload."""

from ..base.records import Lines
from ..physics.memory.peak import memory
from ..plans import space as planning
from ..plans.evaluate import Found, find, unpinned
from ..plans.fit import host_bytes
from ..plans.words import short
from .words import say

PIECES = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "gathered",
    "buffers",
    "framework",
    "fragmentation",
)


def leanest(where) -> Found:
    """The widest space's lean end: what does not fit there fits nowhere."""
    return find(unpinned(where), planning.LAST_RESORT)


def arithmetic(where) -> Lines:
    """Why no plan can hold this phase: the state's bytes against all memory there is, and the
    leanest plan of the widest space."""
    r = where.resolved
    n = r.params.total + r.params.mtp
    job = where.job
    devices = r.cluster.devices
    per = job.state_bytes
    state = n * per
    per_host = host_bytes(r.cluster)
    found = leanest(where)
    i = int(found.total_bytes.argmin())
    m = memory(found.case(i))
    hbm = devices * m.capacity
    host = devices * per_host
    whole = hbm + host
    said = (
        say("piece", name=name, size=getattr(m, name)) for name in PIECES if getattr(m, name) > 0
    )
    line = say("leanest", legal=found.legal, plan=short(found.row(i)), m=m)
    if m.host > 0:
        line += say("leanest-host", m=m, host=per_host)
    return (
        say("state", n=n, per=per, job=job, state=state),
        say("devices", devices=devices, m=m, hbm=hbm, host=host),
        say("too-much" if state > whole else "enough", state=state, all=whole),
        line,
        say("pieces", pieces=", ".join(said)),
    )
