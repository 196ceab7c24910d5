"""What a kit tells its reader: why each choice, what it takes, how to watch it, and what is likely
to go wrong here first. The words stand in templates/guide.j2."""

from scantling_site.rollout.burn_in import all_reduce_rates

from .render import columns, said

FIELDS = (
    "tp",
    "sp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "sharding",
    "micro_batch",
    "recompute",
    "offload",
    "precision",
)


def justification(launch) -> list:
    """(choice, value, why) for every field of the plan, from the assessment's own reasons."""
    told = {row["axis"]: row["text"] for row in launch.reasons()}
    out = []
    for field in FIELDS:
        if field in ("ep", "etp") and not launch.model.is_moe:
            continue
        value = str(launch.plan[field])
        text = told.get(field, "")
        own = said("guide", "reason", launch, field).strip()
        bare = text in ("", field, f"{field} {value}", value)
        if field == "sharding":
            own = f"{text}; {own}" if ":" in text else own
        out.append((field, value, own if bare or field == "sharding" else text))
    return out


def smaller(launch) -> tuple[int, int] | tuple[()]:
    """(data-parallel ranks, devices) of the next smaller run whose replicas share the global batch
    evenly and hold whole expert groups; () where there is none."""
    p = launch.plan
    batch = launch.phase.global_batch
    replica = p["tp"] * p["cp"] * p["pp"]
    for dp in range(p["dp"] - 1, 0, -1):
        whole = dp * p["tp"] * p["cp"] % (p["ep"] * p["etp"]) == 0
        if whole and batch % (dp * p["micro_batch"]) == 0:
            return dp, dp * replica
    return ()


def all_reduce(launch, devices: int) -> float:
    """Bus bandwidth of an all-reduce of 16 GB over so many devices, at most those of a site, that
    nccl-tests should show [bytes/s]."""
    k = launch.cluster
    return all_reduce_rates(k, min(devices, k.by_site[0]), k.scale_up_domain)[-1][
        "busbw_bytes_per_s"
    ]


def bus_rates(launch) -> list:
    """(devices, bus bandwidth [bytes/s]) that nccl-tests should show before the run: over fast
    links that leave the node, and over all nodes."""
    k = launch.cluster
    if not launch.networked:
        return []
    where = f"{launch.nodes // k.sites} nodes{' of a site' if launch.sync else ''}"
    out = [(f"all {where}", all_reduce(launch, launch.devices))]
    if k.scale_up_domain > k.devices_per_node:
        joined = min(k.scale_up_domain, launch.devices)
        out.insert(0, (f"the {joined} devices that fast links join", all_reduce(launch, joined)))
    return out


def troubles(launch) -> list:
    """(what, what to do), the likely first for this design."""
    rows = columns(said("guide", "troubles", launch))
    rows.sort(key=lambda row: -float(row[0]))
    return [row[1:] for row in rows]
