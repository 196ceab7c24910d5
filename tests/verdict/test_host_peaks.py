"""Host memory beside training: what a model takes as it is loaded, and a copy as it is saved."""

from __future__ import annotations

import pytest
from scantling import assess
from scantling.verdict.limits import limits


def lines(word: str, model: str, devices: int, stack: str, job=None, plan=None, **cluster):
    design = {
        "model": model,
        "cluster": {"accelerator": "a100-80-sxm", "devices": devices} | cluster,
        "job": {"tokens": 1e9, "seq_len": 2048, "global_batch": devices, "precision": "bf16"}
        | (job or {"from_checkpoint": True}),
        "plan": plan or {"sharding": "zero3", "micro_batch": 1, "recompute": "full"},
        "stack": stack,
    }
    return [line for line in limits(assess(design), advice=False) if line.startswith(word)]


@pytest.mark.parametrize("stack", ["hf-trainer", "deepspeed"])
def test_every_process_of_a_node_may_load_the_whole_model(stack):
    """transformers, pull request 25107: Falcon-40B takes 160 GB in fp32 in each of 8 processes,
    1,280 GB in all, and the script is killed where a node has less."""
    (line,) = lines("loading: ", "falcon-40b", 16, stack, host_memory_gb=1000)
    assert "1.32 TB in fp32" in line and "8 processes" in line
    assert not lines("loading: ", "falcon-40b", 16, stack, host_memory_gb=1500)
    assert not lines("loading: ", "falcon-40b", 16, stack, {"from_checkpoint": False})


def test_stacks_that_load_shards_or_train_from_nothing_say_nothing_of_loading():
    """torch.distributed.checkpoint and torch_dist read a shard for each rank."""
    for stack in ("torchtitan", "megatron-core"):
        assert not lines("loading: ", "falcon-40b", 16, stack, host_memory_gb=500)


def test_a_copy_on_its_way_to_the_file_system_takes_the_hosts_memory():
    """A 744B model with 14 bytes a parameter on 16 nodes of 4 GB300 (960 GB each) stages 650 GB a
    node before it writes, and is killed at its first save. On twice as many nodes half of it is
    staged."""
    plan = {"tp": 8, "pp": 4, "ep": 16, "sharding": "zero1", "recompute": "full"}

    def saved(devices):
        return lines(
            "saving: ",
            "deepseek-v3",
            devices,
            "megatron-core",
            {"from_checkpoint": True},
            plan,
            accelerator="gb300-nvl72",
        )

    (line,) = saved(64)
    assert f"{682 * 14 / 16:.0f} GB" in line and "960 GB" in line  # 671 B and 11 of MTP
    assert not saved(128)
