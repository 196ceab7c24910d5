"""Plan large LLM training runs: memory, step time, MFU, goodput, days and cost of a design."""

from .api import (
    Assessment,
    Design,
    DesignError,
    assess,
    avoid,
    blueprint,
    explain,
    fixes,
    goodput,
    launch,
    predict,
    search,
    sensitivity,
    sweep,
)

__all__ = [
    "Assessment",
    "Design",
    "DesignError",
    "assess",
    "avoid",
    "blueprint",
    "explain",
    "fixes",
    "goodput",
    "launch",
    "predict",
    "search",
    "sensitivity",
    "sweep",
]


def __dir__() -> list[str]:
    return __all__
