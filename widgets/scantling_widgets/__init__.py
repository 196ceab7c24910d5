"""The design desk and the design report on top of scantling."""

from __future__ import annotations

import sys

if "jsonschema" not in sys.modules and "rfc3987_syntax" not in sys.modules:
    # Where its optional grammar of international URLs is installed, jsonschema builds it at import:
    # 1.6 s that altair, its user here, has no use for.
    sys.modules["rfc3987_syntax"] = None
    try:
        import jsonschema  # noqa: F401
    except ImportError:
        pass
    finally:
        del sys.modules["rfc3987_syntax"]


def __getattr__(name: str):
    if name in __all__:
        from . import desk

        return getattr(desk, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Desk", "open_desk"]
