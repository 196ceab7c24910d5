"""Burn-in: what each device, link and pair must show before the run, and the threshold to evict
at."""

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Literal, TypedDict

import numpy as np
from scantling import catalogue
from scantling.base.columns import Array
from scantling.base.files import csv_rows
from scantling.base.records import Known, Record, record
from scantling.base.units import DAY_S, HOUR_S
from scantling.design.cluster import Cluster
from scantling.physics import collectives as curves
from scantling.physics.cases import Cases
from scantling.physics.pipeline import SCHEDULE_NAMES
from scantling.physics.step import step_time
from scantling.physics.wires import Link

from ..constants import CONSTANTS, TABLES
from ..fabric.build import cards
from ..job_site import Site, is_torus
from ..network.traffic import trust
from ..placement import blocks
from .screen import spread

RATIOS: Array = np.linspace(0.2, 1.0, 81)
GROUPS = 32  # groups of nodes under one leaf that are tested every pair of; beyond that neighbours
ROUNDS = 25  # iterations of one nccl-tests point: 5 to warm up, 20 counted
SIZES: Array = np.array([1e6, 64e6, 1e9, 16e9])
LARGE = 16e9
START_S = 10.0  # processes and communicators of one small test
BY_CURVES = "the kit's curves of collectives"
ACCEPTED = "published acceptance test"


class Rate(TypedDict):
    """Bus bandwidth that a collective of so many bytes should reach."""

    message_bytes: float
    busbw_bytes_per_s: float


@record
class Test(Record):
    """One burn-in test with what a sound part shows and the threshold that evicts it. Rates in
    `unit`."""

    __test__ = False

    id: str
    what: str
    tool: str
    scope: str
    message_bytes: Known = None
    expected: float
    evict_below: float
    ratio: float  # evict_below / expected
    unit: str
    why: str
    expected_from: str
    rounds: int = 1
    seconds: float
    usd: Known
    # the median of all parts lies this near the expected, else the whole site is wrong
    fleet_within: Known = None
    by_size: tuple[Rate, ...] = ()  # expected


@record
class Tools:
    """What a vendor's devices are tested with: a row of tables/tools.csv."""

    vendor: str
    products: str  # matrix products
    copies: str  # device memory
    host_copy: str
    wire: str  # between two cards
    rings: str  # collectives


@cache
def _tools() -> tuple[Tools, ...]:
    rows = csv_rows(TABLES / "tools.csv")
    names = {f.name for f in fields(Tools)}
    for row in rows:
        if row.keys() != names:
            raise ValueError(f"columns of tables/tools.csv: {', '.join(row)}")
    return tuple(Tools(**row) for row in rows)


def tools(vendor: str) -> Tools:
    """Tools for a vendor's devices; those of nobody in particular stand last."""
    return next(row for row in _tools() if row.vendor in vendor.lower())


def burn_in(s: Site) -> tuple[Test, ...]:
    """Tests of memory, matrix products, scale-up links, host links, cards, rails, pairs and the
    whole, in the order to run them.

    Expected rate: a published nccl-tests curve of this accelerator where there is one, else the
    kit's curves of collectives (`curves.fastest`). A part is judged against the median of its kind
    on the day; the median against the expected (`fleet_within`). evict_below = expected x ratio.
    ratio: where keeping a slow link costs the job more than a node of the cluster costs, 1 / nodes
    (the ring goes at its slowest link: `step_time` with that tier slowed), but never laxer than the
    loosest nor stricter than the tightest published acceptance test (catalogue/acceptance.csv).
    """
    return (*device_tests(s), *scale_up_tests(s), *scale_out_tests(s), job_test(s))


def _test(
    s: Site,
    id: str,
    what: str,
    *,
    tool: str,
    scope: str,
    expected: float,
    ratio: float,
    seconds: float,
    unit: str = "bytes/s",
    why: str,
    expected_from: str,
    message_bytes: Known = None,
    rounds: int = 1,
    fleet_within: Known = None,
    by_size: tuple[Rate, ...] = (),
) -> Test:
    """One test: the threshold and the price follow from what is expected, the ratio and the
    time."""
    return Test(
        id=id,
        what=what,
        tool=tool,
        scope=scope,
        message_bytes=message_bytes,
        expected=expected,
        evict_below=expected * ratio,
        ratio=ratio,
        unit=unit,
        why=why,
        expected_from=expected_from,
        rounds=rounds,
        seconds=seconds,
        usd=s.run.usd(seconds / DAY_S),
        fleet_within=fleet_within,
        by_size=by_size,
    )


