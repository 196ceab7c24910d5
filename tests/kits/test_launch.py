"""The launch kit: what is written when, what a framework cannot say, and that nothing of a design
breaks out of the line it lands in."""

from __future__ import annotations

import ast
import json
import math
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st
from scantling import Design, assess
from scantling.base.json import clean
from scantling.cli.app import main
from scantling_kits import FRAMEWORKS, ON, Inexpressible, framework, kits, write
from scantling_kits.expressible import express
from scantling_kits.pages import kit as kit_of
from scantling_kits.quote import py, slug
from scantling_kits.rank_state import state_bytes

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))
from corpus import MLA, MOE, PLANS, SMALL, spec  # noqa: E402

FILE = {
    "megatron": "megatron.args",
    "megatron-bridge": "bridge.overrides",
    "torchtitan": "torchtitan_config.py",
    "fsdp": "train_fsdp.py",
    "deepspeed": "ds_config.json",
    "accelerate": "accelerate.yaml",
    "maxtext": "maxtext.yml",
    "ddp": "train_ddp.py",
}
SCRIPT = {"torchrun": "launch.sh", "slurm": "job.sbatch", "kubernetes": "jobset.yaml"}
HOSTILE = [
    "a\nb\r#SBATCH --nodes=9\x00\x1b[31m",
    "a'b\"c`id`$(touch pwned)",
    "x\\ny; rm -rf /",
    "#SBATCH --nodes=9",
    "{{ 7*7 }} {% raw %}",
    "---\nkey: [",
    "'''\"\"\" + __import__('os')",
    "日本 \u202e \u2028 é",
    "| pipe > out & ;",
    "!!python/object",
    "%s %d",
]


def design(data, **more):
    return Design.from_data(data | more)


@pytest.fixture(scope="module")
def small():
    return assess(
        design(
            spec(model=SMALL, devices=16, plan=dict(tp=1, pp=1, sharding="none", micro_batch=2)),
            name="small",
        )
    )


@pytest.fixture(scope="module")
def plain():
    return assess(design(PLANS["zero3"], name="zero3"))


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("to", FRAMEWORKS)
def test_every_framework_under_every_scheduler(small, to, on):
    read = set()
    files = kits(small, to, on)
    assert {
        "README.md",
        "plan.json",
        "checkpoint.md",
        "env.sh",
        "launch.sh",
        FILE[to],
        SCRIPT[on],
    } <= set(files)
    found = json.loads(files["plan.json"])
    assert found["framework"] == to
    assert (
        found["plan"]["dp"] * found["plan"]["tp"] * found["plan"]["pp"] * found["plan"]["cp"]
        == found["devices"]
    )
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
        else:
            continue
        read.add(name)
    unread = {
        "README.md",
        "plan.md",
        "assumptions.md",
        "checkpoint.md",
        "megatron.args",
        "bridge.overrides",
    }
    assert {Path(name).name for name in set(files) - read} <= unread
    assert {"plan.json", "env.sh", "launch.sh", SCRIPT[on]} <= read


@pytest.mark.slow
@pytest.mark.parametrize(
    "modules, flags",
    [
        (["core_attn"], "core_attn"),
        (["mla_up_proj", "norm", "mlp_act"], "mla_up_proj layernorm moe_act"),
        (["moe"], "moe"),
    ],
)
def test_memory_time_and_flags_go_by_one_list_of_modules(modules, flags):
    """Megatron-LM's choices of --recompute-modules (arguments.py); what a framework has no words
    for is refused by name."""
    pins = dict(tp=1, pp=1, sharding="zero1", micro_batch=1)
    said = assess(design(spec(model=MLA, plan=pins | {"recompute_modules": modules})))
    none = assess(design(spec(model=MLA, plan=pins | {"recompute": "none"})))
    assert said.plan["recompute_modules"] == modules
    held, kept = (a.phases[0].memory.activations for a in (said, none))
    assert held < kept or modules == ["core_attn"]  # with flash attention it saves no scores
    assert said.step_breakdown_s["recompute"] > 0 == none.step_breakdown_s["recompute"]
    arguments = kits(said, "megatron", "torchrun")["megatron.args"]
    assert f"--recompute-modules {flags}" in arguments
    overrides = kits(said, "megatron-bridge", "torchrun")["bridge.overrides"]
    assert f"model.recompute_modules=[{flags.replace(' ', ',')}]" in overrides
    for to in ("torchtitan", "fsdp"):
        try:
            found = express(said, 0, FRAMEWORKS[to], "torchrun")
        except Inexpressible as e:
            assert "recompute_modules" in str(e)
        else:
            kept = [] if to == "torchtitan" else ["core_attn"]
            assert found.plan.recompute != "selective" or (found.plan.recompute_modules == kept)


@pytest.mark.parametrize("repeated, named", [(2, True), (4, False), (8, False)])
def test_megatron_repeats_as_many_layers_of_each_virtual_stage(repeated, named):
    """Megatron-Core counts --recompute-num-layers from the first layer of each chunk of
    layers: of 8 layers a stage in 4 chunks a plan may repeat 4 or all 8, and not 2."""
    pins = dict(tp=2, pp=4, vpp=4, micro_batch=1, schedule="interleaved", sharding="zero1")
    plan = pins | {"recompute": "full", "recompute_layers": repeated}
    for to in ("megatron", "megatron-bridge"):
        found = express(assess(design(spec(plan=plan))), 0, FRAMEWORKS[to], "torchrun")
        assert ("recompute_layers" in {g.field for g in found.gaps}) == named
        launched = found.plan.recompute_layers
        assert launched in (0, 4, 8) and (named or launched == repeated)


