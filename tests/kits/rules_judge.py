"""python judge.py FRAMEWORK < CASES: plans as JSON lines, each put before the framework's own
checks; one JSON line an answer.

Megatron-LM: parse_args, validate_args, TransformerConfig, process groups, the splits of its linear
layers, the micro-batch calculator, the cut of a sequence, what the interleaved schedule asks for.
torchtitan: ParallelDims, the trainer's checks of length and batch, its pipeline schedules.
DeepSpeed: DeepSpeedConfig, and what its PipelineEngine asserts of the ZeRO stage.
"""

from __future__ import annotations

import io
import json
import os
import sys
import typing
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

warnings.filterwarnings("ignore")
sys.path.insert(0, str(Path(__file__).parent))


def megatron():
    import torch
    import typing_extensions
    from stand_ins import without_triton

    without_triton()
    typing.override = typing_extensions.override
    sys.path.insert(0, os.environ.get("MCORE", str(Path(sys.prefix) / "mcore")))
    chip = type("Chip", (), dict(major=9, minor=0, total_memory=80 << 30, name="H100"))()
    torch.cuda.get_device_properties = lambda *a, **k: chip
    torch.cuda.get_device_capability = lambda *a, **k: (9, 0)
    import megatron.core.models.common.embeddings.rope_utils as rope
    import megatron.core.utils as utils
    from packaging.version import Version

    utils._te_version = Version("2.12.0")
    rope.fused_apply_rotary_pos_emb = rope.fused_apply_rotary_pos_emb or object()
    import torch.distributed as dist
    from megatron.core import parallel_state
    from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator
    from megatron.core.tensor_parallel.mappings import _split_along_first_dim
    from megatron.core.transformer.transformer_block import get_num_layers_to_build
    from megatron.training import arguments
    from torch.testing._internal.distributed.fake_pg import FakeStore

    def judge(x):
        world = x["tp"] * x["cp"] * x["pp"] * x["dp"]
        os.environ.update(
            RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(world), CUDA_DEVICE_MAX_CONNECTIONS="1"
        )
        flags = {
            "num-layers": x["layers"],
            "hidden-size": x["hidden"],
            "num-attention-heads": x["heads"],
            "ffn-hidden-size": x["ffn_hidden"],
            "num-query-groups": x["kv_heads"],
            "seq-length": x["seq_len"],
            "max-position-embeddings": x["seq_len"],
            "micro-batch-size": x["micro_batch"],
            "global-batch-size": x["global_batch"],
            "tensor-model-parallel-size": x["tp"],
            "pipeline-model-parallel-size": x["pp"],
            "context-parallel-size": x["cp"],
            "train-iters": 10,
            "lr": 1e-4,
            "vocab-size": 32000,
            "tokenizer-type": "NullTokenizer",
            "transformer-impl": "transformer_engine",
        }
        argv = [w for k, v in flags.items() for w in (f"--{k}", str(v))] + [
            "--group-query-attention",
            "--swiglu",
            "--bf16",
            "--disable-bias-linear",
            "--mock-data",
        ]
        if x["vpp"] > 1:
            argv += ["--num-virtual-stages-per-pipeline-rank", str(x["vpp"])]
        if x["experts"]:
            argv += [
                "--num-experts",
                str(x["experts"]),
                "--moe-ffn-hidden-size",
                str(x["expert_ffn_hidden"]),
                "--moe-router-topk",
                "2",
                "--expert-model-parallel-size",
                str(x["ep"]),
                "--expert-tensor-parallel-size",
                str(x["etp"]),
                "--moe-token-dispatcher-type",
                "alltoall",
            ]
        elif x["ep"] > 1:
            argv += ["--expert-model-parallel-size", str(x["ep"])]
        argv += ["--sequence-parallel"] if x["tp"] > 1 else []
        argv += ["--use-distributed-optimizer"] if x["sharding"] == "zero1" else []
        sys.argv = ["pretrain_gpt.py", *argv]
        a = arguments.parse_args()
        arguments.validate_args(a)
        config = arguments.core_transformer_config_from_args(a)
        dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
        parallel_state.initialize_model_parallel(
            a.tensor_model_parallel_size,
            a.pipeline_model_parallel_size,
            a.virtual_pipeline_model_parallel_size,
            context_parallel_size=a.context_parallel_size,
            expert_model_parallel_size=a.expert_model_parallel_size,
            expert_tensor_parallel_size=a.expert_tensor_parallel_size,
            create_gloo_process_groups=False,
        )
        assert a.data_parallel_size == x["dp"]
        m = ConstantNumMicroBatchesCalculator(
            a.global_batch_size, a.micro_batch_size, a.data_parallel_size, False, 0
        ).get()
        utils.divide(
            config.ffn_hidden_size, a.tensor_model_parallel_size
        )  # ColumnParallelLinear.__init__
        if x["experts"]:
            utils.divide(config.moe_ffn_hidden_size, a.expert_tensor_parallel_size)
        tokens = torch.zeros(1, x["seq_len"], dtype=torch.int8)
        utils._get_batch_on_this_cp_rank_per_sequence_balancing(
            {"tokens": tokens}, parallel_state.get_context_parallel_group()
        )
        if a.sequence_parallel:
            _split_along_first_dim(
                tokens[0, : x["seq_len"] // x["cp"]].clone(),
                parallel_state.get_tensor_model_parallel_group(),
            )
        pp, vpp = a.pipeline_model_parallel_size, a.virtual_pipeline_model_parallel_size or 1
        if vpp > 1:  # schedules.py, forward_backward_pipelining_with_interleaving
            group = config.microbatch_group_size_per_vp_stage
            if not pp <= group <= m or 0 < m % group < pp:
                raise ValueError(f"{m} micro-batches in groups of {group} do not suit {pp} stages")
        stages = [
            sum(
                get_num_layers_to_build(config, vp_stage=v if vpp > 1 else None, pp_rank=r)
                for v in range(vpp)
            )
            for r in range(pp)
        ]
        return dict(stages=stages, micro_batches=m)

    return judge


def torchtitan():
    import torch  # noqa: F401
    from stand_ins import without_triton

    without_triton()
    from torch.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class
    from torchtitan.distributed.parallel_dims import ParallelDims

    def judge(x):
        replicate, shard = (
            (x["dp"] // x["group"], x["group"]) if x["sharding"] == "hsdp" else (1, x["dp"])
        )
        world = x["tp"] * x["cp"] * x["pp"] * x["dp"]
        d = ParallelDims(
            dp_replicate=replicate,
            dp_shard=shard,
            cp=x["cp"],
            tp=x["tp"],
            pp=x["pp"],
            ep=x["ep"],
            world_size=world,
        )
        unit = (d.tp if d.tp > 1 else 1) * (2 * d.cp if d.cp > 1 else 1)
        if x["seq_len"] % unit:
            raise ValueError(f"seq_len must be a multiple of {unit}")  # Trainer.__init__
        if x["global_batch"] % (x["micro_batch"] * x["dp"]):
            raise ValueError("global batch")  # Trainer.__init__
        if x["pp"] > 1:
            kind = get_schedule_class("Interleaved1F1B" if x["vpp"] > 1 else "1F1B")
            if (x["vpp"] > 1) != issubclass(kind, PipelineScheduleMulti):
                raise ValueError("schedule")
            if x["layers"] < x["pp"] * x["vpp"]:
                raise ValueError("empty stages")
        if x["experts"] and d.dp_shard * d.cp * d.tp % d.ep:
            raise ValueError("expert mesh")
        if x["experts"] and x["experts"] % d.ep:
            raise ValueError("experts do not divide")
        return {}

    return judge


def deepspeed():
    os.environ["DS_ACCELERATOR"] = "cpu"
    from deepspeed.runtime import config as C
    from deepspeed.runtime.pipe.engine import PipelineEngine

    class Ranks:
        def __init__(self, dp):
            self.dp = dp

        def get_data_parallel_world_size(self):
            return self.dp

    def judge(x):
        import inspect

        C.dist.get_rank, C.dist.get_world_size = (lambda *a: 0), (lambda *a, **k: x["dp"])
        stage = {"none": 0, "zero1": 1, "zero2": 2, "zero3": 3}[x["sharding"]]
        c = C.DeepSpeedConfig(
            {
                "train_batch_size": x["global_batch"],
                "train_micro_batch_size_per_gpu": x["micro_batch"],
                "bf16": {"enabled": True},
                "zero_optimization": {"stage": stage},
            },
            mpu=Ranks(x["dp"]),
        )
        if x["pp"] > 1:
            assert (
                "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism"
                in inspect.getsource(PipelineEngine.__init__)
            )
            if stage >= 2:
                raise ValueError("ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism")
        return dict(micro_batches=c.gradient_accumulation_steps)

    return judge


def main():
    """One child process a case: frameworks keep global state."""
    judge = {"megatron": megatron, "torchtitan": torchtitan, "deepspeed": deepspeed}[sys.argv[1]]()
    for line in sys.stdin:
        case = json.loads(line)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            out = {"ok": False}
            try:
                with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                    out |= {"ok": True, **judge(case)}
            except BaseException as e:  # noqa: BLE001  argparse leaves by SystemExit
                out["error"] = f"{type(e).__name__}: {e}"[:400]
                if os.environ.get("TRACE"):
                    import traceback

                    out["trace"] = traceback.format_exc()[-1500:]
            with os.fdopen(writer, "w") as f:
                json.dump(out, f, default=str)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as f:
            text = f.read()
        os.waitpid(pid, 0)
        print(text or '{"ok": false, "error": "the judge died"}', flush=True)


if __name__ == "__main__":
    main()
