"""Before the run: what each device, link and pair must show, the threshold to evict at, the
straggler screen, the numerical smoke test. Words stand in tables/burn_in.yaml."""

from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss
from scantling import catalogue
from scantling.base.records import Known, Lines, Record, Rows, record
from scantling.base.stats import quantile
from scantling.base.units import DAY_S, HOUR_S
from scantling.physics import collectives as curves
from scantling.physics.pipeline import SCHEDULE_NAMES
from scantling.physics.step import step_time

from ..network.build import cards
from ..network.traffic import trust
from ..placement import blocks
from ..site import Site, is_torus
from ..texts import columns, constant, fill, number, rows, source, texts

# standard deviations between the whiskers of a normal box plot (quartiles +- 1.5 ranges)
WHISKERS = 2 * 2.698
CUTS = np.concatenate([[0.0], np.geomspace(1e-5, 0.2, 120)])
RATIOS = np.linspace(0.2, 1.0, 81)
GROUPS = 32  # groups of nodes under one leaf that are tested every pair of; beyond that neighbours
ROUNDS = 25  # iterations of one nccl-tests point: 5 to warm up, 20 counted
SIZES = np.array([1e6, 64e6, 1e9, 16e9])
LARGE = 16e9
START_S = 10.0  # processes and communicators of one small test
SMOKE_STEPS = 300
BY_CURVES = "the kit's curves of collectives"
ACCEPTED = "published acceptance test"


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
    by_size: Rows = ()  # {message_bytes, busbw_bytes_per_s} expected


@record
class Screen(Record):
    """The straggler screen: where to cut, what it costs and what it brings. Shares of the step or
    of the nodes."""

    spread: float  # standard deviation of one device's time over its mean, unscreened
    spread_from: str
    spread_in_the_estimate: float
    slow_share: float  # machines that are outliers
    slow_by: float
    waits_unscreened: float  # step time lost to the slowest device, no screen
    cut: float  # share of nodes to return
    percentile: float  # 100 (1 - cut): of a node's slowest device
    evict_slower_than: float  # its time over the mean of all devices
    nodes_cut: int
    waits_screened: float
    gain: float  # of the step
    usd_cost: Known  # of the nodes held beyond the job for as long as the run
    usd_gain: Known
    curve: Rows
    lines: Lines = ()


def tools(vendor: str) -> dict:
    """Tools for a vendor's devices: a row of tables/tools.csv."""
    return next(row for row in rows("tools") if row["vendor"] in vendor.lower())


def burn_in(s: Site) -> tuple:
    """Tests of memory, matrix products, scale-up links, host links, cards, rails, pairs and the
    whole, in the order to run them.

    Expected rate: a published nccl-tests curve of this accelerator where there is one, else the
    kit's curves of collectives (`curves.fastest`). A part is judged against the median of its kind
    on the day; the median against the expected (`fleet_within`). evict_below = expected x ratio.
    ratio: where keeping a slow link costs the job more than a node of the cluster costs, 1 / nodes
    (the ring goes at its slowest link: `step_time` with that tier slowed), but never laxer than the
    loosest nor stricter than the tightest published acceptance test (catalogue/acceptance.csv).
    """
    parts = device_tests, scale_up_tests, scale_out_tests, job_test
    return tuple(test for part in parts for test in part(s))


def _test(s: Site, id: str, expected: float, ratio: float, seconds: float, **values) -> Test:
    """One test: its words of tables/burn_in.yaml filled with `values`, or taken from them."""
    row = {
        "unit": "bytes/s",
        "tool": "rings",
        "id": id,
        "expected": expected,
        "evict_below": expected * ratio,
        "ratio": ratio,
        "seconds": seconds,
        "usd": s.run.usd(seconds / DAY_S),
        **fill(texts("burn_in", id), s, **values),
        **values,
    }
    row["tool"] = tools(s.cluster.accelerator.vendor).get(row["tool"], row["tool"])
    return Test(**{k: row[k] for k in Test.__dataclass_fields__ if k in row})


def device_tests(s: Site):
    """Matrix products, memory and host link of each device."""
    chip = s.case.chip
    constants = s.case.constants
    ratio = 1 / (1 + 2.0 * spread())
    yield _test(s, "matrix products", constants.gemm * chip.bf16_flops, ratio, 600.0)
    yield _test(s, "device memory", constants.hbm_share * chip.hbm_bytes_per_s, ratio, 300.0)
    host = accepted(s.cluster.accelerator.id, "host copy")
    if host is not None:
        yield _test(
            s,
            "host link",
            host["rated"] * 1e9,
            host["value"] / host["rated"],
            60.0,
            expected_from=host["source"],
        )


