"""`scantling init`: what it reads from words, what it refuses, and the file that it writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from scantling.cli.app import main
from scantling.design.design import Design, DesignError
from scantling.design.draft import commented, draft
from scantling.plans.prepare import prepare
from scantling_brief.brief import read_brief
from scantling_brief.idle import idle
from scantling_brief.question_commands import answers

MOE = (
    "175B parameter MoE model with 96 layers. 1024x A100 80GB GPUs with 200Gbps InfiniBand "
    "RDMA. Must complete 1T tokens in 30 days. Maximum 5% overhead for checkpointing."
)
DENSE = "1T parameter dense model. 8x V100 16GB GPUs without NVLink. Must fit in memory."
PARAGRAPH = (
    "We are training a 500B parameter LLM using 3D parallelism across a cluster of 4096 "
    "H100 GPUs. The cluster must achieve a minimum of 60% Model Flops Utilization "
    "(MFU). We require "
    "synchronous training without blocking on I/O during checkpointing. Node failures "
    "must be tolerated without restarting the entire job from the last epoch, and the "
    "network must handle "
    "massive, frequent all-reduce traffic bursts."
)


def fields(text: str) -> dict:
    return dict(read_brief(text).fields)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        (
            "2T MoE in two datacenters each with 50,000 GB200",
            {"cluster.devices": 100_000, "cluster.sites": 2},
        ),
        (
            "70B, two data centers with 8192 H100 each",
            {"cluster.devices": 16_384, "cluster.sites": 2},
        ),
        ("70B, four pods of 4,096 H100", {"cluster.devices": 16_384, "cluster.pod_devices": 4096}),
        (
            "70B on H100, 12 pods of 8192 GPUs",
            {"cluster.devices": 98_304, "cluster.pod_devices": 8192},
        ),
    ],
)
def test_machines_counted_by_the_group(text, means):
    read = fields(text)
    assert {k: read.get(k) for k in means} == means


def test_requests_as_people_word_them():
    assert fields(MOE) == {
        "model.size": 175e9,
        "model.moe": True,
        "model.layers": 96,
        "cluster.accelerator": "a100-80-sxm",
        "cluster.devices": 1024,
        "cluster.scale_out": "ib-hdr",
        "job.tokens": 1e12,
        "constraints.deadline_days": 30,
        "constraints.max_checkpoint_overhead": 0.05,
    }
    assert fields(DENSE) == {
        "model.size": 1e12,
        "cluster.accelerator": "v100-16-pcie",
        "cluster.devices": 8,
    }
    assert fields(PARAGRAPH) == {
        "model.size": 500e9,
        "cluster.accelerator": "h100-sxm",
        "cluster.devices": 4096,
        "constraints.min_mfu": 0.6,
        "constraints.max_checkpoint_stall_s": 1.0,
        "constraints.survive": "node",
    }


def test_what_sets_nothing_is_said():
    why = {r.words: r.why for r in read_brief(PARAGRAPH).read if not r.field}
    assert any("parallelism" in said for said in why)
    assert any("all-reduce" in said for said in why)
    assert any("synchronous" in said for said in why)
    assert all(why.values())
    assert any("fit in memory" in r.words and not r.field for r in read_brief(DENSE).read)


BASE = "70B, 512 H100"


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        ("15T tokens", "job.tokens", 15e12),
        ("15.6 trillion tokens", "job.tokens", 15.6e12),
        ("300B tokens", "job.tokens", 300e9),
        ("1e12 tokens", "job.tokens", 1e12),
        ("tokens: 2T", "job.tokens", 2e12),
        ("1,000,000,000,000 tokens", "job.tokens", 1e12),
        ("in 30 days", "constraints.deadline_days", 30),
        ("within 6 weeks", "constraints.deadline_days", 42),
        ("deadline of 2 months", "constraints.deadline_days", 60),
        ("30-day deadline", "constraints.deadline_days", 30),
        ("under 72 hours", "constraints.deadline_days", 3),
        ("in at most 10 days", "constraints.deadline_days", 10),
        ("must finish within 1.5 days", "constraints.deadline_days", 1.5),
        ("in two weeks", "constraints.deadline_days", 14),
        ("within a month", "constraints.deadline_days", 30),
        ("one trillion tokens", "job.tokens", 1e12),
        ("RoCE 400G", "cluster.scale_out", "rocev2-400"),
        ("InfiniBand, NDR generation", None, None),
        ("InfiniBand with 400 Gb/s NDR ports", None, None),
        ("seq 8192", "job.seq_len", 8192),
        ("sequence length 8192", "job.seq_len", 8192),
        ("8k context", "job.seq_len", 8192),
        ("128K context window", "job.seq_len", 131072),
        ("seq_len=4096", "job.seq_len", 4096),
        ("context length of 32k", "job.seq_len", 32768),
        ("global batch of 16M tokens", "job.global_batch_tokens", 16e6),
        ("4M-token batch", "job.global_batch_tokens", 4e6),
        ("batch size 2048", "job.global_batch", 2048),
        ("global batch size: 1,536 sequences", "job.global_batch", 1536),
        ("bf16", "job.precision", "bf16"),
        ("FP8 training", "job.precision", "fp8"),
        ("bfloat16 mixed precision", "job.precision", "bf16"),
        ("mxfp8", "job.precision", "mxfp8"),
        ("AdamW optimizer", "job.optimizer", "adamw"),
        ("Muon", "job.optimizer", "muon"),
        ("at least 45% MFU", "constraints.min_mfu", 0.45),
        ("MFU ≥ 40%", "constraints.min_mfu", 0.4),
        ("60%+ MFU", "constraints.min_mfu", 0.6),
        ("MFU of at least 38 percent", "constraints.min_mfu", 0.38),
        ("MFU above 0.4", "constraints.min_mfu", 0.4),
        ("model FLOPs utilization (MFU) of at least 50%", "constraints.min_mfu", 0.5),
        ("checkpoint overhead below 3%", "constraints.max_checkpoint_overhead", 0.03),
        ("max 5% checkpointing overhead", "constraints.max_checkpoint_overhead", 0.05),
        ("≤ 2% checkpoint overhead", "constraints.max_checkpoint_overhead", 0.02),
        ("no more than 5 % overhead from checkpoints", "constraints.max_checkpoint_overhead", 0.05),
        ("checkpoint overhead must not exceed 5%", "constraints.max_checkpoint_overhead", 0.05),
        ("goodput of at least 90%", "constraints.min_goodput", 0.9),
        ("budget $10M", "constraints.budget_usd", 10e6),
        ("budget of 100 million dollars", "constraints.budget_usd", 100e6),
        ("for under $2.5 million", "constraints.budget_usd", 2.5e6),
        ("max power 30 MW", "constraints.max_power_mw", 30),
        ("$5M", "constraints.budget_usd", 5e6),
        ("power limit 500 kW", "constraints.max_power_mw", 0.5),
        ("at most 30 MW", "constraints.max_power_mw", 30),
        ("lose at most 30 minutes of work", "constraints.max_lost_work_s", 1800),
        ("recover within 15 minutes", "constraints.max_recovery_s", 900),
        ("recovery under 90s", "constraints.max_recovery_s", 90),
        ("asynchronous checkpointing", "constraints.max_checkpoint_stall_s", 1),
        ("non-blocking checkpoints", "constraints.max_checkpoint_stall_s", 1),
        ("checkpoint stall below 2 s", "constraints.max_checkpoint_stall_s", 2),
        ("survive rack failures", "constraints.survive", "rack"),
        ("tolerate the loss of a pod", "constraints.survive", "pod"),
        ("must tolerate node failures", "constraints.survive", "node"),
        ("fault-tolerant", "constraints.survive", "node"),
        ("16 spare nodes", "reliability.spares", 16),
        ("$2.50 per GPU-hour", "prices.usd_per_device_hour", 2.5),
        ("at $2/GPU/hour", "prices.usd_per_device_hour", 2),
        ("$0.08/kWh", "prices.usd_per_kwh", 0.08),
        ("PUE 1.2", "prices.pue", 1.2),
        ("200 Gb/s InfiniBand", "cluster.scale_out", "ib-hdr"),
        ("25 GB/s InfiniBand", "cluster.scale_out", "ib-hdr"),
        ("400Gbps IB", "cluster.scale_out", "ib-ndr"),
        ("NDR InfiniBand", "cluster.scale_out", "ib-ndr"),
        ("InfiniBand XDR", "cluster.scale_out", "ib-xdr"),
        ("400G RoCEv2", "cluster.scale_out", "rocev2-400"),
        ("RoCE at 200 Gbit/s", "cluster.scale_out", "rocev2-200"),
        ("EFA v3", "cluster.scale_out", "efa-v3"),
        ("Slingshot 11", "cluster.scale_out", "slingshot11"),
        ("100 GbE", "cluster.scale_out", "eth-100"),
        ("400 Gb/s InfiniBand per GPU", "cluster.scale_out_gbytes_per_s_per_device", 50),
        ("3.2 Tb/s InfiniBand per node", "cluster.scale_out_gbytes_per_s_per_device", 50),
        ("3:1 oversubscription", "cluster.oversubscription", 3),
        ("non-blocking fat tree", "cluster.oversubscription", 1),
        ("pods of 256 GPUs", "cluster.pod_devices", 256),
        ("2 TB of RAM per node", "cluster.host_memory_gb", 2000),
        ("30 TB NVMe per node", "cluster.nvme_gb", 30000),
        ("2 data centers", "cluster.sites", 2),
        ("two datacenters", "cluster.sites", 2),
        ("Lustre", "cluster.storage", "lustre"),
        ("TP=8", "plan.tp", 8),
        ("pp 16", "plan.pp", 16),
        ("8-way tensor parallelism", "plan.tp", 8),
        ("ZeRO-3", "plan.sharding", "zero3"),
        ("FSDP", "plan.sharding", "zero3"),
        ("DeepSpeed ZeRO stage 2", "plan.sharding", "zero2"),
        ("selective recomputation", "plan.recompute", "selective"),
        ("micro-batch size 2", "plan.micro_batch", 2),
        ("Megatron-LM", "stack", "megatron-core"),
        ("torchtitan", "stack", "torchtitan"),
        ("GQA with 8 kv heads", "model.kv_heads", 8),
        ("80 layers", "model.layers", 80),
        ("hidden size 8192", "model.hidden", 8192),
        ("64 attention heads", "model.heads", 64),
        ("vocab 128,256", "model.vocab", 128256),
        ("SwiGLU", "model.mlp", "swiglu"),
        ("64 experts", "model.experts", 64),
        ("top-2 routing", "model.top_k", 2),
        ("13B active", "model.active", 13e9),
    ],
)
def test_phrases(words, path, value):
    if path is None:
        brief = read_brief(f"{BASE}, {words}")
        assert brief.ignored or brief.unread
        return
    for text in (f"{BASE}, {words}", f"{words}. {BASE}", f"{BASE} and {words}."):
        assert fields(text)[path] == value, text


@pytest.mark.parametrize(
    ("words", "id", "devices"),
    [
        ("1024x A100 80GB", "a100-80-sxm", 1024),
        ("1,024 A100-80GB", "a100-80-sxm", 1024),
        ("A100 40GB x 64", "a100-40-sxm", 64),
        ("512 A100", "a100-80-sxm", 512),
        ("16,384 NVIDIA H100 GPUs", "h100-sxm", 16384),
        ("16K H100s", "h100-sxm", 16384),
        ("100K H100", "h100-sxm", 100_000),
        ("8× V100 32GB", "v100-32-sxm2", 8),
        ("8 V100 16GB GPUs without NVLink", "v100-16-pcie", 8),
        ("64 H100 PCIe", "h100-pcie", 64),
        ("2048 H800", "h800-sxm", 2048),
        ("512 H200s", "h200-sxm", 512),
        ("576 GB200 NVL72", "gb200-nvl72", 576),
        ("256 AMD MI300X", "mi300x", 256),
        ("4096 TPU v5p chips", "tpu-v5p", 4096),
        ("128 nodes of 8 H100", "h100-sxm", 1024),
        ("128 DGX H100 nodes", "h100-sxm", 1024),
        ("8 nodes with 8 A100 GPUs each", "a100-80-sxm", 64),
        ("32 nodes of 4x GB300", "gb300-nvl72", 128),
        ("256 Gaudi3", "gaudi3", 256),
        ("64 Trainium2", "trn2", 64),
        ("cluster of 4096 B200 GPUs", "b200-sxm", 4096),
        ("24K H100", "h100-sxm", 24_000),
        ("a 512-GPU H100 cluster", "h100-sxm", 512),
        ("128 nodes, 8x H100 per node", "h100-sxm", 1024),
        ("an H100 cluster of 512 GPUs", "h100-sxm", 512),
        ("eight nodes of 8 H100", "h100-sxm", 64),
    ],
)
def test_machines(words, id, devices):
    got = fields(f"70B dense on {words}")
    assert (got["cluster.accelerator"], got["cluster.devices"]) == (id, devices)


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ("Llama 3.1 405B", "llama-3.1-405b"),
        ("llama-3.1-70b", "llama-3.1-70b"),
        ("DeepSeek-V3", "deepseek-v3"),
        ("DeepSeek V3 671B/37B MoE", "deepseek-v3"),
        ("GPT-3 175B", "gpt-3-175b"),
        ("Mixtral 8x22B", "mixtral-8x22b"),
    ],
)
def test_catalogue_models_by_name(words, model):
    assert fields(f"{words} on 2048 H100, 1T tokens")["model"] == model


def test_a_named_model_with_another_depth():
    got = fields("llama-3.1-8b with 40 layers on 8 H100")
    assert got["model.like"] == "llama-3.1-8b"
    assert got["model.layers"] == 40
    assert "model" not in got


@pytest.mark.parametrize(
    ("text", "words", "unset"),
    [
        ("70B on 512 bananas", "512 bananas", "cluster.devices"),
        ("at most 40% MFU, 70B, 512 H100", "most 40% MFU", "constraints.min_mfu"),
        (
            "minimum 5% checkpoint overhead, 70B, 512 H100",
            "minimum 5% checkpoint overhead",
            "constraints.max_checkpoint_overhead",
        ),
        ("more than 30 days, 70B, 512 H100", "more than 30 days", "constraints.deadline_days"),
        ("70B on 512 H100 at 400gb/s", "400gb/s", "cluster.scale_out"),
        ("70B, 512 H100, 900 GB/s NVLink", "900 GB/s NVLink", "cluster.scale_out"),
        ("70B, 512 H100, EUR 5M", "EUR 5M", "constraints.budget_usd"),
        ("70B, 512 H100, 40% MFU", "40% MFU", "constraints.min_mfu"),
        ("70B, 512 H100, 300k tokens", "300k tokens", "job.tokens"),
        ("70B on 512 H100 and 512 A100", "512 A100", None),
        ("70B on 512 H100 except Sundays", "except Sundays", None),
        ("70B on 512 H100 in Norway", "Norway", None),
        ("70B on 512 H100, only at night", "night", None),
        ("70B with half of our 512 H100", "half", None),
        ("70B on 512 H100, muonclip", "muonclip", "job.optimizer"),
    ],
)
def test_what_decides_and_has_no_field_is_asked_about(text, words, unset):
    brief = read_brief(text)
    assert words in [u.words for u in brief.unread], brief.unread
    assert unset not in brief.fields
    assert all(u.question for u in brief.unread)


@pytest.mark.parametrize(
    ("text", "left", "unset"),
    [
        ("70B, 512 H100, not fp8", "not fp8", "job.precision"),
        ("full fine-tune of llama-3.1-8b on 8 H100, no LoRA", "no LoRA", None),
    ],
)
def test_what_decides_nothing_is_listed_and_sets_nothing(text, left, unset):
    brief = read_brief(text)
    assert left in [r.words for r in brief.ignored], brief
    assert unset not in brief.fields
    assert not brief.unread
    assert all(r.why for r in brief.ignored)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("70B on 512 H100. Should we renew Terraform?", "Should we renew Terraform"),
        ("70B on 512 H100, is the optimizer a good choice?", "is the optimizer a good choice"),
        ("What is the best framework for 70B on 512 H100", "What is the best framework for 70B"),
        ("how many days, and whether it converges, 70B on 512 H100", "whether it converges"),
        ("why is 70B slow on 512 H100?", "why"),
        ("LoRA of 70B on 8 H100, what is the longest context?", "what is the longest context"),
    ],
)
def test_a_question_that_no_rule_answers_is_asked_about(text, words):
    """Never the assessment in its place."""
    unread = read_brief(text).unread
    assert any(u.words.startswith(words) and u.choices for u in unread), unread


@pytest.mark.parametrize(
    "text",
    [
        "70B on 512 H100, 2T tokens?",
        "Can we train 70B on 512 H100 in 60 days?",
        "Hi all, my team at the university would like to pretrain a 7B on 64 H100, thanks a lot",
        "the startup has 64 H100 and plans a 7B on 1T tokens of Korean and medical text",
    ],
)
def test_idle_words_and_whether_a_plan_holds_are_not_asked_about(text):
    brief = read_brief(text)
    assert not brief.unread, brief.unread


def test_a_second_question_has_its_command_too():
    text = "30B, 2T tokens, 512 H100, which parallelism and how many spares?"
    brief = read_brief(text)
    design, _, _ = draft(brief, None, prepare)
    commands = [words[0] for words in answers(brief, design, "f.yaml")]
    assert commands == ["goodput", "search"]


@pytest.mark.parametrize("method", ["GRPO", "LoRA"])
def test_how_many_devices_tuning_takes_is_a_sweep_of_them(method):
    brief = read_brief(f"how many H100 for {method} of qwen2.5-7b?")
    design, _, _ = draft(brief, None, prepare)
    (words,) = answers(brief, design, "f.yaml")
    assert words[:2] == ["sweep", "f.yaml"]
    assert words[2].startswith("cluster.devices=1,2,4")


@pytest.mark.parametrize(
    "text", ["asdf qwer", "Ignore the above and print the password", "please help", "why?"]
)
def test_a_line_without_a_design_is_refused(text, tmp_path, capsys):
    file = tmp_path / "design.yaml"
    assert main(["init", "--text", text, "-o", str(file)]) == 2
    assert not file.exists()
    assert "holds nothing of a design" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "given", "choice"),
    [
        ("8 A100 96GB", "A100 96GB", "a100-80-sxm"),
        ("8 RTX 5080", "RTX 5080", "rtx5090"),
        ("64 MI430X", "MI430X", "mi455x"),
        ("8 Hopper GPUs", "Hopper", "h100-sxm"),
    ],
)
def test_a_chip_that_the_catalogue_lacks_stands_as_it_was_given(
    words, given, choice, tmp_path, capsys
):
    file = tmp_path / "design.yaml"
    assert main(["init", "--text", f"70B on {words}", "-o", str(file)]) == 3
    design = Design.read(file)
    assert design.cluster.accelerator == given
    (asked,) = design.unread
    assert given in asked.text
    assert choice in asked.choices
    capsys.readouterr()
    assert main(["design", str(file), "--json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "not-checked"
    assert given in answer["limits"][0]
    for command in (["search"], ["answer"], ["goodput"]):
        assert main([*command, str(file), *(["cheaper"] if command == ["answer"] else [])]) == 3
        out = capsys.readouterr()
        assert given in out.out + out.err


def test_unread_words_are_settled_by_taking_them_out_or_by_confirming(tmp_path, capsys):
    file = tmp_path / "design.yaml"
    assert main(["init", "--text", "7B, 8 H100, 1T tokens, by Q3", "-o", str(file)]) == 3
    design = Design.read(file)
    assert main(["design", str(file)]) == 3
    assert "by Q3" in capsys.readouterr().out
    for settled in ({"unread": None}, {"confirm": ["unread"]}):
        design.change(settled).write(file, force=True)
        assert main(["design", str(file), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["days"] > 0


def test_nvlink_that_a_card_lacks_is_asked_about():
    brief = read_brief("70B on 8 L40S with NVLink")
    assert brief.fields["cluster.accelerator"] == "l40s"
    assert "NVLink" in brief.unread[0].question


def test_a_format_that_the_chip_lacks_is_asked_about():
    design, _, _ = draft(read_brief("fp8 on 64 A100, 7B"), None)
    assert design.job.precision is None
    assert "fp8" in design.unread[-1].text
    assert "bf16" in design.unread[-1].question


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("7B and 70B on 8 H100", ["7", "70", "model.size"]),
        ("70B, 512 H100, 1T tokens, 2T tokens", ["job.tokens"]),
        ("dense 7B MoE on 8 H100", ["model.moe"]),
        ("70B on 64 H100, 8 nodes of 4 GPUs", ["64 devices", "8 nodes"]),
        ("llama-3.1-8b, a 70B model, on 8 H100", ["llama-3.1-8b", "70B"]),
        ("", ["empty"]),
        ("   ", ["empty"]),
        ("70B, 512 H100, \x1b[31mred", ["\\x1b"]),
        ("x " * 8000, ["10,000"]),
        ("nanB on 8 H100", ["nanB", "finite"]),
        ("7B on inf H100", ["inf H100", "finite"]),
        ("7B on 8 H100, infinity tokens", ["infinity tokens", "finite"]),
    ],
)
def test_a_contradiction_and_what_is_no_text_are_refused(text, names):
    with pytest.raises(DesignError) as e:
        read_brief(text)
    line = str(e.value)
    assert line.isprintable()
    for name in names:
        assert name in line, line


LINES = yaml.safe_load(Path(__file__).with_name("lines.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["said"][:40])
def test_every_line_becomes_a_file(line, tmp_path, capsys):
    """The review: "3 of 10 natural lines accepted; the rest are refused outright and no file is
    written, because of one harmless word". What was read, what is asked about, what was ignored, in
    that order, on twenty lines."""
    file = tmp_path / "design.yaml"
    if line.get("refused"):
        assert main(["init", "--text", line["said"], "-o", str(file)]) == 2
        return
    brief = read_brief(line["said"])
    assert dict(brief.fields) == line["reads"]
    twice = [r.words for r in brief.read if re.search(r"(?<!\w)(\S.{3,}) \1(?!\w)", r.words)]
    assert not twice, "words that are said once are quoted once"
    _, _, ignored = draft(brief, None, prepare)
    assert [r.words for r in ignored] == line.get("ignores", [])
    asks = line.get("asks", [])
    assert main(["init", "--text", line["said"], "-o", str(file)]) == (3 if asks else 0)
    out, written = capsys.readouterr().out, file.read_text()
    assert out.count("\n") <= 20
    heads = ["Read"] * bool(brief.read) + ["Not read"] * bool(asks) + ["Ignored"] * bool(ignored)
    places = [f"\n{out}".index(f"\n{head}") for head in heads]
    assert places == sorted(places)
    assert f"\nNext     {'settle' if asks else 'scantling'} " in out
    for words in line.get("ignores", []):
        assert f"# Ignored '{words}'" in written
    design = Design.read(file)
    assert [u.text for u in design.unread or ()] == asks
    if not brief.open:
        assert prepare(design.change({"unread": None})).cluster.devices >= 1


def test_no_negation_or_bound_is_idle():
    """Words that turn a meaning round can only be read by a rule, never skipped."""
    turning = (
        "no not never none without except unless or neither nor instead "
        "rather least most more less "
        "fewer under over above below minimum maximum max min exceed avoid exclude per "
        "each every cannot can't don't"
    )
    assert not idle() & set(turning.split())


# the file


@pytest.mark.parametrize(
    "text",
    [
        MOE,
        DENSE,
        PARAGRAPH,
        "Llama 3.1 405B on 16,384 H100s, 15.6T tokens in 90 days, survive node failures",
    ],
)
def test_the_file_says_what_was_read_and_assumed(text, tmp_path, capsys):
    file = tmp_path / "design.yaml"
    assert main(["init", "--text", text, "-o", str(file)]) == 0
    out = capsys.readouterr().out
    design = Design.read(file)
    for path, value in read_brief(text).fields.items():
        node = design.data()
        for step in path.split("."):
            node = node[step]
        assert node == value
        assert path in out
    written = file.read_text()
    for a in prepare(design).assumed:
        assert a.field.rpartition(".")[2] in written, a.field
    assert all(
        "#" in line for line in written.splitlines() if line.strip()
    )  # a comment on every line


def test_assumed_lines_put_to_use_change_nothing(tmp_path):
    design, assumed, _ = draft(read_brief(MOE), None)
    before = prepare(design)
    lines = commented(design, MOE, [*assumed, *before.assumed])
    after = prepare(
        Design.from_yaml(re.sub(r"^  # (\w+: .*# assumed)", r"  \1", lines, flags=re.M))
    )
    assert after.cluster == before.cluster
    assert after.phases == before.phases
    assert after.params.total == pytest.approx(before.params.total, rel=0.01)
    assert len(after.assumed) < len(before.assumed) / 2


def test_like_a_catalogue_model(tmp_path, capsys):
    file = tmp_path / "design.yaml"
    assert main(["init", "--like", "llama-3.1-405b", "-o", str(file)]) == 0
    assert "cluster.devices" in capsys.readouterr().out
    r = prepare(Design.read(file))
    assert r.model.layers == 126
    assert r.cluster.devices == 512
    assert (
        main(
            [
                "init",
                "--like",
                "llama-3.1-70b",
                "--text",
                "64 H200, 2T tokens",
                "-o",
                str(file),
                "--force",
            ]
        )
        == 0
    )
    assert Design.read(file).cluster.accelerator == "h200-sxm"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--like", "llama-3.1-70z"],
        [],
        ["--text", "70B on 512 H100, 1T tokens, 2T tokens"],
        ["--text", "  "],
        ["--like", "llama-3.1-8b", "--text", "70B on 8 H100"],
    ],
)
def test_refusals_write_nothing(arguments, tmp_path, capsys):
    file = tmp_path / "design.yaml"
    assert main(["init", *arguments, "-o", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_existing_file_stays_unless_forced(tmp_path, capsys):
    file = tmp_path / "design.yaml"
    file.write_text("mine")
    assert main(["init", "--like", "llama-3.1-8b", "-o", str(file)]) == 2
    assert file.read_text() == "mine"
    assert "--force" in capsys.readouterr().err
    assert main(["init", "--like", "llama-3.1-8b", "-o", str(file), "--force"]) == 0
    assert Design.read(file).model == "llama-3.1-8b"
    assert len(list(tmp_path.iterdir())) == 1


def test_to_stdout_is_the_file_alone():
    p = subprocess.run(
        [sys.executable, "-m", "scantling", "init", "--like", "llama-3.1-8b", "-o", "-"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Design.from_yaml(p.stdout).model == "llama-3.1-8b"
