"""Text from a design, made safe for the place it lands in: shell, YAML, JSON, Python, #SBATCH
lines, Kubernetes names, comments."""

import shlex
from json import dumps
from re import sub

from scantling.base.errors import plain


def sh(value) -> str:
    """One shell word."""
    return shlex.quote(str(value))


def js(value) -> str:
    """A YAML value in double quotes, everything beyond ASCII escaped: JSON, but for characters
    beyond it, which YAML reads whole and not as pairs of 16 bits."""
    return sub(r"[^\x00-\x7e]", lambda m: f"\\U{ord(m[0]):08x}", dumps(value, ensure_ascii=False))


def hydra(value) -> str:
    """A value as Hydra reads it in an override."""
    if value is None or isinstance(value, (bool, int, float)):
        return dumps(value)
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def py(value) -> str:
    """A Python literal in ASCII."""
    return ascii(value)


def comment(value, width: int = 160) -> str:
    """Text for a `#` comment: one printable line, so that it cannot end the comment."""
    return plain(str(value), width)


def md(value) -> str:
    """Text for Markdown: one line whose brackets, pipes, backticks and angles stay text."""
    return sub(r"([\\`*_\[\]<>|#])", r"\\\1", plain(str(value), 2000))


def slug(value) -> str:
    """A DNS label (RFC 1123): lower case letters, digits and hyphens; for Slurm and Kubernetes
    names, where quoting is no help."""
    text = (
        sub(r"[^a-z0-9]+", "-", str(value).lower().encode("ascii", "ignore").decode())
        .strip("-")[:40]
        .strip("-")
    )
    return text if text and text[0].isalpha() else f"run-{text}".strip("-")
