"""Every wrong design file ends in one printable line that names field, value, what is allowed and
the nearest choice; exit 2, no traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest
from scantling.cli.app import main
from scantling.design.design import Design, DesignError
from scantling.plans.prepare import prepare

GOOD = """scantling: 1
model: llama-3.1-8b
cluster: {accelerator: h100-sxm, devices: 64}
job: {tokens: 1e12, seq_len: 8192, global_batch: 256}
"""


def with_line(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def model(body: str) -> str:
    return with_line("llama-3.1-8b", "{" + body + "}")


def cluster(body: str) -> str:
    return with_line("devices: 64", "devices: 64, " + body)


def job(body: str) -> str:
    return with_line("{tokens: 1e12, seq_len: 8192, global_batch: 256}", "{" + body + "}")


SHAPE = "layers: 32, hidden: 4096, ffn_hidden: 14336, heads: 32, kv_heads: 8, vocab: 128256"

KINDS = ["several kinds", "scantling compare"]

# name: (text, what the message must hold)
WRONG = {
    "two kinds of chips": (with_line("h100-sxm", "[h100-sxm, a100-80-sxm]"), KINDS),
    "a number of each kind": (with_line("h100-sxm", "{h100-sxm: 32, a100-80-sxm: 32}"), KINDS),
    "a cluster of each kind": (
        with_line(
            "{accelerator: h100-sxm, devices: 64}",
            "[{accelerator: h100-sxm, devices: 32}, {accelerator: b200-sxm, devices: 32}]",
        ),
        KINDS,
    ),
    "all that a block asks for": (
        model(f'pattern: "8*(mamba2+mlp)", state_size: 128, {SHAPE.replace("layers: 32, ", "")}'),
        ["model.ssm_heads", "mamba2 asks for ssm_heads, ssm_head_dim, groups"],
    ),
    "a kind a site": (
        cluster("sites: [{devices: 32}, {devices: 32, accelerator: a100-80-sxm}]"),
        ["cluster.sites.1.accelerator", *KINDS],
    ),
    "empty": ("", ["empty"]),
    "only comments": ("# nothing\n", ["empty"]),
    "not YAML": ("model: [1,", ["line 2", "not YAML"]),
    "tabs": ("model:\n\tsize: 1\n", ["not YAML"]),
    "a list": ("- 1\n- 2\n", ["[1, 2]", "mapping"]),
    "a word": ("hello\n", ["'hello'", "mapping"]),
    "a number": ("3\n", ["3", "mapping"]),
    "two documents": (GOOD + "---\n" + GOOD, ["second document"]),
    "duplicate key": (GOOD + "model: gpt-3-175b\n", ["'model'", "twice"]),
    "duplicate nested key": (
        with_line("devices: 64", "devices: 64, devices: 65"),
        ["'devices'", "twice"],
    ),
    "tag": (with_line("llama-3.1-8b", "!!python/object/apply:os.system [echo]"), ["tag"]),
    "unknown tag": (with_line("llama-3.1-8b", "!model x"), ["tag"]),
    "merge key": ("a: &a {x: 1}\nb: {<<: *a}\n", ["merge"]),
    "alias of itself": ("a: &a [*a]\n", ["contains itself"]),
    "deep nesting": ("a: " + "[" * 5000 + "]" * 5000, ["deeper"]),
    "many values": ("a: [" + "1," * 100_000 + "1]", ["more than"]),
    "binary in a string": (with_line("scantling: 1", 'name: "a\\0b"'), ["name", "control"]),
    "control character": (
        with_line("scantling: 1", 'name: "a\\x1b[31mb"'),
        ["name", "\\x1b", "control"],
    ),
    "name of two lines": (with_line("scantling: 1", 'name: "a\\nb"'), ["name", "one line"]),
    "misspelt top level": (GOOD.replace("model:", "modle:"), ["modle", "nearest: model"]),
    "misspelt in cluster": (
        with_line("devices: 64", "device: 64"),
        ["cluster.device", "nearest: cluster.devices"],
    ),
    "misspelt in job": (job("token: 1e12"), ["job.token:", "nearest: job.tokens"]),
    "misspelt in a phase": (
        job("phases: [{tokens: 1e12, sequence_len: 4096}]"),
        ["job.phases.0.sequence_len", "job.phases.0.seq_len"],
    ),
    "misspelt in model": (model(SHAPE + ", hiden: 1"), ["model.hiden", "nearest: model.hidden"]),
    "misspelt constraint": (
        GOOD + "constraints: {deadline_day: 3}\n",
        ["constraints.deadline_day", "constraints.deadline_days"],
    ),
    "misspelt pin": (GOOD + "plan: {microbatch: 1}\n", ["plan.microbatch", "plan.micro_batch"]),
    "misspelt module": (
        GOOD + "plan: {recompute_modules: [core_atn]}\n",
        ["plan.recompute_modules", "core_atn", "nearest: core_attn"],
    ),
    "module that the model lacks": (
        GOOD + "plan: {recompute_modules: [mla_up_proj]}\n",
        ["plan.recompute_modules", "latent attention"],
    ),
    "modules that are not asked for": (
        GOOD + "plan: {recompute: none, recompute_modules: [norm]}\n",
        ["plan.recompute_modules", "recompute: selective"],
    ),
    "misspelt reliability": (
        GOOD + "reliability: {spare: 1}\n",
        ["reliability.spare", "reliability.spares"],
    ),
    "misspelt price": (
        GOOD + "prices: {usd_per_gpu_hour: 1}\n",
        ["prices.usd_per_gpu_hour", "prices.usd_per_device_hour"],
    ),
    "misspelt measured": (GOOD + "measured: {step: 1}\n", ["measured.step:", "measured.step_s"]),
    "right word, wrong place": (GOOD + "devices: 64\n", ["devices", "nearest: cluster.devices"]),
    "negative count": (
        with_line("devices: 64", "devices: -8"),
        ["cluster.devices", "-8", "from 1"],
    ),
    "zero": (with_line("devices: 64", "devices: 0"), ["cluster.devices", "0", "from 1"]),
    "fraction of a device": (
        with_line("devices: 64", "devices: 64.5"),
        ["cluster.devices", "64.5", "whole"],
    ),
    "nan": (job("tokens: .nan"), ["job.tokens", "nan", "finite"]),
    "infinity": (job("tokens: .inf"), ["job.tokens", "finite"]),
    "1e400": (job("tokens: 1e400"), ["job.tokens", "finite"]),
    "400 digits": (job("tokens: " + "9" * 400), ["job.tokens", "finite"]),
    "4,000 digits": (job("tokens: " + "9" * 4000), ["digits"]),
    "text for a number": (job("tokens: lots"), ["job.tokens", "'lots'", "not a number"]),
    "unit of a rate": (job("tokens: 15Tbit"), ["job.tokens", "'15Tbit'", "not a number"]),
    "scale of a share": (job("tokens: 40%"), ["job.tokens", "'40%'", "not a number"]),
    "scale below the range": (job("tokens: -3T"), ["job.tokens", "too small"]),
    "quoted number": (job('tokens: "1e12"'), ["job.tokens", "'1e12'", "1e12"]),
    "list for a number": (
        with_line("devices: 64", "devices: [64]"),
        ["cluster.devices", "[64]", "not a number"],
    ),
    "mapping for a number": (
        with_line("devices: 64", "devices: {n: 64}"),
        ["cluster.devices", "not a number"],
    ),
    "truth for a number": (
        with_line("devices: 64", "devices: true"),
        ["cluster.devices", "true", "not a number"],
    ),
    "date for a number": (
        GOOD + "constraints: {deadline_days: 2026-11-21}\n",
        ["constraints.deadline_days", "2026-11-21"],
    ),
    "number for text": (with_line("scantling: 1", "name: 5"), ["name", "5", "text"]),
    "number for a section": (
        GOOD.replace("{accelerator: h100-sxm, devices: 64}", "3"),
        ["cluster", "3", "mapping"],
    ),
    "list for the model": (with_line("llama-3.1-8b", "[1]"), ["model", "[1]", "mapping"]),
    "yes for true": (GOOD + "plan: {sp: yes}\n", ["plan.sp", "'yes'", "nearest: true"]),
    "percent for a share": (
        GOOD + "constraints: {min_mfu: 40}\n",
        ["constraints.min_mfu", "40", "nearest: 0.4"],
    ),
    "share above one": (
        GOOD + "constraints: {min_goodput: 1.5}\n",
        ["constraints.min_goodput", "1.5"],
    ),
    "huge device count": (
        with_line("devices: 64", "devices: 1e30"),
        ["cluster.devices", "1e+30", "too large"],
    ),
    "wrong version": (with_line("scantling: 1", "scantling: 2"), ["scantling", "2", "nearest: 1"]),
    "version as text": (with_line("scantling: 1", 'scantling: "1"'), ["scantling", "'1'"]),
    "no model": (
        "cluster: {accelerator: h100-sxm, devices: 8}\njob: {}\n",
        ["model", "missing", "llama"],
    ),
    "no cluster": ("model: llama-3.1-8b\njob: {}\n", ["cluster", "missing"]),
    "no job": (
        "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 8}\n",
        ["job", "missing"],
    ),
    "no accelerator": (
        "model: llama-3.1-8b\ncluster: {devices: 8}\njob: {}\n",
        ["cluster.accelerator", "missing", "h100-sxm"],
    ),
    "no devices": (
        "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm}\njob: {}\n",
        ["cluster.devices", "missing"],
    ),
    "heads that do not divide": (
        model("layers: 32, hidden: 4096, heads: 33, vocab: 32000"),
        ["model.heads", "33", "hidden 4096", "nearest: 32"],
    ),
    "kv_heads that do not divide": (
        model(SHAPE.replace("kv_heads: 8", "kv_heads: 6")),
        ["model.kv_heads", "6", "heads 32"],
    ),
    "more kv_heads than heads": (
        model(SHAPE.replace("kv_heads: 8", "kv_heads: 64")),
        ["model.kv_heads", "64", "heads 32"],
    ),
    "top_k above experts": (
        model(SHAPE + ", experts: 8, top_k: 9, expert_ffn_hidden: 100"),
        ["model.top_k", "9", "experts 8"],
    ),
    "moe layers above layers": (
        model(SHAPE + ", experts: 8, top_k: 2, expert_ffn_hidden: 100, moe_layers: 40"),
        ["model.moe_layers", "40", "layers 32"],
    ),
    "active above size": (model("size: 10e9, active: 20e9"), ["model.active", "size"]),
    "size and like": (model("size: 10e9, like: llama-3.1-8b"), ["model.size", "like"]),
    "empty model": (model(""), ["model.layers", "missing"]),
    "unknown mlp": (model(SHAPE + ", mlp: swigul"), ["model.mlp", "'swigul'", "nearest: swiglu"]),
    "missing hf_config": (model("hf_config: no-such.json"), ["hf_config", "no-such.json"]),
    "unknown model": (
        with_line("llama-3.1-8b", "llama-3.1-80b"),
        ["model", "'llama-3.1-80b'", "nearest: llama-3.1-8b"],
    ),
    "unknown accelerator": (
        with_line("h100-sxm", "h100-smx"),
        ["cluster.accelerator", "'h100-smx'", "nearest: h100-sxm"],
    ),
    "unknown like": (
        with_line("h100-sxm", "{like: h1000}"),
        ["cluster.accelerator.like", "'h1000'"],
    ),
    "unknown figure": (
        with_line("h100-sxm", "{like: h100-sxm, hbm: 96}"),
        ["cluster.accelerator.hbm", "hbm_gb"],
    ),
    "unknown fabric": (
        cluster("scale_out: ib-nrd"),
        ["cluster.scale_out", "'ib-nrd'", "nearest: ib-ndr"],
    ),
    "scale-up fabric between nodes": (
        cluster("scale_out: nvlink4"),
        ["cluster.scale_out", "nvlink4"],
    ),
    "unknown storage": (cluster("storage: lustr"), ["cluster.storage", "'lustr'", "nearest"]),
    "unknown node": (
        cluster("node: dgx-h1000"),
        ["cluster.node", "'dgx-h1000'", "nearest: dgx-h100"],
    ),
    "unknown stack": (GOOD + "stack: megatron\n", ["stack", "'megatron'", "megatron-core"]),
    "unknown precision": (job("precision: bf17"), ["job.precision", "'bf17'", "nearest: bf16"]),
    "precision that the chip lacks": (
        job("precision: nvfp4"),
        ["job.precision", "'nvfp4'", "H100"],
    ),
    "precision said twice": (
        job("precision: bf16") + "plan: {precision: fp8}\n",
        ["plan.precision", "bf16"],
    ),
    "unknown optimizer": (job("optimizer: adma"), ["job.optimizer", "'adma'", "nearest: adamw"]),
    "unknown survivor": (
        GOOD + "constraints: {survive: nodes}\n",
        ["constraints.survive", "'nodes'", "nearest: node"],
    ),
    "unknown schedule": (
        GOOD + "plan: {schedule: 1f2b}\n",
        ["plan.schedule", "'1f2b'", "nearest: 1f1b"],
    ),
    "unknown sharding": (GOOD + "plan: {sharding: zero4}\n", ["plan.sharding", "'zero4'", "zero3"]),
    "both batches": (
        job("global_batch: 4, global_batch_tokens: 4e6"),
        ["job.global_batch_tokens", "global_batch"],
    ),
    "batch of less than a sequence": (
        job("seq_len: 8192, global_batch_tokens: 100"),
        ["job.global_batch_tokens", "100"],
    ),
    "phases and tokens": (job("tokens: 1e12, phases: [{tokens: 1e12}]"), ["job.tokens", "phases"]),
    "no phase": (job("phases: []"), ["job.phases", "1 to 100"]),
    "phase of text": (job("phases: [long]"), ["job.phases.0", "'long'", "mapping"]),
    "plan larger than the cluster": (
        GOOD + "plan: {tp: 8, pp: 16, cp: 1}\n",
        ["plan.pp", "16", "128", "64", "nearest: 8"],
    ),
    "phase plan larger than the cluster": (
        job("phases: [{seq_len: 8192, plan: {cp: 128}}]"),
        ["job.phases.0.plan.cp", "128"],
    ),
    "pin: tp that does not divide the heads": (
        GOOD + "plan: {tp: 3}\n",
        ["plan.tp", "3", "attention heads", "nearest: 2"],
    ),
    "pin: more stages than layers": (
        GOOD + "plan: {pp: 33}\n",
        ["plan.pp", "33", "layer", "nearest: 32"],
    ),
    "pin: cp that does not divide the sequence": (
        GOOD + "plan: {cp: 3}\n",
        ["plan.cp", "3", "sequence", "nearest: 2"],
    ),
    "pin: dp beyond the devices": (GOOD + "plan: {dp: 65}\n", ["plan.dp", "65", "nearest: 64"]),
    "pin: dp that does not divide the batch": (
        GOOD + "plan: {dp: 7}\n",
        ["plan.dp", "7", "256", "nearest: 8"],
    ),
    "pin: micro_batch that does not divide the batch": (
        GOOD + "plan: {micro_batch: 3}\n",
        ["plan.micro_batch", "3", "256", "nearest: 2"],
    ),
    "pin: grad_accum that does not divide the batch": (
        GOOD + "plan: {grad_accum: 3}\n",
        ["plan.grad_accum", "3", "256", "nearest: 2"],
    ),
    "pin: batch arithmetic": (
        GOOD + "plan: {dp: 4, micro_batch: 1, grad_accum: 3}\n",
        ["plan.dp", "global_batch 256", "12"],
    ),
    "pin: experts of a dense model": (
        GOOD + "plan: {ep: 8}\n",
        ["plan.ep", "8", "experts", "nearest: 1"],
    ),
    "pin: zero3 with chunks": (
        GOOD + "stack: megatron-core\nplan: {sharding: zero3, vpp: 2}\n",
        ["plan.sharding", "zero3", "interleaved"],
    ),
    "pin: a group without hsdp": (
        GOOD + "plan: {shard_group: 7}\n",
        ["plan.shard_group", "7", "hsdp"],
    ),
    "pin: layers recomputed without recompute": (
        GOOD + "plan: {recompute: none, recompute_layers: 3}\n",
        ["plan.recompute_layers", "3", "none"],
    ),
    "pin: more layers recomputed than there are": (
        GOOD + "plan: {recompute: full, recompute_layers: 99}\n",
        ["plan.recompute_layers", "99", "32"],
    ),
    "pin: a split that cannot be": (
        GOOD + "plan: {pp: 1, layer_split: balanced}\n",
        ["plan.layer_split", "balanced", "even"],
    ),
    "pin: sequence parallel without tp": (GOOD + "plan: {tp: 1, sp: true}\n", ["plan.sp", "tp"]),
    "two measured speeds": (GOOD + "measured: {step_s: 4, mfu: 0.4}\n", ["measured.mfu", "step_s"]),
    "a step faster than the hardware": (
        GOOD + "measured: {step_s: 1.0e-3}\n",
        ["measured.step_s", "0.001", "peak", "H100"],
    ),
    "a rate beyond the hardware": (
        GOOD + "measured: {tokens_per_s_per_device: 1e9}\n",
        ["measured.tokens_per_s_per_device", "peak"],
    ),
    "a utilisation beyond the hardware": (
        GOOD + "measured: {mfu: 0.999}\n",
        ["measured.mfu", "0.999"],
    ),
    "negative price": (
        GOOD + "prices: {usd_per_device_hour: -1}\n",
        ["prices.usd_per_device_hour", "-1"],
    ),
    "pue below one": (GOOD + "prices: {pue: 0.5}\n", ["prices.pue", "0.5", "from 1"]),
    "unknown preset": (
        GOOD + "reliability: {preset: lama3}\n",
        ["reliability.preset", "'lama3'", "nearest: llama3"],
    ),
}


def one_line(err: str) -> bool:
    return (
        err.count("\n") == 1 and err.endswith("\n") and err[:-1].isprintable() and len(err) < 1200
    )


@pytest.mark.parametrize("name", WRONG)
def test_wrong_text(name, tmp_path, capsys):
    text, said = WRONG[name]
    file = tmp_path / "design.yaml"
    file.write_text(text, encoding="utf-8")
    assert main(["design", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert one_line(err), err
    assert "Traceback" not in err
    assert "pydantic" not in err
    for part in said:
        assert part in err, err


def test_wrong_bytes(tmp_path, capsys):
    for name, raw in {
        "binary": b"\x00\x01\x02",
        "elf": b"\x7fELF\x02\x01\x01" + bytes(64),
        "latin": "name: caf\u00e9".encode("latin-1"),
        "utf-16": "model: x".encode("utf-16"),
        "escape": b"model: \x1b[31mred\n",
        "gzip": b"\x1f\x8b\x08\x00abc",
    }.items():
        file = tmp_path / f"{name}.yaml"
        file.write_bytes(raw)
        assert main(["design", str(file), "--json"]) == 2, name
        out, err = capsys.readouterr()
        assert out == "", name
        assert one_line(err), (name, err)
        assert file.name in err, (name, err)


def test_files_that_are_none(tmp_path, capsys):
    near = tmp_path / "design.yaml"
    near.write_text(GOOD)
    large = tmp_path / "large.yaml"
    large.write_text("# " + "x" * 1_100_000)
    os.mkfifo(tmp_path / "pipe")
    for path, said in {
        tmp_path / "desing.yaml": "nearest: design.yaml",
        tmp_path: "directory",
        large: "larger than 1,000,000",
        tmp_path / "pipe": "not a file",
        tmp_path / "a\nb": "no such file",
        tmp_path / ("x" * 300): "cannot be read",
        near / "x": "cannot be read",
    }.items():
        assert main(["design", str(path)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert one_line(err), err
        assert said in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable(tmp_path, capsys):
    file = tmp_path / "secret.yaml"
    file.write_text(GOOD)
    file.chmod(0)
    assert main(["design", str(file)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def bomb(levels=26, width=10) -> str:
    rows = ["a0: &a0 [" + ",".join(["lol"] * width) + "]"]
    rows += [f"a{i}: &a{i} [" + ",".join([f"*a{i - 1}"] * width) + "]" for i in range(1, levels)]
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        bomb(),
        bomb(9, 9).replace("[", "{").replace("]", "}").replace("lol", "x").replace("{", "["),
        "a: &a " + "x" * 1000 + "\nb: [" + ",".join(["*a"] * 30_000) + "]",
    ],
    ids=["26 levels", "broken", "one wide alias"],
)
def test_expansion_bombs_are_refused_fast_and_small(text, tmp_path):
    """A billion laughs costs no more than its bytes: caps on memory and processor time far below
    its expansion."""
    file = tmp_path / "bomb.yaml"
    file.write_text(text)

    def capped():
        resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))  # seconds; then the kernel ends it

    p = subprocess.run(
        [sys.executable, "-m", "scantling", "design", str(file)],
        capture_output=True,
        text=True,
        preexec_fn=capped,
    )
    assert (p.returncode, p.stdout) == (2, "")
    assert one_line(p.stderr), p.stderr


def test_python_callers_get_the_parts():
    with pytest.raises(DesignError) as e:
        prepare(Design.from_yaml(with_line("h100-sxm", "h100-smx")))
    assert (e.value.field, e.value.value, e.value.nearest) == (
        "cluster.accelerator",
        "h100-smx",
        "h100-sxm",
    )
    assert "h200-sxm" in e.value.allowed
    assert isinstance(e.value, ValueError)


def test_the_file_without_a_fault_has_none():
    assert prepare(Design.from_yaml(GOOD)).cluster.devices == 64


@pytest.mark.parametrize("word, nearest", [("fsdp", "zero3"), ("FSDP2", "zero3"), ("ddp", "none")])
def test_sharding_by_the_name_of_pytorch_is_not_taken_for_the_hybrid_one(word, nearest):
    """FullyShardedDataParallel is ZeRO-3 (Zhao et al. 2023, arXiv:2304.11277); HSDP is another."""
    data = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm", "devices": 8},
        "job": {"seq_len": 8192, "global_batch": 64},
        "plan": {"sharding": word},
    }
    with pytest.raises(DesignError) as refused:
        Design.from_data(data)
    assert str(refused.value).endswith(f"nearest: {nearest}")
