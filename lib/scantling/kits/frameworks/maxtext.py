"""MaxText 0.2: maxtext.yml on top of its base.yml. Mesh axes are spent inside one slice
(`ici_`)."""

from __future__ import annotations

from ..framework import framework
from ..quote import comment, js
from ..record import NORM_EPSILON, SEED, Gap, rotary_base

REMAT = {"full": "full", "selective": "minimal", "none": "minimal_with_context"}


def gaps(launch):
    """Where MaxText's mesh and its pipeline differ."""
    p, m, out = launch.plan, launch.model, []
    if m.is_moe and p["etp"] != p["tp"]:
        out.append(Gap("etp", p["etp"], "experts share the tensor axis: etp is tp"))
    if m.is_moe and dp_axis(launch) % p["ep"]:
        out.append(Gap("ep", p["ep"], "the expert axis is taken out of the data-parallel ranks"))
    if m.is_moe and p["pp"] > 1 and m.moe_layers < m.layers:
        out.append(Gap("pp", p["pp"], "dense and expert layers are not pipelined together"))
    if p["pp"] > 1 and p["grad_accum"] % p["pp"]:
        out.append(
            Gap(
                "pp", p["pp"], f"the micro-batches ({p['grad_accum']}) are a multiple of the stages"
            )
        )
    if p["pp"] > 1 and m.layers % (p["pp"] * p["vpp"]):
        out.append(Gap("pp", p["pp"], "stages are even"))
    if (
        p["pp"] > 1
        and p["vpp"] > 1
        and p["sharding"] != "zero1"
        and m.layers // (p["pp"] * p["vpp"]) < 1
    ):
        out.append(Gap("vpp", p["vpp"], "a repeat holds a layer"))
    if p["tp"] > 1 and not p["sp"]:
        out.append(
            Gap(
                "sp",
                False,
                "the tensor axis splits the residual stream too, by width",
                True,
                "none: a little less memory",
            )
        )
    if p["sharding"] == "hsdp" and p["shard_group"] % p["cp"]:
        out.append(Gap("shard_group", p["shard_group"], "a shard group holds whole context groups"))
    if p["recompute"] == "none":
        out.append(
            Gap(
                "recompute",
                "none",
                "MaxText always recomputes something",
                (
                    "remat_policy minimal_with_context: matrix products and the attention "
                    "core's output are kept, element-wise chains run again"
                ),
                "about 1 % of a step",
            )
        )
    if p["recompute"] == "full" and p["recompute_layers"] < -(-m.layers // p["pp"]):
        out.append(Gap("recompute_layers", p["recompute_layers"], "one policy for all layers"))
    if m.mlp == "squared-relu":
        out.append(
            Gap(
                "model.mlp",
                m.mlp,
                "mlp_activations are functions of jax.nn, which has no squared ReLU",
                "relu: the same products, another function",
                "none in time or memory",
            )
        )
    if m.window and m.windowed_layers:
        out.append(
            Gap(
                "model.window",
                m.window,
                "windows belong to named decoder blocks",
                "full attention in every layer",
                "the assessment counts the window",
            )
        )
    if (
        m.norm_bias
        or m.position_rows
        or m.qkv_bias
        or (
            m.is_moe
            and (
                m.moe_layout != "dense-first"
                or (m.attention != "mla" and (m.shared_ffn_hidden or m.moe_layers < m.layers))
            )
        )
    ):
        out.append(
            Gap(
                "model",
                m.name,
                "the decoder blocks are those of named families",
                "the nearest block: llama2, mixtral or deepseek",
                "parameters differ",
            )
        )
    return out


def adjust(pins, own, outside):
    """Pins of a nearest plan: experts without tensor parallelism, or no stages, where that is what
    stands in the way."""
    if "etp" in outside or "ep" in outside and own.model.is_moe:
        pins = {k: v for k, v in pins.items() if k not in ("sp", "ep")} | {"tp": 1, "etp": 1}
    if "pp" in outside:
        pins = {k: v for k, v in pins.items() if k not in ("vpp", "schedule")} | {"pp": 1}
    if "cp_type" in outside and pins.get("cp", 1) > 1:
        pins = pins | {"cp_type": "all-gather"}
    return pins


def dp_axis(launch) -> int:
    """Ranks that the expert axis can be taken from: those that shard the batch in one group."""
    p = launch.plan
    return p["shard_group"] // p["cp"] if p["sharding"] == "hsdp" else p["dp"]


def config(launch, lr: float) -> dict:
    """The YAML as a dict."""
    p, m, job = launch.plan, launch.model, launch.phase
    chip = {"tpu": "tpu", "nvidia": "gpu", "amd": "gpu"}.get(launch.chip, "cpu")
    inside = dp_axis(launch) // p["ep"]
    sharded = p["sharding"] in ("zero3", "hsdp")
    deep = m.attention == "mla"
    out = {
        "base_config": "base.yml",
        "run_name": launch.slug,
        "hardware": chip,
        "model_name": "default",
        "override_model_config": True,
        "decoder_block": "deepseek" if deep and m.is_moe else "mixtral" if m.is_moe else "llama2",
        "base_emb_dim": m.hidden,
        "base_num_query_heads": m.heads,
        "base_num_kv_heads": m.kv_heads,
        "head_dim": m.head_dim,
        "base_mlp_dim": m.ffn_hidden or m.expert_ffn_hidden,
        "base_num_decoder_layers": m.layers,
        "vocab_size": m.vocab,
        "mlp_activations": {
            "swiglu": ["silu", "linear"],
            "geglu": ["gelu", "linear"],
            "gelu": ["gelu"],
            "relu": ["relu"],
            "squared-relu": ["relu"],
        }[m.mlp],
        "rope_max_timescale": rotary_base(m),
        "normalization_layer_epsilon": NORM_EPSILON,
        "init_weights_seed": SEED,
        "data_shuffle_seed": SEED,
        "logits_via_embedding": bool(m.tied_embeddings),
        "use_qk_norm": bool(m.qk_norm),
        "enable_dropout": False,
    }
    if m.is_moe:
        out |= {
            "num_experts": m.experts,
            "num_experts_per_tok": m.top_k,
            "base_moe_mlp_dim": m.expert_ffn_hidden,
            "sparse_matmul": True,
            "megablox": chip == "tpu",
        }
        out |= (
            {
                "first_num_dense_layers": m.layers - m.moe_layers,
                "shared_experts": m.shared_ffn_hidden // max(m.expert_ffn_hidden, 1),
            }
            if deep
            else {"base_mlp_dim": m.expert_ffn_hidden}
        )
    if deep:
        out |= {
            "attention_type": "mla",
            "q_lora_rank": m.q_lora,
            "kv_lora_rank": m.kv_lora,
            "qk_nope_head_dim": m.qk_nope,
            "qk_rope_head_dim": m.qk_rope,
            "v_head_dim": m.v_head_dim,
        }
    out |= {"mtp_num_layers": m.mtp_layers} if m.mtp_layers else {}
    out |= {
        "ici_data_parallelism": p["dp"] // p["ep"] // (inside if sharded else 1),
        "ici_fsdp_parallelism": inside if sharded else 1,
        "ici_tensor_parallelism": p["tp"],
        "ici_context_parallelism": p["cp"],
        "ici_pipeline_parallelism": p["pp"],
        "ici_expert_parallelism": p["ep"],
        "dcn_data_parallelism": 1,
        "shard_optimizer_over_data": p["sharding"] == "zero1",
    }
    out |= {"context_parallel_strategy": "all_gather"} if p["cp"] > 1 else {}
    rows = job.global_batch if p["pp"] > 1 else p["micro_batch"] * p["dp"]
    out |= {
        "per_device_batch_size": rows / launch.devices,
        "gradient_accumulation_steps": 1 if p["pp"] > 1 else p["grad_accum"],
        "max_target_length": job.seq_len,
    }
    if p["pp"] > 1:
        out |= {
            "num_pipeline_microbatches": p["grad_accum"],
            "num_layers_per_pipeline_stage": m.layers // (p["pp"] * p["vpp"]),
            "num_pipeline_repeats": p["vpp"],
        }
    out |= {
        "remat_policy": REMAT[p["recompute"]],
        "optimizer_memory_host_offload": p["offload"] == "optimizer",
        "dtype": "float32" if job.precision == "fp32" else "bfloat16",
        "weight_dtype": "float32",
        "quantization": "fp8" if job.precision == "fp8" else "",
        "packing": chip != "gpu",
        "attention": "dot_product"
        if chip == "cpu"
        else "flash"
        if chip == "tpu"
        else "cudnn_flash_te",
        "opt_type": job.optimizer,
        "steps": launch.steps or 1_000_000,
        "learning_rate": lr,
        "warmup_steps_fraction": min(2000, (launch.steps or 1_000_000) // 20)
        / (launch.steps or 1_000_000),
        "gradient_clipping_threshold": 1.0,
        "enable_checkpointing": True,
        "async_checkpointing": True,
        "enable_autocheckpoint": True,
        "max_num_checkpoints_to_keep": 3,
        "checkpoint_period": launch.save_steps,
        "dataset_type": "synthetic",
        "base_output_directory": "run",
    }
    return out


def files(launch, kit):
    """maxtext.yml."""
    return {
        "maxtext.yml": f"# {comment(launch.name)}\n"
        + "".join(f"{k}: {js(v)}\n" for k, v in config(launch, kit["train"]["lr"]).items())
    }


def command(launch) -> str:
    """What every host starts."""
    return (
        'python3 -m maxtext.trainers.pre_train.train "$HERE/maxtext.yml" '
        '"base_output_directory=$RUN_DIR" "${DATA_ARGS[@]}"'
    )


def prepare(launch) -> str:
    """Shell lines before the command."""
    return (
        "DATA_ARGS=()     # made-up tokens until DATA is set\n"
        'if [ -n "${DATA:-}" ]; then DATA_ARGS=(dataset_type=grain '
        'grain_file_type=arrayrecord "grain_train_files=$DATA" '
        'tokenizer_type=huggingface "tokenizer_path=${TOKENIZER:?the tokenizer of the '
        'data}"); fi'
    )


def notes(launch) -> list[str]:
    """What no field of the plan says and the file had to choose."""
    return [
        (
            "Outside the tensor-parallel products activations are split over the tensor "
            "axis by width, not by sequence: the same bytes."
        )
        if launch.plan["tp"] > 1
        else "Activations are split by batch alone.",
        (
            f"Rotary positions have base {rotary_base(launch.model):,} (rope_max_timescale) "
            f"and norms {NORM_EPSILON:g}, in every kit: set the model's own."
        ),
        (
            "attention is flash on TPUs and cudnn_flash_te on GPUs: cuDNN's kernel through "
            "Transformer Engine."
        ),
        *(["Experts run as sparse_matmul, without dropped tokens."] if launch.model.is_moe else []),
    ]


FRAMEWORK = framework(
    "maxtext",
    files=files,
    command=command,
    gaps=gaps,
    adjust=adjust,
    prepare=prepare,
    notes=notes,
)
