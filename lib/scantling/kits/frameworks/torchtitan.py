"""torchtitan 0.3: a Python module whose `plan()` returns the run's Trainer.Config."""

from __future__ import annotations

from ..quote import comment, py
from ..record import Gap, Words, rotary_base
from .fsdp import SAVES as DCP
from .megatron import chunks

PACKAGE, VERSION, FILE = "torchtitan", "0.3.0", "torchtitan_config.py"
LAUNCHER = "torchrun"
SCHEDULES = {
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "zb-v": "ZBVZeroBubble",
    "dualpipe": "DualPipeV",
}
SPACE = {"recompute_share": (1.0,)}
DOMAIN = {
    "sharding": (
        ("zero3", "zero2", "hsdp", "none"),
        (
            "torchtitan shards weights, gradients and optimizer states together; optimizer "
            "states alone it does not"
        ),
    ),
    "schedule": (("1f1b", "interleaved"), "this kit writes 1F1B and interleaved 1F1B"),
    "etp": ((1,), "experts are split over ranks, never inside"),
    "cp_type": (
        ("all-gather",),
        "under FlexAttention keys and values are gathered; no ring, and heads are not exchanged",
    ),
    "offload": (
        ("none",),
        "offload is all or nothing there (training.enable_cpu_offload), and not counted",
    ),
    "precision": (
        ("bf16", "fp32"),
        (
            "fp8 and fp4 are converters of the model with needs of their own (torchao, "
            "shapes in multiples of 16): add them to the module"
        ),
    ),
    "optimizer": (("adamw",), "the kit writes AdamW"),
}
SAVES = (
    DCP[0],
    "checkpoint/step-N below the dump folder",
    DCP[2].split(":")[0] + ": checkpoint.enable loads the newest",
    (
        "checkpoint.last_save_in_hf = True writes safetensors at the end, for architectures "
        "it has an adapter for"
    ),
)

WORDS = Words(
    install=(
        "pip install torch==2.13.0 torchtitan==0.3.0",
        (
            "export TOKENIZER=/shared/tokenizer     # a folder with tokenizer.json: "
            "torchtitan reads text, not token ids"
        ),
    ),
    data=(
        "a folder of text that the `datasets` library reads as c4; another layout wants an "
        "entry of its own in torchtitan's DATASETS"
    ),
    log=(
        "standard output and TensorBoard below RUN_DIR: loss, grad_norm, tps, tflops, mfu "
        "of every logged step; enable_wandb=True beside enable_tensorboard sends them to a "
        "tracker"
    ),
    profile=(
        "profiler=Profiler.Config(enable_profiling=True, profile_freq=100) in "
        "torchtitan_config.py, for Perfetto; enable_memory_snapshot=True for "
        "pytorch.org/memory_viz"
    ),
    skip="no option lists steps, so change the order of the data set",
    keep="checkpoint.keep_latest_k: the last three; copy one a day elsewhere",
    knobs=dict(
        micro_batch="training.local_batch_size",
        recompute="activation_checkpoint",
        offload="training.enable_cpu_offload",
        sharding="parallelism.data_parallel_shard_degree",
        spill="parallelism.tensor_parallel_degree",
    ),
    stop="",
    rehearse="steps=100 in torchtitan_config.py",
)


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
    from ..scripts import render

    p, m, job = launch.plan, launch.model, launch.phase
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
        steps=launch.steps or 1_000_000,
        mixed_precision_param="float32" if job.precision == "fp32" else "bfloat16",
        disable_cuda_graphs=p["pp"] > 1 or p["ep"] > 1,
    )
    return {
        FILE: render(
            "torchtitan_config.py.j2",
            title=comment(launch.name),
            shape=py(kit["shape"]),
            parallelism=parallelism,
            training=training,
            recompute=p["recompute"],
            every=launch.save_steps,
            keep=3,
            lr=kit["train"]["lr"],
            warm=min(2000, (launch.steps or 1_000_000) // 20),
            seed=kit["train"]["seed"],
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
