"""python judge_accelerate.py KIT...: accelerate.yaml through the launcher's parser, its
environment, and the FSDP and parallelism plug-ins that read it."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
import torch.distributed.fsdp  # noqa: E402, F401   the plug-ins import it: once for all kits
from accelerate.commands.config.config_args import load_config_from_file  # noqa: E402
from accelerate.commands.launch import _validate_launch_command, launch_command_parser  # noqa: E402
from accelerate.parallelism_config import ParallelismConfig  # noqa: E402
from accelerate.utils import FullyShardedDataParallelPlugin  # noqa: E402
from accelerate.utils.launch import _filter_args, prepare_multi_gpu_env  # noqa: E402
from stand_ins import command, judge_all, trainer  # noqa: E402
from torch.distributed.run import config_from_args, get_args_parser  # noqa: E402


def started(words):
    """torchrun's configuration that `accelerate launch` makes of these words."""
    args, _, _ = _validate_launch_command(launch_command_parser().parse_args(words[1:]))
    prepare_multi_gpu_env(args)
    parser = get_args_parser()
    return config_from_args(
        _filter_args(
            args,
            parser,
            [
                "--training_script",
                args.training_script,
                "--training_script_args",
                args.training_script_args,
            ],
        )
    )[0]


def judge(kit):
    kit = Path(kit)
    spec = json.loads((kit / "plan.json").read_text())
    file = str(kit / "accelerate.yaml")
    c = load_config_from_file(file)
    seen = [started(words) for words in command(kit, "accelerate")]
    together = seen[0].nproc_per_node * (spec["nodes"] - 1) + seen[-1].nproc_per_node
    if together != spec["devices"] or {s.max_nodes for s in seen} != {spec["nodes"]}:
        raise ValueError(f"the launchers start {together} processes on {seen[0].max_nodes} nodes")
    if spec["nodes"] > 1 and [
        (s.rdzv_backend, s.rdzv_endpoint, s.rdzv_configs["is_host"]) for s in seen
    ] != [("c10d", "node0:29500", "true"), ("c10d", "node0:29500", "false")]:
        raise ValueError(
            f"the nodes do not meet: "
            f"{[(s.rdzv_backend, s.rdzv_endpoint, s.rdzv_configs) for s in seen]}"
        )
    args = launch_command_parser().parse_args(["--config_file", file, "train_accelerate.py"])
    for section, prefix in (
        ("fsdp_config", "fsdp_"),
        ("parallelism_config", "parallelism_config_"),
    ):
        lost = [
            k
            for k in getattr(c, section)
            if not hasattr(args, k if k.startswith(prefix) else prefix + k)
        ]
        if lost:
            raise KeyError(f"the launcher would ignore {lost}")
    args, _, _ = _validate_launch_command(args)
    found = prepare_multi_gpu_env(args)
    os.environ.update(
        {
            k: v
            for k, v in found.items()
            if k.startswith(("FSDP_", "PARALLELISM_CONFIG_", "ACCELERATE_"))
        }
    )
    out = dict(
        tp=1,
        pp=1,
        cp=1,
        dp=c.num_processes,
        sharding="none",
        recompute="none",
        precision="fp32" if c.mixed_precision == "no" else c.mixed_precision,
        nodes=c.num_machines,
    )
    if args.use_fsdp:
        fsdp, ways = FullyShardedDataParallelPlugin(), ParallelismConfig()
        if ways.total_size != c.num_processes:
            raise ValueError(
                f"parallelism_config makes {ways.total_size} of {c.num_processes} processes"
            )
        out |= dict(
            sharding="hsdp"
            if ways.dp_replicate_size > 1
            else "zero3"
            if fsdp.reshard_after_forward
            else "zero2",
            shard_group=ways.dp_shard_size,
            recompute="full" if fsdp.activation_checkpointing else "none",
            dp=ways.dp_replicate_size * ways.dp_shard_size,
            tp=ways.tp_size,
            cp=ways.cp_size,
        )
    if spec["devices"] != c.num_processes:
        raise ValueError(f"{c.num_processes} processes for {spec['devices']} devices")
    return trainer(kit) | out


if __name__ == "__main__":
    judge_all(judge, sys.argv[1:])
