"""Which short measurements narrow the interval of a run most for the device-hours that they take.

Each measurement is a straight line in the logs of the site's constants, with a scatter of its own;
a step of a smaller run also tells of what no constant explains (`physics.learned`). What a set of
them leaves of the variance of ln(days) does not depend on what they will read, so that the order
can be worked out before: the next one is that which removes most of the standard deviation for a
device-hour, given those before it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scantling.base.columns import Array
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.catalogue.words import Precision
from scantling.design.design import Design
from scantling.physics.learned import Marks, alike, priors
from scantling.verdict.assess import assess
from scantling.verdict.assessment import Assessment

from ..point import marks_of, precision_of

MOST = 5  # measurements of one kit
NODES = 2
START = "python -m torch.distributed.run"
MICRO_BATCHES = 8  # of a measured step
COUNTED = 50  # steps of a measurement
LAYERS = (4, 8)
# sd of ln of what a microbenchmark reads of the constant that a step has; judgement
PRODUCTS_SD, ATTENTION_SD, COPIES_SD, LINKS_SD = 0.02, 0.06, 0.04, 0.05
SAVE_SD, SAVE_READ_SD = 0.5, 0.05  # of ln of the stall of a save before, and as read; judgement
# hours from the start of the first process to the last figure; judgement
KERNELS_H, LINKS_H, STEPS_H, SAVE_H = 0.1, 0.15, 0.35, 0.15


class Sight(NamedTuple):
    """One figure that a measurement reads."""

    slopes: Array  # on ln of each constant, and of the stall of a save
    scatter: float  # sd of ln
    run: Marks | None  # of a step


@record
class Experiment:
    """A short measurement."""

    name: str
    says: str
    hours: float
    devices: int
    sights: tuple[Sight, ...]
    command: str
    smoke: str
    design: Design | None = None  # of a step that it runs

    @property
    def device_hours(self) -> float:
        """Device-hours."""
        return self.hours * self.devices


@record
class Worth:
    """A measurement in its place in the order."""

    experiment: Experiment
    left: float  # of the width of the interval, after it and those before it
    days: float  # of the width that it removes
    usd: float | None

    def as_dict(self) -> dict[str, Any]:
        """A row of `measure --plan --json`."""
        return {
            "run": self.experiment.name,
            "says": self.experiment.says,
            "device_hours": self.experiment.device_hours,
            "narrows_usd": self.usd,
            "narrows_days": self.days,
            "interval_left": self.left,
        }


def constants() -> tuple[str, ...]:
    """The constants that a site moves."""
    return tuple(priors().constants)


def on(name: str) -> Array:
    """A slope of one on one constant."""
    slopes: Array = np.zeros(len(constants()) + 1)
    slopes[constants().index(name)] = 1.0
    return slopes


def kernel(name: str, sd: float) -> Sight:
    """What reads one constant alone."""
    return Sight(on(name), sd, None)


def target(assessment: Assessment) -> Sight:
    """ln(days) of the run itself."""
    run = marks_of(assessment.chosen.case, np.array([assessment.resolved.stack or ""], object))
    slopes = np.append(run.slopes[0], assessment.checkpoint_overhead or 0.0)
    return Sight(slopes, priors().scatter, run)


def experiments(assessment: Assessment) -> list[Experiment]:
    """What can be measured for a design on two nodes of its cluster."""
    cluster = assessment.resolved.cluster
    node, chip = cluster.devices_per_node, cluster.accelerator.id
    case = assessment.chosen.case
    products = "gemm_fp8" if precision_of(case).startswith("fp8") else "gemm"
    if precision_of(case) == Precision.NVFP4:
        products = "gemm_fp4"
    kernels = f"scantling measure --accelerator {chip}"
    rate = cluster.scale_out_bytes_per_s / 1e9
    fabric = f"-m scantling measure --accelerator {chip} --scale-out {rate:g} --only collectives"
    several = f"{START} --nproc-per-node 2 -m scantling measure --device cpu --quick"
    among = [
        single("products", "matrix products", "gemm", kernel(products, PRODUCTS_SD), kernels),
        single("attention", "attention", "attention", kernel("attention", ATTENTION_SD), kernels),
        single("memory", "copies in memory", "memory", kernel("hbm_share", COPIES_SD), kernels),
        Experiment(
            name="links-in-node",
            says="all-reduce, all-gather and all-to-all in a node",
            hours=LINKS_H,
            devices=node,
            sights=(kernel("scale_up_share", LINKS_SD), kernel("ep_up_share", LINKS_SD)),
            command=f"{START} --nproc-per-node {node} {fabric} -o links-in-node.yaml",
            smoke=f"{several} --only collectives -o smoke/links-in-node.yaml",
        ),
    ]
    if cluster.devices >= NODES * node:
        start = f"{START} --nnodes {NODES} --nproc-per-node {node} $RENDEZVOUS"
        among.append(
            Experiment(
                name="links-between-nodes",
                says="all-reduce, all-gather and all-to-all over two nodes",
                hours=LINKS_H,
                devices=NODES * node,
                sights=(kernel("scale_out_share", LINKS_SD), kernel("scale_up_share", LINKS_SD)),
                command=f"{start} {fabric} -o links-between-nodes.yaml",
                smoke=f"{several} --only collectives -o smoke/links-between-nodes.yaml",
            )
        )
    if assessment.checkpoint_overhead:
        slopes: Array = np.zeros(len(constants()) + 1)
        slopes[-1] = 1.0
        among.append(
            Experiment(
                name="save",
                says="a save of one node's share to the store",
                hours=SAVE_H,
                devices=node,
                sights=(Sight(slopes, SAVE_READ_SD, None),),
                command="scantling measure --only save --store $STORE -o save.yaml",
                smoke="scantling measure --device cpu --quick --only save --store smoke"
                " -o smoke/save.yaml",
            )
        )
    return among + steps(assessment)


def single(name: str, says: str, section: str, sight: Sight, command: str) -> Experiment:
    """A measurement of kernels on one device."""
    shapes = "--design design.yaml " if section == "gemm" else ""
    quick = f"scantling measure --device cpu --quick --only {section} {shapes}-o smoke/{name}.yaml"
    return Experiment(
        name=name,
        says=f"{says} on one device",
        hours=KERNELS_H,
        devices=1,
        sights=(sight,),
        command=f"{command} --only {section} {shapes}-o {name}.yaml",
        smoke=quick,
    )


def steps(assessment: Assessment) -> list[Experiment]:
    """Steps of the model with fewer layers, on one node and on two, whole and as a pipeline."""
    plan = assessment.plan
    node = assessment.resolved.cluster.devices_per_node
    among = []
    for nodes in (1, NODES):
        for stages in (1, 2) if plan["pp"] > 1 else (1,):
            for layers in LAYERS:
                devices = node * nodes
                name = f"steps-{layers}-layers-{nodes}-nodes" + ("-pipeline" if stages > 1 else "")
                design = smaller(assessment, devices, stages, layers)
                if design is None:
                    continue
                among.append(of_steps(name, design, devices, layers, stages))
    return [experiment for experiment in among if experiment is not None]


def smaller(assessment: Assessment, devices: int, stages: int, layers: int) -> Design | None:
    """The design on few devices with few layers and the plan's other degrees; None where they do
    not divide."""
    plan, resolved = assessment.plan, assessment.resolved
    inner = plan["tp"] * plan["cp"] * stages
    if resolved.model.layers < layers or devices % inner or devices > resolved.cluster.devices:
        return None
    replicas = devices // inner
    batch = replicas * plan["micro_batch"] * MICRO_BATCHES
    pins = {
        "tp": plan["tp"],
        "cp": plan["cp"],
        "pp": stages,
        "ep": min(plan["ep"], replicas * plan["cp"] * plan["tp"] // plan["etp"]),
        "micro_batch": plan["micro_batch"],
        "sharding": plan["sharding"] if plan["sharding"] != "hsdp" else "zero3",
        "recompute": plan["recompute"],
    }
    changes = dict.fromkeys(("measured", "job.phases", "constraints", "cluster.measured"))
    return assessment.design.change(
        {
            **changes,
            "name": f"{resolved.name}, {layers} layers on {devices} devices",
            "model.layers": layers,
            "cluster.devices": devices,
            "job.global_batch": batch,
            "job.seq_len": resolved.main_phase.seq_len,
            "job.tokens": float(COUNTED * batch * resolved.main_phase.seq_len),
            "plan": pins,
        }
    )


def of_steps(
    name: str, design: Design, devices: int, layers: int, stages: int
) -> Experiment | None:
    """The measurement of some steps of a small design; None where it cannot run."""
    try:
        small = assess(design)
    except DesignError:
        return None
    if not small.phases or not small.fits:
        return None
    seen = target(small)
    as_pipeline = " as a pipeline of two stages" if stages > 1 else ""
    return Experiment(
        name=name,
        says=f"steps of {layers} layers on {devices} devices{as_pipeline}",
        hours=STEPS_H,
        devices=devices,
        sights=(seen._replace(slopes=np.append(seen.slopes[:-1], 0.0)),),
        command=f"scantling launch {name}/design.yaml --to $FRAMEWORK -o {name}/kit --anyway",
        smoke=f"scantling launch {name}/design.yaml --to $FRAMEWORK --smoke smoke/{name} --anyway",
        design=design,
    )


def covariance(sights: Sequence[Sight]) -> Array:
    """Covariance of what some figures would read, scatter left out."""
    sd = np.append([*priors().constants.values()], SAVE_SD)
    moved = np.stack([sight.slopes for sight in sights]) * sd
    shared: Array = moved @ moved.T
    for i, one in enumerate(sights):
        for j, other in enumerate(sights):
            if one.run is not None and other.run is not None:
                shared[i, j] += alike(one.run, other.run, 0, priors())[0]
    return shared


class Field(NamedTuple):
    """Measurements beside the run that they are for: the covariance of all figures, the run's
    first, the scatter of each, and which belong to which measurement."""

    prior: Array
    scatter: Array
    of: list[list[int]]


def field_of(run: Sight, among: Sequence[Experiment]) -> Field:
    """The figures of some measurements beside that of the run."""
    sights = [run, *(sight for experiment in among for sight in experiment.sights)]
    at = iter(range(1, len(sights)))
    of = [[next(at) for _ in experiment.sights] for experiment in among]
    return Field(covariance(sights), np.array([sight.scatter for sight in sights]), of)


def left_of(field: Field, chosen: Sequence[int]) -> float:
    """Standard deviation of ln(days) of the run after some measurements, over that before them."""
    rows = [row for i in chosen for row in field.of[i]]
    before = field.prior[0, 0] + field.scatter[0] ** 2
    if not rows:
        return 1.0
    between = field.prior[0, rows]
    among = field.prior[np.ix_(rows, rows)] + np.diag(field.scatter[rows] ** 2)
    told = between @ np.linalg.solve(among, between)
    return float(np.sqrt(max(before - told, 0.0) / before))


def order(field: Field, among: Sequence[Experiment], budget_h: float) -> list[int]:
    """The measurements that remove most of the interval for a device-hour, one after the other, at
    most MOST, as far as the hours go."""
    chosen: list[int] = []
    hours, now = 0.0, 1.0
    while len(chosen) < MOST:
        worth = {
            i: (now - left_of(field, [*chosen, i])) / experiment.device_hours
            for i, experiment in enumerate(among)
            if i not in chosen and hours + experiment.hours <= budget_h
        }
        best = max(worth, key=lambda i: worth[i], default=None)
        if best is None or worth[best] <= 0:
            return chosen
        chosen.append(best)
        hours += among[best].hours
        now = left_of(field, chosen)
    return chosen


def worths(assessment: Assessment, budget_h: float) -> list[Worth]:
    """What to measure for a design, in order, and what each removes of the interval of its days and
    dollars."""
    among = experiments(assessment)
    field = field_of(target(assessment), among)
    chosen = order(field, among, budget_h)
    days = (assessment.days_high or 0.0) - (assessment.days_low or 0.0)
    low, high = assessment.cost_usd_low, assessment.cost_usd_high
    usd = None if low is None or high is None else high - low
    out, before = [], 1.0
    for i in range(len(chosen)):
        left = left_of(field, chosen[: i + 1])
        gone = before - left
        out.append(
            Worth(
                experiment=among[chosen[i]],
                left=left,
                days=days * gone,
                usd=None if usd is None else usd * gone,
            )
        )
        before = left
    return out
