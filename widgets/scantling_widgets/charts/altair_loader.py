"""Altair, loaded when the first chart is drawn: the desk opens without it where its charts have
been drawn before, and the page in a browser has none."""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt
else:

    def _when_used(name: str) -> ModuleType | None:
        """The module, run at the first look at anything in it; None where it is missing."""
        if name in sys.modules:
            return sys.modules[name]
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return None
        spec.loader = LazyLoader(spec.loader)
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    alt = _when_used("altair")

__all__ = ["alt"]
