"""The frameworks that kits are written for: one module and one YAML file each."""

from scantling.base.plugins import Table

from ..framework import FUNCTIONS, framework
from . import accelerate, bridge, ddp, deepspeed, fsdp, maxtext, megatron, torchtitan

_MODULES = (megatron, bridge, torchtitan, fsdp, deepspeed, accelerate, maxtext, ddp)
_MADE = (
    framework(m.__name__.rpartition(".")[2], **{k: v for k, v in vars(m).items() if k in FUNCTIONS})
    for m in _MODULES
)
FRAMEWORKS = Table({made.id: made for made in _MADE}, group="scantling.frameworks")
