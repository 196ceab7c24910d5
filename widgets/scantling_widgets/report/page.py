"""From an executed notebook to one HTML file that asks the network for nothing."""

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from markupsafe import Markup, escape
from scantling.base.displayed import markdown

from ..charts import pictures
from .rendering import environment

_WIDGET = "application/vnd.jupyter.widget-view+json"
_ABOUT = ": plan, step time, memory, days, cost and risks of a training run"
_KINDS = ("text/html", "image/svg+xml", "image/png", "text/markdown", "text/plain")


def page(notebook: Any, *, title: str, date: str, footer: str = "") -> str:
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
    css = resources.files(__package__ or "").joinpath("templates", "page.css")
    text = (
        environment()
        .get_template("page.j2")
        .render(
            body=body,
            title=title,
            description=f"{title}{_ABOUT}" if kind == "report" else title,
            date=date,
            footer=f"{footer} · " if footer else "",
            images="data:" if kind == "report" else "data: 'self'",
            kind=kind,
            css=Markup(css.read_text(encoding="utf-8") + pictures.ink_rules()),
        )
    )
    return f"{text}\n"


def templated(name: str, *, title: str, date: str, footer: str = "", **view: Any) -> str:
    """A wide page of the kit, its body the template `name` filled with `view`."""
    body = environment().get_template(f"{name}.j2").render(title=title, **view)
    return document(Markup(body), title=title, date=date, footer=footer, kind="wide")


def _cell(cell: Any) -> str:
    if "hide" in cell.metadata.get("tags", []):
        return ""
    if cell.cell_type == "markdown":
        return markdown(cell.source)
    return "\n".join(filter(None, map(output_html, cell.get("outputs", []))))


def output_html(output: Any) -> str:
    """One output of a cell: markup without scripts, a picture, or text."""
    if output.output_type == "error":
        return f'<pre class="fault">{escape(output.ename)}: {escape(output.evalue)}</pre>'
    data = output.get("data", {})
    if _WIDGET in data or pictures.RESULT in data:
        return ""
    if picture := data.get(pictures.PICTURE):
        return str(picture["figure"])
    return _output({kind: "".join(data[kind]) for kind in _KINDS if data.get(kind)})


def _output(texts: Mapping[str, str]) -> str:
    """An output by the first of these kinds that it has."""
    words = texts.get("text/plain", "")
    if html := texts.get("text/html"):
        return _offline(html)
    if svg := texts.get("image/svg+xml"):
        return _svg(svg, words)
    if png := texts.get("image/png"):
        return _png(png, words)
    if source := texts.get("text/markdown"):
        return markdown(source)
    return f"<pre>{escape(words)}</pre>" if words else ""


def _offline(html: str) -> str:
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
