"""python judge_megatron.py KIT...: Megatron-LM's own parse_args, validate_args, TransformerConfig,
process groups and layer arithmetic on megatron.args."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import typing
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
import torch  # noqa: E402
import typing_extensions  # noqa: E402
from stand_ins import judge_all, provide, without_triton  # noqa: E402

without_triton()
typing.override = typing_extensions.override
sys.path.insert(0, os.environ.get("MCORE", str(Path(sys.prefix) / "mcore")))
CHIP = type("Chip", (), dict(major=9, minor=0, total_memory=80 << 30, name="H100"))()
torch.cuda.get_device_properties = lambda *a, **k: CHIP
torch.cuda.get_device_capability = lambda *a, **k: (CHIP.major, CHIP.minor)
import megatron.core.models.common.embeddings.rope_utils as rope  # noqa: E402
import megatron.core.transformer.moe.moe_utils as moe  # noqa: E402
import megatron.core.utils as utils  # noqa: E402
from packaging.version import Version  # noqa: E402

utils._te_version = Version("2.12.0")
rope.fused_apply_rotary_pos_emb = rope.fused_apply_rotary_pos_emb or object()
moe.fused_permute = moe.fused_permute_with_probs = moe.fused_unpermute = (
    moe.fused_sort_chunks_by_index
) = moe.fused_sort_chunks_by_index_with_probs = object()
import torch.distributed as dist  # noqa: E402
from megatron.core import parallel_state  # noqa: E402
from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator  # noqa: E402
from megatron.core.transformer.transformer_block import get_num_layers_to_build  # noqa: E402
from megatron.training import arguments  # noqa: E402
from megatron.training.theoretical_memory_usage import compute_weight_and_optimizer_memory  # noqa: E402
from megatron.training.vocab_utils import calculate_padded_vocab_size  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402


class Norm(torch.nn.Module):
    """What Transformer Engine's and mamba_ssm's norms hold: one weight a value."""

    def __init__(self, *widths, hidden_size=None, **rest):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(hidden_size or widths[0]))


class BiasedNorm(Norm):
    """What the norm of an indexer's keys holds."""

    def __init__(self, *widths, **rest):
        super().__init__(*widths, **rest)
        self.bias = torch.nn.Parameter(torch.empty_like(self.weight))


class Linear(torch.nn.Linear):
    """What Transformer Engine's linear layer holds."""

    def __init__(self, wide, out, *, bias, **rest):
        super().__init__(wide, out, bias=bias)


def block_letters(a):
    """The blocks of the layers, a letter each, without those of further tokens."""
    if a.hybrid_layer_pattern:
        return a.hybrid_layer_pattern.split("/")[0].replace("|", "")
    experts = a.moe_layer_freq
    experts = experts if isinstance(experts, list) else [1] * a.num_layers
    linear = a.linear_attention_freq or [0] * a.num_layers
    plain = "D" if a.experimental_attention_variant == "dsa" else "*"
    return "".join(
        ("G" if scans else plain) + ("E" if a.num_experts and expert else "-")
        for scans, expert in zip(linear, experts, strict=True)
    )


