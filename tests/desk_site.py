"""The desk of `make site`: a folder that any web server can hold, in which the desk computes in the
reader's own browser. Its Python is Pyodide's, its front end the one of `view`.

python tests/desk_site.py DIR      (PYODIDE: a folder with the distribution)
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import files as files_of
from pathlib import Path

import scantling
import scantling_widgets
from scantling.base.errors import DesignError
from scantling.base.words import yaml_of
from scantling_widgets import resources, view
from scantling_widgets.livechart import vega_bundle

_CORE = ("pyodide.mjs", "pyodide.asm.mjs", "python_stdlib.zip")
_WASM, _LOCK = "pyodide.asm.wasm", "pyodide-lock.json"
_COMPILED = ("numpy", "pydantic")  # of the distribution, with what they depend on
_PURE = ("jinja2", "markupsafe", "pyyaml")  # of this environment: their Python alone
_OURS = (scantling, scantling_widgets)
_LEFT_OUT = {"__pycache__", "labextensions", "jupyter", "walkthroughs", "site"}
_LEFT_OUT |= {"cli", "measure", "validate"}  # commands, and what they alone import
_LEFT_OUT |= {"published_memory.csv", "gemm_points.csv"}  # what a fit and a notebook read
_ADD = (
    "the desk in a browser is left out: no Pyodide distribution here; "
    "`make pyodide`, then PYODIDE=build/pyodide"
)


def desk(out: Path, distribution: Path) -> None:
    """Write the desk as a page into the folder `out`.

    distribution : a folder with Pyodide's files and the wheels that its lock file names; Pyodide
    itself holds each wheel to the hash in there.
    Raises DesignError naming the file that a distribution lacks.
    """
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(resources.STATIC / "site", out)
    python = out / "pyodide"
    python.mkdir()
    try:
        lock = json.loads((distribution / _LOCK).read_text(encoding="utf-8"))
        lock["packages"] = closure(lock["packages"])
        for name in (*_CORE, *(each["file_name"] for each in lock["packages"].values())):
            shutil.copyfile(distribution / name, python / name)
        packed = gzip.compress((distribution / _WASM).read_bytes(), mtime=0)
    except FileNotFoundError as error:
        raise DesignError("PYODIDE", Path(error.filename).name, problem="is not there") from None
    (python / f"{_WASM}.z").write_bytes(packed)
    (python / _LOCK).write_text(json.dumps(lock), encoding="utf-8")
    packed = out / "scantling.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for name, path in sorted(sources()):
            archive.writestr(zipfile.ZipInfo(name), content(path), zipfile.ZIP_DEFLATED, 9)
    if node := shutil.which("node"):  # else the page compiles at every visit, a second longer
        compiler = Path(__file__).with_name("desk_site_compile.mjs")
        subprocess.run([node, compiler, distribution.resolve(), packed, packed], check=True)
    shutil.copyfile(resources.STATIC / "desk.css", out / "desk.css")
    texts = {
        "vega.js": vega_bundle(),
        "desk.js": view.script() + "export { open };\n",
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    files = sorted(path for path in out.rglob("*.*") if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    worker = out / "sw.js"  # another name for what it keeps, when any file is another one
    worker.write_text(worker.read_text(encoding="utf-8").replace("VERSION", digest[:12]))


def content(path: Path) -> bytes:
    """What a file holds; a table in YAML as JSON where that says the same, since the page has no
    compiled reader of YAML."""
    data = path.read_bytes()
    if path.suffix == ".yaml" and path.parent != resources.example().parent:
        told = json.dumps(found := yaml_of(path), default=str).encode()
        if json.loads(told) == found and told.startswith(b"{"):
            return told
    return data


def closure(packages: Mapping) -> dict:
    """The compiled packages that the models need, with those that they need in turn."""
    found, wanted = {}, [*_COMPILED]
    while wanted:
        name = wanted.pop().replace("_", "-")
        if name not in found:
            found[name] = packages[name]
            wanted += packages[name]["depends"]
    return dict(sorted(found.items()))


def sources() -> Iterator[tuple[str, Path]]:
    """(name in the archive, file) of the Python that the page runs, and of the tables it reads."""
    for ours in _OURS:
        package, name = Path(ours.__file__).parent, ours.__name__
        for path in package.rglob("*"):
            inside = path.relative_to(package)
            if path.is_file() and not _LEFT_OUT & set(inside.parts):
                yield f"{name}/{inside.as_posix()}", path
    for path in resources.example().parent.glob("*.yaml"):
        yield f"scantling_widgets/designs/{path.name}", path
    for name in _PURE:
        for file in files_of(name):
            if file.suffix == ".py":
                yield file.as_posix(), Path(file.locate())


def main(out: str, distribution: str | None) -> int:
    """Write the desk, or say in one line what is missing."""
    if not distribution:
        print(_ADD, file=sys.stderr)
        return 0
    desk(Path(out), Path(distribution))
    print(Path(out) / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], os.environ.get("PYODIDE")))
