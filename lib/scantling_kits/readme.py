"""README.md of a kit: what the template prints."""

from collections.abc import Iterable
from typing import NamedTuple

from scantling.base.records import Lines, record
from scantling.base.show import seconds, value_text
from scantling.plans.plan_names import short

from .budget import Row, budget, checkpoints
from .env import Flag, SiteVariable, flags, site
from .frameworks.megatron_settings import OPTIONS
from .ladder import Rung
from .launch_plan import Gap, LaunchPlan
from .quote import line, md
from .reasons import Reason, justification
from .recipe_settings import Chosen, chosen
from .run_guide import data, first, network, sites, watch
from .run_tools import tools
from .training_schedule import WEIGHT_DECAY
from .troubles import Trouble, troubles
from .values import RunValues, Train, Var

FILES = {  # of the framework, beside its own configuration
    "model.py": "the model, in plain PyTorch",
    "trainer.py": "data, checkpoints, resume, metrics",
    "handover.py": "weights in and out as safetensors",
}
SCHEDULERS = {
    "apply.sh": "brings kit, settings and a manifest to the cluster",
    "computedomain.yaml": "NVLink between the pods of several nodes",
    "job.sbatch": "the Slurm job, which puts itself back in the queue",
    "jobset.yaml": "the Kubernetes JobSet",
    "pytorchjob.yaml": "the same as a PyTorchJob (training operator v1)",
    "trainingruntime.yaml": "what trainjob.yaml names: the pods",
    "trainjob.yaml": "the same as a TrainJob (Kubeflow Trainer v2)",
}
LADDER_HEAD = (
    "rung",
    "devices",
    "layers",
    "plan",
    "step, s (passes up to)",
    "memory, GB (up to)",
    "all-reduce, GB/s (from)",
    "first step after, s (up to)",
)
CHECKPOINT_ROWS = ("where", "frequency", "kept", "room", "recovery")  # of checkpoint.md
OF_THE_CORPUS = "job.corpus."  # how text is gathered and cleaned, which no run reads
STOPS = {
    "file": "To end it with a checkpoint: `touch RUN_DIR/stop`.",
    "term": "To end it with a checkpoint: SIGTERM.",
    "": ("It does not save on a signal: what came after the last checkpoint is done again."),
}


class Assumption(NamedTuple):
    """An input that the design leaves open."""

    field: str
    value: str
    why: str


@record
class Readme:
    """The parts of README.md, in its order."""

    to: str
    title: str
    summary: str
    first: list[str]
    site: list[SiteVariable]
    start_before: list[str]
    start: list[str]  # shell lines
    in_full: str  # what they come to on a node
    start_after: list[str]
    ladder: list[list[str]]  # cells of its rows
    ladder_text: str
    ladder_head: Lines
    folders: str
    equivalent: str
    files: list[Row]
    gaps: list[str]
    compared: str  # the plan beside the one that was assessed
    faster: str
    reasons: list[Reason]
    budget: list[Row]
    checkpoints: list[Row]
    logs: str
    rank_state: str
    limits: list[str]
    network: list[str]
    sites: list[str]
    environment: tuple[Var, ...]
    settings: list[Chosen]  # options beside the plan, of the makers' recipes
    flags: list[Flag]
    data: list[str]
    watch: list[str]
    tools: list[str]
    troubles: list[Trouble]
    training: str
    notes: list[str]
    assumed: list[Assumption]


def ladder_text(launch: LaunchPlan) -> str:
    """What the rungs below the run are for, and how to tell that one passed."""
    tests = "; nccl-tests' output is a log too" if launch.gpu else ""
    return (
        "The same plan, smaller: each rung has its own folder and is started like this one, with "
        "MOCK_DATA=1. Go up only where the one before passes: `python3 check_ladder.py RUNG LOG` "
        f"(limits in `ladder.json`{tests})."
    )


def readme(
    launch: LaunchPlan,
    run: RunValues,
    framework_files: Iterable[str],
    names: Iterable[str],
    rungs: list[Rung],
) -> Readme:
    """README.md of a launch plan; `own`: files of the framework, `names`: all of the kit's."""
    files = [*names]
    return Readme(
        to=launch.to,
        title=f"{md(launch.name)}: launch kit for {launch.to} on {launch.on}",
        summary=summary(launch),
        first=first(launch),
        site=site(launch),
        start_before=start_before(launch),
        start=start(launch, files),
        in_full=in_full(launch),
        start_after=start_after(launch),
        ladder=[ladder_cells(rung) for rung in rungs],
        ladder_text=ladder_text(launch),
        ladder_head=LADDER_HEAD,
        folders=folders(launch),
        equivalent=launch.framework.equivalent(launch),
        files=file_rows(launch, framework_files, files, bool(rungs)),
        gaps=[gap_text(gap) for gap in launch.gaps],
        compared=compared(launch),
        faster=faster(launch),
        reasons=justification(launch),
        budget=budget(launch, run.wall_s),
        checkpoints=[row for row in checkpoints(launch) if row.name in CHECKPOINT_ROWS],
        logs=logs(launch),
        rank_state=rank_state(launch, run.train),
        limits=[*launch.limits()],
        network=network(launch),
        sites=sites(launch),
        environment=run.environment,
        settings=chosen(OPTIONS, launch),
        flags=flags(launch),
        data=data(launch),
        watch=watch(launch),
        tools=tools(launch),
        troubles=troubles(launch),
        training=training(run),
        notes=launch.framework.notes(launch),
        assumed=[
            Assumption(row["field"], value_text(row["value"]), row["why"])
            for row in launch.assumed
            if not row["field"].startswith(OF_THE_CORPUS)
        ],
    )


