"""The reference notebooks and the first design as pages, with an index of every published figure
that they recreate and its error."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from textwrap import shorten

from scantling.base.records import Lines
from scantling_walkthroughs.published_figures.recreate import recreate_all
from scantling_walkthroughs.published_figures.recreation import Recreation

from .. import shipped_files
from ..charts.recreations import of_all, size
from ..report.rendering import macros
from . import walkthroughs
from .published_tables import Cell


def sources() -> list[Path]:
    """The first design, then the reference notebooks in order."""
    folder = shipped_files.notebook("design_desk").parent
    reference = sorted((folder / "reference").glob("[0-9][0-9]_*.ipynb"))
    return [folder / "first_design.ipynb", *reference]


def index(paths: Iterable[Path]) -> str:
    """One page: the notebooks, and each recreated figure beside its source, its bounds and its
    errors."""
    notebooks = []
    where: dict[str, str] = {}  # figure -> notebook
    for path in paths:
        about = walkthroughs.read(path).metadata.get("scantling", {})
        notebooks.append((path.stem, about.get("title", path.stem)))
        where |= dict.fromkeys(about.get("figures", ()), path.stem)
    recreated = recreate_all()
    body = macros().reference(
        about=_about(list(recreated.values())),
        notebooks=notebooks,
        head=[Cell(text, words, False) for text, words in _HEAD.items()],
        rows=[(where[id], r.figure.title, _cells(r)) for id, r in recreated.items()],
    )
    return walkthroughs.document("Reference notebooks", body, wide=True)


# columns, and whether each is of words
_HEAD = {
    "figure": True,
    "values": False,
    "median error": False,
    "largest": False,
    "largest held to the bound": False,
    "allowed": False,
    "": True,
    "from": True,
}


def _about(recreated: Sequence[Recreation]) -> str:
    """What is recreated, and how much of it keeps its bounds."""
    points = [point for r in recreated for point in r.points]
    kept = sum(not r.figure.missed for r in recreated)
    shown = sum(not point.counted for point in points)
    quoted = sum(point.read == "quoted" for point in points)
    return (
        "One notebook a model of the library: the formula, its curve, and the published figure "
        f"that it comes from. {len(recreated)} figures and tables with {len(points)} published "
        f"values are computed again; {kept} of the {len(recreated)} keep their bounds. {shown} of "
        "the values are held to none, for the reason said beside each; the errors below count them "
        'all the same. Bounds reach from nothing to those of the column "allowed"; what misses is '
        "said beside it. Every value is printed in its source or quoted by another text "
        f"({quoted} of them); none is read off a plot."
    )


def _cells(r: Recreation) -> list[Cell]:
    """Number of values, errors, bound, standing and source of one recreated figure: what decides
    stands first, where a telephone shows it."""
    *figures, standing, source = _texts(r)
    return [
        *(Cell(text, False, True) for text in figures),
        Cell(standing, True, False),
        Cell(source, True, False),
    ]


def _texts(r: Recreation) -> Lines:
    """Number of values, errors, bound, standing and source of one recreated figure."""
    f, source = r.figure, r.sources[0]
    if f.missed:
        standing = "not met"
    elif f.fitted:
        standing = "fitted on these among others"
    elif f.basis == "closed form":
        standing = f.basis
    else:
        standing = "constants of the kit, not fitted on it"
    return (
        str(len(r.points)),
        *(size(error, f) for error in of_all(r)),
        f"{size(r.worst_error, f)} of {sum(p.counted for p in r.points)}",
        size(f.worst, f),
        standing,
        shorten(f"{source[0]}, {source[1]}", 120, placeholder=" …"),
    )


def pages(out: Path) -> None:
    """Execute and render every reference notebook into a folder, with the index."""
    paths = sources()
    walkthroughs.write_all(out, paths, partial(index, paths))
