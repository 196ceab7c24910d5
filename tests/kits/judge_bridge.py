"""python judge_bridge.py KIT...: the kit's own pretrain_bridge.config, then Megatron-Bridge's
runtime_config_update, ConfigContainer.validate and layer arithmetic."""

from __future__ import annotations

import json
import logging
import os
import sys
import typing
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
import torch  # noqa: E402
import typing_extensions  # noqa: E402
from stand_ins import bridge, judge_all, without_triton  # noqa: E402

without_triton()
typing.override = typing_extensions.override
CORE = os.environ.get("MCORE", str(Path(sys.prefix) / "mcore"))
CHIP = type("Chip", (), dict(major=9, minor=0, total_memory=80 << 30, name="H100"))()
torch.cuda.get_device_properties = lambda *a, **k: CHIP
torch.cuda.get_device_capability = lambda *a, **k: (CHIP.major, CHIP.minor)
torch.cuda.current_device = lambda: 0
os.environ.update(WORLD_SIZE="8", RANK="0", LOCAL_RANK="0")
bridge(CORE)
import megatron.core.models.common.embeddings.rope_utils as rope  # noqa: E402
import megatron.core.transformer.moe.moe_utils as moe  # noqa: E402
import megatron.core.utils as utils  # noqa: E402
import transformer_engine.pytorch.optimizers as te_optimizers  # noqa: E402
from packaging.version import Version  # noqa: E402

utils._te_version = Version("2.12.0")


class FusedAdam:
    """Transformer Engine's, as far as its arguments: states of a dtype each since 1.11."""

    def __init__(
        self,
        params,
        master_weight_dtype=torch.float32,
        exp_avg_dtype=torch.float32,
        exp_avg_sq_dtype=torch.float32,
        use_decoupled_grad=False,
        store_param_remainders=False,
    ): ...


te_optimizers.FusedAdam = FusedAdam
rope.fused_apply_rotary_pos_emb = rope.fused_apply_rotary_pos_emb or object()
moe.fused_permute = moe.fused_permute_with_probs = moe.fused_unpermute = (
    moe.fused_sort_chunks_by_index
) = moe.fused_sort_chunks_by_index_with_probs = object()
logging.disable(logging.WARNING)
from megatron.bridge.training.config import runtime_config_update  # noqa: E402
from megatron.bridge.training.utils.theoretical_memory_utils import estimate_training_memory  # noqa: E402
from megatron.core.transformer.transformer_block import get_num_layers_to_build  # noqa: E402

FP8 = {"delayed": "fp8", "tensorwise": "fp8-current", "blockwise": "fp8-block", "mxfp8": "mxfp8"}


def uncounted(m):
    """Parameters that theoretical_memory_utils.py leaves out, less those that it counts twice:
    RMSNorm has one vector a norm; routers, biases, learned positions and norms of a head's query
    and key are none of its."""
    layers, hidden, width = m.num_layers, m.hidden_size, m.kv_channels
    groups = m.num_query_groups or m.num_attention_heads
    out = -(2 * layers + 1) * hidden if m.normalization == "RMSNorm" else 0
    out += layers * 2 * width if m.qk_layernorm else 0
    out += m.seq_length * hidden if m.position_embedding_type == "learned_absolute" else 0
    if m.add_qkv_bias or m.add_bias_linear:
        out += layers * (m.num_attention_heads + 2 * groups) * width
    if m.num_moe_experts:
        frequency = m.moe_layer_freq
        with_experts = sum(frequency) if isinstance(frequency, list) else layers // frequency
        out += with_experts * hidden * m.num_moe_experts
    elif m.add_bias_linear:
        out += layers * (2 * hidden + m.ffn_hidden_size * (1 + m.gated_linear_unit))
    return out


