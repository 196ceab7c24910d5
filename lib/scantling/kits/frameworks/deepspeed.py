"""DeepSpeed 0.19: ds_config.json (ZeRO stage, buckets, offload, precision, batch) and a trainer
that takes everything else from plan.json."""

from json import dumps

import yaml

from ..render import render, source
from .fsdp import builds as builds, lacks as model_lacks, own


def lacks(launch, m, *, sharding, **plan) -> dict:
    """ZeRO inside a site too."""
    return model_lacks(launch, m) | {"spread": launch.sync and sharding != "none"}


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
