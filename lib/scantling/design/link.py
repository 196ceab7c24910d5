"""A design as the end of an address: `design=1.` and its fields as JSON, deflated, in base64url.

`1` is the version of the link; the format of the design inside has its own (`scantling: 1`).
"""

import base64
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from json import dumps, loads
from typing import Any

from ..base.errors import DesignError
from ..base.files import MAX_BYTES, too_deep

VERSION = 1
NAME = "link"
_ENDS = ("", "}", "}}", "}}}", "]}", "]}}", "}]}}")  # that close JSON which was cut
_STEPS = 50  # entries that are taken back until it can be closed
_LINK = re.compile(r"(?:^|[#&])design=(\d+)\.([\w-]*)")


def pack(data: Mapping[str, Any]) -> str:
    """The link of a design's fields, without an address before it."""
    text = dumps(data, separators=(",", ":"), ensure_ascii=False)
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    return f"design={VERSION}.{packed}"


def holds(text: str) -> bool:
    """Whether a text is a link, or an address that ends in one."""
    return _LINK.search(text) is not None


def unpack(text: str) -> dict[str, Any]:
    """The fields of a link or of an address that ends in one. Raises DesignError for a link that is
    cut, of another version, or no design."""
    match = _LINK.search(text)
    if match is None:
        raise DesignError(NAME, text[:60], "design=1. and what follows", problem="is no link")
    if int(match[1]) != VERSION:
        was = f"version {VERSION}; ask for the design as a file"
        raise DesignError(NAME, f"version {match[1]}", was, problem="is of another version")
    json, whole = _inflated(match[2])
    if not whole:
        raise DesignError(NAME, problem="the link is cut short or changed: copy all of it again")
    try:
        data = None if too_deep(json) else loads(json)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise DesignError(NAME, problem="the link holds no design")
    return data


def whole_fields(text: str) -> dict[str, Any]:
    """The fields that came whole of a link that is cut or of another version."""
    match = _LINK.search(text)
    return _entries(*_inflated(match[2])) if match else {}


def _inflated(packed: str) -> tuple[str, bool]:
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
    if too_deep(text):
        return {}
    if whole:
        text += ","
    for _ in range(_STEPS):
        text = text.rpartition(",")[0]
        for end in _ENDS:
            with suppress(ValueError):
                entries = loads(text + end)
                return entries if isinstance(entries, dict) else {}
    return {}
