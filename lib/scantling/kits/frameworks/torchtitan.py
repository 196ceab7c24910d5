"""torchtitan 0.3: a Python module whose `plan()` returns the run's Trainer.Config."""

from __future__ import annotations

from ..framework import framework
from ..quote import comment, py
from ..record import Gap, rotary_base
from ..render import render
from ..schedule import schedule
from .megatron import chunks

SCHEDULES = {
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "zb-v": "ZBVZeroBubble",
    "dualpipe": "DualPipeV",
}


def gaps(launch):
    """What the model builders lack."""
    m, p, out = launch.model, launch.plan, []
    if m.mlp != "swiglu" or m.norm_bias or m.position_rows or m.mlp_bias or m.qkv_bias:
        out.append(
            Gap(
                "model",
                m.name,
                (
                    "torchtitan's builders make SwiGLU layers with RMSNorm and rotary "
                    "positions, without biases"
                ),
                "the same widths in that form",
                "parameters differ",
            )
        )
    if m.mtp_layers:
        out.append(
            Gap(
                "model.mtp_layers",
                m.mtp_layers,
                "its modules need DeepSeek-V3's own loss",
                "the next token's loss alone",
                "the assessment counts them",
            )
        )
    if m.window and m.windowed_layers:
        out.append(
            Gap(
                "model.window",
                m.window,
                "the kit's layers attend to the whole sequence",
                "full attention in every layer",
                "the assessment counts the window",
            )
        )
    if m.tied_embeddings:
        out.append(
            Gap(
                "model.tied_embeddings",
                True,
                "the kit builds an output head of its own",
                "two matrices",
                "one embedding more",
            )
        )
    if p["recompute"] == "full" and p["recompute_layers"] < -(-m.layers // p["pp"]):
        out.append(Gap("recompute_layers", p["recompute_layers"], "FullAC wraps every block"))
    if p["recompute"] == "selective" and launch.stack != "torchtitan":
        out.append(
            Gap(
                "recompute",
                "selective",
                (
                    "SelectiveAC keeps the attention core's output and every second matrix "
                    "product, and computes the rest again"
                ),
                "selective",
                (
                    "more compute and less memory than the assessment counts, which repeats "
                    "the attention core alone"
                ),
            )
        )
    if p["sharding"] == "hsdp" and p["shard_group"] % p["cp"]:
        out.append(Gap("shard_group", p["shard_group"], "a shard group holds whole context groups"))
    if p["sharding"] == "none" and p["cp"] > 1:
        out.append(Gap("sharding", "none", "context-parallel ranks share one sharded copy"))
    if p["ep"] > 1 and (dp_shard(launch) * p["cp"] * p["tp"]) % p["ep"]:
        out.append(Gap("ep", p["ep"], "ep divides the ranks of one shard group"))
    if p["pp"] > 1 and p["grad_accum"] < p["pp"]:
        out.append(Gap("pp", p["pp"], "as many micro-batches as stages, at least"))
    return out


def notes(launch) -> list[str]:
    """What no field of the plan says and the module had to choose."""
    return [
        (
            f"Rotary positions have base {rotary_base(launch.model):,} and norms the "
            f"builders' epsilon: set the model's own (rope_base in SHAPE)."
        )
    ]


def adjust(pins, own, outside):
    """Pins of a nearest plan: pipelines of sharded state do not interleave, and context parallelism
    gathers."""
    if "sharding" in outside and pins.get("pp", 1) > 1:
        pins = {**pins, "vpp": 1, "schedule": "1f1b"}
    return (
        {**pins, "cp_type": "all-gather"}
        if "cp_type" in outside and own.plan["cp"] > 1 and "cp" in pins
        else pins
    )


def dp_shard(launch) -> int:
    """Data-parallel ranks that share one copy."""
    p = launch.plan
    return (
        p["dp"]
        if p["sharding"] in ("zero3", "zero2")
        else p["shard_group"] // p["cp"]
        if p["sharding"] == "hsdp"
        else 1
    )


def parts(launch) -> list[list[str]]:
    """Names of the modules of every virtual stage."""
    out, at = [], 0
    for n in chunks(launch):
        out.append([f"layers.{i}" for i in range(at, at + n)])
        at += n
    out[0].insert(0, "tok_embeddings")
    out[-1] += ["norm", "lm_head"]
    return out


def files(launch, kit):
    """torchtitan_config.py."""
    p, m, job = launch.plan, launch.model, launch.phase
    values = schedule(launch, kit)
    parallelism = dict(
        data_parallel_replicate_degree=p["dp"] // dp_shard(launch),
        data_parallel_shard_degree=dp_shard(launch),
        tensor_parallel_degree=p["tp"],
        context_parallel_degree=p["cp"],
        pipeline_parallel_degree=p["pp"],
        expert_parallel_degree=p["ep"],
        enable_sequence_parallel=bool(p["sp"]) or p["tp"] == 1,
        fsdp_reshard_after_forward="never" if p["sharding"] == "zero2" else "always",
    )
    if (
        p["cp"] > 1
    ):  # the balancer for masks of FlexAttention; the default one is for plain attention
        parallelism |= dict(context_parallel_load_balancer="ptrr")
    if p["pp"] > 1:
        parallelism |= dict(
            pipeline_parallel_schedule=SCHEDULES[p["schedule"]],
            pipeline_parallel_microbatch_size=p["micro_batch"],
            module_fqns_per_model_part=parts(launch),
        )
    training = dict(
        local_batch_size=p["micro_batch"] * (p["grad_accum"] if p["pp"] > 1 else 1),
        global_batch_size=job.global_batch,
        seq_len=job.seq_len,
        steps=values["steps"],
        mixed_precision_param="float32" if job.precision == "fp32" else "bfloat16",
        disable_cuda_graphs=p["pp"] > 1 or p["ep"] > 1,
    )
    return {
        "torchtitan_config.py": render(
            "torchtitan_config.py.j2",
            title=comment(launch.name),
            shape=py(kit["shape"]),
            parallelism=parallelism,
            training=training,
            recompute=p["recompute"],
            every=launch.save_steps,
            keep=3,
            lr=values["lr"],
            warm=values["warm"],
            seed=values["seed"],
            moe=m.is_moe,
            mla=m.attention == "mla",
            slug=launch.slug,
        )
    }


def command(launch) -> str:
    """What torchrun starts."""
    return "-m torchtitan.train --module torchtitan_config --config plan"


def prepare(launch) -> str:
    """Shell lines before the command."""
    return 'export PYTHONPATH="$HERE${PYTHONPATH:+:$PYTHONPATH}"'


FRAMEWORK = framework(
    "torchtitan",
    files=files,
    command=command,
    gaps=gaps,
    adjust=adjust,
    prepare=prepare,
    notes=notes,
)
