"""The ladder to full scale: the same plan on one node, one rack and one pod before all of them,
each with what it should show, so that a bad cable is found on eight devices."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, gcd
from typing import NamedTuple, TypedDict

from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.catalogue.models.patterns import counts_of, layers_of, written
from scantling.catalogue.models.shape import Model
from scantling.catalogue.words import Sharding
from scantling.endure.first_step import first_step
from scantling.plans.plan_names import PlanRow
from scantling.verdict.assess import assess
from scantling_site.rollout.burn_in import Test, acceptance_limits

from .launch_plan import LaunchPlan, Pins, known
from .launched import launch_plan
from .misfits import hard_gaps
from .nearest import change_of, coherent, pins_of, single
from .run_guide import all_reduce

SLOW_START = 2.0  # times the expected first step that still passes: judgement
FULLER = 1.05  # times the expected memory that still passes: judgement, and never the capacity
SHARES = (1, 2, 4, 8)  # by which layers are divided where less sharding needs more room
WHOLE = ("constraints", "reliability", "measured", "confirm")  # of the whole run, not of a rung


class Smaller(NamedTuple):
    """The plan of a rung."""

    model: Model
    pins: Pins
    job: dict[str, int]  # batch [sequences] and sequence [tokens]


def sizes(launch: LaunchPlan) -> dict[str, int]:
    """Nodes of each rung below full scale: one, a rack (the nodes that fast links join, else those
    of the row), a pod."""
    k = launch.cluster
    row = catalogue.nodes().get(k.node)
    rack = int(row.nodes_per_rack) if row and row.nodes_per_rack > 1 else 4
    wanted = {
        "node": 1,
        "rack": k.scale_up_domain // k.devices_per_node if launch.joined else rack,
        "pod": (k.pod_devices or launch.leaf_nodes * k.devices_per_node) // k.devices_per_node,
    }
    out: dict[str, int] = {}
    last = 0
    for name, nodes in wanted.items():
        if last < nodes < launch.nodes:
            out[name] = last = nodes
    return out


def shrunk(launch: LaunchPlan, devices: int, share: int) -> Smaller | None:
    """The plan on fewer devices: tp and micro-batch as they are, cp, pp, ep and the data-parallel
    ranks as many as there is room for, layers and experts in proportion, then divided by `share`,
    where less sharding needs more room. None where tp alone is too wide, or the stages have no
    fewer layers."""
    p = launch.plan
    if devices % p.tp:
        return None
    cp = gcd(p.cp, devices // p.tp)
    pp = gcd(p.pp, devices // (p.tp * cp))
    dp = devices // (p.tp * cp * pp)
    vpp = p.vpp if pp > 1 else 1
    ep = gcd(p.ep, max(1, p.tp * cp * dp // p.etp))
    each = max(1, launch.model.layers // (p.pp * share * vpp))  # in each chunk of a stage
    layers = launch.model.layers if (pp, share) == (p.pp, 1) else each * pp * vpp
    if layers > launch.model.layers:
        return None
    sharding = p.sharding
    if sharding == Sharding.HSDP and p.shard_group >= dp * cp:
        sharding = Sharding.ZERO3
    pins = pins_of(p.as_dict()) | {
        "cp": cp,
        "pp": pp,
        "vpp": vpp,
        "ep": ep,
        "schedule": p.schedule if vpp > 1 else "1f1b",
        "sharding": sharding,
        "recompute_layers": min(p.recompute_layers, ceil(layers / pp)),
    }
    staged = {name: pins[name] for name in ("vpp", "schedule") if pp > 1}
    job = {
        "global_batch": dp * p.micro_batch * p.grad_accum,
        "seq_len": launch.phase.seq_len * cp // p.cp,
    }
    return Smaller(shorter(launch, layers, ep), coherent(pins, launch) | staged, job)


def shorter(launch: LaunchPlan, layers: int, ep: int) -> Model:
    """The model with so many layers, and experts for so many ranks of them."""
    m = launch.model
    pattern = written(["+".join(layer) for layer in layers_of(m.pattern)[:layers]])
    moe_layers = m.moe_layers and max(1, layers - min(m.dense_layers, layers // 2))
    if pattern:
        moe_layers = counts_of(pattern).get("moe", 0)
    return replace(
        m,
        layers=layers,
        pattern=pattern,
        moe_layers=moe_layers,
        experts=m.experts and max(m.top_k, m.experts * ep // launch.plan.ep),
        windowed_layers=m.windowed_layers * layers // m.layers,
    )


def climb(launch: LaunchPlan) -> list[tuple[str, LaunchPlan]]:
    """(rung, its launch plan) from one node to all of them; a rung that no smaller model of the
    plan's kind fits is left out."""
    out = []
    for name, nodes in sizes(launch).items():
        devices = nodes * launch.per_node
        rung = next(filter(None, (_rung(launch, devices, share) for share in SHARES)), None)
        if rung is None:
            continue
        figures = replace(rung.figures, days=None, days_high=None, spares=0)
        slug = f"{launch.slug[:35]}-{name}"
        out.append((name, replace(rung, slug=slug, name=launch.name, figures=figures)))
    return [*out, ("all", launch)]


