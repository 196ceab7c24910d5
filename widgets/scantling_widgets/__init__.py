"""The design desk and the design report on top of scantling."""

from __future__ import annotations

import sys

# jsonschema makes a grammar of IRIs whenever it is imported: a second, for a format of no file here
sys.modules.setdefault("rfc3987_syntax", None)

from .desk import Desk, open_desk  # noqa: E402

__all__ = ["Desk", "open_desk"]
