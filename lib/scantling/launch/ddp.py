"""Plain DistributedDataParallel: train_ddp.py, whole replicas, with a compression hook where the network is the limit."""
from __future__ import annotations

from .fsdp import DATA_PARALLEL, SAVES, gaps, header, source  # noqa: F401

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
    from .scripts import render

    exposed = next((r["exposed_s"] for r in launch.communication if r["axis"] == "dp"), 0.0)
    slow = exposed > 0.1 * launch.step_s and launch.phase.precision == "bf16"
    why = f"gradients' all-reduce is exposed for {exposed / launch.step_s:.0%} of the step: " + ("sent in bf16, half the bytes" if slow else "sent as they are")
    return {FILE: render("train_ddp.py.j2", **header(launch, kit), compress=slow, compress_why=why), "model.py": source("model.py"), "trainer.py": source("trainer.py")}


def command(launch) -> str:
    """What torchrun starts."""
    return '"$HERE/train_ddp.py"'
