"""Additions from outside the package, each as small as CONTRIBUTING.md says: a row, a file, a
formula; and the design that uses it, through verdict, fixes, report, desk and kit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml
from scantling import assess

HERE = Path(__file__).parent
DESIGN = {
    "scantling": 1,
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e12, "seq_len": 8192, "global_batch": 256},
}


def run(extension: str | Path, *words: str, code: int = 0, **design) -> subprocess.CompletedProcess:
    """A Python with one of the extensions, on a design that stands on stdin."""
    done = subprocess.run(
        [sys.executable, *words],
        env=os.environ
        | {
            "SCANTLING_EXTENSIONS": str(HERE / extension),
            "PYTHONPATH": str(HERE / extension / "package"),
        },
        input=json.dumps(DESIGN | design),
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr[-2000:]
    return done


def driven(extension: str, folder: Path, framework: str = "", **design) -> dict:
    file = folder / "design.yaml"
    file.write_text(yaml.safe_dump(DESIGN | design))
    words = [str(HERE / "drive.py"), str(file), *[framework] * bool(framework)]
    return json.loads(run(extension, *words).stdout)


def field(desk: dict, name: str) -> dict:
    found = [control for control in desk["controls"] if control["field"] == name]
    assert found, name
    return found[0]


@pytest.mark.slow
def test_an_accelerator_is_one_row(tmp_path):
    """H20 with 141 GB: Hopper at 15 % of H100's peak, so a fifth of the H100s would do."""
    rows = (HERE / "accelerator" / "accelerators.csv").read_text().splitlines()
    assert len(rows) == 2 and len(list((HERE / "accelerator").iterdir())) == 1
    cluster = {"accelerator": "h20-141-sxm", "devices": 64}
    got = driven("accelerator", tmp_path, cluster=cluster, constraints={"deadline_days": 10})
    out = got["json"]
    assert out["verdict"] == "constraint-missed"
    assert out["memory_bytes"]["capacity"] <= 150e9
    assert 148e12 > out["model_tflops_per_device"] * 1e12 > 0.3 * 148e12
    changes = [fix["change"] for fix in out["nearest_fixes"] if fix["verdict"] == "feasible"]
    assert any("H200" in change or "devices" in change for change in changes), changes
    assert "H20 141GB SXM5" in got["report"]
    chip = field(got["desk"], "cluster.accelerator")
    assert chip["value"] == "h20-141-sxm"
    assert "h20-141-sxm" in {option["value"] for option in chip["options"]}
    # another design's fixes and comparisons offer it as they offer a shipped chip
    listed = json.loads(
        run("accelerator", "-m", "scantling", "catalogue", "accelerators", "--json").stdout
    )
    assert {row["id"] for row in listed} > {"h20-141-sxm", "h100-sxm"}


@pytest.mark.slow
def test_a_stack_is_one_file(tmp_path):
    assert len([p for p in (HERE / "stack").rglob("*") if p.is_file()]) == 1
    got = driven("stack", tmp_path, stack="litgpt", constraints={"min_mfu": 0.9})
    out = got["json"]
    assert out["verdict"] == "constraint-missed"
    assert (out["plan"]["sharding"], out["plan"]["recompute"]) == ("hsdp", "none")
    assumed = {row["field"]: row["why"] for row in out["assumed"]}
    assert "nobody has published a run of LitGPT" in assumed["stack"]
    assert out["nearest_fixes"]
    assert "litgpt" in got["report"]
    assert got["desk"]["inputs"]["stack"] == "litgpt"


@pytest.mark.parametrize(
    ("line", "field", "known"),
    [
        ("sharding: zeroo3", "sharding", "zero3"),
        ("offers: {recompute: [non]}", "offers", "none"),
        ("planned: {dedup_dispatched: 1}", "planned", "dedup_dispatch"),
        ("recovers: [in-plaice]", "recovers", "in-place"),
    ],
)
def test_a_word_that_no_stack_knows_is_refused_in_a_line(line, field, known, tmp_path):
    """Else the switch would be left as it is, and the values of an axis would be fewer."""
    (tmp_path / "stacks").mkdir()
    file = tmp_path / "stacks" / "litgpt.yaml"
    file.write_text(f"title: LitGPT\nsource: litgpt/pretrain.py\n{line}\n")
    refused = run(tmp_path, "-m", "scantling", "design", "-", code=2, stack="litgpt").stderr
    assert "Traceback" not in refused and f"litgpt.yaml: {field} knows no" in refused
    assert known in refused


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("flash_modern: 2.2", "a generation from 0 to 4"),
        ("flash: none", "a generation from 0 to 4"),
        ("software: {tuned: 1.1}", "a number from -1 to 1"),
        ("planned: {capacity_factor: none}", "a number from 0 to 1000"),
    ],
)
def test_a_switch_beyond_its_bounds_is_refused_in_a_line(line, allowed, tmp_path):
    """FlashAttention has generations, and an effort is untuned, usual or tuned: nothing between."""
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "litgpt.yaml").write_text(f"title: LitGPT\nsource: its code\n{line}\n")
    refused = run(tmp_path, "-m", "scantling", "design", "-", code=2, stack="litgpt").stderr
    assert "Traceback" not in refused and refused.rstrip().endswith(f"allowed: {allowed}")


