"""What the job asks of its scheduler, as data: gang, topology, spares, health checks. Field names
of the chosen system beside the meaning (tables/request.yaml)."""

from math import ceil, expm1

from scantling.base.records import Rows
from scantling.base.units import DAY_S
from scantling.endure.spares import segments

from ..fabric.build import cards
from ..facts import source
from ..placement import leaf_nodes
from ..rollout.burn_in import acceptance_limits, accepted, node_busbw
from ..rollout.watch import hang_timeout_s
from ..site import Site, pods_of
from ..texts import fill, rows, texts

LONGEST_JOB_S = 7 * DAY_S  # what clusters let one job run: judgement


def stop_lead_s(step_s: float, durable_s: float) -> int:
    """Seconds between the signal to stop and the end: three steps, twice a whole save, two minutes;
    at least ten minutes, whole ones."""
    return max(600, 60 * ceil((3 * step_s + 2 * durable_s + 120) / 60))


def kill_after_s(step_s: float, durable_s: float) -> int:
    """Seconds between SIGTERM and SIGKILL: a step and two whole saves, one to nine minutes."""
    return int(min(540, max(60, step_s + 2 * durable_s)))


BAD_START_S = 900  # a start that fails sooner has not begun to train: judgement


def early_failures(mtbf_s: float, run_s: float) -> int:
    """Failures in a row within BAD_START_S of a start that faults alone hardly explain.

    The least n with 2 x run_s / mtbf_s starts x p^n < 1 %, p = 1 - exp(-BAD_START_S / mtbf_s) the
    chance of a failure so early (failures without memory); 3 to 20.
    """
    p = -expm1(-BAD_START_S / mtbf_s)
    return next((n for n in range(3, 20) if 2 * run_s / mtbf_s * p**n < 0.01), 20)


def restarts_allowed(mtbf_s: float, run_s: float) -> int:
    """Restarts after failures that a job is allowed: twice those expected, 3 to 1,000."""
    return min(1000, max(3, ceil(2 * run_s / max(mtbf_s, 1.0))))


