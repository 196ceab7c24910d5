"""python judge_maxtext.py KIT...: MaxText's pyconfig on maxtext.yml, and its mesh filler on fake
host devices."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from pathlib import Path

from stand_ins import _Finder, judge_all, provide

os.environ.update(JAX_PLATFORMS="cpu", DECOUPLE_GCLOUD="TRUE")
import jax  # noqa: E402   XLA_FLAGS are read later, when a kit's judge first asks for devices
from maxtext.configs import pyconfig  # noqa: E402
from maxtext.utils import max_utils  # noqa: E402

LAYERS = (
    Path(importlib.util.find_spec("maxtext").submodule_search_locations[0])
    / "layers"
    / "nnx_decoders.py"
)
POLICIES = set(
    re.findall(r'"(\w+)"', " ".join(re.findall(r"remat_policy (?:==|in) (.*)", LAYERS.read_text())))
)


def parameters(kit):
    """Parameters of MaxText's own model of these settings, by its abstract form; kernels, data and
    what converts checkpoints are pretended."""
    own = {"kernels", "input_pipeline", "integration", "checkpoint_conversion"}
    sys.meta_path.insert(0, _Finder({f"maxtext.{name}" for name in own}))
    provide(*"huggingface_hub transformers tensorflow grain qwix aqt tokamax jaxtyping".split())
    provide(*"sympy PIL tokenizers sentencepiece safetensors datasets tensorboardX drjax".split())
    import maxtext.layers.moe as moe
    from flax import nnx
    from flax.linen import logical_axis_rules
    from maxtext.utils import maxtext_utils, model_creation_utils

    moe.qpl.get_current_rule = lambda *a: None  # experts in fp8: the same weights
    # the kernels of a TPU want one, the weights are the same
    plain = ["quantization=", "hardware=cpu", "attention=dot_product"]
    c = pyconfig._initialize_pydantic(["", str(kit / "maxtext.yml"), *plain])
    mesh = maxtext_utils.get_mesh_from_config(c)
    with jax.set_mesh(mesh), logical_axis_rules(c.logical_axis_rules):
        model = nnx.eval_shape(
            lambda: model_creation_utils.get_transformer_model(
                c, mesh, None, rngs=nnx.Rngs(params=0, dropout=1)
            )
        )
    return sum(x.size for x in jax.tree.leaves(nnx.state(model, nnx.Param)))


RECOMPUTE = {"full": "full", "minimal": "selective", "minimal_with_context": "none"}


def judge(kit):
    kit = Path(kit)
    plan = json.loads((kit / "plan.json").read_text())
    n = plan["devices"]
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={n}"
    max_utils.maybe_initialize_jax_distributed_system = lambda raw: None
    # XLA gives each host of GPUs a slice index of its own; host devices here have one for all
    hosts = -(-n // plan["devices_per_node"]) if plan["family"] != "tpu" else 1
    max_utils.elastic_utils.live_slice_indices = lambda config=None: set(range(hosts))
    c = pyconfig._initialize_pydantic(["", str(kit / "maxtext.yml")])
    if len(jax.devices()) % c.num_slices:
        raise ValueError(f"{c.num_slices} slices do not share {n} devices")
    axes = dict(
        zip(
            c.mesh_axes,
            max_utils.fill_unspecified_mesh_axes(
                list(c.ici_parallelism), len(jax.devices()) // c.num_slices, "ICI"
            ),
        )
    )
    if c.remat_policy not in POLICIES:  # the layers assert it, once they are built
        raise ValueError(f"there is no remat policy {c.remat_policy}")
    tp, pp, cp, ep = axes["tensor"], axes.get("stage", 1), axes["context"], axes["expert"]
    data, fsdp = axes["data"], axes["fsdp"]
    dp = data * fsdp * ep * axes["diloco"]
    if c.enable_diloco != (axes["diloco"] > 1):
        raise ValueError("sites that step alone without an outer step")
    micro = c.num_pipeline_microbatches if pp > 1 else c.gradient_accumulation_steps
    zero = (
        "zero1"
        if c.shard_optimizer_over_data
        else "none"
        if fsdp * ep == 1 and data > 1
        else "hsdp"
        if data > 1
        else "zero3"
    )
    stages = (
        [c.num_layers_per_pipeline_stage * c.num_pipeline_repeats] * pp
        if pp > 1
        else [c.base_num_decoder_layers]
    )
    split = any(
        "tensor" in axes for name, axes in c.logical_axis_rules if name == "activation_embed"
    )  # outside the tensor-parallel products
    return dict(
        sp=tp > 1 and split,
        recompute_layers=-(-c.base_num_decoder_layers // pp) if c.remat_policy == "full" else 0,
        layers_by_stage=stages,
        etp=tp if c.num_experts > 1 else 1,
        shard_group=fsdp * ep * cp,
        cp_type="ring" if "ring" in str(c.context_parallel_strategy) else "all-gather",
        tp=tp,
        pp=pp,
        vpp=c.num_pipeline_repeats if pp > 1 else 1,
        cp=cp,
        ep=ep,
        dp=dp,
        sharding=zero,
        micro_batch=c.global_batch_size_to_train_on // dp // micro,
        grad_accum=micro,
        recompute=RECOMPUTE.get(c.remat_policy, c.remat_policy),
        global_batch=c.global_batch_size_to_train_on * (1 if pp > 1 else 1),
        seq_len=c.max_target_length,
        precision=getattr(c.quantization, "value", c.quantization)
        if c.quantization
        else "fp32"
        if str(c.dtype) == "float32" or getattr(c.dtype, "__name__", "") == "float32"
        else "bf16",
        save_steps=c.checkpoint_period,
        async_save=bool(c.async_checkpointing),
        offload="optimizer" if c.optimizer_memory_host_offload else "none",
        layers=c.base_num_decoder_layers,
        hidden=c.base_emb_dim,
        experts=c.num_experts if c.num_experts > 1 else 0,
        per_device=c.per_device_batch_size,
        params=parameters(kit),
        local_steps=c.diloco_sync_period if c.enable_diloco else 1,
        micro_to_train=c.micro_batch_size_to_train_on,
    )


if __name__ == "__main__":
    judge_all(judge, sys.argv[1:])
