"""How long a save and a stop take: as a design states, or by the rule that stands in."""

from typing import NamedTuple

import numpy as np

from ..base.columns import Column
from ..base.records import Assumed, get, value_or
from ..base.units import DAY_S
from ..design.cluster import Cluster
from . import checkpoint
from .failures import StopTimes
from .first_step import first_step
from .stated import Section
from .storage import Rates

# an explicit failure is seen in 60 s, localised in 2 min at best (ByteRobust, arXiv 2509.16293
# s2.2)
DETECT_S = 180.0
# drain, reboot, test, return of a node: 4 h; NCSA Delta measured 2.2 h (arXiv 2503.11901)
REPAIR_S = 14_400.0
# where a design does not say, a repair takes a day with this chance: two of three published times
# are a day or more (catalogue R131, R169, R170), by the rule of succession (2 + 1) / (3 + 2)
SLOW_REPAIR_S = DAY_S
SLOW_REPAIRS = 0.6


class Times(NamedTuple):
    """Seconds of a save and of a stop."""

    stall_s: Column  # that training stands still for a save
    durable_s: Column  # from the end of the stall until it can be restored from
    stop: StopTimes
    first_step_s: dict[str, Column]  # parts of the restart


def times(
    cluster: Cluster,
    spec: Section,
    store: Rates,
    *,
    starting: Column,
    nodes: Column,
    checkpoint_bytes: Column,
    state_bytes_per_device: Column,
    waits_for_saves: bool,
    assumed: list[Assumed],
) -> Times:
    """The times of a job: given, or by the rule that goes into `assumed`.

    starting : devices that start together.  waits_for_saves : the stall of a save is all of it.
    """
    mode = get(spec, "recovery") or "in-place"
    read_s = checkpoint.transfer_s(
        checkpoint_bytes, store.read_bytes_per_s, nodes, store.node_read_bytes_per_s
    )
    parts = first_step(starting, checkpoint.LOAD_S + read_s, mode)
    took = " + ".join(f"{part} {np.max(s):,.0f} s" for part, s in parts.items())

    whole_s = checkpoint.synchronous_save_s(
        checkpoint_bytes, store.write_bytes_per_s, nodes, store.node_write_bytes_per_s
    )
    wrote = f"20 s to commit (ByteCheckpoint, Table 8) + one copy at the write rate of {store.what}"
    stall_s, durable_s = whole_s, 0.0 * whole_s
    stall_why = f"the software waits until a save is whole: {wrote}"
    durable_why = "a save is whole when its stall ends"
    if not waits_for_saves:
        stall_s = checkpoint.snapshot_stall_s(
            state_bytes_per_device, cluster.accelerator.host_link_bytes_per_s
        )
        durable_s = whole_s
        stall_why = "asynchronous: 0.5 s (ByteCheckpoint, Table 8) + the copy at half the host link"
        durable_why = wrote

    def stated(field: str, usual: Column, why: str) -> Column:
        value: Column = value_or(spec, f"reliability.{field}", usual, why, assumed)
        return value

    return Times(
        stall_s=stated("checkpoint_stall_s", stall_s, stall_why),
        durable_s=stated("checkpoint_durable_s", durable_s, durable_why),
        stop=StopTimes(
            detect_s=stated(
                "detect_s",
                DETECT_S,
                "60 s to see and 2 min to localise an explicit failure (ByteRobust s2.2)",
            ),
            restart_s=stated("restart_s", sum(parts.values()), f"{mode}: {took}"),
            repair_s=stated(
                "repair_s",
                REPAIR_S,
                "4 h to drain, test and return a node; 2.2 h measured at NCSA Delta",
            ),
        ),
        first_step_s=parts,
    )
