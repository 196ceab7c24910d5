"""How a command ends on a design file that is refused."""

from collections.abc import Sequence

import click


class WrongFile(click.ClickException):
    """A design file that is refused: one line for each thing that is wrong with it."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines[0])
        self.lines = lines
