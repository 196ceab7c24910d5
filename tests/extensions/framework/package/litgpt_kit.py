"""LitGPT's pretrain command: one YAML file, FSDP with hybrid sharding, no recompute."""

from scantling_kits.framework import framework
from scantling_kits.frameworks.fsdp import lacks
from scantling_kits.render import render


def files(launch, kit):
    """litgpt.yaml, as `litgpt pretrain --config` reads it."""
    node = min(launch.cluster.devices_per_node, launch.plan["dp"])
    values = {"p": launch.plan, "train": kit["train"], "shape": kit["shape"], "node": node}
    return {"litgpt.yaml": render("litgpt.yaml.j2", **values)}


LITGPT = framework("litgpt", files=files, lacks=lacks)