@pytest.mark.parametrize("to", ["torchtitan", "maxtext"])
@pytest.mark.parametrize("tp, kv_heads", [(8, 4), (4, 4), (8, 1)])
def test_every_rank_has_whole_key_value_heads(to, tp, kv_heads):
    """torchtitan 0.3, models/common/decoder.py: "tensor_parallel_degree must divide n_kv_heads";
    MaxText 0.2, layers/attentions.py: "Attention heads are atomic under tensor parallelism"."""
    pins = dict(tp=tp, pp=1, sharding="zero3", recompute="full")
    data = spec(model=SMALL | dict(kv_heads=kv_heads), plan=pins)
    found = express(assess(design(data)), 0, FRAMEWORKS[to], "torchrun")
    assert ("tp" in {g.field for g in found.gaps}) == (kv_heads % tp > 0)
    assert kv_heads % found.plan.tp == 0


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("torchtitan", "SelectiveAC.Config("),
        ("maxtext", 'remat_policy: "minimal'),
        ("megatron", ""),
        ("megatron-bridge", ""),
        ("fsdp", ""),
        ("deepspeed", ""),
    ],
)
def test_operations_that_are_kept_by_a_list_have_words_or_are_named_as_missing(to, words):
    """torchtitan's SelectiveAC keeps listed operations and MaxText's policy names; Megatron-LM's
    --recompute-modules wants at least one module, and without any repeats nothing."""
    data = PLANS["selective-of-operations"]
    launch = express(assess(design(data, name="x")), 0, framework(to), "torchrun")
    assert ("recompute" in {gap.field for gap in launch.gaps}) == (not words)
    if words:
        assert launch.plan.recompute == "selective" and words in kit_of(launch)[FILE[to]]
    else:
        assert launch.plan.recompute != "selective"
        assert "recompute-modules" not in kit_of(launch)[FILE[to]]


def test_the_command_writes_a_kit_and_says_what_is_missing(tmp_path, capsys):
    file = tmp_path / "d.yaml"
    design(PLANS["dualpipe"], name="x").write(file)
    assert main(["launch", str(file), "--to", "megatron", "-o", str(tmp_path / "kit")]) == 0
    out = capsys.readouterr()
    written = [path for path in (tmp_path / "kit").rglob("*") if path.is_file()]
    assert f"Wrote {len(written)} files" in out.out
    assert "schedule dualpipe" in out.err
    assert "step time" in out.err
    assert (tmp_path / "kit" / "launch.sh").stat().st_mode & 0o111
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.yaml", "kit"]


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_kit_written_again_leaves_nothing_of_its_earlier_form(tmp_path, capsys):
    """A second phase that the design no longer has goes, and so does the script of another
    scheduler; the folder of a run stays."""
    folder, file = tmp_path / "kit", tmp_path / "d.yaml"
    one = spec(model=SMALL, devices=16)
    half = {**one["job"], "tokens": one["job"]["tokens"] / 2}
    two = {**one, "job": {"phases": [half, half | {"seq_len": 2 * half["seq_len"]}]}}
    for data, on in ((two, "slurm"), (one, "torchrun")):
        design(data, name="x").write(file, force=True)
        assert main(["launch", str(file), "--to", "fsdp", "--on", on, "-o", str(folder)]) == 0
        listed = json.loads((folder / "plan.json").read_text())["files"]
        assert {*listed} == files_in(folder) - {"run/log"}
        if data is two:
            assert any(name.startswith("phase-") for name in listed)
            (folder / "run").mkdir()
            (folder / "run" / "log").write_text("step 1")
    assert not [*folder.glob("phase-*")] and not (folder / "job.sbatch").exists()
    assert (folder / "run" / "log").read_text() == "step 1"


@pytest.mark.parametrize("change", [{"name": "another"}, {"to": "megatron"}], ids=lambda c: [*c][0])
def test_a_folder_with_another_kit_is_refused(tmp_path, capsys, change):
    """Files of two kits in one folder would be started together."""
    folder, file = tmp_path / "kit", tmp_path / "d.yaml"
    for way in ({}, change):
        named = {"name": "one", "to": "fsdp"} | way
        design(spec(model=SMALL, devices=16), name=named["name"]).write(file, force=True)
        call = ["launch", str(file), "--to", named["to"], "-o", str(folder)]
        code, before = main(call), files_in(folder)
        assert code == (2 if way else 0)
    err = capsys.readouterr().err
    assert "holds the kit of 'one' for fsdp; allowed: another folder" in err
    assert files_in(folder) == before == {*json.loads((folder / "plan.json").read_text())["files"]}


def test_a_list_of_files_that_somebody_else_wrote_removes_nothing_outside(tmp_path, small):
    """plan.json is a file in a user's folder: what it names above the folder stays."""
    folder, other = tmp_path / "kit", tmp_path / "precious"
    other.write_text("x")
    write(kits(small, "fsdp"), folder)
    plan = json.loads((folder / "plan.json").read_text())
    for names in (["../precious", str(other)], 3, [None]):
        (folder / "plan.json").write_text(json.dumps(plan | {"files": names}))
        write(kits(small, "fsdp"), folder)
        assert other.read_text() == "x"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (spec(plan=dict(tp=1, pp=1, sharding="none", offload="none")), 3),
        (spec(job=dict(tokens=1e17)), 3),
        (
            {
                "model": {"size": 1e12},
                "cluster": {"accelerator": "v100-16-pcie", "devices": 8, "devices_per_node": 8},
                "job": {"precision": "fp16"},
            },
            4,
        ),
        (spec(plan=dict(tp=7)), 2),
    ],
)
def test_nothing_is_written_of_what_cannot_run(tmp_path, capsys, data, code):
    """A pinned plan that does not fit, a run of centuries, a model that no plan holds, a wrong
    file."""
    file = tmp_path / "d.yaml"
    file.write_text(yaml.safe_dump(data))
    assert main(["launch", str(file), "--to", "megatron", "-o", str(tmp_path / "kit")]) == code
    assert [p.name for p in tmp_path.iterdir()] == ["d.yaml"]
    assert capsys.readouterr().err.strip()