def block_parameters(a, c):
    """Parameters of Megatron's blocks that these arguments build, on the meta device and one
    rank."""
    import contextlib
    import types

    import megatron.core.models.hybrid.hybrid_block as block
    import megatron.core.post_training.modelopt.hybrid.model_specs as specs
    import megatron.core.ssm.gated_delta_net.common as delta
    import megatron.core.ssm.gated_delta_net.gdn as gdn
    import megatron.core.ssm.mamba_mixer as mixer
    import megatron.core.transformer.attention as attention
    import megatron.core.transformer.moe.moe_layer as experts
    import megatron.core.transformer.multi_latent_attention as latent
    from megatron.core.models.hybrid.hybrid_model import HybridModel
    from megatron.core.process_groups_config import ProcessGroupCollection

    specs.Norm = block.TENorm = attention.TENorm = mixer.ExtendedRMSNorm = Norm
    experts.HAVE_TE, experts.TELinear = True, Linear
    latent.Linear = specs.Linear
    delta.HAVE_FLA, gdn.chunk_gated_delta_rule = True, object()
    mixer.HAVE_MAMBA_SSM = mixer.HAVE_EINOPS = True
    mixer.get_cuda_rng_tracker = lambda: types.SimpleNamespace(fork=contextlib.nullcontext)
    torch.cuda.current_device = lambda: "meta"
    torch.cuda.Stream = lambda *a, **k: None
    arange = torch.arange
    torch.arange = lambda *a, **k: arange(*a, **k | {"device": "meta"})
    c.tensor_model_parallel_size = c.expert_model_parallel_size = c.context_parallel_size = 1
    c.moe_token_dispatcher_type = "alltoall"  # the others ask for more than one process
    c.pipeline_model_parallel_size, c.expert_tensor_parallel_size = 1, 1
    c.virtual_pipeline_model_parallel_size, c.sequence_parallel = None, False
    c.gradient_accumulation_fusion = c.perform_initialization = False
    c.use_cpu_initialization, c.mtp_num_layers = True, None
    c.num_layers, c.is_hybrid_model = len(block_letters(a)), True
    c.experimental_attention_variant, c.moe_layer_freq = None, 1
    dist.destroy_process_group()
    parallel_state.destroy_model_parallel()
    dist.init_process_group("fake", rank=0, world_size=1, store=FakeStore())
    parallel_state.initialize_model_parallel(1, 1, create_gloo_process_groups=False)
    stack = specs.get_hybrid_stack_modelopt_spec(local_core_attention=True)
    sparse = stack.submodules.dsa_layer.submodules.self_attention.submodules
    sparse.core_attention.submodules.indexer.submodules.k_norm = BiasedNorm
    if c.qk_layernorm:  # experimental_attention_variant_module_specs.py: of both latents
        sparse.q_layernorm = sparse.kv_layernorm = Norm
    with torch.device("meta"):
        model = HybridModel(
            config=c,
            hybrid_stack_spec=stack,
            vocab_size=a.vocab_size,
            max_sequence_length=a.seq_length,
            hybrid_layer_pattern=block_letters(a),
            share_embeddings_and_output_weights=not a.untie_embeddings_and_output_weights,
            position_embedding_type=a.position_embedding_type,
            pg_collection=ProcessGroupCollection.use_mpu_process_groups(),
        )
    return sum(p.numel() for p in model.parameters())


def uncounted(a):
    """Parameters that training/theoretical_memory_usage.py leaves out (biases of queries, keys and
    values; norms of a head's query and key), less the rows that fill the vocabulary up to a whole
    number a rank, which nothing reads."""
    width, heads = a.kv_channels, a.num_attention_heads
    groups = a.num_query_groups if a.group_query_attention else heads
    one = (heads + 2 * groups) * width if a.add_qkv_bias else 0
    one += 2 * width if a.qk_layernorm and not a.multi_latent_attention else 0
    rows = -a.vocab_size % a.tensor_model_parallel_size
    tables = 1 + a.untie_embeddings_and_output_weights
    return a.num_layers * one - rows * tables * a.hidden_size


FP8 = {"delayed": "fp8", "tensorwise": "fp8-current", "blockwise": "fp8-block", "mxfp8": "mxfp8"}


