"""The distribution keeps its promises: light import, layers, what ships, and what the tree may
hold."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOP = {
    "pyproject.toml",
    "Makefile",
    "README.md",
    "LICENSE",
    "NOTICE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "constraints.txt",
    "lib",
    "widgets",
    "notebooks",
    "gallery",
    "tests",
}
VIEW = {
    "scantling_widgets",
    "altair",
    "ipywidgets",
    "anywidget",
    "IPython",
    "jupyterlab",
    "papermill",
    "nbformat",
    "nbconvert",
}


def run(*argv: object, **kwargs) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(a) for a in argv], capture_output=True, text=True, check=False, **kwargs
    )


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    names = run("git", "ls-files", "-z", cwd=ROOT).stdout.split("\0")
    return [Path(n) for n in names if n and (ROOT / n).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    made = run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        out,
        ROOT,
    )
    assert made.returncode == 0, made.stderr
    return next(out.glob("scantling-*.whl"))


def test_import_loads_no_data_frames_charts_or_servers():
    heavy = ["pandas", "scipy", "altair", "dask", "IPython", "jupyterlab", "rich", "jinja2"]
    code = (
        f"import scantling, sys, json; print(json.dumps(sorted({set(heavy)!r} & set(sys.modules))))"
    )
    assert json.loads(run(sys.executable, "-c", code).stdout) == []


def imported(path: Path) -> set[str]:
    """Top-level names of every module that a file imports, at any depth, also by name through
    importlib."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call) and getattr(
            node.func, "attr", getattr(node.func, "id", "")
        ) in ("import_module", "__import__"):
            found |= {
                a.value.split(".")[0]
                for a in node.args
                if isinstance(a, ast.Constant) and isinstance(a.value, str)
            }
    return found


def test_the_library_never_reaches_up_into_the_view():
    files = sorted((ROOT / "lib").rglob("*.py"))
    assert len(files) > 10
    assert {
        str(f.relative_to(ROOT)): sorted(names) for f in files if (names := imported(f) & VIEW)
    } == {}


def test_the_view_reaches_the_library_at_all():
    """Guards the walk itself: were it blind, the test above would pass on anything."""
    names = set().union(*(imported(f) for f in (ROOT / "widgets").rglob("*.py")))
    assert {"scantling", "ipywidgets", "altair"} <= names


def test_top_level_is_the_agreed_one(tracked):
    assert {f.parts[0] for f in tracked if not f.parts[0].startswith(".")} - TOP == set()


# split, so that this file does not find itself
HOSTS = re.compile(
    "|".join(
        [
            "py" + r"pi\.org",
            "pythonhosted" + r"\.org",
            "registry" + r"\.npmjs",
            "file:" + "///[a-z]",
            r"(?<![\w.$}/])/(?:root|tmp|home|Users|work)" + r"/\w",
        ]
    )
)


def test_no_tracked_file_names_a_registry_or_a_folder_of_one_machine(tracked):
    named = {}
    for f in tracked:
        try:
            text = (ROOT / f).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if found := {m.group() for m in HOSTS.finditer(text)}:
            named[str(f)] = sorted(found)
    assert named == {}


def test_tracked_files_are_small(tracked):
    assert {str(f): size for f in tracked if (size := (ROOT / f).stat().st_size) > 2 << 20} == {}


