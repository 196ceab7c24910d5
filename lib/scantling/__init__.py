"""Plan large LLM training runs: memory, step time, MFU, goodput, days and cost of a design."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import (
        Assessment,
        Design,
        DesignError,
        ask,
        assess,
        avoid,
        blueprint,
        compare,
        explain,
        fixes,
        goodput,
        launch,
        learn,
        predict,
        report,
        search,
        sensitivity,
        sweep,
    )

__all__ = [
    "Assessment",
    "Design",
    "DesignError",
    "ask",
    "assess",
    "avoid",
    "blueprint",
    "compare",
    "explain",
    "fixes",
    "goodput",
    "launch",
    "learn",
    "predict",
    "report",
    "search",
    "sensitivity",
    "sweep",
]


def __getattr__(name: str) -> Any:
    """A public name, the library behind it imported when one is first asked for: `scantling --help`
    needs none of it."""
    if name in __all__:
        globals()[name] = value = getattr(import_module(".api", __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