@pytest.mark.parametrize(
    "limit",
    [dict(deadline_days=0.01), dict(budget_usd=1.0), dict(min_mfu=0.9), dict(min_goodput=0.99999)],
)
def test_a_plan_that_can_run_has_a_kit_though_it_misses_a_limit(tmp_path, capsys, limit):
    file = tmp_path / "d.yaml"
    file.write_text(yaml.safe_dump(spec(constraints=limit)))
    assert main(["launch", str(file), "--to", "megatron", "-o", str(tmp_path / "kit")]) == 0
    warnings = capsys.readouterr().err.strip().splitlines()
    assert len([line for line in warnings if "constraint violated: " in line]) == 1
    assert (tmp_path / "kit" / "launch.sh").exists()


def test_a_run_that_makes_no_sense_has_a_kit_when_that_is_said(tmp_path, capsys):
    file = tmp_path / "d.yaml"
    file.write_text(yaml.safe_dump(spec(job=dict(tokens=1e17)) | {"confirm": ["job.tokens"]}))
    call = ["launch", str(file), "--to", "megatron", "-o", str(tmp_path / "kit")]
    assert main(call) == 3
    assert "--anyway" in capsys.readouterr().err
    assert main([*call, "--anyway"]) == 0
    assert "makes no sense" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--to", "megatrom", "-o", "k"], ["--to", "fsdp", "--on", "pbs", "-o", "k"], ["--to", "fsdp"]],
)
def test_a_wrong_call_ends_with_two(tmp_path, capsys, arguments):
    file = tmp_path / "d.yaml"
    file.write_text(yaml.safe_dump(PLANS["zero3"]))
    assert main(["launch", str(file), *arguments]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_plan_that_no_framework_plan_can_replace_is_refused_with_the_reason():
    a = assess(design(PLANS["cp-gather"], name="long"))
    with pytest.raises(Inexpressible, match="cp 4.*every rank holds whole sequences"):
        kits(a, "fsdp")


def test_what_has_too_few_micro_batches_for_stages_is_trained_without_them():
    """torchtitan's stages want as many micro-batches: 17 of them on ten, as the search has it for
    70 sequences on 136 devices, have no words, and one stage has."""
    data = {
        "model": "phi-2",
        "cluster": {"accelerator": "b200", "devices": 136},
        "job": {"seq_len": 128, "global_batch": 70},
        "plan": {"micro_batch": 1},
    }
    one = assess(design(data))
    assert one.plan["pp"] > one.plan["grad_accum"]
    launch = express(one, 0, framework("torchtitan"), "torchrun")
    assert launch.plan.pp == 1
    assert "pp" in {gap.field for gap in launch.gaps}


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
    monkeypatch.undo()
    assert {p.name: p.read_bytes() for p in kit.iterdir() if p.is_file()} == before
    move = os.rename

    def stuck(a, b):
        if str(b) == str(kit / "trainer.py"):
            raise OSError(5, "Input/output error")
        return move(a, b)

    monkeypatch.setattr(os, "rename", stuck)
    with pytest.raises(ValueError, match="Input/output error"):
        other = {k: "other\n" for k in files if k != "plan.json"}
        write(files | other | {"new.txt": "new\n"}, kit)
    assert {p.name: p.read_bytes() for p in kit.iterdir() if p.is_file()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["kit"]


def test_a_run_beside_the_kit_is_left_alone(tmp_path, plain):
    """Checkpoints below the kit's folder are neither copied nor moved when the kit is written
    again."""
    write(kits(plain, "fsdp"), tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint").write_text("terabytes")
    inode = (tmp_path / "run" / "checkpoint").stat().st_ino
    write(kits(plain, "fsdp", "slurm"), tmp_path)
    assert (tmp_path / "run" / "checkpoint").stat().st_ino == inode
    assert (tmp_path / "job.sbatch").stat().st_mode & 0o111


def test_the_nearest_plan_costs_what_assessing_it_says():
    a = assess(design(PLANS["dense-pp"], name="x"))
    found = json.loads(kits(a, "fsdp")["plan.json"])
    assert {g["field"] for g in found["not_expressed"]} >= {"tp", "pp", "sharding"}
    p = found["plan"]
    pins = (
        {k: p[k] for k in ("tp", "pp", "cp", "dp", "sharding", "micro_batch", "recompute")}
        | {k: p[k] for k in ("recompute_layers",) if p[k]}
        | ({"shard_group": p["shard_group"]} if p["sharding"] == "hsdp" else {})
    )
    again = assess(design(PLANS["dense-pp"] | {"plan": pins}, name="x"))
    assert again.step_s == pytest.approx(found["step_s"], rel=1e-9)
    assert found["not_expressed"][0]["cost"].startswith(
        f"{again.step_s / a.step_s - 1:+.1%} step time"
    )


@pytest.mark.parametrize(
    ("name", "to"), [("gpt-3-175b-64-a100", "torchtitan"), ("mixtral-8x22b-128-h100", "fsdp")]
)
def test_a_design_is_the_same_after_its_kit(name, to):
    """A nearest plan and the rungs of a ladder are other designs."""
    written = Design.read(ROOT / "gallery" / "designs" / f"{name}.yaml")
    before = written.to_yaml()
    kits(assess(written), to, "slurm")
    assert written.to_yaml() == before


def test_phases_have_a_kit_each():
    data = spec(plan={})
    data["job"] = {
        "phases": [
            {"tokens": 1e11, "seq_len": 4096, "global_batch": 256},
            {"tokens": 1e9, "seq_len": 32768, "global_batch": 32, "plan": {"cp": 2}},
        ]
    }
    files = kits(assess(design(data, name="two")), "megatron")
    first, second = (
        dict(re.findall(r"^(--\S+) (\S+)$", files[k], re.M))
        for k in ("megatron.args", "phase-2/megatron.args")
    )
    assert first["--seq-length"] == "4096"
    assert second["--seq-length"] == "32768"
    assert second["--context-parallel-size"] == "2"
    assert "phase-2" in files["README.md"]


def test_devices_that_do_not_fill_the_last_node():
    a = assess(design(PLANS["thirteen-devices"], name="odd"))
    text = kits(a, "fsdp")["launch.sh"]
    given = json.loads(kits(a, "fsdp")["plan.json"])
    assert (
        given["nodes"] * 8
        >= given["devices"]
        == (given["nodes"] - 1) * given["devices_per_node"] + given["last_node"]
    )
    if given["last_node"] != given["devices_per_node"]:
        assert f"PER_NODE={given['last_node']}" in text


def test_state_arithmetic_is_that_of_the_papers():
    """Rajbhandari et al. 2020, figure 1: 7.5B parameters, 64 ranks, K = 12: 120, 31.4, 16.6 and 1.9
    GB."""
    for sharding, expected in (("none", 120.0), ("zero1", 31.4), ("zero2", 16.6), ("zero3", 1.9)):
        assert state_bytes("16-bit with master", sharding, 64, 7.5e9)[
            "total"
        ] / 1e9 == pytest.approx(expected, abs=0.05)
    assert (
        state_bytes("fp32 shards", "zero3", 64, 7.5e9)["total"]
        == state_bytes("16-bit with master", "zero3", 64, 7.5e9)["total"]
    )
    assert state_bytes("fp32 shards", "hsdp", 8, 8e9)["parameters"] == 4e9


@cache
def launches():
    """(launch plan, its kit) of frameworks whose files take a name in every place: shell, #SBATCH,
    YAML, JSON, Python."""
    out, small = (
        [],
        assess(
            design(
                spec(
                    model=SMALL, devices=16, plan=dict(tp=1, pp=1, sharding="none", micro_batch=2)
                ),
                name="small",
            )
        ),
    )
    for to, on in (
        ("ddp", "slurm"),
        ("megatron", "kubernetes"),
        ("torchtitan", "torchrun"),
        ("maxtext", "kubernetes"),
    ):
        launch = express(small, 0, framework(to), on)
        out.append((launch, kit_of(replace(launch, name="plainname", slug="plainname"))))
    return out


@pytest.mark.slow
@given(st.text(min_size=1, max_size=60).map(lambda s: s.strip()).filter(bool))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_hostile_name_stays_text(name):
    """Whatever the name: the shell, YAML, JSON, Python, #SBATCH and Markdown readers see what they
    see of a plain one."""
    hostile(name)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_made_to_break_out_stay_text(name):
    hostile(name)


def hostile(name):
    for launch, reference in launches():
        files = kit_of(replace(launch, name=name, slug=slug(name)))
        assert json.loads(files["plan.json"])["name"] == clean(name)
        for file, text in files.items():
            expected, lines, same = (
                reference[file].splitlines(),
                text.split("\n")[:-1],
                lambda s: s.replace("plainname", slug(name)),
            )
            assert all(c.isprintable() for line in lines for c in line.replace("\t", " ")), file
            assert len(lines) == len(expected), file
            if file.endswith((".sh", ".sbatch")):
                code = [
                    i
                    for i, line in enumerate(expected)
                    if not line.startswith("#") or line.startswith(("#SBATCH", "#!"))
                ]
                assert [lines[i] for i in code] == [same(expected[i]) for i in code], file
                assert all(line.startswith("#") for i, line in enumerate(lines) if i not in code), (
                    file
                )
                assert sum(line.startswith("#SBATCH") for line in lines) == sum(
                    line.startswith("#SBATCH") for line in expected
                )
            elif file.endswith(".py") and text != reference[file]:
                assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(reference[file]))
            elif file.endswith((".yaml", ".yml")):
                found, other = yaml.safe_load(text), yaml.safe_load(same(reference[file]))
                if "metadata" in found:
                    assert found["metadata"]["annotations"].pop("scantling/design") == clean(name)
                    other["metadata"]["annotations"].pop("scantling/design")
                assert found == other
            elif file.endswith(".md"):
                shape = [re.match(r"(#+ |\||\d+\. |- |```)?", line).group(1) for line in lines]
                assert shape == [
                    re.match(r"(#+ |\||\d+\. |- |```)?", line).group(1) for line in expected
                ], file
                assert not re.search(r"(?<!\\)<", lines[0])


@pytest.mark.parametrize(
    "folder",
    ["with space", "quo'te", "dollar $(touch pwned) `id`", "semi;colon&", "-dash", 'new"quote'],
)
def test_a_kit_starts_from_any_folder(tmp_path, plain, folder):
    """launch.sh finds its files and starts torchrun with the plan's numbers, wherever the kit
    lies."""
    kit = tmp_path / folder
    write(kits(plain, "fsdp"), kit)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "torchrun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (bin_ / "torchrun").chmod(0o755)
    p = subprocess.run(
        ["bash", "./" + "launch.sh"],
        cwd=kit,
        capture_output=True,
        text=True,
        env={"PATH": f"{bin_}:/usr/bin:/bin", "MOCK_DATA": "1"},
    )
    assert p.returncode == 0, p.stderr
    words = p.stdout.splitlines()
    assert words[-1] == str(kit / "train_fsdp.py")
    assert "--nnodes=8" in words
    assert "--nproc-per-node=8" in words
    assert sorted(x.name for x in tmp_path.iterdir()) == sorted(["bin", folder])


@pytest.mark.parametrize(
    ("to", "plan", "first", "others"),
    [
        ("megatron", "dense-tp", "0:3,7:3", "7:3"),  # print_rank_last of Megatron's training.py
        ("megatron-bridge", "dense-tp", "0:3,7:3", "7:3"),
        # get_metrics_rank of torchtitan: world_size // pp * (pp - 1)
        ("torchtitan", "dense-pp", "0:3", "0:3"),
        ("torchtitan", "zero3", "0:3", None),
        ("fsdp", "zero3", "0:3", None),
    ],
)
def test_the_loss_is_shown_by_the_rank_that_knows_it(tmp_path, to, plan, first, others):
    """Which ranks' lines torchrun shows on node 0 and on another."""
    write(kits(assess(design(PLANS[plan])), to), tmp_path / "kit")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "torchrun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (bin_ / "torchrun").chmod(0o755)
    for node, expected in ((0, first), (3, others)):
        p = subprocess.run(
            ["bash", str(tmp_path / "kit" / "launch.sh")],
            capture_output=True,
            text=True,
            env={
                "PATH": f"{bin_}:/usr/bin:/bin",
                "NODE_RANK": str(node),
                **dict.fromkeys(("MEGATRON_LM", "TOKENIZER"), "/m"),
                "MOCK_DATA": "1",
            },
        )
        assert p.returncode == 0, p.stderr
        shown = [w.removeprefix("--tee=") for w in p.stdout.splitlines() if w.startswith("--tee")]
        assert shown == ([expected] if expected else [])


def test_megatron_arguments_reach_the_program_word_for_word(tmp_path):
    """xargs in launch.sh and shlex in Python read the file alike, layouts with bars and brackets
    included."""
    a = assess(design(PLANS["uneven-pp"], name="x"))
    kit = tmp_path / "kit"
    write(kits(a, "megatron"), kit)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "torchrun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (bin_ / "torchrun").chmod(0o755)
    p = subprocess.run(
        ["bash", str(kit / "launch.sh")],
        capture_output=True,
        text=True,
        env={"PATH": f"{bin_}:/usr/bin:/bin", "MEGATRON_LM": "/m", "MOCK_DATA": "1"},
    )
    assert p.returncode == 0, p.stderr
    expected = shlex.split((kit / "megatron.args").read_text())
    words = p.stdout.splitlines()
    at = words.index("/m/pretrain_gpt.py")
    assert words[at + 1 : at + 1 + len(expected)] == expected
    assert "|" in expected[expected.index("--pipeline-model-parallel-layout") + 1]
    assert words[-1] == "--mock-data"


@pytest.mark.parametrize("said", ["async", "userbuffer"])
def test_the_nearest_plan_keeps_the_switches_of_the_software(said):
    """What a design says of its software is no part of what a framework cannot express: the step
    of the nearest plan counts it."""
    plan = PLANS["dualpipe"]["plan"]
    steps = {}
    for overlap in ("none", said):
        a = assess(design(PLANS["dualpipe"] | {"plan": plan | {"tp_overlap": overlap}}, name="x"))
        launch = express(a, 0, framework("megatron"), "torchrun")
        assert launch.plan.schedule != "dualpipe"
        assert launch.assessment.design.data()["plan"]["tp_overlap"] == overlap
        steps[overlap] = launch.step_s
    assert steps[said] < steps["none"]


DISPATCH = "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend"
SWITCHES = {
    "DeepEP": ({}, f"{DISPATCH} deepep"),
    "HybridEP of a rack": (
        {
            "cluster": {
                "accelerator": "gb200-nvl72",
                "devices": 64,
                "devices_per_node": 4,
                "scale_up_domain": 64,
            }
        },
        f"{DISPATCH} hybridep",
    ),
    "a tray of a rack, which Bridge starts with no DeepEP": (
        {"cluster": {"accelerator": "gb200-nvl72", "devices": 4}, "plan": {"ep": 4}},
        f"{DISPATCH} hybridep",
    ),
    "before Hopper": (
        {"cluster": {"accelerator": "a100-80gb", "devices": 64}},
        "--moe-token-dispatcher-type alltoall",
    ),
    "all-gather": (
        {"plan": {"moe_dispatcher": "allgather"}},
        "--moe-token-dispatcher-type allgather",
    ),
    "forced": ({"job": {"routing": "forced"}}, "--moe-router-force-load-balancing"),
    "two nodes": (
        {"plan": {"ep": 32}, "job": {"node_limit": 2}},
        "--moe-router-num-groups 4 --moe-router-group-topk 2",
    ),
    "capacity": (
        {"plan": {"moe_dispatcher": "alltoall"}, "job": {"capacity_factor": 1.25}},
        "--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity",
    ),
    "beside": (
        {"plan": {"moe_overlap": True, "recompute": "none"}},
        "--overlap-moe-expert-parallel-comm --delay-wgrad-compute",
    ),
    "graphs of layers": (
        {"plan": {"cuda_graphs": "layer", "recompute": "none"}},
        "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router",
    ),
    "user buffers": (
        {"plan": {"tp": 2, "tp_overlap": "userbuffer"}},
        "--tp-comm-overlap --tp-comm-bootstrap-backend nccl",
    ),
    "gradients in 16 bit": ({"plan": {"gradients": "bf16"}}, "--grad-reduce-in-bf16"),
    "fp8 weights": (
        {"job": {"precision": "fp8"}, "stack": "megatron-core"},
        "--fp8-recipe delayed --fp8-param-gather",
    ),
}


@pytest.mark.parametrize("said", SWITCHES)
def test_a_kit_sets_what_the_step_counts_on(said):
    """Megatron-LM 0.19's flags (transformer_config.py): what a step is predicted with is trained
    with, and no flag is there that the prediction does not know."""
    more, flags = SWITCHES[said]
    base = spec(model=MLA, plan=dict(tp=1, pp=1, ep=8, etp=1, sharding="zero1"))
    merged = {k: v | more.get(k, {}) if isinstance(v, dict) else v for k, v in base.items()}
    a = assess(design(more | merged))
    text = " ".join(kits(a, "megatron")["megatron.args"].split())
    assert flags in text
    overrides = kits(a, "megatron-bridge")["bridge.overrides"]
    for flag in flags.split("--"):
        name, _, value = flag.strip().partition(" ")
        if name.startswith("moe"):
            value = value or "true"
            assert f"model.{name.replace('-', '_')}={value}" in overrides.replace("'", "")
    if said in ("DeepEP", "HybridEP of a rack", "before Hopper"):
        usual = ("num-groups", "capacity-factor", "force-load", "fp8-param")
        assert not [word for word in usual if word in text]


@pytest.mark.parametrize(
    ("plan", "backend"), [({"moe_dispatcher": "deepep"}, "deepep"), ({}, "standard")]
)
def test_torchtitan_sends_tokens_as_the_step_counts(plan, backend):
    """torchtitan 0.3 (models/common/config_utils.py, make_token_dispatcher_config): a token that
    travels once to each rank is DeepEP's, which is said to be needed; the rest is all-to-all."""
    base = dict(tp=1, pp=1, ep=8, etp=1, sharding="zero3")
    kit = kits(assess(design(spec(model=MOE, plan=base | plan, stack="torchtitan"))), "torchtitan")
    assert f'comm_backend="{backend}"' in kit["torchtitan_config.py"]
    assert ("needs DeepEP 2" in kit["assumptions.md"]) == bool(plan)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({}, "enable=True"),
        ({"compile": False}, "enable=False"),
        ({"tp": 2, "tp_overlap": "async"}, "enable=True, enable_async_tensor_parallel=True"),
    ],
)
def test_torchtitan_compiles_where_the_step_counts_on_it(plan, said):
    """torchtitan 0.3 compiles nothing unless told to (config/configs.py, CompileConfig); its own
    table of December 2024: 5,762 tokens/s in eager mode, 6,667 compiled."""
    base = dict(tp=1, pp=1, sharding="zero3")
    a = assess(design(spec(plan=base | plan, stack="torchtitan")))
    program = "".join(kits(a, "torchtitan")["torchtitan_config.py"].split())
    assert f"CompileConfig({said},)".replace(" ", "") in program
    if "compile" in plan:
        assert a.step_s > assess(design(spec(plan=base, stack="torchtitan"))).step_s


