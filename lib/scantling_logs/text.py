"""The text of a log as a stream: plain or gzip, any line ends, without colours, within bounds."""

import gzip
import re
import zlib
from collections.abc import Iterator
from functools import partial
from io import BufferedIOBase
from os import fstat
from pathlib import Path

from scantling.base.errors import DesignError, plain
from scantling.base.files import open_stream

CHUNK = 1 << 20
HEAD = 4 << 20  # what a format is recognised by
MOST = 64 << 30  # bytes: a longer log is read up to there
UNPACKED = 100  # times its size that a compressed log may grow to: words shrink to a tenth or so
COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]*\x07?|\[?)")


def wrong_for(path: Path) -> "partial[DesignError]":
    """The error of a file that cannot be read as a log."""
    return partial(DesignError, plain(path.name, 200))


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a log in pieces of 1 MB, decompressed where it is gzip.

    Raises DesignError for what is no regular file and for a gzip stream that is broken from its
    start; one that is cut short gives what it holds.
    """
    with open_stream(path, "a log file", wrong_for(path)) as raw:
        file: BufferedIOBase = raw
        most = MOST
        seen = 0
        if raw.peek(2)[:2] == b"\x1f\x8b":
            file = gzip.GzipFile(fileobj=raw)
            most = min(MOST, HEAD + UNPACKED * fstat(raw.fileno()).st_size)
        while seen < most:
            try:
                block = file.read1(CHUNK)
            except (OSError, EOFError, ValueError, zlib.error) as e:
                if seen:
                    return
                raise wrong_for(path)(
                    problem=f"cannot be read ({plain(e)})", allowed="a log file"
                ) from None
            if not block:
                return
            seen += len(block)
            yield block


def texts(path: Path) -> Iterator[str]:
    """The text of a log in pieces that end with a line: carriage returns are line ends, colours
    and cursor codes are gone, bytes that are no UTF-8 are replaced."""
    rest = b""
    for block in blocks(path):
        block = rest + block
        cut = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if not cut and len(block) >= CHUNK:
            cut = len(block)
        rest = block[cut:]
        if cut:
            yield clean(block[:cut])
    if rest:
        yield clean(rest)


def lines(path: Path) -> Iterator[str]:
    """The lines of a log."""
    for text in texts(path):
        yield from text.split("\n")


def clean(raw: bytes) -> str:
    """Bytes of a log as text, as `texts` gives it."""
    text = raw.decode("utf-8-sig", "replace")
    if "\x1b" in text:
        text = COLOUR.sub("", text)
    if "\r" in text or "\0" in text:
        text = text.replace("\r", "\n").replace("\0", "")
    return text


def head(path: Path, most: int = HEAD, of_line: int = HEAD) -> bytes:
    """The first bytes of a log, of a block no more than so many of a line."""
    long = re.compile(rb"(?<![^\r\n])([^\r\n]{%d})[^\r\n]+" % of_line)
    first = bytearray()
    for block in blocks(path):
        first += long.sub(rb"\1", block) if of_line < CHUNK else block
        if len(first) >= most:
            break
    return bytes(first[:most])