def _rung(launch: LaunchPlan, devices: int, share: int) -> LaunchPlan | None:
    """The launch plan on so many devices, its layers divided by `share`; None where it does not fit
    so."""
    smaller = shrunk(launch, devices, share)
    if smaller is None:
        return None
    design = single(launch, smaller.pins, smaller.job)
    data = {k: v for k, v in design.data().items() if k not in WHOLE}
    data["job"].pop("tokens", None)
    data["cluster"].pop("pod_devices", None)
    data["cluster"] |= {"devices": devices, "sites": 1}
    space = change_of(launch, []).space
    try:
        trial = assess(
            type(design).from_data(data, design.folder), space=space, model=smaller.model
        )
    except DesignError:
        return None
    if not trial.fits or trial.phases[0].plan["tp"] != launch.plan.tp:
        return None
    rung = launch_plan(trial, launch.framework, launch.on, 0)
    return None if hard_gaps(rung) or rung.devices != devices else rung


class Rung(TypedDict):
    """What a rung should show, and the limits that a log is held against: the step's band, memory
    within 5 % and the capacity, the loosest published acceptance of an all-reduce, twice the
    start. Bytes, seconds."""

    rung: str
    folder: str
    nodes: int
    devices: int
    layers: int
    plan: PlanRow
    global_batch: int
    seq_len: int
    step_s: float
    step_s_high: float
    step_s_low: float
    memory_bytes: float
    memory_bytes_high: float
    bus_bytes_per_s: float | None
    bus_bytes_per_s_low: float | None
    first_step_s: float
    first_step_s_high: float


def expectations(name: str, launch: LaunchPlan, tests: Mapping[str, Test]) -> Rung:
    """What a rung should show. `tests`: those of the whole site's burn-in by id: a node or rack is
    held to the same."""
    # cold, with nothing to load; the scheduler's part is over
    parts = first_step(launch.devices, 0.0) | {"scheduler": launch.step_s}
    start_s = float(sum(parts.values()))
    rate, least = bus_limits(name, launch, tests)
    memory = launch.memory
    return Rung(
        rung=name,
        folder="." if name == "all" else f"ladder/{name}",
        nodes=launch.nodes,
        devices=launch.devices,
        layers=launch.model.layers,
        plan=launch.plan.row,
        global_batch=launch.phase.global_batch,
        seq_len=launch.phase.seq_len,
        step_s=launch.step_s,
        step_s_high=known(launch.figures.step_s_high),
        step_s_low=known(launch.figures.step_s_low),
        memory_bytes=memory.total,
        memory_bytes_high=min(FULLER * memory.total, memory.capacity),
        bus_bytes_per_s=rate,
        bus_bytes_per_s_low=least,
        first_step_s=start_s,
        first_step_s_high=SLOW_START * start_s,
    )


def bus_limits(
    name: str, launch: LaunchPlan, tests: Mapping[str, Test]
) -> tuple[float | None, float | None]:
    """(bus bandwidth of an all-reduce that a rung should show, the least that passes) [bytes/s];
    None on one device."""
    if test := tests.get(f"{name} all-reduce"):
        return test.expected, test.evict_below
    if launch.devices == 1:
        return None, None
    rate = all_reduce(launch, launch.devices)
    return rate, rate * acceptance_limits("node all-reduce")[0]
