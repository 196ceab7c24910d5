"""A format of logs with a structure of its own, read by a function."""

from collections.abc import Callable
from pathlib import Path

from scantling.base.records import record

from .contents import Contents


@record
class FileFormat:
    """A format that a function reads."""

    name: str
    framework: str
    knows: Callable[[str], bool]  # whether the head of a file is of this format
    read: Callable[[Path, Contents], None]  # takes what a file holds into its contents
