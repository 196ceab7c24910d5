"""The reference notebooks and the first design as pages, with an index of every published figure
that they recreate and its error."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from textwrap import shorten

import nbformat
from scantling.evidence.figures import (
    figures as published_figures,
)
from scantling.evidence.figures import (
    kernels as published_figures_kernels,
)
from scantling.evidence.figures import (
    runs as published_figures_runs,
)

from . import published, resources, walkthroughs

TEXT = (0, 1, 6)  # columns of the index that hold words


def sources() -> list[Path]:
    """The first design, then the reference notebooks in order."""
    folder = resources.notebook("design_desk").parent
    return [
        folder / "first_design.ipynb",
        *sorted((folder / "reference").glob("[0-9][0-9]_*.ipynb")),
    ]


def index(paths) -> str:
    """One page: the notebooks, and each recreated figure beside its source, its bounds and its
    errors."""
    notebooks, where = [], {}
    for path in paths:
        about = nbformat.read(path, as_version=4).metadata.get("scantling", {})
        title = about.get("title", path.stem)
        notebooks.append(f"<li><a href='{path.stem}.html'>{escape(title)}</a></li>")
        where |= {id: path.stem for id in about.get("figures", ())}
    rows = []
    for id, r in published_figures.recreate_all().items():
        f = r.figure
        kind, source = f.absolute, r.sources[0]
        state = (
            "not met"
            if f.missed
            else "fitted on these among others"
            if f.fitted
            else "constants of the kit, not fitted on it"
            if f in published_figures_kernels.FIGURES + published_figures_runs.FIGURES
            else "closed form"
        )
        cells = (
            f"<a href='{where[id]}.html'>{escape(f.title)}</a>",
            escape(shorten(f"{source[0]}, {source[1]}", 120, placeholder=" …")),
            str(len(r.points)),
            published.error(r.median_error, kind, f.unit).lstrip("+"),
            published.error(r.worst_error, kind, f.unit).lstrip("+"),
            published.error(f.worst, kind, f.unit).lstrip("+"),
            state,
        )
        rows.append(
            "<tr>"
            + "".join(
                f"<td{published.cell_style(i in TEXT, i not in TEXT)}>{c}</td>"
                for i, c in enumerate(cells)
            )
            + "</tr>"
        )
    head = "".join(
        f"<th{published.cell_style(i in TEXT)}>{h}</th>"
        for i, h in enumerate(
            ("figure", "from", "values", "median error", "largest", "allowed", "")
        )
    )
    held = [r for r in published_figures.recreate_all().values() if not r.figure.missed]
    count = sum(len(r.points) for r in published_figures.recreate_all().values())
    quoted = sum(
        p.read == "quoted" for r in published_figures.recreate_all().values() for p in r.points
    )
    book = nbformat.v4.new_notebook(metadata={"scantling": {"title": "Reference notebooks"}})
    book.cells = [
        nbformat.v4.new_code_cell(
            "",
            outputs=[
                nbformat.v4.new_output(
                    "display_data",
                    data={
                        "text/html": (
                            f"<h1>Reference notebooks</h1><p>One notebook a model of the "
                            f"library: the formula, its curve, and the published figure "
                            f"that it comes from. {len(rows)} figures and tables with "
                            f"{count} published values are "
                            f"computed again; "
                            f"{'all' if len(held) == len(rows) else len(held)} keep "
                            f"their bounds, and what misses is said beside it. Every "
                            f"value is printed in its source or quoted by another text "
                            f"({quoted} of them); none is read off a "
                            f"plot.</p><ul>{''.join(notebooks)}</ul>"
                            f"<h2>Published figures, and how near the kit comes</h2><div "
                            f"class='scl' "
                            f"style='max-width:none'><table><tr>{head}</tr>{''.join(rows)}</table></div>"
                            "<p>pt: difference of shares in percentage points; per "
                            "cent: ours / printed − 1.</p>"
                        )
                    },
                )
            ],
        )
    ]
    return walkthroughs.page(book, codes=False).replace(
        "main{max-width:50rem", "main{max-width:72rem"
    )


def main(argv: list[str] | None = None) -> int:
    """Execute and render every reference notebook into a folder (gallery/reference), with the
    index."""
    out = Path((argv or sys.argv[1:] or ["gallery/reference"])[0])
    out.mkdir(parents=True, exist_ok=True)
    paths = sources()
    for path, html in walkthroughs.render_all(paths):
        (out / f"{path.stem}.html").write_text(html, encoding="utf-8")
        print(out / f"{path.stem}.html", flush=True)
    (out / "index.html").write_text(index(paths), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
