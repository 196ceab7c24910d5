"""The launch kit: what is written when, what a framework cannot say, and that nothing of a design breaks out of the line it lands in."""
from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from scantling import Design
from scantling.cli import main
from scantling.launch import FRAMEWORKS, ON, Inexpressible, kits, write
from scantling.launch import megatron as megatron_module
from scantling.launch.quote import slug
from scantling.launch.state import state_bytes
from scantling.verdict import assess

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent / "launch"))
from corpus import DENSE, PLANS, SMALL, Z1, spec  # noqa: E402

FILE = {"megatron": "megatron.args", "megatron-bridge": "bridge.overrides", "torchtitan": "torchtitan_config.py", "fsdp": "train_fsdp.py", "deepspeed": "ds_config.json",
        "accelerate": "accelerate.yaml", "maxtext": "maxtext.yml", "ddp": "train_ddp.py"}
SCRIPT = {"torchrun": "launch.sh", "slurm": "job.sbatch", "kubernetes": "jobset.yaml"}
HOSTILE = ["a'b\"c`id`$(touch pwned)", "x\\ny; rm -rf /", "#SBATCH --nodes=9", "{{ 7*7 }} {% raw %}", "---\nkey: [", "'''\"\"\" + __import__('os')", "日本 \u202e \u2028 é", "| pipe > out & ;", "!!python/object", "%s %d"]


def design(data, **more):
    return Design.from_data(data | more)


@pytest.fixture(scope="module")
def small():
    return assess(design(spec(model=SMALL, devices=16, plan=dict(tp=1, pp=1, sharding="none", micro_batch=2)), name="small"))


@pytest.fixture(scope="module")
def plain():
    return assess(design(PLANS["zero3"], name="zero3"))


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("to", FRAMEWORKS)
def test_every_framework_under_every_scheduler(small, to, on):
    files = kits(small, to, on)
    assert {"README.md", "plan.json", "checkpoint.md", "env.sh", "launch.sh", FILE[to], SCRIPT[on]} <= set(files)
    found = json.loads(files["plan.json"])
    assert found["framework"] == to
    assert found["plan"]["dp"] * found["plan"]["tp"] * found["plan"]["pp"] * found["plan"]["cp"] == found["devices"]
    for name, text in files.items():
        assert text.endswith("\n")
        assert "{{" not in text, name
        if name.endswith(".py"):
            compile(text, name, "exec")
        elif name.endswith((".yaml", ".yml")):
            assert yaml.safe_load(text)
        elif name.endswith(".json"):
            json.loads(text)
        elif name.endswith((".sh", ".sbatch")):
            subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_the_command_writes_a_kit_and_says_what_is_missing(tmp_path, capsys):
    file = tmp_path / "d.yaml"
    design(PLANS["dualpipe"], name="x").write(file)
    assert main(["launch", str(file), "--to", "megatron", "-o", str(tmp_path / "kit")]) == 0
    out = capsys.readouterr()
    assert "Wrote 6 files" in out.out
    assert "schedule dualpipe" in out.err
    assert "step time" in out.err
    assert (tmp_path / "kit" / "launch.sh").stat().st_mode & 0o111
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.yaml", "kit"]


@pytest.mark.parametrize(("data", "code"), [
    (spec(plan=dict(tp=1, pp=1, sharding="none", offload="none")), 3),
    (spec(constraints=dict(deadline_days=0.01)), 3),
    ({"model": {"size": 1e12}, "cluster": {"accelerator": "v100-16-pcie", "devices": 8, "devices_per_node": 8}, "job": {"precision": "fp16"}}, 4),
    (spec(plan=dict(tp=7)), 2),
])
def test_nothing_is_written_unless_feasible(tmp_path, capsys, data, code):
    file = tmp_path / "d.yaml"
    file.write_text(yaml.safe_dump(data))
    assert main(["launch", str(file), "--to", "megatron", "-o", str(tmp_path / "kit")]) == code
    assert [p.name for p in tmp_path.iterdir()] == ["d.yaml"]
    assert capsys.readouterr().err.strip()


