"""The design desk and the design report on top of scantling."""

from __future__ import annotations

from .desk import Desk, open_desk

__all__ = ["Desk", "open_desk"]