@pytest.mark.parametrize("to", FRAMEWORKS)
def test_one_device_has_a_kit(to):
    """No collective runs on it; the first run of a new user is often such a one."""
    one = dict(accelerator="h100-sxm", devices=1)
    job = dict(tokens=1e9, seq_len=2048, global_batch=8)
    a = assess(design(dict(scantling=1, model="llama-3.2-1b", cluster=one, job=job)))
    for on in ON:
        kit = kits(a, to, on)
        assert json.loads(kit["plan.json"])["devices"] == 1
        assert "Slow steps" not in kit["README.md"]


@pytest.mark.parametrize("to", ["fsdp", "ddp", "deepspeed", "accelerate"])
def test_own_trainers_compile_where_the_step_counts_on_it(to):
    """Every block in place, as torchtitan does; experts in grouped products (torch.nn.functional's
    grouped_mm), as the step counts them."""
    sharding = dict(fsdp="zero3", ddp="none", deepspeed="zero1", accelerate="zero3")[to]
    base = dict(tp=1, pp=1, ep=1, sharding=sharding)
    for eager in (False, True):
        plan = base | ({"compile": False} if eager else {})
        kit = kits(assess(design(spec(model="llama-3.2-1b", plan=plan))), to)
        assert json.loads(kit["plan.json"])["train"]["eager"] == eager
        assert (
            "COMPILE=1 compiles each" in kit["README.md"]
            if eager
            else "COMPILE=0" in kit["README.md"]
        )
        trainer = next(text for name, text in kit.items() if name.startswith("train_"))
        assert "prepare(model.blocks" in trainer
        assert "F.grouped_mm" in kit["model.py"]


