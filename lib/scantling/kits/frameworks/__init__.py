"""The frameworks that kits are written for: one module and one YAML file each."""

from . import accelerate, bridge, ddp, deepspeed, fsdp, maxtext, megatron, torchtitan

_MODULES = (megatron, bridge, torchtitan, fsdp, deepspeed, accelerate, maxtext, ddp)
FRAMEWORKS = {m.FRAMEWORK.id: m.FRAMEWORK for m in _MODULES}
