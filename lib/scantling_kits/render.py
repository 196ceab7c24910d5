"""The kit's templates: every value from a design goes through one of the quoting filters."""

from functools import cache
from pathlib import Path

from scantling.base.errors import plain
from scantling.base.extensions import folders
from scantling.base.show import value_text
from scantling.base.units import DAY_S

from .quote import comment, hydra, js, md, py, sh, slug

FOLDER = Path(__file__).parent


def gb(x: float) -> str:
    """Bytes as GB."""
    return f"{x / 1e9:,.1f} GB"


def span(seconds: float) -> str:
    """Seconds in the unit that suits."""
    for size, unit in ((DAY_S, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.3g} s"


@cache
def templates():
    """The environment that renders them."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    env = Environment(
        loader=FileSystemLoader([folder / "templates" for folder in (FOLDER, *folders())]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )  # noqa: S701
    named = (sh, js, py, comment, hydra, bool, md, slug, gb, span, entries, columns, value_text)
    env.filters |= {f.__name__: f for f in named} | {"line": lambda text: plain(str(text), 2000)}
    env.globals["DAY_S"] = DAY_S
    return env


def render(name: str, **values) -> str:
    """One template as text."""
    return templates().get_template(name).render(**values)


def entries(said) -> list:
    """What a macro says, a line an entry."""
    return [line.strip() for line in str(said).splitlines() if line.strip()]


def columns(said) -> list:
    """The same where a line has columns: `what | text`."""
    return [tuple(line.split(" | ")) for line in entries(said)]


def said(template: str, macro: str, *arguments) -> str:
    """The text of a macro of templates/TEMPLATE.j2."""
    return getattr(templates().get_template(f"{template}.j2").module, macro)(*arguments)


def filled(texts, **values) -> list:
    """Short texts with their blanks filled; what is empty then is left out."""
    said = (templates().from_string(text).render(**values) for text in texts)
    return [text.strip() for text in said if text.strip()]


@cache
def source(name: str) -> str:
    """A file that a kit takes as it is."""
    return (FOLDER / "templates" / name).read_text(encoding="utf-8")
