"""What a change does, by cause: sums, refusals, revisions of a repository, hostile names."""

from __future__ import annotations

import json
import subprocess

import pytest
from scantling.base.errors import DesignError
from scantling.cli.app import main
from scantling.design.design import Design
from scantling.verdict.assess import assess
from scantling_code.causes import INTERACTION
from scantling_code.diff import diff
from scantling_code.provenance import design_hash
from scantling_code.snapshot import KEYS, state
from scantling_code.sources import design_of

BASE = {
    "model": "llama-2-13b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e11, "seq_len": 4096, "global_batch": 128},
}
CHANGES = {"cluster.devices": 128, "job.tokens": 2e11, "prices.usd_per_device_hour": 3.0}


@pytest.fixture(scope="module")
def base() -> Design:
    return Design.from_data(BASE)


def test_causes_and_interaction_sum_to_the_change(base):
    after = base.change(CHANGES)
    one = diff(base, after)
    assert [change.path for change in one.asked] == list(CHANGES)
    before_state, after_state = state(assess(base)), state(assess(after))
    for key in KEYS:
        change = after_state.value(key) - before_state.value(key)
        parts = sum(cause.deltas[key] or 0.0 for cause in one.causes)
        assert parts == pytest.approx(change, rel=1e-9, abs=2e-6 * abs(after_state.value(key)))
    assert one.causes[-1].name == INTERACTION


def test_each_cause_is_the_change_alone(base):
    one = diff(base, base.change(CHANGES))
    for cause in one.causes[:-1]:
        (change,) = cause.changes
        alone = assess(base.change({change.path: CHANGES[change.path]}))
        assert cause.verdict == alone.verdict
        delta = alone.likely.days - assess(base).likely.days
        assert cause.deltas["likely.days"] == pytest.approx(delta, rel=1e-9, abs=1e-6)


def test_a_change_that_is_no_design_alone_is_named(base):
    """Ways of experts without experts."""
    moe = {"model": "mixtral-8x7b", "plan.ep": 8}
    one = diff(base, base.change(moe))
    refused = [cause for cause in one.causes if cause.refused]
    assert [cause.name for cause in refused] == ["plan.ep"] and "experts" in refused[0].refused
    assert all(value is None for value in refused[0].deltas.values())


def test_designs_that_ask_the_same_differ_in_nothing(base):
    one = diff(base, base.change({"name": "another name"}))
    assert one.same and one.asked == () and one.causes == ()


def test_many_changes_are_told_by_section(base):
    other = Design.from_data(
        {
            "model": "mixtral-8x7b",
            "cluster": {"accelerator": "h200-sxm", "devices": 128, "scale_out": "ib-xdr"},
            "job": {"tokens": 3e11, "seq_len": 8192, "global_batch": 256, "precision": "fp8"},
            "plan": {"tp": 1, "pp": 2, "ep": 8, "micro_batch": 1, "sharding": "zero1"},
            "stack": "megatron-core",
        }
    )
    one = diff(base, other)
    assert len(one.asked) > 12
    assert {"cluster", "job", "plan", "model", "stack"} <= {cause.name for cause in one.causes}


def test_a_text_of_a_file_cannot_write_markdown(base):
    after = base.change({"name": "a | ![x](y) <b> # @all", "cluster.devices": 128})
    text = diff(base, after).markdown()
    assert "![x]" not in text and "<b>" not in text and "\n# " not in text and "@all" not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, base, monkeypatch, llama_config):
    """A design with a model of its own, of which the model's file was changed since."""
    folder = tmp_path / "plans"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "config.json").write_text(json.dumps(llama_config))
    design = base.change({"model": {"hf_config": "models/config.json"}})
    (folder / "run.yaml").write_text(design.to_yaml())
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "tag", "first")
    (folder / "models" / "config.json").write_text(
        json.dumps(llama_config | {"num_hidden_layers": 40})
    )
    (folder / "run.yaml").write_text(design.change({"cluster.devices": 128}).to_yaml())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_revision_has_the_files_of_its_time(repository):
    one = diff(design_of("git:first:plans/run.yaml"), design_of("plans/run.yaml"))
    assert {change.path for change in one.asked} == {"cluster.devices", "model.hf_config"}
    effects = {cause.name: cause.deltas["step_s"] for cause in one.causes}
    assert effects["model.hf_config"] > 0 > effects["cluster.devices"]


def test_a_folder_of_a_model_is_its_config(repository):
    """A change of the config in a folder that a design names is a change of the design, and a
    revision has the folder of its time."""
    file = repository / "plans" / "run.yaml"
    file.write_text(file.read_text().replace("models/config.json", "models"))
    git(repository, "commit", "-qam", "folder")
    config = repository / "plans" / "models" / "config.json"
    before = design_hash(design_of(str(file)))
    config.write_text(
        config.read_text().replace('"num_hidden_layers": 40', '"num_hidden_layers": 48')
    )
    assert design_hash(design_of(str(file))) != before
    one = diff(design_of("git:HEAD:plans/run.yaml"), design_of(str(file)))
    assert [change.path for change in one.asked] == ["model.hf_config"]
    assert one.deltas["step_s"] > 0


