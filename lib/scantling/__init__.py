"""Plan large LLM training runs: memory, step time, MFU, goodput, days and cost of a design."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Assessment, Design, DesignError, assess
    from .questions import (
        Table,
        answer,
        ask,
        assess_many,
        avoid,
        blueprint,
        browse,
        check,
        compare,
        diagnose,
        diff,
        explain,
        fixes,
        front,
        goodput,
        launch,
        learn,
        lock,
        measure,
        posttrain,
        predict,
        prices,
        report,
        scaling,
        search,
        sensitivity,
        sweep,
        trace,
    )

__all__ = [
    "Assessment",
    "Design",
    "DesignError",
    "Table",
    "answer",
    "ask",
    "assess",
    "assess_many",
    "avoid",
    "blueprint",
    "browse",
    "check",
    "compare",
    "diagnose",
    "diff",
    "explain",
    "fixes",
    "front",
    "goodput",
    "launch",
    "learn",
    "lock",
    "measure",
    "posttrain",
    "predict",
    "prices",
    "report",
    "scaling",
    "search",
    "sensitivity",
    "sweep",
    "trace",
]


_OF_DESIGNS = ("Assessment", "Design", "DesignError", "assess")  # of api; the rest of questions


def __getattr__(name: str) -> Any:
    """A public name, the library behind it imported when one is first asked for: `scantling --help`
    needs none of it, `assess` no advice."""
    if name in __all__:
        module = ".api" if name in _OF_DESIGNS else ".questions"
        globals()[name] = value = getattr(import_module(module, __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