@pytest.mark.parametrize(
    "text",
    [
        "title: [",
        "!!python/object/apply:os.system [touch CANARY]",
        "- a\n- b",
        "3",
        "",
        "title: LitGPT",
        "title: LitGPT\nsource: its code\nnames: 3",
        "title: LitGPT\nsource: its code\nplanned: [1]",
        "title: LitGPT\nsource: its code\noffers: {recompute: none}",
        "title: LitGPT\nsource: its code\nmxfp8_experts: {fused_norm: 1}",
        "title: LitGPT\nsource: its code\nformerly: {logit_bytes: 14}",
        "title: LitGPT\nsource: its code\nformerly: {logit_bytes: [{until: 2025}]}",
        "title: LitGPT\nsource: its code\nhalf_possible: perhaps",
    ],
)
def test_a_stack_that_is_none_is_refused_in_a_line(text, tmp_path):
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "litgpt.yaml").write_text(text)
    refused = run(tmp_path, "-m", "scantling", "catalogue", "stacks", code=2).stderr
    assert refused.startswith("scantling: ") and refused.count("\n") == 1
    assert "litgpt.yaml: " in refused


@pytest.mark.parametrize("name", ["accelerators.csv", "stacks/litgpt.yaml"])
def test_an_extension_that_is_no_file_is_refused_at_once(name, tmp_path):
    (tmp_path / "stacks").mkdir()
    os.mkfifo(tmp_path / name)
    kind = name.split(".")[0].split("/")[0]
    refused = run(tmp_path, "-m", "scantling", "catalogue", kind, code=2).stderr
    assert refused.count("\n") == 1 and f"{name}: is not a file" in refused


def test_a_folder_of_extensions_that_is_not_there_is_said_in_a_line(tmp_path):
    said = run(tmp_path / "nosuch", "-m", "scantling", "catalogue", "stacks").stderr
    assert said == f"scantling: SCANTLING_EXTENSIONS: {tmp_path / 'nosuch'} is not a folder\n"


@pytest.mark.slow
def test_a_constraint_is_a_field_a_row_and_its_formula(tmp_path):
    """A grant of 2 device-years, and a run of 64 devices for some 17 days."""
    got = driven("constraint", tmp_path, constraints={"max_device_years": 2})
    out = got["json"]
    spent = 64 * out["days"] / 365.25
    assert out["verdict"] == "constraint-missed" and spent > 2
    (miss,) = out["missed"]
    assert miss["field"] == "max_device_years" and miss["value"] == pytest.approx(spent)
    assert 0 <= miss["chance"] < 0.5
    assert out["asked"][0]["what"] == "device-years" and not out["asked"][0]["met"]
    assert out["limits"][0].startswith("device-years: ")
    eased = [fix for fix in out["can_do"] if "a grant of" in fix["change"]]
    assert eased and not eased[0]["missed"]
    assert eased[0]["set"]["constraints.max_device_years"] >= spent
    assert "device-years" in got["report"]
    assert field(got["desk"], "constraints.max_device_years")["value"] == "2"
    words = ("-m", "scantling", "design", "-", "--json")
    kept = json.loads(run("constraint", *words, constraints={"max_device_years": 2 * spent}).stdout)
    assert kept["verdict"] == "feasible" and kept["asked"][0]["met"]


@pytest.mark.slow
def test_a_block_kind_is_one_file(tmp_path):
    """Hyena in 22 of 32 layers: other parameters, a third of the attention, and no kit for it."""
    mixed = {"like": "llama-3.1-8b", "mixers": "22*hyena(taps=4)"}
    got = driven("block", tmp_path, model=mixed, constraints={"deadline_days": 3})
    out, usual = got["json"], assess(DESIGN | {"constraints": {"deadline_days": 3}}).as_dict(False)
    per_layer = (4 * 4096**2 + 4 * 4096) - (2 * 4096**2 + 2 * 4096 * 1024)
    assert out["params"] - usual["params"] == 22 * per_layer
    assert out["verdict"] == "constraint-missed" and out["nearest_fixes"]
    assert out["step_breakdown_s"]["attention"] / usual["step_breakdown_s"]["attention"] < 0.5
    assert "22*hyena(taps=4)" in got["report"]
    size = field(got["desk"], "model.size")
    assert size["value"] == out["params"]
    words = ("-m", "scantling", "design", "-", "--json")
    wrong = run("block", *words, code=2, model=mixed | {"mixers": "40*hyena"})
    assert wrong.stderr.startswith("scantling: ") and "mixers" in wrong.stderr
    alien = run("accelerator", *words, code=2, model=mixed)
    assert "hyena" in alien.stderr and len(alien.stderr.splitlines()) == 1


