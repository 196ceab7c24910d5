"""Plain DistributedDataParallel: train_ddp.py, whole replicas, with a compression hook where the
network is the limit."""

from ..render import render
from .fsdp import builds as builds, lacks as lacks, own


def files(launch, kit):
    """train_ddp.py with its model and trainer."""
    return {"train_ddp.py": render("train_ddp.py.j2", launch=launch, **kit), **own()}
