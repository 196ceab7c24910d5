"""The desk inside a browser page: the worker's end of the messages of PROTOCOL.md, as JSON.
Importing this opens the desk on its example, so that a memory that is kept then holds it."""

from collections.abc import Callable
from json import dumps, loads

from . import rendered_files
from .desk import DeskPane

PAGE = DeskPane().open()


def begin(
    tell: Callable[[str], None], draw: rendered_files.Drawing | None
) -> Callable[[str], None]:
    """Returns what hears one message of the page as JSON; `tell` takes those to the page. `draw` is
    how the page draws a report's pictures (`rendering.drawing`)."""
    PAGE.tell, rendered_files.drawing = lambda message: tell(dumps(message)), draw
    return lambda message: PAGE.hear(loads(message))
