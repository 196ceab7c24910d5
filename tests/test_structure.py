"""How the library hangs together: a reader who follows the rooms in their order never has to look
ahead. Every import counts, those inside functions too."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import scantling
from scantling import catalogue
from scantling.catalogue.families import families
from scantling.catalogue.stacks import stacks

LIB = Path(scantling.__file__).parent
ORDER = (
    "base",
    "blocks",
    "catalogue",
    "design",
    "physics",
    "endure",
    "plans",
    "verdict",
    "advise",
    "runs",
    "cli",
)
# packages on top of the library, each above those that it may import
ABOVE = (
    "scantling_brief",
    "scantling_posttrain",
    "scantling_site",
    "scantling_code",
    "scantling_kits",
    "scantling_logs",
    "scantling_walkthroughs",
    "scantling_widgets",
    "scantling_mcp",
)
OURS = ("scantling", *ABOVE)
PACKAGES = [LIB, *(Path(find_spec(name).origin).parent for name in ABOVE)]
# public faces, whose names are imported one by one, when each is asked for
FACES = ("scantling", "scantling_widgets", "scantling_widgets.charts")
FILES = [
    path
    for package in PACKAGES
    for path in sorted(package.rglob("*.py"))
    if "templates" not in path.parts
]
# too heavy to load before they are used
HEAVY = {
    *("pandas", "scipy", "altair", "dask", "distributed", "torch", "rich", "vl_convert"),
    *("jupyter_core", "jupyter_client", "jupyter_server", "jupyterlab", "voila", "playwright"),
    *("nbformat", "nbconvert", "nbclient", "papermill", "IPython", "ipywidgets", "anywidget"),
    *("jinja2", "mistune", "pyarrow"),
}


def place(module: str) -> int:
    """Height of the room of a module; the package's own `__init__` stands on top of the library."""
    top, _, rest = module.partition(".")
    if top in ABOVE:
        return len(ORDER) + 1 + ABOVE.index(top)
    room = rest.partition(".")[0]
    return ORDER.index(room) if room in ORDER else len(ORDER)