def device_tests(s: Site) -> Iterator[Test]:
    """Matrix products, memory and host link of each device."""
    chip = s.case.chip
    constants = s.case.constants
    tool = tools(s.cluster.accelerator.vendor)
    ratio = 1 / (1 + 2.0 * spread())
    yield _test(
        s,
        "matrix products",
        "bf16 products of the plan's own shapes on every device, clocks and power watched",
        tool=tool.products,
        scope="each device",
        expected=float(constants.gemm * chip.bf16_flops),
        ratio=ratio,
        seconds=600.0,
        unit="FLOP/s",
        why="two standard deviations of equal devices; the screen below cuts finer",
        expected_from="the kit's calibrated share of the peak",
    )
    yield _test(
        s,
        "device memory",
        "copy and triad over all of the memory, error counters read after it",
        tool=tool.copies,
        scope="each device",
        expected=float(constants.hbm_share * chip.hbm_bytes_per_s),
        ratio=ratio,
        seconds=300.0,
        why="as above",
        expected_from="the kit's calibrated share of the rate",
    )
    host = accepted(s.cluster.accelerator.id, "host copy")
    if host is not None:
        yield _test(
            s,
            "host link",
            "device to host and back, pinned; checkpoints ride on it",
            tool=tool.host_copy,
            scope="each device",
            expected=host.rated * 1e9,
            ratio=host.value / host.rated,
            seconds=60.0,
            why=ACCEPTED,
            expected_from=host.source,
        )


def ring_test(
    s: Site,
    id: str,
    what: str,
    *,
    scope: str,
    ranks: int,
    inside: int,
    ratio: float,
    why: str,
    rounds: int = 1,
    share: float = 1.0,
    published: tuple[float, str] | None = None,
    floor: float = 0.0,
) -> Test:
    """All-reduce over so many ranks, `inside` of them in a domain: the `published` rate (bytes/s,
    source) where there is one, never below the accepted `floor` [bytes/s]."""
    sizes = all_reduce_rates(s.cluster, ranks, inside, share)
    rate, rate_from = published or (sizes[-1]["busbw_bytes_per_s"], BY_CURVES)
    up, out = trust(s.cluster)
    error = up["large_error"] if ranks <= inside else out["large_error"]
    return _test(
        s,
        id,
        what,
        tool=tools(s.cluster.accelerator.vendor).rings,
        scope=scope,
        expected=rate,
        ratio=max(ratio, floor / rate),
        seconds=rounds * _seconds(LARGE, ranks, rate),
        message_bytes=LARGE,
        why=why if floor < ratio * rate else ACCEPTED,
        expected_from=rate_from,
        rounds=rounds,
        # of the fabrics judged, where this one is not
        fleet_within=CONSTANTS.unjudged if error is None else error,
        by_size=sizes,
    )


def scale_up_tests(s: Site) -> Iterator[Test]:
    """All-reduce over a node, the axes of a torus, an NVLink rack."""
    cluster = s.cluster
    n = s.per_node
    ratio, why = slow_tier(s.case, s.nodes, "scale-up", acceptance_limits("node all-reduce"))
    if s.torus and s.nodes > 1:
        yield from torus_tests(s, ratio, why)
    elif n > 1:
        acceptance = accepted(cluster.accelerator.id, "node all-reduce")
        best = node_busbw(cluster)
        yield ring_test(
            s,
            "node all-reduce",
            f"bus bandwidth of the {n} devices of a node",
            scope="each node",
            ranks=n,
            inside=n,
            ratio=ratio,
            why=why,
            published=best,
            floor=0.0 if acceptance is None else min(acceptance.value * 1e9, 0.98 * best[0]),
        )
    unit = joined_devices(cluster)
    if unit > n:
        yield ring_test(
            s,
            "rack all-reduce",
            f"bus bandwidth of the {unit} devices of an NVLink rack",
            scope="each rack",
            ranks=unit,
            inside=unit,
            ratio=ratio,
            why=why,
        )


