"""PyTorch FSDP2: train_fsdp.py with fully_shard, mixed precision, activation checkpointing and a
device mesh."""

from __future__ import annotations

from functools import cache
from importlib.resources import files as resources

from ..quote import comment, py
from ..record import NORM_EPSILON, Gap, Words, rotary_base

PACKAGE, VERSION, FILE = "torch", "2.13.0", "train_fsdp.py"
LAUNCHER = "torchrun"
ONE = (1,)
DATA_PARALLEL = {
    "tp": (
        ONE,
        (
            "state is split over data-parallel ranks alone; tensor parallelism is another "
            "API, torchtitan combines them"
        ),
    ),
    "pp": (ONE, "one program a rank, no stages; torchtitan and Megatron have them"),
    "vpp": (ONE, "no stages"),
    "cp": (ONE, "every rank holds whole sequences"),
    "ep": (ONE, "experts are sharded like other weights, tokens stay where they are"),
    "etp": (ONE, "no tensor parallelism"),
}
DOMAIN = DATA_PARALLEL | {
    "sharding": (
        ("zero3", "zero2", "hsdp"),
        (
            "fully_shard shards weights, gradients and optimizer states together; optimizer "
            "states alone it does not"
        ),
    ),
    "offload": (("none",), "offload to host memory is not written into this trainer"),
    "precision": (
        ("bf16", "fp16", "fp32"),
        "fp8 and fp4 products are torchao's or Transformer Engine's, not FSDP's",
    ),
    "optimizer": (("adamw",), "the trainer steps AdamW with fp32 moments"),
}
SAVES = (
    (
        "torch.distributed.checkpoint, sharded, one writer a rank; reads back on another "
        "number of ranks"
    ),
    "checkpoints/step-NNNNNNNNN, whole once `.metadata` is there",
    (
        "start the same command again: the newest whole checkpoint is loaded, then the "
        "random state, then step and data position follow"
    ),
    (
        "`python handover.py run/checkpoints/step-N hand-over` on one process: "
        "model.safetensors and config.json; Llama, Qwen3 and Mixtral shapes with the names "
        "of their Hugging Face classes, others with model.py's"
    ),
)
WORDS = Words(
    install=(
        "pip install torch==2.13.0 numpy safetensors     # wandb or tensorboard for a tracker",
    ),
    data=(
        "a flat file of uint32 token ids (numpy's tofile); INIT a folder of safetensors to "
        "start from, as Hugging Face writes it, for fine-tuning"
    ),
    log=(
        "RUN_DIR/metrics.jsonl: step, loss, gradient norm, seconds, tokens/s a device, MFU; "
        "TRACKER=wandb or TRACKER=tensorboard sends the same rows there"
    ),
    profile=(
        "PROFILE_STEP=20 writes RUN_DIR/trace-N.json of two steps, for Perfetto. Memory: "
        "MEMORY_SNAPSHOT=1 writes memory-N.pickle after step 3, opened at "
        "pytorch.org/memory_viz"
    ),
    skip="SKIP=first-last, and the run goes on with the sequences that follow",
    keep="the last three, whole ones only; copy one a day elsewhere",
    knobs=dict(
        micro_batch="micro_batch in PLAN, with grad_accum raised by as much",
        recompute="recompute in PLAN",
        offload="host memory, with the deepspeed kit",
        sharding="sharding in PLAN",
        spill="tensor parallelism, with the torchtitan kit",
    ),
    stop="file",
    rehearse="STEPS=100",
)
OWN = ("model.py", "trainer.py", "handover.py")
LEFT_OUT = (
    "relative_positions",
    "embedding_norm",
    "sinks",
    "shared_gate",
    "parallel_block",
    "expert_bias",
    "router_bias",
)


@cache
def source(name: str) -> str:
    """A file that a kit takes as it is."""
    return (resources(__package__.rpartition(".")[0]) / "templates" / name).read_text()


def gaps(launch):
    """What the kit's model.py does not build."""
    m, out = launch.model, []
    left = (
        [k for k in LEFT_OUT if getattr(m, k)]
        + (["qk_norm over the width"] if m.qk_norm == "width" else [])
        + ([] if m.norms_per_layer == 2 else ["norms_per_layer"])
    )
    if left:
        out.append(
            Gap(
                "model",
                ", ".join(left),
                "model.py does not build it",
                "left out: put your own model there",
                "parameters and step differ slightly",
            )
        )
    if m.mtp_layers:
        out.append(
            Gap(
                "model.mtp_layers",
                m.mtp_layers,
                "model.py does not build the modules that predict further tokens",
                "the next token's loss alone",
                "the assessment counts them",
            )
        )
    if m.window and m.windowed_layers:
        out.append(
            Gap(
                "model.window",
                m.window,
                "model.py attends to the whole sequence",
                "full attention in every layer",
                "the assessment counts the window",
            )
        )
    return out


def own() -> dict[str, str]:
    """The files that every kit with its own trainer takes as they are."""
    return {name: source(name) for name in OWN}


def compressed(launch) -> tuple[bool, str]:
    """(whether gradients go over the network in 16 bit, why): where data-parallel traffic between
    nodes is exposed for a tenth of the step."""
    share, tier = launch.dp_exposed
    slow = share > 0.1 and tier == "scale-out" and launch.phase.precision == "bf16"
    return (
        slow,
        (
            f"gradients and weights on the {tier or 'same device'} are exposed for "
            f"{share:.0%} of the step: "
        )
        + (
            (
                "gradients are sent in bf16, half the bytes; watch the loss against fp32 "
                "for 1,000 steps"
            )
            if slow
            else "gradients are sent in fp32"
        ),
    )


def notes(launch) -> list[str]:
    """What no field of the plan says and the trainer had to choose."""
    return [
        (
            f"Rotary positions have base {rotary_base(launch.model):,} and norms "
            f"{NORM_EPSILON:g}, in every kit: set the model's own (rope_base in plan.json "
            f"and in the script, EPSILON in model.py), or start from INIT, whose config.json "
            f"is then read."
        ),
        (
            "Attention runs in PyTorch's scaled_dot_product_attention (FlashAttention where "
            "the device has it); the output head and the loss in pieces of 2,048 tokens, so "
            "that logits never stand whole."
        ),
    ]


def header(launch, kit) -> dict:
    """Values of the trainer's template."""
    return dict(
        title=comment(launch.name),
        model=py(kit["shape"] | {"recompute": launch.plan["recompute"]}),
        plan=py(kit["train"]),
    )


def files(launch, kit):
    """train_fsdp.py with its model and trainer."""
    from ..scripts import render

    p = launch.plan
    text = {
        "zero3": "weights gathered again in the backward pass",
        "zero2": "weights stay gathered between forward and backward",
        "hsdp": (
            f"sharded over {p['shard_group']} ranks, replicated over "
            f"{p['dp'] // max(p['shard_group'], 1)}"
        ),
    }[p["sharding"]]
    return {
        FILE: render(
            "train_fsdp.py.j2",
            **header(launch, kit),
            sharding_text=text,
            compress=compressed(launch)[0],
            compress_why=compressed(launch)[1],
        ),
        **own(),
    }


def command(launch) -> str:
    """What torchrun starts."""
    return '"$HERE/train_fsdp.py"'