def ring_test(
    s: Site,
    id: str,
    ranks: int,
    inside: int,
    ratio: float,
    why: str,
    *,
    rounds=1,
    share=1.0,
    shown=None,
    floor=0.0,
    **values,
) -> Test:
    """All-reduce over so many ranks, `inside` of them in a domain: the published rate where
    `shown` has one, never below the accepted `floor`."""
    sizes = all_reduce_rates(s.cluster, ranks, inside, share)
    rate, where = shown or (sizes[-1]["busbw_bytes_per_s"], BY_CURVES)
    off = {row["tier"]: row["large_error"] for row in trust(s.cluster)}
    error = off["scale-up" if ranks <= inside else "scale-out"]
    return _test(
        s,
        id,
        rate,
        max(ratio, floor / rate),
        rounds * _seconds(LARGE, ranks, rate),
        message_bytes=LARGE,
        why=why if floor < ratio * rate else ACCEPTED,
        expected_from=where,
        rounds=rounds,
        # of the fabrics judged, where this one is not
        fleet_within=constant("unjudged") if error is None else error,
        by_size=sizes,
        **values,
    )


def scale_up_tests(s: Site):
    """All-reduce over a node, the axes of a torus, an NVLink rack."""
    cluster = s.cluster
    n = s.per_node
    ratio, why = slow_tier(s.case, s.nodes, "up_bytes_per_s", acceptance_limits("node all-reduce"))
    if s.torus and s.nodes > 1:
        rate, where = ring_of_two_links(cluster)
        what = fill(texts("burn_in", "node all-reduce", "what torus"), devices=n)
        for id, rounds, own in (("node all-reduce", 1, {"what": what}), ("torus axes", 3, {})):
            yield _test(
                s,
                id,
                rate,
                ratio,
                60.0 * rounds,
                rounds=rounds,
                message_bytes=1e9,
                why=why,
                expected_from=where,
                devices=n,
                **own,
            )
    elif n > 1:
        own = accepted(cluster.accelerator.id, "node all-reduce")
        best = node_busbw(cluster)
        yield ring_test(
            s,
            "node all-reduce",
            n,
            n,
            ratio,
            why,
            shown=best,
            floor=min(own["value"] * 1e9, 0.98 * best[0]) if own else 0.0,
            devices=n,
        )
    unit = joined_devices(cluster)
    if unit > n:
        yield ring_test(s, "rack all-reduce", unit, unit, ratio, why, devices=unit)


def joined_devices(cluster) -> int:
    """Devices that a rack or node joins."""
    return max(0 if is_torus(cluster) else cluster.scale_up_domain, cluster.devices_per_node)