@pytest.mark.parametrize(("to", "sharding"), [("fsdp", "zero3"), ("ddp", "none")])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_trainer_reads_the_plan_that_plan_json_holds(to, sharding, compiled):
    """A value that is no literal of Python ends the program at its first line."""
    plan = dict(tp=1, pp=1, sharding=sharding, compile=compiled)
    kit = kits(assess(design(spec(model=SMALL, plan=plan))), to)
    held = json.loads(kit["plan.json"])
    read = {
        line.targets[0].id: line.value
        for line in ast.parse(kit[FILE[to]]).body
        if isinstance(line, ast.Assign)
    }
    assert ast.literal_eval(read["PLAN"]) == held["train"]
    assert held["shape"].items() <= ast.literal_eval(read["MODEL"]).items()


@pytest.mark.parametrize("value", [np.array(1.0), np.float64(2.0), {"a": [math.inf]}, math.nan])
def test_no_value_is_written_that_python_does_not_read_back(value):
    with pytest.raises(ValueError):
        py(value)


@pytest.mark.parametrize(
    ("chip", "line", "others"),
    [
        ("h100-sxm", '"maxtext[cuda12]==0.2.5"', "tpu]"),
        ("tpu-v5p", '"maxtext[tpu]==0.2.5"', "cuda12"),
        ("mi300x", "jax is the ROCm build", "cuda12"),
    ],
)
def test_maxtext_is_installed_for_its_devices(chip, line, others):
    """Extras of maxtext 0.2.5: cuda12, tpu, docs, runner, tpu-post-train."""
    data = spec(model=SMALL, cluster=dict(accelerator=chip, devices_per_node=4), devices=16)
    page = kits(assess(design(data, name="x")), "maxtext")["README.md"]
    assert line in page and others not in page
    assert "reason is in README" not in "".join(kits(assess(design(data)), "maxtext").values())