@dataclass(kw_only=True)
class TrainArgs:
    """litgpt/args.py, 0.5.12: the fields that `litgpt pretrain` reads under `train`."""

    save_interval: int | None = 1000
    log_interval: int = 1
    global_batch_size: int = 64
    micro_batch_size: int = 4
    lr_warmup_steps: int | None = 100
    epochs: int | None = None
    max_tokens: int | None = None
    max_steps: int | None = None
    max_seq_length: int | None = None
    tie_embeddings: bool | None = None
    max_norm: float | None = None
    min_lr: float = 6e-5

    def gradient_accumulation_iters(self, devices: int, num_nodes: int) -> int:
        """litgpt/args.py: batch of a device over its micro-batch, at least 1."""
        return self.global_batch_size // (devices * num_nodes) // self.micro_batch_size


def judge(kit: dict) -> dict:
    """litgpt.yaml as LitGPT reads it: the plan that it would run."""
    text = yaml.safe_load(kit["litgpt.yaml"])
    train = TrainArgs(**text.pop("train"))
    devices, nodes = text.pop("devices"), text.pop("num_nodes")
    assert text.keys() <= {"model_config", "precision", "resume", "seed", "out_dir", "data"}
    return {
        "dp": devices * nodes,
        "micro_batch": train.micro_batch_size,
        "grad_accum": train.gradient_accumulation_iters(devices, nodes),
        "layers": text["model_config"]["n_layer"],
    }


@pytest.mark.slow
def test_a_launch_framework_is_one_file_and_its_templates(tmp_path):
    got = driven("framework", tmp_path, "litgpt")
    plan = json.loads(got["kit"]["plan.json"])
    wanted = {k: plan["plan"][k] for k in ("dp", "micro_batch", "grad_accum")}
    assert judge(got["kit"]) == wanted | {"layers": 32}
    assert (plan["plan"]["sharding"], plan["plan"]["tp"]) == ("hsdp", 1)
    assert "litgpt pretrain" in got["kit"]["launch.sh"]
    assert "litgpt" in got["kit"]["README.md"]
    assert "litgpt" in got["frameworks_on_the_desk"]
    file = tmp_path / "design.yaml"
    words = ("-m", "scantling", "launch", str(file), "--to", "litgpt", "-o", str(tmp_path / "kit"))
    run("framework", *words)
    assert (tmp_path / "kit" / "litgpt.yaml").read_text() == got["kit"]["litgpt.yaml"]


def test_wrong_extensions_are_named():
    missing = run("nowhere", "-m", "scantling", "catalogue", "accelerators")
    assert "SCANTLING_EXTENSIONS: " in missing.stderr and "is not a folder" in missing.stderr
    unknown = subprocess.run(
        [sys.executable, "-m", "scantling", "catalogue", "accelerators"],
        capture_output=True,
        text=True,
    )
    assert unknown.returncode == 0 and not unknown.stderr


def test_a_chip_of_a_family_that_is_misspelt_is_refused(tmp_path):
    rows = (HERE / "accelerator" / "accelerators.csv").read_text()
    (tmp_path / "accelerators.csv").write_text(rows.replace(",hopper,", ",hoper,"))
    refused = run(tmp_path, "-m", "scantling", "catalogue", "accelerators", code=2).stderr
    assert "h20-141-sxm.family: 'hoper' is not allowed" in refused
    assert refused.strip().endswith("nearest: hopper") and "Traceback" not in refused


def test_a_chip_that_was_added_is_read_in_plain_words(tmp_path):
    """Its name is like none that a pattern has: XPU-9, xpu 9."""
    rows = (HERE / "accelerator" / "accelerators.csv").read_text()
    (tmp_path / "accelerators.csv").write_text(rows.replace("h20-141-sxm", "xpu-9"))
    for words in ("512 XPU-9", "64 nodes of 8 xpu 9", "512 XPU9 GPUs"):
        line = f"llama-3.1-8b on {words} for 2T tokens"
        done = run(tmp_path, "-m", "scantling", "init", "--text", line, "-o", "-")
        cluster = yaml.safe_load(done.stdout)["cluster"]
        assert (cluster["accelerator"], cluster["devices"]) == ("xpu-9", 512), words


@cache
def shipped() -> str:
    return run("nowhere", "-W", "ignore", "-m", "scantling", "catalogue", "accelerators").stdout


def test_nothing_is_added_where_no_folder_is_named():
    assert "h20-141-sxm" not in shipped() and "h100-sxm" in shipped()
