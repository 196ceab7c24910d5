"""A design as the end of an address: `design=1.` and its fields as JSON, deflated, in base64url.

`1` is the version of the link; the format of the design inside has its own (`scantling: 1`).
"""

import base64
import json
import re
import zlib

from scantling.base.errors import DesignError
from scantling.base.files import MAX_BYTES
from scantling.design.design import Design

VERSION = 1
_LINK = re.compile(r"(?:^|[#&])design=(\d+)\.([\w-]*)")


def write(design: Design) -> str:
    """The link of a design, without an address before it."""
    text = json.dumps(
        design.data(),
        separators=(",", ":"),
        ensure_ascii=False,
    )
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    return f"design={VERSION}.{packed}"


def holds(text: str) -> bool:
    """Whether a text is a link, or an address that ends in one."""
    return _LINK.search(text) is not None


def read(text: str) -> Design:
    """The design of a link or of an address that ends in one. Raises DesignError for a link that is
    cut, of another version, or no design."""
    found = _LINK.search(text)
    if found is None:
        raise DesignError(
            "link",
            text[:60],
            "design=1. and what follows",
            problem="is no link",
        )
    if int(found[1]) != VERSION:
        was = f"version {VERSION}; ask for the design as a file"
        raise DesignError(
            "link",
            f"version {found[1]}",
            was,
            problem="is of another version",
        )
    try:
        packed = base64.urlsafe_b64decode(found[2] + "=" * (-len(found[2]) % 4))
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(packed, MAX_BYTES).decode()
        whole = unpacking.eof
    except (ValueError, zlib.error):
        whole = False
    if not whole:
        raise DesignError("link", problem="the link is cut short or changed: copy all of it again")
    try:
        return Design.from_data(json.loads(text))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DesignError):
            raise
        raise DesignError("link", problem="the link holds no design") from None
