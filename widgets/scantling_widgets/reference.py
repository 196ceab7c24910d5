"""The reference notebooks and the first design as pages, with an index of every published figure
that they recreate and its error."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import shorten

import nbformat
from scantling.evidence.figures import figures as published_figures

from . import resources, walkthroughs
from .charts_published import size
from .report.text import macros


def sources() -> list[Path]:
    """The first design, then the reference notebooks in order."""
    folder = resources.notebook("design_desk").parent
    reference = sorted((folder / "reference").glob("[0-9][0-9]_*.ipynb"))
    return [folder / "first_design.ipynb", *reference]


def index(paths) -> str:
    """One page: the notebooks, and each recreated figure beside its source, its bounds and its
    errors."""
    notebooks, where = [], {}
    for path in paths:
        about = nbformat.read(path, as_version=4).metadata.get("scantling", {})
        notebooks.append((path.stem, about.get("title", path.stem)))
        where |= dict.fromkeys(about.get("figures", ()), path.stem)
    recreated = published_figures.recreate_all()
    body = macros().reference(
        notebooks=notebooks,
        rows=[(where[id], r.figure.title, _texts(r)) for id, r in recreated.items()],
        held=sum(not r.figure.missed for r in recreated.values()),
        count=sum(len(r.points) for r in recreated.values()),
        quoted=sum(p.read == "quoted" for r in recreated.values() for p in r.points),
    )
    return walkthroughs.document("Reference notebooks", body, wide=True)


def _texts(r) -> tuple[str, ...]:
    """Source, number of values, errors, bound and standing of one recreated figure."""
    f, source = r.figure, r.sources[0]
    return (
        shorten(f"{source[0]}, {source[1]}", 120, placeholder=" …"),
        str(len(r.points)),
        size(r.median_error, f),
        size(r.worst_error, f),
        size(f.worst, f),
        _standing(f),
    )


def _standing(f) -> str:
    if f.missed:
        return "not met"
    if f.fitted:
        return "fitted on these among others"
    if f.basis != "closed form":
        return "constants of the kit, not fitted on it"
    return "closed form"


def main(argv: list[str] | None = None) -> int:
    """Execute and render every reference notebook into a folder (gallery/reference), with the
    index."""
    out = Path((argv or sys.argv[1:] or ["gallery/reference"])[0])
    out.mkdir(
        parents=True,
        exist_ok=True,
    )
    paths = sources()
    for path, html in walkthroughs.render_all(paths):
        (out / f"{path.stem}.html").write_text(html, encoding="utf-8")
        print(out / f"{path.stem}.html", flush=True)
    (out / "index.html").write_text(index(paths), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
