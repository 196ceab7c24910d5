"""The design desk and the design report on top of scantling."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import charts as charts, report as report
    from .charts.drawing import chart as chart
    from .desk.session import Session as Session
    from .desk.widgets import (
        Controls as Controls,
        Desk as Desk,
        Headline as Headline,
        MemoryChart as MemoryChart,
        Plans as Plans,
        StepChart as StepChart,
        open_desk as open_desk,
    )
    from .pages import published_tables as published_tables, walkthrough_widgets as learn

__all__ = [
    "Controls",
    "Desk",
    "Headline",
    "MemoryChart",
    "Plans",
    "Session",
    "StepChart",
    "chart",
    "charts",
    "learn",
    "open_desk",
    "published_tables",
    "report",
]

# where each name is, imported when it is first asked for: a report needs no desk
_MODULES = {
    "Controls": ".desk.widgets",
    "Desk": ".desk.widgets",
    "Headline": ".desk.widgets",
    "MemoryChart": ".desk.widgets",
    "Plans": ".desk.widgets",
    "Session": ".desk.session",
    "StepChart": ".desk.widgets",
    "chart": ".charts.drawing",
    "open_desk": ".desk.widgets",
}
# names of whole modules: pictures of an assessment, questions with their answers, tables and
# curves of published figures, reports
_WHOLE = {
    "charts": ".charts",
    "learn": ".pages.walkthrough_widgets",
    "published_tables": ".pages.published_tables",
    "report": ".report",
}


def __getattr__(name: str) -> Any:
    """A public name, its module imported when it is first asked for."""
    if name in _WHOLE:
        value: Any = import_module(_WHOLE[name], __name__)
    elif name in _MODULES:
        value = vars(import_module(_MODULES[name], __name__))[name]
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
