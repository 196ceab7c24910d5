"""The reference notebooks and the first design as pages, with an index of every published figure
that they recreate and its error."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from textwrap import shorten

from scantling.base.records import Lines
from scantling_walkthroughs.published_figures.record import Recreation
from scantling_walkthroughs.published_figures.recreate import recreate_all

from .. import resources
from ..charts.published import of_all, size
from ..report.rendering import macros
from . import walkthroughs


def sources() -> list[Path]:
    """The first design, then the reference notebooks in order."""
    folder = resources.notebook("design_desk").parent
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
    points = [p for r in recreated.values() for p in r.points]
    body = macros().reference(
        notebooks=notebooks,
        rows=[(where[id], r.figure.title, _texts(r)) for id, r in recreated.items()],
        held=sum(not r.figure.missed for r in recreated.values()),
        count=len(points),
        shown=sum(not p.counted for p in points),
        quoted=sum(p.read == "quoted" for p in points),
    )
    return walkthroughs.document("Reference notebooks", body, wide=True)


def _texts(r: Recreation) -> Lines:
    """Source, number of values, errors, bound and standing of one recreated figure."""
    f, source = r.figure, r.sources[0]
    basis = f.basis if f.basis == "closed form" else "constants of the kit, not fitted on it"
    return (
        shorten(f"{source[0]}, {source[1]}", 120, placeholder=" …"),
        str(len(r.points)),
        *(size(error, f) for error in of_all(r)),
        f"{size(r.worst_error, f)} of {sum(p.counted for p in r.points)}",
        size(f.worst, f),
        "not met" if f.missed else "fitted on these among others" if f.fitted else basis,
    )


def pages(out: Path) -> None:
    """Execute and render every reference notebook into a folder, with the index."""
    paths = sources()
    walkthroughs.write_all(out, paths, partial(index, paths))
