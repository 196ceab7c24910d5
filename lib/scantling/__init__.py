"""Plan large LLM training runs: memory, step time, MFU, goodput, days and cost of a design.

>>> import scantling as sc
>>> design = sc.Design.from_text("8B on 64 H100, 1T tokens, 40 days")
>>> result = sc.assess(design)
>>> result.verdict
'feasible'
>>> faster = sc.assess(design.change({"job.precision": "fp8"}))
>>> faster.likely.days < result.likely.days
True

What is asked, and the names that answer it:

- Where do I start? `Design`, `DesignError`, `ask`, `browse`
- Does it fit, how fast is it, how long does it take and what does it cost? `assess`, `Assessment`,
  `explain`, `goodput`, `compare`, `prices`, `report`, `posttrain`
- Which plan is best, and what should change? `search`, `answer`, `fixes`, `avoid`, `sweep`,
  `front`, `sensitivity`, `scaling`
- What stands around it, and how is it started? `blueprint`, `launch`, `trace`
- Does the run do what was planned? `diagnose`, `learn`, `measure`, `predict`
- How are many designs kept? `assess_many`, `lock`, `check`, `diff`, `Table`
"""

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
