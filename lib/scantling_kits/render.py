"""The kit's templates: every value from a design goes through one of the quoting filters."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from scantling.base.extensions import folders

from .quote import comment, js, line, md, py

FOLDER = Path(__file__).parent / "templates"


@cache
def templates() -> Environment:
    """The environment that renders them: shell, YAML and Markdown, which nothing escapes by
    itself."""
    env = Environment(
        loader=FileSystemLoader([FOLDER, *(folder / "templates" for folder in folders())]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )
    env.filters |= {"js": js, "py": py, "comment": comment, "md": md, "line": line}
    return env


def render(template: str, **values: Any) -> str:
    """One template as text."""
    return templates().get_template(template).render(**values)


@cache
def source(name: str) -> str:
    """A file that a kit takes as it is."""
    return (FOLDER / name).read_text(encoding="utf-8")