def request(s: Site, choice: str) -> dict:
    """Gang, topology, resources and time of one job: {gang, topology, resources, time, licences,
    identity, fields}.

    Segment: the ranks that talk most over the fast tier stay together. On an NVLink rack that is
    the domain's nodes (of a block of all its trays); on a torus the slice; else the nodes of the
    largest group among tp x cp, ep x etp and the shard group, at most those under one leaf
    (`placement.leaf_nodes`), that divides the job.
    """
    memory = s.cluster.host_memory_bytes
    topology = _topology(s)
    words = texts("request")
    days = s.figures["days_high"] or s.figures["days"]
    limit = days and days * DAY_S * 1.1
    unit = topology["unit"]
    stands = segments(s.cluster, s.used_nodes)
    covered = s.e.life.spares
    values = dict(
        topology=topology,
        cards=s.cluster.nics_per_node,
        least_ranks=s.used if s.plan["dp"] < 2 else s.used - s.replica,
        host_memory=memory if memory > 0 else None,
        limit_s=limit,
        store=s.cluster.storage or "superpod-better",
        replica_nodes=-(-s.replica // s.per_node),
        restarts=restarts_allowed(s.e.mtbf_s, s.run.days * DAY_S),
        signal=stop_lead_s(s.step_s, s.e.checkpoint_durable_s),
        minutes=limit and ceil(min(limit, LONGEST_JOB_S) / 60),
        **{name: unit == name for name in ("block", "slice", "leaf")},
        joint=unit != "slice",
        quota=s.used_nodes + int(stands.nodes(covered)),
        held=int(stands.group(covered)),
        loose=unit != "block",
    )
    fields = fill(words["fields"].get(words["spoken"].get(choice), []), s, **values)
    return {
        **fill(words["request"], s, **values),
        "fields": {name: value for part in fields for name, value in part.items()},
    }


def _topology(s: Site) -> dict:
    """Which nodes have to stand together: a row of tables/request.yaml by the kind of fabric."""
    plan = s.plan
    cluster = s.cluster
    nodes = s.used_nodes
    per_node = s.per_node
    group = max(
        plan["tp"] * plan["cp"],
        plan["ep"] * plan["etp"],
        plan["shard_group"] if plan["sharding"] == "hsdp" else 1,
    )
    domain = cluster.scale_up_domain
    ranks = nodes * per_node
    pods = pods_of(cluster, ranks)
    whole = max(cluster.accelerator.scale_up_domain_max, domain) // per_node
    leaf = leaf_nodes(cluster)
    leaves = -(-nodes // leaf)
    if s.torus:
        unit = "slice"
        segment = min(nodes, -(-domain // per_node))
    elif domain > per_node:
        unit = "block"
        segment = int(segments(cluster, nodes).size)
    else:
        unit = "node" if nodes == 1 else "leaf"
        want = min(-(-group // per_node), leaf)
        segment = next(n for n in range(want, nodes + 1) if nodes % n == 0)
    return fill(
        texts("request", "topology")[unit],
        group=group,
        segment=segment,
        segments=-(-nodes // segment),
        slices=-(-ranks // domain),
        chips=min(domain, ranks),
        whole=whole,
        spare=whole - segment,
        required="pod" if pods > 1 else "leaf",
        pods=pods,
        leaves=leaves,
        held=f"one leaf for {nodes} nodes holds"
        if leaves == 1
        else f"{leaves} leaves of {leaf} nodes hold",
        where=f" in {pods} pods" if pods > 1 else "",
    )


def spares_held(s: Site) -> dict:
    """How the spares are kept: where, how warm, how they are used, what they cost."""
    n = s.spares
    pods = s.pods
    where = "site" if pods < 2 else "one a pod" if n < pods else "pods"
    where = "racks" if s.racks_join else where
    where = where if n else "none"
    return {
        "nodes": n,
        "recommended": s.e.spares_recommended,
        "where": fill(texts("request", "spares")[where], n=n, pods=pods, each=-(-n // pods)),
        "warm": "image pulled, container started, devices checked every five minutes, "
        "no communicator",
        "usd": s.run.usd(s.run.days * n / (s.nodes + n)),
        "in_repair_on_average": s.in_repair,
        "for_99_percent": s.e.spares_for["0.99"],
        "used_by": "short preemptible jobs until called",
    }


def health_checks(s: Site) -> Rows:
    """Checks with thresholds for this machine: [{check, when, threshold, unit, on_fail,
    source}]."""
    cluster = s.cluster
    name = cluster.accelerator.id
    port = cards(cluster)[1]

    ring, card, host_copy = (
        accepted(name, test) for test in ("node all-reduce", "card to card", "host copy")
    )
    ring = (
        ring
        and vars(ring)
        or {
            "value": node_busbw(cluster)[0] * acceptance_limits("node all-reduce")[0] / 1e9,
            "source": "the burn-in's threshold",
        }
    )
    host_copy = host_copy and vars(host_copy)
    card = (
        card
        and vars(card)
        or {
            "value": acceptance_limits("card to card")[0],
            "rated": 1.0,
            "source": "loosest published acceptance test",
        }
    )
    table = fill(
        rows("health_checks"),
        s,
        **{id: source(id) for id in ("R054", "R100", "R052", "R067", "R127")},
        gemm=s.case.constants.gemm * s.case.chip.bf16_flops,
        host_copy=host_copy,
        ring=ring if s.per_node > 1 else None,
        port=port,
        card=card,
        card_rate=card["value"] / card["rated"] * port,
        silent_s=hang_timeout_s(s.step_s, 0.0),
    )
    keys = ("check", "when_checked", "threshold", "unit", "on_fail", "source")
    return tuple({k.removesuffix("_checked"): row[k] for k in keys} for row in table)
