"""The one-source builder: from a walkthrough's notebook to the copies that are worked on, taught
from, and rendered.

The source holds no outputs and no answers. Its cells are told apart by tags:
    parameters   `mode`
    commit       asks a question: `check("id", answer)`
    work         what belongs behind the fold of a question; not in the blank copy
    hide         not on the rendered page (set-up)
"""

from __future__ import annotations

import copy
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import resources as data
from multiprocessing import get_context
from pathlib import Path

import click
import nbformat
from markupsafe import escape
from scantling_learn import show
from scantling_learn.session import MODES

from . import resources
from .learn import PAGE_SIGNS

FOLDER = "walkthroughs"
_MIME = "application/vnd.scantling.picture+json"


def sources() -> list[Path]:
    """The walkthroughs' notebooks in order."""
    first = resources.notebook("design_desk").parent / FOLDER
    return sorted(first.glob("[0-9][0-9]_*.ipynb"))


def source(which: str) -> Path:
    """The notebook of a walkthrough by number or name. Raises DesignError naming what there is."""
    from scantling.base.errors import DesignError

    key = str(which).strip().removesuffix(".ipynb")
    for path in sources():
        number, _, name = path.stem.partition("_")
        if key.lstrip("0") == number.lstrip("0") or key in (name, path.stem):
            return path
    raise DesignError("walkthrough", which, [p.stem for p in sources()], problem="is unknown")


def tags(cell) -> list[str]:
    return cell.get("metadata", {}).get("tags", [])


def derive(notebook, mode: str):
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


def write(which: str, mode: str, out, html: bool = False) -> list[Path]:
    """Write the copy of a walkthrough for `mode` into the folder `out`; `html`: executed and
    rendered as well. The files written."""
    path, folder = source(which), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    made = derive(nbformat.read(path, as_version=4), mode)
    stem = path.stem if mode == "student" else f"{path.stem}.{mode}"
    files = [folder / f"{stem}.ipynb"]
    nbformat.write(made, files[0])
    if html:
        files.append(folder / f"{stem}.html")
        files[1].write_text(rendered(files[0], mode), encoding="utf-8")
    return files


def execute(path, mode: str | None = None, **parameters):
    """The notebook, executed by papermill; every cell has to run."""
    import papermill

    logging.getLogger("papermill").setLevel(logging.WARNING)
    given = parameters | ({} if mode is None else {"mode": mode})
    kept = {
        k: os.environ.pop(k) for k in PAGE_SIGNS if k in os.environ
    }  # a kernel started from a live one is not live itself
    try:
        with tempfile.TemporaryDirectory(prefix="scantling-walk-") as scratch:
            return papermill.execute_notebook(
                str(path), f"{scratch}/out.ipynb", parameters=given, progress_bar=False
            )
    finally:
        os.environ.update(kept)


def rendered(path, mode: str | None = None) -> str:
    """The page of a notebook, executed."""
    return page(execute(path, mode))


def render_all(paths, mode: str | None = None, workers: int = 2) -> Iterator[tuple[Path, str]]:
    """(notebook, page) of several notebooks, in order, `workers` at a time."""
    paths = list(paths)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from zip(paths, pool.map(rendered, paths, [mode] * len(paths)))


# ---------------------------------------------------------------- the page
def page(notebook, *, codes: bool = True) -> str:
    """An executed notebook as one offline HTML file: prose, questions that check themselves, what
    is worked behind its fold."""
    about = notebook.metadata.get("scantling", {})
    body = "\n".join(filter(None, (_cell(c, codes) for c in notebook.cells)))
    title = about.get("title") or next(
        (
            c.source.lstrip("# ").splitlines()[0]
            for c in notebook.cells
            if c.cell_type == "markdown"
        ),
        "Notebook",
    )
    return _document(title, body, f"<script>{_static('learn.js')}</script>\n")