def test_a_kit_sets_what_the_recipe_of_its_release_sets():
    """Megatron-Bridge at release 26.08, perf_recipes/qwen/common.py and qwen/gb200/qwen3_moe.py:
    graphs of the whole iteration, HybridEP, all-to-all beside, attention in 8 bit, paged rows of
    experts, and the variables that these read. Megatron-LM's parser has no option for the
    attention (its arguments.py leaves fp8_dot_product_attention out): its guide says so."""
    a = assess(Design.read(ROOT / "gallery" / "designs" / "qwen3-235b-a22b-256-gb200.yaml"))
    bridge, lm = (kits(a, to) for to in ("megatron-bridge", "megatron"))
    said = dict(line.split("=", 1) for line in bridge["bridge.overrides"].splitlines())
    recipe = {
        "model.moe_flex_dispatcher_backend": "'hybridep'",
        "model.cuda_graph_impl": "'full_iteration'",
        "rng.te_rng_tracker": "true",
        "model.moe_paged_stash": "true",
        "model.moe_expert_rank_capacity_factor": "1.5",
        "model.use_transformer_engine_op_fuser": "true",
        "model.moe_mlp_glu_interleave_size": "32",
        "mixed_precision.fp8_dot_product_attention": "true",
        "model.overlap_moe_expert_parallel_comm": "true",
        "model.delay_wgrad_compute": "true",
        "model.overlap_p2p_comm": "true",
    }
    assert {k: said.get(k) for k in recipe} == recipe
    set_ = {v["name"]: v["value"] for v in json.loads(bridge["plan.json"])["environment"]}
    variables = {
        "CUDA_DEVICE_MAX_CONNECTIONS": "32",
        "NCCL_GRAPH_REGISTER": "0",
        "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN": "32",
        "NVLINK_DOMAIN_SIZE": "72",
        "USE_MNNVL": "1",
        "NVTE_CUTEDSL_FUSED_GROUPED_MLP": "1",
    }
    assert {k: set_.get(k) for k in variables} == variables
    told = {each.field: each.value for each in a.assumed}  # and the design says what it counts on
    assert (told["plan.cuda_graphs"], told["plan.moe_overlap"]) == ("full", True)
    assert "not set here" not in bridge["assumptions.md"]
    assert "attention in 8 bit, for which Megatron-LM has no flag" in lm["assumptions.md"]
    assert "fp8-dot-product" not in lm["megatron.args"] + lm["assumptions.md"]


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        (
            dict(sharding="zero3", moe_overlap=True, recompute="none"),
            "all-to-all beside another micro-batch",
        ),
        (dict(recompute="full", cuda_graphs="layer"), "graphs of attention and router"),
        (dict(sharding="zero3", cuda_graphs="full"), "graphs of the whole iteration"),
        (dict(cuda_graphs="full"), "graphs of the whole iteration"),
    ],
)
def test_what_megatron_core_does_not_take_is_named_and_not_set(plan, word):
    """transformer_config.py of Megatron-Core 0.19.2: no graphs of layers under full recompute;
    graphs of a whole iteration with experts need rows that are bounded (HybridEP). Its FSDP with
    either is not judged here."""
    base = dict(tp=1, pp=1, ep=8, etp=1, sharding="zero1")
    a = assess(design(spec(model=MLA, plan=base | plan), name="x"))
    for to, file in (("megatron", "megatron.args"), ("megatron-bridge", "bridge.overrides")):
        files = kits(a, to)
        line = next(x for x in files["assumptions.md"].splitlines() if "not set here" in x)
        assert word in line
        words = re.findall(r"cuda.graph.impl|overlap.moe.expert.parallel", files[file])
        assert not words


