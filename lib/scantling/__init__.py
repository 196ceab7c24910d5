"""Plan large LLM training runs: memory, step time, MFU, goodput, days and cost of a design."""

from .api import (
    Assessment,
    Design,
    DesignError,
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
from .base.extensions import run_modules

__all__ = [
    "Assessment",
    "Design",
    "DesignError",
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

run_modules()


def __dir__() -> list[str]:
    return __all__
