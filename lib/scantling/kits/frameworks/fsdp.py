"""PyTorch FSDP2: train_fsdp.py with fully_shard, mixed precision, activation checkpointing and a
device mesh."""

from __future__ import annotations

from dataclasses import replace

from ..framework import framework
from ..quote import comment, py
from ..render import render, source

OWN = ("model.py", "trainer.py", "handover.py")
LEFT_OUT = (
    "relative_positions embedding_norm sinks shared_gate parallel_block expert_bias router_bias"
).split()


def lacks(launch, m, **plan) -> dict:
    """What the kit's model.py does not build."""
    left = [k for k in LEFT_OUT if getattr(m, k)]
    left += ["qk_norm over the width"] if m.qk_norm == "width" else []
    left += ["norms_per_layer"] if m.norms_per_layer != 2 else []
    return {
        "blocks": ", ".join(left),
        "further_tokens": m.mtp_layers,
        "window": m.window and m.windowed_layers,
    }


def builds(m):
    """The model that model.py builds: what `lacks` names is left out."""
    return replace(
        m,
        **{k: False for k in LEFT_OUT},
        qk_norm="" if m.qk_norm == "width" else m.qk_norm,
        norms_per_layer=2,
        mtp_layers=0,
        window=0,
        windowed_layers=0,
    )


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


def header(launch, kit) -> dict:
    """Values of the trainer's template."""
    return {
        "title": comment(launch.name),
        "model": py(kit["shape"] | {"recompute": launch.plan["recompute"]}),
        "plan": py(kit["train"]),
    }


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


FRAMEWORK = framework(
    "fsdp",
    files=files,
    lacks=lacks,
    builds=builds,
)
