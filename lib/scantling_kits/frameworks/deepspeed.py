"""DeepSpeed 0.19: ds_config.json (ZeRO stage, buckets, offload, precision, batch) and a trainer
that takes everything else from plan.json."""

from json import dumps

import yaml
from scantling.catalogue.words import SHARDINGS

from ..render import render, source
from .fsdp import builds as builds, lacks as model_lacks, own

# the stage from which on state is on the hosts; one rank, which shares nothing, takes it
HOSTS = {"none": 0, "optimizer": 1, "optimizer+params": 3}


def lacks(launch, m, *, sharding, offload, dp, cp, **plan) -> dict:
    """ZeRO inside a site too; state on the hosts that its stage does not share out."""
    return model_lacks(launch, m) | {
        "spread": launch.sync and sharding != "none",
        "hosts": dp * cp > 1 and SHARDINGS.index(sharding) < HOSTS[offload],
    }


def files(launch, kit):
    """ds_config.json, train_deepspeed.py, model and trainer."""
    plan = launch.plan
    stage = max(SHARDINGS.index(plan["sharding"]), HOSTS[plan["offload"]])
    said = render("ds_config.yaml.j2", launch=launch, stage=stage)
    return {
        "ds_config.json": dumps(yaml.safe_load(said), indent=1) + "\n",
        "train_deepspeed.py": source("train_deepspeed.py"),
        **own(),
    }