def torus_tests(s: Site, ratio: float, why: str) -> Iterator[Test]:
    """All-reduce over the chips of a host, and along each axis of a slice."""
    rate, rate_from = ring_of_two_links(s.cluster)
    for id, what, scope, rounds in (
        (
            "node all-reduce",
            f"all-reduce over the {s.per_node} chips of a host, round their square",
            "each node",
            1,
        ),
        ("torus axes", "all-reduce along each axis of the slice, both ways round", "each axis", 3),
    ):
        yield _test(
            s,
            id,
            what,
            tool=tools(s.cluster.accelerator.vendor).rings,
            scope=scope,
            expected=rate,
            ratio=ratio,
            seconds=60.0 * rounds,
            rounds=rounds,
            message_bytes=1e9,
            why=why,
            expected_from=rate_from,
        )


def joined_devices(cluster: Cluster) -> int:
    """Devices that a rack or node joins."""
    return max(0 if is_torus(cluster) else cluster.scale_up_domain, cluster.devices_per_node)


def scale_out_tests(s: Site) -> Iterator[Test]:
    """Cards, pairs of nodes or racks under the same leaves, groups of such across the spines."""
    cluster = s.cluster
    unit = joined_devices(cluster)
    units = -(-cluster.devices // unit)
    if units < 2 or s.torus:
        return
    ratio, why = slow_tier(s.case, s.nodes, "scale-out", acceptance_limits("card to card"))
    yield _test(
        s,
        "card to card",
        f"RDMA write of each of {cluster.nics_per_node} cards to the same rail of the next node",
        tool=tools(cluster.accelerator.vendor).wire,
        scope="each card",
        expected=cards(cluster)[1],
        ratio=min(ratio, CONSTANTS.node_accept_high),
        seconds=60.0,
        why=why,
        expected_from="line rate",
        rounds=2,
    )
    near = max(2, blocks(cluster).unit // unit)
    many = min(units, near)
    name = "racks" if unit > s.per_node else "nodes"
    yield ring_test(
        s,
        "pairs",
        f"every pair of the {many} {name} under the same leaves, all leaves at once, every rail",
        scope="each pair",
        ranks=2 * unit,
        inside=unit,
        ratio=ratio,
        why=why,
        rounds=many - 1,
    )
    groups = -(-units // near)
    if groups > 1:
        yield group_test(s, groups, near, ratio, why)


def group_test(s: Site, groups: int, near: int, ratio: float, why: str) -> Test:
    """All-reduce between groups of `near` nodes or racks, across the spines: every pair of few
    groups; all pairs of many would take longer than they tell, and neighbours at distances 1, 2, 4,
    ... cross every spine."""
    cluster = s.cluster
    unit = joined_devices(cluster)
    wide = groups * near * unit > (cluster.pod_devices or cluster.devices)
    across = wide and cluster.oversubscription > 1
    if groups <= GROUPS:
        which = "every pair of"
        rounds = groups - 1
    else:
        which = "pairs at distances 1, 2, 4, … of"
        rounds = 2 * int(np.ceil(np.log2(groups)))
    what = f"{which} the {groups} groups: spines and what lies above them"
    if across:
        what += f"; {cluster.oversubscription:g}:1 between pods counted"
    return ring_test(
        s,
        "groups",
        what,
        scope="each pair of groups",
        ranks=near * 2 * unit,
        inside=unit,
        ratio=ratio,
        why=why,
        rounds=rounds,
        share=1 / cluster.oversubscription if across else 1.0,
    )


def job_test(s: Site) -> Test:
    """The job itself on synthetic data."""
    schedule = SCHEDULE_NAMES[int(s.case.plan.schedule)]
    return _test(
        s,
        "the job itself",
        f"the real configuration on synthetic data ({schedule}), 100 steps or 4 h",
        tool="the training script",
        scope="all nodes and spares in turn",
        expected=s.a.model_tflops_per_device * 1e12,
        ratio=s.step_s / s.a.step_s_high,
        seconds=max(4 * HOUR_S, 100 * s.step_s),
        unit="FLOP/s per device",
        why=(
            "the lower edge of the 80 % band: below it something is wrong with the site, not with "
            "the estimate"
        ),
        expected_from="the estimate",
    )


def slow_tier(
    case: Cases, nodes: int, tier: Literal["scale-up", "scale-out"], limits: tuple[float, float]
) -> tuple[float, str]:
    """(ratio, why): how slow the slowest link of a tier may be before it costs the job more than a
    node costs, within published limits."""
    link = slowed_link(case.link, tier)
    slowed = step_time(replace(case, link=link)).total / step_time(case).total
    node = 1 / nodes
    break_even = float(np.where(slowed - 1 > node, RATIOS, 0.0).max())
    low, high = limits
    ratio = min(max(break_even, low), high)
    why = "the step hides even a slow link"
    if break_even > 0:
        why = (
            f"below {break_even:.2f} of its rate one slow link costs the job more than a node "
            f"({node:.2%})"
        )
    if break_even == ratio:
        return ratio, why
    if ratio == low:
        return ratio, f"{why}; {ratio:.2f} is the loosest published acceptance"
    return ratio, f"{why}; {ratio:.3f} is the tightest published acceptance"


def slowed_link(link: Link, tier: Literal["scale-up", "scale-out"]) -> Link:
    """The links with those of a tier slowed by each of RATIOS."""
    if tier == "scale-up":
        return replace(link, up_bytes_per_s=link.up_bytes_per_s * RATIOS)
    return replace(link, out_bytes_per_s=link.out_bytes_per_s * RATIOS)


def all_reduce_rates(
    cluster: Cluster, ranks: int, inside: int, share: float = 1.0
) -> tuple[Rate, ...]:
    """Expected bus bandwidth of an all-reduce by message size, `inside` of its ranks in a domain,
    by the kit's curves of collectives."""
    wires = curves.wires(cluster, ranks, inside, share)
    seconds = curves.fastest("all_reduce", SIZES, wires)
    bus = curves.volume("all_reduce", float(ranks)) * SIZES / seconds
    return tuple(
        Rate(message_bytes=size, busbw_bytes_per_s=rate)
        for size, rate in zip(SIZES.tolist(), bus.tolist())
    )


@record
class Acceptance:
    """A published acceptance test: the least that it accepts of a rated figure, both in the unit
    printed there."""

    accelerator: str
    test: str
    value: float
    rated: float
    source: str


@cache
def _acceptance() -> tuple[Acceptance, ...]:
    return tuple(
        Acceptance(
            accelerator=row["accelerator"],
            test=row["test"],
            value=float(row["value"]),
            rated=float(row["rated"]),
            source=row["source"],
        )
        for row in catalogue.read(catalogue.HERE / "acceptance.csv")
    )


def accepted(accelerator: str, test: str) -> Acceptance | None:
    """The published acceptance test of an accelerator (a row of catalogue/acceptance.csv), None
    where there is none."""
    rows = (x for x in _acceptance() if x.accelerator == accelerator and x.test == test)
    return next(rows, None)


def acceptance_limits(test: str) -> tuple[float, float]:
    """Loosest and tightest published acceptance of a test, as shares of what a sound part
    reaches."""
    if test == "node all-reduce":
        return CONSTANTS.node_accept_low, CONSTANTS.node_accept_high
    shares = [x.value / x.rated for x in _acceptance() if x.test == test]
    return min(shares), max(shares)


def ring_of_two_links(cluster: Cluster) -> tuple[float, str]:
    """(bytes/s, source): bus bandwidth of a ring on a torus, which has two of a chip's links, one
    to each neighbour, whatever the chip has in all."""
    link = catalogue.fabric(cluster.scale_up).p2p_bytes_per_s
    return (
        2 * link * cluster.scale_up_efficiency,
        "two links of a chip x the catalogue's efficiency",
    )


def node_busbw(cluster: Cluster) -> tuple[float, str]:
    """(bytes/s, source): bus bandwidth of a large all-reduce in one node: the best published curve
    of the accelerator, else the kit's curve."""
    n = cluster.devices_per_node
    published = [
        (float(max(x.busbw_bytes_per_s)), x.source)
        for x in catalogue.collective_series().values()
        if x.accelerator == cluster.accelerator.id
        and x.collective == "all_reduce"
        and x.nvlink_domains == 1
        and x.devices == n
    ]
    if published:
        return max(published, key=lambda x: x[0])
    if is_torus(cluster):
        return ring_of_two_links(cluster)
    return all_reduce_rates(cluster, n, n)[-1]["busbw_bytes_per_s"], BY_CURVES


def _seconds(message_bytes: float, ranks: int, busbw: float) -> float:
    """ROUNDS all-reduces of a message: 2 (n - 1) / n x bytes / bus bandwidth each [s]."""
    return ROUNDS * 2 * (ranks - 1) / ranks * message_bytes / busbw + START_S
