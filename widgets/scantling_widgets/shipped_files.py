"""Files that ship beside the code: the notebooks, and the designs of the gallery.

In a checkout they are the working copies at the top of the tree, so that an edit shows at once; in
an installed wheel the build has put them inside this package.
"""

import sys
from importlib.util import find_spec
from os import environ
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1]
STATIC = _PACKAGE / "static"  # style sheets and scripts


def packages() -> list[Path]:
    """Folders of the packages that an assessment or a report may run."""
    names = (
        "scantling",
        "scantling_brief",
        "scantling_code",
        "scantling_kits",
        "scantling_logs",
        "scantling_posttrain",
        "scantling_site",
    )
    specs = [find_spec(name) for name in (*names, _PACKAGE.name)]
    return [Path(spec.origin).parent for spec in specs if spec and spec.origin]


def scripts(*names: str) -> str:
    """Scripts of the pages, in the order in which they need each other."""
    return "".join((STATIC / f"{name}.js").read_text(encoding="utf-8") for name in names)


def served() -> bool:
    """Whether a visitor of a page is worked for, by Voilà or in the visitor's own browser: what is
    saved goes to the visitor, and no path that is typed there is opened. `page` says so to its
    kernels by SCANTLING_SERVED: one that is warmed up ahead is told of no request."""
    told = environ.get("SCANTLING_SERVED") or environ.get("SERVER_SOFTWARE", "")
    return in_a_page() or told == "1" or told.startswith("voila")


def in_a_page() -> bool:
    """Whether this Python runs in a browser, where there are no threads and no processes."""
    return sys.platform == "emscripten"


def notebook(name: str) -> Path:
    """Path of a notebook that ships with the kit, such as `design_desk` or `design_report`.

    Raises FileNotFoundError naming what there is.
    """
    return _find(f"{name}.ipynb", "notebooks", _CHECKOUT / "notebooks")


def example(name: str = "llama-3.1-405b") -> Path:
    """Path of a design file of the gallery, by its name without `.yaml`.

    Raises FileNotFoundError naming what there is.
    """
    return _find(f"{name}.yaml", "designs", _CHECKOUT / "gallery" / "designs")


def published(name: str) -> Path:
    """Path of a table of the gallery: what was published of its runs, and the validation.

    Raises FileNotFoundError naming what there is.
    """
    return _find(name, "", _CHECKOUT / "gallery")


def _find(filename: str, shipped: str, working: Path) -> Path:
    in_checkout = (_CHECKOUT / "pyproject.toml").is_file() and working.is_dir()
    folder = working if in_checkout else _PACKAGE / shipped
    if not (path := folder / filename).is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob(f"*{path.suffix}"))) or "nothing"
        raise FileNotFoundError(f"{filename} is not in {folder}: {there}")
    return path
