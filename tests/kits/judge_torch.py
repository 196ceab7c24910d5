"""python judge_torch.py KIT...: train_fsdp.py, train_ddp.py and launch.sh's torchrun line, on a
fake group and the meta device by torch's own API."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from stand_ins import command, judge_all  # noqa: E402
from torch.distributed.fsdp import FSDPModule  # noqa: E402
from torch.distributed.run import config_from_args, get_args_parser  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

SMALL = dict(layers=2, hidden=64, ffn_hidden=64, heads=2, kv_heads=2, head_dim=32, vocab=64)
WITHOUT = dict(
    tp=1, pp=1, vpp=1, cp=1, ep=1, etp=1, sp=False, offload="none", cp_type="all-gather"
)  # what these trainers have no words for


def torchrun(kit):
    """The line of launch.sh as torchrun's own parser reads it."""
    config, _, _ = config_from_args(get_args_parser().parse_args(command(kit, "torchrun")[0]))
    if config.max_nodes > 1 and not (
        config.rdzv_endpoint == "node0:29500" and config.rdzv_configs["is_host"] == "true"
    ):
        raise ValueError(
            f"node 0 does not keep the rendezvous: {config.rdzv_endpoint} {config.rdzv_configs}"
        )
    return config


def judge(kit):
    kit = Path(kit)
    spec = json.loads((kit / "plan.json").read_text())
    config = torchrun(kit)
    sys.path.insert(0, str(kit))
    dist.init_process_group("fake", rank=0, world_size=spec["devices"], store=FakeStore())
    out = dict(nodes=config.max_nodes, per_node=config.nproc_per_node)
    if (kit / "train_fsdp.py").exists():
        import train_fsdp as t

        with torch.device("meta"):
            model = t.Transformer(t.MODEL)
        wrapped = sum(
            "_checkpoint_wrapped" in n
            for n, _ in t.shard(model, t.mesh("cpu")).named_modules()
            if n.endswith("_checkpoint_wrapped_module")
        )
        groups = [m for m in model.modules() if isinstance(m, FSDPModule)]
        state = groups[1]._get_fsdp_state()._fsdp_param_group
        info = state.post_forward_mesh_info
        p0 = next(model.parameters())
        mesh = p0.device_mesh
        if mesh.size() != dist.get_world_size():
            raise ValueError(f"a mesh of {mesh.size()} of {dist.get_world_size()} ranks")
        again = info is not None
        out |= dict(
            sharding="hsdp" if mesh.ndim == 2 else "zero3" if again else "zero2",
            dp=mesh.size(),
            shard_group=mesh.size(mesh.ndim - 1),
            precision={torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}[
                state.mp_policy.param_dtype
            ],
            recompute_layers=wrapped,
            blocks=len(groups) - 1,
        )
    else:
        import train_ddp as t

        with torch.device("meta"):
            model = t.Transformer(t.MODEL)
        whole, t.MODEL = t.MODEL, t.MODEL | SMALL
        wrapped = t.build(torch.device("cpu"))[
            0
        ]  # DistributedDataParallel itself, on a small model
        t.MODEL = whole
        if not isinstance(wrapped, torch.nn.parallel.DistributedDataParallel):
            raise TypeError(f"{type(wrapped).__name__} is not DistributedDataParallel")
        out |= dict(
            sharding="none",
            dp=wrapped.process_group.size(),
            precision={torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}[
                t.PRECISION
            ],
            shard_group=0,
            recompute_layers=t.PLAN["recompute_layers"],
        )
    count = sum(p.numel() for p in model.parameters())
    plan = t.PLAN
    if plan["micro_batch"] * plan["grad_accum"] * plan["dp"] != plan["global_batch"]:
        raise ValueError("micro-batches do not make the global batch")
    if plan["dp"] != dist.get_world_size():
        raise ValueError(f"a plan of {plan['dp']} ranks on {dist.get_world_size()}")
    return (
        out
        | WITHOUT
        | dict(
            micro_batch=plan["micro_batch"],
            grad_accum=plan["grad_accum"],
            global_batch=plan["global_batch"],
            seq_len=plan["seq_len"],
            recompute=plan["recompute"],
            params=count,
            layers=len(model.blocks),
            layers_by_stage=[len(model.blocks)],
            hidden=t.MODEL["hidden"],
            experts=t.MODEL["experts"],
            save_steps=plan["save_steps"],
        )
    )


if __name__ == "__main__":
    os.environ.setdefault("RANK", "0")
    judge_all(judge, sys.argv[1:])
