"""What takes a second to make and never changes, kept in the user's cache folder: the Vega bundle
and the charts' specifications."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

_WHOLE = "//whole\n"


def folder() -> Path:
    """Where the files are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scantling"


def kept(name: str, make: Callable[[], str]) -> str:
    """The text under `name`, made when it is not there; a folder that cannot be written only costs
    the making again."""
    path = folder() / name
    try:
        text = path.read_text(encoding="utf-8")
        if text.startswith(_WHOLE):
            return text.removeprefix(_WHOLE)
    except OSError:
        pass
    text = make()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_WHOLE + text)
        os.replace(part, path)
    except OSError:
        pass
    return text
