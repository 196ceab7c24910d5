"""Hugging Face Accelerate 1.15: accelerate.yaml (FSDP2 and parallelism_config, or MULTI_GPU) and a
short trainer."""

from collections.abc import Iterator
from dataclasses import replace

from scantling.catalogue.words import Precision, Recompute, Sharding

from ..launch_plan import Domain, Gap, Install, LaunchPlan
from ..render import render, source
from ..values import RunValues
from . import fsdp


def gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What FSDP's kit lacks, and partial recompute too."""
    yield from fsdp.gaps(launch)
    p = launch.plan
    if p.recompute == Recompute.FULL and p.recompute_layers < launch.model.layers:
        yield Gap("recompute_layers", p.recompute_layers, "all layers recompute or none")
    if p.recompute == Recompute.FULL and p.sharding == Sharding.NONE:
        yield Gap("recompute", p.recompute, "only the FSDP plug-in recomputes")


def files(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    """accelerate.yaml, train_accelerate.py, model and trainer. How the nodes meet is on the
    launcher's line in launch.sh, since it takes no notice of the YAML's words for that."""
    p = launch.plan
    precision = launch.phase.precision
    configuration = render(
        "accelerate.yaml.j2",
        sharded=p.sharding != Sharding.NONE,
        precision="'no'" if precision == Precision.FP32 else precision,
        nodes=launch.nodes,
        devices=launch.devices,
        reshard=p.sharding != Sharding.ZERO2,
        recompute=p.recompute == Recompute.FULL,
        replicate=p.dp // launch.shards,
        shard=launch.shards,
    )
    return {
        "accelerate.yaml": configuration,
        "train_accelerate.py": source("train_accelerate.py"),
        **fsdp.trainer_files(),
    }


FRAMEWORK = replace(
    fsdp.FRAMEWORK,
    id="accelerate",
    package="accelerate",
    version="1.15.0",
    file="accelerate.yaml",
    launcher="accelerate",
    domain={
        **fsdp.FRAMEWORK.domain,
        "sharding": Domain(
            values=(Sharding.ZERO3, Sharding.ZERO2, Sharding.HSDP, Sharding.NONE),
            why=(
                "FSDP2 shards all state together; optimizer states alone need the DeepSpeed or "
                "Megatron plug-in"
            ),
        ),
        "offload": Domain(values=("none",), why="offload is not written into this kit"),
        "precision": Domain(
            values=("bf16", "fp16", "fp32"),
            why="fp8 wants a backend of its own and its own model code",
        ),
        "recompute": Domain(
            values=("none", "full"), why="fsdp_activation_checkpointing is on or off"
        ),
    },
    install=(
        Install(
            "pip install torch==2.14.1 accelerate==1.15.0 numpy safetensors",
            "wandb or tensorboard for a tracker",
        ),
    ),
    knobs=replace(
        fsdp.FRAMEWORK.knobs,
        recompute="fsdp_activation_checkpointing",
        offload="fsdp_offload_params",
        sharding={
            Sharding.NONE: "distributed_type: FSDP, with its fsdp_config",
            Sharding.ZERO2: "fsdp_reshard_after_forward",
        },
    ),
    network_limit=(
        "The network is a limit; the YAML has no word for the type of the reduction: use the fsdp "
        "kit, which sends bf16."
    ),
    space={"recompute_share": (1.0,)},
    command='"$HERE/train_accelerate.py"',
    files=files,
    gaps=gaps,
)
