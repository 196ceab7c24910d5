"""Text from a design, made safe for the place it lands in: shell, YAML, JSON, Python, #SBATCH
lines, Kubernetes names, comments."""

import json
import re
import shlex

from ..base.errors import plain


def sh(value) -> str:
    """One shell word."""
    return shlex.quote(str(value))


def js(value) -> str:
    """A YAML value in double quotes, everything beyond ASCII escaped: JSON, but for characters
    beyond 16 bits, which YAML does not read as pairs."""
    return re.sub(
        r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})",
        lambda m: f"\\U{0x10000 + (int(m[1], 16) - 0xD800 << 10) + int(m[2], 16) - 0xDC00:08x}",
        json.dumps(value, ensure_ascii=True),
    )


def hydra(value) -> str:
    """A value as Hydra reads it in an override."""
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def py(value) -> str:
    """A Python literal in ASCII."""
    return ascii(value)


def comment(value, width: int = 160) -> str:
    """Text for a `#` comment: one printable line, so that it cannot end the comment."""
    return plain(str(value), width)


def md(value) -> str:
    """Text for Markdown: one line whose brackets, pipes, backticks and angles stay text."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", plain(str(value), 2000))


def slug(value) -> str:
    """A DNS label (RFC 1123): lower case letters, digits and hyphens; for Slurm and Kubernetes
    names, where quoting is no help."""
    text = (
        re.sub(
            r"[^a-z0-9]+",
            "-",
            str(value).lower().encode("ascii", "ignore").decode(),
        )
        .strip("-")[:40]
        .strip("-")
    )
    return text if text and text[0].isalpha() else f"run-{text}".strip("-")