def _static(name: str) -> str:
    return data.files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def _document(title: str, body: str, script: str = "") -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta '
        f'name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light '
        f'dark">\n<title>{escape(title)}</title>\n<style>{_static("learn.css")}{show.STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n{body}\n</main>\n{script}</body>\n</html>\n"
    )


def _cell(cell, codes: bool) -> str:
    if "hide" in tags(cell) or "parameters" in tags(cell) or "injected-parameters" in tags(cell):
        return ""
    if cell.cell_type == "markdown":
        return show.markdown(cell.source)
    if cell.cell_type != "code":
        return ""
    shown = "\n".join(filter(None, map(_output, cell.get("outputs", []))))
    code = (
        f'<details class="code"><summary>Code</summary><pre>{escape(cell.source)}</pre></details>'
        if codes and "commit" not in tags(cell) and _calls(cell.source)
        else ""
    )
    return shown + code


def _calls(text: str) -> bool:
    """Whether a cell does more than print a computed paragraph."""
    return not re.match(r"\s*(say|walk)\b", text)


def _output(output) -> str:
    if output.output_type == "error":
        return f"<pre>{escape(output.ename)}: {escape(output.evalue)}</pre>"
    bundle = output.get("data", {})
    if picture := bundle.get(_MIME):
        return f'<div class="scl">{picture["figure"]}</div>'
    if html := bundle.get("text/html"):
        return re.sub(r"<(script|style)\b.*?</\1\s*>", "", "".join(html), flags=re.S | re.I)
    if markdown := bundle.get("text/markdown"):
        return show.markdown("".join(markdown))
    if plain := bundle.get("text/plain"):
        return f"<pre>{escape(''.join(plain))}</pre>"
    return ""


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
    "-o", "--out", metavar="DIR", help="folder for the notebook; made where it is missing"
)
@click.option("--html", is_flag=True, help="executed as well, and rendered as one offline page")
def command(which, mode, out, html):
    """Copy a walkthrough, to be worked on, taught from, or practised against the clock. Without a
    number: the list of them."""
    if which is None:
        from scantling_learn import walkthroughs

        for w in walkthroughs().values():
            click.echo(
                f"{w.number}  {w.name:22} {w.minutes} min  {len(w.questions):2} "
                f"questions  {w.title}"
            )
        return
    if out is None:
        raise click.UsageError("name a folder with -o DIR")
    for path in write(which, mode, out, html):
        click.echo(str(path))


def main(argv: list[str] | None = None) -> int:
    """Render every walkthrough into a folder (gallery/walkthroughs), answers folded."""
    out = Path((argv or sys.argv[1:] or ["gallery/walkthroughs"])[0])
    out.mkdir(parents=True, exist_ok=True)
    for path, html in render_all(sources()):
        (out / f"{path.stem}.html").write_text(html, encoding="utf-8")
        print(out / f"{path.stem}.html", flush=True)
    (out / "index.html").write_text(index(), encoding="utf-8")
    return 0


def index() -> str:
    """The list of the walkthroughs as a page."""
    from scantling_learn import walkthroughs

    rows = "".join(
        (
            f"<tr><td><a "
            f'href="{w.number}_{w.name}.html">{escape(w.title)}</a></td><td>{w.minutes} '
            f"min</td><td>{len(w.questions)} questions</td></tr>"
        )
        for w in walkthroughs().values()
    )
    return _document(
        "Walkthroughs",
        f"<h1>Walkthroughs</h1>\n<p>Design interviews to work through with pen and "
        f"paper. Each page checks answers by itself, offline; as notebooks they are in "
        f"<code>notebooks/walkthroughs</code>.</p>\n<table>{rows}</table>",
    )


def clean(path: Path) -> bool:
    """Whether a notebook carries no outputs and no counts."""
    book = json.loads(path.read_text(encoding="utf-8"))
    return all(
        not c.get("outputs") and c.get("execution_count") is None
        for c in book["cells"]
        if c["cell_type"] == "code"
    )


if __name__ == "__main__":
    sys.exit(main())
