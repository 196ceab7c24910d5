"""From an executed notebook to one HTML file that asks the network for nothing."""

import re
from importlib import resources

from markupsafe import Markup, escape
from scantling.base.displayed import markdown

from ..charts import pictures
from .text import environment

# letters: a first page that has more to say is set smaller on paper, so that it stays one page;
# beyond CROWDED it shrinks with its letters, which fill a sheet nearly by the square of their size
FULL, CROWDED = 2300, 3600
_WIDGET = "application/vnd.jupyter.widget-view+json"


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
    letters = len(_front(body))
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
            full=letters > FULL,
            front=min(1.0, (CROWDED / max(letters, 1)) ** 0.7),
            css=Markup(css + pictures.ink_rules()),
        )
        + "\n"
    )


def templated(name: str, *, title: str, date: str, footer: str = "", **view) -> str:
    """A wide page of the kit, its body the template `name` filled with `view`."""
    body = environment().get_template(f"{name}.j2").render(title=title, **view)
    return document(Markup(body), title=title, date=date, footer=footer, kind="wide")


def _front(body: str) -> str:
    """The words of a report's first page."""
    before, plan, _ = body.partition('<section id="plan">')
    return re.sub(r"<[^>]+>", "", before) if plan else ""


def _cell(cell) -> str:
    if "hide" in cell.metadata.get("tags", []):
        return ""
    if cell.cell_type == "markdown":
        return markdown(cell.source)
    return "\n".join(filter(None, map(output_html, cell.get("outputs", []))))


def output_html(output) -> str:
    """One output of a cell: markup without scripts, a picture, or text."""
    if output.output_type == "error":
        return f'<pre class="fault">{escape(output.ename)}: {escape(output.evalue)}</pre>'
    data = output.get("data", {})
    if _WIDGET in data or pictures.RESULT in data:
        return ""
    if picture := data.get(pictures.PICTURE):
        return picture["figure"]
    plain = "".join(data.get("text/plain", ""))
    for kind, shown in _SHOWN.items():
        if found := "".join(data.get(kind, "")):
            return shown(found, plain)
    return ""


def _offline(html: str, words: str) -> str:
    """Without scripts: a report shows what was computed and runs nothing."""
    return re.sub(r"<script\b.*?</script\s*>", "", html, flags=re.S | re.I)


def _svg(svg: str, words: str) -> str:
    return pictures.framed(Markup(pictures.accessible(svg, words or "picture")))


def _png(png: str, words: str) -> str:
    return pictures.framed(
        Markup('<img alt="{}" src="data:image/png;base64,{}">').format(
            words or "picture", png.strip()
        )
    )


# the first of these that an output has is shown
_SHOWN = {
    "text/html": _offline,
    "image/svg+xml": _svg,
    "image/png": _png,
    "text/markdown": lambda source, words: markdown(source),
    "text/plain": lambda plain, words: f"<pre>{escape(plain)}</pre>",
}
