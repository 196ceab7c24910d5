"""The design desk and the design report on top of scantling."""

from .desk import Desk, open_desk

__all__ = ["Desk", "open_desk"]
