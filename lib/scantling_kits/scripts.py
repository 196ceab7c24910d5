"""launch.sh (what every node runs) and what a scheduler wraps around it: job.sbatch,
jobset.yaml."""

from math import ceil

from scantling.base.records import record
from scantling.base.show import span
from scantling.base.units import DAY_S, MINUTE_S
from scantling_site.job_site import HORIZON_DAYS
from scantling_site.scheduler.request import (
    BAD_START_S,
    LONGEST_JOB_S,
    early_failures,
    kill_after_s,
    restarts_allowed,
)

from .env import site
from .kubernetes import pod, remarks
from .launch_plan import LaunchPlan, known
from .preflight import Preflight, preflight, preflight_file
from .render import render
from .values import RunValues, Var

LATE = 1.1  # times the late end of the run that wall time is asked for: judgement
ALWAYS = 1000  # requeues of a run without an end
DATA_SETTINGS = ("DATA", "TOKENIZER", "MOCK_DATA", "INIT")
PREFLIGHT_SETTINGS = (
    *("PREFLIGHT", "DCGM_LEVEL", "NODE_GBYTES_PER_S", "ALL_GBYTES_PER_S", "CARDS", "CARD_GBITS"),
    *("ROOM_GB", "SUM_S", "DCGM_S", "JOIN_S"),
)
TRAINER_SETTINGS = (  # of templates/trainer.py
    *("STEPS", "SAVE_STEPS", "SEED", "LR", "SKIP", "TRACKER", "WANDB_PROJECT"),
    *("PROFILE_STEP", "MEMORY_SNAPSHOT", "COMPILE"),
)
ALL_REDUCE_MINUTES = 15  # after which nccl-tests over the allocation hang: judgement
LEAST_BAD_STARTS = 3  # that bad nodes may end in a row: judgement


@record
class Start:
    """What launch.sh does on a node."""

    name: str
    nodes: int
    devices: int
    per_node: int
    last_node: int
    last_rank: int
    run_id: str
    bucket: bool  # RUN_DIR may be one, which needs no folder
    stop_file: bool  # a file in RUN_DIR ends the run after a checkpoint
    stops_on_term: bool
    prepare: str
    command: str
    launcher: str
    loss_rank: str  # of its node, as the shell writes it, whose lines name the loss; "": of all 0
    whole: str  # glob of what is written last of a checkpoint
    thins: str  # glob of the checkpoints whose oldest go; "": the framework does it
    keep: int
    restarts: int  # of the launcher; 0: the job goes back to the queue
    grace_s: int
    slurm: bool
    tpu: bool
    checks: Preflight


@record
class SlurmJob:
    """What job.sbatch asks Slurm for, and when it starts the run again."""

    name: str
    slug: str
    nodes: int  # that train
    nodes_requested: int  # those that stand by included
    summary: str  # of nodes, in a comment
    wall: str  # D-HH:MM:SS
    rest: str  # of the sentence on the wall time
    per_node: int  # devices; 0 where Slurm does not count them
    lead_s: int
    lead_minutes: int
    switches: int  # sets of leaf switches; 0 or 1: not asked for
    segment: int  # nodes of the allocation within one NVLink rack
    segment_trains: int  # of them; 1: a node is the domain
    standing_by: str  # of a segment, in a comment
    whole: str
    stop: str  # "file", "term" or ""
    framework: str
    bad_start_s: int
    bad_start_minutes: int
    mtbf: str
    tries: int  # starts in a row that fail early
    restart_by_queue: bool
    requeues: int
    run_s: int  # the late end of the run; 0 where it has none
    failures: int  # restarts that are allowed for
    bad_starts: int  # in a row that bad nodes may end
    all_reduce: bool  # the whole allocation is measured before the first step
    all_reduce_minutes: int = ALL_REDUCE_MINUTES


def wall_text(seconds: float) -> str:
    """D-HH:MM:SS."""
    minutes = max(1, ceil(seconds / MINUTE_S))
    return f"{minutes // 1440}-{minutes // 60 % 24:02d}:{minutes % 60:02d}:00"


