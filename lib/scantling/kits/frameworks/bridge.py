"""Megatron-Bridge 0.6: bridge.overrides (Hydra, one a line) on a plain GPT recipe, and the script
that applies them."""

from __future__ import annotations

from ..framework import framework
from ..render import source
from . import megatron

PRECISION = {
    "bf16": "bf16_mixed",
    "fp16": "fp16_mixed",
    "fp8": "bf16_with_fp8_delayed_scaling_mixed",
    "fp8-current": "bf16_with_fp8_current_scaling_mixed",
    "fp8-block": "bf16_with_fp8_subchannel_scaling_mixed",
    "mxfp8": "bf16_with_mxfp8_mixed",
    "nvfp4": "bf16_with_nvfp4_mixed",
}


def word(value) -> str:
    """A value as Hydra reads it."""
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def overrides(launch, lr: float) -> dict:
    """Every override, by dotted name."""
    p, m, job = launch.plan, launch.model, launch.phase
    steps = launch.steps or 1_000_000
    out = {
        "model.num_layers": m.layers,
        "model.hidden_size": m.hidden,
        "model.ffn_hidden_size": m.ffn_hidden or m.expert_ffn_hidden,
        "model.num_attention_heads": m.heads,
        "model.seq_length": job.seq_len,
        "model.vocab_size": m.vocab,
        "model.make_vocab_size_divisible_by": 1,
        "model.normalization": "LayerNorm" if m.norm_bias else "RMSNorm",
        "model.gated_linear_unit": m.mlp in ("swiglu", "geglu"),
        "model.add_bias_linear": m.mlp_bias or m.out_bias,
        "model.position_embedding_type": "learned_absolute" if m.position_rows else "rope",
        "model.share_embeddings_and_output_weights": m.tied_embeddings,
    }
    if m.attention == "mla":
        out |= {
            "model.q_lora_rank": m.q_lora or None,
            "model.kv_lora_rank": m.kv_lora,
            "model.qk_head_dim": m.qk_nope,
            "model.qk_pos_emb_head_dim": m.qk_rope,
            "model.v_head_dim": m.v_head_dim,
            "model.rope_type": "rope",
            "model.apply_rope_fusion": False,
        }
    else:
        out |= {"model.num_query_groups": m.kv_heads, "model.kv_channels": m.head_dim}
    out |= {"model.qk_layernorm": True} if m.qk_norm else {}
    out |= {"model.add_qkv_bias": True} if m.qkv_bias and not (m.mlp_bias or m.out_bias) else {}
    if m.is_moe:
        flags = {row[0]: row[1:] for row in megatron.model_arguments(launch)}
        out |= {
            "model.num_moe_experts": m.experts,
            "model.moe_router_topk": m.top_k,
            "model.moe_ffn_hidden_size": m.expert_ffn_hidden,
            "model.moe_grouped_gemm": True,
            "model.moe_token_dispatcher_type": "alltoall",
            "model.moe_permute_fusion": True,
            "model.moe_router_dtype": "fp32",
            "model.expert_model_parallel_size": p["ep"],
            "model.expert_tensor_parallel_size": p["etp"],
        }
        out |= (
            {
                "model.moe_router_score_function": "sigmoid",
                "model.moe_router_enable_expert_bias": True,
                "model.moe_router_load_balancing_type": "seq_aux_loss",
                "model.moe_aux_loss_coeff": 1e-4,
            }
            if m.router_buffers
            else {
                "model.moe_router_load_balancing_type": "aux_loss",
                "model.moe_aux_loss_coeff": 1e-3,
            }
        )
        out |= (
            {"model.moe_layer_freq": _list(flags["--moe-layer-freq"][0])}
            if "--moe-layer-freq" in flags
            else {}
        )
        out |= (
            {"model.moe_shared_expert_intermediate_size": m.shared_ffn_hidden}
            if m.shared_ffn_hidden
            else {}
        )
    out |= {"model.mtp_num_layers": m.mtp_layers} if m.mtp_layers else {}
    out |= {
        "model.tensor_model_parallel_size": p["tp"],
        "model.pipeline_model_parallel_size": p["pp"],
        "model.context_parallel_size": p["cp"],
        "model.sequence_parallel": p["sp"],
    }
    out |= {"model.cp_comm_type": megatron.CP[p["cp_type"]]} if p["cp"] > 1 else {}
    if p["pp"] > 1:
        text = megatron.layout(launch)
        out |= {"model.pipeline_model_parallel_layout": text} if text else {}
        out |= {"model.virtual_pipeline_model_parallel_size": p["vpp"]} if p["vpp"] > 1 else {}
    if p["recompute"] == "full":
        each, some = -(-m.layers // (p["pp"] * p["vpp"])), -(-p["recompute_layers"] // p["vpp"])
        out |= {
            "model.recompute_granularity": "full",
            "model.recompute_method": "uniform" if some >= each else "block",
            "model.recompute_num_layers": 1 if some >= each else some,
        }
    elif p["recompute"] == "selective":
        out |= {"model.recompute_granularity": "selective"}
    fsdp = p["sharding"] in megatron.ZERO
    out |= {
        "ddp.use_distributed_optimizer": p["sharding"] != "none",
        "optimizer.use_distributed_optimizer": p["sharding"] != "none",
        "ddp.overlap_grad_reduce": p["sharding"] != "none",
        "ddp.overlap_param_gather": p["sharding"] != "none",
        "ddp.use_megatron_fsdp": fsdp,
        "ddp.data_parallel_sharding_strategy": megatron.ZERO.get(p["sharding"], "no_shard"),
    }
    out |= (
        {"model.gradient_accumulation_fusion": False, "ddp.average_in_collective": False}
        if fsdp
        else {}
    )
    out |= (
        {
            "optimizer.optimizer_cpu_offload": True,
            "optimizer.optimizer_offload_fraction": 1.0,
            "optimizer.use_precision_aware_optimizer": True,
        }
        if p["offload"] == "optimizer"
        else {}
    )
    out |= {
        "mixed_precision": PRECISION[job.precision],
        "train.train_iters": steps,
        "train.global_batch_size": job.global_batch,
        "train.micro_batch_size": p["micro_batch"],
        "train.exit_signal_handler": True,
        "dataset.seq_length": job.seq_len,
        "tokenizer.tokenizer_type": "NullTokenizer",
        "tokenizer.vocab_size": m.vocab,
        "optimizer.lr": lr,
        "optimizer.min_lr": lr / 10,
        "scheduler.lr_warmup_iters": min(2000, steps // 20),
        "checkpoint.save_interval": launch.save_steps,
        "checkpoint.ckpt_format": "fsdp_dtensor" if fsdp else "torch_dist",
        "checkpoint.async_save": not fsdp,
        "checkpoint.most_recent_k": 3,
        "model.attention_dropout": 0.0,
        "model.hidden_dropout": 0.0,
        "validation.eval_iters": 0,
        "rng.seed": megatron.SEED,
        "dataset.random_seed": megatron.SEED,
        "model.layernorm_epsilon": megatron.NORM_EPSILON,
        **({} if m.position_rows else {"model.rotary_base": megatron.rotary_base(m)}),
    }
    return out


def _list(text):
    return (
        "["
        + ",".join(
            str(x)
            for part in text.strip("()").split("+")
            for x in [int(part[1])] * int(part.split("*")[1])
        )
        + "]"
    )


def files(launch, kit):
    """bridge.overrides and pretrain_bridge.py."""
    lines = "".join(
        f"{k}={v if isinstance(v, str) and v.startswith('[') else word(v)}\n"
        for k, v in overrides(launch, kit["train"]["lr"]).items()
    )
    return {"bridge.overrides": lines, "pretrain_bridge.py": source("pretrain_bridge.py")}


def command(launch) -> str:
    """What torchrun starts."""
    return (
        '"$HERE/pretrain_bridge.py" "checkpoint.save=$RUN_DIR/checkpoints" '
        '"checkpoint.load=$RUN_DIR/checkpoints" '
        '"logger.tensorboard_dir=$RUN_DIR/tensorboard" "${DATA_ARGS[@]}"'
    )


def prepare(launch) -> str:
    """Shell lines before the command."""
    return (
        "DATA_ARGS=()     # made-up tokens until DATA is set\n"
        'if [ -n "${DATA:-}" ]; then DATA_ARGS=("dataset.data_path=\'$DATA\'" '
        "\"dataset.path_to_cache='$RUN_DIR/data-cache'\"); fi"
    )


def notes(launch) -> list[str]:
    """What no field of the plan says and the overrides had to choose."""
    m = launch.model
    out = [
        (
            f"Rotary positions have base {megatron.rotary_base(m):,} and norms "
            f"{megatron.NORM_EPSILON:g}, in every kit: set the model's own, or start from "
            f"its recipe in megatron.bridge.recipes."
        )
    ]
    if m.is_moe and m.router_buffers:
        out.append(
            "The router scores by sigmoid and balances by a bias on each expert, as the "
            "model's files have it; model.moe_router_num_groups, "
            "model.moe_router_group_topk and model.moe_router_topk_scaling_factor are "
            "not in the design."
        )
    elif m.is_moe:
        out.append("The router is softmax with an auxiliary loss of 1e-3: set the model's own.")
    return out


FRAMEWORK = framework(
    "bridge",
    files=files,
    command=command,
    prepare=prepare,
    notes=notes,
    gaps=megatron.gaps,
    adjust=megatron.adjust,
    environment=megatron.environment,
)