def scale_out_tests(s: Site):
    """Cards, pairs of nodes or racks under the same leaves, groups of such across the spines."""
    cluster = s.cluster
    unit = joined_devices(cluster)
    units = -(-cluster.devices // unit)
    if units < 2 or s.torus:
        return
    ratio, why = slow_tier(s.case, s.nodes, "out_bytes_per_s", acceptance_limits("card to card"))
    yield _test(
        s,
        "card to card",
        cards(cluster)[1],
        min(ratio, constant("node_accept_high")),
        60.0,
        why=why,
        rounds=2,
    )
    near = max(2, blocks(cluster)[0] // unit)
    many = min(units, near)
    groups = -(-units // near)
    pair = 2 * unit
    yield ring_test(
        s,
        "pairs",
        pair,
        unit,
        ratio,
        why,
        rounds=many - 1,
        many=many,
        name="racks" if unit > s.per_node else "nodes",
    )
    if groups > 1:
        wide = groups * near * unit > (cluster.pod_devices or cluster.devices)
        across = wide and cluster.oversubscription > 1
        few = groups <= GROUPS
        table = texts("burn_in", "groups")
        yield ring_test(
            s,
            "groups",
            near * pair,
            unit,
            ratio,
            why,
            # all pairs of many groups would take longer than they tell: neighbours at distances
            # 1, 2, 4, ... cross every spine
            rounds=groups - 1 if few else 2 * int(np.ceil(np.log2(groups))),
            share=1 / cluster.oversubscription if across else 1.0,
            which=table["all pairs" if few else "neighbours"],
            groups=groups,
            across=fill(table["across"], s) if across else "",
        )


def job_test(s: Site):
    """The job itself on synthetic data."""
    yield _test(
        s,
        "the job itself",
        s.figures["model_tflops_per_device"] * 1e12,
        s.step_s / s.figures["step_s_high"],
        max(4 * HOUR_S, 100 * s.step_s),
        schedule=SCHEDULE_NAMES[s.case.plan.schedule],
    )


def slow_tier(case, nodes: int, field: str, limits: tuple) -> tuple:
    """(ratio, why): how slow the slowest link of a tier may be before it costs the job more than a
    node costs, within published limits."""
    link = replace(case.link, **{field: getattr(case.link, field) * RATIOS})
    slowed = step_time(replace(case, link=link)).total / step_time(case).total
    node = 1 / nodes
    own = (RATIOS * (slowed - 1 > node)).max()
    low, high = limits
    ratio = np.clip(own, low, high)
    words = texts("burn_in", "slow link")
    why = fill(words["costs" if own > 0 else "hides"], own=own, node=node)
    bound = "" if own == ratio else words["loosest" if ratio == low else "tightest"]
    return ratio, why + fill(bound, ratio=ratio)


def all_reduce_rates(cluster, ranks: int, inside: int, share: float = 1.0) -> Rows:
    """Expected bus bandwidth of an all-reduce by message size, `inside` of its ranks in a domain,
    by the kit's curves of collectives."""
    wires = curves.wires(cluster, ranks, inside, share)
    seconds = curves.fastest("all_reduce", SIZES, wires)
    bus = curves.volume("all_reduce", float(ranks)) * SIZES / seconds
    return columns(message_bytes=SIZES, busbw_bytes_per_s=bus)


@cache
def _acceptance() -> Rows:
    rows = catalogue.read(catalogue.HERE / "acceptance.csv")
    return tuple(r | {k: float(r[k]) for k in ("value", "rated")} for r in rows)


def accepted(accelerator: str, test: str) -> dict | None:
    """The published acceptance test of an accelerator (a row of catalogue/acceptance.csv), None
    where there is none."""
    wanted = accelerator, test
    return next((r for r in _acceptance() if (r["accelerator"], r["test"]) == wanted), None)


def acceptance_limits(test: str) -> tuple:
    """Loosest and tightest published acceptance of a test, as shares of what a sound part
    reaches."""
    if test == "node all-reduce":
        return constant("node_accept_low"), constant("node_accept_high")
    shares = [r["value"] / r["rated"] for r in _acceptance() if r["test"] == test]
    return min(shares), max(shares)


def ring_of_two_links(cluster) -> tuple:
    """(bytes/s, source): bus bandwidth of a ring on a torus, which has two of a chip's links, one
    to each neighbour, whatever the chip has in all."""
    return (
        2 * catalogue.fabric(cluster.scale_up).p2p_bytes_per_s * cluster.scale_up_efficiency,
        "two links of a chip x the catalogue's efficiency",
    )


def node_busbw(cluster) -> tuple:
    """(bytes/s, source): bus bandwidth of a large all-reduce in one node: the best published curve
    of the accelerator, else the kit's curve."""
    wanted = cluster.accelerator.id, "all_reduce", 1, cluster.devices_per_node
    published = [
        (max(x.busbw_bytes_per_s), x.source)
        for x in catalogue.collective_series().values()
        if (x.accelerator, x.collective, x.nvlink_domains, x.devices) == wanted
    ]
    if published:
        return max(published, key=lambda x: x[0])
    if is_torus(cluster):
        return ring_of_two_links(cluster)
    return all_reduce_rates(cluster, cluster.devices_per_node, cluster.devices_per_node)[-1][
        "busbw_bytes_per_s"
    ], BY_CURVES


def _seconds(message_bytes: float, ranks: int, busbw: float) -> float:
    """ROUNDS all-reduces of a message: 2 (n - 1) / n x bytes / bus bandwidth each [s]."""
    return ROUNDS * 2 * (ranks - 1) / ranks * message_bytes / busbw + START_S


def spread() -> float:
    """Standard deviation of the times of equal devices over their mean (SC'22)."""
    return number("R153") / 100 / WHISKERS


NODES, WEIGHTS = leggauss(120)


def truncated_max(n, keep):
    """Expected maximum of n standard normal values below their `keep` quantile [standard
    deviations]: integral of Phi^-1(keep u^(1/n)) du."""
    low, high = np.log([1e-10, 50.0])
    half = (high - low) / 2
    y = np.exp(low + (NODES + 1) * half)  # u = exp(-y), so u^(1/n) = exp(-y / n)
    weight = WEIGHTS * half * y * np.exp(-y)
    beyond = -np.expm1(np.log(keep)[..., None] - y / n)  # 1 - keep u^(1/n)
    return (-quantile(beyond) * weight).sum(axis=-1)


@lru_cache(maxsize=256)
def slowest_kept(n: int, per_node: int) -> tuple:
    """(quantile below which devices are kept, `truncated_max` of n of them) at each of CUTS."""
    keep = np.minimum((1 - CUTS) ** (1 / per_node), 1 - 1e-15)
    return keep, truncated_max(n, keep)


def screen(s: Site) -> Screen:
    """Where to cut slow nodes before the run, so that what is paid for a useful step is least.

    Device times normal with the spread that equal devices showed (SC'22: 8 % between whiskers, 5.4
    standard deviations), and a share of machines 10 % slower on top (MegaScale). The step waits for
    the slowest of n devices: 1 + sd x E[max]. Returning the share q of the nodes, by each node's
    slowest device, truncates the devices at Phi^-1((1 - q)^(1 / devices per node)) and holds q more
    nodes; the cut minimises (1 + sd x E[max | cut]) / (1 - q). Independent and normal; heat in one
    row is correlated and is found by position.
    """
    used = s.used
    nodes = s.used_nodes
    sd = spread()
    slow_share = number("R155") / 100
    slow_by = number("R156") / 100
    keep, slowest = slowest_kept(used, s.per_node)
    waits = np.maximum(sd * slowest, 0)
    cost = (1 + waits) / (1 - CUTS)
    best = np.argmin(cost)
    hit = 1 - (1 - slow_share) ** nodes  # chance that one of the slow machines is among them
    alone = truncated_max(max(used, 2), 1.0)
    base = hit * max(slow_by, alone * sd) + (1 - hit) * alone * sd
    cut = CUTS[best] + slow_share
    left = waits[best]
    expected = nodes * cut / (1 - cut)
    share = s.figures["step_breakdown_s"]["straggler"] / s.step_s
    found = Screen(
        spread=sd,
        spread_from=source("R153"),
        spread_in_the_estimate=share / alone,
        slow_share=slow_share,
        slow_by=slow_by,
        waits_unscreened=base,
        cut=cut,
        percentile=100 * (1 - cut),
        evict_slower_than=min(quantile(keep[best]) * sd, (left + slow_by) / 2),
        nodes_cut=int(np.ceil(expected)),
        waits_screened=left,
        gain=base - left,
        usd_cost=s.run.usd(s.run.days * expected / nodes),
        usd_gain=s.run.usd(s.run.days * (base - left) / (1 + base)),
        curve=columns(cut=CUTS[::10], waits=waits[::10], paid_per_step=cost[::10]),
    )
    return replace(
        found,
        lines=fill(
            texts("burn_in", "screen"),
            found,
            used=used,
            nodes=nodes,
            expected=expected,
            share=share,
        ),
    )


def smoke(s: Site) -> dict:
    """The numerical smoke test as data: what to run, on how many devices, for how long, what must
    hold.

    First loss: ln(vocabulary), the entropy of a model that knows nothing. Agreement of layouts:
    bf16 rounds to 2^-9, and errors of 2 L residual additions add as a random walk, 2^-9 sqrt(2 L).
    A resume from a save must repeat the losses bit for bit.
    """
    first = np.log(s.model.vocab)
    seconds = SMOKE_STEPS * s.step_s
    devices = s.replica * s.tied_replicas
    return {
        "devices": devices,
        "steps": SMOKE_STEPS,
        "seconds": seconds,
        "usd": s.run.usd(seconds / DAY_S * devices / s.used),
        "first_loss": first,
        "first_loss_tolerance": 0.05 * first,
        "layouts_agree_within": 2.0**-9 * np.sqrt(2 * s.model.layers),
        "checks": fill(texts("burn_in", "smoke"), steps=SMOKE_STEPS),
    }
