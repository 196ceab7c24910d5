"""The design desk and the design report on top of scantling."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .charts.drawing import chart as chart
    from .desk.session import Session as Session
    from .desk.widgets import (
        Controls as Controls,
        Desk as Desk,
        Headline as Headline,
        MemoryChart as MemoryChart,
        Plans as Plans,
        StepChart as StepChart,
        open_desk as open_desk,
    )

__all__ = [
    "Controls",
    "Desk",
    "Headline",
    "MemoryChart",
    "Plans",
    "Session",
    "StepChart",
    "chart",
    "open_desk",
]

# where each name is, imported when it is first asked for: a report needs no desk
_MODULES = {
    "Controls": ".desk.widgets",
    "Desk": ".desk.widgets",
    "Headline": ".desk.widgets",
    "MemoryChart": ".desk.widgets",
    "Plans": ".desk.widgets",
    "Session": ".desk.session",
    "StepChart": ".desk.widgets",
    "chart": ".charts.drawing",
    "open_desk": ".desk.widgets",
}


def __getattr__(name: str) -> Any:
    """A public name, its module imported when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = vars(import_module(_MODULES[name], __name__))[name]
    return value
