"""DeepSpeed 0.19: ds_config.json (ZeRO stage, buckets, offload, precision, batch) and a trainer
that takes everything else from plan.json."""

from json import dumps

import yaml

from ...catalogue.words import SHARDINGS
from ..render import render, source
from .fsdp import builds as builds, lacks as model_lacks, own

# the stages that have state on the hosts; one rank alone has all of them
HOSTS = {
    "none": SHARDINGS,
    "optimizer": ("zero1", "zero2", "zero3"),
    "optimizer+params": ("zero3",),
}


def lacks(launch, m, *, sharding, offload, dp, cp, **plan) -> dict:
    """ZeRO inside a site too; state on the hosts that its stage does not share out."""
    return model_lacks(launch, m) | {
        "spread": launch.sync and sharding != "none",
        "hosts": dp * cp > 1 and sharding not in HOSTS[offload],
    }


def files(launch, kit):
    """ds_config.json, train_deepspeed.py, model and trainer."""
    return {
        "ds_config.json": dumps(
            yaml.safe_load(render("ds_config.yaml.j2", launch=launch)), indent=1
        )
        + "\n",
        "train_deepspeed.py": source("train_deepspeed.py"),
        **own(),
    }
