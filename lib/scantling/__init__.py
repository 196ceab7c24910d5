"""Plan large LLM training runs: memory, step time, MFU, goodput, days and cost of a design."""

from pkgutil import resolve_name

_PUBLIC = {
    "Design": "scantling.design.design:Design",
    "DesignError": "scantling.base.errors:DesignError",
    "assess": "scantling.verdict.assess:assess",
    "Assessment": "scantling.verdict.assess:Assessment",
    "search": "scantling.plans.search:search",
}
__all__ = ["Assessment", "Design", "DesignError", "assess", "search"]


def __getattr__(name):
    """Public names are loaded when first used, so that `import scantling` stays fast."""
    if name in _PUBLIC:
        return resolve_name(_PUBLIC[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
