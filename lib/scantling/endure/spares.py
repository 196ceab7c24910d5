"""How many spare nodes, and what too few or too many cost."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..base.columns import Array, Column, each
from ..base.records import record
from ..base.stats import binomial_quantile
from ..catalogue.families import family
from ..design.cluster import Cluster


@record
class Segments:
    """How a job stands in racks whose nodes one scale-up network joins: `count` segments of `size`
    nodes, each within one rack, and how spares stand beside them. Numbers or arrays.

    A group of ranks that talks over that network needs whole segments. So a spare tray in the same
    rack replaces a lost node, or a spare segment replaces the whole segment. One loss more takes
    `count` nodes (a tray in each rack, up to `room` of them) or one segment; where a node is the
    domain, one node. Trays in every rack cover more than is counted: a loss in each at a time.
    """

    size: Column
    count: Column
    room: Column  # trays a rack that may stand by; 0 where segments that stand by take fewer nodes

    def group(self, losses: Column) -> Column:
        """Nodes of one segment with the trays that stand by in its rack to cover so many losses."""
        return self.size + np.minimum(losses, self.room)

    def nodes(self, losses: Column) -> Column:
        """Spare nodes that cover so many losses of a node at a time."""
        group = self.group(losses)
        inside = group - self.size
        return inside * self.count + (losses - inside) * group

    def covered(self, spares: Column) -> Array:
        """Losses of a node at a time that so many spare nodes, rounded up to what can stand by,
        cover: the fewest whose `nodes` is no less."""
        inside = np.minimum(np.ceil(np.asarray(spares) / self.count), self.room)
        more = np.ceil(np.maximum(spares - inside * self.count, 0) / (self.size + inside))
        return np.asarray(inside + more).astype(int)


def segments(cluster: Cluster, nodes: Column) -> Segments:
    """The segments in which a job of so many nodes stands: the most nodes of a scale-up domain
    that divide the job's, as Slurm's --segment and Kueue's podset-slice-size have to; of one node
    where a node is the domain, and on a torus. Broadcasts."""
    chip = cluster.accelerator
    per_node = cluster.devices_per_node
    joined = cluster.scale_up_domain > per_node and not family(chip.family).torus
    whole = max(chip.scale_up_domain_max, cluster.scale_up_domain) // per_node if joined else 1
    sizes = np.arange(1, cluster.scale_up_domain // per_node + 1 if joined else 2)
    size = np.where(np.asarray(nodes)[..., None] % sizes == 0, sizes, 1).max(axis=-1)
    count = np.asarray(nodes, int) // size
    return Segments(size=size, count=count, room=np.where(count <= size, whole - size, 0))


def log_weights(k: Array, load: Column) -> Array:
    """log(a^k / k!), less the first, for whole numbers k that follow each other, on a new last
    axis: a Poisson law but for a factor."""
    with np.errstate(divide="ignore"):
        steps = np.log(np.asarray(load, float))[..., None] - np.log(np.maximum(k, 1))
    return np.cumsum(np.where(k > k[0], steps, 0.0), axis=-1)


def erlang_table(most: int, load: Column) -> Array:
    """Erlang's loss probability B(k, load) for k from 0 to `most` on a new last axis:
    (a^k / k!) / sum over j <= k of a^j / j!; a = arrival rate x mean holding time.  Erlang 1917."""
    weights = log_weights(np.arange(most + 1), load)
    table: Array = np.exp(weights - np.logaddexp.accumulate(weights, axis=-1))
    return table


def erlang_b(servers: Column, load: Column) -> Array:
    """`erlang_table` at so many servers, whole numbers >= 0; broadcasts."""
    count, offered = np.broadcast_arrays(np.asarray(servers, int), load)
    table = erlang_table(int(count.max()), offered)
    return np.take_along_axis(table, count[..., None], axis=-1)[..., 0]


def stall_share(spares: Column, load: Column) -> Array:
    """Share of the time a job stands still for want of a node: ErlangB(S + 1, a), a = evictions per
    second x mean repair time.

    The job stops failing while it waits, so nodes in repair form a loss system with S + 1 places;
    insensitive to the distribution of the repair time. Exact where the clock of failures runs
    whenever the job is not waiting. The Poisson tail P(N > S), which assumes that failures go on,
    is 1.5 to 2 times too high.
    """
    return erlang_b(np.add(spares, 1), load)


def shortage(
    spares: Column, evictions_per_s: Column, repair_s: Column, down_s: Column = 0.0
) -> Any:
    """Share of the time a job stands still for want of a node where each eviction also takes
    `down_s` anyway, exactly, for exponential repairs and up to 150 spares (beyond, Erlang-B thinned
    by the downtime).

    Markov chain over the nodes in repair at evictions: each leaves the pool during the downtime
    with 1 - exp(-D / repair), then one by one while the job runs; with S + 1 in repair at its end
    the job waits repair / (S + 1) on average.
    With D = 0 this is `stall_share`; with D the wait hides behind the detection. Broadcasts.
    """
    return each(_shortage, spares, evictions_per_s, repair_s, down_s)


def ample(load: float) -> float:
    """Nodes of which Erlang's loss probability is below 1e-15: a + 12 sqrt(a) + 24."""
    return float(load + 12 * np.sqrt(load) + 24)