def summary(launch: LaunchPlan) -> str:
    """The run in a sentence, and what it is written for."""
    chip = md(launch.cluster.accelerator.name)
    steps = f", {launch.steps:,} steps" if launch.steps else ""
    return (
        f"{launch.parameters / 1e9:.4g} billion parameters ({md(launch.model.name)}), "
        f"{launch.devices:,} {chip}, sequences of {launch.phase.seq_len:,}, "
        f"{launch.phase.global_batch:,} a step{steps}. Written for {launch.framework.package} "
        f"{launch.framework.version}. The plan, its figures and what was assumed are in "
        "`plan.json`."
    )


def start_before(launch: LaunchPlan) -> list[str]:
    """What is said before the shell lines that start the run."""
    if launch.on == "torchrun" and launch.nodes > 1:
        return [f"On every node, NODE_RANK from 0 to {launch.nodes - 1}:"]
    return []


def trained_on(launch: LaunchPlan, folder: str) -> str:
    """Settings that name the data: token ids, or text and what makes ids of it."""
    framework = launch.framework
    if framework.reads_by_position:
        return f"DATA={folder}/tokens"
    text = f"'{folder}/text/*.array_record'" if framework.runtime == "jax" else f"{folder}/text"
    return f"DATA={text} TOKENIZER={folder}/tokenizer"


def start(launch: LaunchPlan, files: list[str]) -> list[str]:
    """Shell lines that start the run."""
    if launch.on == "slurm":
        return [f"{trained_on(launch, '/shared')} sbatch job.sbatch"]
    if launch.on == "kubernetes":
        return start_on_kubernetes(launch, files)
    if launch.nodes == 1:
        return [f"{trained_on(launch, '/data')} bash launch.sh"]
    data = trained_on(launch, "/shared")
    return [f"{data} NODE_RANK=0 MASTER_ADDR=first-node bash launch.sh"]


def in_full(launch: LaunchPlan) -> str:
    """The line that launch.sh comes to on a node, its variables as the script has them."""
    framework = launch.framework
    command = framework.command
    if framework.launcher == "torchrun":
        return (
            f"torchrun --nnodes={launch.nodes} --nproc-per-node={launch.per_node} "
            '--rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT" --rdzv-id="$RUN_ID" '
            f"{command}"
        )
    if framework.launcher == "accelerate":
        return (
            'accelerate launch --config_file accelerate.yaml --machine_rank "$NODE_RANK" '
            f"--num_processes {launch.devices} {command}"
        )
    return command


def start_on_kubernetes(launch: LaunchPlan, files: list[str]) -> list[str]:
    """What brings kit, settings and manifests to the cluster, and those that stand in for the
    JobSet."""
    others = "trainjob.yaml, where Kubeflow runs the jobs"
    if "pytorchjob.yaml" in files:
        others = f"pytorchjob.yaml, or {others}"
    line = f"CONTAINER=registry/image:tag {trained_on(launch, '/runs')} bash apply.sh"
    return [f"{line}      # or apply.sh {others}"]


def start_after(launch: LaunchPlan) -> list[str]:
    """What is said after them."""
    if launch.on != "slurm":
        return []
    return [
        "Account and partition, where your site asks for them, by SBATCH_ACCOUNT and "
        "SBATCH_PARTITION; a shorter wall time by SBATCH_TIMELIMIT or `sbatch --time` (the job "
        "puts itself back as often as that makes it); an image by CONTAINER (pyxis; "
        "CONTAINER_MOUNTS for more of the file system); whatever else the run reads, in the "
        "environment that submits."
    ]


def logs(launch: LaunchPlan) -> str:
    """Where every node and rank writes."""
    place = "`RUN_DIR/logs/NODE_RANK-HOST`"
    if launch.on == "slurm":
        place += ", every node's own in `RUN_DIR/logs/NODE_RANK-HOST.log`"
    if launch.framework.launcher == "torchrun":
        shown = "node 0 shows the lines of its first rank"
        if launch.framework.loss_rank(launch):
            shown += " and every node those of one more, one of which prints the loss"
        return (
            f"Logs: {place}, below it a folder a local rank (`attempt_N/RANK/stdout.log` and "
            f"`stderr.log`); {shown}, each with host and rank."
        )
    return f"Logs: {place}."


