"""maxtext.yml: keys over MaxText's base.yml, by what they set.

What a release of MaxText calls its options stands here alone.
"""

from typing import Any

from scantling.base.records import record
from scantling.catalogue.models.shape import Model
from scantling.catalogue.words import Offload, OffloadModule, Precision, Recompute, Sharding

from ..launch_plan import SEED, LaunchPlan, norm_epsilon, rotary_base
from ..recipe_settings import chosen
from ..training_schedule import Schedule, schedule
from ..values import RunValues
from .maxtext_options import OPTIONS

Settings = dict[str, Any]  # key of maxtext.yml -> a YAML value
HARDWARE = {"tpu": "tpu", "nvidia": "gpu", "amd": "gpu"}
ATTENTION = {"cpu": "dot_product", "tpu": "flash", "gpu": "cudnn_flash_te"}
ACTIVATIONS = {"swiglu": ["silu", "linear"], "geglu": ["gelu", "linear"], "squared-relu": ["relu"]}
# tensors of a layer that `custom` places, and those that are the inputs of a module (base.yml,
# maxtext_utils.get_save_and_offload_names)
LAYER_INPUT = "decoder_layer_input"
REMAT_NAMES = (
    LAYER_INPUT,
    "query_proj",
    "key_proj",
    "value_proj",
    "context",
    "out_proj",
    "mlpwi_0",
    "mlpwi_1",
    "mlpwo",
)
OFFLOADS: dict[str, tuple[str, ...]] = {
    OffloadModule.ATTN_NORM: (LAYER_INPUT,),
    OffloadModule.CORE_ATTN: ("query_proj", "key_proj", "value_proj"),
    OffloadModule.ATTN_PROJ: ("context",),
    OffloadModule.MLP_ACT: ("mlpwi_0", "mlpwi_1"),
}
REMAT: dict[str, str] = {
    Recompute.FULL: "full",
    Recompute.SELECTIVE: "minimal",
    Recompute.NONE: "minimal_with_context",
}


def hardware(launch: LaunchPlan) -> str:
    """MaxText's word for the chips: tpu, gpu or cpu."""
    return HARDWARE.get(launch.chip, "cpu")


def settings(launch: LaunchPlan, run: RunValues) -> Settings:
    """All keys of maxtext.yml, in its order."""
    plan = schedule(launch, run)
    return {
        "base_config": "base.yml",
        "run_name": launch.slug,
        "hardware": hardware(launch),
        "model_name": "default",
        "override_model_config": True,
        **shape(launch.model),
        **experts(launch),
        **latent_attention(launch.model),
        **axes(launch),
        **batch(launch),
        **recompute_and_formats(launch),
        **{option.name: option.value for option in chosen(OPTIONS, launch)},
        **training(launch, plan),
        **checkpoints(launch),
    }


def shape(m: Model) -> Settings:
    """Widths, vocabulary, activations and constants."""
    deep = m.attention == "mla"
    block = "deepseek" if deep else "mixtral"
    width = m.expert_ffn_hidden if m.is_moe and not deep else m.ffn_hidden or m.expert_ffn_hidden
    return {
        "decoder_block": block if m.is_moe else "llama2",
        "base_emb_dim": m.hidden,
        "base_num_query_heads": m.heads,
        "base_num_kv_heads": m.kv_heads,
        "head_dim": m.head_dim,
        "base_mlp_dim": width,
        "base_num_decoder_layers": m.layers,
        "vocab_size": m.vocab,
        "mlp_activations": ACTIVATIONS.get(m.mlp, [m.mlp]),
        "rope_max_timescale": rotary_base(m),
        "normalization_layer_epsilon": norm_epsilon(m),
        "init_weights_seed": SEED,
        "data_shuffle_seed": SEED,
        "logits_via_embedding": bool(m.tied_embeddings),
        "use_qk_norm": bool(m.qk_norm),
        "enable_dropout": False,
    }


def experts(launch: LaunchPlan) -> Settings:
    """Experts, and the dense layers before them."""
    m = launch.model
    if not m.is_moe:
        return {}
    out: Settings = {
        "num_experts": m.experts,
        "num_experts_per_tok": m.top_k,
        "base_moe_mlp_dim": m.expert_ffn_hidden,
        "sparse_matmul": True,
        "megablox": hardware(launch) == "tpu",
    }
    if m.attention == "mla":
        out["first_num_dense_layers"] = m.layers - m.moe_layers
        out["shared_experts"] = m.shared_ffn_hidden // max(m.expert_ffn_hidden, 1)
    return out


def latent_attention(m: Model) -> Settings:
    """Latent attention, and modules that predict further tokens."""
    out: Settings = {}
    if m.attention == "mla":
        out |= {
            "attention_type": "mla",
            "q_lora_rank": m.q_lora,
            "kv_lora_rank": m.kv_lora,
            "qk_nope_head_dim": m.qk_nope,
            "qk_rope_head_dim": m.qk_rope,
            "v_head_dim": m.v_head_dim,
        }
    if m.mtp_layers:
        out["mtp_num_layers"] = m.mtp_layers
    return out


@record
class Mesh:
    """Data-parallel ranks by axis of the mesh, and where slices and sites stand."""

    sharded: int  # ranks that share one copy
    replicas: int  # copies of a site
    alone: int  # sites that step alone
    slices: int  # of such a site
    across: bool  # shards lie over the network between slices


