"""On the path of Megatron-Bridge's CPU run alone: layers are Megatron-Core's own, since there is no
Transformer Engine, and nothing of what it imports is there but not used."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import no_cuda  # noqa: E402

no_cuda.introduce()
if os.environ.get("LOCAL_RANK"):  # a rank, not torchrun
    from stand_ins import bridge

    bridge(Path(sys.prefix) / "mcore")
    import megatron.bridge.models.gpt_provider as gpt
    import megatron.bridge.training.train as train

    gpt.transformer_engine_layer_spec = gpt.local_layer_spec
    train.get_tensor_shapes_adjust_fn_for_distillation = lambda *_, **__: None