def ladder_cells(rung: Rung) -> list[str]:
    """A row of the ladder."""
    rate, least = rung["bus_bytes_per_s"], rung["bus_bytes_per_s_low"]
    bus = f"{rate / 1e9:.0f} ({least / 1e9:.0f})" if rate and least else "-"
    return [
        rung["rung"],
        f"{rung['devices']:,}",
        str(rung["layers"]),
        short(rung["plan"]),
        f"{rung['step_s']:.3g} ({rung['step_s_high']:.3g})",
        f"{rung['memory_bytes'] / 1e9:.1f} ({rung['memory_bytes_high'] / 1e9:.1f})",
        bus,
        f"{rung['first_step_s']:.0f} ({rung['first_step_s_high']:.0f})",
    ]


def folders(launch: LaunchPlan) -> str:
    """Where the run writes, and how it ends."""
    return (
        "`RUN_DIR` is where everything is written (default `run/` here), `RUN_ID` the name under "
        f"which restarts find each other. {STOPS[launch.framework.stop]} The number of devices is "
        "fixed by the plan: a lost node is replaced, not done without."
    )


def file_rows(
    launch: LaunchPlan, framework_files: Iterable[str], files: list[str], ladder: bool
) -> list[Row]:
    """Every file, and what it holds."""
    kinds = {launch.framework.file: f"the configuration of {launch.to}"} | FILES
    out = [
        Row(f"`{name}`", kinds.get(name, "what the launcher starts")) for name in framework_files
    ]
    out += [
        Row("`env.sh`", "environment, each variable with its reason"),
        Row("`launch.sh`", "one node's share"),
    ]
    out += [Row(f"`{name}`", SCHEDULERS[name]) for name in files if name in SCHEDULERS]
    out.append(Row("`preflight.sh`", "checks of a node before the first step"))
    out.append(Row("`plan.json`", "the plan, the assessment's figures, what was assumed"))
    out.append(Row("`plan.md`", "why this plan, what it costs, network, environment, tools"))
    out.append(Row("`assumptions.md`", "what the design leaves open, and what no plan says"))
    if ladder:
        out.append(
            Row(
                "`ladder/`, `ladder.json`, `check_ladder.py`",
                "the smaller rungs, what each should show, and the comparison with a log",
            )
        )
    return [*out, Row("`checkpoint.md`", "format, interval, resume, hand-over")]


def gap_text(gap: Gap) -> str:
    """What the framework has no words for, and what stands there instead."""
    cost = f"; {md(gap.cost)}" if gap.cost else ""
    return f"**{gap.field} {md(gap.value)}**: {md(gap.why)}. Instead: {md(gap.instead)}{cost}."


def compared(launch: LaunchPlan) -> str:
    """The kit's plan beside the one that was assessed."""
    plan = short(launch.plan.row)
    if not launch.gaps:
        return f"Nothing of this plan: {plan}."
    longer = (launch.step_s / launch.assessed_step_s - 1) * 100
    return (
        f"Assessed: {short(launch.assessed.row)}, {seconds(launch.assessed_step_s)} a step. "
        f"This kit: {plan}, {seconds(launch.step_s)} a step ({longer:+.1f} %)."
    )


def faster(launch: LaunchPlan) -> str:
    """A plan that is faster once the design's own pins may move; "" where there is none."""
    if launch.faster is None:
        return ""
    plan, step_s = launch.faster
    return (
        f"Faster with {launch.to}, if what the design fixes may move: {short(plan)}, "
        f"{seconds(step_s)} a step. Assess it on its own before taking it."
    )


def rank_state(launch: LaunchPlan, train: Train) -> str:
    """Bytes of one rank's state; "" where the framework's layout is not stated."""
    state = train["state_bytes"]
    if not state:
        return ""
    if state["master"]:
        master = f"fp32 master copy {state['master'] / 1e9:.3f} GB, "
        copies = ""
    else:
        master = ""
        copies = " (the parameters are the fp32 copy: 16-bit ones are made for each use)"
    return (
        f"State of one rank under {launch.to}'s own layout: parameters "
        f"{state['parameters'] / 1e9:.3f} GB, gradients {state['gradients'] / 1e9:.3f} GB, {master}"
        f"moments {state['moments'] / 1e9:.3f} GB{copies}."
    )


def training(run: RunValues) -> str:
    """What no plan says of training."""
    return (
        f"Peak learning rate {run.train['lr']} ({line(run.lr_source)}), AdamW 0.9/0.95, weight "
        f"decay {WEIGHT_DECAY}, clipping at 1.0, warm-up of at most 2,000 steps, seed "
        f"{run.train['seed']}: a start, to be replaced by your own."
    )
