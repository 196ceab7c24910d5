"""The best model FLOP utilisation that anybody has published, by device, precision and kind of model: what a prediction is held against.

MFU of the PaLM count (non-causal attention, no recompute) over the dense peak of the precision; sequences of 16,384 tokens at most, above
which attention alone lifts the figure. Never a clamp: a prediction above it stands, is said to be untried, and gets a wider band.
"""
from __future__ import annotations

from dataclasses import dataclass

LONGEST = 16_384        # tokens
ROOM = 1.10             # above this many times the best published, the band is wider


@dataclass(frozen=True)
class Best:
    """One record: MFU, the model and devices of the run, its source."""

    mfu: float
    run: str
    source: str


_HOPPER, _B200, _B300 = "hopper", "b200", "b300"
DIES = {"a100-40-pcie": "a100", "a100-40-sxm": "a100", "a100-80-pcie": "a100", "a100-80-sxm": "a100", "h100-sxm": _HOPPER, "h100-pcie": _HOPPER, "h100-96-hbm2e-500w": _HOPPER,
        "h800-sxm": _HOPPER, "h200-sxm": _HOPPER, "h20": _HOPPER, "b200-sxm": _B200, "gb200-nvl72": _B200, "b300-sxm": _B300, "gb300-nvl72": _B300,
        "v100-16-sxm2": "v100", "v100-32-sxm2": "v100"}
BESTS = {       # (die, precision group, mixture of experts)
    ("v100", "16 bit", False): Best(0.390, "GPT 2.5B, V100", "Megatron-LM read-me of 2020"),
    ("a100", "16 bit", False): Best(0.664, "13B on 32 A100", "Hagemann et al. 2024, arXiv:2311.05610"),
    (_HOPPER, "16 bit", False): Best(0.624, "Llama 3.1 8B on 16 H100", "NVIDIA DGX Cloud benchmarking recipes 25.04"),
    (_HOPPER, "16 bit", True): Best(0.522, "Mixtral 8x22B on 128 H100", "MoE Parallel Folding, arXiv:2504.14960, table 4"),
    (_HOPPER, "fp8", False): Best(0.453, "NeMo 24.07 on H100", "NeMo performance benchmarks 2.0"),
    (_HOPPER, "fp8", True): Best(0.319, "Mixtral 8x22B on H100", "MoE Parallel Folding, arXiv:2504.14960, table 2"),
    (_B200, "16 bit", False): Best(0.454, "Llama 3.1 405B on GB200", "NVIDIA DGX Cloud benchmarking recipes 25.05"),
    (_B200, "16 bit", True): Best(0.338, "Qwen3 on GB200", "Megatron-MoE-ModelZoo"),
    (_B200, "fp8", False): Best(0.454, "dense, GB200, MXFP8", "Megatron Bridge performance summary 26.04"),
    (_B200, "fp8", True): Best(0.420, "Qwen3 235B on 128 GB200", "Megatron-MoE-ModelZoo"),
    (_B200, "fp4", False): Best(0.311, "dense, GB200, NVFP4", "Megatron Bridge performance summary 26.04"),
    (_B300, "16 bit", True): Best(0.433, "DeepSeek-V3 on 256 GB300", "Megatron Bridge performance summary 25.11"),
    (_B300, "fp8", False): Best(0.550, "dense, GB300, MXFP8", "Megatron Bridge performance summary 26.06"),
    (_B300, "fp8", True): Best(0.375, "MoE on GB300, MXFP8", "Megatron Bridge performance summary 26.06"),
    (_B300, "fp4", False): Best(0.252, "dense, GB300, NVFP4", "Megatron Bridge performance summary 26.04"),
    ("tpu-v5e", "16 bit", False): Best(0.670, "32B on 256 v5e", "MaxText high-performance configs"),
    ("tpu-v5p", "16 bit", False): Best(0.715, "32B on 64 v5p", "MaxText high-performance configs"),
    ("tpu-v6e", "16 bit", False): Best(0.503, "v6e", "MaxText optimized models"),
    ("tpu-v6e", "16 bit", True): Best(0.352, "v6e", "MaxText optimized models"),
    ("tpu-v7x", "16 bit", False): Best(0.569, "Llama 3.1 405B on 256 Ironwood", "tpu-recipes, Ironwood table"),
    ("tpu-v7x", "16 bit", True): Best(0.308, "Qwen3 235B on 256 Ironwood", "tpu-recipes, Ironwood table"),
    ("tpu-v7x", "fp8", False): Best(0.434, "Llama 3.1 405B on 256 Ironwood", "tpu-recipes, Ironwood table"),
    ("tpu-v7x", "fp8", True): Best(0.172, "Qwen3 235B on 256 Ironwood", "tpu-recipes, Ironwood table"),
}


def best_published(chip: str, precision: str, moe: bool, seq_len: float) -> Best | None:
    """The record of a device (catalogue id), precision and kind of model; None where there is none, or beyond LONGEST."""
    if seq_len > LONGEST:
        return None
    group = "16 bit" if precision in ("bf16", "fp16") else "fp4" if precision == "nvfp4" else "fp8" if "fp8" in precision else precision
    return BESTS.get((DIES.get(chip, chip), group, bool(moe)))
