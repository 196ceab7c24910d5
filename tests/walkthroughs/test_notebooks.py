"""The reference notebooks and the first design: every cell runs, every published figure is shown
once, no number is typed that is not given."""

from __future__ import annotations

import ast
import re
from html import escape
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
from scantling import Design, assess
from scantling.base.show import shown
from scantling_walkthroughs.published_figures import recreate as published_figures
from scantling_widgets.charts.pictures import Picture
from scantling_widgets.pages import published_tables, walkthroughs

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
REFERENCE = sorted((NOTEBOOKS / "reference").glob("*.ipynb"))
ALL = sorted(NOTEBOOKS.rglob("*.ipynb"))
FIRST = NOTEBOOKS / "first_design.ipynb"
NUMBER = re.compile(r"(?<![\w.\-/])\d(?:[\d,]*\d)?(?:\.\d+)?(?!\d)")


def read(path):
    return nbformat.read(path, as_version=4)


# what a notebook may import of the library: the names that these modules list, and the modules
PUBLIC = (
    "scantling",
    "scantling.catalogue",
    "scantling.formulas",
    "scantling_walkthroughs",
    "scantling_walkthroughs.published_figures",
    "scantling_widgets",
    "scantling_widgets.charts",
)
BOOKS = "scantling_walkthroughs.books"  # each of its modules goes with one notebook


def prose(cell) -> str:
    """Markdown without headings, code, formulas and the name of a schedule."""
    kept = re.sub(r"^( {4,}|#).*$|1F1B", "", cell.source, flags=re.M)
    return re.sub(r"`[^`]*`", "", kept)


def run(notebook) -> list:
    """Execute the code cells in one namespace, in this process; return what they show, in order."""
    names, shown = {}, []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        body = ast.parse(cell.source)
        last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
        exec(compile(body, "cell", "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return shown


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.stem)
def test_no_outputs_in_git(path):
    seen = 0
    for cell in read(path).cells:
        if cell.cell_type == "code":
            seen += 1
            assert not cell.outputs and cell.execution_count is None, (
                f"{path.name}: {cell.source[:60]}"
            )
    assert seen


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.stem)
def test_a_notebook_imports_the_public_face_alone(path):
    for cell in read(path).cells:
        if cell.cell_type != "code":
            continue
        for node in ast.walk(ast.parse(cell.source)):
            named = [alias.name for alias in getattr(node, "names", ()) if hasattr(alias, "asname")]
            if isinstance(node, ast.Import):
                own = [name for name in named if name.startswith("scantling")]
                assert set(own) <= set(PUBLIC), (path.name, own)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scantling"):
                for name in named:
                    public = node.module in PUBLIC and (
                        f"{node.module}.{name}" in PUBLIC
                        or name in getattr(import_module(node.module), "__all__", ())
                    )
                    assert public or node.module == BOOKS, (path.name, node.module, name)


@pytest.mark.parametrize("path", REFERENCE, ids=lambda p: p.stem)
def test_reference_notebook_runs_and_shows_its_figures(path):
    notebook = read(path)
    shown = run(notebook)
    pictures = [x for x in shown if isinstance(x, Picture)]
    tables = [x for x in shown if hasattr(x, "_repr_html_") and not isinstance(x, Picture)]
    assert pictures and tables
    assert all(one is not None for one in shown), "a cell that promises a picture shows none"
    for picture in pictures:
        assert picture.words and picture.caption and picture.spec
    for id in notebook.metadata.scantling.figures:
        r = published_figures.recreate(id)
        held = [t for t in tables if repr(t) == published_tables.error_sentence(r)]
        assert held, f"{path.name} does not show the table of {id}"
        assert "error" in held[0]._repr_html_() and all(p.locator for p in r.points)
        assert (
            r.figure.missed
            or f'picture("{id}"' in "".join(c.source for c in notebook.cells)
            or id == "standbys"
        )


