"""Charts of assessments, plans, sweeps, networks and published runs.

Those of one assessment by their names; `scantling_widgets.learn.picture` draws them in a notebook.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .memory_step import memory as memory, step as step
    from .network import traffic as traffic
    from .palette import MEMORY as MEMORY, STEP as STEP
    from .plans import printed_tornado as printed_tornado
    from .roofline import kernels as kernels
    from .schedule import gantt as gantt

__all__ = ["MEMORY", "STEP", "gantt", "kernels", "memory", "printed_tornado", "step", "traffic"]

# where each name is, imported when it is first asked for
_MODULES = {
    "MEMORY": ".palette",
    "STEP": ".palette",
    "gantt": ".schedule",
    "kernels": ".roofline",
    "memory": ".memory_step",
    "printed_tornado": ".plans",
    "step": ".memory_step",
    "traffic": ".network",
}


def __getattr__(name: str) -> Any:
    """A public name, its module imported when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = vars(import_module(_MODULES[name], __name__))[name]
    return value
