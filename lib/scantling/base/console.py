"""The terminal as the commands write to it."""

import sys
from typing import TYPE_CHECKING, Any

from .errors import plain
from .json import text

if TYPE_CHECKING:
    from rich.console import Console


def console(stderr: bool = False) -> "Console":
    """A rich console that never reads markup in foreign text and keeps lines readable when
    piped."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        file=stream,
        markup=False,
        highlight=False,
        emoji=False,
        width=None if stream.isatty() else 120,
    )


def print_json(data: Any) -> None:
    """Strict JSON on stdout: nan and infinity become null, arrays lists."""
    print(text(data))


def tell(line: str) -> None:
    """A line of the program itself on stderr."""
    print(f"scantling: {plain(line, 1150)}", file=sys.stderr)
