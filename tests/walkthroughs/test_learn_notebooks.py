"""The walkthroughs' notebooks: one source without outputs, no number typed that is not given, full
score under papermill, pages that ask for nothing."""

from __future__ import annotations

import ast
import json
import re

import pytest
import scantling_walkthroughs as learn
from reading import shown_facts, typed_texts
from scantling_walkthroughs.session import Session
from scantling_walkthroughs.typed import read_number

FACTS = {number: w.facts for number, w in learn.walkthroughs().items()}


def sources():
    from scantling_widgets.pages import walkthroughs

    return walkthroughs.sources()


BOOKS = {p.stem[:2]: p for p in sources()}
each_book = pytest.mark.parametrize("path", BOOKS.values(), ids=BOOKS)
DIGITS = re.compile(r"(?<![A-Za-z\d_.])(?<![A-Za-z]-)\d[\d,]*(?:\.\d+)?(?:e\d+)?")
NAMES = re.compile(
    r"^#+ \d+ |\b1F1B\b|\b(?:Llama|GPT|Gemini|Qwen|Mixtral|DeepSeek|Gopher|PaLM)[- ]?V?\d(?:\.\d)?",
    re.M,
)  # numbered headings, names of models
COEFFICIENT = 100  # below it, a number in a formula is a coefficient or a unit


def book(path):
    return json.loads(path.read_text(encoding="utf-8"))


def typed(text: str) -> set[str]:
    """Numbers that stand in a text, without those in names (H100, fp8, Llama 3) and the
    coefficients of formulas in `code`."""
    text = NAMES.sub("", text)
    prose = re.sub(r"`[^`]*`", "", text)
    inside = [
        n
        for code in re.findall(r"`[^`]*`", text)
        for n in DIGITS.findall(code)
        if float(n.rstrip(",").replace(",", "")) >= COEFFICIENT
    ]
    return {n.rstrip(",") for n in [*DIGITS.findall(prose), *inside]}


def literals(source: str) -> list[str]:
    """Texts that a cell hands to `work` as they stand."""
    calls = [
        n
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "work"
    ]
    return [
        a.value
        for call in calls
        for a in call.args[1:]
        if isinstance(a, ast.Constant) and isinstance(a.value, str)
    ]


@each_book
def test_no_number_is_typed_that_is_neither_given_nor_computed(path):
    about = book(path)["metadata"]["scantling"]
    w, givens = learn.walkthrough(about["walkthrough"]), set(about["givens"])
    bare_givens = {re.sub(r"[BMTK]$", "", g) for g in givens}
    shown = [
        (text, text)
        for cell in book(path)["cells"]
        for text in (
            ["".join(cell["source"])]
            if cell["cell_type"] == "markdown"
            else literals("".join(cell["source"]))
        )
    ]
    shown += typed_texts(w)
    for where, text in shown:
        numbers = typed(text)
        assert numbers <= givens | bare_givens, (numbers - givens, where, text)
    anywhere = {n.rstrip(",") for _, text in shown for n in DIGITS.findall(text)}
    assert {re.sub(r"[BMTK]$", "", g) for g in givens} <= anywhere, "a given that no text uses"


@each_book
def test_a_number_is_shown_in_the_unit_that_its_name_has(path):
    """`days(f.mtbf_s)` would print seconds as days: a name that carries its unit is shown in that
    unit's manner."""
    units = (
        ("_bytes_per_s", {"bytes_per_s"}),
        ("_flops", {"flops"}),
        ("_bytes", {"bytes"}),
        ("_usd", {"usd"}),
        ("_s", {"seconds"}),
        ("_days", {"days"}),
        ("_hours", {"hours"}),
    )
    manners = {
        "bytes_per_s",
        "flops",
        "flop",
        "bytes",
        "usd",
        "seconds",
        "days",
        "hours",
        "share",
        "ratio",
        "count",
        "params",
    }
    w = learn.walkthrough(book(path)["metadata"]["scantling"]["walkthrough"])
    fields = shown_facts(w)
    assert fields
    seen = 0
    for name, spec in fields:
        last = re.sub(r"\[[^\]]*\]$", "", name).rpartition(".")[2]
        allowed = next(
            (kinds for suffix, kinds in units if last.endswith(suffix) or last == suffix[1:]), None
        )
        if allowed and spec in manners:
            seen += 1
            assert spec in allowed, (name, spec)
    assert seen


def test_no_cell_types_what_somebody_published():
    """Published values come out of the catalogue with their source: no comparison of any notebook
    has one typed into it."""
    checked = 0
    for path in sorted(path for path in BOOKS["01"].parents[1].rglob("*.ipynb")):
        for cell in (c for c in book(path)["cells"] if c["cell_type"] == "code"):
            for call in (
                n
                for n in ast.walk(ast.parse("".join(cell["source"])))
                if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("compare")
            ):
                rows = [
                    a.elt if isinstance(a, ast.GeneratorExp) else a
                    for arg in call.args
                    for a in [arg.value if isinstance(arg, ast.Starred) else arg]
                ]
                for row in (r for r in rows if isinstance(r, ast.Tuple) and len(r.elts) > 2):
                    checked += 1
                    typed_here = [
                        n.value
                        for n in ast.walk(row.elts[2])
                        if isinstance(n, ast.Constant)
                        and isinstance(n.value, float)
                        and n.value != 1.0
                    ]
                    assert not typed_here, (path.name, ast.unparse(row))
    assert checked > 20