def imports(text: str, module: str, is_package: bool = False):
    """(module or name imported, whether inside a function) of each import in a source text."""
    tree = ast.parse(text)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    inside = {
        id(n) for f in ast.walk(tree) if isinstance(f, functions) for n in ast.walk(f) if n is not f
    }
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        later = id(node) in inside
        if isinstance(node, ast.Import):
            yield from ((a.name, later) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            where = [*base, *(node.module or "").split(".")] if node.module else base
            yield from ((".".join([*where, a.name]), later) for a in node.names)
        elif isinstance(node, ast.Call) and getattr(
            node.func, "attr", getattr(node.func, "id", "")
        ) in ("import_module", "__import__"):
            yield "import_module", later


def looked_up(text: str, module: str, is_package: bool = False):
    """Imports that a module may not have: (what, why)."""
    for name, later in imports(text, module, is_package):
        own = name.partition(".")[0] in ("scantling", *ABOVE)
        if own and name.count(".") and place(name) > place(module):
            yield name, "comes after"
        if own and later:
            yield name, "inside a function"
        if name == "import_module" and later:
            yield name, "inside a function"
        if not own and later and name.partition(".")[0] not in HEAVY:
            yield name, "is not heavy"


def named(path: Path) -> tuple[str, bool]:
    """Dotted name of a file's module, and whether it is a package."""
    root = next(p for p in path.parents if p.name in ("scantling", *ABOVE)).parent
    parts = path.relative_to(root).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


def test_every_package_has_its_place():
    assert {p.name for p in LIB.iterdir() if (p / "__init__.py").is_file()} == set(ORDER)


def test_no_two_test_files_have_one_name():
    """pytest imports a test file by its name alone, and refuses a second one."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def taken_from_modules(text: str):
    """(module, name) for every `module.name` of a file whose imports on top name the module, and
    that calls nothing else so."""
    tree = ast.parse(text)
    modules = {
        one.asname or one.name: f"{node.module}.{one.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        if node.module.split(".")[0] in OURS
        for one in node.names
    }
    nodes = list(ast.walk(tree))
    other = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    other |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = node.value.id
            if name in modules and name not in other:
                yield modules[name], node.attr


def is_missing(module: str, name: str) -> bool:
    """Whether a module has neither such a name nor such a module; False for what is no module."""
    found = find_module(module)
    return (
        found is not None and not hasattr(found, name) and find_module(f"{module}.{name}") is None
    )


def find_module(name: str):
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


def test_what_tests_take_from_modules_is_there():
    """Of tests and tools that run seldom too: slow, in a browser, the fits."""
    asked = {
        (module, name)
        for path in sorted(Path(__file__).parent.rglob("*.py"))
        for module, name in taken_from_modules(path.read_text(encoding="utf-8"))
    }
    assert not [f"{module}.{name}" for module, name in sorted(asked) if is_missing(module, name)]
    assert is_missing("scantling_widgets.report.paper", "chromium")


def everything():
    """(module, what, why) of every import in the tree that may not be."""
    for path in FILES:
        module, is_package = named(path)
        if module in FACES:
            continue
        for name, why in looked_up(path.read_text(encoding="utf-8"), module, is_package):
            yield module, name, why


def test_no_room_needs_one_that_comes_after_it():
    assert not [found for found in everything() if found[2] == "comes after"]


def test_only_heavy_modules_are_imported_where_they_are_used():
    assert not [found for found in everything() if found[2] != "comes after"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("    from ..verdict.assess import assess", "comes after"),
        ("    from scantling.cli.app import main", "comes after"),
        ("    import scantling.plans.evaluate", "comes after"),
        ("    from ..base.errors import DesignError", "inside a function"),
        ("    import_module('scantling.base.errors')", "inside a function"),
        ("    import csv", "is not heavy"),
    ],
)
def test_a_forbidden_import_inside_a_function_is_found(line, why):
    text = f"import numpy\nfrom . import cases\n\n\ndef formula(x):\n{line}\n    return x\n"
    assert why in {w for _, w in looked_up(text, "scantling.physics.formula")}


def test_a_heavy_import_inside_a_function_is_allowed():
    text = "from ..base.errors import DesignError\n\n\ndef table(x):\n    import pandas as pd\n"
    assert not list(looked_up(text, "scantling.physics.formula"))


GALLERY = Path(__file__).parents[1] / "gallery" / "designs"
ASSESS_ALL = """
import json, sys
from pathlib import Path

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(name, name=name)

BLOCKED = set(sys.argv[2].split())
sys.meta_path.insert(0, Blocked())
import scantling
from scantling.base.json import clean
out = {}
for i, file in enumerate(sorted(Path(sys.argv[1]).glob("*.yaml"))):
    figures = clean(scantling.assess(scantling.Design.read(file)).as_dict(advice=i % 13 == 4))
    out[file.stem] = {k: v for k, v in figures.items() if k != "search_seconds"}
plans = scantling.search(scantling.Design.read(file))
out["search"] = [len(plans["step_s"]), float(plans["step_s"][0]), plans.attrs["legal"]]
print(json.dumps(out))
"""


@pytest.mark.slow
def test_the_core_needs_numpy_pydantic_and_yaml_alone():
    """Every design of the gallery is assessed without the heavy modules, to the same figures; one
    that misses a limit and one at risk with their fixes."""

    def run(blocked):
        call = [sys.executable, "-c", ASSESS_ALL, str(GALLERY), " ".join(blocked)]
        return json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)

    without, with_them = run({*HEAVY, "click"}), run(())
    for name, one in without.items():
        if isinstance(one, dict):  # lines of the launch kits, whose packages are not there
            assert one.pop("kit", None) is None, name
            with_them[name].pop("kit", None)
    assert len(with_them) > 20
    assert any(f.get("nearest_fixes") for f in without.values() if isinstance(f, dict))
    assert without == with_them


def test_the_library_knows_no_widget_and_no_chart():
    view = ("scantling_widgets", "altair", "ipywidgets", "IPython", "anywidget")
    assert not {
        (path.name, name)
        for path in FILES
        if LIB in path.parents
        for name, _ in imports(path.read_text(encoding="utf-8"), *named(path))
        if name.partition(".")[0] in view
    }


# ---------------------------------------------------------------- what things do is data

# words of English that also name a row; what people and drivers say: "with NVLink", "H100 PCIe"
COMMON = {"other", "generic", "nvlink", "pcie"}
# rooms that say on which machine somebody measured or asks a question, and which framework writes
QUOTES = {"scantling.runs", "scantling_logs", "scantling_walkthroughs"}
# modules that say what words of other people mean, or what a library needs on a chip
READERS = {
    "scantling.runs.run_words",
    "scantling_brief.rules_machine",
    "scantling_kits.env",
    "scantling_kits.variables",
    "scantling_kits.xla_flags",
    "scantling_posttrain.policy_tables",
    "scantling_posttrain.tuning_cases",
}
# rooms that speak to each vendor's tools, networks and frameworks in their own words
SPEAKERS = ("scantling_kits", "scantling_site.network.fabric_settings")


def names_of_the_catalogue(of_machines: bool) -> set[str]:
    """Families, their vendors and links; with `of_machines` chips, fabrics and stacks too."""
    kinds = families().values()
    found = {f.id for f in kinds} | {f.vendor_stack for f in kinds}
    found |= {f.technology for f in catalogue.fabrics().values()}
    if of_machines:
        found |= {*catalogue.accelerators(), *catalogue.fabrics(), *stacks()}
    return found - COMMON


def spoken() -> set[str]:
    """Vendors, links and frameworks, whose words a kit is written in."""
    found = {f.vendor_stack for f in families().values()}
    return found | {f.technology for f in catalogue.fabrics().values()} | {*stacks()}


def decided_by_name(text: str, names: set[str]) -> list[str]:
    """String constants of Python that name one of them; docstrings and examples of a schema do
    not count."""
    tree = ast.parse(text)
    quoted = {
        id(n)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg in ("example", "examples")
        for n in ast.walk(node.value)
    }
    return [
        f"line {n.lineno}: {n.value}"
        for n in ast.walk(tree)
        if isinstance(n, ast.Constant) and id(n) not in quoted and n.value in names
    ]


def test_no_name_of_a_chip_a_link_or_a_stack_decides_outside_the_catalogue():
    found = {}
    for path in FILES:
        module, _ = named(path)
        if module.startswith("scantling.catalogue") or module in READERS:
            continue
        names = names_of_the_catalogue(not module.startswith(tuple(QUOTES)))
        if module.startswith(SPEAKERS):
            names -= spoken()
        if decided := decided_by_name(path.read_text(), names):
            found[module] = decided
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        'wide = chip.family == "hopper"',
        'SLICES = {"tpu-v5p": 3}',
        'if fabric.technology == "ethernet": pass',
        'run = launch.stack != "torchtitan"',
    ],
)
def test_a_name_that_decides_is_found(line):
    assert decided_by_name(line, names_of_the_catalogue(True))
