"""Plain DistributedDataParallel: train_ddp.py, whole replicas, with a compression hook where the
network is the limit."""

from __future__ import annotations

from .fsdp import DATA_PARALLEL, SAVES, WORDS, compressed, gaps, header, notes, own  # noqa: F401

PACKAGE, VERSION, FILE = "torch", "2.13.0", "train_ddp.py"
LAUNCHER = "torchrun"
DOMAIN = DATA_PARALLEL | {
    "sharding": (("none",), "every rank holds all weights, gradients and optimizer states"),
    "offload": (("none",), "nothing is offloaded"),
    "precision": (("bf16", "fp16", "fp32"), "autocast has 16-bit types only"),
    "optimizer": (("adamw",), "the trainer steps AdamW with fp32 moments"),
}


def files(launch, kit):
    """train_ddp.py with its model and trainer."""
    from ..scripts import render

    slow, why = compressed(launch)
    return {
        FILE: render("train_ddp.py.j2", **header(launch, kit), compress=slow, compress_why=why),
        **own(),
    }


def command(launch) -> str:
    """What torchrun starts."""
    return '"$HERE/train_ddp.py"'
