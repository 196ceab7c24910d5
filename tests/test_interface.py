"""The public interface: names, types, examples, errors and what a notebook shows of a result."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
import scantling as sc
import scantling_widgets as sw
import vl_convert
from pandas import DataFrame
from scantling.base.errors import DesignError

ROOT = Path(__file__).parents[1]
FUNCTIONS = [getattr(sc, name) for name in sc.__all__]
METHODS = [
    getattr(kind, name)
    for kind in (sc.Design, sc.Assessment)
    for name in ("read", "from_text", "from_yaml", "from_data", "change", "to_yaml", "as_dict")
    if hasattr(kind, name)
]
LOOSE = ("Any", "object", inspect.Parameter.empty, inspect.Signature.empty)


@pytest.mark.parametrize(
    "function",
    [f for f in FUNCTIONS if inspect.isfunction(f)] + METHODS,
    ids=lambda f: f.__qualname__,
)
def test_every_parameter_and_result_has_a_type(function):
    signature = inspect.signature(function)
    assert signature.return_annotation not in LOOSE
    for name, parameter in signature.parameters.items():
        assert name == "self" or parameter.annotation not in LOOSE, name


def test_the_examples_of_docstrings_run():
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    names = {name: getattr(sc, name) for name in sc.__all__}
    for one in FUNCTIONS:
        for example in finder.find(one, globs=names):
            runner.run(example)
    assert runner.tries > 9 and not runner.failures


def test_the_reference_opens_with_an_example_and_places_every_name_below_a_question():
    runner = doctest.DocTestRunner()
    (example,) = (one for one in doctest.DocTestFinder(recurse=False).find(sc, "scantling"))
    runner.run(example)
    assert runner.tries > 4 and not runner.failures
    placed = re.findall(r"`(\w+)`", sc.__doc__.partition("What is asked")[2])
    assert sorted(placed) == sorted(sc.__all__)


@pytest.fixture(scope="module")
def assessed():
    return sc.assess(sc.Design.from_text("70B on 512 H100, 2T tokens, 30 days"))


IMPOSSIBLE = {
    "model": {"size": 1e12},
    "cluster": {"accelerator": "v100-16-pcie", "devices": 8},
    "job": {},
}


@pytest.mark.slow
def test_every_function_takes_a_path_a_mapping_and_a_design(tmp_path):
    """As `assess` does; the answer is the same."""
    data = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm", "devices": 8}}
    data["job"] = {"tokens": 1e9}
    design = sc.Design.from_data(data)
    design.write(tmp_path / "run.yaml")
    given = (tmp_path / "run.yaml", str(tmp_path / "run.yaml"), data, design)
    assert len({sc.assess(one).step_s for one in given}) == 1
    assert len({len(sc.search(one)) for one in given}) == 1
    assert len({str(sc.avoid(one)) for one in (*given, sc.assess(design))}) == 1
    assert len({sc.explain(one, "mfu").value for one in given}) == 1
    assert len({sc.goodput(one)["goodput"] for one in given}) == 1
    assert sc.fixes(IMPOSSIBLE) and sc.blueprint(data, ["risks"]).as_dict()["risks"]["rows"]


def test_a_mistake_is_a_design_error(assessed, tmp_path):
    wrong = (
        lambda: sc.assess("no-such-file.yaml"),
        lambda: sc.assess({"model": "llama-3.1-8b", "cluster": {"devices": "many"}}),
        lambda: sc.Design.from_yaml("model: [unclosed"),
        lambda: sc.assess({}, space="widest"),
        lambda: sc.compare([assessed]),
        lambda: sc.explain(assessed, "mfo"),
        lambda: sc.launch(assessed, "ddp"),
        lambda: sc.learn(tmp_path / "none.log"),
        lambda: sc.assess(3),
        lambda: sc.search(None),
        lambda: sc.sweep("no-such-file.yaml", {}),
        lambda: sc.avoid(3.5),
        lambda: sc.sensitivity(assessed, "mfo"),
        lambda: sc.blueprint(assessed, ["networks"]),
        lambda: sc.goodput(IMPOSSIBLE),
        lambda: sc.launch(IMPOSSIBLE, "fsdp"),
        lambda: sc.Design(model="llama-3.1-8b"),
        lambda: sc.search(assessed.design, "widest"),
        lambda: sc.search(assessed.design, 3),
        lambda: sc.sweep(assessed.design, None),
        lambda: sc.sweep(assessed.design, {"cluster.devices": 64}),
        lambda: sc.predict(None),
        lambda: sc.predict("no-such-table.csv"),
        lambda: sc.predict(DataFrame({"layers": [32]})),
        lambda: sc.report(assessed.design, tmp_path),
    )
    for call in wrong:
        with pytest.raises(DesignError) as e:
            call()
        assert "\n" not in str(e.value)


@pytest.mark.slow
def test_every_result_has_a_short_text_and_a_picture_in_a_notebook(assessed):
    results = {
        "assessment": assessed,
        "explanation": sc.explain(assessed, "mfu"),
        "comparison": sc.compare([assessed, assessed.design.change({"cluster.devices": 256})]),
        "design": assessed.design,
        "fixes": sc.fixes(assessed),
        "avoid": sc.avoid(assessed),
        "sensitivity": sc.sensitivity(assessed),
        "goodput": sc.goodput(assessed),
        "sweep": sc.sweep(assessed.design, {"cluster.devices": [256, 512]}),
        "blueprint": sc.blueprint(assessed),
        "search": sc.search(assessed.design),
    }
    for name, result in results.items():
        assert len(repr(result)) < 1500, name
        assert len(repr(result)) > 40, name
        assert "<table" in result._repr_html_() or "<dl" in result._repr_html_(), name


def drawn(chart) -> dict:
    """What a chart says, and its rows by name; a browser's program has drawn it."""
    spec = chart.to_dict()
    assert "<svg" in vl_convert.vegalite_to_svg(spec)
    return spec["datasets"] | {"words": spec["description"]}


