"""Running on with fewer devices: what a lost gang costs, when waiting is better, and recovery of
one replica or one site at a time."""

from functools import partial
from typing import TypedDict

import numpy as np

from ..base.columns import Array, Column, each
from ..base.units import HOUR_S
from ..design.cluster import Cluster
from . import goodput as g
from .spares import log_weights

IN_PLACE_S = 65.0  # processes restarted on their nodes (ByteRobust, Table 7)
# to change the number of replicas: communicators and a load from a peer (judgement)
RESIZE_S = 120.0
PARTS = 16  # that average after local steps and stop alone (decoupled DiLoCo, arXiv 2604.21428)
STANDS = 1e6  # step over step where the reshaped plan does not fit: nothing trains


def shrink_ratio(micro_batches: Column, replicas: Column, lost: Column = 1) -> Column:
    """Step time while shrunk over step time before: ceil(m d / (d - f)) / m, the global batch
    unchanged.

    Whole micro-batches make it coarse: m = 16, d = 128 costs 6.25 % for one lost replica, not 0.8
    %; m = 8, d = 12 costs 12.5 %, not 9.1 %.
    Pipeline fill is left out, so with few micro-batches per stage it is a little lower in truth.
    """
    return -(-(micro_batches * replicas) // np.maximum(replicas - lost, 1)) / micro_batches


def slower(
    micro_batches: Column, replicas: Column, gone: int | Array, ratios: Array | None = None
) -> Column:
    """Step time with `gone` gangs away over the whole one: `ratios`, a table by gangs gone of the
    plans as they are reshaped, else `shrink_ratio`."""
    if ratios is None:
        return shrink_ratio(micro_batches, replicas, gone)
    ratio: Column = ratios[gone]
    return ratio


class Choice(TypedDict):
    """Waiting for a node against running on without its gang; losses in seconds of the full job."""

    choice: Array  # "wait" or "shrink"
    ratio: Column  # step time shrunk over the whole one
    break_even_s: Column  # below it waiting is better
    wait_loss_s: Column
    shrink_loss_s: Column


def wait_or_shrink(
    return_s: Column,
    micro_batches: Column,
    replicas: Column,
    *,
    lost: int | Array = 1,
    resize_s: Column = RESIZE_S,
    ratios: Array | None = None,
) -> Choice:
    """Wait for a node or run on without its gang.

    return_s : expected time until a node is back (a spare to boot, a repair; exponential, so what
    is left of it does not change).
    Waiting loses return_s; shrinking loses (1 - 1 / ratio) return_s, and one more change of size
    (`resize_s`) when the node is back.
    Waiting is better below break_even_s = resize_s x ratio. A spare that is ready always wins: it
    costs neither. ratios : as in `slower`.
    """
    ratio = slower(micro_batches, replicas, lost, ratios)
    shrink = (1 - 1 / ratio) * return_s + resize_s
    return Choice(
        choice=np.where(return_s <= shrink, "wait", "shrink"),
        ratio=ratio,
        break_even_s=resize_s * ratio,
        wait_loss_s=return_s,
        shrink_loss_s=shrink,
    )


def shrink_loss(
    load: Column,
    spares: Column,
    gang_nodes: int,
    replicas: int,
    micro_batches: int,
    resize_share: Column = 0.0,
    ratios: Array | None = None,
) -> Column:
    """Share of the throughput lost to running short of gangs, in the long run, by a job that
    shrinks whenever spares are out.

    sum over n of Poisson(n; a) x (1 - 1 / ratio(gangs gone)), gangs gone = ceil((n - S) / nodes per
    gang): failures go on while it runs, so nodes in repair are Poisson with a = evictions x repair
    time (any distribution of repairs).
    resize_share : evictions a second x seconds to grow again, lost wherever no spare is left.
    ratios : as in `slower`.
    Against waiting: `spares.stall_share`. First gang lost, its other nodes stand in as spares,
    hence the ceiling. Broadcasts over load, spares and resize_share.
    """
    one = partial(_shrink_loss, gang_nodes, replicas, micro_batches, ratios)
    return each(one, load, spares, resize_share)


def _shrink_loss(
    gang_nodes: int,
    replicas: int,
    micro_batches: int,
    ratios: Array | None,
    load: float,
    spares: float,
    resize_share: float,
) -> float:
    """`shrink_loss` of one job."""
    spares = int(spares)
    reach = 12 * np.sqrt(load) + 24  # on both sides of the mean; beyond it nothing is left
    n = np.arange(max(int(load - reach), 0), int(spares + load + reach + gang_nodes) + 1)
    weights = log_weights(n, load)
    ratio = slower(
        micro_batches,
        replicas,
        np.minimum(-(-np.maximum(n - spares, 0) // gang_nodes), replicas - 1),
        ratios,
    )
    lost = 1 - 1 / ratio + (n >= spares) * resize_share
    chances = np.exp(weights - weights.max())
    return float(min((lost * chances).sum() / chances.sum(), 1.0))


class Restarts(TypedDict):
    """Goodput with the gang restarted in place against the job requeued."""

    in_place: Column
    requeue: Column
    gain: Column
    interval_s: Column  # of both


def in_place_or_requeue(
    mtbf_s: Column,
    stall_s: Column,
    *,
    requeue_s: Column = 768.0,
    restore_s: Column = 120.0,
    detect_s: Column = 180.0,
    durable_s: Column = 30.0,
) -> Restarts:
    """Goodput with the gang restarted in place against the job requeued.

    Hot update 65 s against requeue 768 s at 1,024 machines of 16 (46 and 454 s at 128): ByteRobust,
    arXiv 2509.16293, Table 7. The optimum interval is the same for both, since it does not depend
    on the restart.
    """
    # the bound of a design's own interval
    tau = np.maximum(g.optimum_interval(mtbf_s, stall_s), np.maximum(durable_s - stall_s, 1e-3))

    a, b = (
        g.ettr(
            mtbf_s,
            stall_s,
            tau,
            durable_s=durable_s,
            restart_s=restart + restore_s,
            down_s=detect_s,
        )
        for restart in (IN_PLACE_S, requeue_s)
    )
    return Restarts(in_place=a, requeue=b, gain=a - b, interval_s=tau)


def ft_hsdp(
    mtbf_s: Column, replicas: Column, *, stall_s: Column = 180.0, replica_recovery_s: Column = 600.0
) -> Column:
    """Useful share where one failure stalls all replicas shortly and takes one of them out for its
    own recovery.

    1 - stall / M - (t_rep / M) / d. Sound while recoveries seldom overlap (t_rep < M d). At 98,304
    devices in 12 replicas, M = 18 min, stall 3 min: 0.787; 80 % printed, 44 % without (FT-HSDP,
    arXiv 2602.00277).
    """
    return 1 - (stall_s + replica_recovery_s / replicas) / mtbf_s


# median backbone edge of Facebook's sites (Meza et al., IMC'18, s6.1)
EDGE_MTBF_S = 1710 * HOUR_S
EDGE_REPAIR_S = 10 * HOUR_S


def cut_off(cluster: Cluster) -> float:
    """Share of the time in which a synchronous run waits for a site that is cut off: sites x repair
    / time between failures of an edge; 0 for one site, and for sites that train on alone."""
    if cluster.sites < 2 or cluster.sync.apart:
        return 0.0
    cut = cluster.sites * EDGE_REPAIR_S / EDGE_MTBF_S
    return cut / (1 + cut)
