"""The design desk and the design report on top of scantling."""
from __future__ import annotations


def __getattr__(name: str):
    if name in __all__:
        from . import desk

        return getattr(desk, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Desk", "open_desk"]
