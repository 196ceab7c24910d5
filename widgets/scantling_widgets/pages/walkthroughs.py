"""The one-source builder: from a walkthrough's notebook to the copies that are worked on, taught
from, and rendered.

The source holds no outputs and no answers. Its cells are told apart by tags:
    parameters   `mode`
    commit       asks a question: `check("id", answer)`
    work         what belongs behind the fold of a question; not in the blank copy
    hide         not on the rendered page (set-up)
"""

import copy
import logging
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from os import environ
from pathlib import Path
from typing import Any, TypeAlias

import click
import nbformat
from markupsafe import Markup, escape
from scantling.base.displayed import markdown
from scantling.base.errors import DesignError
from scantling.base.workers import crew
from scantling_walkthroughs import question_pages, walkthrough, walkthroughs
from scantling_walkthroughs.session import MODES

from .. import shipped_files
from ..report.page import output_html
from ..report.rendering import environment, macros
from .servers import PAGE_SIGNS

FOLDER = "walkthroughs"

Notebook: TypeAlias = Any  # nbformat's: a mapping whose entries read as attributes
Cell: TypeAlias = Any


def read(path: Path) -> Notebook:
    """A notebook from its file."""
    return nbformat.read(path, as_version=4)


def sources() -> list[Path]:
    """The walkthroughs' notebooks in order."""
    return [source(number) for number in walkthroughs()]


def source(which: str) -> Path:
    """The notebook of a walkthrough by number or name. Raises DesignError naming what there is."""
    try:
        w = walkthrough(which.removesuffix(".ipynb"))
    except KeyError:
        raise DesignError(
            "walkthrough",
            which,
            [f"{n}_{w.name}" for n, w in walkthroughs().items()],
            problem="is unknown",
        ) from None
    return shipped_files.notebook(f"{FOLDER}/{w.number}_{w.name}")


def tags(cell: Cell) -> list[str]:
    """What the source says of a cell."""
    return list(cell.get("metadata", {}).get("tags", []))


def derive(notebook: Notebook, mode: str) -> Notebook:
    """The copy for a mode: the parameter set; in a blank, what gives answers away is left out. The
    source itself stays as it is."""
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, not one of {', '.join(MODES)}")
    out = copy.deepcopy(notebook)
    if mode == "blank":
        out.cells = [c for c in out.cells if "work" not in tags(c)]
    for cell in out.cells:
        if "parameters" in tags(cell):
            cell.source = re.sub(
                r'^(mode\b[^=]*=\s*)"[^"]*"', rf'\g<1>"{mode}"', cell.source, flags=re.M
            )
    return out


def write(which: str, mode: str, out: str | Path, html: bool = False) -> list[Path]:
    """Write the copy of a walkthrough for `mode` into the folder `out`; `html`: executed and
    rendered as well. The files written."""
    path, folder = source(which), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    copy_ = derive(read(path), mode)
    stem = path.stem if mode == "student" else f"{path.stem}.{mode}"
    files = [folder / f"{stem}.ipynb"]
    nbformat.write(copy_, files[0])
    if html:
        files.append(folder / f"{stem}.html")
        files[1].write_text(rendered(files[0], mode), encoding="utf-8")
    return files


def execute(path: str | Path, mode: str | None = None, **parameters: Any) -> Notebook:
    """The notebook, executed by papermill; every cell has to run."""
    import papermill

    logging.getLogger("papermill").setLevel(logging.WARNING)
    given = parameters | ({} if mode is None else {"mode": mode})
    # a kernel started from a live one is not live itself
    signs = {k: environ.pop(k) for k in PAGE_SIGNS if k in environ}
    try:
        with tempfile.TemporaryDirectory(prefix="scantling-walk-") as scratch:
            return papermill.execute_notebook(
                str(path),
                f"{scratch}/out.ipynb",
                parameters=given,
                progress_bar=False,
                extra_arguments=["--IPKernelApp.log_level=40"],
            )
    finally:
        environ.update(signs)