def scripts(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    """env.sh and launch.sh, and the scheduler's own files."""
    whole_s = launch.time_share * run.wall_s if run.wall_s else HORIZON_DAYS * DAY_S
    restarts = restarts_allowed(known(launch.figures.mtbf_s), whole_s)
    grace_s = kill_after_s(launch.step_s, launch.survival.whole_s)
    out = {
        "env.sh": render("env.sh.j2", environment=list(map(quoted, run.environment))),
        "launch.sh": render("launch.sh.j2", at=start(launch, restarts, grace_s)),
        **preflight_file(launch),
    }
    if launch.on == "slurm":
        out["job.sbatch"] = render("job.sbatch.j2", job=slurm_job(launch, restarts, whole_s))
    if launch.on == "kubernetes":
        out |= manifests(launch, restarts, grace_s)
    return out


def quoted(variable: Var) -> Var:
    """The variable with a value that stands in double quotes."""
    return variable._replace(value=variable.value.replace('"', ""))


def start(launch: LaunchPlan, restarts: int, grace_s: int) -> Start:
    """What launch.sh does."""
    framework = launch.framework
    by_queue = launch.on == "slurm" and launch.by_queue
    return Start(
        name=launch.name,
        nodes=launch.nodes,
        devices=launch.devices,
        per_node=launch.per_node,
        last_node=launch.last_node,
        last_rank=launch.nodes - 1,
        run_id=launch.slug,
        bucket=framework.runtime == "jax",
        stop_file=framework.stop == "file",
        stops_on_term=framework.stop == "term",
        prepare=framework.prepare,
        command=framework.command,
        launcher=framework.launcher,
        loss_rank=framework.loss_rank(launch),
        whole=framework.whole,
        thins=framework.thins,
        keep=launch.keep,
        restarts=0 if by_queue else restarts,
        grace_s=grace_s,
        slurm=launch.on == "slurm",
        tpu=launch.chip == "tpu",
        checks=preflight(launch),
    )


def slurm_job(launch: LaunchPlan, restarts: int, whole_s: float) -> SlurmJob:
    """What job.sbatch asks for: the ends of the wall time, and the failures, put the job back in
    the queue."""
    f = launch.figures
    run_s = LATE * DAY_S * launch.time_share * (f.days_high or f.days or 0.0)
    links = ceil(run_s / LONGEST_JOB_S)
    size, group = launch.segment_nodes, launch.segment_group
    rest = ""
    if links > 1:
        rest = f"; the run needs about {links} of these, the job puts itself back in the queue"
    summary = f"{launch.nodes} nodes train"
    if launch.spares:
        where = "from the queue" if launch.by_queue else "in place"
        summary += (
            f", {launch.spares} more stand by: after a failure the run goes on {where}, on the "
            "nodes that are up"
        )
    return SlurmJob(
        name=launch.name,
        slug=launch.slug,
        nodes=launch.nodes,
        nodes_requested=launch.nodes + launch.spares,
        summary=summary,
        wall=wall_text(min(run_s or LONGEST_JOB_S, LONGEST_JOB_S)),
        rest=rest,
        per_node=0 if launch.chip == "tpu" else launch.per_node,
        lead_s=launch.lead_s,
        lead_minutes=launch.lead_s // 60,
        switches=leaves(launch),
        segment=group,
        segment_trains=size,
        standing_by=f": {size} that train, {group - size} beside them" if group > size else "",
        whole=launch.framework.whole,
        stop=launch.framework.stop,
        framework=launch.to,
        bad_start_s=BAD_START_S,
        bad_start_minutes=BAD_START_S // 60,
        mtbf=span(f.mtbf_s),
        tries=early_failures(known(f.mtbf_s), whole_s),
        restart_by_queue=launch.by_queue,
        requeues=links + restarts if links else ALWAYS,
        run_s=ceil(run_s),
        failures=restarts,
        bad_starts=max(restarts, LEAST_BAD_STARTS),
        all_reduce=launch.gpu and launch.nodes > 1,
    )


def leaves(launch: LaunchPlan) -> int:
    """Sets of leaf switches that the nodes fill at least; 0 where one node or NVLink domains make
    the question another."""
    if launch.nodes == 1 or launch.joined or launch.kin.torus:
        return 0
    return ceil(launch.nodes / launch.leaf_nodes)


def settings(launch: LaunchPlan) -> list[str]:
    """Variables that a run is told from outside: the data, what the trainer and the checks read,
    and what is the site's own."""
    out = [*DATA_SETTINGS, *PREFLIGHT_SETTINGS]
    if launch.framework.has_trainer:
        out += TRAINER_SETTINGS
    if launch.gpu:
        out += ["NCCL_TESTS", "NCCL_DEBUG", *(variable.name for variable in site(launch))]
    return [name for name in (*out, launch.framework.source) if name]


def manifests(launch: LaunchPlan, restarts: int, grace_s: int) -> dict[str, str]:
    """JobSet, and the same as a TrainJob and a PyTorchJob of Kubeflow; the domain of NVLink."""
    names = ["jobset.yaml", "trainingruntime.yaml", "trainjob.yaml"]
    if launch.joined:
        names.insert(0, "computedomain.yaml")
    if launch.framework.launcher != "python":
        names.append("pytorchjob.yaml")
    pod_values = pod(launch, grace_s)
    values = {
        "name": launch.name,
        "slug": launch.slug,
        "nodes": launch.nodes,
        "slices": launch.slices,
        "nodes_of_slice": launch.nodes // launch.slices,
        "restarts": restarts,
        "pod": pod_values,
        "settings": settings(launch),
        "gpu": launch.gpu,
        "remarks": remarks(launch),
        "runtime": launch.framework.runtime,
        "per_node": str(launch.per_node),
        "master": "" if pod_values.slice else f"{launch.slug}-node-0-0.{launch.slug}",
        "kinds": pytorch_kinds(launch.nodes),
    }
    out = {name: render(f"{name}.j2", **values) for name in names}
    return out | {"apply.sh": render("apply.sh.j2", **values)}


def pytorch_kinds(nodes: int) -> list[tuple[str, int]]:
    """(kind, replicas) of a PyTorchJob."""
    return [("Master", 1), ("Worker", nodes - 1)] if nodes > 1 else [("Master", 1)]