def judge(kit):
    kit = Path(kit)
    spec = json.loads((kit / "plan.json").read_text())
    for v in spec["environment"]:
        os.environ[v["name"]] = v["value"]
    os.environ.update(WORLD_SIZE=str(spec["devices"]))
    CHIP.name = "NVIDIA " + spec["accelerator"].partition("-")[0].upper()
    CHIP.major = {"blackwell": 10, "hopper": 9, "ampere": 8, "volta": 7}.get(spec["family"], 9)
    sys.path.insert(0, str(kit))
    import pretrain_bridge

    c = pretrain_bridge.config(pretrain_bridge.lines())
    asked = c.checkpoint.async_save, c.model.sequence_parallel, c.ddp.use_distributed_optimizer
    runtime_config_update(c)
    c.validate()
    if asked != (
        c.checkpoint.async_save,
        c.model.sequence_parallel,
        c.ddp.use_distributed_optimizer,
    ):
        raise ValueError(
            "changed silently: async_save, sequence_parallel or use_distributed_optimizer"
        )
    decays = {c.scheduler.start_weight_decay, c.scheduler.end_weight_decay}
    if decays != {c.optimizer.weight_decay}:
        raise ValueError(f"the scheduler writes {decays} over the optimizer's weight decay")
    m = c.model
    if m.multi_latent_attention != (spec["shape"]["attention"] == "mla"):
        raise ValueError("latent attention is built where none is, or the other way round")
    buffers = m.tp_comm_overlap_cfg
    if buffers is not None and not {"qkv_fprop", "fc2_dgrad"} <= {*buffers}:
        raise ValueError("sizes of user buffers without the products that they are of")
    pp, vpp = m.pipeline_model_parallel_size, m.virtual_pipeline_model_parallel_size or 1
    blocks = m.num_layers // spec["shape"]["layers"]  # that stand for a layer of the design
    if pattern := getattr(m, "hybrid_layer_pattern", None):
        runs = pattern.split("/")[0].split("|")
        stages = [sum(map(len, runs[r::pp])) // blocks for r in range(pp)]
    elif m.pipeline_model_parallel_layout is None:
        stages = [
            sum(
                get_num_layers_to_build(m, vp_stage=v if vpp > 1 else None, pp_rank=r)
                for v in range(vpp)
            )
            for r in range(pp)
        ]
    else:
        stages = [
            sum(kind.name == "decoder" for part in row for kind in part)
            for row in m.pipeline_model_parallel_layout.layout
        ]
    if m.num_moe_experts and c.get_data_parallel_size(
        spec["devices"]
    ) * m.context_parallel_size * m.tensor_model_parallel_size % (
        m.expert_model_parallel_size
        * (m.expert_tensor_parallel_size or m.tensor_model_parallel_size)
    ):
        raise ValueError("expert groups do not divide the ranks of a stage")
    dp = c.data_parallel_size
    if c.train.global_batch_size % (c.train.micro_batch_size * dp):
        raise ValueError(
            f"global batch {c.train.global_batch_size} over {dp} replicas of micro-batch "
            f"{c.train.micro_batch_size}"
        )
    zero = (
        {"optim": "zero1", "optim_grads": "zero2", "optim_grads_params": "zero3"}.get(
            c.ddp.data_parallel_sharding_strategy
        )
        if c.ddp.use_megatron_fsdp
        else "zero1"  # dist_muon has its states on the ranks by whole matrices
        if c.ddp.use_distributed_optimizer or c.optimizer.optimizer == "dist_muon"
        else "none"
    )
    return dict(
        tp=m.tensor_model_parallel_size,
        pp=pp,
        vpp=vpp,
        cp=m.context_parallel_size,
        ep=m.expert_model_parallel_size,
        etp=m.expert_tensor_parallel_size,
        dp=dp,
        sp=bool(m.sequence_parallel),
        sharding=zero,
        micro_batch=c.train.micro_batch_size,
        grad_accum=c.train.global_batch_size // (c.train.micro_batch_size * dp),
        recompute=m.recompute_granularity or "none",
        global_batch=c.train.global_batch_size,
        seq_len=m.seq_length,
        layers_by_stage=stages,
        precision=FP8[m.fp8_recipe]
        if m.fp8
        else "nvfp4"
        if m.fp4
        else "bf16"
        if m.bf16
        else "fp16"
        if m.fp16
        else "fp32",
        save_steps=c.checkpoint.save_interval,
        cp_type={"p2p": "ring", "all_gather": "all-gather", "a2a": "ulysses"}.get(
            m.cp_comm_type[0] if isinstance(m.cp_comm_type, list) else m.cp_comm_type or "p2p"
        ),
        offload="optimizer" if c.optimizer.optimizer_cpu_offload else "none",
        layers=m.num_layers // blocks,
        hidden=m.hidden_size,
        experts=m.num_moe_experts or 0,
        shard_group=0,
        # Bridge's own estimate; other attention it cannot
        params=None
        if pattern or m.multi_latent_attention or m.experimental_attention_variant
        else estimate_training_memory(c, include_activation=False).total_parameters + uncounted(m),
        recompute_layers=-(-m.num_layers // blocks // pp)
        if m.recompute_method == "uniform"
        else (m.recompute_num_layers or 0) * vpp // blocks,
    )


if __name__ == "__main__":
    judge_all(judge, sys.argv[1:])
