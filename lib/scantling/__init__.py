"""Plan large LLM training runs: memory, step time, MFU, goodput, days and cost of a design."""

from pkgutil import resolve_name

__all__ = [
    "Assessment",
    "Design",
    "DesignError",
    "assess",
    "avoid",
    "blueprint",
    "explain",
    "fixes",
    "search",
    "sensitivity",
    "sweep",
]


def __getattr__(name: str):
    """Public names are loaded when they are first used, so that `import scantling` is quick."""
    if name in __all__:
        return resolve_name(f"scantling.api:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
