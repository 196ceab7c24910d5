"""What the kit is made of is stated and checked, and nothing that it does needs a network."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib import import_module, metadata
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path

import pytest
from hostile import COMMANDS
from scantling import catalogue

ROOT = Path(__file__).parents[1]
# Python's sockets inside a process: what leaves the machine is refused and written down
REFUSED = """
import os, socket
def local(host):
    return host in (None, "", "localhost", "::1") or str(host).startswith("127.")
def refuse(host):
    with open(os.environ["SCANTLING_SOCKETS"], "a") as file:
        file.write(f"{host}\\n")
    raise OSError(101, "Network is unreachable")
class Socket(socket.socket):
    def connect(self, address):
        known = self.family in (socket.AF_INET, socket.AF_INET6) and not local(address[0])
        return refuse(address[0]) if known else super().connect(address)
    def connect_ex(self, address):
        known = self.family in (socket.AF_INET, socket.AF_INET6) and not local(address[0])
        return refuse(address[0]) if known else super().connect_ex(address)
real = socket.getaddrinfo
socket.getaddrinfo = lambda host, *a, **k: real(host, *a, **k) if local(host) else refuse(host)
socket.socket = Socket
"""
RUN = """
import json, sys
from scantling.cli.app import main
for argv in json.load(sys.stdin):
    code = main(argv)
    # a budget of compute may ask for a model that the machine cannot hold, and no plan of DDP
    # holds this one: refused in a sentence
    if code not in (0, 3, 4) and argv[0] not in ("scaling", "answer", "launch"):
        sys.exit(f"{argv}: {code}")
"""


def _without_a_network(calls, folder: Path) -> list[str]:
    """The hosts that the commands asked for."""
    (folder / "sitecustomize.py").write_text(REFUSED)
    (folder / "asked").write_text("")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(calls),
        env={**os.environ, "PYTHONPATH": path, "SCANTLING_SOCKETS": str(folder / "asked")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return (folder / "asked").read_text().split()


def test_the_guard_sees_a_connection(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(REFUSED)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "SCANTLING_SOCKETS": str(tmp_path / "asked")}
    for ask in ("create_connection(('192.0.2.1', 80), 1)", "getaddrinfo('example.org', 80)"):
        code = f"import socket; socket.{ask}"
        assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 1
    assert (tmp_path / "asked").read_text().split() == ["192.0.2.1", "example.org"]


@pytest.mark.slow
def test_the_whole_command_line_runs_with_sockets_refused(tmp_path):
    (tmp_path / "design.yaml").write_text(
        "scantling: 1\nmodel: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\n"
        "job: {tokens: 1e12, seq_len: 8192, global_batch: 256}\n"
        "constraints: {deadline_days: 90}\n"
        "measured: {step_s: 9.0}\n"
    )
    design = str(tmp_path / "design.yaml")
    calls = [[part.format(d=design, o=str(tmp_path)) for part in argv] for argv in COMMANDS]
    kits = [argv for argv in calls if argv[0] == "launch"]
    calls = [argv for argv in calls if argv[0] != "launch"]
    calls += [[*argv[:-1], str(tmp_path / f"kit{i}")] for i, argv in enumerate(kits)]
    runs = (catalogue.HERE / "published_runs.csv").read_text().splitlines(keepends=True)
    (tmp_path / "runs.csv").write_text("".join(runs[:30]))
    config = next((ROOT / "tests/published/hf").rglob("*.json"), None)
    calls += [
        ["init", "--text", "70B on 128 H100, 1T tokens", "-o", "-"],
        ["schema"],
        ["spaces", design],
        ["predict", "runs.csv", "-o", "out.csv"],
        ["validate", "runs.csv"],
        ["report", design, "-o", "reports", "--workers", "1"],
        ["walkthrough", "01", "-o", "walkthrough"],
        *(["catalogue", kind] for kind in ("models", "accelerators", "fabrics", "prices")),
        *([["params", str(config)]] if config else []),
    ]
    assert _without_a_network(calls, tmp_path) == []


def test_every_licence_is_stated_and_none_binds_what_links_to_it():
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/licences"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-400:]
    assert {"numpy", "pydantic", "jupyterlab"} <= {
        line.split()[0] for line in done.stdout.splitlines()
    }


@pytest.mark.parametrize(
    "answer, code, said",
    [
        ("", 0, "cannot be reached"),
        ({"dependencies": [{"name": "a", "version": "1", "vulns": []}]}, 0, "no known"),
        (
            {
                "dependencies": [
                    {
                        "name": "a",
                        "version": "1",
                        "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}],
                    }
                ]
            },
            1,
            "PYSEC-1, mended in 2",
        ),
    ],
)
def test_the_audit_tells_a_vulnerability_from_a_service_that_is_away(answer, code, said, tmp_path):
    tool = tmp_path / "pip-audit"
    tool.write_text(
        f"#!{sys.executable}\nimport sys\nif {json.dumps(answer)!r} != '\"\"':\n"
        f"    open(sys.argv[sys.argv.index('-o') + 1], 'w').write({json.dumps(answer)!r})\n"
        "sys.exit('ConnectionError: no route')\n"
    )
    tool.chmod(0o755)
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/audit", tool, "pins.txt", tmp_path / "out" / "audit.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code and said in done.stdout, done.stderr


def _scripts():
    """Scripts of Python without an ending, which neither mypy nor an import reads."""
    files = (path for path in (ROOT / ".ci").iterdir() if path.is_file() and not path.suffix)
    return [path for path in sorted(files) if "python" in path.read_text("utf-8").split("\n")[0]]


@pytest.mark.parametrize("path", _scripts(), ids=lambda path: path.name)
def test_a_script_takes_from_the_packages_what_they_have(path):
    """Every name that a script imports of ours, and every attribute of a module among them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scantling"):
            module = import_module(node.module)
            for alias in node.names:
                inside = (
                    find_spec(f"{node.module}.{alias.name}")
                    if hasattr(module, "__path__")
                    else None
                )
                found = import_module(inside.name) if inside else getattr(module, alias.name)
                names[alias.asname or alias.name] = found
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in names:
                assert hasattr(names[node.value.id], node.attr), f"{node.value.id}.{node.attr}"


def test_the_notebooks_in_a_browser_have_what_they_import():
    """JupyterLite installs what the package requires by itself, and with the extras of the desk."""
    spec = spec_from_loader("lite", SourceFileLoader("lite", str(ROOT / ".ci/lite")))
    spec.loader.exec_module(lite := module_from_spec(spec))
    needed = set(lite.needs(metadata.distribution("scantling")))
    assert {"altair", "anywidget", "ipywidgets", "jinja2", "numpy", "pandas", "scipy"} <= needed
    assert not {"jupyterlab", "scantling", "torch", "voila"} & needed
