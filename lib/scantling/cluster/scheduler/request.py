"""What the job asks of its scheduler, as data: gang, topology, spares, health checks. Field names
of the chosen system beside the meaning."""

from __future__ import annotations

import math

from ...base.units import DAY_S
from ...endure.failures import EVICTS
from ..placement import leaf_nodes
from ..rollout.burn_in import acceptance_limits, accepted, node_busbw
from ..site import Run, is_torus
from ..texts import source


def request(assessment, choice: str) -> dict:
    """Gang, topology, resources and time of one job: {gang, topology, resources, time, licences,
    identity, fields}.

    Segment: the ranks that talk most over the fast tier stay together. On an NVLink rack that is
    the domain's nodes (of a block of all
    its trays); on a torus the slice; else the nodes of the largest group among tp x cp, ep x etp
    and the shard group, at most those
    under one leaf (`placement.leaf_nodes`), that divides the job.
    """
    a, r = assessment, assessment.resolved
    plan, cluster, e = a.chosen.plan, r.cluster, a.endurance
    per_node, used = int(cluster.devices_per_node), int(a.figures["devices_used"])
    nodes = -(-used // per_node)
    topology = _topology(plan, cluster, nodes, per_node, leaf_nodes(cluster))
    days = a.figures["days_high"] or a.figures["days"]
    limit = None if days is None else days * DAY_S * 1.1
    out = dict(
        gang=dict(
            nodes=nodes,
            tasks_per_node=per_node,
            ranks=used,
            all_or_nothing=True,
            spare_nodes=int(e.spares),
            least_ranks=used if plan["dp"] < 2 else used - plan["tp"] * plan["cp"] * plan["pp"],
        ),
        topology=topology,
        resources=dict(
            device=cluster.accelerator.id,
            devices_per_node=per_node,
            cards_per_node=int(cluster.nics_per_node),
            host_memory_bytes=_known(cluster.host_memory_bytes),
            exclusive=True,
            shared_memory="all of it",
            locked_memory="unlimited",
            cores="all",
        ),
        time=dict(
            limit_s=limit,
            signal_before_end_s=float(e.checkpoint_stall_s + e.checkpoint_durable_s),
            requeue=True,
            append_output=True,
        ),
        licences=dict(
            file_system_write_bytes_per_s=float(e.write_bytes_per_s_needed),
            file_system=cluster.storage or "superpod-better",
        ),
        order=dict(
            ranks="tp, cp, dp, pp",
            replica_nodes=-(-plan["tp"] * plan["cp"] * plan["pp"] // per_node),
            why="neighbouring ranks share a node; see the placement",
        ),
        fields={},
    )
    out["fields"] = _FIELDS[choice](out) if choice in _FIELDS else {}
    return out


def _known(value):
    return float(value) if value == value and value > 0 else None


def _topology(plan, cluster, nodes: int, per_node: int, leaf: int) -> dict:
    group = max(
        plan["tp"] * plan["cp"],
        plan["ep"] * plan["etp"],
        plan["shard_group"] if plan["sharding"] == "hsdp" else 1,
    )
    domain = int(cluster.scale_up_domain)
    pods = -(-nodes * per_node // int(cluster.pod_devices or nodes * per_node))
    if is_torus(cluster):
        return dict(
            unit="slice",
            segment_nodes=min(nodes, -(-domain // per_node)),
            segments=-(-nodes * per_node // domain),
            block_nodes=None,
            required="slice",
            preferred="pod",
            pods=pods,
            leaves=None,
            why=(
                f"a slice of {min(domain, nodes * per_node):,} chips is wired when it is handed out"
            ),
        )
    if domain > per_node:
        whole = max(int(cluster.accelerator.scale_up_domain_max), domain) // per_node
        segment = min(nodes, domain // per_node)
        return dict(
            unit="block",
            segment_nodes=segment,
            segments=-(-nodes // segment),
            block_nodes=whole,
            spare_trays=whole - segment if nodes >= segment else 0,
            required="rack",
            preferred="pod",
            pods=pods,
            leaves=None,
            why=f"groups of {group} ranks stay on NVLink; {segment} of {whole} trays are used",
        )
    if nodes == 1:
        return dict(
            unit="node",
            segment_nodes=1,
            segments=1,
            block_nodes=None,
            required="node",
            preferred="node",
            pods=1,
            leaves=1,
            why="one node",
        )
    want = min(max(1, -(-group // per_node)), leaf)
    segment = next(s for s in range(want, nodes + 1) if nodes % s == 0)
    return dict(
        unit="leaf",
        segment_nodes=segment,
        segments=nodes // segment,
        block_nodes=None,
        required="pod" if pods > 1 else "leaf",
        preferred="leaf",
        pods=pods,
        leaves=-(-nodes // leaf),
        why=(
            f"groups of {group} ranks keep together; "
            f"{_leaves(-(-nodes // leaf), leaf, nodes)} the job"
        )
        + (f" in {pods} pods" if pods > 1 else ""),
    )


def _leaves(count: int, leaf: int, nodes: int) -> str:
    return (
        f"one leaf for {nodes} nodes holds"
        if count == 1
        else f"{count} leaves of {leaf} nodes hold"
    )


def _slurm(q: dict) -> dict:
    t, g = q["topology"], q["gang"]
    out = {
        "nodes": g["nodes"] + g["spare_nodes"],
        "ntasks-per-node": g["tasks_per_node"],
        "gpus-per-node": q["resources"]["devices_per_node"],
        "exclusive": True,
        "requeue": True,
        "open-mode": "append",
        "signal": f"USR1@{math.ceil(q['time']['signal_before_end_s'])}",
        "kill-on-bad-exit": 0,
        "no-kill": True,
        "licenses": q["licences"]["file_system"],
    }
    if q["time"]["limit_s"] is not None:
        out["time-minutes"] = math.ceil(q["time"]["limit_s"] / 60)
    if t["unit"] == "block":
        out |= {
            "plugin": "topology/block",
            "segment": t["segment_nodes"],
            "BlockSizes": t["block_nodes"],
            "exclusive": "topo",
        }
    elif t["unit"] == "leaf":
        out |= {"plugin": "topology/tree", "switches": t["leaves"]}
    return out


def _kueue(q: dict) -> dict:
    t, g = q["topology"], q["gang"]
    level = {"block": "nvlink domain", "slice": "slice", "leaf": "leaf", "node": "hostname"}[
        t["unit"]
    ]
    out = {
        "JobSet.replicatedJobs.replicas": t["segments"],
        "parallelism of each": t["segment_nodes"],
        "podset-required-topology": level if t["unit"] in ("block", "slice") else t["required"],
        "podset-preferred-topology": t["preferred"],
        "admission": "whole JobSet",
        "devices per pod": q["resources"]["devices_per_node"],
        "failurePolicy.maxRestarts": "unlimited while steps advance",
        "spare pods": g["spare_nodes"],
        "priority": "highest",
    }
    if t["unit"] == "block":
        out |= {
            "devices from": "DRA: one ComputeDomain per segment",
            "ComputeDomain.numNodes": t["segment_nodes"],
        }
    elif t["unit"] == "slice":
        out |= {"devices from": "device plugin of the provider", "exclusive-topology": "slice"}
    else:
        out |= {"devices from": "device plugin"}
    return out


def _volcano(q: dict) -> dict:
    t, g = q["topology"], q["gang"]
    return {
        "minAvailable": g["nodes"],
        "networkTopology.mode": "hard" if t["unit"] == "block" else "soft",
        "networkTopology.highestTierAllowed": 1 if t["unit"] == "block" else 2,
        "devices per pod": q["resources"]["devices_per_node"],
        "spare pods": g["spare_nodes"],
        "queue": "its own, not reclaimable",
    }


_FIELDS = {"slurm": _slurm, "bridge": _slurm, "kueue": _kueue, "volcano": _volcano, "ray": _kueue}


def spares_held(assessment, run: Run) -> dict:
    """How the spares are kept: where, how warm, how they are used, what they cost."""
    e, cluster = assessment.endurance, assessment.resolved.cluster
    n = int(e.spares)
    pods = max(1, -(-int(cluster.devices) // int(cluster.pod_devices or cluster.devices)))
    wide = int(cluster.scale_up_domain) > int(cluster.devices_per_node) and not is_torus(cluster)
    where = (
        "none are held: a failure waits for its repair"
        if n == 0
        else (
            "as trays of the job's own racks first, whole racks after that"
            if wide
            else (
                f"inside the allocation, one in each of {n} of {pods} pods"
                if n < pods
                else f"inside the allocation, {-(-n // pods)} in each of {pods} pods"
            )
            if pods > 1
            else "inside the allocation, under the job's own spines"
        )
    )
    price = run.usd(run.days * n / max(run.nodes + n, 1))
    return dict(
        nodes=n,
        recommended=int(e.spares_recommended),
        where=where,
        warm="image pulled, container started, devices checked every five minutes, no communicator",
        usd=price,
        in_repair_on_average=float(EVICTS / float(e.mtbf_s) * float(e.repair_s)),
        for_99_percent=int(e.spares_for["0.99"]),
        used_by="short preemptible jobs until called",
    )


def health_checks(assessment) -> tuple[dict, ...]:
    """Checks with thresholds for this machine: [{check, when, threshold, unit, on_fail,
    source}]."""
    cluster, c = assessment.resolved.cluster, assessment.chosen.case
    per_node = int(cluster.devices_per_node)
    name = cluster.accelerator.id
    rows = [
        ("devices present", "every 5 min", per_node, "devices", "drain", source("R054")),
        (
            "uncorrectable memory errors since boot",
            "every 5 min",
            0,
            "at most",
            "drain",
            "an error that the hardware could not correct is a wrong answer",
        ),
        (
            "driver fault of the fatal kinds (off the bus, link, memory)",
            "every 5 min",
            0,
            "at most",
            "drain",
            source("R100"),
        ),
        (
            "clock held down for heat or power",
            "every 5 min",
            0,
            "at most",
            "ticket",
            "published acceptance test (catalogue/acceptance.csv)",
        ),
        (
            "job file system mounted, a 1 MB write",
            "before the job",
            5.0,
            "s at most",
            "drain",
            "a tenth of a save's fixed time is noticed",
        ),
        (
            "matrix product of the plan's shape",
            "before the job",
            float(c.constants.gemm) * float(c.chip.bf16_flops) * 0.97,
            "FLOP/s at least",
            "drain",
            "calibrated share of the peak less two standard deviations",
        ),
    ]
    host = accepted(name, "host copy")
    if host:
        rows.append(
            (
                "host copy",
                "before the job",
                float(host["value"]) * 1e9,
                "bytes/s at least",
                "drain",
                host["source"],
            )
        )
    if per_node > 1:
        own = accepted(name, "node all-reduce")
        rate = (
            float(own["value"]) * 1e9
            if own
            else node_busbw(cluster)[0] * acceptance_limits("node all-reduce")[0]
        )
        rows.append(
            (
                "all-reduce in the node, 16 GB",
                "before the job",
                rate,
                "bytes/s at least",
                "drain",
                own["source"] if own else "the burn-in's threshold",
            )
        )
    if cluster.nodes > 1 and not is_torus(cluster):
        port = cluster.scale_out_bytes_per_s * per_node / max(1, int(cluster.nics_per_node))
        card = accepted(name, "card to card")
        share = (
            float(card["value"]) / float(card["rated"])
            if card
            else acceptance_limits("card to card")[0]
        )
        rows += [
            (
                "rate that each card negotiated",
                "every 5 min",
                port,
                "bytes/s",
                "drain",
                "line rate",
            ),
            (
                "flaps of a link",
                "every 5 min",
                0,
                "in 6 h at most",
                "ticket",
                "published acceptance test (catalogue/acceptance.csv)",
            ),
            (
                "card to card",
                "before the job",
                share * port,
                "bytes/s at least",
                "drain",
                card["source"] if card else "loosest published acceptance test",
            ),
        ]
    rows.append(
        (
            "node that failed twice",
            "after each failure",
            2,
            "failures in 30 days",
            "return to the maker",
            source("R052"),
        )
    )
    rows.append(
        (
            "silent for",
            "always",
            max(2 * assessment.figures["step_s"], 60.0),
            "s at most",
            "dump the flight recorder, restart in place",
            source("R067"),
        )
    )
    rows.append(
        (
            "weekly, idle nodes",
            "every 7 days",
            1.0,
            "whole burn-in of the node",
            "drain",
            source("R127"),
        )
    )
    return tuple(
        dict(check=a, when=w, threshold=t, unit=u, on_fail=f, source=s) for a, w, t, u, f, s in rows
    )
