"""What a launch kit runs and what its design says are one answer, or the design says where not."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import scantling as sc
from scantling.catalogue.stacks import stack
from scantling.cli import texts
from scantling_kits import kits
from scantling_kits.budget import budget
from scantling_kits.expressible import express
from scantling_kits.frameworks import FRAMEWORKS
from scantling_kits.launched import launch_plan
from scantling_kits.misfits import hard_gaps
from scantling_kits.pages import kit as kit_of
from scantling_kits.preview import kit_gaps

DESIGNS = sorted((Path(__file__).parents[2] / "gallery/designs").glob("*.yaml"))
EXACT = 1e-9


@pytest.mark.parametrize("path", DESIGNS, ids=lambda p: p.stem)
def test_a_kit_without_gaps_has_the_step_days_and_cost_of_its_design(path):
    design = sc.Design.read(path)
    if not design.data()["job"].get("tokens") and "phases" not in design.data()["job"]:
        design = design.change({"job.tokens": 1e12})
    one = sc.assess(design)
    name = one.resolved.stack
    if not one.fits or name is None:
        assert one.as_dict(advice=False).get("kit") is None
        return
    lines, to = kit_gaps(one), stack(name).kit
    if not to:
        assert lines == [f"no launch kit starts {name}: the plan is not written out"]
    elif lines:
        assert all(line.startswith(f"{to} kit: ") for line in lines)
    else:
        launch = express(one, one.resolved.main, FRAMEWORKS[to], "torchrun")
        assert launch.step_s == pytest.approx(one.step_s, rel=EXACT)
        for figure in ("days", "cost_usd", "goodput"):
            own, theirs = vars(launch.assessment)[figure], vars(one)[figure]
            assert own == theirs or own == pytest.approx(theirs, rel=EXACT)


@pytest.mark.parametrize("phases", [1, 2])
def test_a_kit_leads_with_the_days_and_dollars_of_its_design(phases):
    """Mixtral on 512 MI300X: $211,582 on the kit, $255,000 in the design."""
    parts = [{"tokens": 1e12, "seq_len": 8192, "global_batch": 512}]
    parts.append({"tokens": 1e11, "seq_len": 32768, "global_batch": 128, "name": "long"})
    data = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm", "devices": 128},
        "stack": "megatron-core",
        "job": {"phases": parts[:phases]},
    }
    one = sc.assess(sc.Design.from_data(data))
    launch = express(one, one.resolved.main, FRAMEWORKS["megatron"], "torchrun")
    rows = dict(budget(launch, one.days * 86400))
    said = rows["likely, with failures and risks"]
    assert texts.run(one.as_dict(advice=False)).startswith(f"likely {said.partition(', for')[0]}")
    assert ("for all 2 phases" in said) == (phases == 2)
    assert "undisturbed by risks" in " ".join(rows)


PHASES = [
    {"tokens": 1.8e12, "seq_len": 8192, "global_batch": 512, "name": "short"},
    {"tokens": 2e11, "seq_len": 131072, "global_batch": 32, "name": "long"},
]


@pytest.mark.parametrize("plan", [{}, {"tp": 4, "sharding": "zero1"}], ids=["its own", "pinned"])
@pytest.mark.parametrize("to", ["megatron", "torchtitan"])
def test_the_kit_of_a_phase_expects_the_speed_of_that_phase(to, plan):
    """Rates and MFU go by the phase's own step, sequence and batch, in the pages and for the
    trainer that measures itself by them; the run's length is shared out by training time."""
    data = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm", "devices": 64},
        "job": {"phases": PHASES},
        "plan": plan,
    }
    one = sc.assess(sc.Design.from_data(data))
    for which, phase in enumerate(PHASES):
        launch = express(one, which, FRAMEWORKS[to], "slurm")
        figures = launch.figures
        tokens = phase["seq_len"] * phase["global_batch"]
        rate = figures.tokens_per_s_per_device
        assert rate * launch.step_s * launch.devices == pytest.approx(tokens, rel=EXACT)
        flops = figures.flops_per_token * rate / launch.cluster.accelerator.peak_flops("bf16")
        assert figures.mfu == pytest.approx(flops, rel=EXACT)
        assert figures.mfu_low < figures.mfu < figures.mfu_high
        files = kit_of(launch)
        assert f"Expect {rate:,.0f} tokens/s" in files["README.md"]
        assert json.loads(files["plan.json"])["train"]["flops_per_token"] == figures.flops_per_token
        assert ("INIT=" in files["README.md"]) == (which > 0)
        every = [
            chosen.step_s * chosen.phase.tokens / chosen.phase.global_batch / chosen.phase.seq_len
            for chosen in launch.assessment.phases  # a nearest plan's is of this phase alone
        ]
        share = every[which if len(every) > 1 else 0] / sum(every)
        assert launch.time_share == pytest.approx(share, rel=EXACT)


