"""Before the run: what each device, link and pair must show, the threshold to evict at, the
straggler screen, the numerical smoke test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ... import catalogue
from ...base.records import Record
from ...base.units import DAY_S, HOUR_S
from ...physics.pipeline import SCHEDULE_NAMES
from ...physics.step import step_time
from ..placement import blocks
from ..record import Run, is_torus, number, source

WHISKERS = (
    2 * 2.698
)  # standard deviations between the whiskers of a normal box plot (quartiles +- 1.5 ranges)
CUTS = np.concatenate([[0.0], np.geomspace(1e-5, 0.2, 120)])
RATIOS = np.linspace(0.2, 1.0, 81)
GROUPS = 32  # groups of nodes under one leaf that are tested every pair of; beyond that neighbours
ROUNDS = 25  # iterations of one nccl-tests point: 5 to warm up, 20 counted
SIZES = np.array([1e6, 64e6, 1e9, 16e9])
# median error that the curves stay within from 64 MB on, where the fabric itself has no published
# series
UNJUDGED = 0.15
START_S = 10.0  # processes and communicators of one small test
SMOKE_STEPS = 300


@dataclass(frozen=True)
class Test(Record):
    """One burn-in test with what a sound part shows and the threshold that evicts it. Rates in
    `unit`."""

    __test__ = False

    id: str
    what: str
    tool: str
    scope: str
    message_bytes: float | None
    expected: float
    evict_below: float
    ratio: float  # evict_below / expected
    unit: str
    why: str
    expected_from: str
    rounds: int
    seconds: float
    usd: float | None
    fleet_within: float | None = (
        None  # the median of all parts lies this near the expected, else the whole site is wrong
    )
    by_size: tuple[dict, ...] = ()  # {message_bytes, busbw_bytes_per_s} expected


@dataclass(frozen=True)
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
    usd_cost: float | None  # of the nodes held beyond the job for as long as the run
    usd_gain: float | None
    curve: tuple[dict, ...]
    lines: tuple[str, ...]


# what a vendor's own devices are tested with: products, memory, host link, cards, collectives
TOOLS = {
    "NVIDIA": (
        "mamf-finder, gpu-burn",
        "nvbandwidth, dcgmi diag -r 3",
        "nvbandwidth",
        "ib_write_bw --use_cuda",
        "nccl-tests: all_reduce_perf -b 1M -e 16G -f 4",
    ),
    "AMD": (
        "mamf-finder, rocm-validation-suite",
        "babel stream, agfhc",
        "rocm_bandwidth_test",
        "ib_write_bw --use_rocm",
        "rccl-tests: all_reduce_perf -b 1M -e 16G -f 4",
    ),
    "Google": (
        "matrix-product microbenchmark of the framework",
        "copy microbenchmark of the framework",
        "transfer microbenchmark",
        "",
        "collective microbenchmarks of the framework",
    ),
    "AWS": (
        "matrix-product microbenchmark of the framework",
        "copy microbenchmark",
        "transfer microbenchmark",
        "fi_rdm_bw",
        "nccom-test allr",
    ),
    "Intel": (
        "matrix-product microbenchmark of the framework",
        "copy microbenchmark",
        "transfer microbenchmark",
        "ib_write_bw",
        "hccl_demo all_reduce",
    ),
}
ANY = (
    "matrix-product microbenchmark of the framework",
    "copy microbenchmark",
    "transfer microbenchmark",
    "ib_write_bw",
    "the vendor's own collective test",
)


def tools(vendor: str) -> tuple[str, ...]:
    """Tools for a vendor's devices, in the order of TOOLS."""
    return next(
        (
            t
            for name, t in TOOLS.items()
            if name.lower() in vendor.lower() or (name == "AWS" and "amazon" in vendor.lower())
        ),
        ANY,
    )


