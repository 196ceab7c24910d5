"""LitGPT's pretrain command: one YAML file, FSDP with hybrid sharding, no recompute."""

from dataclasses import replace

from scantling_kits.frameworks import fsdp
from scantling_kits.launch_plan import Domain, Install, LaunchPlan, Saves
from scantling_kits.render import render
from scantling_kits.values import RunValues


def keep(copies: int, days: float) -> str:
    """What becomes of old checkpoints."""
    return "every save stays"


def files(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    """litgpt.yaml, as `litgpt pretrain --config` reads it."""
    node = min(launch.cluster.devices_per_node, launch.plan.dp)
    nodes = launch.plan.dp // node
    text = render("litgpt.yaml.j2", train=run.train, shape=run.shape, node=node, nodes=nodes)
    return {"litgpt.yaml": text}


LITGPT = replace(
    fsdp.FRAMEWORK,
    id="litgpt",
    package="litgpt",
    version="0.5.12",
    file="litgpt.yaml",
    has_trainer=False,
    reads_by_position=False,
    saves_in_background=False,
    stop="",
    domain={
        **fsdp.FRAMEWORK.domain,
        "sharding": Domain(
            values=("hsdp",), why="litgpt pretrain has one strategy, FSDP with hybrid sharding"
        ),
        "recompute": Domain(values=("none",), why="litgpt pretrain computes no activations again"),
        "precision": Domain(
            values=("bf16",), why="bf16-true and bf16-mixed are what its recipes train with"
        ),
    },
    saves=Saves(
        format="a state dict of Lightning Fabric, whole",
        place="step-NNNNNNNN/lit_model.pth",
        resume="resume: auto in litgpt.yaml finds the newest",
        hand_over="litgpt convert_from_litgpt CHECKPOINT OUT",
    ),
    install=(Install("pip install 'litgpt[extra]==0.5.12'"),),
    data="the folder of a dataset that LitGPT's LitData module streams",
    log="logs/csv/version_0/metrics.csv",
    profile="nsys profile before the command",
    skip="not offered",
    keep=keep,
    rehearse="train.max_steps 100 in litgpt.yaml",
    command='-m litgpt pretrain --config "$HERE/litgpt.yaml" --out_dir "$RUN_DIR"',
    files=files,
)
