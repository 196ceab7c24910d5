"""Hugging Face Accelerate 1.15: accelerate.yaml (FSDP2 and parallelism_config, or MULTI_GPU) and a
short trainer."""

from ..render import render, source
from .fsdp import builds as builds, lacks as model_lacks, own


def lacks(launch, m, *, recompute, recompute_layers, sharding, **plan) -> dict:
    """Partial recompute too."""
    full = recompute == "full"
    return model_lacks(launch, m) | {
        "partial": full and recompute_layers < m.layers,
        "plain": full and sharding == "none",
    }


def files(launch, kit):
    """accelerate.yaml, train_accelerate.py, model and trainer. How the nodes meet is on the
    launcher's line in launch.sh, since it takes no notice of the YAML's words for that."""
    return {
        "accelerate.yaml": render("accelerate.yaml.j2", launch=launch),
        "train_accelerate.py": source("train_accelerate.py"),
        **own(),
    }