@pytest.mark.slow
def test_one_function_draws_a_search_a_sweep_and_a_comparison(assessed):
    design = assessed.design
    plans = sc.search(design)
    shown = drawn(sw.chart(plans))
    assert [row["step"] for row in shown["plans"]] == list(plans.step_s[: len(shown["plans"])])
    assert len(shown["plans"]) > 20 and 1 <= len(shown["edge"]) < len(shown["plans"])
    along = sc.sweep(design, {"cluster.devices": [256, 512, 720]})
    shown = drawn(sw.chart(along, "mfu", ("devices",)))
    assert [row["value"] for row in shown["points"]] == [cell.figures["mfu"] for cell in along]
    assert [row["kind"] for row in shown["points"]][:2] == ["missed", "missed"]
    assert "devices 512" in shown["words"]
    both = sc.sweep(design, {"cluster.devices": [256, 512], "job.seq_len": [2048, 4096, 8192]})
    shown = drawn(sw.chart(both, names=("devices", "sequence")))
    days = [cell.figures["likely"]["days"] for cell in both]
    assert [row["value"] for row in shown["good"]] == days
    compared = sc.compare([assessed, design.change({"cluster.devices": 256})])
    shown = drawn(sw.chart(compared))["bars"]
    days = next(row for row in compared.rows if row.key == "days")
    assert [row["value"] for row in shown if row["figure"] == days.label] == list(days.values)
    assert len({row["design"] for row in shown}) == 2, "two designs of one name stay apart"
    for wrong in (lambda: sw.chart(3), lambda: sw.chart([]), lambda: sw.chart(along, "day")):
        with pytest.raises(DesignError):
            wrong()


def test_the_reference_has_every_public_name_with_what_its_docstring_says(tmp_path):
    """As `make reference` writes it."""
    call = [sys.executable, ".ci/write-reference", str(tmp_path)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for module in (sc, sw):
        page = (tmp_path / f"{module.__name__}.html").read_text(encoding="utf-8")
        words = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", page)))
        for name in module.__all__:
            if inspect.ismodule(value := getattr(module, name)):
                assert (tmp_path / f"{value.__name__.replace('.', '/')}.html").is_file(), name
                continue
            assert f'id="{name}"' in page, name
            said = inspect.getdoc(getattr(module, name)).split("\n\n")[0]
            start = re.sub(r"\s+", " ", re.split(r"[`<>*_]", said)[0]).strip()
            assert start and start in words, name
    inherited = (tmp_path / "scantling" / "design" / "design.html").read_text(encoding="utf-8")
    assert 'id="Design.change"' in inherited