def test_every_pin_is_exact_and_covers_what_is_asked_for():
    """A dependency without a pin would make tomorrow's environment differ from today's."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [
        *project["dependencies"],
        *project["optional-dependencies"]["test"],
        *project["optional-dependencies"]["dev"],
    ]
    text = re.sub(r"^#.*\n", "", (ROOT / "constraints.txt").read_text(), flags=re.M)
    pins = re.sub(r"\\\n\s*", "", text).splitlines()
    sure = r"[\w.-]+==[\w.!+-]+( ; [^#]+?)?( --hash=sha256:[0-9a-f]{64})+"
    assert [p[:80] for p in pins if not re.fullmatch(sure, p)] == []
    normal = lambda name: re.sub(r"[-_.]+", "-", name).lower()
    missing = (
        {normal(re.match(r"[\w.-]+", a).group()) for a in asked}
        - {normal(p.split("==")[0]) for p in pins}
        - {"scantling"}
    )
    assert missing == set()


def test_wheel_holds_code_data_notebooks_and_designs(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    code = {
        f"{p.relative_to(ROOT / top)}"
        for top in ("lib", "widgets")
        for p in (ROOT / top).glob("*/**/*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert code - inside == set()
    assert not [name for name in inside if "NOTES" in name]
    assert any(n.startswith("scantling/catalogue/") and n.endswith(".csv") for n in inside)
    assert {
        f"scantling_widgets/notebooks/{n}.ipynb" for n in ("design_desk", "design_report")
    } <= inside
    shipped = ("designs/llama-3.1-405b.yaml", "published.csv", "validation/validation.json")
    assert {f"scantling_widgets/{name}" for name in shipped} <= inside
    assert {n.split("/")[0] for n in inside if ".dist-info" not in n} == {
        "scantling",
        "scantling_brief",
        "scantling_code",
        "scantling_kits",
        "scantling_logs",
        "scantling_mcp",
        "scantling_posttrain",
        "scantling_site",
        "scantling_walkthroughs",
        "scantling_widgets",
    }


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A plain install in an environment of its own; the dependencies are borrowed from the one that
    runs the tests."""
    env = tmp_path_factory.mktemp("plain") / "env"
    assert run(sys.executable, "-m", "venv", "--without-pip", env).returncode == 0
    python = env / "bin" / "python"
    site = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    )
    # a .pth is not read recursively, so the editable install of the lender stays out
    (site / "lender.pth").write_text(sysconfig.get_path("purelib") + "\n")
    made = run(
        sys.executable, "-m", "pip", f"--python={python}", "install", "-q", "--no-deps", wheel
    )
    assert made.returncode == 0, made.stderr
    return env


@pytest.mark.slow
def test_plain_install_works_with_no_checkout_near(installed, tmp_path):
    python, scantling = installed / "bin" / "python", installed / "bin" / "scantling"
    where = run(
        python,
        "-c",
        (
            "import scantling, scantling_widgets; print(scantling.__file__, "
            "scantling_widgets.__file__)"
        ),
        cwd=tmp_path,
    )
    assert where.stdout.count(str(installed)) == 2, where
    models = run(scantling, "catalogue", "models", "--json", cwd=tmp_path)
    assert models.returncode == 0, models.stderr
    assert json.loads(models.stdout)
    assert (
        run(scantling, "init", "--like", "llama-3.1-8b", "-o", "mine.yaml", cwd=tmp_path).returncode
        == 0
    )
    report = run(scantling, "report", "mine.yaml", "-o", "out", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    assert [p.suffix for p in sorted((tmp_path / "out").rglob("*")) if p.is_file()].count(
        ".html"
    ) == 1


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), flags=re.M))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_command_a_page_gives_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert (
        set(
            re.findall(
                r"\bmake ([a-z][a-z-]+)",
                "\n".join(re.findall(r"`[^`]+`|```.*?```", text, flags=re.S)),
            )
        )
        - targets()
        == set()
    )
    offered = run(
        sys.executable,
        "-m",
        "scantling",
        "--help",
        env={"COLUMNS": "200", "NO_COLOR": "1", "PATH": ""},
    ).stdout
    used = set(re.findall(r"(?:^|`)scantling ([a-z]+)", text, flags=re.M))
    assert {c for c in used if not re.search(rf"^  {c}\s", offered, flags=re.M)} == set()


def test_the_python_of_the_readme_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S
    )
    assert blocks
    for block in blocks:
        names: dict = {}
        exec(compile(block, "README.md", "exec"), names)
        assert (
            names["wider"].devices_used <= 8192 < names["result"].devices_used
            and len(names["plans"]) > 0
        )


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_file_a_page_points_to_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    assert {link for link in links if "://" not in link and not (ROOT / link).exists()} == set()


def test_make_targets_run_modules_that_exist():
    modules = set(re.findall(r"python -m (scantling[\w.]*)", (ROOT / "Makefile").read_text()))
    assert modules
    found = (
        "import importlib.util as u, sys; print([m for m in sys.argv[1:] if not u.find_spec(m)])"
    )
    assert run(sys.executable, "-c", found, *modules).stdout.strip() == "[]"