@pytest.mark.parametrize("path", REFERENCE, ids=lambda p: p.stem)
def test_every_parameter_of_a_notebook_moves_something(path):
    code = [cell for cell in read(path).cells if cell.cell_type == "code"]
    names = {
        node.target.id
        for cell in code
        if "parameters" in cell.metadata.get("tags", [])
        for node in ast.parse(cell.source).body
        if isinstance(node, ast.AnnAssign)
    }
    used = {
        node.id
        for cell in code
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    assert names <= used


def test_every_published_figure_has_a_notebook():
    named = [id for path in REFERENCE for id in read(path).metadata.scantling.figures]
    assert sorted(named) == sorted(published_figures.figures())
    assert len(named) == len(set(named))


@pytest.mark.parametrize("path", [*REFERENCE, FIRST], ids=lambda p: p.stem)
def test_numbers_in_prose_are_given(path):
    """What a cell could print is printed; the rest is named in the metadata with its reason, and
    nothing there is left over."""
    notebook = read(path)
    typed = {
        n for c in notebook.cells if c.cell_type == "markdown" for n in NUMBER.findall(prose(c))
    }
    given = set(notebook.metadata.scantling.get("givens", {}))
    assert typed == given


def test_the_index_names_every_figure_with_its_error_and_links_to_its_notebook():
    from scantling_widgets.pages import reference

    page = reference.index(reference.sources())
    assert {p.stem for p in reference.sources()} == {p.stem for p in [*REFERENCE, FIRST]}
    for path in reference.sources():
        assert f"href='{path.stem}.html'" in page
    for r in published_figures.recreate_all().values():
        assert escape(r.figure.title) in page
        assert (
            published_tables.error(r.worst_error, r.figure.absolute, r.figure.unit).lstrip("+")
            in page
        )
    assert page.count("not met") == sum(f.missed for f in published_figures.figures().values())


def test_prose_names_modules_that_exist():
    for path in REFERENCE:
        text = "\n".join(c.source for c in read(path).cells if c.cell_type == "markdown")
        for name in set(re.findall(r"`(scantling\.[\w.]+)`", text)):
            import_module(name)
        assert "Where it stops" in text, path.name


def test_a_picture_draws_what_is_printed_and_what_is_ours():
    picture = published_tables.picture("tp-across-nodes")
    values = [row for data in _values(picture.spec) for row in data]
    for p in published_figures.recreate("tp-across-nodes").points:
        assert any(
            row.get("published") == p.published and row.get("ours") == p.ours
            for row in values
            if isinstance(row, dict)
        )
    svg = picture.figure()
    assert (
        "<svg" in svg
        and "http://" not in svg.replace("http://www.w3.org", "")
        and "micro-batch 8" in svg
    )


def _values(spec):
    if isinstance(spec, dict):
        yield from spec.get("datasets", {}).values()
        for inner in spec.values():
            yield from _values(inner)
    elif isinstance(spec, list):
        for inner in spec:
            yield from _values(inner)


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("1T dense, 8x V100 16GB, 1T tokens", "impossible"),
        ("8B dense, 64x H100", "without tokens no days"),
    ],
    ids=["impossible", "without tokens"],
)
def test_the_first_design_takes_any_sentence(sentence, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = read(FIRST)
    parameters = next(c for c in notebook.cells if "parameters" in c.metadata.get("tags", []))
    parameters.source = f"sentence = {sentence!r}\nfolder = 'x'\nwrite = False"
    assert any(says in repr(x) for x in run(notebook))
    assert (tmp_path / "x" / "design.yaml").is_file()


def test_the_verdict_of_a_notebook_leads_with_what_is_likely():
    result = assess(Design.from_text("70B on 512 H100, 2T tokens in 30 days"))
    words = published_tables.verdict(result).words
    assert f"likely {shown(result.likely.days, 'days')}" in words
    assert f"{shown(result.likely.days, 'days')} likely" in words, (
        "as the line on the deadline says"
    )


@pytest.mark.slow
def test_the_first_design_under_papermill_and_as_a_page(tmp_path):
    """The notebook proper: its own kernel, papermill, one offline page; the sentence misses its
    deadline and the first fix keeps it."""
    done = walkthroughs.execute(FIRST, folder=str(tmp_path / "design"))
    page = walkthroughs.page(done)
    assert len(page) < 1_000_000
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "<svg" in page
    for output in (o for c in done.cells if c.cell_type == "code" for o in c.outputs):
        assert output.output_type != "error"
    assert all((tmp_path / "design" / f"design.{end}").is_file() for end in ("yaml", "html"))
    assert "constraint missed" in page and "feasible" in page


@pytest.mark.slow
def test_the_study_of_a_thousand_designs():
    """Every row is assessed; each size has its cheapest chips, at prices and in days with bands."""
    count, verdicts, errors, dollars, *_, surest = run(read(NOTEBOOKS / "thousand_designs.ipynb"))
    assert count == verdicts.sum() == 1000 and errors.empty
    assert list(dollars.columns) == [7, 13, 30, 70, 180] and dollars.loc["h100-sxm"].all()
    low, days, high = (surest[f"likely.days{end}"] for end in (".low", "", ".high"))
    assert (low < days).all() and (days < high).all() and set(surest["billions"]) == set(dollars)


def test_the_headline_of_every_figure_counts_its_outliers():
    """Values that are shown and held to no bound are in the count and in the largest error."""
    outliers = 0
    for id, r in published_figures.recreate_all().items():
        said = published_tables.table(id).words
        assert said.startswith(f"{len(r.points):,} printed value")
        worst = max(abs(e) for e in r.errors if e == e)
        largest = published_tables.size(worst, r.figure)
        assert f"largest {largest}" in said.split(". ")[0] or largest in said
        alone = [p for p in r.points if not p.counted]
        outliers += len(alone)
        assert ("shown only" in said) == bool(alone)
    assert outliers