@pytest.mark.parametrize("plan", [dict(pp=2, vpp=1), dict(recompute="full")])
def test_no_step_counts_on_an_exchange_that_megatron_core_does_not_lay(plan):
    """Its transformer_config.py: overlap_moe_expert_parallel_comm takes virtual stages where there
    is a pipeline, and no full recompute."""
    base = dict(tp=1, pp=1, ep=8, etp=1, sharding="zero1", recompute="none") | plan
    with_, without = (
        assess(design(spec(model=MLA, plan=base | {"moe_overlap": on}, stack="megatron-core")))
        for on in (True, False)
    )
    assert with_.step_s == without.step_s
    assert "overlap-moe" not in kits(with_, "megatron")["megatron.args"]
    free = base | dict(pp=1, recompute="none", moe_overlap=True)
    beside = assess(design(spec(model=MLA, plan=free, stack="megatron-core")))
    assert beside.chosen.case.software.ep_overlap == 1


@pytest.mark.parametrize(
    ("to", "option"),
    [
        ("megatron", "--moe-router-force-load-balancing"),
        ("megatron-bridge", "model.moe_router_force_load_balancing"),
        ("torchtitan", ""),
    ],
)
def test_a_kit_that_trains_no_router_says_so_before_the_run(to, option):
    """Megatron-Core's transformer_config.py: moe_router_force_load_balancing, "with random logits
    ... only for benchmark"."""
    plan = dict(tp=1, pp=1, ep=8, etp=1, sharding="zero3")
    for routing in ("forced", "natural"):
        a = assess(design(spec(model=MOE, plan=plan, job=dict(routing=routing)), name="x"))
        kit = kits(a, to)
        set_ = bool(option) and option in kit[FILE[to]]
        assert set_ == (option != "" and routing == "forced")
        assert ("trains no router" in kit["README.md"]) == set_
        assert ("Uneven experts" in kit["README.md"]) != set_


