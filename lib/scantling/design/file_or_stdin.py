"""A design by the name of its file, or from standard input."""

import sys

from ..base.files import read_stream
from .design import Design


def read(file: str) -> Design:
    """The design in `file`, - for stdin; the file's name leads the message of a wrong one."""
    return Design.from_yaml(read_stream(sys.stdin, "-")) if file == "-" else Design.read(file)
