"""python judge_accelerate.py KIT...: accelerate.yaml through the launcher's parser, its environment, and the FSDP and parallelism plug-ins that read it."""
from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
from accelerate.commands.config.config_args import load_config_from_file  # noqa: E402
from accelerate.commands.launch import _validate_launch_command, launch_command_parser  # noqa: E402
from accelerate.parallelism_config import ParallelismConfig  # noqa: E402
from accelerate.utils import FullyShardedDataParallelPlugin  # noqa: E402
from accelerate.utils.launch import prepare_multi_gpu_env  # noqa: E402
from stand_ins import judge_all, trainer  # noqa: E402


def judge(kit):
    kit = Path(kit)
    spec = json.loads((kit / "plan.json").read_text())
    file = str(kit / "accelerate.yaml")
    c = load_config_from_file(file)
    args = launch_command_parser().parse_args(["--config_file", file, "train_accelerate.py"])
    for section, prefix in (("fsdp_config", "fsdp_"), ("parallelism_config", "parallelism_config_")):
        lost = [k for k in getattr(c, section) if not hasattr(args, k if k.startswith(prefix) else prefix + k)]
        if lost:
            raise KeyError(f"the launcher would ignore {lost}")
    args, _, _ = _validate_launch_command(args)
    found = prepare_multi_gpu_env(args)
    os.environ.update({k: v for k, v in found.items() if k.startswith(("FSDP_", "PARALLELISM_CONFIG_", "ACCELERATE_"))})
    out = dict(tp=1, pp=1, cp=1, dp=c.num_processes, sharding="none", recompute="none", precision="fp32" if c.mixed_precision == "no" else c.mixed_precision, nodes=c.num_machines)
    if args.use_fsdp:
        fsdp, ways = FullyShardedDataParallelPlugin(), ParallelismConfig()
        if ways.total_size != c.num_processes:
            raise ValueError(f"parallelism_config makes {ways.total_size} of {c.num_processes} processes")
        out |= dict(sharding="hsdp" if ways.dp_replicate_size > 1 else "zero3" if fsdp.reshard_after_forward else "zero2", shard_group=ways.dp_shard_size,
                    recompute="full" if fsdp.activation_checkpointing else "none", dp=ways.dp_replicate_size * ways.dp_shard_size, tp=ways.tp_size, cp=ways.cp_size)
    if spec["devices"] != c.num_processes:
        raise ValueError(f"{c.num_processes} processes for {spec['devices']} devices")
    return trainer(kit) | out


if __name__ == "__main__":
    judge_all(judge, sys.argv[1:])
