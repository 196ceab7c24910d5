"""The ladder to full scale: the same plan on one node, one rack and one pod before all of them,
each with what it should show, so that a bad cable is found on eight devices."""

from dataclasses import replace
from math import gcd

from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.catalogue.models.patterns import counts, layers_of, written
from scantling.endure.first_step import first_step
from scantling.verdict.assess import assess
from scantling_site.rollout.burn_in import acceptance_limits

from .expressible import coherent, hard_gaps, pins_of, plans_of, single
from .guide import all_reduce
from .record import LaunchPlan, launch_plan, picked

SLOW_START = 2.0  # times the expected first step that still passes: judgement
FULLER = 1.05  # times the expected memory that still passes: judgement, and never the capacity
WHOLE = ("constraints", "reliability", "measured", "confirm")  # of the whole run, not of a rung


def sizes(launch: LaunchPlan) -> dict:
    """Nodes of each rung below full scale: one, a rack (the nodes that fast links join, else those
    of the row), a pod."""
    k = launch.cluster
    row = catalogue.nodes().get(k.node)
    rack = row.nodes_per_rack if row and row.nodes_per_rack > 1 else 4
    found = {
        "node": 1,
        "rack": k.scale_up_domain // k.devices_per_node if launch.joined else int(rack),
        "pod": (k.pod_devices or launch.leaf_nodes * k.devices_per_node) // k.devices_per_node,
    }
    out = {}
    last = 0
    for name, nodes in found.items():
        if last < nodes < launch.nodes:
            out[name] = last = nodes
    return out


def shrunk(launch: LaunchPlan, devices: int, share: int):
    """(model, pins, job) of the plan on fewer devices: tp and micro-batch as they are, cp, pp, ep
    and the data-parallel ranks as many as there is room for, layers and experts in proportion, then
    divided by `share`, where less sharding needs more room. None where tp alone is too wide."""
    p = launch.plan
    m = launch.model
    tp = p["tp"]
    if devices % tp:
        return None
    cp = gcd(p["cp"], devices // tp)
    pp = gcd(p["pp"], devices // (tp * cp))
    dp = devices // (tp * cp * pp)
    vpp = p["vpp"] if pp > 1 else 1
    ep = gcd(p["ep"], max(1, tp * cp * dp // p["etp"]))
    each = max(1, m.layers // (p["pp"] * share * vpp))  # in each chunk of a stage
    layers = m.layers if (pp, share) == (p["pp"], 1) else each * pp * vpp
    pattern = written(["+".join(layer) for layer in layers_of(m.pattern)[:layers]])
    experts = m.moe_layers and max(1, layers - min(m.dense_layers, layers // 2))
    model = replace(
        m,
        layers=layers,
        pattern=pattern,
        moe_layers=counts(pattern).get("moe", 0) if pattern else experts,
        experts=m.experts and max(m.top_k, m.experts * ep // p["ep"]),
        windowed_layers=m.windowed_layers * layers // m.layers,
    )
    grouped = p["sharding"] == "hsdp" and p["shard_group"] < dp * cp
    pins = pins_of(p) | {
        "cp": cp,
        "pp": pp,
        "vpp": vpp,
        "ep": ep,
        "schedule": p["schedule"] if vpp > 1 else "1f1b",
        "sharding": "zero3" if p["sharding"] == "hsdp" and not grouped else p["sharding"],
        "recompute_layers": min(p["recompute_layers"], layers // pp),
    }
    job = {
        "global_batch": dp * p["micro_batch"] * p["grad_accum"],
        "seq_len": launch.phase.seq_len * cp // p["cp"],
    }
    return model, coherent(pins, launch) | {k: pins[k] for k in ("vpp", "schedule") if pp > 1}, job


def climb(launch: LaunchPlan) -> tuple:
    """(rung, its launch plan) from one node to all of them; a rung that no smaller model of the
    plan's kind fits is left out."""
    out = []
    for name, nodes in sizes(launch).items():
        devices = nodes * launch.per_node
        tried = (_rung(launch, devices, share) for share in (1, 2, 4, 8))
        if rung := next(filter(None, tried), None):
            rung = replace(
                rung,
                slug=f"{launch.slug[:35]}-{name}",
                figures=rung.figures | {"days": None, "days_high": None, "spares": 0},
                name=launch.name,
            )
            out.append((name, rung))
    return (*out, ("all", launch))


def _rung(launch, devices, share) -> LaunchPlan | None:
    made = shrunk(launch, devices, share)
    if made is None:
        return None
    model, pins, job = made
    design = single(launch, pins, job)
    data = {k: v for k, v in design.data().items() if k not in WHOLE}
    data["job"].pop("tokens", None)
    data["cluster"].pop("pod_devices", None)
    data["cluster"] |= {"devices": devices, "sites": 1}
    try:
        trial = assess(
            type(design).from_data(data, design.folder), space=plans_of(launch, ())[1], model=model
        )
    except DesignError:
        return None
    if not trial.fits or trial.phases[0].plan["tp"] != launch.plan["tp"]:
        return None
    rung = launch_plan(trial, launch.framework, launch.on, 0)
    return None if hard_gaps(rung) or rung.devices != devices else rung


def expectations(name: str, launch: LaunchPlan, burnt: dict) -> dict:
    """What a rung should show, and the limits that a log is held against (values.yaml). burnt : the
    tests of the whole site's burn-in by id: a node or rack is held to the same."""
    # cold, with nothing to load; the scheduler's part is over
    start = sum((first_step(launch.devices, 0.0) | {"scheduler": launch.step_s}).values())
    rate = all_reduce(launch, launch.devices) if launch.devices > 1 else None
    rate_low = rate and rate * acceptance_limits("node all-reduce")[0]
    if test := burnt.get(f"{name} all-reduce"):
        rate, rate_low = test.expected, test.evict_below
    return picked(
        "rung",
        launch=launch,
        name=name,
        folder="." if name == "all" else f"ladder/{name}",
        memory_high=min(FULLER * launch.memory["total"], launch.memory["capacity"]),
        rate=rate,
        rate_low=rate_low,
        start=start,
        start_high=SLOW_START * start,
    )
