"""PyTorch FSDP2: train_fsdp.py with fully_shard, mixed precision, activation checkpointing and a
device mesh."""

from dataclasses import replace

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
        **dict.fromkeys(LEFT_OUT, False),
        qk_norm="" if m.qk_norm == "width" else m.qk_norm,
        norms_per_layer=2,
        mtp_layers=0,
        window=0,
        windowed_layers=0,
    )


def own() -> dict:
    """The files that every kit with its own trainer takes as they are."""
    return {name: source(name) for name in OWN}


def files(launch, kit):
    """train_fsdp.py with its model and trainer."""
    return {"train_fsdp.py": render("train_fsdp.py.j2", launch=launch, **kit), **own()}
