"""Text from a design, made safe for the place it lands in: shell, YAML, JSON, Python, #SBATCH
lines, Kubernetes names, comments."""

import shlex
from json import dumps
from math import isfinite
from re import sub
from typing import Any

from scantling.base.errors import plain


def sh(value: Any) -> str:
    """One shell word."""
    return shlex.quote(str(value))


def js(value: Any) -> str:
    """A YAML value in double quotes, everything beyond ASCII escaped: JSON, but for characters
    beyond it, which YAML reads whole and not as pairs of 16 bits."""
    return sub(r"[^\x00-\x7e]", lambda m: f"\\U{ord(m[0]):08x}", dumps(value, ensure_ascii=False))


def hydra(value: Any) -> str:
    """A value as Hydra reads it in an override."""
    if value is None or isinstance(value, (bool, int, float)):
        return dumps(value)
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def py(value: Any) -> str:
    """A Python literal in ASCII, which reads back as the value."""
    if not _literal(value):
        raise ValueError(f"{value!r} is no literal")
    return ascii(value)


def _literal(value: Any) -> bool:
    """Whether Python writes a value as it reads it: text, finite numbers, truth values, None, and
    lists, tuples and mappings of them."""
    if isinstance(value, dict):
        return all(_literal(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple)):
        return all(map(_literal, value))
    if type(value) is float:
        return isfinite(value)
    return type(value) in (str, bool, int, type(None))


def comment(value: Any, width: int = 160) -> str:
    """Text for a `#` comment: one printable line, so that it cannot end the comment."""
    return plain(str(value), width)


def line(value: Any) -> str:
    """Text of the kit's own for one line of Markdown."""
    return plain(str(value), 2000)


def md(value: Any) -> str:
    """Text for Markdown: one line whose brackets, pipes, backticks and angles stay text."""
    return sub(r"([\\`*_\[\]<>|#])", r"\\\1", line(value))


def slug(value: Any) -> str:
    """A DNS label (RFC 1123): lower case letters, digits and hyphens; for Slurm and Kubernetes
    names, where quoting is no help."""
    text = str(value).lower().encode("ascii", "ignore").decode()
    label = sub(r"[^a-z0-9]+", "-", text).strip("-")[:40].strip("-")
    if label and label[0].isalpha():
        return label
    return f"run-{label}".strip("-")
