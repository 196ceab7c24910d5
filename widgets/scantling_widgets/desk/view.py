"""A page of parts in a notebook or on Voilà's page: messages go through one widget."""

from typing import Any

from ..charts.parts import Page
from ..resources import STATIC, scripts

# in the order in which they need each other
_SCRIPTS = ("sheet", "form", "livechart", "strip", "parts", "table", "desk")


def script() -> str:
    """The front end as one module; its `open(el, transport)` draws what `transport` brings."""
    return scripts(*_SCRIPTS)


class View:
    """Shows a page wherever a Jupyter kernel is behind it; several times, where asked to."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.widget: Any = None  # an anywidget, made when it is first shown

    def display(self) -> None:
        """Put the page into the output of the cell."""
        from IPython.display import display

        if self.widget is None:
            self.widget = _widget()
            self.widget.on_msg(lambda _, message, buffers: self.page.hear(message))
            self.page.tell = self.widget.send
        display(self.widget)  # type: ignore[no-untyped-call]  # IPython states no types


def _widget() -> Any:
    import anywidget

    class Front(anywidget.AnyWidget):
        _esm = script()
        _css = (STATIC / "desk.css").read_text(encoding="utf-8")

    return Front()
