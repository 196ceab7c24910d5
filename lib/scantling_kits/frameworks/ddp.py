"""Plain DistributedDataParallel: train_ddp.py, whole replicas, with a compression hook where the
network is the limit."""

from dataclasses import replace

from ..launch_plan import Domain, LaunchPlan
from ..render import render
from ..values import RunValues
from . import fsdp
from .torch_gradients import gradients


def files(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    """train_ddp.py with its model and trainer."""
    narrow, why = gradients(launch)
    program = render(
        "train_ddp.py.j2",
        name=launch.name,
        model=run.shape | {"recompute": launch.plan.recompute},
        plan=run.train,
        narrow=narrow,
        why=why,
    )
    return {"train_ddp.py": program, **fsdp.trainer_files()}


FRAMEWORK = replace(
    fsdp.FRAMEWORK,
    id="ddp",
    file="train_ddp.py",
    domain={
        **fsdp.FRAMEWORK.domain,
        "sharding": Domain(
            values=("none",), why="every rank holds all weights, gradients and optimizer states"
        ),
        "offload": Domain(values=("none",), why="nothing is offloaded"),
        "precision": Domain(values=("bf16", "fp16", "fp32"), why="autocast has 16-bit types only"),
    },
    knobs=replace(fsdp.FRAMEWORK.knobs, sharding={"none": "with the fsdp kit"}),
    network_limit=(
        "The network is a limit: with plan.gradients bf16, train_ddp.py registers "
        "bf16_compress_hook (COMPRESS); PowerSGD's hook sends less again and changes the loss."
    ),
    command='"$HERE/train_ddp.py"',
    files=files,
)
