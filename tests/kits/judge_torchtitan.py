"""python judge_torchtitan.py KIT...: torchtitan's ConfigManager on torchtitan_config.py, its meshes
on a fake group, its model on the meta device."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

warnings.filterwarnings("ignore")
import torch  # noqa: E402
from stand_ins import judge_all, provide, without_triton  # noqa: E402

without_triton()
provide("deep_ep")  # kernels of Hopper and later
import torch._library.opaque_object as opaque  # noqa: E402

if not hasattr(opaque, "CustomClassBase"):  # as later torch names it
    opaque.CustomClassBase = opaque.OpaqueBase
import torch.distributed as dist  # noqa: E402
import torchtitan.hf_datasets.text_datasets  # noqa: E402, F401   what the configurations import, once for all kits
import torchtitan.models.deepseek_v3  # noqa: E402, F401
import torchtitan.models.llama3  # noqa: E402, F401
import torchtitan.models.qwen3  # noqa: E402, F401
import torchtitan.trainer  # noqa: E402, F401
from torch.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402
from torchtitan.components.quantization import float8, mx, nvfp4  # noqa: E402
from torchtitan.config.manager import ConfigManager  # noqa: E402
from torchtitan.distributed.parallel_dims import ParallelDims  # noqa: E402
from torchtitan.distributed.utils import set_spmd_backend  # noqa: E402

for formats in (float8, mx, nvfp4):  # the chip that a kit is for has them
    formats.has_cuda_capability = lambda *a: True
FORMATS = {"Float8Linear": "fp8-row", "MXFP8Linear": "mxfp8", "NVFP4Linear": "nvfp4"}


def precision(config, model):
    """The format that the products of the built model run in."""
    kinds = {type(m).__name__ for m in model.modules()} & FORMATS.keys()
    if len(kinds) > 1:
        raise ValueError(f"products in {sorted(kinds)}")
    if kinds:
        return FORMATS[kinds.pop()]
    return "fp32" if config.mixed_precision_param == "float32" else "bf16"


class Batches(NamedTuple):
    """Sequences of a step, as this release counts them."""

    seq_len: int  # tokens
    whole: int
    micro: int
    accum: int  # micro-batches of a rank


def batches(training, parallelism, ranks, stages):
    """Batches in sequences up to 0.3.0, in tokens after it."""
    if hasattr(training, "max_context_length"):
        tokens, step = (
            training.num_tokens_per_microbatch_per_dp_rank,
            training.num_tokens_per_train_step,
        )
        seq_len = training.max_context_length
        passes = parallelism.num_pp_microbatches if stages > 1 else 1
        if tokens % seq_len or step % (tokens * ranks * passes):
            raise ValueError(
                f"{step} tokens a step over {ranks} ranks and {passes} passes of {tokens}"
            )
        return Batches(seq_len, step // seq_len, tokens // seq_len, step // (tokens * ranks))
    local, whole = training.local_batch_size, training.global_batch_size
    if whole % (local * ranks):
        raise ValueError(f"global batch {whole} over {ranks} ranks of {local}")
    micro = parallelism.pipeline_parallel_microbatch_size if stages > 1 else local
    if local % micro:
        raise ValueError("local batch is no multiple of the pipeline's micro-batch")
    return Batches(training.seq_len, whole, micro, whole // (micro * ranks))


def judge(kit):
    kit = Path(kit)
    spec = json.loads((kit / "plan.json").read_text())
    sys.path.insert(0, str(kit))
    os.environ["RUN_DIR"] = "run"
    import torchtitan_config  # noqa: F401   ConfigManager would hide why it cannot be imported

    c = ConfigManager().parse_args(["--module", "torchtitan_config", "--config", "plan"])
    p, t = c.parallelism, c.training
    d = ParallelDims.from_config(p, spec["devices"])
    unit = (d.tp if p.enable_sequence_parallel else 1) * (
        2 * d.cp if d.cp > 1 else 1
    )  # Trainer.__init__ asks for a device before it says these
    ranks = d.dp_replicate * d.dp_shard
    batch = batches(t, p, ranks, d.pp)
    if batch.seq_len % unit:
        raise ValueError(f"{batch.seq_len} tokens must be a multiple of {unit}")
    vpp = 1
    if d.pp > 1:
        kind = get_schedule_class(p.pipeline_parallel_schedule)
        parts = p.module_fqns_per_model_part
        if len(parts) % d.pp or (len(parts) > d.pp) != issubclass(kind, PipelineScheduleMulti):
            raise ValueError(
                f"{len(parts)} parts on {d.pp} stages under {p.pipeline_parallel_schedule}"
            )
        vpp = len(parts) // d.pp
    set_spmd_backend(p.spmd_backend)
    c.model_spec.model.update_from_config(config=c)
    dist.init_process_group("fake", rank=0, world_size=spec["devices"], store=FakeStore())
    d.build_mesh()
    if d.dp_shard * d.cp * d.tp % d.ep:
        raise ValueError(f"ep {d.ep} does not divide {d.dp_shard * d.cp * d.tp}")
    with torch.device("meta"):
        model = c.model_spec.model.build()
    if d.pp > 1:
        named = [n for part in parts for n in part if n.startswith("layers.")]
        if named != [f"layers.{i}" for i in range(len(model.layers))]:
            raise ValueError("parts leave out or repeat layers")
    stages = (
        [
            sum(n.startswith("layers.") for part in parts[r :: d.pp] for n in part)
            for r in range(d.pp)
        ]
        if d.pp > 1
        else [len(model.layers)]
    )
    count = sum(x.numel() for x in model.parameters())
    flex = sum(
        type(m).__name__ == "FlexAttention" for m in model.modules()
    )  # what gathers keys and values under context parallelism
    if not flex:
        raise ValueError("no layer attends by FlexAttention")
    experts = max(
        [
            m.num_experts
            for m in model.modules()
            if isinstance(getattr(m, "num_experts", None), int)
        ],
        default=0,
    )
    kind = type(c.activation_checkpoint).__qualname__ if c.activation_checkpoint else ""
    sharding = (
        "none"
        if d.dp_shard * d.cp == 1 and d.dp_replicate > 1
        else "hsdp"
        if d.dp_replicate > 1
        else "zero2"
        if p.fsdp_reshard_after_forward == "never"
        else "zero3"
    )
    return dict(
        tp=d.tp,
        pp=d.pp,
        vpp=vpp,
        cp=d.cp,
        ep=d.ep,
        dp=ranks,
        sp=bool(p.enable_sequence_parallel and d.tp > 1),
        sharding=sharding,
        shard_group=d.dp_shard * d.cp,
        micro_batch=batch.micro,
        grad_accum=batch.accum,
        recompute="full" if "Full" in kind else "selective" if "Selective" in kind else "none",
        global_batch=batch.whole,
        seq_len=batch.seq_len,
        layers_by_stage=stages,
        precision=precision(t, model),
        save_steps=c.checkpoint.interval,
        async_save=c.checkpoint.async_mode == "async",
        params=count,
        layers=len(model.layers),
        etp=1,
        recompute_layers=-(-len(model.layers) // d.pp) if "Full" in kind else 0,
        cp_type="all-gather",
        offload="optimizer+params" if t.enable_cpu_offload else "none",
        hidden=model.tok_embeddings.weight.shape[1],
        experts=experts,
    )


if __name__ == "__main__":
    judge_all(judge, sys.argv[1:])
