"""The design desk and the design report on top of scantling."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .charts.drawing import chart as chart
    from .desk.desk import Desk as Desk, open_desk as open_desk

__all__ = ["Desk", "chart", "open_desk"]

# where each name is, imported when it is first asked for: a report needs no desk
_MODULES = {"Desk": ".desk.desk", "chart": ".charts.drawing", "open_desk": ".desk.desk"}


def __getattr__(name: str) -> Any:
    """A public name, its module imported when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = vars(import_module(_MODULES[name], __name__))[name]
    return value