def burn_in(assessment, run: Run) -> tuple[Test, ...]:
    """Tests of memory, matrix products, scale-up links, host links, cards, rails, pairs and the
    whole, in the order to run them.

    Expected rate: a published nccl-tests curve of this accelerator where there is one, else the
    kit's curves of collectives
    (`curves.fastest`). A part is judged against the median of its kind on the day; the median
    against the expected (`fleet_within`).
    evict_below = expected x ratio. ratio: where keeping a slow link costs the job more than a node
    of the cluster costs, 1 / nodes (the
    ring goes at its slowest link: `step_time` with that tier slowed), but never laxer than the
    loosest nor stricter than the tightest
    published acceptance test (catalogue/acceptance.csv).
    """
    r, chosen = assessment.resolved, assessment.chosen
    cluster, c = r.cluster, chosen.case
    per_node, nodes = int(cluster.devices_per_node), int(cluster.nodes)
    usd = lambda seconds: run.usd(seconds / DAY_S)  # noqa: E731
    up_ratio, up_why = slow_tier(c, nodes, "up_bytes_per_s", acceptance_limits("node all-reduce"))
    out_ratio, out_why = slow_tier(c, nodes, "out_bytes_per_s", acceptance_limits("card to card"))
    gemm = float(c.constants.gemm) * float(c.chip.bf16_flops)
    cut_at, out = 1 / (1 + 2.0 * _spread()), []
    products, copies, host_copy, wire, rings = tools(cluster.accelerator.vendor)
    out.append(
        Test(
            "matrix products",
            "bf16 products of the plan's own shapes on every device, clocks and power watched",
            products,
            "each device",
            None,
            gemm,
            gemm * cut_at,
            cut_at,
            "FLOP/s",
            "two standard deviations of equal devices; the screen below cuts finer",
            "the kit's calibrated share of the peak",
            1,
            600.0,
            usd(600.0),
        )
    )
    hbm = float(c.constants.hbm_share) * float(c.chip.hbm_bytes_per_s)
    out.append(
        Test(
            "device memory",
            "copy and triad over all of the memory, error counters read after it",
            copies,
            "each device",
            None,
            hbm,
            hbm * cut_at,
            cut_at,
            "bytes/s",
            "as above",
            "the kit's calibrated share of the rate",
            1,
            300.0,
            usd(300.0),
        )
    )
    host = accepted(cluster.accelerator.id, "host copy")
    if host is not None:
        out.append(
            Test(
                "host link",
                "device to host and back, pinned; checkpoints ride on it",
                host_copy,
                "each device",
                None,
                float(host["rated"]) * 1e9,
                float(host["value"]) * 1e9,
                float(host["value"]) / float(host["rated"]),
                "bytes/s",
                "published acceptance test",
                host["source"],
                1,
                60.0,
                usd(60.0),
            )
        )
    off = _off(cluster)
    domain = int(cluster.scale_up_domain)
    unit = (
        domain if domain > per_node and not is_torus(cluster) else per_node
    )  # devices that a rack or node joins
    units = -(-int(cluster.devices) // unit)

    def collective(
        id, what, scope, ranks, inside, ratio, why, rounds, share=1.0, shown=None, floor=0.0
    ):
        sizes = _busbw(cluster, ranks, inside, share)
        rate, where = shown or (sizes[-1]["busbw_bytes_per_s"], "the kit's curves of collectives")
        limit = max(ratio * rate, floor)
        took = rounds * _seconds(16e9, ranks, rate)
        return Test(
            id,
            what,
            rings,
            scope,
            16e9,
            rate,
            limit,
            limit / rate,
            "bytes/s",
            why if floor < ratio * rate else "published acceptance test",
            where,
            rounds,
            took,
            usd(took),
            off["scale-up" if ranks <= inside else "scale-out"],
            sizes,
        )

    if is_torus(cluster) and nodes > 1:
        for id, what, scope, rounds in (
            (
                "node all-reduce",
                f"all-reduce over the {per_node} chips of a host, round their square",
                "each node",
                1,
            ),
            (
                "torus axes",
                "all-reduce along each axis of the slice, both ways round",
                "each axis",
                3,
            ),
        ):
            rate, where = ring_of_two_links(cluster)
            out.append(
                Test(
                    id,
                    what,
                    rings,
                    scope,
                    1e9,
                    rate,
                    rate * up_ratio,
                    up_ratio,
                    "bytes/s",
                    up_why,
                    where,
                    rounds,
                    rounds * 60.0,
                    usd(rounds * 60.0),
                )
            )
    elif per_node > 1:
        own = accepted(cluster.accelerator.id, "node all-reduce")
        best = node_busbw(cluster)
        floor = min(float(own["value"]) * 1e9, 0.98 * best[0]) if own else 0.0
        out.append(
            collective(
                "node all-reduce",
                f"bus bandwidth of the {per_node} devices of a node",
                "each node",
                per_node,
                per_node,
                up_ratio,
                up_why,
                1,
                shown=best,
                floor=floor,
            )
        )
    if unit > per_node:
        out.append(
            collective(
                "rack all-reduce",
                f"bus bandwidth of the {unit} devices of an NVLink rack",
                "each rack",
                unit,
                unit,
                up_ratio,
                up_why,
                1,
            )
        )
    if units > 1 and not is_torus(cluster):
        port = cluster.scale_out_bytes_per_s * per_node / max(1, cluster.nics_per_node)
        card = port * min(max(out_ratio, acceptance_limits("card to card")[0]), 0.975)
        out.append(
            Test(
                "card to card",
                (
                    f"RDMA write of each of {cluster.nics_per_node} cards to the same rail "
                    f"of the next node"
                ),
                wire,
                "each card",
                None,
                port,
                card,
                card / port,
                "bytes/s",
                out_why,
                "line rate",
                2,
                60.0,
                usd(60.0),
            )
        )
        near = max(2, blocks(assessment)[0] // unit)
        groups = -(-units // near)
        name = "racks" if unit > per_node else "nodes"
        rounds = min(units, near) - 1
        out.append(
            collective(
                "pairs",
                (
                    f"every pair of the {min(units, near)} {name} under the same leaves, all "
                    f"leaves at once, every rail"
                ),
                "each pair",
                2 * unit,
                unit,
                out_ratio,
                out_why,
                rounds,
            )
        )
        if groups > 1:
            across = (
                groups * near * unit > (cluster.pod_devices or cluster.devices)
                and cluster.oversubscription > 1
            )
            many = (
                groups > GROUPS
                # all pairs would take longer than they tell: neighbours at distances 1, 2, 4, ...
                # cross
                # every spine
            )
            rounds = 2 * int(np.ceil(np.log2(groups))) if many else groups - 1
            what = (
                f"{'pairs at distances 1, 2, 4, … of' if many else 'every pair of'} the "
                f"{groups} groups: spines and what lies above them"
            ) + (f"; {cluster.oversubscription:g}:1 between pods counted" if across else "")
            out.append(
                collective(
                    "groups",
                    what,
                    "each pair of groups",
                    2 * near * unit,
                    unit,
                    out_ratio,
                    out_why,
                    rounds,
                    share=1 / cluster.oversubscription if across else 1.0,
                )
            )
    step = assessment.step_s
    whole = max(4 * HOUR_S, 100 * step)
    flops = assessment.figures["model_tflops_per_device"] * 1e12
    low = assessment.figures["step_s"] / assessment.figures["step_s_high"]
    out.append(
        Test(
            "the job itself",
            (
                f"the real configuration on synthetic data "
                f"({SCHEDULE_NAMES[int(c.plan.schedule)]}), 100 steps or 4 h"
            ),
            "the training script",
            "all nodes and spares in turn",
            None,
            flops,
            flops * low,
            low,
            "FLOP/s per device",
            (
                "the lower edge of the 80 % band: below it something is wrong with the "
                "site, not with the estimate"
            ),
            "the estimate",
            1,
            whole,
            usd(whole),
        )
    )
    return tuple(out)


def slow_tier(case, nodes: int, field: str, limits: tuple[float, float]) -> tuple[float, str]:
    """(ratio, why): how slow the slowest link of a tier may be before it costs the job more than a
    node costs, within published limits."""
    link = replace(case.link, **{field: getattr(case.link, field) * RATIOS})
    loss = (
        np.broadcast_to(step_time(replace(case, link=link)).total, RATIOS.shape)
        / float(step_time(case).total)
        - 1
    )
    worse = RATIOS[loss > 1 / max(nodes, 1)]
    own = float(worse.max()) if len(worse) else 0.0
    low, high = limits
    ratio = min(max(own, low), high)
    what = (
        (
            f"below {own:.2f} of its rate one slow link costs the job more than a node "
            f"({1 / max(nodes, 1):.2%})"
        )
        if own > 0
        else "the step hides even a slow link"
    )
    why = (
        what
        if own == ratio
        else what
        + (
            f"; {low:.2f} is the loosest published acceptance"
            if ratio == low
            else f"; {high:.3f} is the tightest published acceptance"
        )
    )
    return ratio, why


def _busbw(cluster, ranks: int, inside: int, share: float) -> tuple[dict, ...]:
    """Expected bus bandwidth of an all-reduce by message size, by the kit's curves of
    collectives."""
    from ...physics import curves

    bus = (
        curves.volume("all_reduce", float(ranks))
        * SIZES
        / curves.fastest("all_reduce", SIZES, curves.wires(cluster, ranks, inside, share))
    )
    return tuple(
        dict(message_bytes=float(size), busbw_bytes_per_s=float(rate))
        for size, rate in zip(SIZES, bus)
    )


def _off(cluster) -> dict[str, float]:
    """How far the curves were off on published series of such fabrics, by tier; of the fabrics
    judged where this one is not."""
    from ..network.traffic import trust

    return {
        row["tier"]: row["large_error"] if row["large_error"] is not None else UNJUDGED
        for row in trust(cluster)
    }


@cache
def _acceptance() -> tuple[dict, ...]:
    return tuple(catalogue.read(catalogue.HERE / "acceptance.csv"))


def accepted(accelerator: str, test: str) -> dict | None:
    """The published acceptance test of an accelerator (a row of catalogue/acceptance.csv), None
    where there is none."""
    return next(
        (row for row in _acceptance() if row["accelerator"] == accelerator and row["test"] == test),
        None,
    )


def acceptance_limits(test: str) -> tuple[float, float]:
    """Loosest and tightest published acceptance of a test, as shares of what a sound part
    reaches."""
    if test == "node all-reduce":
        return (
            0.95,
            0.975,
            # published thresholds against the published curves of the same parts: 460 of 479, 228
            # of
            # 235
        )
    shares = [float(r["value"]) / float(r["rated"]) for r in _acceptance() if r["test"] == test]
    return min(shares), max(shares)


def ring_of_two_links(cluster) -> tuple[float, str]:
    """(bytes/s, source): bus bandwidth of a ring on a torus, which has two of a chip's links, one
    to each neighbour, whatever the chip has in all."""
    return (
        2 * catalogue.fabric(cluster.scale_up).p2p_bytes_per_s * cluster.scale_up_efficiency,
        "two links of a chip x the catalogue's efficiency",
    )


def node_busbw(cluster) -> tuple[float, str]:
    """(bytes/s, source): bus bandwidth of a large all-reduce in one node: the best published curve
    of the accelerator, else the kit's curve."""
    best = None
    for series in catalogue.collective_series().values():
        if (
            series.accelerator == cluster.accelerator.id
            and series.collective == "all_reduce"
            and series.nvlink_domains == 1
            and series.devices == cluster.devices_per_node
        ):
            top = max(series.busbw_bytes_per_s)
            best = (top, series.source) if best is None or top > best[0] else best
    per = int(cluster.devices_per_node)
    if best is None and is_torus(cluster):
        return ring_of_two_links(cluster)
    return best or (
        _busbw(cluster, per, per, 1.0)[-1]["busbw_bytes_per_s"],
        "the kit's curves of collectives",
    )


def _seconds(message_bytes: float, ranks: int, busbw: float) -> float:
    """ROUNDS all-reduces of a message: 2 (n - 1) / n x bytes / bus bandwidth each [s]."""
    return ROUNDS * 2 * (ranks - 1) / ranks * message_bytes / max(busbw, 1.0) + START_S


def _spread() -> float:
    return number("R153") / 100 / WHISKERS


@cache
def _gauss():
    return np.polynomial.legendre.leggauss(120)


def truncated_max(n, keep):
    """Expected maximum of n standard normal values below their `keep` quantile [standard
    deviations]: integral of Phi^-1(keep u^(1/n)) du."""
    from scipy.special import ndtri

    keep = np.asarray(keep, float)
    x, w = _gauss()
    t = np.log(1e-10) + (x + 1) / 2 * (np.log(50.0) - np.log(1e-10))
    y = np.exp(t)  # u = exp(-y), so u^(1/n) = exp(-y / n)
    weight = w / 2 * (np.log(50.0) - np.log(1e-10)) * y * np.exp(-y)
    beyond = -np.expm1(np.log(keep)[..., None] - y / n)  # 1 - keep u^(1/n)
    return (-ndtri(beyond) * weight).sum(axis=-1)


def screen(assessment, run: Run) -> Screen:
    """Where to cut slow nodes before the run, so that what is paid for a useful step is least.

    Device times normal with the spread that equal devices showed (SC'22: 8 % between whiskers, 5.4
    standard deviations), and a share of
    machines 10 % slower on top (MegaScale). The step waits for the slowest of n devices: 1 + sd x
    E[max]. Returning the share q of the
    nodes, by each node's slowest device, truncates the devices at Phi^-1((1 - q)^(1 / devices per
    node)) and holds q more nodes; the cut
    minimises (1 + sd x E[max | cut]) / (1 - q). Independent and normal; heat in one row is
    correlated and is found by position.
    """
    r = assessment.resolved
    used, per_node = int(assessment.figures["devices_used"]), int(r.cluster.devices_per_node)
    nodes, spread = -(-used // per_node), _spread()
    slow_share, slow_by = number("R155") / 100, number("R156") / 100
    from scipy.special import ndtri

    keep = np.clip((1 - CUTS) ** (1 / per_node), 0.0, 1 - 1e-15)
    waits = spread * truncated_max(used, keep)
    cost = (1 + np.maximum(waits, 0)) / (1 - CUTS)
    best = int(np.argmin(cost))
    hit = 1 - (1 - slow_share) ** nodes  # chance that one of the slow machines is among them
    alone = max(float(truncated_max(max(used, 2), 1.0)), 1e-9)
    base = hit * max(slow_by, alone * spread) + (1 - hit) * alone * spread
    cut = float(CUTS[best] + slow_share)
    left = float(max(waits[best], 0.0))
    gain = base - left
    expected = nodes * cut / (1 - cut)
    held = int(np.ceil(expected))
    share = assessment.figures["step_breakdown_s"]["straggler"] / assessment.figures["step_s"]
    sigma = min(float(ndtri(keep[best])) * spread, (left + slow_by) / 2)
    run_usd = run.usd(run.days)
    paid = None if run_usd is None else run_usd * expected / max(nodes, 1)
    won = None if run_usd is None else run_usd * gain / (1 + base)
    lines = (
        (
            f"cut the slowest {cut:.2%} of the nodes (about {expected:,.1f} of {nodes:,}): "
            f"those with a device {sigma:.1%} over the mean of all; {slow_share:.1%} are "
            f"machines that are {slow_by:.0%} slow"
        ),
        (
            f"the slowest of {used:,} devices costs {base:.1%} of every step unscreened, "
            f"{left:.1%} screened; {share:.1%} is in the estimate"
        ),
    )
    curve = tuple(
        dict(cut=float(q), waits=float(max(w, 0)), paid_per_step=float(x))
        for q, w, x in zip(CUTS[::10], waits[::10], cost[::10])
    )
    return Screen(
        spread,
        source("R153"),
        share / alone,
        slow_share,
        slow_by,
        base,
        cut,
        100 * (1 - cut),
        sigma,
        held,
        left,
        gain,
        paid,
        won,
        curve,
        lines,
    )


def smoke(assessment, run: Run) -> dict:
    """The numerical smoke test as data: what to run, on how many devices, for how long, what must
    hold.

    First loss: ln(vocabulary), the entropy of a model that knows nothing. Agreement of layouts:
    bf16 rounds to 2^-9, and errors of 2 L
    residual additions add as a random walk, 2^-9 sqrt(2 L). A resume from a save must repeat the
    losses bit for bit.
    """
    plan, model = assessment.chosen.plan, assessment.resolved.model
    devices = plan["tp"] * plan["cp"] * plan["pp"]
    span = max(1, -(-plan["ep"] * plan["etp"] // (plan["tp"] * plan["cp"])))
    devices *= min(span, plan["dp"])
    seconds = SMOKE_STEPS * assessment.step_s
    share = devices / max(assessment.figures["devices_used"], 1)
    first = float(np.log(model.vocab))
    return dict(
        devices=int(devices),
        steps=SMOKE_STEPS,
        seconds=seconds,
        usd=run.usd(seconds / DAY_S * share),
        first_loss=first,
        first_loss_tolerance=0.05 * first,
        layouts_agree_within=2.0**-9 * float(np.sqrt(2 * model.layers)),
        checks=(
            "the first loss is ln(vocabulary)",
            f"the loss falls over {SMOKE_STEPS} steps and the gradient norm settles",
            "the same batch gives the same loss on one replica and on two",
            (
                "the same batch gives the same loss under tp 1 and the plan's tp, as far as "
                "rounding allows"
            ),
            "a resume from step 100 repeats steps 101 to 120 bit for bit",
            "every node computes one fixed product to the same bits (corruption screen)",
        ),
    )
