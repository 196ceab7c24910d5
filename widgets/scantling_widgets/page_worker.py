"""The desk inside a browser page: the worker's end of the messages of PROTOCOL.md, as JSON."""

import json
from collections.abc import Callable

from . import rendering
from .desk import Desk


def begin(tell: Callable, draw: Callable | None = None) -> Callable:
    """Open the desk on its example; returns what hears one message of the page as JSON. `draw` is
    how the page draws a report's pictures (`rendering.drawing`)."""
    page, rendering.drawing = Desk().page, draw
    page.tell = lambda message: tell(json.dumps(message))
    return lambda message: page.hear(json.loads(message))
