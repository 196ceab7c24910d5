"""On the path of torchtitan's CPU run alone. It wants an accelerator: here the CPU is introduced as
one, on gloo, with what torch.cpu has no word for; attention stands in for FlexAttention, which has
no backward pass on a CPU."""

import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.append(str(Path(__file__).parents[1]))
import torch  # noqa: E402
from stand_ins import without_triton  # noqa: E402


def attention(q, k, v, *, scale=None, enable_gqa=False, **_):
    """Causal attention over the whole sequence, with FlexAttention's arguments."""
    from torch.nn.attention.flex_attention import AuxOutput

    dense = torch.nn.functional.scaled_dot_product_attention
    return dense(q, k, v, is_causal=True, scale=scale, enable_gqa=enable_gqa), AuxOutput()


def introduce():
    import torch.distributed.fsdp as fsdp
    import torch.nn.attention.flex_attention as flex
    import torch.utils._triton as triton

    torch._utils._get_available_device_type = lambda: "cpu"
    own = dict(
        current_device=lambda: 0,
        get_device_name=lambda *_: "cpu",
        get_device_properties=lambda *_: SimpleNamespace(total_memory=2**33),
        memory_stats=lambda *_: {},
        reset_peak_memory_stats=lambda *_: None,
        empty_cache=lambda: None,
    )
    for name, what in own.items():
        setattr(torch.cpu, name, what)
    flex.flex_attention = attention
    triton._extern_libs_key = lambda backend: ""
    divide = fsdp.FSDPModule.set_gradient_divide_factor

    def summed(module, factor):  # gloo multiplies nothing before it sums
        divide(module, factor)
        module.set_force_sum_reduction_for_comms(True)

    fsdp.FSDPModule.set_gradient_divide_factor = summed


without_triton()
introduce()