def test_deepseek_v3_is_limited_to_four_of_eight_nodes():
    """DeepSeek-V3 (arXiv 2412.19437, section 2.1.2): each token is sent to at most four nodes;
    Megatron-LM's own flags for it: 8 groups, 4 of them."""
    data = spec(
        model="deepseek-v3",
        devices=1024,
        plan=dict(tp=1, pp=16, ep=64),
        job=dict(global_batch=4096),
    )
    text = kits(assess(design(data)), "megatron")["megatron.args"]
    assert "--moe-router-num-groups 8\n--moe-router-group-topk 4\n" in text


@pytest.mark.parametrize("to", FRAMEWORKS)
def test_documents_that_a_loader_does_not_keep_apart_are_refused(to):
    """MaxText packs with segments on TPUs (configs/base.yml: packing); Megatron's, torchtitan's
    and the kit's own loaders let attention run over the whole sequence."""
    chip = "tpu-v5p" if to == "maxtext" else "h100-sxm"
    data = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": chip, "devices": 64},
        "job": {"tokens": 1e11, "seq_len": 8192, "global_batch": 256, "document_tokens": 1024},
    }
    a = assess(design(data))
    if to == "maxtext":
        assert "packing: true" in kits(a, to)["maxtext.yml"]
    else:
        with pytest.raises(Inexpressible, match="job.document_tokens 1024"):
            kits(a, to)


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


def test_each_fabric_has_its_own_variables_and_no_others(small):
    """NCCL's guide: time-outs and queue pairs belong to verbs, rails to InfiniBand with a NIC a
    device; libfabric to EFA; nothing between nodes where there is one."""
    from scantling_kits.env import environment, site

    launch = express(small, 0, framework("fsdp"), "torchrun")
    seen = {}
    for name in ("ib-ndr", "rocev2-400", "efa-v2", "gcp-tcpxo", "slingshot11", "eth-100"):
        there = replace(launch, cluster=replace(launch.cluster, scale_out=name))
        seen[name] = {v.name for v in environment(there)} & {
            "NCCL_IB_TIMEOUT",
            "NCCL_CROSS_NIC",
            "NCCL_IB_QPS_PER_CONNECTION",
            "FI_PROVIDER",
            "FI_EFA_USE_HUGE_PAGE",
            "NCCL_NET",
            "FI_CXI_ATS",
        }
        assert ("NCCL_IB_HCA" in {row[0] for row in site(there)}) == (
            name in ("ib-ndr", "rocev2-400")
        )
    assert seen == {
        "ib-ndr": {"NCCL_IB_TIMEOUT", "NCCL_CROSS_NIC"},
        "rocev2-400": {"NCCL_IB_TIMEOUT", "NCCL_IB_QPS_PER_CONNECTION"},
        "efa-v2": {"FI_PROVIDER", "FI_EFA_USE_HUGE_PAGE"},
        "gcp-tcpxo": {"NCCL_NET"},
        "slingshot11": {"NCCL_NET", "FI_CXI_ATS", "NCCL_CROSS_NIC"},
        "eth-100": set(),
    }
    alone = replace(launch, devices=8)
    assert not {v.name for v in environment(alone)} & set().union(*seen.values())
    assert site(alone) == []
    full = replace(launch, memory=replace(launch.memory, total=0.95 * launch.memory.capacity))
    assert {v.value for v in environment(full) if v.name == "NCCL_NVLS_ENABLE"} == {"0"}


@pytest.mark.parametrize(
    ("chip", "to"),
    [
        *(("tpu-v5p", to) for to in FRAMEWORKS if to != "maxtext"),
        ("trn2", "fsdp"),
        ("gaudi3", "maxtext"),
    ],
)
def test_a_framework_that_does_not_run_on_the_chip_is_refused(chip, to):
    a = assess(
        design(spec(cluster=dict(accelerator=chip, devices=64, devices_per_node=4)), name="job")
    )
    with pytest.raises(Inexpressible, match="runs on CUDA devices and ROCm devices") as e:
        kits(a, to)
    assert ("--to maxtext" in str(e.value)) == (chip == "tpu-v5p")


def test_a_tpu_kit_speaks_of_tpus_alone():
    files = kits(
        assess(
            design(
                spec(cluster=dict(accelerator="tpu-v5p", devices=64, devices_per_node=4)),
                name="job",
            )
        ),
        "maxtext",
        "kubernetes",
    )
    text = "".join(t for name, t in files.items() if name != "check_ladder.py")
    # NCCL's flight recorder; a save may be in flight, and a node is asked before it, on any device
    recorder = r"(?<!one in )(?<!pre)flight"
    assert not re.findall(rf"NCCL|CUDA|torch|expandable|gpus-per-node|Slurm|{recorder}", text)
    assert "LIBTPU_INIT_ARGS" in files["env.sh"]


def test_tensor_parallelism_below_blackwell_orders_its_launches():
    old = assess(design(PLANS["dense-tp"], name="h"))
    new = assess(
        design(
            PLANS["dense-tp"]
            | {"cluster": {"accelerator": "b200", "devices": 64, "devices_per_node": 8}},
            name="b",
        )
    )
    found = [
        {v["name"]: v["value"] for v in json.loads(kits(a, "megatron")["plan.json"])["environment"]}
        for a in (old, new)
    ]
    assert [x["CUDA_DEVICE_MAX_CONNECTIONS"] for x in found] == ["1", "32"]
