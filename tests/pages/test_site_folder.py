"""The folder of the site, as far as no browser is needed."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from scantling.base.errors import DesignError
from scantling_widgets.pages import site


def run(*argv):
    return CliRunner().invoke(site.site, [*map(str, argv)], env={"PYODIDE": ""})


def test_without_a_distribution_the_rest_is_written_and_one_line_says_how_to_add_the_desk(tmp_path):
    done = run("-o", tmp_path / "out", "desk", "validation")
    assert done.exit_code == 0, done.output
    assert done.stderr.count("\n") == 1 and "--pyodide" in done.stderr
    assert not (tmp_path / "out" / "desk").exists()
    front = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'href="([^"]+)"', front)
    assert links == ["validation/index.html"]
    assert all((tmp_path / "out" / link).is_file() for link in links)


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        (None, "has no pyodide-lock.json"),
        ({"packages": {}}, "has no annotated-types"),
        (
            {"packages": {name: {"file_name": f"{name}.whl"} for name in site.COMPILED}},
            "has no pyodide.mjs",
        ),
    ],
)
def test_a_distribution_that_lacks_something_is_refused_before_anything_is_written(
    tmp_path, lock, said
):
    if lock:
        (tmp_path / "pyodide-lock.json").write_text(json.dumps(lock))
    with pytest.raises(DesignError, match=said):
        site.desk(tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("argv", "said"),
    [(["nonsense"], "nonsense"), (["--pyodide", "there.txt"], "there.txt"), ([], "there.txt")],
)
def test_a_wrong_call_is_refused_in_one_line(tmp_path, monkeypatch, argv, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.txt").write_text("mine")
    done = run("-o", "out" if argv else "there.txt", *argv)
    assert done.exit_code == 2
    assert said in done.stderr.splitlines()[-1]
    assert [p.name for p in tmp_path.iterdir()] == ["there.txt"]


def test_what_the_page_loads_holds_no_compiled_code_and_no_data_frames():
    names = [name for name, _ in site.sources()]
    assert len(names) == len(set(names))
    assert not [n for n in names if n.endswith((".so", ".pyc", ".ipynb"))]
    assert "scantling_widgets/designs/llama-3.1-405b.yaml" in names


def test_what_the_page_loads_holds_every_module_that_a_desk_imports():
    code = (
        "import sys, scantling_widgets.desk.page_worker as w; w.begin(print, None); print();"
        "print(*{m.__file__ for n, m in sys.modules.items() if n.startswith('scantling')})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert len(loaded) > 100
    assert set(loaded) - {str(path) for _, path in site.sources()} == set()
