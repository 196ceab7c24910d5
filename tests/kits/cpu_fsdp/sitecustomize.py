"""On the path of Accelerate's CPU run alone. Accelerate makes FSDP only of device back-ends: its
own multi-CPU kind goes another way, and refuses the YAML's parallelism_config. Here the processes
are introduced as device ranks on gloo, whose device is the CPU."""

import torch


def introduce():
    import accelerate.state as state

    state.PartialState._prepare_backend = lambda self, *a, **k: (
        "gloo",
        state.DistributedType.MULTI_GPU,
    )
    state.PartialState.set_device = lambda self: setattr(self, "device", torch.device("cpu"))


introduce()
