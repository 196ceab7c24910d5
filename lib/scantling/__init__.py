"""Plan large LLM training runs: memory, step time, MFU, goodput, days and cost of a design."""

from importlib import import_module

_WHERE = {
    "Design": "design.design",
    "DesignError": "base.errors",
    "assess": "verdict.assess",
    "Assessment": "verdict.assess",
    "search": "plans.run",
}
__all__ = ["Assessment", "Design", "DesignError", "assess", "search"]


def __getattr__(name):
    """Public names are loaded when first used, so that `import scantling` stays fast."""
    if name in __all__:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