@lru_cache(maxsize=4096)
def _shortage(s: float, lam: float, repair: float, down: float) -> float:
    """`shortage` of one job."""
    load = lam * repair
    if s > ample(load):
        return 0.0
    if s > 150:  # the wait left after the downtime, the pool as without it
        busy = erlang_b(s + 1, load / (1 + lam * down))
        return float(busy * np.exp(-(s + 1) * down / repair))
    s = int(s)
    stay = np.exp(-down / repair)
    up = lam / (lam + np.arange(s + 2) / repair)  # chance that an eviction comes before a repair
    # from n in repair to m: over a run (until the next eviction), over the downtime
    runs = np.diag(up)
    thin = np.eye(s + 2)
    for n in range(1, s + 2):
        runs[n] += (1 - up[n]) * runs[n - 1]
        thin[n] = (1 - stay) * thin[n - 1]
        thin[n, 1:] += stay * thin[n - 1, :-1]
    wait = thin[1:, -1].copy()  # still S + 1 in repair after the downtime
    thin[1:, s] += wait
    step = thin[1:, :-1] @ runs[:-1, :-1]  # from m before an eviction to m before the next
    balance = step.T - np.eye(s + 1)
    balance[-1] = 1.0
    before = np.linalg.solve(balance, np.eye(s + 1)[-1])
    lost = max(float(before @ wait), 0.0) * repair / (s + 1)  # rounding of the solve
    return float(lost / (1 / lam + down + lost))


def wait_chance(spares: Column, load: Column) -> Array:
    """Chance that one eviction finds no spare and has to wait for a repair: ErlangB(S, a), the
    weight of S nodes in repair among 0..S."""
    return erlang_b(spares, load)


def spares_for(load: Column, chance: float = 0.99, limit: int = 4096) -> Array:
    """Fewest spare nodes such that an eviction finds one with probability `chance`: smallest S with
    ErlangB(S, a) <= 1 - chance, `limit` where more would be needed; broadcasts."""
    most = int(min(limit, ample(np.max(load))))
    count: Array = (erlang_table(most - 1, load) > 1 - chance).sum(axis=-1)
    return count


def cheapest(loads: Sequence[tuple[float, Column]], nodes: Column, limit: int = 4096) -> Array:
    """Spare nodes that make the run cheapest: S that minimises (N + S) x the mean of
    1 / (1 - ErlangB(S + 1, a)); broadcasts.

    loads : (chance, a) of each mean repair time that may come, chances that sum to 1; one where it
    is known.  nodes : nodes of the job. Counts a spare as dear as a working node and waiting as all
    of them idle.
    """
    most = int(min(limit, ample(max(np.max(load) for _, load in loads))))
    slower = sum(chance / (1 - erlang_table(most, load)[..., 1:]) for chance, load in loads)
    paid = 1 + np.arange(most) / np.asarray(nodes)[..., None]
    best: Array = np.argmin(paid * slower, axis=-1)
    return best


def standbys(machines: int, per_window: float) -> int:
    """Warm standbys as ByteRobust sizes them: the 99th percentile of how many of `machines`
    fail in one window, Binomial(machines, p).

    Their Table 5 (arXiv 2509.16293) prints 2/2/3/4 for 128/256/512/1,024 machines; one p of
    1.17e-3...1.23e-3 gives all four.
    """
    return binomial_quantile(0.99, machines, per_window)
