"""PyTorch FSDP2: train_fsdp.py with fully_shard, mixed precision, activation checkpointing and a
device mesh."""

from __future__ import annotations

from ..framework import framework
from ..quote import comment, py
from ..record import NORM_EPSILON, Gap, rotary_base
from ..render import render, source

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
        "train_fsdp.py": render(
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


FRAMEWORK = framework(
    "fsdp",
    files=files,
    command=command,
    gaps=gaps,
    notes=notes,
)
