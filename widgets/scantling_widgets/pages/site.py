"""`scantling site`: the pages of the kit as a folder that any web server can hold. Where there is a
Pyodide distribution the desk is among them, with the same front end, computing in the reader's own
browser."""

import gzip
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import files as files_of, version
from json import dumps, loads
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click
from scantling.base.errors import DesignError
from scantling.cli.options import FOLDER

from ..charts.ahead import drawn_ahead
from ..charts.livechart import vega_bundle
from ..desk import front_end
from ..report.jobs import today
from ..report.page import templated
from ..report.report_batch import write
from ..shipped_files import STATIC, packages
from . import gallery, reference, validation_page, walkthroughs

OURS = "scantling.zip"
LOCK, WASM = "pyodide-lock.json", "pyodide.asm.wasm"
# files of Pyodide, and packages of its distribution that are compiled, with what they depend on
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", WASM, "python_stdlib.zip")
COMPILED = (
    "annotated-types",
    "numpy",
    "pydantic",
    "pydantic-core",
    "typing-extensions",
    "typing-inspection",
)
PURE = ("jinja2", "markupsafe", "pyyaml", "traitlets")
# folders and files of ours that the desk never asks for
LEFT_OUT = {
    "__pycache__",
    "labextensions",
    "jupyter",
    "walkthroughs",
    "site",
    "notebooks",
    "designs",
    "validation",
    "cli",
    "published_memory.csv",
    "gemm_points.csv",
}
LACKS = (
    "the desk is left out: it needs a Pyodide distribution (`make pyodide` in a checkout, or "
    "Pyodide's full release 314 unpacked); add it with `scantling site -o DIR desk --pyodide "
    "FOLDER`"
)


class Part(NamedTuple):
    """A part of the site on the front page."""

    title: str
    about: str


PARTS = {
    "desk": Part(
        "The design desk",
        "Move a slider, and see what it does: it computes in this browser, offline after the first "
        "visit.",
    ),
    "gallery": Part(
        "Gallery", "Designs from the file to the report, each beside what was published of it."
    ),
    "walkthroughs": Part(
        "Walkthroughs", "Design interviews to work through, which check answers by themselves."
    ),
    "reference": Part("Reference notebooks", "Figures of papers, recreated one model each."),
    "notebooks": Part(
        "Notebooks",
        "The desk, the walkthroughs and the reference as notebooks in JupyterLite, to read, run "
        "and change in this browser.",
    ),
    "validation": Part(
        "How right is it?", "Predicted beside published, with and without each source in the fit."
    ),
    "api": Part("Python interface", "Every function that a program may call."),
}
PAGES = {
    "gallery": gallery.pages,
    "walkthroughs": walkthroughs.pages,
    "reference": reference.pages,
    "validation": validation_page.build,
}


def distributed(distribution: Path) -> dict[str, bytes]:
    """Pyodide's own files and the wheels that the models need, by name; Pyodide itself holds each
    wheel to its hash in the lock file. Raises DesignError naming what a distribution lacks."""
    try:
        lock = loads((distribution / LOCK).read_bytes())
        lock["packages"] = {name: lock["packages"][name] for name in COMPILED}
        wheels = [each["file_name"] for each in lock["packages"].values()]
        files = {name: (distribution / name).read_bytes() for name in [*RUNTIME, *wheels]}
    except (OSError, KeyError, ValueError) as error:
        lacking = Path(str(error).strip("'")).name
        raise DesignError("--pyodide", str(distribution), problem=f"has no {lacking}") from None
    packed = gzip.compress(files.pop(WASM), mtime=0)
    return files | {f"{WASM}.z": packed, LOCK: dumps(lock).encode()}


def sources() -> Iterator[tuple[str, Path]]:
    """(name in the archive, file) of the Python that the page runs, and of the tables it reads."""
    for package in packages():
        for path in package.rglob("*"):
            inside = path.relative_to(package.parent)
            if path.is_file() and not LEFT_OUT & set(inside.parts):
                yield inside.as_posix(), path
    # what joins the packages is found by its entry points
    for file in files_of("scantling") or ():
        if file.name == "entry_points.txt":
            yield f"scantling-{version('scantling')}.dist-info/{file.name}", Path(file.locate())
    for path in gallery.designs().values():
        yield f"scantling_widgets/designs/{path.name}", path
    for path in gallery.tuned().values():
        yield f"scantling_widgets/designs/{gallery.POSTTRAIN}/{path.name}", path
    for name in PURE:
        for file in files_of(name) or ():
            if file.suffix == ".py":
                yield file.as_posix(), Path(file.locate())


def compiled(distribution: Path) -> dict[str, bytes]:
    """The sources as one archive. Where there is node, all that the page loads in its place, made
    to start at once (`compile.mjs`); without, the page compiles at every visit, seconds longer."""
    with TemporaryDirectory() as folder:
        with zipfile.ZipFile(Path(folder) / OURS, "w") as packed:
            for name, path in sorted(sources()):
                packed.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
            charts = zipfile.ZipInfo("scantling_widgets/charts/drawn.json")
            packed.writestr(charts, drawn_ahead(), zipfile.ZIP_DEFLATED, 9)
        if node := shutil.which("node"):
            subprocess.run(
                [node, STATIC / "compile.mjs", distribution.resolve(), folder, *COMPILED]
            )
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def desk(out: Path, distribution: Path) -> None:
    """Write the desk as a page into the folder `out`; `distribution` is a folder with Pyodide's
    files and wheels. Raises DesignError before anything is written."""
    files, sources_ = distributed(distribution), compiled(distribution)
    files = files | sources_ if OURS in sources_ else sources_
    page = {path.name: path.read_bytes() for path in (STATIC / "site").iterdir()} | {
        "desk.css": (STATIC / "desk.css").read_bytes(),
        "desk.js": f"{front_end.script()}export {{ open }};\n".encode(),
        "vega.js": vega_bundle().encode(),
    }
    files = page | {f"pyodide/{name}": data for name, data in files.items()}
    digest = sha256(b"".join(data for _, data in sorted(files.items()))).hexdigest()
    # the service worker keeps files under another name when any of them is another one
    files["sw.js"] = files["sw.js"].replace(b"VERSION", digest[:12].encode())
    (out / "pyodide").mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write(out / name, data)


@click.command()
@click.option(
    "-o",
    "--out",
    type=FOLDER,
    required=True,
    metavar="DIR",
    help="folder for the pages; made where it is missing",
)
@click.argument(
    "parts",
    type=click.Choice(["desk", "gallery", "walkthroughs", "reference", "validation"]),
    nargs=-1,
    metavar="[PART]...",
)
@click.option(
    "--pyodide",
    type=FOLDER,
    envvar="PYODIDE",
    metavar="FOLDER",
    help="distribution of Pyodide that the desk in a browser runs on",
)
def site(out: str, parts: tuple[str, ...], pyodide: str | None) -> None:
    """Write the pages of the kit, and the desk in a browser, into a folder for a web server.

    PARTS are desk, gallery, walkthroughs, reference, validation; all where none is named. The
    reports, walkthroughs and notebooks are computed: some minutes on two cores.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name in parts or PARTS:
        if name in PAGES:
            PAGES[name](folder / name)
        elif name == "desk" and pyodide:
            desk(folder / name, Path(pyodide))
        elif name == "desk":
            click.echo(LACKS, err=True)
    there = {k: v for k, v in PARTS.items() if (folder / k / "index.html").is_file()}
    front = templated("contents", title="scantling", date=today(), parts=there)
    write(folder / "index.html", front)
    click.echo(folder / "index.html")
