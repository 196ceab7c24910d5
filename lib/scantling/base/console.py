"""The terminal as the commands write to it."""

import sys

from .json import text


def console(stderr: bool = False):
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


def print_json(data) -> None:
    """Strict JSON on stdout: nan and infinity become null, arrays lists."""
    print(text(data))