@each_book
def test_givens_are_what_the_facts_say(path):
    about = book(path)["metadata"]["scantling"]
    facts = FACTS[about["walkthrough"]]
    compared = 0
    for text, says in about["givens"].items():
        at = facts
        try:
            for name in says.split("."):
                at = getattr(at, name)
        except AttributeError:
            assert " " in says or not re.search(r"[._]", says), f"{text}: {says!r} is no fact"
            continue
        if isinstance(at, int | float):
            compared += 1
            assert read_number(text) == pytest.approx(float(at)), (text, says)
    assert compared >= 2


@each_book
def test_the_notebook_asks_every_question_once_and_carries_no_output(path):
    cells, about = book(path)["cells"], book(path)["metadata"]["scantling"]
    w = learn.walkthrough(about["walkthrough"])
    assert path.stem == f"{w.number}_{w.name}"
    assert about["title"] == w.title
    asked = re.findall(
        r'\bcheck\("(\w+)"',
        "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code"),
    )
    assert asked == [q.id for q in w.questions]
    worked = re.findall(
        r'\bwork\("(\w+)"',
        "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code"),
    )
    assert set(worked) <= set(asked)
    assert len(worked) >= 0.5 * len(asked)
    assert all(
        "commit" in c["metadata"].get("tags", [])
        for c in cells
        if c["cell_type"] == "code"
        and "check(" in "".join(c["source"])
        and "walk.check" not in "".join(c["source"])
    )
    assert all(
        not c.get("outputs") and c.get("execution_count") is None
        for c in cells
        if c["cell_type"] == "code"
    )


@each_book
def test_the_blank_copy_has_no_worked_cells(path):
    import nbformat
    from scantling_widgets.pages import walkthroughs

    made = walkthroughs.derive(nbformat.read(path, as_version=4), "blank")
    code = "\n".join(c.source for c in made.cells if c.cell_type == "code")
    assert "work(" not in code
    assert 'mode: str = "blank"' in code
    assert code.count('check("') == len(learn.walkthrough(path.stem[:2]).questions)


@pytest.fixture(scope="module", params=BOOKS)
def taught(request):
    """(number, page) of each walkthrough executed by papermill with the right answers."""
    from scantling_widgets.pages import walkthroughs

    return request.param, walkthroughs.rendered(BOOKS[request.param], "instructor")


@pytest.mark.slow
def test_right_answers_under_papermill_score_in_full(taught):
    number, html = taught
    most = Session(learn.walkthrough(number)).scorecard().most
    assert f"<strong>{most:.1f} of {most:.0f} points: staff</strong>" in html
    assert "Nothing to do again" in html
    assert html.count('class="scl-verdict right"') == len(learn.walkthrough(number).questions)
    assert 'class="scl-verdict slip"' not in html
    assert 'class="scl-verdict wrong"' not in html


@pytest.mark.slow
def test_the_page_is_small_sound_and_asks_the_network_for_nothing(taught):
    from pages import Page

    number, html = taught
    assert len(html) < 1_000_000
    page = Page(html)
    assert [
        f for f in page.faults if "closed" in f or "closes" in f or "twice" in f or "times" in f
    ] == []
    assert page.outside() == []
    assert html.count("<svg") >= 3
    assert not re.search(
        r"[{}]", re.sub(r"<(script|style|pre|svg)\b.*?</\1>", "", html, flags=re.S)
    ), "a placeholder was left"


def test_calls_that_the_prose_names_are_there():
    """`sc.explain(sc.assess(design))`, `goodput.ettr`: what a reader would type works, with the module from
    its package."""  # noqa: E501
    from importlib import import_module
    from pathlib import Path

    import scantling as sc

    names = {"sc": sc, "design": learn.walkthrough("02").facts.design}
    prose = "\n".join("".join(c["source"]) for path in BOOKS.values() for c in book(path)["cells"])
    calls, seen = (
        set(re.findall(r"`(sc\.[^`]+)`", prose)),
        set(re.findall(r"`([a-z_]+)\.([a-z_]+)`", prose)),
    )
    made = {call for call in calls if "read(" not in call}
    assert len(made) > 3 and len(seen) > 3
    for call in made:
        assert eval(call.replace("plan=…", "plan={}"), dict(names)) is not None, call
    lib = Path(sc.__file__).parent
    for module, name in seen - {(c.split(".")[0], c.split(".")[1]) for c in calls}:
        found = [
            import_module(".".join(["scantling", *file.relative_to(lib).with_suffix("").parts]))
            for file in lib.rglob(f"{module}.py")
        ]
        assert any(hasattr(one, name) for one in found), (module, name)


# ---------------------------------------------------------------- the command
def test_the_command_lists_copies_and_refuses(tmp_path, capsys):
    from click.testing import CliRunner
    from scantling.base.errors import DesignError
    from scantling_widgets.pages.walkthroughs import command

    run = lambda *args: CliRunner().invoke(command, args)
    assert run().output.count("questions") == len(learn.walkthroughs())
    out = run("2", "--as", "instructor", "-o", str(tmp_path))
    assert out.exit_code == 0
    assert 'mode: str = \\"instructor\\"' in (
        tmp_path / "02_memory_wall.instructor.ipynb"
    ).read_text(encoding="utf-8")
    refused = run("memory_wal", "-o", str(tmp_path))
    assert isinstance(refused.exception, DesignError)
    assert "memory_wall" in str(refused.exception)
    assert run("2").exit_code == 2
