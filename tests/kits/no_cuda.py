"""CUDA, answered by the processor: tensors that are asked for there stay here, its streams are in
order, its sensors read nothing. Megatron-LM and Megatron-Bridge train on it."""

from __future__ import annotations

import typing
from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace

import torch
import typing_extensions
from stand_ins import without_triton
from torch.overrides import TorchFunctionMode

CPU = torch.device("cpu")
CHIP = SimpleNamespace(
    major=9, minor=0, total_memory=80 << 30, name="H100", multi_processor_count=132
)


def here(device):
    """A device as this machine has it; a number is one of CUDA's."""
    cuda = type(device) is int or str(device).partition(":")[0] == "cuda"
    return CPU if cuda else device


class OnCpu(TorchFunctionMode):
    """Whatever goes to CUDA stays; a tensor says CUDA still, which optimizers and routers ask."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        kwargs.pop("pin_memory", None)
        if func == torch.Tensor.is_cuda.__get__:
            return True
        if func is torch.Tensor.type and len(args) == 1:
            return func(*args).replace("torch.", "torch.cuda.")
        if "device" in kwargs:
            kwargs["device"] = here(kwargs["device"])
        if func is torch.Tensor.to:
            args = (
                args[0],
                *(here(a) if isinstance(a, (str, int, torch.device)) else a for a in args[1:]),
            )
        return func(*args, **kwargs)


class Event:
    """Has happened."""

    def __init__(self, *_, **__):
        pass

    def record(self, *_):
        pass

    wait = synchronize = record

    def query(self):
        return True

    def elapsed_time(self, other):
        return 1.0


class Stream(nullcontext):
    """Work on it is done when it is asked for."""

    def __init__(self, *_, **__):
        super().__init__()

    def wait_stream(self, *_):
        pass

    wait_event = synchronize = wait_stream

    def record_event(self, *_):
        return Event()


class _Generators:
    def __getitem__(self, device):
        return torch.default_generator


def _returns(value):
    return lambda *_, **__: value


def introduce():
    """Takes the place of torch.cuda in this process."""
    typing.override = typing_extensions.override  # Megatron asks for Python 3.12
    cuda, one = torch.cuda, Stream()
    random = dict(
        manual_seed=lambda seed: torch.manual_seed(seed),
        manual_seed_all=_returns(None),
        get_rng_state=lambda *_, **__: torch.get_rng_state(),
        set_rng_state=lambda state, *_, **__: torch.set_rng_state(state),
    )
    kinds = "FloatTensor IntTensor LongTensor ByteTensor HalfTensor BFloat16Tensor".split()
    nothing = "set_device synchronize empty_cache reset_peak_memory_stats".split()
    zero = (
        "memory_allocated max_memory_allocated memory_reserved max_memory_reserved "
        "temperature power_draw utilization clock_rate"
    ).split()
    own = random | dict(
        {name: getattr(torch, name) for name in kinds},
        **{name: _returns(None) for name in nothing},  # each its own, as torch keeps them
        **{name: _returns(0) for name in zero},
        is_available=_returns(True),
        is_initialized=_returns(True),
        device_count=_returns(8),
        current_device=_returns(0),
        get_device_capability=_returns((CHIP.major, CHIP.minor)),
        get_device_properties=_returns(CHIP),
        get_device_name=_returns(CHIP.name),
        memory_stats=_returns(Counter()),
        mem_get_info=_returns((CHIP.total_memory, CHIP.total_memory)),
        Stream=Stream,
        Event=Event,
        current_stream=_returns(one),
        default_stream=_returns(one),
        stream=_returns(nullcontext()),
        default_generators=_Generators(),
        _lazy_call=lambda call, **_: call(),
    )
    for name, what in own.items():
        setattr(cuda, name, what)
    for name, what in random.items():
        setattr(cuda.random, name, what)
    torch.accelerator.is_available = _returns(False)
    torch.accelerator.current_device_index = _returns(0)
    torch.accelerator.set_device_index = _returns(None)
    torch.Tensor.record_stream = _returns(None)
    without_triton()
    OnCpu().__enter__()
