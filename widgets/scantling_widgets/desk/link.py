"""A design as the end of an address: `design=1.` and its fields as JSON, deflated, in base64url.

`1` is the version of the link; the format of the design inside has its own (`scantling: 1`).
"""

import base64
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from json import dumps, loads
from typing import Any

from scantling.base.errors import DesignError
from scantling.base.files import MAX_BYTES
from scantling.design.design import Design

VERSION = 1
NAME = "link"
_ENDS = ("", "}", "}}", "}}}", "]}", "]}}", "}]}}")  # that close JSON which was cut
_STEPS = 50  # entries that are taken back until it can be closed
_LINK = re.compile(r"(?:^|[#&])design=(\d+)\.([\w-]*)")


def write(design: Design) -> str:
    """The link of a design, without an address before it."""
    text = dumps(design.data(), separators=(",", ":"), ensure_ascii=False)
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    return f"design={VERSION}.{packed}"


def holds(text: str) -> bool:
    """Whether a text is a link, or an address that ends in one."""
    return _LINK.search(text) is not None


def read(text: str) -> Design:
    """The design of a link or of an address that ends in one. Raises DesignError for a link that is
    cut, of another version, or no design."""
    match = _LINK.search(text)
    if match is None:
        raise DesignError(NAME, text[:60], "design=1. and what follows", problem="is no link")
    if int(match[1]) != VERSION:
        was = f"version {VERSION}; ask for the design as a file"
        raise DesignError(NAME, f"version {match[1]}", was, problem="is of another version")
    text, whole = _unpacked(match[2])
    if not whole:
        raise DesignError(NAME, problem="the link is cut short or changed: copy all of it again")
    try:
        return Design.from_data(loads(text))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DesignError):
            raise
        raise DesignError(NAME, problem="the link holds no design") from None


def rest(text: str, check: Callable[[Design], None]) -> dict[str, Any] | None:
    """The fields that can still be used of a link that is cut, of another version or wrong: those
    that came whole, but for what `check` and the format refuse; None for each that is not there.
    None where they make no design."""
    match = _LINK.search(text)
    data = _entries(*_unpacked(match[2])) if match else {}
    while True:
        try:
            check(Design.from_data(data))
            return dict.fromkeys(Design.model_fields) | data
        except DesignError as error:
            section, _, field = error.field.partition(".")
            holds = data.get(section) if field else data
            if not isinstance(holds, dict) or holds.pop(field or section, None) is None:
                return None


def _unpacked(packed: str) -> tuple[str, bool]:
    """(what a link holds, as far as it can be unpacked; whether that is all of it)."""
    packed = packed[:-1] if len(packed) % 4 == 1 else packed
    unpacking = zlib.decompressobj()
    try:
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        return unpacking.decompress(raw, MAX_BYTES).decode(errors="ignore"), unpacking.eof
    except (ValueError, zlib.error):
        return "", False


def _entries(text: str, whole: bool) -> dict[str, Any]:
    """The mapping that JSON spells; where it was cut, without the entry that it was cut in."""
    if whole:
        text += ","
    for _ in range(_STEPS):
        text = text.rpartition(",")[0]
        for end in _ENDS:
            with suppress(ValueError, RecursionError):
                entries = loads(text + end)
                return entries if isinstance(entries, dict) else {}
    return {}