def rendered(path: str | Path, mode: str | None = None) -> str:
    """The page of a notebook, executed."""
    return page(execute(path, mode))


def render_all(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """(notebook, page) of several notebooks, in order, two at a time."""
    paths = list(paths)
    with crew() as start:
        yield from zip(paths, start(2).map(rendered, paths))


# ---------------------------------------------------------------- the page
def page(notebook: Notebook) -> str:
    """An executed notebook as one offline HTML file: prose, questions that check themselves, what
    is worked behind its fold."""
    return document(
        notebook.metadata.get("scantling", {}).get("title") or _heading(notebook),
        "\n".join(filter(None, map(_cell, notebook.cells))),
        script=Markup(shipped_files.scripts("controls", "learn")),
    )


def _heading(notebook: Notebook) -> str:
    texts = (c.source for c in notebook.cells if c.cell_type == "markdown")
    return next((text.lstrip("# ").splitlines()[0] for text in texts), "Notebook")


def document(title: str, body: str, *, script: str = "", wide: bool = False) -> str:
    """A page of the walkthroughs around `body`."""
    text = (
        environment()
        .get_template("walkthrough.j2")
        .render(
            title=title,
            body=Markup(body),
            script=script,
            css=Markup((shipped_files.STATIC / "learn.css").read_text(encoding="utf-8")),
            style=Markup(question_pages.style()),
            wide=wide,
        )
    )
    return text + "\n"


def _cell(cell: Cell) -> str:
    if {"hide", "parameters", "injected-parameters"} & set(tags(cell)):
        return ""
    if cell.cell_type == "markdown":
        return markdown(cell.source)
    if cell.cell_type != "code":
        return ""
    shown = "\n".join(filter(None, map(_output, cell.get("outputs", []))))
    # a question, or no more than the session itself
    if "commit" in tags(cell) or re.match(r"\s*walk\b", cell.source):
        return shown
    code = escape(cell.source)
    return f'{shown}<details class="code"><summary>Code</summary><pre>{code}</pre></details>'


def _output(output: Any) -> str:
    html = output_html(output)
    if html.startswith("<figure"):
        return f'<div class="scl">{html}</div>'
    return re.sub(r"<style\b.*?</style\s*>", "", html, flags=re.S | re.I)


# ---------------------------------------------------------------- commands
@click.command("walkthrough")
@click.argument("which", required=False, metavar="[NN|NAME]")
@click.option(
    "--as",
    "mode",
    type=click.Choice(MODES),
    default="student",
    show_default=True,
    help="answers folded, answers shown, or nothing but the questions",
)
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    help="folder for the notebook, wanted with a number; made where it is missing",
)
@click.option("--html", is_flag=True, help="executed as well, and rendered as one offline page")
def command(which: str | None, mode: str, out: str | None, html: bool) -> None:
    """Copy a walkthrough, to be worked on, taught from, or practised against the clock. Without a
    number: the list of them."""
    if which is None:
        for w in walkthroughs().values():
            click.echo(
                f"{w.number}  {w.name:22} {w.minutes} min  {len(w.asks):2} questions  {w.title}"
            )
        return
    if out is None:
        raise click.UsageError("name a folder with -o DIR")
    for path in write(which, mode, out, html):
        click.echo(str(path))


# ---------------------------------------------------------------- the site
def pages(out: Path) -> None:
    """Render every walkthrough into a folder, answers folded, with the page that lists them."""
    write_all(out, sources(), index)


def write_all(out: Path, paths: Iterable[Path], index: Callable[[], str]) -> None:
    """Execute and render notebooks into a folder, and the page that lists them."""
    out.mkdir(parents=True, exist_ok=True)
    for path, html in render_all(paths):
        (out / f"{path.stem}.html").write_text(html, encoding="utf-8")
        click.echo(out / f"{path.stem}.html")
    (out / "index.html").write_text(index(), encoding="utf-8")


def index() -> str:
    """The list of the walkthroughs as a page."""
    return document("Walkthroughs", macros().walkthroughs(walkthroughs().values()))
