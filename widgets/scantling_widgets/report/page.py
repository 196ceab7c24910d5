"""From an executed notebook to one HTML file that asks the network for nothing."""

from __future__ import annotations

import re
from importlib import resources

from markupsafe import Markup, escape

from . import pictures
from .jobs import RESULT
from .text import environment

# letters: a first page that has more to say is set smaller on paper, so that it stays one page
FULL = 2700


def page(notebook, *, title: str, date: str, footer: str = "") -> str:
    """The outputs of an executed notebook as a self-contained page.

    Markdown cells, HTML, SVG, PNG and plain-text results are kept in their order; code, widgets,
    prints and warnings are not.
    """
    return document(
        Markup("\n".join(filter(None, map(_cell, notebook.cells)))),
        title=title,
        date=date,
        footer=footer,
    )


def document(body: Markup, *, title: str, date: str, footer: str = "", kind: str = "report") -> str:
    """A page of the kit around `body`."""
    css = resources.files(__package__).joinpath("templates", "page.css").read_text(encoding="utf-8")
    return (
        environment()
        .get_template("page.j2")
        .render(
            body=body,
            title=title,
            date=date,
            footer=footer,
            kind=kind,
            full=len(_front(body)) > FULL,
            css=Markup(css + pictures.ink_rules()),
        )
        + "\n"
    )


def _front(body: str) -> str:
    """The words of a report's first page."""
    before, plan, _ = body.partition('<section id="plan">')
    return re.sub(r"<[^>]+>", "", before) if plan else ""


def _cell(cell) -> str:
    if "hide" in cell.metadata.get("tags", []):
        return ""
    if cell.cell_type == "markdown":
        return _markdown(cell.source)
    return "\n".join(filter(None, map(output_html, cell.get("outputs", []))))


def output_html(output) -> str:
    """One output of a cell: markup without scripts, a picture, or text."""
    if output.output_type == "error":
        return f'<pre class="fault">{escape(output.ename)}: {escape(output.evalue)}</pre>'
    data = output.get("data", {})
    if "application/vnd.jupyter.widget-view+json" in data or RESULT in data:
        return ""
    if picture := data.get(pictures.PICTURE):
        return picture["figure"]
    if html := data.get("text/html"):
        return _offline("".join(html))
    if svg := data.get("image/svg+xml"):
        words = "".join(data.get("text/plain", "picture"))
        return f'<figure class="picture">{pictures.accessible("".join(svg), words)}</figure>'
    if png := data.get("image/png"):
        return (
            f'<figure class="picture"><img '
            f'alt="{escape("".join(data.get("text/plain", "picture")))}" '
            f'src="data:image/png;base64,{"".join(png).strip()}"></figure>'
        )
    if markdown := data.get("text/markdown"):
        return _markdown("".join(markdown))
    if plain := data.get("text/plain"):
        return f"<pre>{escape(''.join(plain))}</pre>"
    return ""


def _markdown(source: str) -> str:
    import mistune

    return mistune.create_markdown(plugins=["table"])("".join(source))


def _offline(html: str) -> str:
    """Without scripts: a report shows what was computed and runs nothing."""
    return re.sub(r"<script\b.*?</script\s*>", "", html, flags=re.S | re.I)
