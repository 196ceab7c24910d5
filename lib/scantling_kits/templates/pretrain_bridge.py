"""Pre-training with Megatron-Bridge: a plain recipe of the model's kind, the overrides of
bridge.overrides, then those of the command line."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def config(overrides: list[str]) -> Any:
    """The configuration with all overrides applied; a key that does not exist is an error."""
    import torch
    import torch.nn.functional as F
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.bridge.models.hybrid.hybrid_provider import HybridModelProvider
    from megatron.bridge.models.mla_provider import MLAModelProvider
    from megatron.bridge.recipes.common import _pretrain_common
    from megatron.bridge.training import comm_overlap
    from megatron.bridge.training.mixed_precision import get_mixed_precision_config
    from megatron.bridge.training.utils.omegaconf_utils import process_config_with_overrides
    from megatron.core.activations import squared_relu
    from megatron.core.fusions.fused_bias_geglu import quick_gelu
    from megatron.core.models.gpt import experimental_attention_variant_module_specs as variants
    from megatron.core.quantization.utils import load_quantization_recipe

    given = dict(line.split("=", 1) for line in overrides)
    need = {
        k: int(given[f"model.{k}"]) for k in ("num_layers", "hidden_size", "num_attention_heads")
    }
    cfg = _pretrain_common()
    if "model.hybrid_layer_pattern" in given:
        cfg.model = HybridModelProvider(**need)
    else:
        latent = "model.kv_lora_rank" in given
        cfg.model = (MLAModelProvider if latent else GPTModelProvider)(**need)
    if "model.experimental_attention_variant" in given:
        cfg.model.transformer_layer_spec = (
            variants.get_transformer_block_with_experimental_attention_variant_spec
        )
    others = {"swiglu": F.silu, "relu": F.relu, "squared-relu": squared_relu}
    plan = json.loads((HERE / "plan.json").read_text())
    cfg.model.activation_func = others.get(plan["shape"]["mlp"], F.gelu)
    if "model.glu_linear_offset" in given:  # GPT-OSS: a quick GELU gates
        cfg.model.activation_func = quick_gelu
    if plan["optimizer"] == "adamw-bf16":  # moments in 16 bit
        cfg.optimizer.exp_avg_dtype = cfg.optimizer.exp_avg_sq_dtype = torch.bfloat16
    if (HERE / "quantization.yaml").exists():  # products that keep another format, by name
        cfg.model.quant_recipe = load_quantization_recipe(str(HERE / "quantization.yaml"))
    cfg.model.tp_comm_overlap_cfg = None  # read at the start, and no field of a hybrid's provider
    if "model.tp_comm_overlap_cfg" in given:  # sizes of user buffers, by the framework's name
        sizes = getattr(comm_overlap, given["model.tp_comm_overlap_cfg"].strip("'"))
        cfg.model.tp_comm_overlap_cfg = {k: v for k, v in asdict(sizes).items() if v is not None}
    cfg.mixed_precision = get_mixed_precision_config(given["mixed_precision"].strip("'"))
    by_name = ("mixed_precision=", "model.tp_comm_overlap_cfg=")
    rest = [line for line in overrides if not line.startswith(by_name)]
    return process_config_with_overrides(cfg, cli_overrides=rest)


def lines() -> list[str]:
    """The overrides of the kit."""
    return [line for line in (HERE / "bridge.overrides").read_text().splitlines() if line.strip()]


if __name__ == "__main__":
    if not os.environ.get("DATA") and os.environ.get("MOCK_DATA") != "1":
        sys.exit("no DATA: set it, or MOCK_DATA=1 for made-up tokens")
    from megatron.bridge.training import initialize
    from megatron.bridge.training.gpt_step import forward_step
    from megatron.bridge.training.pretrain import pretrain

    if find_spec("megatron.core.datasets.helpers_cpp"):  # built in the wheel, which has no Makefile
        initialize.compile_helpers = lambda: None
    pretrain(config([*lines(), *sys.argv[1:]]), forward_step)