@pytest.mark.parametrize("arguments", [["--to", "megatrom", "-o", "k"], ["--to", "fsdp", "--on", "pbs", "-o", "k"], ["--to", "fsdp"]])
def test_a_wrong_call_ends_with_two(tmp_path, capsys, arguments):
    file = tmp_path / "d.yaml"
    file.write_text(yaml.safe_dump(PLANS["zero3"]))
    assert main(["launch", str(file), *arguments]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_plan_that_no_framework_plan_can_replace_is_refused_with_the_reason():
    a = assess(design(PLANS["cp-gather"], name="long"))
    with pytest.raises(Inexpressible, match="cp 4.*every rank holds whole sequences"):
        kits(a, "fsdp")


def test_writing_is_all_or_nothing(tmp_path, plain, monkeypatch):
    files = kits(plain, "fsdp")
    kit = tmp_path / "kit"
    write(files, kit)
    (kit / "mine.txt").write_text("stays")
    before = {p.name: p.read_bytes() for p in kit.iterdir() if p.is_file()}
    real = Path.write_text

    def full(self, text, **more):
        if self.name == "trainer.py":
            raise OSError(28, "No space left on device")
        return real(self, text, **more)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(ValueError, match="No space left"):
        write(files | {"launch.sh": "other\n"}, kit)
    assert {p.name: p.read_bytes() for p in kit.iterdir() if p.is_file()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["kit"]


def test_the_nearest_plan_costs_what_assessing_it_says():
    a = assess(design(PLANS["dense-pp"], name="x"))
    found = json.loads(kits(a, "fsdp")["plan.json"])
    assert {g["field"] for g in found["not_expressed"]} >= {"tp", "pp", "sharding"}
    p = found["plan"]
    pins = {k: p[k] for k in ("tp", "pp", "cp", "dp", "sharding", "micro_batch", "recompute")} | {k: p[k] for k in ("recompute_layers",) if p[k]} | ({"shard_group": p["shard_group"]} if p["sharding"] == "hsdp" else {})
    again = assess(design(PLANS["dense-pp"] | {"plan": pins}, name="x"))
    assert again.step_s == pytest.approx(found["step_s"], rel=1e-9)
    assert found["not_expressed"][0]["cost"].startswith(f"{again.step_s / a.step_s - 1:+.1%} step time")


def test_phases_have_a_kit_each():
    data = spec(plan={})
    data["job"] = {"phases": [{"tokens": 1e11, "seq_len": 4096, "global_batch": 256}, {"tokens": 1e9, "seq_len": 32768, "global_batch": 32, "plan": {"cp": 2}}]}
    files = kits(assess(design(data, name="two")), "megatron")
    first, second = (dict(re.findall(r"^(--\S+) (\S+)$", files[k], re.M)) for k in ("megatron.args", "phase-2/megatron.args"))
    assert first["--seq-length"] == "4096"
    assert second["--seq-length"] == "32768"
    assert second["--context-parallel-size"] == "2"
    assert "phase-2" in files["README.md"]


def test_devices_that_do_not_fill_the_last_node():
    a = assess(design(PLANS["thirteen-devices"], name="odd"))
    text = kits(a, "fsdp")["launch.sh"]
    given = json.loads(kits(a, "fsdp")["plan.json"])
    assert given["nodes"] * 8 >= given["devices"] == (given["nodes"] - 1) * given["devices_per_node"] + given["last_node"]
    if given["last_node"] != given["devices_per_node"]:
        assert f"PER_NODE={given['last_node']}" in text


def test_state_arithmetic_is_that_of_the_papers():
    """Rajbhandari et al. 2020, figure 1: 7.5B parameters, 64 ranks, K = 12: 120, 31.4, 16.6 and 1.9 GB."""
    for sharding, expected in (("none", 120.0), ("zero1", 31.4), ("zero2", 16.6), ("zero3", 1.9)):
        assert state_bytes("deepspeed", sharding, 64, 7.5e9)["total"] / 1e9 == pytest.approx(expected, abs=0.05)
    assert state_bytes("fsdp", "zero3", 64, 7.5e9)["total"] == state_bytes("deepspeed", "zero3", 64, 7.5e9)["total"]
    assert state_bytes("fsdp", "hsdp", 64, 8e9, shard_group=8)["parameters"] == 4e9


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_text(name, tmp_path):
    """The name as the shell, YAML, JSON, Python and #SBATCH readers see it."""
    name = name.replace("\n", " ").replace("\u2028", " ").replace("\u202e", "")
    a = assess(design(spec(model=SMALL, devices=16, plan=dict(tp=1, pp=1, sharding="none", micro_batch=2)), name=name))
    clean = assess(design(spec(model=SMALL, devices=16, plan=dict(tp=1, pp=1, sharding="none", micro_batch=2)), name="plainname"))
    for to, on in (("ddp", "slurm"), ("megatron", "kubernetes"), ("torchtitan", "torchrun"), ("maxtext", "torchrun")):
        files, reference = kits(a, to, on), kits(clean, to, on)
        assert json.loads(files["plan.json"])["name"] == a.resolved.name
        for file, text in files.items():
            if file.endswith(".md"):
                continue
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            if file.endswith((".sh", ".sbatch")):
                expected = [line.replace("plainname", slug(name)) for line in reference[file].splitlines() if not line.startswith("#")]
                assert lines == expected, file
                assert [x.replace("plainname", slug(name)) for x in reference[file].splitlines() if x.startswith("#SBATCH")] == [x for x in text.splitlines() if x.startswith("#SBATCH")]
            elif file.endswith(".py"):
                assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(reference[file]))
            elif file.endswith((".yaml", ".yml")):
                found = yaml.safe_load(text)
                found.get("metadata", {}).pop("annotations", None)
                other = yaml.safe_load(reference[file].replace("plainname", slug(name)))
                other.get("metadata", {}).pop("annotations", None)
                assert found == other


@pytest.mark.parametrize("folder", ["with space", "quo'te", "dollar $(touch pwned) `id`", "semi;colon&", "-dash", "new\"quote"])
def test_a_kit_starts_from_any_folder(tmp_path, plain, folder):
    """launch.sh finds its files and starts torchrun with the plan's numbers, wherever the kit lies."""
    kit = tmp_path / folder
    write(kits(plain, "fsdp"), kit)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "torchrun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (bin_ / "torchrun").chmod(0o755)
    p = subprocess.run(["bash", "./" + "launch.sh"], cwd=kit, capture_output=True, text=True, env={"PATH": f"{bin_}:/usr/bin:/bin"})
    assert p.returncode == 0, p.stderr
    words = p.stdout.splitlines()
    assert words[-1] == str(kit / "train_fsdp.py")
    assert "--nnodes=8" in words
    assert "--nproc-per-node=8" in words
    assert sorted(x.name for x in tmp_path.iterdir()) == sorted(["bin", folder])


def test_megatron_arguments_reach_the_program_word_for_word(tmp_path):
    """xargs in launch.sh and shlex in Python read the file alike, layouts with bars and brackets included."""
    a = assess(design(PLANS["uneven-pp"], name="x"))
    kit = tmp_path / "kit"
    write(kits(a, "megatron"), kit)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "torchrun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (bin_ / "torchrun").chmod(0o755)
    p = subprocess.run(["bash", str(kit / "launch.sh")], capture_output=True, text=True, env={"PATH": f"{bin_}:/usr/bin:/bin", "MEGATRON_LM": "/m"})
    assert p.returncode == 0, p.stderr
    expected = shlex.split((kit / "megatron.args").read_text())
    words = p.stdout.splitlines()
    at = words.index("/m/pretrain_gpt.py")
    assert words[at + 1: at + 1 + len(expected)] == expected
    assert "|" in expected[expected.index("--pipeline-model-parallel-layout") + 1]
    assert words[-1] == "--mock-data"


def test_layouts_hold_every_layer_once():
    for name in ("uneven-pp", "uneven-pp-3", "interleaved-short-ends", "mtp"):
        a = assess(design(PLANS[name], name=name))
        text = kits(a, "megatron")["megatron.args"]
        layout = shlex.split(re.search(r"--pipeline-model-parallel-layout (.*)", text)[1])[0]
        assert layout.count("t") == a.resolved.model.layers
        assert layout[0] == "E"
        assert layout[-1] == "L"
        assert len(layout.split("|")) == a.plan["pp"] * a.plan["vpp"]


def test_environment_has_a_reason_for_each_variable(small):
    for to in FRAMEWORKS:
        for v in json.loads(kits(small, to)["plan.json"])["environment"]:
            assert re.fullmatch(r"[A-Z][A-Z0-9_]*", v["name"])
            assert len(v["why"]) > 15


def test_tensor_parallelism_below_blackwell_orders_its_launches():
    old = assess(design(PLANS["dense-tp"], name="h"))
    new = assess(design(PLANS["dense-tp"] | {"cluster": {"accelerator": "b200", "devices": 64, "devices_per_node": 8}}, name="b"))
    names = lambda a: {v["name"] for v in json.loads(kits(a, "megatron")["plan.json"])["environment"]}     # noqa: E731
    assert "CUDA_DEVICE_MAX_CONNECTIONS" in names(old)
    assert "CUDA_DEVICE_MAX_CONNECTIONS" not in names(new)


def test_troubles_are_ordered_by_what_is_likely_here():
    tight = assess(design(PLANS["zero3"] | {"plan": dict(tp=1, pp=1, sharding="zero3", micro_batch=4, recompute="none")}, name="tight"))
    first = re.findall(r"^1\. \*\*(.*?)\.\*\*", kits(tight, "fsdp")["README.md"], re.M)[0]
    assert first == "Out of memory" or tight.memory_bytes["total"] < 0.5 * tight.memory_bytes["capacity"]
    half = assess(design(PLANS["fp16"], name="half"))
    assert "FP16 overflow" in kits(half, "megatron")["README.md"]
    assert "FP16 overflow" not in kits(tight, "fsdp")["README.md"]


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="no shellcheck")
def test_scripts_pass_shellcheck(tmp_path, small):
    scripts = []
    odd = assess(design(PLANS["thirteen-devices"], name="odd"))
    for a, to in [(small, to) for to in FRAMEWORKS] + [(odd, "fsdp")]:
        for name, text in kits(a, to, "slurm").items():
            if name.endswith((".sh", ".sbatch")):
                path = tmp_path / f"{to}-{len(scripts)}-{name}"
                path.write_text(text)
                scripts.append(str(path))
    p = subprocess.run(["shellcheck", "-s", "bash", "-e", "SC2148", *scripts], capture_output=True, text=True)
    assert p.returncode == 0, p.stdout
    broken = tmp_path / "broken.sh"
    broken.write_text("#!/bin/bash\nrm $1/*\n")
    assert subprocess.run(["shellcheck", str(broken)], capture_output=True).returncode == 1


def test_megatron_knows_every_field_of_a_plan():
    """What the domain leaves out is in the plan's vocabulary: a misspelt field would let everything through."""
    from scantling.launch.express import FIELDS

    for to, module in FRAMEWORKS.items():
        domain = __import__(f"scantling.launch.{module}", fromlist=["DOMAIN"]).DOMAIN
        assert set(domain) <= {*FIELDS, "optimizer"}, to
    assert megatron_module.chunks.__doc__
    assert DENSE
    assert Z1