# stack, model, chip, devices, and what else job, plan and cluster say: where the fastest plan of
# all has no words in the kit
WRITTEN = [
    ("megatron-core", "qwen3-235b-a22b", "b200-sxm", 1536, {"global_batch": 3072}, {}, {}),
    ("megatron-core", "qwen3-32b", "h100-sxm", 768, {"seq_len": 16384}, {}, {}),
    (
        "megatron-core",
        "gpt-oss-120b",
        "b200-sxm",
        1536,
        {"precision": "nvfp4", "global_batch": 3072, "seq_len": 4096},
        {"keep_16bit": {"first": 4, "last": 8}},
        {},
    ),
    ("megatron-core", "llama-3.1-70b", "h200-sxm", 256, {"optimizer": "muon"}, {}, {}),
    ("megatron-core", "qwen3-235b-a22b", "gb200-nvl72", 288, {}, {}, {"sites": 2}),
    ("torchtitan", "llama-3.1-8b", "b200-sxm", 1024, {"global_batch": 1920}, {}, {"sites": 2}),
    ("torchtitan", "qwen3-30b-a3b", "h100-sxm", 96, {"global_batch": 768}, {}, {}),
    ("maxtext", "qwen3-30b-a3b", "tpu-v5p", 96, {"global_batch": 768}, {}, {}),
    ("pytorch-fsdp", "mixtral-8x7b", "h100-sxm", 96, {"global_batch": 4000}, {}, {}),
    ("hf-trainer", "mixtral-8x7b", "h200-sxm", 256, {}, {}, {}),
]


@pytest.mark.parametrize("row", WRITTEN, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_search_under_a_stack_finds_a_plan_that_its_kit_writes(row):
    name, model, chip, devices, job, plan, cluster = row
    far = {"site_rtt_ms": 5} if cluster else {}
    data = {
        "model": model,
        "cluster": {"accelerator": chip, "devices": devices, **cluster, **far},
        "stack": name,
        "job": {"tokens": 1e12, "seq_len": 8192, "global_batch": 512, **job},
        "plan": plan,
    }
    one = sc.assess(sc.Design.from_data(data))
    assert one.fits
    launch = launch_plan(one, FRAMEWORKS[stack(name).kit], "torchrun", one.resolved.main)
    assert [gap for gap in hard_gaps(launch) if gap.field in launch.plan.as_dict()] == []


BEGINS = {
    "megatron": "--pretrained-checkpoint /weights",  # training/checkpointing.py of 0.19.2
    "megatron-bridge": "checkpoint.pretrained_checkpoint='/weights'",  # CheckpointConfig of 0.6.2
    "maxtext": "load_parameters_path=/weights",  # MaxText's base.yml
}


@pytest.mark.parametrize("to", sorted(BEGINS))
def test_a_later_phase_begins_with_the_weights_that_init_names(tmp_path, to):
    """Each phase has steps and a RUN_DIR of its own: without a word for them it would begin from
    the seed."""
    parts = [{"tokens": 1e11, "seq_len": 4096, "global_batch": 512}]
    parts.append({"tokens": 1e10, "seq_len": 8192, "global_batch": 256, "name": "long"})
    data = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm", "devices": 8},
        "job": {"phases": parts},
    }
    files = kits(sc.assess(sc.Design.from_data(data)), to)
    assert "INIT" in files["README.md"].partition("## Phases")[2]
    later = next(name for name in files if name.startswith("phase-"))
    folder = later.partition("/")[0]
    assert "INIT=" in files[f"{folder}/README.md"]
    for name, text in files.items():
        if name.startswith(folder):
            (tmp_path / Path(name).name).write_text(text, encoding="utf-8")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("torchrun", "python3"):
        (tools / tool).write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
        (tools / tool).chmod(0o755)
    run = {"PREFLIGHT": "off", "MOCK_DATA": "1", "INIT": "/weights", "MEGATRON_LM": "/checkout"}
    out = subprocess.run(
        ["bash", tmp_path / "launch.sh"],
        env={**run, "PATH": f"{tools}:{os.environ['PATH']}", "RUN_DIR": str(tmp_path / "run")},
        capture_output=True,
        text=True,
        check=False,
    )
    logs = "".join(p.read_text(encoding="utf-8") for p in (tmp_path / "run").rglob("*.log"))
    assert BEGINS[to] in out.stdout + logs, out.stderr
