"""DeepSpeed 0.19: ds_config.json (ZeRO stage, buckets, offload, precision, batch) and a trainer
that takes everything else from plan.json."""

from collections.abc import Iterator
from dataclasses import replace
from json import dumps
from typing import Any

from scantling.catalogue.words import SHARDINGS, Offload, Precision, Recompute, Sharding

from ..launch_plan import Domain, Gap, Install, LaunchPlan, Saves
from ..render import source
from ..values import RunValues
from . import fsdp

# the stage from which on state is on the hosts; one rank, which shares nothing, takes it
HOSTS: dict[str, int] = {Offload.NONE: 0, Offload.OPTIMIZER: 1, Offload.OPTIMIZER_PARAMS: 3}
BUCKET = 500_000_000  # elements that go in one message: DeepSpeed's own


def gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What FSDP's kit lacks, ZeRO inside a site, and state on the hosts that its stage does not
    share out."""
    yield from fsdp.gaps(launch)
    p = launch.plan
    if launch.sync and p.sharding != Sharding.NONE:
        why = "ZeRO shares over all ranks, those of other sites too"
        yield Gap("sharding", p.sharding, why)
    if p.dp * p.cp > 1 and SHARDINGS.index(p.sharding) < HOSTS[p.offload]:
        why = "its optimizer goes to the hosts from ZeRO-1 on, parameters with ZeRO-3 alone"
        yield Gap("offload", p.offload, why)


def notes(launch: LaunchPlan) -> list[str]:
    """FSDP's, gradients and optimizers on the host."""
    out = fsdp.notes(launch)
    if launch.does.grad_bytes > 2 and launch.phase.precision == Precision.BF16:
        out.append(
            "The step counts on gradients in fp32; DeepSpeed sums and sends them in 16 bit, half "
            "the bytes: watch the loss (data_types.grad_accum_dtype)."
        )
    if launch.plan.offload != Offload.NONE:
        out.append(
            "AdamW runs on the hosts as DeepSpeedCPUAdam, which compiles itself at the first "
            "start: a C++ compiler and ninja on every node."
        )
    return out


def equivalent(launch: LaunchPlan) -> str:
    """The same by DeepSpeed's own launcher."""
    return (
        f"deepspeed --num_nodes={launch.nodes} --num_gpus={launch.per_node} --no_ssh "
        "--node_rank=$NODE_RANK --master_addr=$MASTER_ADDR --master_port=29500 train_deepspeed.py"
    )


def stage(launch: LaunchPlan) -> int:
    """The ZeRO stage."""
    return max(SHARDINGS.index(launch.plan.sharding), HOSTS[launch.plan.offload])


def zero(launch: LaunchPlan) -> dict[str, Any]:
    """zero_optimization: what ranks share, in pieces of what size, and what is on the hosts."""
    level = stage(launch)
    offload = launch.plan.offload
    out: dict[str, Any] = {
        "stage": level,
        "overlap_comm": level > 0,
        "contiguous_gradients": True,
        "reduce_bucket_size": BUCKET,
    }
    if level in (1, 2):
        out["allgather_bucket_size"] = BUCKET
    if level == 3:
        layer = max(1, round(launch.parameters / launch.model.layers))  # parameters
        out |= {
            "stage3_prefetch_bucket_size": min(layer, BUCKET),
            "stage3_param_persistence_threshold": 0,
            "stage3_max_live_parameters": max(2 * layer, 100_000_000),
            "stage3_gather_16bit_weights_on_model_save": False,
        }
    if offload != Offload.NONE:
        out["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if offload == Offload.OPTIMIZER_PARAMS:
        out["offload_param"] = {"device": "cpu", "pin_memory": True}
    return out


def config(launch: LaunchPlan) -> dict[str, Any]:
    """ds_config.json: what a release of DeepSpeed calls its options stands here alone."""
    p = launch.plan
    precision = launch.phase.precision
    out = {
        "train_batch_size": launch.phase.global_batch,
        "train_micro_batch_size_per_gpu": p.micro_batch,
        "gradient_accumulation_steps": p.grad_accum,
        "gradient_clipping": 1.0,
        "zero_optimization": zero(launch),
        "steps_per_print": 10,
        "wall_clock_breakdown": False,
    }
    if precision == Precision.BF16:
        out["bf16"] = {"enabled": True}
    if precision == Precision.FP16:
        out["fp16"] = {
            "enabled": True,
            "initial_scale_power": 16,
            "loss_scale_window": 1000,
            "hysteresis": 2,
            "min_loss_scale": 1,
        }
    if p.offload != Offload.NONE:
        out["zero_force_ds_cpu_optimizer"] = False
    return out


def files(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    """ds_config.json, train_deepspeed.py, model and trainer."""
    return {
        "ds_config.json": dumps(config(launch), indent=1) + "\n",
        "train_deepspeed.py": source("train_deepspeed.py"),
        **fsdp.trainer_files(),
    }


# state goes to the hosts as far as ZeRO takes it
BASE_DOMAIN = {k: v for k, v in fsdp.FRAMEWORK.domain.items() if k != "offload"}
FRAMEWORK = replace(
    fsdp.FRAMEWORK,
    id="deepspeed",
    package="deepspeed",
    version="0.19.8",
    file="ds_config.json",
    states="16-bit with master",
    saves_in_background=False,
    whole="checkpoints/deepspeed/step-*/whole",
    domain={
        **BASE_DOMAIN,
        "tp": Domain(values=(1,), why="AutoTP is for models of its own list"),
        "sharding": Domain(
            values=(Sharding.NONE, Sharding.ZERO1, Sharding.ZERO2, Sharding.ZERO3),
            why=(
                "hpZ shards the gathered weights by group, gradients and optimizer states it does "
                "not"
            ),
        ),
        "precision": Domain(values=("bf16", "fp16", "fp32"), why="the JSON has no fp8"),
        "recompute": Domain(values=(Recompute.NONE, Recompute.FULL, Recompute.SELECTIVE), why=""),
    },
    saves=Saves(
        format="DeepSpeed's own files, one set a rank",
        place="checkpoints/deepspeed/step-N, whole once its file `whole` is there",
        resume=(
            "start the same command again: the newest whole copy is loaded, then the random state; "
            "step and data position are in it"
        ),
        hand_over=(
            "`python run/checkpoints/deepspeed/zero_to_fp32.py run/checkpoints/deepspeed whole "
            "--safe_serialization`, then `python handover.py whole hand-over`: model.safetensors "
            "and config.json with the names of the Hugging Face class where there is one; "
            "ds_to_universal.py for another number of ranks"
        ),
        begin=fsdp.FRAMEWORK.saves.begin,
    ),
    install=(
        Install(
            "pip install torch==2.14.1 deepspeed==0.19.8 numpy safetensors",
            "wandb or tensorboard for a tracker",
        ),
    ),
    knobs=replace(
        fsdp.FRAMEWORK.knobs,
        micro_batch=(
            "train_micro_batch_size_per_gpu, with gradient_accumulation_steps raised by as much"
        ),
        offload="zero_optimization.offload_optimizer",
        sharding=dict.fromkeys(
            (Sharding.NONE, Sharding.ZERO1, Sharding.ZERO2), "zero_optimization.stage"
        ),
    ),
    network_limit=(
        "The network is a limit: gradients are sent in the 16-bit type of the run already; "
        "zero_quantized_gradients goes to four bits under ZeRO-3 and changes the loss."
    ),
    command='"$HERE/train_deepspeed.py"',
    files=files,
    gaps=gaps,
    equivalent=equivalent,
    notes=notes,
)
