"""The files for other repositories, run as those run them: the action's script, and the hook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from scantling.design.design import Design
from scantling_code.lock import lock, write_lock

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "check"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
BASE = {
    "model": "llama-2-13b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e11, "seq_len": 4096, "global_batch": 128},
}


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    """Designs under version control, one with a lock and a name that a shell would read."""
    folder = tmp_path / "repository"
    (folder / "designs").mkdir(parents=True)
    file = folder / "designs" / "run $(touch written).yaml"
    Design.from_data(BASE).write(file)
    write_lock(file, lock(Design.read(file)))
    (folder / "values.yaml").write_text("replicas: 3\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def step(folder, tmp_path, **inputs):
    """The step of the action, with the environment that the runner gives it."""
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    (only,) = action["runs"]["steps"]
    values = {name: str(about.get("default", "")) for name, about in action["inputs"].items()}
    values |= {"install": "", **inputs}
    env = {
        name: values[expression.removeprefix("${{ inputs.").removesuffix(" }}")]
        for name, expression in only["env"].items()
    }
    runner = tmp_path / "runner"
    runner.mkdir(exist_ok=True)
    files = {name: runner / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-e", "-c", only["run"]],
        cwd=folder,
        env=os.environ
        | env
        | {name: str(file) for name, file in files.items()}
        | {"GITHUB_ACTION_PATH": str(ACTION), "RUNNER_TEMP": str(runner), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return ran, outputs, files["GITHUB_STEP_SUMMARY"].read_text()


def test_the_action_holds_and_fails(repository, tmp_path):
    ran, outputs, _ = step(repository, tmp_path, locked="true")
    assert ran.returncode == 0, ran.stderr
    assert ElementTree.parse(outputs["junit"]).getroot().find("testsuite").get("tests") == "1"
    assert json.loads(Path(outputs["sarif"]).read_text())["version"] == "2.1.0"
    (file,) = (repository / "designs").glob("*.yaml")
    Design.read(file).change({"cluster.devices": 128}).write(file, force=True)
    ran, outputs, summary = step(repository, tmp_path, base="HEAD")
    assert ran.returncode == 3 and "stale-lock" in ran.stdout
    assert "cluster.devices" in summary and summary.count("| before |") == 1
    assert json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"]
    assert not list(tmp_path.rglob("written*"))


def test_inputs_of_the_action_are_no_script(repository, tmp_path):
    for inputs in (
        {"paths": "$(touch written) ; touch written"},
        {"tolerance": "0; touch written"},
        {"base": "$(touch written)"},
        {"base": "--output=written"},
    ):
        step(repository, tmp_path, **inputs)
    assert not list(tmp_path.rglob("written"))
    text = (ACTION / "action.yml").read_text()
    (only,) = yaml.safe_load(text)["runs"]["steps"]
    assert "${{" not in only["run"]


def test_the_script_is_clean():
    shellcheck = Path(sys.executable).with_name("shellcheck")
    if not shellcheck.exists():
        pytest.skip("no shellcheck")
    subprocess.run([shellcheck, ACTION / "check.sh"], check=True)


def test_the_hook_leaves_out_what_is_no_design(repository):
    hook = yaml.safe_load(HOOKS.read_text())[0]
    command, *arguments = hook["entry"].split()
    assert command == "scantling"
    (file,) = (repository / "designs").glob("*.yaml")
    changed = ["values.yaml", "gone.yaml", f"{file.relative_to(repository)}.lock"]

    def run():
        return subprocess.run(
            [sys.executable, "-m", "scantling", *arguments, *changed],
            cwd=repository,
            capture_output=True,
            text=True,
            check=False,
        )

    ran = run()
    assert ran.returncode == 0 and "1 design, 1 with a lock: all hold" in ran.stdout, ran.stderr
    Design.read(file).change({"cluster.devices": 128}).write(file, force=True)
    assert run().returncode == 3


@pytest.mark.slow
def test_the_hook_as_pre_commit_runs_it(repository, tmp_path):
    """pre-commit chooses the files and calls the entry; what it would install is here already."""
    pytest.importorskip("pre_commit")
    hook = yaml.safe_load(HOOKS.read_text())[0] | {"language": "system"}
    config = {"repos": [{"repo": "local", "hooks": [hook]}]}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(repository, "add", "-A")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(*more):
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--verbose", *more],
            cwd=repository,
            env=os.environ | {"PATH": path, "PRE_COMMIT_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )

    ran = run("--all-files")
    assert ran.returncode == 0 and "1 design, 1 with a lock: all hold" in ran.stdout, ran.stdout
    (file,) = (repository / "designs").glob("*.yaml")
    Design.read(file).change({"cluster.devices": 128}).write(file, force=True)
    git(repository, "add", "-A")
    ran = run()  # of what is staged
    assert ran.returncode == 1 and "stale-lock" in ran.stdout and "exit code: 3" in ran.stdout


def test_the_manifest_before_pre_commit_itself():
    manifest = pytest.importorskip("pre_commit.clientlib").load_manifest
    assert [hook["id"] for hook in manifest(str(HOOKS))] == ["scantling-check"]