def test_a_revision_is_read_from_any_folder(repository, monkeypatch):
    monkeypatch.chdir(repository / "plans")
    assert design_of("git:HEAD:run.yaml").cluster.devices == 64
    assert design_of("git:HEAD:./models/../run.yaml").cluster.devices == 64
    monkeypatch.chdir("/")
    assert design_of(f"git:HEAD:{repository}/plans/run.yaml").cluster.devices == 64


@pytest.mark.parametrize(
    "name",
    [
        "git:--output=written:plans/run.yaml",
        "git:-h:plans/run.yaml",
        "git:HEAD:plans/../../../etc/passwd",
        "git:HEAD:--textconv",
        "git:nothing:plans/run.yaml",
        "git:HEAD:plans",
        "git:HEAD:absent.yaml",
        "git::plans/run.yaml",
        "git:HEAD",
        "git:HEAD\0:plans/run.yaml",
        "git:$(touch written):plans/run.yaml",
        "git:HEAD:plans/run.yaml\n",
    ],
)
def test_a_hostile_name_is_one_line_and_writes_nothing(repository, name, capsys):
    assert main(["diff", name, "plans/run.yaml"]) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith("scantling: ") and "\n" not in said and "Traceback" not in said
    assert not list(repository.rglob("written*"))


def test_a_lock_is_read_from_a_revision(repository, capsys):
    """With the files of its time, which its design names."""
    assert main(["lock", "plans/run.yaml"]) == 0
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "locked")
    file = repository / "plans" / "run.yaml"
    file.write_text(file.read_text().replace("128", "256", 1))
    (repository / "plans" / "models" / "config.json").unlink()
    capsys.readouterr()
    assert main(["diff", "git:HEAD:plans/run.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["asked"] == []
    git(repository, "checkout", "-q", "--", "plans/models")
    assert main(["diff", "git:HEAD:plans/run.yaml.lock", "plans/run.yaml", "--json"]) == 0
    asked = json.loads(capsys.readouterr().out)["asked"]
    assert asked and all(change["a"] == 128 and change["b"] == 256 for change in asked)
    assert main(["diff", "git:first:plans/run.yaml.lock", "plans/run.yaml"]) == 2
    assert "git:first:plans/run.yaml.lock: " in capsys.readouterr().err


def test_a_file_outside_the_repository_is_refused(repository):
    text = Design.from_data(BASE).change({"model": {"hf_config": "../../secret.json"}}).to_yaml()
    (repository / "plans" / "out.yaml").write_text(text)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "out")
    with pytest.raises(DesignError, match="outside"):
        design_of("git:HEAD:plans/out.yaml")


def test_outside_a_repository_git_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(DesignError, match="git"):
        design_of("git:HEAD:run.yaml")


def test_the_command_prints_text_json_and_markdown(repository, capsys):
    names = ["git:HEAD:plans/run.yaml", "plans/run.yaml"]
    assert main(["diff", *names]) == 0
    assert "cluster.devices 64 → 128" in " ".join(capsys.readouterr().out.split())
    assert main(["diff", *names, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [cause["cause"] for cause in data["causes"]][-1] == INTERACTION
    assert {"field": "cluster.devices", "a": 64, "b": 128} in data["asked"]
    assert data["plan"]["a"]["dp"] != data["plan"]["b"]["dp"] and data["verdict"].keys() == {
        "a",
        "b",
    }
    days = data["figures"]["days"]
    assert days["a"] > days["b"] and sum(days["by"].values()) == pytest.approx(1)
    assert main(["diff", *names, "--markdown"]) == 0
    assert "| cluster.devices |" in capsys.readouterr().out
    assert main(["diff", "plans/run.yaml"]) == 2  # it has no lock
    assert "run.yaml.lock" in capsys.readouterr().err


def test_designs_that_tune_differ_by_cause():
    job = {"method": "lora", "data": {"samples": 1e5, "mean_tokens": 900}, "seq_len": 4096}
    machine = {"accelerator": "h100-sxm", "devices": 8}
    one = Design.from_data({"model": "llama-3.1-8b", "cluster": machine, "job": job})
    other = one.change({"job.data.samples": 2e5, "cluster.devices": 16})
    found = diff(one, other)
    assert {change.path for change in found.asked} == {"job.data.samples", "cluster.devices"}
    days = {cause.name: cause.deltas["likely.days"] for cause in found.causes}
    assert days["job.data.samples"] > 0 > days["cluster.devices"]
    assert sum(days.values()) == pytest.approx(found.deltas["likely.days"])


def test_the_parts_of_the_step_that_moved_sum_to_its_change(base, tmp_path, capsys):
    after = base.change({"cluster.devices": 128})
    one = diff(base, after)
    parts = one.as_dict()["step_parts"]
    assert sum(part["change"] for part in parts) == pytest.approx(one.deltas["step_s"], rel=1e-9)
    assert parts[0]["part"] == "gemm" and parts[-1]["part"] == "others"
    assert f"**Step** {one.step_line()}" in one.markdown()
    assert one.step_line().startswith("GEMMs −")
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for file, design in zip(files, (base, after)):
        file.write_text(design.to_yaml(), encoding="utf-8")
    main(["diff", *map(str, files)])
    assert "Step     GEMMs −" in capsys.readouterr().out


def test_a_change_that_leaves_the_step_names_no_part_of_it(base):
    one = diff(base, base.change({"prices.usd_per_device_hour": 3.0}))
    assert one.as_dict()["step_parts"] == [] and "**Step**" not in one.markdown()
