"""Plain DistributedDataParallel: train_ddp.py, whole replicas, with a compression hook where the
network is the limit."""

from __future__ import annotations

from ..framework import framework
from ..render import render
from .fsdp import compressed, gaps, header, notes, own


def files(launch, kit):
    """train_ddp.py with its model and trainer."""
    slow, why = compressed(launch)
    return {
        "train_ddp.py": render(
            "train_ddp.py.j2", **header(launch, kit), compress=slow, compress_why=why
        ),
        **own(),
    }


def command(launch) -> str:
    """What torchrun starts."""
    return '"$HERE/train_ddp.py"'


FRAMEWORK = framework(
    "ddp",
    files=files,
    command=command,
    gaps=gaps,
    notes=notes,
)
