"""The frameworks that kits are written for, one module each."""

from scantling.base.plugins import Table

from ..launch_plan import Framework
from . import accelerate, bridge, ddp, deepspeed, fsdp, maxtext, megatron, torchtitan

_MODULES = (megatron, bridge, torchtitan, fsdp, deepspeed, accelerate, maxtext, ddp)
FRAMEWORKS: Table[Framework] = Table(
    {module.FRAMEWORK.id: module.FRAMEWORK for module in _MODULES}, group="scantling.frameworks"
)
