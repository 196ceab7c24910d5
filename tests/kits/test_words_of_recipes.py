"""What the comparison with published recipes says of a plan is what a design may say: a word that
the design no longer has would leave recipes out in silence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scantling import Design

sys.path.insert(0, str(Path(__file__).parent / "recipes"))
import compare  # noqa: E402
import maxtext  # noqa: E402


def bridge(**model):
    """A recipe of Megatron-Bridge as record_bridge.py prints it."""
    settings = {
        "model": {"tensor_model_parallel_size": 1, "seq_length": 4096} | model,
        "train": {"micro_batch_size": 1, "global_batch_size": 4096},
        "dataset": {"seq_length": 4096},
        "optimizer": {"optimizer": "adam"},
        "ddp": {},
        "comm_overlap": {"tp_comm_overlap": True},
    }
    return compare.data_of("deepseek_v3_pretrain_256gpu_b200_bf16_config", settings)


ROUTER = ["moe_router", "moe_preprocess"]


@pytest.mark.parametrize(
    "model",
    [
        dict(cuda_graph_impl="transformer_engine", cuda_graph_modules=ROUTER),
        dict(cuda_graph_impl="transformer_engine", cuda_graph_modules=["attn", *ROUTER]),
        dict(cuda_graph_impl="local", cuda_graph_scope="full_iteration"),
        dict(cuda_graph_impl="none"),
        *(
            dict(recompute_granularity="selective", recompute_modules=[word])
            for word in compare.MODULES
        ),
        *(dict(context_parallel_size=2, cp_comm_type=word) for word in compare.CP_TYPES),
        dict(tensor_model_parallel_size=2),
        dict(moe_token_dispatcher_type="flex", moe_flex_dispatcher_backend="hybridep"),
        dict(moe_router_force_load_balancing=True),
    ],
)
def test_a_design_says_what_a_recipe_of_megatron_bridge_says(model):
    """perf_recipes of 0.6.2: captured graphs, recompute, context parallelism, dispatchers."""
    data = bridge(**model)
    assert isinstance(data, dict)
    Design.from_data(data)


@pytest.mark.parametrize(
    "settings",
    [
        *(
            dict(remat_policy=word)
            for word in ("full", "minimal", "save_qkv_proj", "minimal_offloaded")
        ),
        dict(remat_policy="custom", decoder_layer_input="offload", query_proj="offload"),
        dict(ici_context_parallelism=4),
        dict(optimizer_memory_host_offload=True),
        dict(quantization="int8"),
        dict(opt_type="sgd"),
    ],
)
def test_a_design_says_what_a_run_of_maxtext_says(settings):
    """benchmarks/maxtext_trillium_model_configs.py: words of remat policies and offload."""
    row = {
        "recipe": "llama3_1_70b_8192",
        "model": "llama3.1-70b",
        "chip": "tpu-v6e",
        "devices": 256,
        "settings": {"max_target_length": 8192, "per_device_batch_size": 1} | settings,
    }
    Design.from_data(maxtext.data_of(row))
