"""What several tests of designs as code start from."""

from __future__ import annotations

import pytest


@pytest.fixture
def llama_config():
    """The config of a model of 32 layers, as a design's `hf_config` reads it."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
    }
