"""The design desk and the design report on top of scantling."""

from .charts.drawing import chart
from .desk.desk import Desk, open_desk

__all__ = ["Desk", "chart", "open_desk"]
