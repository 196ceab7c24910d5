"""The design desk and the design report on top of scantling."""

from .desk import Desk, open_desk
from .drawing import chart

__all__ = ["Desk", "chart", "open_desk"]