def mesh(launch: LaunchPlan) -> Mesh:
    """How data-parallel ranks lie on slices and sites; the expert axis is taken from those that
    share."""
    p = launch.plan
    shares = p.sharding in (Sharding.ZERO3, Sharding.HSDP)
    sharded = launch.shards // p.ep if shares else 1
    alone = launch.cluster.sites if launch.sync == "local-steps" else 1
    slices = launch.slices // alone if launch.kin.torus else 1
    replicas = p.dp // p.ep // sharded // alone
    return Mesh(
        sharded=sharded, replicas=replicas, alone=alone, slices=slices, across=replicas % slices > 0
    )


def axes(launch: LaunchPlan) -> Settings:
    """Ranks of each axis inside a slice and across slices, and what is averaged between sites."""
    p = launch.plan
    at = mesh(launch)
    out: Settings = {
        "ici_data_parallelism": at.replicas if at.across else at.replicas // at.slices,
        "ici_fsdp_parallelism": at.sharded // at.slices if at.across else at.sharded,
        "ici_tensor_parallelism": p.tp,
        "ici_context_parallelism": p.cp,
        "ici_pipeline_parallelism": p.pp,
        "ici_expert_parallelism": p.ep,
        "dcn_data_parallelism": 1 if at.across else at.slices,
        "dcn_fsdp_parallelism": at.slices if at.across else 1,
    }
    if hardware(launch) == "gpu":
        # XLA gives every host of GPUs a slice of its own, and MaxText would ask for axes between
        # them (max_utils.get_num_slices): one mesh over all, whose fast axes are inside
        out["num_slices"] = 1
    between = launch.between
    if at.alone > 1 and between:
        diloco = "dcn" if launch.kin.torus else "ici"
        nesterov = launch.cluster.sync.outer_optimizer == "nesterov"
        out |= {
            "enable_diloco": True,
            f"{diloco}_diloco_parallelism": at.alone,
            "diloco_sync_period": between.local_steps,
            "diloco_outer_lr": 0.7,
            "diloco_outer_momentum": 0.9 if nesterov else 0.0,
        }
    out["shard_optimizer_over_data"] = p.sharding == Sharding.ZERO1
    if p.cp > 1:
        out["context_parallel_strategy"] = "all_gather"
    return out


def batch(launch: LaunchPlan) -> Settings:
    """Sequences of a device and a step, and the pipeline's share of them."""
    p = launch.plan
    job = launch.phase
    staged = p.pp > 1
    sequences = job.global_batch if staged else p.micro_batch * p.dp
    out: Settings = {
        "per_device_batch_size": sequences / launch.devices,
        "gradient_accumulation_steps": 1 if staged else p.grad_accum,
        "max_target_length": job.seq_len,
    }
    if staged:
        out |= {
            "num_pipeline_microbatches": p.grad_accum,
            "num_layers_per_pipeline_stage": launch.model.layers // (p.pp * p.vpp),
            "num_pipeline_repeats": p.vpp,
        }
    return out


def remat(launch: LaunchPlan) -> Settings:
    """What the backward finds, and where: a policy by name, or `custom` with what leaves for the
    host; the rest is repeated, or stays on the device where nothing is."""
    p, phase = launch.plan, launch.phase
    if phase.remat:
        return {"remat_policy": phase.remat}
    if not phase.offloaded_layers:
        return {"remat_policy": REMAT[p.recompute]}
    away = {name for module in phase.offloaded_modules for name in OFFLOADS[module]}
    other = "device" if p.recompute == Recompute.NONE else "remat"
    kept = {name: "offload" if name in away else other for name in REMAT_NAMES}
    if LAYER_INPUT not in away:
        kept[LAYER_INPUT] = "device"  # from which the rest is repeated
    return {"remat_policy": "custom", **kept}


def recompute_and_formats(launch: LaunchPlan) -> Settings:
    """Recompute, offload, number formats and the attention kernel."""
    p = launch.plan
    precision = launch.phase.precision
    chip = hardware(launch)
    return {
        **remat(launch),
        "optimizer_memory_host_offload": p.offload == Offload.OPTIMIZER,
        "dtype": "float32" if precision == Precision.FP32 else "bfloat16",
        "weight_dtype": "float32",
        "quantization": "int8" if precision == Precision.INT8 else "",
        "packing": True,
        "attention": ATTENTION[chip],
    }


def training(launch: LaunchPlan, plan: Schedule) -> Settings:
    """Optimizer, steps and learning rate."""
    return {
        "opt_type": launch.phase.optimizer,
        "steps": plan.steps,
        "learning_rate": plan.lr,
        "warmup_steps_fraction": plan.warm_up / plan.steps,
        "gradient_clipping_threshold": 1.0,
    }


def checkpoints(launch: LaunchPlan) -> Settings:
    """Saves below the run's folder; data that launch.sh replaces."""
    return {
        "enable_checkpointing": True,
        "async_checkpointing": True,
        "enable_autocheckpoint": True,
        "max_num_checkpoints_to_keep": launch.keep,
        "checkpoint_period": launch.save_steps,
        "dataset_type": "synthetic",
        "base_output_directory": "run",
    }