def judge(kit):
    kit = Path(kit)
    spec = json.loads((kit / "plan.json").read_text())
    world = spec["devices"]
    for name in spec["environment"]:
        os.environ[name["name"]] = name["value"]
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(world))
    CHIP.major = {"blackwell": 10, "hopper": 9, "ampere": 8, "volta": 7}.get(spec["family"], 9)
    sys.argv = ["pretrain_gpt.py", *shlex.split((kit / "megatron.args").read_text())]
    a = arguments.parse_args()
    asked = dict(vars(a))
    provide("nvidia_resiliency_ext")  # of copies near the devices: asked for, and imported
    arguments.validate_args(a)
    c = arguments.core_transformer_config_from_args(a)
    m = ConstantNumMicroBatchesCalculator(
        a.global_batch_size, a.micro_batch_size, a.data_parallel_size, False, 0
    ).get()
    dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
    parallel_state.initialize_model_parallel(
        a.tensor_model_parallel_size,
        a.pipeline_model_parallel_size,
        a.virtual_pipeline_model_parallel_size,
        context_parallel_size=a.context_parallel_size,
        expert_model_parallel_size=a.expert_model_parallel_size,
        expert_tensor_parallel_size=a.expert_tensor_parallel_size,
        create_gloo_process_groups=False,
        num_distributed_optimizer_instances=a.num_distributed_optimizer_instances,
        order="tp-cp-ep-pp-dp" if a.use_tp_pp_dp_mapping else "tp-cp-ep-dp-pp",  # initialize.py
    )
    inside = [parallel_state.get_model_parallel_group()]
    if a.num_experts:
        inside.append(parallel_state.get_expert_model_parallel_group())
    if a.use_distributed_optimizer:
        inside.append(
            parallel_state.get_data_parallel_group(
                with_context_parallel=True, partial_data_parallel=True
            )
        )
    reach = max(max(dist.get_process_group_ranks(g)) for g in inside)  # of rank 0's groups
    if reach >= world // spec["sites"]:
        raise ValueError(f"a group of rank 0 reaches rank {reach}, on another site")
    pp, vpp = a.pipeline_model_parallel_size, a.virtual_pipeline_model_parallel_size or 1
    if vpp > 1:  # what schedules.py would raise at the first step
        group = c.microbatch_group_size_per_vp_stage
        if not pp <= group <= m or 0 < m % group < pp:
            raise ValueError(f"{m} micro-batches in groups of {group} do not suit {pp} stages")
    blocks = a.num_layers // spec["shape"]["layers"]  # that stand for a layer of the design
    if a.hybrid_layer_pattern:
        runs = a.hybrid_layer_pattern.split("/")[0].split("|")
        stages = [sum(map(len, runs[r::pp])) // blocks for r in range(pp)]
    elif a.pipeline_model_parallel_layout is None:
        stages = [
            sum(
                get_num_layers_to_build(c, vp_stage=v if vpp > 1 else None, pp_rank=r)
                for v in range(vpp)
            )
            for r in range(pp)
        ]
    else:
        stages = [
            sum(kind.name == "decoder" for part in row for kind in part)
            for row in c.pipeline_model_parallel_layout.layout
        ]
    # Muon's states are spread over the data-parallel ranks layer by layer
    spread = a.use_distributed_optimizer or a.use_layer_wise_distributed_optimizer
    silent = {
        k: (asked[k], getattr(a, k))
        for k in ("async_save", "sequence_parallel", "overlap_param_gather", "overlap_grad_reduce")
        if asked[k] != getattr(a, k)
    }
    if asked["use_distributed_optimizer"] != spread:
        silent["use_distributed_optimizer"] = spread
    if silent:
        raise ValueError(f"changed silently: {silent}")
    zero = (
        {"optim": "zero1", "optim_grads": "zero2", "optim_grads_params": "zero3"}.get(
            a.data_parallel_sharding_strategy
        )
        if a.use_megatron_fsdp
        else "zero1"
        if spread
        else "none"
    )
    one = argparse.Namespace(
        **vars(a)
    )  # Megatron's own count: 18 bytes a parameter of one rank that holds everything
    one.tensor_model_parallel_size = one.pipeline_model_parallel_size = one.data_parallel_size = (
        one.expert_model_parallel_size
    ) = one.expert_tensor_parallel_size = 1
    one.world_size = 1
    one.use_distributed_optimizer, one.padded_vocab_size = (
        False,
        calculate_padded_vocab_size(
            a.vocab_size, a.make_vocab_size_divisible_by, a.tensor_model_parallel_size
        ),
    )
    # which that count does not know
    other = a.hybrid_layer_pattern or a.experimental_attention_variant
    if not other:
        params = round(compute_weight_and_optimizer_memory(one) / 18) + uncounted(a)
    layers = (
        -(-a.num_layers // blocks // pp)
        if a.recompute_method == "uniform"
        else (a.recompute_num_layers or 0) * vpp // blocks
    )
    if other:
        params = block_parameters(a, c)
    recompute = {None: "none", "full": "full", "selective": "selective"}[a.recompute_granularity]
    return dict(
        tp=a.tensor_model_parallel_size,
        pp=pp,
        vpp=vpp,
        cp=a.context_parallel_size,
        ep=a.expert_model_parallel_size,
        etp=a.expert_tensor_parallel_size,
        dp=a.data_parallel_size,
        sp=bool(a.sequence_parallel),
        sharding=zero,
        micro_batch=a.micro_batch_size,
        grad_accum=m,
        recompute=recompute,
        global_batch=a.global_batch_size,
        seq_len=a.seq_length,
        layers_by_stage=stages,
        recompute_layers=layers,
        params=params,
        shard_group=0,
        precision=FP8[a.fp8_recipe]
        if a.fp8
        else "nvfp4"
        if a.fp4
        else "bf16"
        if a.bf16
        else "fp16"
        if a.fp16
        else "fp32",
        cp_type={"p2p": "ring", "all_gather": "all-gather", "a2a": "ulysses"}.get(
            (a.cp_comm_type or ["p2p"])[0]
        ),
        offload="optimizer" if a.optimizer_cpu_offload else "none",
        save_steps=a.save_interval,
        async_save=bool(a.async_save),
        layers=a.num_layers // blocks,
        hidden=a.hidden_size,
        experts=a.num_experts or 0,
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--options"]:
        from megatron.training.arguments import add_megatron_arguments

        p = argparse.ArgumentParser(allow_abbrev=False)
        add_megatron_arguments(p)  # noqa: E702
        print("\n".join(sorted(o for a in p._actions for o in a.option_strings)))
        sys.exit()
    judge_all(judge, sys.argv[1:])
